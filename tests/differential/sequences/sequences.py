#!/usr/bin/env python3
"""Sequences: what one or two clients do step by step with backends of several servers, and what is counted, stored and shown of it.

    sequences.py --binary target/quick/harrier                 compare with the recorded answers (answers.json.gz)
    sequences.py --binary HARRIER --oracle HAPROXY             compare with a program that is at hand
    sequences.py --record --oracle HAPROXY                     ask the oracle and write answers.json.gz
    sequences.py --oracle HAPROXY --ask --only REGEX           show what a program answers

cases.py makes them. Each has a frontend, a backend and servers of its own, so that hundreds run in one process. Compared is what the
client gets at each step, which server got what through which of its connections, how many of those are there in the end, answers of commands,
log lines, the table, `show stat`, `show servers conn` and `show servers state`. Differences that are meant stand in known.txt with their reason.
"""
import csv, os, re, socket, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import cases, net, peers

CONFIG = """global
 stats socket {d}/admin level admin
 log 127.0.0.1:{port} local0
 nbthread 1
 maxconn 4000
 tune.pool-high-fd-ratio 100
 tune.pool-low-fd-ratio 100
 expose-experimental-directives
defaults
 log global
 timeout client 2s
 timeout server 1500ms
 timeout connect 1s
 timeout queue 600ms
 retries 2
 log-format "LINE {line}"
 error-log-format "ERROR {line}"
"""
LINE = "%f %b/%s t=%Tw/%Tc/%Tr/%Ta %ST %B %U %tsc %rc %sq/%bq %[var(txn.v)] %{+Q}r be=%[bc_err_name]"
TCP_LINE = "%f %b/%s t=%Tw/%Tc/%Tt %B %U %ts %rc %sq/%bq be=%[bc_err_name]"
# What depends on the moment, on the program, or says nothing; srid on how many servers other cases have deleted before.
PASSED = re.compile("pid|iid|sid|srid|type|lastchg|downtime|.*rate.*|.*time.*|check_duration|agent_duration|lastsess|slim|.?time|.?time_max|.*addr|algo|mode|cookie|proto|-|agg_.*|pxname|svname|qcur|"
                    "scur|.*_max|.*max|bin|bout|.*_bytes_.*|need_conn_est|safe_conn_cur|idle_conn_cur|used_conn_cur|srv_.*|last_agt|last_chk|resbout|reqbout|reqbin|resbin|h1_open.*|.*limit")
HOST = f"127.{128 + (os.getpid() >> 16) % 64}.{(os.getpid() >> 8) % 256}.{os.getpid() % 256}"
# How many cases run at once, and how many of those with a process of their own.
TOGETHER, ALONE = 24, 4
# Timers are kept in tenths of seconds, and may differ by so many.
NEAR = 2
TIMES = re.compile(r"(?<= t=)[-\d/+]+")
LATE = 0.1
LOOKED = ("status", "weight", "act", "bck", "chkfail", "chkdown", "hanafail", "check_status", "check_code", "check_rise", "check_fall", "check_health", "check_desc", "last_chk", "agent_status", "agent_code", "agent_rise", "agent_fall", "agent_health", "agent_desc", "last_agt", "tracked", "throttle")
STATE = re.compile(r"^\d+ (\S+) \d+ (\S+) \S+ (\d+) (\d+) (\d+) (\d+) \d+ (\d+) (\d+) (\d+) (\d+) (\d+) ")


