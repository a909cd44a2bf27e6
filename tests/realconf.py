#!/usr/bin/env python3
"""Run real configurations on two programs and compare what is seen from outside.

    tests/realconf.py ORACLE PROGRAM FOLDER [PATTERN]...

Each file of FOLDER whose name contains a PATTERN is run on real HAProxy (ORACLE) and on PROGRAM: listeners are moved to
free ports of 127.0.0.1, all servers are one origin in this script, log targets are a UDP socket of it. Both get the same
requests, made from the hosts, paths, headers and cookies that the file names, and some wrong ones. Compared are the
answers byte for byte, what the origin received, the log lines (times masked) and the counters of `show stat`.

Files that need TLS, Lua or other programs must be stripped of that first: a file that either program refuses is skipped.
The bodies of built-in error answers are not compared, nor what counts their bytes. Exits 1 if anything differed.
"""
import concurrent.futures, csv, difflib, io, os, random, re, signal, socket, subprocess, sys, tempfile, threading, time

LOCAL = "127.0.0.1"
MAX_REQUESTS = 40
# Columns of `show stat` that depend on time, on the length of our own words, or on how a program keeps messages in memory:
# HAProxy counts the bytes of its own form of a head, not those on the wire; or that follow from how many descriptors it
# takes for itself (`slim`).
UNSTABLE = {
    "pid", "lastsess", "lastchg", "downtime", "qtime", "ctime", "rtime", "ttime", "rate", "rate_max", "req_rate",
    "req_rate_max", "conn_rate", "conn_rate_max", "check_duration", "check_status", "check_code", "last_chk", "check_desc",
    "qtime_max", "ctime_max", "rtime_max", "ttime_max", "bout", "chkfail", "chkdown",
    "idle_conn_cur", "srv_icur", "slim", "need_conn_est", "agg_check_status", "bin",
    "reqbin", "reqbout", "resbin", "resbout", "h1_bytes_in", "h1_bytes_out", "h1_open_connections", "safe_conn_cur",
    "idle_conn_cur", "h1_open_streams", "h1_total_connections", "h1_total_streams", "check_health", "last_agt",
}


# Ways of balancing with an element of chance: HAProxy beside itself differs here from run to run.
# ("unknown" is what the statistics call `random`.)
DRAWN = ("unknown", "random", "leastconn")
DRAWN_SUM = ("stot", "lbtot", "req_tot", "econ", "eresp", "wretr", "wredis", "cli_abrt", "srv_abrt", "hrsp_2xx", "hrsp_4xx", "hrsp_5xx")


def free_port(taken):
    """A port below those that the kernel gives to clients, so that none of them takes it before the program is up."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind((LOCAL, port))
            except OSError:
                continue
        if port not in taken:
            taken.add(port)
            return port


class Origin:
    """Answers every request alike and keeps the bytes of those that say who they are (`x-req: N`)."""

    def __init__(self, port):
        self.seen, self.lock = {}, threading.Lock()
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((LOCAL, port))
        self.sock.listen(256)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        c.settimeout(10)
        rest = came = b""
        try:
            while True:
                if not rest:
                    rest = c.recv(65536)
                    if not rest:
                        return
                    came, rest = announced(c, rest)
                while b"\r\n\r\n" not in rest:
                    more = c.recv(65536)
                    if not more:
                        return
                    rest += more
                head, rest = rest.split(b"\r\n\r\n", 1)
                head, came = came + head, b""
                body = b""
                length = re.search(rb"(?im)^content-length: *(\d+)", head)
                if length:
                    while len(rest) < int(length[1]):
                        rest += c.recv(65536)
                    body, rest = rest[: int(length[1])], rest[int(length[1]) :]
                elif re.search(rb"(?im)^transfer-encoding: *chunked", head):
                    while b"0\r\n\r\n" not in rest:
                        rest += c.recv(65536)
                    body, rest = rest.split(b"0\r\n\r\n", 1)
                number = re.search(rb"(?im)^x-req: *(\d+)", head)
                if number:
                    with self.lock:
                        self.seen.setdefault(int(number[1]), []).append(head + b"\r\n\r\n" + body)
                text = b"" if head.startswith(b"HEAD ") else b"hello from the origin\n"
                c.sendall(
                    b"HTTP/1.1 200 OK\r\nServer: origin\r\nX-Powered-By: tests\r\nContent-Type: text/plain\r\n"
                    b"Set-Cookie: app=1; path=/\r\nCache-Control: max-age=60\r\nContent-Length: 22\r\n\r\n" + text
                )
                if re.search(rb"(?im)^connection: *close", head) or b" HTTP/1.0\r\n" in head + b"\r\n":
                    return
        except (OSError, ValueError):
            pass
        finally:
            c.close()

    def take(self):
        with self.lock:
            seen, self.seen = self.seen, {}
        return seen


def announced(c, got):
    """Takes a PROXY header of version 2 off what came first: as text without the client's port, which the kernel chose."""
    if not got.startswith(b"\r\n\r\n\0\r\nQUIT\n"):
        return b"", got
    while len(got) < 16 or len(got) < 16 + int.from_bytes(got[14:16], "big"):
        got += c.recv(65536)
    end = 16 + int.from_bytes(got[14:16], "big")
    fixed = bytearray(got[12:end])
    if fixed[1] >> 4 == 1 and len(fixed) >= 16:
        fixed[12:14] = b"--"
    return b"PROXY2 " + fixed.hex().encode() + b"\r\n", got[end:]


