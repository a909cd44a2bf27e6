#!/usr/bin/env python3
"""Fates of connections: every way in which a client behaves and ends beside every way in which a server does.

    fates.py --binary target/quick/harrier                 compare with the recorded answers (answers.json.gz)
    fates.py --binary HARRIER --oracle HAPROXY             compare with a program that is at hand
    fates.py --record --oracle HAPROXY                     ask the oracle and write answers.json.gz
    fates.py --oracle HAPROXY --ask --only REGEX           show what a program answers

cases.py makes them. Each has a frontend, a backend and a server of its own, so that hundreds run at once, over TCP. Compared is what
the client and the server get and how their connections end, the log lines with all their timers in steps of 0.4 s, and every figure of
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
STEP = 0.4


class Server(threading.Thread):
    """A server that does with each connection what its script says."""

    def __init__(self, script):
        super().__init__(daemon=True)
        self.script, self.seen, self.lock = script, [], threading.Lock()
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
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
        conn.settimeout(10)
        peer = Peer(conn)
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
            return sorted([peer.got.decode("latin-1"), peer.end] for peer in self.seen)


class Peer:
    """One end of a connection, with what it got and how it ended."""

    def __init__(self, conn):
        self.conn, self.got, self.end, self.over, self.read = conn, b"", "open", False, 0

    def act(self, step):
        if self.over:
            return
        if isinstance(step, bytes):
            self.conn.settimeout(5)
            self.conn.sendall(step)
        elif step == "head":
            self.until(lambda: b"\r\n\r\n" in self.got, 8)
        elif step == "whole":
            self.until(lambda: whole(self.got), 8)
        elif step == "serve":
            while self.end == "open":
                self.until(lambda: whole(self.got[self.read:]), 60)
                if self.end == "open" and self.read < len(self.got):
                    self.read = len(self.got)
                    self.conn.sendall(cases.ANSWER)
        elif step == "shut":
            self.conn.shutdown(socket.SHUT_WR)
        elif step == "reset":
            self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.leave()
        elif step == "close":
            self.leave()
        elif step == "end":
            self.until(lambda: False, 60)
        elif isinstance(step, tuple) and step[0] == "got":
            self.until(lambda: len(self.got) >= step[1], 8)
        else:
            self.until(lambda: False, step)

    def until(self, enough, seconds):
        deadline = time.monotonic() + seconds
        while self.end == "open" and not enough() and (left := deadline - time.monotonic()) > 0:
            self.conn.settimeout(left)
            try:
                data = self.conn.recv(65536)
            except TimeoutError:
                return
            except OSError:
                self.end = "reset"
                return
            if not data:
                self.end = "closed"
            self.got += data

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
    def __init__(self, binary, patience, names):
        self.names, self.answers, self.found, self.listening = names, None, [], True
        # A Unix socket holds no more than ten lines, and what finds it full is lost.
        self.lines = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.lines.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.lines.bind(("127.0.0.1", 0))
        self.lines.settimeout(0.1)
        super().__init__(binary, patience)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def configuration(self):
        self.ports, self.servers, text = {}, {}, [CONFIG.format(d=self.dir, port=self.lines.getsockname()[1], client=cases.CLIENT, server=cases.SERVER, line=LINE.replace('"', ''))]
        for at, name in enumerate(self.names):
            case = cases.CASES[name]
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            self.sockets.append(listener)
            self.ports[name] = listener.getsockname()[1]
            self.servers[name] = server = Server(case["server"])
            front = [f"frontend f{at}", f" mode {case['mode']}", f" bind fd@{listener.fileno()}", f" default_backend b{at}"]
            if case["mode"] == "tcp":
                front.append(f' log-format "%f {TCP_LINE}"')
            back = [f"backend b{at}", f" mode {case['mode']}", f" server s 127.0.0.1:{server.port} pool-purge-delay 60s"]
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
                self.found.append(self.lines.recv(8192).decode("latin-1").split(": ", 1)[1].strip())
            except TimeoutError:
                continue

    def run(self, name):
        if self.answers is None:
            self.run_all()
        return self.answers[name]

    def run_all(self):
        """All at once, a few dozen at a time."""
        self.answers, gate = {}, threading.Semaphore(cases.TOGETHER)
        threads = []
        for name in self.names:
            thread = threading.Thread(target=self.one, args=(name, gate))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()
        # What the program still waits for is over when the longest of its timeouts is.
        time.sleep(1.3 + 0.3 * self.patience)
        lines, figures = self.found[:], self.all_figures()
        for at, name in enumerate(self.names):
            mine = [line.split(" ", 1)[1] for line in lines if line.split(" ", 1)[0] in (f"f{at}", f"f{at}~")]
            counted = figures.get(at, {})
            if not all(re.search(r" --(--)? ", line) for line in mine):
                # HAProxy counts what it says in place of a server twice.
                counted = {key: value for key, value in counted.items() if not key.endswith("resbout")}
            self.answers[name].update(log=sorted(self.plain(line, at) for line in mine), figures=counted, server=self.servers[name].told())

    def one(self, name, gate):
        with gate:
            peer = Peer(socket.create_connection(("127.0.0.1", self.ports[name])))
            for step in cases.CASES[name]["client"]:
                # What can't be sent is not sent; what came may still be read.
                self.quietly(lambda: peer.act(step))
            peer.leave()
            self.answers[name] = {"client": words(peer.got), "end": peer.end}

    def plain(self, line, at):
        """Names without their number, times in steps."""
        line = re.sub(rf"\b([fb]){at}\b", r"\1", line)
        step = lambda found: found.group(0) if found.group(0) == "-1" else str(int(int(found.group(0)) / 1000 / STEP + 0.35))
        return re.sub(r"t=[-\d/+]+", lambda times: re.sub(r"-?\d+", step, times.group(0)), line)

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
