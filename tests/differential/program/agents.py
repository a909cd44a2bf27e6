"""Origins that speak neither HTTP nor anything in lines: FastCGI applications and SPOE agents. Each has `take(bytes)`, which
answers what is whole, and `lines`, what was asked.
"""
import re, socket, struct

import masks

# Types of FastCGI's records.
BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, VALUES, VALUES_RESULT = 1, 2, 3, 4, 5, 6, 7, 9, 10


def record(kind, number, content):
    """A record of FastCGI."""
    return struct.pack(">BBHHBB", 1, kind, number, len(content), 0, 0) + content


class FastCGI:
    """An application. How it answers a request is an operation `["fcgi", stdout, stderr, end]` of its script, `end` being "end", or
    "close" where it dies before."""

    def __init__(self, origin, link):
        self.origin, self.link, self.raw, self.lines, self.asked = origin, link, bytearray(), [], {}

    def take(self, data):
        self.raw += data
        while len(self.raw) >= 8:
            kind, number, size, padding = struct.unpack_from(">xBHHB", self.raw)
            if len(self.raw) < 8 + size + padding:
                return
            content = bytes(self.raw[8:8 + size])
            del self.raw[:8 + size + padding]
            self.record(kind, number, content)

    def record(self, kind, number, content):
        if kind == BEGIN:
            self.asked[number] = {"begin": content, PARAMS: bytearray(), STDIN: bytearray()}
        elif kind == VALUES:
            self.lines.append("get values " + " ".join(name for name, _ in pairs(content)))
            self.send(VALUES_RESULT, 0, packed([("FCGI_MPXS_CONNS", "0")]))
        elif kind == ABORT and self.asked.pop(number, None):
            self.lines.append("abort")
            self.send(END, number, bytes(8))
        elif kind in (PARAMS, STDIN) and number in self.asked:
            self.asked[number][kind] += content
            if kind == STDIN and not content:
                self.answer(number, self.asked.pop(number))

    def answer(self, number, request):
        role, flags = struct.unpack_from(">HB", request["begin"])
        self.lines.append(f"request role={role} keep={flags}")
        self.lines += sorted(f"  {name}={masks.escape(value.encode('latin-1'))}" for name, value in pairs(bytes(request[PARAMS])))
        if request[STDIN]:
            self.lines.append("  body " + self.origin.text(bytes(request[STDIN])))
        script = [op for op in self.origin.next_script() if op[0] == "fcgi"] or [["fcgi", f"Content-Type: text/plain\r\n\r\n{self.origin.name} fcgi", "", "end"]]
        _, out, err, end = script[0]
        if ("REQUEST_METHOD", "HEAD") in pairs(bytes(request[PARAMS])):
            # HAProxy takes a response to HEAD whose body comes along with its head for none.
            out = re.sub(r"(?s)(\r?\n\r?\n).*", r"\1", out)
        # One write: whether the end comes along with the content decides how a response is framed.
        said = b""
        for kind, text in ((STDERR, err), (STDOUT, out)):
            data = text.encode("latin-1")
            for at in range(0, len(data), 8000):
                said += record(kind, number, data[at:at + 8000])
        if end == "end":
            said += record(STDOUT, number, b"") + record(END, number, bytes(8))
        if said:
            self.link.send(said)
        if end != "end" or not flags:
            self.link.fin()

    def send(self, kind, number, content):
        self.link.send(record(kind, number, content))


def pairs(data):
    """Names and values of FastCGI."""
    out, at = [], 0
    while at < len(data):
        sizes = []
        for _ in range(2):
            size = data[at]
            if size > 127:
                size = struct.unpack_from(">I", data, at)[0] & 0x7fffffff
                at += 3
            sizes.append(size)
            at += 1
        name, value = data[at:at + sizes[0]], data[at + sizes[0]:at + sum(sizes)]
        out.append((name.decode("latin-1"), value.decode("latin-1")))
        at += sum(sizes)
    return out


def packed(values):
    """The same of short ones as bytes."""
    return b"".join(bytes([len(n), len(v)]) + n.encode() + v.encode() for n, v in values)