class Prepared:
    """A configuration with its places moved."""

    def __init__(self, text, work, taken):
        self.ports, self.origin, self.log = [], free_port(taken), free_port(taken)
        self.socket = os.path.join(work, "s")
        out, section, moved = [], "", {}
        for line in text.split("\n"):
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] in SECTIONS:
                section = words[0]
                out.append(line)
                continue
            if section == "global" and (words[0] in DROPPED or words[:2] == ["stats", "socket"]):
                continue
            line = self.line(words, line, taken, moved)
            if line is not None:
                out.append(line)
        # The number of threads must stand above all other sections.
        self.text = "\n".join(["global", *self.own(), *out]) + "\n"

    def own(self):
        return [f"    stats socket {self.socket} level admin", "    nbthread 1"]

    def line(self, words, line, taken, moved):
        head = words[0]
        if head == "bind":
            proxy = "accept-proxy" in words
            addresses = []
            for address in words[1].split(","):
                port = moved.get(address) or moved.setdefault(address, free_port(taken))
                self.ports.append((port, proxy))
                addresses.append(f"{LOCAL}:{port}")
            keep = [w for w in words[2:] if w in ("accept-proxy", "defer-accept", "tfo")]
            for name in ("name", "id", "maxconn"):
                if name in words[2:]:
                    keep += words[words.index(name) : words.index(name) + 2]
            return " ".join(["    bind", ",".join(addresses), *keep])
        if head in ("server", "server-template"):
            at = 2 if head == "server" else 3
            if len(words) <= at:
                return line
            words[at] = f"{LOCAL}:{self.origin}"
            i = at + 1
            kept = words[:i]
            while i < len(words):
                w = words[i]
                if w in ("port", "addr", "verify", "sni", "ca-file", "crt", "source", "agent-port", *INTERVALS):
                    i += 1
                elif w not in ("ssl", "check-ssl", "agent-check"):
                    kept.append(w)
                i += 1
            if "check" in kept:
                kept += ["inter", INTERVAL]
            return "    " + " ".join(kept)
        if head == "default-server":
            for i, w in enumerate(words[:-1]):
                if w in INTERVALS:
                    words[i + 1] = INTERVAL
            return "    " + " ".join(words)
        if head == "log" and len(words) > 1 and words[1] != "global" and words[1] not in FORMATS:
            rest = words[2:]
            while rest and rest[0] in ("len", "format", "sample"):
                if rest[0] == "format" and rest[1] == "raw":
                    break
                rest = rest[2:]
            return " ".join(["    log", f"{LOCAL}:{self.log}", *rest])
        if head == "source" or head == "maxconn" and int(re.sub(r"\D", "", words[1]) or 0) > 2000:
            return None
        return line


