#!/usr/bin/env python3
"""Broken and odd messages, byte by byte: what two programs make of them.

    frames.py --binary target/quick/harrier                 compare with the recorded answers (answers.json)
    frames.py --binary HARRIER --oracle HAPROXY             compare with a program that is at hand
    frames.py --record --oracle HAPROXY                     ask the oracle and write answers.json
    frames.py --oracle HAPROXY --ask --only REGEX           show what a program answers

cases.py makes them: frames that a client of HTTP/2 sends, frames that a server of HTTP/2 sends, and raw requests and responses of
HTTP/1. Compared is what the client and the origin get, how their connections end, the log lines and every counter that moves.
Differences that are meant stand in known.txt with their reason; a known difference that has gone is a failure.
"""
import os, re, socket, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(HERE, "..", "program")]
import cases, http2, net

CONFIG = """global
 nbthread 1
 stats socket {d}/admin level admin
 log {d}/log local0
defaults
 mode http
 log global
 timeout client 5s
 timeout http-request 5s
 timeout connect 1s
 timeout server 5s
 log-format "%ft %b/%s %ST %U %B %ts %{{+Q}}r fe=%[fc_err_name] gl=%[fc_glitches]/%[bc_glitches] be=%[bc_err_name]"
 error-log-format "ERROR %ft %b/%s %ST %ts %{{+Q}}r"
frontend two
 bind unix@{d}/two proto h2
 use_backend framed if {{ path_beg /framed }}
 use_backend kept if {{ path_beg /kept }}
 default_backend plain
frontend one
 bind unix@{d}/one
 use_backend framed if {{ path_beg /framed }}
 use_backend kept if {{ path_beg /kept }}
 use_backend raw if {{ path_beg /raw }}
 default_backend plain
backend plain
 server s unix@{d}/plain pool-max-conn 0
backend framed
 server s unix@{d}/framed proto h2 pool-max-conn 0
backend kept
 http-reuse always
 server s unix@{d}/framed proto h2
backend raw
 server s unix@{d}/raw pool-max-conn 0
"""
FIGURES = re.compile("h[12]_(?!open)|ereq|dreq|eresp|econ|hrsp_|_abrt|wretr|wredis|req_tot|stot|conn_tot|dresp")
NAMES = ["DATA", "HEADERS", "PRIORITY", "RST", "SETTINGS", "PUSH", "PING", "GOAWAY", "WINDOW", "CONTINUATION"]


AGAIN = "a reset once more"


def outline(data, server=False):
    """Frames in words. Windows are opened when each program thinks fit, and behind a GOAWAY of an error it does not matter what follows.
    Heads are told with their fields, as each program compresses them its own way. What a server gets is told without farewells: a GOAWAY
    before an idle connection is closed, which HAProxy closes without a word, and the last stream of a server that may open none."""
    out, failed, reset, decoder = [], False, set(), http2.Decoder()
    while len(data) >= 9:
        size, kind, flags, stream = int.from_bytes(data[:3], "big"), data[3], data[4], int.from_bytes(data[5:9], "big")
        payload, data = data[9:9 + size], data[9 + size:]
        text = f"{NAMES[kind] if kind < 10 else kind}/{stream}"
        number = lambda at: int.from_bytes(payload[at:at + 4], "big")
        if kind == 7 and server:
            if not number(4):
                continue
            text += f" code {number(4)}"
        elif kind == 7:
            text += f" last {number(0)} code {number(4)}"
        elif kind == 3 and stream in reset:
            text = AGAIN
        elif kind == 3:
            text += f" code {number(0)}"
            reset.add(stream)
        elif kind == 1:
            text += " " + ", ".join(sorted("=".join(pair) for pair in decoder.decode(payload)))
        elif kind == 0 and server and (before := [line for line in out if re.fullmatch(f"DATA/{stream} \\d+", line)]):
            # Into how many frames data are cut is each program's choice.
            out.remove(before[0])
            text = f"DATA/{stream} {int(before[0].split()[1]) + size}"
        elif kind == 0:
            text += f" {size}" if size else ""
        if kind in (0, 1) and flags & 1:
            text += " end"
        if kind in (4, 6) and flags & 1:
            text += " ack"
        if kind == 8 or failed and kind == 3 or text.startswith("DATA/") and not size and out and out[-1].startswith(f"DATA/{stream} "):
            # An end that follows its data at once may come with them.
            if kind == 0 and flags & 1:
                out[-1] += " end"
            continue
        failed |= kind == 7 and number(4) != 0
        out.append(text)
    return out