# Types of SPOP's frames.
HAPROXY_HELLO, DISCONNECT, NOTIFY, AGENT_HELLO, AGENT_DISCONNECT, ACK = 1, 2, 3, 101, 102, 103


class Agent:
    """An agent that sets variables to what it was told: `txn.MESSAGE_ARGUMENT`. What an argument named `do` says it does: `nothing`,
    `unset` (of `txn.told`), `close` (dies), `bye` (says goodbye), `junk`."""

    def __init__(self, origin, link):
        self.origin, self.link, self.raw, self.lines = origin, link, bytearray(), []

    def take(self, data):
        self.raw += data
        while len(self.raw) >= 4:
            size = struct.unpack_from(">I", self.raw)[0]
            if len(self.raw) < 4 + size:
                return
            frame = bytes(self.raw[4:4 + size])
            del self.raw[:4 + size]
            self.frame(frame)

    def frame(self, data):
        kind, at = data[0], 5
        stream, at = varint(data, at)
        number, at = varint(data, at)
        if kind == HAPROXY_HELLO:
            told = {}
            while at < len(data):
                name, at = text(data, at)
                told[name], at = value(data, at)
            self.lines.append("hello" + " healthcheck" * bool(told.get("healthcheck")))
            self.send(AGENT_HELLO, 0, 0, named("version", "2.0") + named("max-frame-size", 16380) + named("capabilities", "pipelining"))
        elif kind == NOTIFY:
            self.notified(data, at, stream, number)

    def notified(self, data, at, stream, number):
        actions, deed = b"", ""
        while at < len(data):
            message, at = text(data, at)
            count, at = data[at], at + 1
            line = f"notify {message}"
            for _ in range(count):
                name, at = text(data, at)
                start = at
                got, at = value(data, at)
                line += f" {name}={got!r}"
                deed = got if name == "do" and got else deed
                actions += b"\x01\x03\x02" + string(f"{message}_{name}") + data[start:at]
            self.lines.append(line)
        if deed == "close":
            return self.link.fin()
        if deed == "bye":
            self.send(AGENT_DISCONNECT, 0, 0, named("status-code", 0) + named("message", "bye"))
            return self.link.fin()
        if deed == "junk":
            return self.link.send(b"\0\0\0\x07junkjun")
        self.send(ACK, stream, number, b"" if deed == "nothing" else b"\x02\x02\x02" + string("told") if deed == "unset" else actions)

    def send(self, kind, stream, number, payload):
        frame = bytes([kind]) + b"\0\0\0\x01" + integer(stream) + integer(number) + payload
        self.link.send(struct.pack(">I", len(frame)) + frame)


def varint(data, at):
    number, at = data[at], at + 1
    if number < 240:
        return number, at
    shift = 4
    while True:
        byte, at = data[at], at + 1
        number += byte << shift
        shift += 7
        if byte < 128:
            return number, at


def integer(number):
    if number < 240:
        return bytes([number])
    out, number = bytearray([number & 255 | 240]), (number - 240) >> 4
    while number >= 128:
        out.append(number & 255 | 128)
        number = (number - 128) >> 7
    return bytes(out + bytes([number]))


def string(words):
    return integer(len(words)) + words.encode("latin-1")


def named(name, what):
    return string(name) + (b"\x08" + string(what) if isinstance(what, str) else b"\x03" + integer(what))


def text(data, at):
    size, at = varint(data, at)
    return data[at:at + size].decode("latin-1"), at + size


def value(data, at):
    kind, at = data[at], at + 1
    if kind & 15 < 2:
        return bool(kind & 16) if kind & 15 else None, at
    if kind & 15 < 6:
        number, at = varint(data, at)
        return number - (1 << 64) * (number >> 63), at
    if kind & 15 < 8:
        size = 4 if kind & 15 == 6 else 16
        return socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, data[at:at + size]), at + size
    return text(data, at)


SPEAKERS = {"fcgi": FastCGI, "spop": Agent}
