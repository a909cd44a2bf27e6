"""Clients and the origin of rules.py: requests of every kind, and what an origin does with them."""
import os, socket, struct, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "program"))
import http2

PATH = "/a/./b/../c//d%2fe%41?z=1&a=2"
FIELDS = ["x-one: first", "x-two: b, c", "x-two: d", "cookie: a=1", "cookie: b=2", "user-agent: me"]


def request(method="GET", target=PATH, version="1.1", fields=(), body=b""):
    lines = [f"{method} {target} HTTP/{version}", "host: www.example", *FIELDS, *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


UPGRADE = ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="]
POST = request("POST", fields=["content-length: 5"])
# What is sent in HTTP/1: bytes; seconds to wait; the method of an answer to wait for.
ONE = {
    "get": [request(), "GET"],
    "get10": [request(version="1.0"), "GET"],
    "head": [request("HEAD"), "HEAD"],
    "post": [POST + b"12345", "POST"],
    "chunked": [request("POST", fields=["transfer-encoding: chunked"], body=b"5\r\n12345\r\n0\r\n\r\n"), "POST"],
    "expect": [request("POST", fields=["content-length: 5", "expect: 100-continue"]), 0.05, b"12345", "POST"],
    "connect": [request("CONNECT", "www.example:80"), "CONNECT"],
    "options": [request("OPTIONS", "*"), "OPTIONS"],
    "websocket": [request(fields=UPGRADE), "GET"],
    "two": [request(), "GET", request(target="/second?y"), "GET"],
    "pipelined": [request() + request("HEAD", "/second") + request(target="/third"), "GET", "HEAD", "GET"],
    "late": [POST, 0.06, b"12345", "POST"],
    "bad": [b"GET /\x01 HTTP/1.1\r\nhost: a\r\n\r\n", "GET"],
    "slow": [b"GET / HTTP/1.1\r\nhost: ", "GET"],
}


def head2(stream, method, end, path=PATH, fields=()):
    pairs = [(":method", method)]
    pairs += [(":authority", "www.example:80")] if method == "CONNECT" else [(":scheme", "http"), (":authority", "www.example"), (":path", path)]
    pairs += [tuple(field.split(": ", 1)) for field in (*FIELDS, *fields)]
    return http2.frame(http2.HEADERS, 4 | end, stream, http2.encode(pairs))


BODY2 = http2.frame(http2.DATA, 1, 1, b"12345")
# What is sent in HTTP/2, and how many streams are to end.
TWO = {
    "h2-get": ([head2(1, "GET", 1)], 1),
    "h2-head": ([head2(1, "HEAD", 1)], 1),
    "h2-post": ([head2(1, "POST", 0, fields=["content-length: 5"]) + BODY2], 1),
    "h2-late": ([head2(1, "POST", 0), 0.06, BODY2], 1),
    "h2-connect": ([head2(1, "CONNECT", 0), 0.03, BODY2], 1),
    "h2-two": ([head2(1, "GET", 1) + head2(3, "POST", 0, "/second") + http2.frame(http2.DATA, 1, 3, b"abc")], 2),
}
TUNNEL = ("connect", "websocket")
# Whose data come on their own: the requests' behind their head, the origins' in pieces.
SPLIT, APART = ("expect", "late", "h2-late", "h2-connect", *TUNNEL), ("reset", "cut", "chunked", "close")


def fields_of(head):
    return [line.split(":", 1) for line in head.decode("latin-1").lower().split("\r\n")[1:] if ":" in line]


def until(data, at, method):
    """Where the message that begins at `at` ends: None if it is not all there, -1 if its end is that of the connection. Also its head."""
    stop = data.find(b"\r\n\r\n", at)
    if stop < 0:
        return None, b""
    head, at = data[at:stop], stop + 4
    status = head[9:12]
    if status[:1] == b"1" and status != b"101":
        return until(data, at, method)
    fields = {name: value.strip() for name, value in fields_of(head)}
    if status == b"101" or method == "CONNECT" and status[:1] == b"2":
        return -1, head
    if method == "HEAD" or status in (b"204", b"304"):
        return at, head
    if "chunked" in fields.get("transfer-encoding", ""):
        stop = data.find(b"0\r\n\r\n", at)
        return (stop + 5 if stop >= 0 else None), head
    if fields.get("content-length", "").isdigit():
        stop = at + int(fields["content-length"])
        return (stop if len(data) >= stop else None), head
    return -1, head


class Client:
    def __init__(self, port, patience, most=0.5):
        # Without a timeout, with which a connection that is reset as soon as it is there was none.
        self.conn = socket.create_connection(("127.0.0.1", port))
        self.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.patience, self.got, self.end = self.conn.getsockname()[1], patience, b"", "open"
        # How long an answer is awaited.
        self.most = most

    def send(self, data):
        try:
            self.conn.settimeout(5)
            self.conn.sendall(data)
        except OSError:
            pass

    def listen(self, seconds, enough=lambda: False):
        deadline = time.monotonic() + seconds * self.patience
        while self.end == "open" and not enough() and (left := deadline - time.monotonic()) > 0:
            self.conn.settimeout(left)
            try:
                data = self.conn.recv(65536)
            except TimeoutError:
                return
            except OSError:
                self.end = "reset"
                return
            self.got += data
            if not data:
                self.end = "closed"

    def one(self, kind):
        at = 0
        for part in ONE[kind]:
            if isinstance(part, bytes):
                if self.end == "open":
                    self.send(part)
            elif isinstance(part, float):
                self.listen(part)
            elif at is not None and at >= 0:
                self.listen(self.most, lambda: until(self.got, at, part)[0] is not None)
                at, head = until(self.got, at, part)
                if at == -1 and kind in TUNNEL:
                    self.send(b"ping")
                last = not head or at == -1 or b"HTTP/1.0" in head or b"connection: close" in head.lower()
                if last:
                    break
        self.listen(self.most if at == -1 or at is not None and last else 0.02)
        return self.got.decode("latin-1").split("\r\n")

    def two(self, kind):
        self.texts, self.decoder, self.over, self.at, self.bodies = [], http2.Decoder(), set(), 0, {}
        parts, streams = TWO[kind]
        self.send(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))
        for part in parts:
            if isinstance(part, float):
                self.listen(part)
            else:
                self.send(part)
        self.listen(self.most, lambda: self.frames() >= streams)
        self.listen(0.02)
        self.frames()
        return self.texts + [f"{stream}: body {bytes(body)!r}" for stream, body in self.bodies.items()]

    def frames(self):
        """Takes the frames that came; how many streams are over."""
        while len(self.got) - self.at >= 9:
            size, kind, flags = int.from_bytes(self.got[self.at:self.at + 3], "big"), self.got[self.at + 3], self.got[self.at + 4]
            stream, start = int.from_bytes(self.got[self.at + 5:self.at + 9], "big"), self.at + 9
            if len(self.got) < start + size:
                break
            payload, self.at = self.got[start:start + size], start + size
            if kind == http2.SETTINGS and not flags & 1:
                self.send(http2.frame(http2.SETTINGS, 1, 0))
            elif kind == http2.HEADERS:
                self.texts.append(f"{stream}: " + "\n".join(f"{name}: {value}" for name, value in self.decoder.decode(payload)))
            elif kind == http2.DATA:
                self.bodies.setdefault(stream, bytearray()).extend(payload)
            elif kind == http2.RST:
                self.texts.append(f"{stream}: reset {int.from_bytes(payload, 'big')}")
                self.over.add(stream)
            elif kind == http2.GOAWAY:
                self.texts.append(f"goaway last {int.from_bytes(payload[:4], 'big')} code {int.from_bytes(payload[4:8], 'big')}")
            if kind in (http2.DATA, http2.HEADERS) and flags & 1:
                self.texts.append(f"{stream}: end")
                self.over.add(stream)
        return len(self.over) if self.end == "open" else 99

    def close(self):
        self.conn.close()