def ordered(data):
    """Frames by their streams."""
    frames = []
    while len(data) >= 9:
        end = 9 + int.from_bytes(data[:3], "big")
        frames.append(data[:end])
        data = data[end:]
    return b"".join(sorted(frames, key=lambda frame: frame[5:9]))


def parted(lines):
    """Without the resets at the end, which HAProxy leaves out before it drops a connection with its streams."""
    while lines and re.fullmatch(r"RST/\d+ code 8", lines[-1]):
        lines.pop()
    return lines


def message(data):
    """A response of HTTP/1: its head, and how long what follows is."""
    head, found, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not found:
        return lines
    # Each program says in words of its own what is wrong.
    body = re.sub(rb"(<h1>.*</h1>\n).*\n", rb"\1", body)
    ours = body in (b"", b"hello") or not lines[0].split(" ")[1:2] == ["200"]
    return [lines[0], *sorted(line for line in lines[1:] if not line.startswith("date:"))] + ([f"{len(body)} bytes"] if ours else [body.decode("latin-1")])


class Origin:
    """A server that does what the case at hand says."""

    def __init__(self, path, kind, patience):
        self.kind, self.patience, self.script, self.got, self.end = kind, patience, [], b"", ""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        conn.settimeout(2)
        try:
            getattr(self, self.kind)(conn)
        except (OSError, ValueError):
            pass
        conn.close()

    def plain(self, conn):
        """Answers whole requests, at leisure those of /slow."""
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                data += self.more(conn)
            head, data = data.split(b"\r\n\r\n", 1)
            found = re.search(rb"content-length: *(\d+)", head, re.I)
            while len(data) < int(found.group(1)) if found else False:
                data += self.more(conn)
            data = data[int(found.group(1)) if found else 0:]
            if b"chunked" in head.lower():
                while b"0\r\n\r\n" not in data and not re.search(rb"\r\n0\r\n.*\r\n\r\n", data, re.S):
                    data += self.more(conn)
                data = b""
            self.got += head + b"\r\n"
            if b"/slow" in head:
                time.sleep(0.32 * self.patience)
            conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

    def more(self, conn):
        data = conn.recv(65536)
        if not data:
            raise ValueError
        return data

    def framed(self, conn):
        """Waits for a request of HTTP/2, then plays the script."""
        while "now" not in self.script and not any(text.startswith("HEADERS") for text in outline(self.got.split(cases.PREFACE)[-1])):
            self.got += self.more(conn)
        self.play(conn)

    def frames(self):
        return [line for part in self.got.split(cases.PREFACE)[1:] for line in outline(part, True)]

    def raw(self, conn):
        while b"\r\n\r\n" not in self.got:
            self.got += self.more(conn)
        self.play(conn)

    def play(self, conn):
        for part in cases.joined(self.script):
            if part is None:
                time.sleep(0.1 * self.patience)
            elif part == "shut":
                conn.shutdown(socket.SHUT_WR)
            elif part == "close":
                return
            elif part == "now":
                pass
            elif isinstance(part, tuple):
                # Until so many frames like this one have come.
                while sum(re.match(part[0] + "( |$)", text) is not None for text in self.frames()) < part[1]:
                    self.got += self.more(conn)
            else:
                conn.sendall(part)
        try:
            while True:
                self.got += self.more(conn)
        except ValueError:
            self.end = "closed"
        except ConnectionResetError:
            self.end = "reset"


