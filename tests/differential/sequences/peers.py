"""Clients and servers of sequences.py.

A server answers its requests in the manners that it was given, one after the other, the last of them for ever. A manner is words:
a status (200 and "hello" unless one is given), `slow` (after 0.3 s), `late` (after 1 s), `close` (says it and closes), `shut` (closes
and does not say it), `chunks`, `until` (no length: until it closes), `early` (before the body of the request is read), `1.0`, `interim` (a 103
first), `NAME:VALUE` (a field); or `empty` (closes without an answer), `reset`, `silent`, `half` (of a body, then it closes),
`broken` (no HTTP), `raw:TEXT` (these bytes), `hello` (greets with the bytes and echoes), `echo`.
"""
import re, socket, ssl, struct, threading, time

SLOW, LATE_ANSWER = 0.3, 1.0
LINGER = struct.pack("ii", 1, 0)


def reset(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
    conn.close()


def unescape(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


class Source:
    """Reads from a connection in pieces."""

    def __init__(self, conn, seconds):
        self.conn, self.data, self.end, self.seconds = conn, b"", "", seconds

    def more(self, deadline=None):
        if self.end:
            return False
        self.conn.settimeout(max(0.001, deadline - time.monotonic()) if deadline else self.seconds)
        try:
            data = self.conn.recv(65536)
        except TimeoutError:
            return False
        except OSError:
            self.end = "reset"
            return False
        self.end = "" if data else "closed"
        self.data += data
        return bool(data)

    def until(self, mark, deadline=None):
        while mark not in self.data:
            if not self.more(deadline):
                return None
        at = self.data.index(mark) + len(mark)
        out, self.data = self.data[:at], self.data[at:]
        return out

    def exactly(self, length, deadline=None):
        while len(self.data) < length:
            if not self.more(deadline):
                break
        out, self.data = self.data[:length], self.data[length:]
        return out

    def body(self, head, deadline=None, until_end=False):
        """The body behind a head, and whether it is whole."""
        if re.search(rb"transfer-encoding: *chunked", head, re.I):
            out = b""
            while (line := self.until(b"\r\n", deadline)) is not None:
                size = int(line.strip() or b"0", 16)
                part = self.exactly(size + 2, deadline)
                out += part[:size]
                if len(part) < size + 2:
                    break
                if not size:
                    return out, True
            return out, False
        length = re.search(rb"content-length: *(\d+)", head, re.I)
        if length:
            out = self.exactly(int(length.group(1)), deadline)
            return out, len(out) == int(length.group(1))
        if until_end:
            while self.more(deadline):
                pass
            out, self.data = self.data, b""
            return out, bool(self.end)
        return b"", True


class Server:
    """A server of some name with a queue of manners; what it was asked, by connection, is told to `tell`."""

    def __init__(self, name, host, manners, tell, options=()):
        self.name, self.host, self.manners, self.tell, self.options = name, host, list(manners), tell, options
        self.lock, self.count, self.conns, self.thread = threading.Lock(), 0, [], None
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, 0))
        self.port = self.socket.getsockname()[1]
        self.refuses = self.manners == ["refuse"]
        if not self.refuses:
            self.socket.listen(64)

    def start(self):
        self.thread = threading.Thread(target=self.accept, daemon=True)
        if not self.refuses:
            self.thread.start()

    def set(self, manners):
        """From now on it answers in these manners."""
        with self.lock:
            self.manners = list(manners)
        refuses = self.manners == ["refuse"]
        if refuses and not self.refuses:
            self.stop_listening()
        elif self.refuses and not refuses:
            if self.thread.ident:
                self.socket = socket.socket()
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.bind((self.host, self.port))
            self.socket.listen(64)
            self.thread = threading.Thread(target=self.accept, daemon=True)
            self.thread.start()
        self.refuses = refuses

    def stop_listening(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def stop(self):
        self.stop_listening()
        with self.lock:
            conns = self.conns[:]
        for conn in conns:
            try:
                conn["conn"].shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def drop(self, how):
        """Ends its connections."""
        with self.lock:
            conns = [one for one in self.conns if not one["end"]]
        for one in conns:
            one["end"] = "dropped"
            try:
                if how == "reset":
                    one["conn"].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                one["conn"].shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self):
        listening = self.socket
        try:
            while True:
                conn, _ = listening.accept()
                one = {"conn": conn, "end": "", "number": None, "asked": 0}
                with self.lock:
                    self.conns.append(one)
                threading.Thread(target=self.serve, args=(one,), daemon=True).start()
        except OSError:
            pass

    def ends(self):
        """Of each connection that asked something, how often, and whether it is still there."""
        with self.lock:
            return [f"{self.name}#{one['number']} {one['asked']} {'ended' if one['end'] else 'open'}" for one in self.conns if one["number"] is not None and "quiet" not in self.options]

    def next_manner(self, one):
        with self.lock:
            if one["number"] is None:
                one["number"], self.count = self.count, self.count + 1
            one["asked"] += 1
            return self.manners.pop(0) if len(self.manners) > 1 else self.manners[0]

    def serve(self, one):
        conn = one["conn"]
        try:
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if "ssl" in self.options:
                one["conn"] = conn = self.options["ssl"].wrap_socket(conn, server_side=True)
            self.talk(one, Source(conn, 60))
        except (OSError, ValueError, ssl.SSLError):
            pass
        one["end"] = one["end"] or "ended"
        conn.close()

    def talk(self, one, source):
        conn = source.conn
        if self.manners[0].startswith("greet:"):
            self.converse(one, source)
            return
        if "proxy" in self.options:
            line = source.until(b"\r\n")
            if line is None:
                return
            self.tell(f"{self.name} {re.sub(rb'(?<= )[0-9]{4,5}', b'PORT', line).decode('latin-1').strip()}")
        while True:
            if not source.data and not source.more():
                one["end"] = one["end"] or source.end or "idle"
                return
            if "tcp" in self.options:
                self.converse(one, source)
                return
            head = source.until(b"\r\n\r\n")
            if head is None:
                if source.data:
                    self.tell(f"{self.name} half a request {source.data!r}")
                one["end"] = one["end"] or source.end
                return
            manner = self.next_manner(one).split(" ")
            tag = f"{self.name}#{one['number']}.{one['asked']}"
            body, complete = b"", True
            if "early" not in manner:
                body, complete = source.body(head)
            if "quiet" not in self.options:
                self.asked(tag, head, body, complete)
            if not complete or not self.answer(conn, head, manner, tag):
                one["end"] = one["end"] or source.end or "mine"
                return
            if "early" in manner:
                body, complete = source.body(head)
                self.asked(tag + " then", b"", body, complete)
                if not complete:
                    one["end"] = one["end"] or source.end
                    return

    def asked(self, tag, head, body, complete):
        lines = head.decode("latin-1").strip().split("\r\n")
        fields = [line for line in lines[1:] if not re.match("(?i)(host|content-length|transfer-encoding|x-client):?", line)]
        text = " | ".join([lines[0]] + sorted(fields)) + (f" + {len(body)}" if body else "")
        self.tell(f"{tag} {text}" + ("" if complete else " CUT"))

    def answer(self, conn, head, manner, tag):
        """Answers; whether the connection goes on."""
        first = manner[0]
        if first in ("empty", "reset"):
            time.sleep(0.02)
            if first == "reset":
                reset(conn)
            return False
        if first == "silent":
            Source(conn, 30).more()
            return False
        if first.startswith("raw:"):
            conn.sendall(unescape(" ".join(manner)[4:]))
            return False
        if "slow" in manner or "late" in manner:
            time.sleep(SLOW if "slow" in manner else LATE_ANSWER)
        if "interim" in manner:
            conn.sendall(b"HTTP/1.1 103 Early Hints\r\nx-early: 1\r\n\r\n")
        code = next((word for word in manner if word.isdigit()), "200")
        fields = [word.replace(":", ": ", 1).replace("_", " ") for word in manner if ":" in word]
        body = b"" if code in ("204", "304") or head.startswith(b"HEAD") else b"hello"
        lines = [f"HTTP/{'1.0' if '1.0' in manner else '1.1'} {code} X", f"x-by: {tag}"] + fields
        if "chunks" in manner:
            lines.append("transfer-encoding: chunked")
            body = b"5\r\nhello\r\n0\r\n\r\n"
        elif "until" not in manner and code not in ("204", "304"):
            lines.append("content-length: 5" if "half" not in manner else "content-length: 50")
        if "close" in manner:
            lines.append("connection: close")
        conn.sendall("\r\n".join(lines + ["", ""]).encode("latin-1") + body)
        if "pause" in manner:
            time.sleep(0.2)
        return not {"close", "shut", "until", "half", "1.0"} & set(manner)

    def converse(self, one, source):
        """What a server of TCP does."""
        conn, manner = source.conn, self.next_manner(one)
        tag = f"{self.name}#{one['number']}"
        if manner.startswith("greet:"):
            conn.sendall(unescape(manner[6:]))
            source.more()
        while True:
            if not source.data:
                if not source.more():
                    break
                continue
            data, source.data = source.data, b""
            if "quiet" not in self.options:
                self.tell(f"{tag} said {data!r}")
            if manner == "silent":
                continue
            if manner == "empty":
                break
            if manner == "reset":
                reset(conn)
                break
            if manner.startswith("raw:"):
                conn.sendall(unescape(manner[4:]))
            elif not manner.startswith("greet:"):
                conn.sendall(f"{tag}:".encode() + data)
        one["end"] = one["end"] or source.end or "mine"


