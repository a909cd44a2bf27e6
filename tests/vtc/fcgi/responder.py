"""A responder of FastCGI for tests, at FOLDER/app.sock.

    responder.py FOLDER [told]     goes on in the background until the folder is gone, or for a minute; `told`: it
                                   tells its limits when it is asked (ten requests, on one connection)
    responder.py FOLDER wait REGEX [N]
                                   waits until FOLDER/said has N lines (1) that match the expression from their beginning

What it is asked is noted in FOLDER/said, a line each: `CONNECTION open`, `CONNECTION begin ID keep|close`, `CONNECTION
body ID BYTES`, `CONNECTION abort ID`, `CONNECTION values`, `CONNECTION closed`. The query says how a request is answered;
usually with all parameters, a line each, when its body is there.
"""
import os, re, socket, struct, sys, threading, time

FIELDS = b"Content-Type: text/plain\r\n\r\n"


def record(kind, number, content=b"", padding=0):
    return struct.pack(">BBHHBB", 1, kind, number, len(content), padding, 0) + content + b"?" * padding


def ended(number, status=0):
    return record(3, number, struct.pack(">IB3x", 0, status))


def exactly(line, count):
    got = b""
    while len(got) < count:
        more = line.recv(count - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def read(line):
    _, kind, number, length, padding, _ = struct.unpack(">BBHHBB", exactly(line, 8))
    content = exactly(line, length)
    exactly(line, padding)
    return kind, number, content


def pairs(data):
    at, found = 0, []
    while at < len(data):
        lengths = []
        for _ in range(2):
            length = data[at]
            if length < 128:
                at += 1
            else:
                length = struct.unpack(">I", data[at:at + 4])[0] & 0x7fffffff
                at += 4
            lengths.append(length)
        middle, end = at + lengths[0], at + sum(lengths)
        found.append((data[at:middle].decode("latin1"), data[middle:end].decode("latin1")))
        at = end
    return found


class Connection:
    def __init__(self, folder, line, index, told):
        self.line, self.index, self.told = line, index, told
        self.said = open(folder + "/said", "a", buffering=1)
        self.params, self.bodies, self.lock = {}, {}, threading.Lock()

    def note(self, text):
        self.said.write(f"{self.index} {text}\n")

    def send(self, *records):
        with self.lock:
            self.line.sendall(b"".join(records))

    def out(self, number, content):
        """A whole response at once."""
        self.send(record(6, number, content, 3), record(6, number), ended(number))

    def serve(self):
        self.note("open")
        try:
            while True:
                self.take(*read(self.line))
        except (EOFError, OSError):
            self.note("closed")

    def take(self, kind, number, content):
        if kind == 1:
            self.note(f"begin {number} {'keep' if content[2] else 'close'}")
            self.params[number], self.bodies[number] = b"", 0
        elif kind == 2:
            self.note(f"abort {number}")
            self.send(ended(number))
        elif kind == 4 and content:
            self.params[number] += content
        elif kind == 4:
            plan = dict(pairs(self.params[number])).get("QUERY_STRING", "")
            if plan.startswith("early"):
                self.answer(number, plan)
        elif kind == 5 and content:
            self.bodies[number] += len(content)
        elif kind == 5:
            self.note(f"body {number} {self.bodies[number]}")
            plan = dict(pairs(self.params[number])).get("QUERY_STRING", "")
            if not plan.startswith("early"):
                threading.Thread(target=self.answer, args=(number, plan), daemon=True).start()
        elif kind == 9:
            self.note("values")
            if self.told:
                self.send(record(10, 0, b"\x0f\x01FCGI_MPXS_CONNS1\x0d\x02FCGI_MAX_REQS10", 5))

    def close(self):
        # A thread waits in recv: only this ends it.
        self.line.shutdown(socket.SHUT_RDWR)

    def answer(self, number, plan):
        try:
            self.planned(number, plan)
        except OSError:
            pass

    def planned(self, number, plan):
        whole = {
            "status": b"Status: 404 Gone fishing\r\nX-A: b\r\n\r\nbody",
            "code": b"Status: 404\r\n\r\nbody",
            "location": b"Location: /elsewhere\r\n\r\n",
            "made": b"Location: /elsewhere\r\nStatus: 201 Made\r\n\r\n",
            "204": b"Status: 204 No\r\n\r\n",
            "304": b"Status: 304 No\r\nETag: \"a\"\r\n\r\n",
            "head": FIELDS,
            "lines": b"Content-Type: text/plain\nX-A: b\n\nbody",
            "length": b"Content-Length: 4\r\n\r\nbody",
            "wide": FIELDS + b"x" * 14000,
            "wider": FIELDS + b"x" * 17000,
            "chunks": b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "short": b"Content-Length: 8\r\n\r\nbody",
            "100": b"Status: 100 Go on\r\n\r\n",
            "http": b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nbody",
            "early": FIELDS + b"early",
        }
        if plan in whole:
            self.out(number, whole[plan])
        elif plan == "refused":
            self.send(ended(number, 2))
        elif plan == "nothing":
            self.close()
        elif plan == "cut":
            self.send(record(6, number, FIELDS + b"some"))
            self.close()
        elif plan == "halfhead":
            self.send(record(6, number, b"Content-Type: te"), record(6, number), ended(number))
        elif plan == "endless":
            while True:
                self.send(record(6, number, b"x" * 1000))
        elif plan == "junk":
            self.send(record(99, 0, b"junk"))
        elif plan == "errors":
            self.send(record(7, number, b"first\nline", 6), record(6, number, FIELDS + b"body"),
                      record(7, number, b"second"), record(7, number), record(6, number), ended(number))
        elif plan == "big":
            self.send(record(6, number, FIELDS))
            for _ in range(12):
                self.send(record(6, number, b"x" * 65535, 1))
            self.send(record(6, number), ended(number))
        elif plan.startswith("held"):
            # Until the file is there that is named so.
            for _ in range(1000):
                if os.path.exists(plan):
                    break
                time.sleep(0.01)
            self.out(number, FIELDS + plan.encode())
        elif plan == "begun":
            self.send(record(6, number, FIELDS + b"some"))
        elif plan != "hang":
            body = "".join(f"{name}={value}\n" for name, value in pairs(self.params[number])).encode()
            self.send(record(6, number, FIELDS + body), record(6, number), ended(number))


def wait(folder, text, count):
    for _ in range(2000):
        try:
            lines = open(folder + "/said").read().splitlines()
        except FileNotFoundError:
            lines = []
        if sum(bool(re.match(text, line)) for line in lines) >= count:
            return
        time.sleep(0.01)
    sys.exit(f"no '{text}' in {lines}")


def main():
    folder = sys.argv[1]
    if sys.argv[2:3] == ["wait"]:
        return wait(folder, sys.argv[3], int((sys.argv + ["", ""])[4] or 1))
    os.chdir(folder)
    door = socket.socket(socket.AF_UNIX)
    door.bind("app.sock")
    door.listen(20)
    if os.fork():
        return
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    door.settimeout(1)
    started, index = time.time(), 0
    while os.path.exists(folder) and time.time() < started + 60:
        try:
            line, _ = door.accept()
        except TimeoutError:
            continue
        line.settimeout(None)
        index += 1
        connection = Connection(folder, line, index, "told" in sys.argv)
        threading.Thread(target=connection.serve, daemon=True).start()


main()