class Case:
    """One case at work: its servers, its clients, and what came of each step."""

    def __init__(self, name, at, program):
        self.spec, self.at, self.program, self.name = cases.CASES[name], at, program, name
        self.servers, self.clients, self.order, self.lock = {}, {}, [], threading.Lock()
        self.listener = socket.socket()
        self.listener.bind((HOST, 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        for one, spec in self.spec["servers"].items():
            self.servers[one] = peers.Server(one, HOST, spec["manners"], self.tell, spec.get("options", ()))
            if self.spec.get("alone"):
                self.servers[one].start()

    def tell(self, text):
        with self.lock:
            self.order.append(text)

    def filled(self, line):
        line = line.replace("@b@", f"b{self.at:04}").replace("@f@", f"f{self.at:04}").replace("@host@", HOST)
        return re.sub("@(\\w+)@", lambda found: f"{HOST}:{self.servers[found.group(1)].port}", re.sub("@(\\w+):port@", lambda found: str(self.servers[found.group(1)].port), line))

    def configuration(self):
        front, back = [f"frontend f{self.at:04}", f" mode {self.spec['mode']}", f" bind fd@{self.listener.fileno()} {self.spec.get('bind', '')}"], [f"backend b{self.at:04}", f" mode {self.spec['mode']}"]
        if self.spec["mode"] == "tcp":
            front.append(f' log-format "LINE {TCP_LINE}"')
        front += [" " + self.filled(line) for line in self.spec["front"]] + [f" default_backend b{self.at:04}"]
        back += [" " + self.filled(line) for line in self.spec["back"]]
        back += [f" server {one} {HOST}:{self.servers[one].port} {self.filled(spec['words'])}" for one, spec in self.spec["servers"].items() if "words" in spec]
        return "\n".join(front + back + [self.filled(line) for line in self.spec.get("more", [])]) + "\n"

    def run(self):
        for one in self.servers.values():
            if not one.thread:
                one.start()
        out = []
        for step in self.spec["script"]:
            try:
                out.append(f"{step} => {self.masked(self.step(step.split(' ')))}")
            except OSError as error:
                out.append(f"{step} => {type(error).__name__}")
        time.sleep(0.05 * self.program.patience)
        answer = {"steps": out, "conn": self.rows("show servers conn")}
        ends = [line for one in self.servers.values() for line in one.ends()]
        for one in self.clients.values():
            one.conn.close()
            time.sleep(0.02)
        self.settle()
        with self.lock:
            answer["order"] = [self.masked(line) for line in self.order]
        answer["ends"] = ends
        answer["state"] = self.rows("show servers state")
        if any("stick-table" in line for line in self.spec["back"]):
            answer["table"] = self.masked(self.table(self.command(f"show table b{self.at:04}"))).split("\n")
        answer["figures"] = self.figures()
        return answer

    def finish(self):
        for one in self.servers.values():
            one.stop()
        self.listener.close()

    def settle(self):
        """Until its streams are over."""
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and any(self.program.read_figures(re.compile("scur|qcur"), f"show stat b{self.at:04} -1 -1").values()):
            time.sleep(0.03)
        time.sleep(0.03 * self.program.patience)

    def command(self, words):
        return self.program.command(words)

    def step(self, words):
        who, rest = words[0], words[1:]
        if who == "wait":
            return time.sleep(float(rest[0])) or ""
        if who == "!":
            if rest[0] == "look":
                return self.checks()
            if rest[:3] == ["show", "servers", "state"]:
                return self.rows("show servers state")
            if rest[:3] == ["show", "servers", "conn"]:
                return self.rows("show servers conn")
            answer = self.command(self.filled(" ".join(rest)))
            return self.table(answer) if "show table" in " ".join(rest) else self.shown(answer)
        if who in self.servers:
            return self.servers[who].drop(rest[0]) if rest[0] in ("close", "reset") else self.servers[who].set(" ".join(rest[1:]).split(" / "))
        source = None
        if "from" in rest:
            source = rest[rest.index("from") + 1]
            source, rest = f"127.0.{source}.1", rest[:rest.index("from")]
        name, mark = who.rstrip("<>~"), who[-1]
        if name not in self.clients:
            self.clients[name] = peers.Client((HOST, self.port), source)
        return self.act(name, mark, rest)

    def act(self, name, mark, rest):
        client = self.clients[name]
        if mark == "~":
            client.raw(peers.unescape(" ".join(rest)))
            return client.listen(0.15)
        if mark == "<":
            return client.receive(float(rest[0]) if rest else 3)
        if rest[0] in ("close", "reset", "shut"):
            if rest[0] == "reset":
                peers.reset(client.conn)
            elif rest[0] == "close":
                client.conn.close()
            else:
                return client.conn.shutdown(socket.SHUT_WR) or ""
            del self.clients[name]
            time.sleep(0.03)
            return ""
        if rest[0] == "end":
            return client.listen(0.3)
        if rest[0] == "more":
            return client.raw(b"x" * int(rest[1])) or ""
        client.send(rest)
        return client.receive() if mark != ">" else time.sleep(0.03) or ""

    def table(self, text):
        lines = text.strip().split("\n")
        return "\n".join(lines[:1] + sorted(re.sub("0x[0-9a-f]+:? |shard=[0-9]+ ", "", re.sub(r"(exp|expiry)=\d+", r"\1=?", line)) for line in lines[1:]))

    def shown(self, text):
        return re.sub("0x[0-9a-f]+", "PTR", text.strip())

    def masked(self, text):
        text = str(text or "")
        text = text.replace(HOST, "HOST")
        for one in self.servers.values():
            text = re.sub(rf"\b{one.port}\b", one.name.upper(), text)
        text = re.sub(rf"\b{self.port}\b", "PORT", text)
        # When a cookie was given, in minutes.
        text = re.sub(r"(S=[a-z]*(?:\|))[\w+/]{5}(\|[\w+/]{5})?", lambda found: found.group(1) + "DATE" + ("|DATE" if found.group(2) else ""), text)
        return re.sub(rf"\b([fb]){self.at:04}\b", r"\1", text)

    def at_rest(self, words, busy):
        """The answer of a command while no check is at work, if that can be had."""
        for _ in range(20):
            text = self.command(words)
            if "alone" not in self.spec or not any(busy(line) for line in text.split("\n")):
                break
            time.sleep(0.02)
        return text.strip().split("\n")

    def rows(self, words):
        out = []
        for line in self.at_rest(f"{words} b{self.at:04}", lambda line: (found := STATE.match(line)) and int(found.group(10)) & 1):
            if found := STATE.match(line):
                # Without the bit of a check that is at work.
                fields = found.groups()[1:]
                out.append(" ".join(fields[:8] + (str(int(fields[8]) & ~1), str(int(fields[9]) & ~1))))
            elif (fields := line.split(" ")) and words.endswith("conn") and "/" in fields[0] and not line.startswith("#"):
                # used_max and need_est are left out, safe and unsafe are one (differences.md); HAProxy counts private ones that are there no more.
                at = fields.index("-") + 1
                out.append(f"{fields[0].split('/')[1]} served={fields[at + 1]} used={fields[at + 2]} idle={int(fields[at + 6]) + int(fields[at + 7])} of {fields[at + 8]}")
        return out

    def checks(self):
        """What is said of the servers' checks."""
        out, names = [], []
        for line in self.at_rest(f"show stat b{self.at:04} -1 -1", lambda line: ",* " in line):
            if line.startswith("# "):
                names = line[2:].split(",")
                continue
            row = dict(zip(names, next(csv.reader([line]))))
            out.append(" ".join([row["svname"]] + [f"{name}={row[name].removeprefix('* ')}" for name in LOOKED if row[name]]))
        return out

    def figures(self):
        out, names = {}, []
        for proxy in "fb":
            for line in self.at_rest(f"show stat {proxy}{self.at:04} -1 -1", lambda line: ",* " in line):
                if line.startswith("# "):
                    names = line[2:].split(",")
                    continue
                row = dict(zip(names, next(csv.reader([line]))))
                kind = proxy if row["svname"] in ("FRONTEND", "BACKEND") else row["svname"]
                for name, value in row.items():
                    # HAProxy counts the connections of checks, too.
                    if value not in ("0", "") and not PASSED.fullmatch(name) and not ("alone" in self.spec and name.startswith("h1_total")):
                        out[f"{kind} {name}"] = int(value) if value.isdigit() else value.removeprefix("* ")
        return out


class Program(net.Program):
    """Some cases at work in one process. Those with checks, which begin with the process, have one each (`within`)."""

    def __init__(self, binary, patience, names, within=False):
        self.binary, self.names, self.answers, self.found, self.listening = binary, names, None, [], True
        self.spans, self.stalls = {}, []
        # A Unix socket holds no more than ten lines, and what finds it full is lost.
        self.inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.inlet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.inlet.bind(("127.0.0.1", 0))
        self.inlet.settimeout(0.05)
        self.cases = {name: Case(name, at, self) for at, name in enumerate(names) if within or not cases.CASES[name].get("alone")}
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        super().__init__(binary, patience)

    def configuration(self):
        self.sockets = [case.listener for case in self.cases.values()]
        for one in self.sockets:
            os.set_inheritable(one.fileno(), True)
        head = CONFIG.format(d=self.dir, port=self.inlet.getsockname()[1], line=LINE)
        return "\n".join([head] + [case.configuration() for case in self.cases.values()])

    def read_log(self):
        while self.listening:
            try:
                self.found.append(self.inlet.recv(8192).decode("latin-1").partition(": ")[2].strip())
            except TimeoutError:
                continue

    def watch(self):
        """When this process itself was kept from running."""
        while self.listening:
            begin = time.monotonic()
            time.sleep(0.02)
            if time.monotonic() > begin + 0.02 + LATE:
                self.stalls.append((begin, time.monotonic()))

    def most(self):
        return 60 + 10 * (1 + len(self.names) // ALONE)

    def run(self, name):
        if self.answers is None:
            self.run_all()
        return self.answers[name]

    def run_all(self):
        self.answers, threads = {}, []
        gates = {True: threading.Semaphore(ALONE), False: threading.Semaphore(TOGETHER)}
        threading.Thread(target=self.watch, daemon=True).start()
        for name in sorted(self.names, key=lambda name: name not in self.cases):
            gate = gates[name not in self.cases]
            gate.acquire()
            threads.append(threading.Thread(target=self.one, args=(name, gate), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()
        time.sleep(0.1)
        lines = {}
        for line in self.found:
            for at in set(re.findall(r"\b[fb](\d{4})\b", line)):
                lines.setdefault(int(at), []).append(line)
        for name, case in self.cases.items():
            answer = self.answers[name]
            mine = [case.masked(line) for line in lines.get(case.at, [])]
            answer["log"] = sorted(TIMES.sub(tenths, re.sub(r"\d+ms\b", "Nms", line)) for line in mine)
            begin, end = self.spans[name]
            answer["late"] = any(a < end and b > begin for a, b in self.stalls)

    def one(self, name, gate):
        begin = time.monotonic()
        try:
            self.answers[name] = self.cases[name].run() if name in self.cases else self.alone(name)
        except (OSError, net.Stalled, ValueError, KeyError) as error:
            self.answers[name] = {"died": repr(error)}
        finally:
            self.spans[name] = begin, time.monotonic()
            if name in self.cases and not self.cases[name].spec.get("alone"):
                self.cases[name].finish()
            gate.release()

    def alone(self, name):
        program = Program(self.binary, self.patience, [name], True)
        try:
            return program.run(name)
        finally:
            program.stop()

    @staticmethod
    def compared(one, other):
        """Lines whose timers are near those of the other one's are the same line."""
        mine, theirs = (sorted(answer.get("log", []), key=lambda line: (TIMES.sub("", line), timers(line))) for answer in (one, other))
        if "log" not in one or len(mine) != len(theirs):
            return one
        return {**one, "log": [min(pair) if near(*pair) else pair[0] for pair in zip(mine, theirs)]}

    def stop(self):
        # While servers with checks are there no check fails.
        for case in self.cases.values():
            case.finish()
        self.listening = False
        self.reader.join()
        super().stop()


def tenths(found):
    return re.sub(r"-?\d+", lambda number: number.group(0) if number.group(0) == "-1" else str(round(int(number.group(0)) / 100)), found.group(0))


def timers(line):
    found = TIMES.search(line)
    return [int(part) for part in found.group(0).replace("+", "").split("/")] if found else []


def near(one, other):
    a, b = timers(one), timers(other)
    return TIMES.sub("", one) == TIMES.sub("", other) and len(a) == len(b) and all((x == -1) == (y == -1) and abs(x - y) <= NEAR for x, y in zip(a, b))


if __name__ == "__main__":
    sys.exit(net.main(Program, cases.CASES, HERE, "answers.json.gz", jobs=4))