SECTIONS = {
    "global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "resolvers", "ring", "http-errors",
    "mailers", "cache", "program", "log-profile",
}
DROPPED = {
    "daemon", "pidfile", "chroot", "user", "group", "uid", "gid", "nbthread", "cpu-map", "maxconn", "ulimit-n", "thread-groups",
    "server-state-file", "server-state-base", "setcap", "stats-file", "master-worker", "node",
}
FORMATS = {"-"}
# Checks are made often, so that a server's state is settled before the first request: all servers are one origin, which
# answers each check alike, and a state that changes in between would make every request behind it differ.
INTERVALS = ("inter", "fastinter", "downinter")
INTERVAL = "150ms"


def requests(text):
    """Requests made from what a configuration names: lists of messages sent over one connection."""
    text = re.sub(r"(?m)(?:^|(?<=\s))#.*$", "", text)
    words = lambda found: list(dict.fromkeys(w for f in found for w in f if w and not w.startswith(("-", "{", "}", "/work"))))
    patterns = r"((?:\s+(?!if\b|unless\b|or\b|\}|\|\|)[^\s{}]+)+)"
    hosts = words(m.split() for m in re.findall(r"(?i)\bhdr\w*\(host\)[^\s]*" + patterns, text))[:7]
    paths = words(m.split() for m in re.findall(r"\b(?:path|url|capture\.req\.uri|base)(?:_\w+)?(?:,\w+\([^)]*\)|,lower)?" + patterns, text))
    paths = [p for p in paths if p.startswith(("/", "."))][:10]
    plain = lambda p: re.sub(r"[\^$()\\?|*+\[\]]", "", p)
    headers = list(dict.fromkeys(re.findall(r"(?i)\bf?hdr\w*\(([\w-]+)\)", text)))
    headers = [h for h in headers if h.lower() not in ("host", "cookie", "x-req")][:6]
    values = dict(re.findall(r"(?i)\bhdr\w*\(([\w-]+)\)\S*\s+(?:-\w+\s+(?:found\s+)?)*([^\s{}-][^\s{}]*)", text))
    cookies = re.findall(r"(?m)^\s*(?:cookie|appsession)\s+(\S+)", text)
    marks = re.findall(r"(?m)^\s*server\s.*\scookie\s+(\S+)", text)
    host = plain(hosts[0]) if hosts else "example.com"
    n = iter(range(1, 1000))

    def get(path="/", host=host, method="GET", version="1.1", more="", body=""):
        line = f"{method} {path} HTTP/{version}\r\n"
        host = f"Host: {host}\r\n" if host else ""
        return f"{line}{host}X-Req: {next(n)}\r\nUser-Agent: tests\r\n{more}\r\n{body}"

    def path_of(p):
        p = plain(p)
        return p if p.startswith("/") else "/a" + p

    out = [[get()], [get(host="nobody.invalid")]]
    out += [[get(host=plain(h).lstrip("."))] for h in hosts]
    out += [[get(path_of(p))] for p in paths]
    out += [[get(path_of(p), plain(h).lstrip("."))] for p, h in zip(paths[:3], hosts[1:4])]
    out += [[get(more=f"{h}: {plain(values.get(h, 'x'))}\r\n")] for h in headers]
    out += [[get(more=f"Cookie: a=b; {c}={m}\r\n")] for c in cookies[:1] for m in [*marks[:2], "gone"]]
    out += [
        [get(version="1.0", host="")],
        [get(version="1.0", more="Connection: keep-alive\r\n")],
        [get(method="HEAD")],
        [get(method="POST", more="Content-Length: 5\r\nContent-Type: text/plain\r\n", body="a=b&c")],
        [get(method="POST", more="Transfer-Encoding: chunked\r\n", body="5\r\nhello\r\n0\r\n\r\n")],
        [get(method="PUT", more="Content-Length: 0\r\n")],
        [get(method="OPTIONS", more="Origin: http://a.example\r\nAccess-Control-Request-Method: GET\r\n")],
        [get(), get("/again?x=1&y=%20")],
        [get(more="Connection: close\r\n")],
        [get(more="X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 192.0.2.2\r\n")],
        [get(more="Authorization: Basic YWRtaW46YWRtaW4=\r\n")],
        [get(more="Accept-Encoding: gzip\r\nReferer: http://x/\r\nRange: bytes=0-3\r\n")],
        [get("http://abs.example/abs?q=1", "abs.example")],
        [get("/../a//b/./c%2f?x#")],
        [get(more="Host: twice.example\r\n")],
        [get(host="")],
        [get("/ /")],
        [get(more="X-Bad : 1\r\n")],
        [get(more="Content-Length: 5\r\nContent-Length: 6\r\n", body="hello!")],
        [get("*", method="OPTIONS")],
        ["FOO\r\n\r\n"],
        [get(more=f"X-Long: {'l' * 20000}\r\n")],
        [get("/haproxy?stats;csv", more="Connection: close\r\n")],
    ]
    return out[-23:] + out[:-23]