class Program(net.Program):
    def __init__(self, binary, patience, _names):
        super().__init__(binary, patience)
        self.figures = self.read_figures(FIGURES)

    def configuration(self):
        self.origins = {kind: Origin(f"{self.dir}/{kind}", kind, self.patience) for kind in ("plain", "framed", "raw")}
        return CONFIG.format(d=self.dir)

    def run(self, name):
        kind, parts, script = (*cases.CASES[name], [])[:3]
        for origin in self.origins.values():
            origin.script, origin.got, origin.end = [], b"", ""
        conn = socket.socket(socket.AF_UNIX)
        conn.settimeout(5)
        conn.connect(self.dir + ("/two" if kind == "h2" else "/one"))
        self.origins["framed"].script = script
        self.got, self.end = b"", "open"
        if kind in ("framed", "raw"):
            self.origins[kind].script = parts
            script = parts
            parts = [b"%s /%s HTTP/1.1\r\nhost: a\r\n\r\n" % (cases.METHOD.get(name, b"GET"), kind.encode())]
        for part in cases.joined(parts):
            if part is None:
                self.listen(conn, 0.15)
            elif part == "wait":
                self.listen(conn, 1.5)
            elif part == "shut":
                self.quietly(lambda: conn.shutdown(socket.SHUT_WR))
            else:
                self.quietly(lambda: conn.sendall(part))
        self.listen(conn, 0.5)
        conn.close()
        lines = self.lines(0.12 * self.patience)
        figures = self.read_figures(FIGURES)
        moved = {name: value - self.figures.get(name, 0) for name, value in figures.items() if value != self.figures.get(name, 0)}
        self.figures = figures
        if script and kind == "one" and (len(cases.joined(parts)) > 1 or len(parts[0]) > 15000):
            # HAProxy counts more than came where a body comes in pieces.
            moved.pop("one/FRONTEND h1_bytes_in", 0)
        origin = self.origins["raw" if kind == "raw" else "framed" if script else "plain"]
        if origin.kind == "framed" and kind == "h2":
            # Which of two streams is answered first is a matter of time.
            self.got = ordered(self.got)
        seen = parted(origin.frames()) if origin.kind == "framed" else origin.got.decode("latin-1").split("\r\n")
        return {"client": outline(self.got) if kind == "h2" else message(self.got), "end": self.end, "log": sorted(lines), "moved": moved,
                "origin": [re.sub("(?i)(sec-websocket-key: ).*", r"\1KEY", line) for line in seen], "origin end": origin.end}

    def listen(self, conn, seconds):
        """Takes what comes until it is quiet."""
        deadline = time.monotonic() + seconds * self.patience
        while self.end == "open" and (left := deadline - time.monotonic()) > 0:
            if not net.readable(conn, left):
                return
            try:
                data = conn.recv(65536)
                self.got += data
                if not data:
                    self.end = "closed"
            except OSError:
                self.end = "reset"

    @staticmethod
    def compared(one, other):
        """HAProxy answers frames of a server that come behind its own reset by another one, and counts them; RFC 9113 section 5.1 has them
        ignored. Whether such a case differs otherwise is what counts."""
        late = [sum(answer.get(side, []).count(AGAIN) for side in ("client", "origin")) for answer in (one, other)]
        if not any(late):
            return one
        moved = {name: value for name, value in one["moved"].items() if not re.search("h2_(data|headers)_rcvd", name)}
        for name in moved:
            moved[name] -= late[0] if name.endswith("h2_rst_stream_resp") else 0
        return {**one, "moved": {name: value for name, value in moved.items() if value}, **{side: [line for line in one[side] if line != AGAIN] for side in ("client", "origin")}}


if __name__ == "__main__":
    sys.exit(net.main(Program, cases.CASES, HERE))