HEAD = "x-one: first\r\nx-two: b, c\r\nx-two: d\r\nset-cookie: c=1; path=/\r\ncache-control: max-age=3600, public\r\ncontent-type: text/plain\r\n"
ANSWERS = {
    "plain": ("200 OK", "content-length: 5\r\n", "hello"),
    "chunked": ("200 OK", "transfer-encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    "close": ("200 OK", "connection: close\r\n", "hello"),
    "204": ("204 No Content", "", ""),
    "304": ("304 Not Modified", "etag: \"e\"\r\n", ""),
    "103": ("200 OK", "content-length: 5\r\n", "hello"),
    "500": ("500 Oops", "content-length: 4\r\n", "oops"),
    "reset": ("200 OK", "content-length: 100\r\n", "0123456789"),
    "cut": ("200 OK", "content-length: 100\r\n", "0123456789"),
}


class Case:
    """What the origin does in a case (`manner`), and what each of its connections saw."""

    def __init__(self, manner):
        self.manner, self.seen, self.busy = manner, [], 0


class Origin:
    """Does what the case at hand says, and keeps what it saw of each connection."""

    def __init__(self):
        self.case, self.socket, self.lock = Case("plain"), None, threading.Condition()
        # Keeps the port while the origin refuses connections: it is one that any connection of the machine may get as its own, and then
        # nobody can listen there for as long as that lasts, nor for the minute behind.
        self.place = self.bound(0)
        self.port = self.place.getsockname()[1]
        self.listen()

    def bound(self, port):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        return one

    def listen(self):
        listener = self.bound(self.port)
        listener.listen(64)
        self.socket = listener
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def prepare(self, manner):
        if manner == "refuse" and self.socket:
            listener, self.socket = self.socket, None
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        elif manner != "refuse" and not self.socket:
            self.listen()
        with self.lock:
            # What is left of the case before counts there, and nobody waits for it any more.
            self.case = Case(manner)

    def accept(self, listener):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                if self.socket is not listener:
                    return
                time.sleep(0.01)
                continue
            with self.lock:
                case, seen = self.case, []
                case.busy += 1
                case.seen.append(seen)
            threading.Thread(target=self.serve, args=(conn, seen, case), daemon=True).start()

    def rest(self, seconds, made):
        """Waits until all connections, which are so many, have come and ended, and tells what they saw."""
        with self.lock:
            case = self.case
            self.lock.wait_for(lambda: not case.busy and len(case.seen) >= made, seconds)
            return [list(one) for one in case.seen]

    def serve(self, conn, seen, case):
        try:
            self.converse(conn, seen, case.manner)
        finally:
            conn.close()
            with self.lock:
                case.busy -= 1
                self.lock.notify_all()

    def converse(self, conn, seen, manner):
        self_closed = False
        try:
            conn.settimeout(3)
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            data = b""
            while not self_closed:
                data, self_closed = self.exchange(conn, seen, manner, data)
        except EOFError:
            seen.append("end")
        except TimeoutError:
            seen.append("forgotten")
        except (OSError, ValueError):
            seen.append("end")

    def more(self, conn):
        data = conn.recv(65536)
        if not data:
            raise EOFError
        return data

    def exchange(self, conn, seen, manner, data):
        while b"\r\n\r\n" not in data:
            data += self.more(conn)
        head, data = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method = lines[0].split(" ")[0]
        seen.append([lines[0], *sorted(lines[1:], key=lambda line: line.split(":")[0].lower())])
        fields = {name: value.strip() for name, value in fields_of(head)}
        if fields.get("expect"):
            conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b""
        try:
            if "chunked" in fields.get("transfer-encoding", ""):
                while b"0\r\n\r\n" not in data:
                    data += self.more(conn)
                body, data = data.split(b"0\r\n\r\n", 1)
                body += b"0"
            elif method != "CONNECT":
                size = int(fields.get("content-length", "0"))
                while len(data) < size:
                    data += self.more(conn)
                body, data = data[:size], data[size:]
        finally:
            if body or data:
                seen.append("body " + (body or data).decode("latin-1"))
        tunnel = method == "CONNECT" or fields.get("upgrade") == "websocket"
        if tunnel and manner == "plain":
            first = b"HTTP/1.1 101 Switch\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
            conn.sendall((b"HTTP/1.1 200 OK\r\n" if method == "CONNECT" else first) + HEAD.encode() + b"\r\n")
            data = data or self.more(conn)
            seen.append("tunnel " + data.decode("latin-1"))
            conn.sendall(b"hello")
            return b"", True
        if manner not in ANSWERS:
            return b"", True
        status, length, text = ANSWERS[manner]
        if manner == "103":
            conn.sendall(b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n")
        conn.sendall(f"HTTP/1.1 {status}\r\n{length}{HEAD}\r\n{'' if method == 'HEAD' else text}".encode())
        if manner == "reset":
            # Not at the instant at which a timeout of 30 ms ends.
            time.sleep(0.06)
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return data, manner in ("close", "reset", "cut")