class Client:
    """A client that sends requests one after the other."""

    def __init__(self, address, source=None):
        self.conn = socket.socket()
        if source:
            self.conn.bind((source, 0))
        self.conn.settimeout(5)
        self.conn.connect(address)
        self.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.source, self.methods = Source(self.conn, 3), []

    def send(self, words):
        """METHOD TARGET, then `1.0`, `close`, `N` (a body of so many bytes), `N/M` (N bytes of M), `chunked` (an unended body), NAME:VALUE."""
        method, target, version, fields, body = words[0], words[1], "1.1", ["host: a"], b""
        for word in words[2:]:
            if word == "1.0":
                version = "1.0"
            elif word == "close":
                fields.append("connection: close")
            elif re.fullmatch(r"\d+(/\d+)?", word):
                sent, _, length = word.partition("/")
                fields.append(f"content-length: {length or sent}")
                body = b"x" * int(sent)
            elif word == "chunked":
                fields.append("transfer-encoding: chunked")
                body = b"5\r\nhello\r\n"
            else:
                fields.append(word.replace(":", ": ", 1).replace("_", " "))
        self.methods.append(method)
        self.raw("\r\n".join([f"{method} {target} HTTP/{version}"] + fields + ["", ""]).encode("latin-1") + body)

    def raw(self, data):
        self.conn.settimeout(3)
        try:
            self.conn.sendall(data)
        except OSError:
            pass

    def receive(self, seconds=3):
        """The next response in short, with what came before it."""
        deadline, out, source = time.monotonic() + seconds, "", self.source
        method = self.methods.pop(0) if self.methods else "GET"
        while True:
            head = source.until(b"\r\n\r\n", deadline)
            if head is None:
                return out + (f"{source.data!r} " if source.data else "") + (source.end or "nothing")
            lines = head.decode("latin-1").strip().split("\r\n")
            code = lines[0].split(" ")[1]
            fields = sorted(line for line in lines[1:] if not re.match("(?i)(content-type|cache-control|date|content-length|transfer-encoding):", line))
            out += " | ".join([lines[0]] + fields)
            if code.startswith("1"):
                out += " ; "
                continue
            if method == "HEAD" or code in ("204", "304"):
                return out
            body, complete = source.body(head, deadline, True)
            if b"<html>" in body:
                body = b"PAGE"
            return out + f" + {body.decode('latin-1')}" + ("" if complete else " CUT") + (f" {source.end}" if source.end else "")

    def listen(self, seconds):
        """Whatever comes in so many seconds."""
        deadline = time.monotonic() + seconds
        while self.source.more(deadline) and time.monotonic() < deadline:
            pass
        out, self.source.data = self.source.data, b""
        # Each program says what is wrong in words of its own.
        text = re.sub(r"(?s)content-length: \d+\r\n(.*?)<html>.*</html>\n?", r"\1PAGE", out.decode("latin-1"))
        return f"{text!r} {self.source.end}"
