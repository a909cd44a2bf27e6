#!/usr/bin/env python3
"""Fates of connections: every way in which a client behaves and ends beside every way in which a server does.

    fates.py --binary target/quick/harrier                 compare with the recorded answers (answers.json.gz)
    fates.py --binary HARRIER --oracle HAPROXY             compare with a program that is at hand
    fates.py --record --oracle HAPROXY                     ask the oracle and write answers.json.gz
    fates.py --oracle HAPROXY --ask --only REGEX           show what a program answers

cases.py makes them. Each has a frontend, a backend and a server of its own, so that hundreds run at once, over TCP. Compared is what
the client and the server get and how their connections end, the log lines with their timers (give or take 0.3 s), and every figure of
`show stat` when all is over. Differences that are meant stand in known.txt with their reason.
"""
import os, re, socket, struct, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import cases, net

CONFIG = """global
 stats socket {d}/admin level admin
 log 127.0.0.1:{port} local0
 nbthread 1
 maxconn 4000
 tune.pool-high-fd-ratio 100
 tune.pool-low-fd-ratio 100
defaults
 log global
 timeout client {client}ms
 timeout server {server}ms
 timeout connect 2s
 retries 1
 log-format "%f {line}"
 error-log-format "%f ERROR {line}"
"""
LINE = "%ft %b/%s t=%TR/%Tw/%Tc/%Tr/%Ta %ST %B %U %tsc %fc/%bc/%sc/%rc %sq/%bq %{+Q}r fe=%[fc_err_name] be=%[bc_err_name]"
TCP_LINE = "%ft %b/%s t=%Tw/%Tc/%Tt %B %U %ts %fc/%bc/%sc/%rc %sq/%bq be=%[bc_err_name]"
# Times, rates and what is not about this case.
PASSED = re.compile("pid|iid|sid|type|weight|lastchg|downtime|rate.*|check_.*|last.*|slim|uweight|.?time|.?time_max|cli_addr|addr|.*_desc|agg_.*|status|act|bck|chk.*|.*limit|mode|algo|cookie|"
                    "hanafail|throttle|pxname|svname|tracked|qlimit|idle_conn_cur|used_conn_cur|need_conn_est|safe_conn_cur|.*_bytes_.*|srv_.*|conn_rate.*|req_rate.*|proto|-")
# Ports of an address of our own: those of 127.0.0.1 are taken for a minute by every connection that ends, and the search for a free one may
# last longer than everything else.
HOST = f"127.{64 + (os.getpid() >> 16) % 64}.{(os.getpid() >> 8) % 256}.{os.getpid() % 256}"
# Timers are kept in tenths of seconds, and may differ by so many: whatever is awaited differs from something else by more.
NEAR = 3
TIMES = re.compile(r"(?<= t=)[-\d/+]+")
# How long a client waits for an end: longer than any timeout and what comes before it. Servers wait as long as it takes.
CLIENT_END, SERVER_END = 12, 3600
# What comes later than it should by so many seconds comes in no certain order: such a case is run again.
LATE = 0.08


class Server(threading.Thread):
    """A server that does with each connection what its script says."""

    def __init__(self, script, peer):
        super().__init__(daemon=True)
        self.script, self.peer, self.seen, self.lock = script, peer, [], threading.Lock()
        self.socket = socket.socket()
        self.socket.bind((HOST, 0))
        self.port = self.socket.getsockname()[1]
        if script != "refuse":
            self.socket.listen(16)
            self.start()

    def run(self):
        try:
            while True:
                conn, _ = self.socket.accept()
                threading.Thread(target=self.serve, args=(conn,), daemon=True).start()
        except OSError:
            pass

    def serve(self, conn):
        peer = self.peer(conn, SERVER_END)
        with self.lock:
            self.seen.append(peer)
        try:
            for step in self.script:
                peer.act(step)
            peer.act("close")
        except OSError:
            peer.leave()

    def told(self):
        """What its connections brought, and how they ended."""
        with self.lock:
            return sorted(peer.told() for peer in self.seen)