def talk(port, proxy, messages, pid):
    """Sends messages one after the other; all answers, and whether the connection was left open."""
    out = []
    try:
        s = socket.create_connection((LOCAL, port), 2)
        s.settimeout(2.5)
        if proxy:
            s.sendall(b"PROXY TCP4 192.0.2.77 192.0.2.78 7777 80\r\n")
        for m in messages:
            s.sendall(m.encode("latin-1"))
            out.append(answer(s, m.startswith("HEAD "), pid))
            if out[-1].endswith("[end]"):
                # Whether one can still write there is a race of two closing sides.
                break
        s.settimeout(0.05)
        try:
            out.append("closed" if s.recv(1) == b"" else "more bytes")
        except TimeoutError:
            out.append("open")
        mine = s.getsockname()[1]
    except OSError as e:
        out.append(f"error {type(e).__name__}")
        return out, None
    s.close()
    settle(port, mine)
    return out, mine


def settle(port, mine):
    """Waits until the program has closed its side, too: what the next connection finds shall not be a race of two
    closing sides with this script."""
    pair = f"0100007F:{port:04X} 0100007F:{mine:04X} "
    until, gone = time.monotonic() + 1, 0
    # The table is read in pieces while it changes, so that a line may be missed: it must be missing twice.
    while time.monotonic() < until and gone < 2:
        with open("/proc/net/tcp") as f:
            held = f.read().split(pair)[1:]
        # 06: TIME_WAIT, which no process holds any more.
        if all(rest.startswith("06") for rest in held):
            gone += 1
            continue
        gone = 0
        time.sleep(0.002)