class Peer:
    """One end of a connection, with what it got and how it ended."""

    def __init__(self, conn, longest):
        self.longest, self.late = longest, False
        self.conn, self.got, self.end, self.over, self.read = conn, b"", "open", False, 0

    def act(self, step):
        if self.over:
            return
        if isinstance(step, bytes):
            self.say(step)
        elif step == "head":
            self.until(self.head, 8)
        elif step == "whole":
            self.until(self.whole, 8)
        elif step == "serve":
            self.serve()
        elif step == "shut":
            self.conn.shutdown(socket.SHUT_WR)
        elif step == "reset":
            self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.leave()
        elif step == "close":
            self.leave()
        elif step == "end":
            self.until(lambda: False, self.longest)
        elif isinstance(step, tuple) and step[0] == "got":
            self.until(lambda: len(self.got) >= step[1], 8)
        else:
            begin = time.monotonic()
            self.until(lambda: False, step)
            # Who has heard the last of the other side keeps its own pace all the same.
            time.sleep(max(0, begin + step - time.monotonic()))
            self.late |= time.monotonic() > begin + step + LATE

    def say(self, data):
        self.conn.settimeout(5)
        self.conn.sendall(data)

    def hear(self, data):
        self.got += data

    def head(self):
        return b"\r\n\r\n" in self.got

    def whole(self):
        return whole(self.got)

    def serve(self):
        while self.end == "open":
            if not self.until(lambda: whole(self.got[self.read:]), self.longest):
                return
            if self.end == "open" and self.read < len(self.got):
                self.read = len(self.got)
                self.say(cases.ANSWER)

    def told(self):
        """What a server's connection brought, and how it ended."""
        return [self.got.decode("latin-1"), self.end]

    def until(self, enough, seconds):
        """Listens until it is enough, or the connection has ended; whether that came in time."""
        deadline = time.monotonic() + seconds
        while self.end == "open" and not enough() and (left := deadline - time.monotonic()) > 0:
            self.conn.settimeout(left)
            try:
                data = self.conn.recv(65536)
            except TimeoutError:
                break
            except OSError:
                self.end = "reset"
                break
            if not data:
                self.end = "closed"
            self.hear(data)
        return self.end != "open" or enough()

    def leave(self):
        self.over = True
        self.conn.close()


def whole(data):
    """Whether a request has come with its body."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    if b"chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.I)
    return len(body) >= int(length.group(1)) if length else True


def timers(line):
    """The timers of a log line, and whether they go on."""
    found = TIMES.search(line)
    return [(int(part), part[0]) if part[0] in "-+" else (int(part), "") for part in found.group(0).split("/")] if found else []


def sort_key(line):
    return TIMES.sub("", line), timers(line)


def near(one, other):
    """Whether two lines say the same but for small differences of their timers."""
    (text, times), (their_text, theirs) = sort_key(one), sort_key(other)
    return text == their_text and len(times) == len(theirs) and all(sign == mark and abs(time - their) <= NEAR for (time, sign), (their, mark) in zip(times, theirs))


def words(data):
    """A response in short: dates say nothing, and each program says what is wrong in words of its own."""
    text = data.decode("latin-1")
    text = re.sub(r"(<h1>.*</h1>\n).*\n", r"\1", text)
    text = re.sub(r"x{20,}", lambda found: f"<{len(found.group(0))}>", text)
    out = []
    for part in re.split(r"(?=HTTP/1\.1 \d)", text):
        head, found, body = part.partition("\r\n\r\n")
        lines = head.split("\r\n")
        out.append(" | ".join(([lines[0]] + sorted(lines[1:]) + [body]) if found else lines))
    return [part for part in out if part]


class Program(net.Program):
    cases, template, line, tcp_line = cases.CASES, CONFIG, LINE, TCP_LINE

    def __init__(self, binary, patience, names):
        self.names, self.answers, self.found, self.listening, self.servers = names, None, [], True, {}
        self.spans, self.stalls = {}, []
        # A Unix socket holds no more than ten lines, and what finds it full is lost.
        self.lines = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.lines.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.lines.bind(("127.0.0.1", 0))
        self.lines.settimeout(0.1)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        super().__init__(binary, patience)

    def configuration(self):
        self.ports, text = {}, [self.template.format(d=self.dir, port=self.lines.getsockname()[1], client=cases.CLIENT, server=cases.SERVER, line=self.line)]
        for at, name in enumerate(self.names):
            case = self.cases[name]
            listener = socket.socket()
            listener.bind((HOST, 0))
            listener.listen(64)
            self.sockets.append(listener)
            self.ports[name] = listener.getsockname()[1]
            self.servers[name] = server = Server(case["server"], self.server_peer(case))
            front = [f"frontend f{at}", f" mode {case['mode']}", f" bind fd@{listener.fileno()} {case.get('bind', '')}", f" default_backend b{at}"]
            if case["mode"] == "tcp":
                front += [f' log-format "%f {self.tcp_line}"', f' error-log-format "%f ERROR {self.tcp_line}"'] if "bind" in case else [f' log-format "%f {self.tcp_line}"']
            back = [f"backend b{at}", f" mode {case['mode']}", f" server s {HOST}:{server.port} pool-purge-delay 1h {case.get('far', '')}"]
            for line in case.get("lines", []):
                where, line = line.split(": ", 1)
                if "f" in where:
                    front.append(" " + line)
                if "b" in where:
                    back.append(" " + line)
            text.append("\n".join(front + back) + "\n")
        for one in self.sockets:
            os.set_inheritable(one.fileno(), True)
        return "\n".join(text)

    def read_log(self):
        while self.listening:
            try:
                self.found.append(self.lines.recv(8192).decode("latin-1").partition(": ")[2].strip())
            except TimeoutError:
                continue

    def watch(self):
        """When this process itself was kept from running."""
        while self.listening:
            begin = time.monotonic()
            time.sleep(0.02)
            if time.monotonic() > begin + 0.02 + LATE:
                self.stalls.append((begin, time.monotonic()))

    def late(self, name):
        begin, end = self.spans[name]
        return any(a < end and b > begin for a, b in self.stalls) or any(peer.late for peer in self.servers[name].seen)

    def most(self):
        # The first one that is asked for runs them all.
        return 60 + 3 * CLIENT_END * (1 + len(self.names) // cases.TOGETHER)

    def run(self, name):
        if self.answers is None:
            self.run_all()
        return self.answers[name]

    def run_all(self):
        """All at once, a few dozen at a time."""
        self.answers, gate = {}, threading.Semaphore(cases.TOGETHER)
        threads = []
        threading.Thread(target=self.watch, daemon=True).start()
        for name in self.names:
            gate.acquire()
            threads.append(threading.Thread(target=self.one, args=(name, gate), daemon=True))
            threads[-1].start()
            # Not all at the same instant.
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        self.settle()
        lines, figures = self.found[:], self.all_figures()
        for at, name in enumerate(self.names):
            mine = [line.split(" ", 1)[1] for line in lines if line.split(" ", 1)[0] in (f"f{at}", f"f{at}~")]
            counted = figures.get(at, {})
            if not all(re.search(r" --(--)? ", line) for line in mine):
                # HAProxy counts what it says in place of a server twice.
                counted = {key: value for key, value in counted.items() if not key.endswith("resbout")}
            self.answers[name]["late"] |= self.late(name)
            self.answers[name].update(log=sorted(self.plain(line, at) for line in mine), figures=counted, server=self.servers[name].told())

    def settle(self):
        """Waits until the program is through with everything, which it is when the longest of its timeouts has passed."""
        deadline = time.monotonic() + 8 * self.patience
        while time.monotonic() < deadline and any(self.read_figures(re.compile("scur")).values()):
            time.sleep(0.2)
        time.sleep(0.3 * self.patience)

    def one(self, name, gate):
        begin = time.monotonic()
        try:
            self.answers[name] = self.client(name, self.cases[name])
        except Exception as error:  # Whatever it is, this thread's answer is waited for.
            self.answers[name] = {"died": repr(error), "late": False}
        finally:
            self.spans[name] = begin, time.monotonic() + 0.5
            gate.release()

    def dial(self, name):
        return socket.create_connection((HOST, self.ports[name]), 10)

    def client(self, name, case):
        peer = Peer(self.dial(name), CLIENT_END)
        for step in case["client"]:
            # What can't be sent is not sent; what came may still be read.
            self.quietly(lambda: peer.act(step))
        peer.leave()
        return {"client": words(peer.got), "end": peer.end, "late": peer.late}

    @staticmethod
    def server_peer(_case):
        return Peer

    def plain(self, line, at):
        """Names without their number, times in tenths of seconds."""
        line = re.sub(rf"\b([fb]){at}\b", r"\1", line)
        tenths = lambda found: found.group(0) if found.group(0) == "-1" else str(round(int(found.group(0)) / 100))
        return TIMES.sub(lambda times: re.sub(r"-?\d+", tenths, times.group(0)), line)

    @staticmethod
    def compared(one, other):
        """Lines whose timers are near those of the other one's are the same line."""
        pairs = list(zip(*(sorted(answer.get("log", []), key=sort_key) for answer in (one, other))))
        if not pairs or len(one["log"]) != len(other["log"]):
            return one
        return {**one, "log": [min(pair) if near(*pair) else pair[0] for pair in pairs]}

    def all_figures(self):
        out, names = {}, []
        for line in self.command("show stat").strip().split("\n"):
            if line.startswith("# "):
                names = line[2:].split(",")
                continue
            row = dict(zip(names, line.split(",")))
            found = re.fullmatch(r"([fb])(\d+)", row["pxname"])
            if not found:
                continue
            mine = out.setdefault(int(found.group(2)), {})
            kind = found.group(1) if row["svname"] in ("FRONTEND", "BACKEND") else row["svname"]
            for name, value in row.items():
                if value.isdigit() and value != "0" and not PASSED.fullmatch(name):
                    mine[f"{kind} {name}"] = int(value)
        return out

    def stop(self):
        self.listening = False
        self.reader.join()
        super().stop()
        for one in self.sockets + [server.socket for server in self.servers.values()]:
            one.close()


if __name__ == "__main__":
    sys.exit(net.main(Program, cases.CASES, HERE, "answers.json.gz"))