def is_stopped(pid):
    """Whether somebody has stopped the program (SIGSTOP), as those do who measure on a quiet machine."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


def answer(s, head_only, pid):
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return got.decode("latin-1") + "[end]"
            got += more
            if b"\r\n\r\n" not in got:
                continue
            head, body = got.split(b"\r\n\r\n", 1)
            length = re.search(rb"(?im)^content-length: *(\d+)", head)
            if head_only or (length and len(body) >= int(length[1])) or body.endswith(b"0\r\n\r\n") or b" 304 " in head[:20] or b" 204 " in head[:20]:
                return got.decode("latin-1")
    except TimeoutError:
        if is_stopped(pid):
            while is_stopped(pid):
                time.sleep(0.2)
            return got.decode("latin-1") + answer(s, head_only, pid)
        return got.decode("latin-1") + "[stalled]"


def command(path, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        s.sendall(line.encode() + b"\n")
        out = b""
        while more := s.recv(65536):
            out += more
    return out.decode("latin-1")


def run(program, prepared, work, messages):
    """What was seen of one program: answers, the origin's bytes, log lines, counters."""
    path = os.path.join(work, "c")
    with open(path, "w") as f:
        f.write(prepared.text)
    log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    log.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    log.bind((LOCAL, prepared.log))
    origin = Origin(prepared.origin)
    errors = open(os.path.join(work, "err"), "w+")
    child = subprocess.Popen([program, "-db", "-f", path], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    try:
        until = time.monotonic() + 10
        while not os.path.exists(prepared.socket) and child.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        # Long enough for health checks to come to their verdict, see `INTERVALS`.
        time.sleep(1.5)
        if child.poll() is not None:
            errors.seek(0)
            return {"start": [f"exit {child.returncode}", errors.read()[-300:]]}
        seen = {"answers": [], "logs": [], "clients": set()}
        for i, (port, proxy) in enumerate(dict.fromkeys(prepared.ports)):
            for m in messages if i < 2 else messages[:2] + messages[-4:]:
                answers, mine = talk(port, proxy, m, child.pid)
                seen["answers"].append((port, m, answers))
                seen["clients"].add(str(mine))
                if child.poll() is not None:
                    seen["start"] = [f"died: {child.returncode}"]
                    return seen
        time.sleep(0.3)
        seen["stat"] = counters(command(prepared.socket, "show stat"))
        seen["origin"] = origin.take()
    finally:
        if os.path.exists(prepared.socket):
            os.unlink(prepared.socket)
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        origin.sock.shutdown(socket.SHUT_RDWR)
        origin.sock.close()
    log.setblocking(False)
    try:
        while True:
            seen["logs"].append(log.recv(65536).decode("latin-1").rstrip("\n"))
    except BlockingIOError:
        pass
    log.close()
    # The kernel chose the ports of our connections.
    known = lambda found: "MINE" if found[0] in seen["clients"] else found[0]
    seen["logs"] = [re.sub(r"\b\d{4,5}\b", known, line) for line in seen["logs"]]
    known = lambda found: b"MINE" if found[0].decode() in seen["clients"] else found[0]
    seen["origin"] = {n: [re.sub(rb"\b\d{4,5}\b", known, m) for m in l] for n, l in seen["origin"].items()}
    return seen


def counters(text):
    rows = [r for r in csv.DictReader(io.StringIO(text.lstrip("# "))) if r.get("pxname")]
    drawn = {r["pxname"] for r in rows if r["svname"] == "BACKEND" and r["algo"] in DRAWN}
    out = {}
    for r in rows:
        figures = {k: v for k, v in r.items() if k and k not in UNSTABLE}
        if r["pxname"] not in drawn:
            out[r["pxname"], r["svname"]] = figures
        elif r["svname"] not in ("FRONTEND", "BACKEND"):
            # Which server got how many is a matter of luck, and so is which idle connection was there for it.
            total = out.setdefault((r["pxname"], "servers"), {k: 0 for k in DRAWN_SUM})
            for k in DRAWN_SUM:
                total[k] += int(figures.get(k) or 0)
        else:
            out[r["pxname"], r["svname"]] = {k: v for k, v in figures.items() if k not in ("connect", "reuse")}
    return out


def masked(line):
    line = re.sub(r"^<(\d+)>(?:1 )?(\w+ +\d+ [\d:]+|[\d:.TZ+-]+) ", r"<\1>", line)
    line = re.sub(r"\[\d{2}/\w{3}/\d{4}:[\d:.]+( \+0000)?\]", "[T]", line)
    line = re.sub(r"(\w)\[\d+\]:", r"\1[P]:", line)
    line = re.sub(r"(?<![\d.])(192\.0\.2\.\d+|127\.0\.0\.1):(?:\d{4,5}|MINE)(?= \[)", r"\1:P", line)
    line = re.sub(r"(?<= )(-?\d+/)+\+?-?\d+(?= \d{3} | \+?\d+ )", lambda m: re.sub(r"(?<!-)\d+", "N", m[0]), line)
    line = re.sub(r"(?<= )(\d\d\d|-1) \+?\d+(?= )", r"\1 B", line)
    # The TCP log of an HTTP proxy: bytes of an answer in our own words.
    line = re.sub(r"(<STATS>|<NOSRV>)( (?:-1/|N/)+N) [1-9]\d* ", r"\1\2 B ", line)
    line = re.sub(r"(Connect from )([\d.]+):(?:\d+|MINE)", r"\1\2:P", line)
    return re.sub(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|\d{10,}|[0-9A-F]{8}:[0-9A-F]{4}_\w+:\w+_\w+:\w+", "ID", line)


BUILT_IN = re.compile(r"^(HTTP/1\.[01] [45]\d\d [^\r]*\r\n)(.*?\r\n\r\n)(<html><body><h1>.*)$", re.S)


def plain_answer(text):
    if not isinstance(text, str):
        return text
    text = re.sub(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}", "ID", text)
    m = BUILT_IN.match(text)
    if m:
        end = "[end]" if text.endswith("[end]") else ""
        return m[1] + re.sub(r"(?i)(content-length: )\d+", r"\1N", m[2]) + "[built-in]" + end
    # The same without its page, as an answer to HEAD.
    if re.match(r"HTTP/1\.[01] [45]\d\d ", text) and "cache-control: no-cache\r\ncontent-type: text/html" in text and text.endswith("\r\n\r\n"):
        return re.sub(r"(?i)(content-length: )\d+", r"\1N", text)
    if "# pxname,svname" in text or "Statistics Report" in text or "<title>" in text:
        return re.sub(r"(?i)(content-length: )\d+", r"\1N", text.split("\r\n\r\n")[0]) + "[statistics]"
    return text


def differences(a, b):
    """What differs between what two programs showed, as lines."""
    if "start" in a or "start" in b:
        return [] if a.get("start", [""])[0] == b.get("start", [""])[0] else [f"start: {a.get('start')} | {b.get('start')}"]
    out = []
    for (port, message, x), (_, _, y) in zip(a["answers"], b["answers"]):
        x, y = [plain_answer(t) for t in x], [plain_answer(t) for t in y]
        if x != y:
            out += [f"port {port}: {message!r:.230}", f"  - {x!r:.600}", f"  + {y!r:.600}"]
    for n in sorted(set(a["origin"]) | set(b["origin"])):
        x, y = a["origin"].get(n), b["origin"].get(n)
        x, y = [[re.sub(rb"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}", b"ID", m) for m in l or []] for l in (x, y)]
        if x != y:
            out += [f"origin, request {n}:", f"  - {x!r:.700}", f"  + {y!r:.700}"]
    traffic = lambda logs: [masked(l) for l in logs if not re.search(r"Server \S+ is |has no server available|started\.|Stopping|stopped|Health check", l)]
    for l in difflib.unified_diff(traffic(a["logs"]), traffic(b["logs"]), lineterm="", n=0):
        if l[:3] not in ("---", "+++") and l[:2] != "@@":
            out.append(f"log: {l:.400}")
    for row in a["stat"].keys() | b["stat"].keys():
        x, y = a["stat"].get(row, {}), b["stat"].get(row, {})
        odd = {k: (x.get(k), y.get(k)) for k in x.keys() | y.keys() if x.get(k) != y.get(k)}
        if odd:
            out.append(f"stat {row}: {odd}")
    return out


def compare(oracle, program, path, taken):
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as work:
        prepared = Prepared(text, work, taken)
        with open(os.path.join(work, "c"), "w") as f:
            f.write(prepared.text)
        for p in (oracle, program):
            checked = subprocess.run([p, "-c", "-q", "-f", os.path.join(work, "c")], stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
            if checked.returncode:
                why = re.findall(r"\[ALERT\][^\n]*", checked.stderr.decode("latin-1"))
                return f"skip  {os.path.basename(path)}: {os.path.basename(p)} refuses it: {(why or ['?'])[0][:200]}", []
        messages = requests(text)[:MAX_REQUESTS]
        a, b = run(oracle, prepared, work, messages), run(program, prepared, work, messages)
        found = differences(a, b)
        names = {prepared.origin: "ORIGIN", prepared.log: "LOG"}
        names.update({port: f"PORT{i}" for i, (port, _) in enumerate(prepared.ports)})
        for port, name in names.items():
            found = [l.replace(str(port), name) for l in found]
        return f"{'same' if not found else 'DIFF'}  {os.path.basename(path)}", found


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    oracle, program, folder, *patterns = sys.argv[1:]
    files = [f for f in sorted(os.listdir(folder)) if not patterns or any(p in f for p in patterns)]
    taken, failed = set(), False
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "4"))) as pool:
        jobs = [pool.submit(compare, oracle, program, os.path.join(folder, f), taken) for f in files]
        for job in jobs:
            try:
                verdict, found = job.result()
            except Exception as e:  # one strange file must not hide the others
                verdict, found = f"skip  {e!r}", []
            failed = failed or bool(found)
            print(verdict, *[f"    {l}" for l in found], sep="\n", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
