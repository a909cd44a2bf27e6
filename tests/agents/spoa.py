#!/usr/bin/env python3
"""An SPOE agent for tests, which does as it is told.

    spoa.py ADDRESS [options]

ADDRESS is the path of a Unix socket, or `host:port` (port 0: the kernel chooses; `--port-file` says where it is
written). Options tell how it greets; what it does with a NOTIFY frame is told by the frame itself: each message may
have an argument `do`, words parted by spaces:

    delay=MS          answer so much later
    set=SCOPE.NAME:TYPE:VALUE   set a variable; types: null bool int32 uint32 int64 uint64 ipv4 ipv6 str bin(hex) odd
    unset=SCOPE.NAME  forget one
    echo              set txn.ARG to `type:value` for each named argument, txn.order to the names of the messages
    count             set txn.conn, txn.served: number of the connection, and of the frame on it
    silent            never answer
    close             close the connection instead
    half              send half of the answer, then close
    pieces            send the answer byte by byte
    disconnect=CODE   say good-bye with this code
    wrongid           answer another frame
    wrongframe        answer another frame of the stream
    nofin             answer in a fragment
    abort             answer with the flag ABORT
    garbage           answer with what is no frame
    big               answer with a frame that is longer than was agreed on
    badaction         answer with an action that can't be read, behind the others
    twice             answer twice
    swap              keep the answer back until another frame was answered

Each frame is written to `--log FILE` as a line. It ends when the folder of that file, or of its address, is gone,
or after `--life` seconds.
"""

import argparse
import asyncio
import ipaddress
import os
import struct
import time

HELLO, DISCONNECT, NOTIFY, AGENT_HELLO, AGENT_DISCONNECT, ACK = 1, 2, 3, 101, 102, 103
SCOPES = ["proc", "sess", "txn", "req", "res"]


def varint(n):
    if n < 240:
        return bytes([n])
    out = [n & 0xFF | 0xF0]
    n = (n - 240) >> 4
    while n >= 128:
        out.append(n & 0x7F | 0x80)
        n = (n - 128) >> 7
    return bytes(out + [n])


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def take(self, n):
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self):
        n = self.byte()
        if n < 240:
            return n
        shift = 4
        while True:
            b = self.byte()
            n += b << shift
            shift += 7
            if b < 128:
                return n

    def text(self):
        return self.take(self.number())

    def value(self):
        first = self.byte()
        kind = first & 15
        if kind == 0:
            return "null", None
        if kind == 1:
            return "bool", bool(first & 16)
        if kind in (2, 3, 4, 5):
            n = self.number()
            if kind in (2, 4) and n >= 1 << 63:
                n -= 1 << 64
            return ["int32", "uint32", "int64", "uint64"][kind - 2], n
        if kind == 6:
            return "ipv4", str(ipaddress.IPv4Address(self.take(4)))
        if kind == 7:
            return "ipv6", str(ipaddress.IPv6Address(self.take(16)))
        if kind == 8:
            return "str", self.text().decode("latin-1")
        return "bin", self.text().hex()

    def done(self):
        return self.at >= len(self.data)


def text(s):
    s = s.encode("latin-1") if isinstance(s, str) else s
    return varint(len(s)) + s


def typed(kind, value):
    if kind == "null":
        return b"\0"
    if kind == "bool":
        return b"\x11" if value in ("1", "true", True) else b"\x01"
    if kind in ("int32", "uint32", "int64", "uint64"):
        at = ["int32", "uint32", "int64", "uint64"].index(kind) + 2
        return bytes([at]) + varint(int(value) % (1 << 64))
    if kind == "ipv4":
        return b"\x06" + ipaddress.IPv4Address(value).packed
    if kind == "ipv6":
        return b"\x07" + ipaddress.IPv6Address(value).packed
    if kind == "str":
        return b"\x08" + text(value)
    if kind == "bin":
        return b"\x09" + text(bytes.fromhex(value))
    return b"\x0c"


def frame(kind, payload, stream=0, number=0, flags=1):
    body = bytes([kind]) + struct.pack(">I", flags) + varint(stream) + varint(number) + payload
    return struct.pack(">I", len(body)) + body


def items(pairs):
    return b"".join(text(k) + v for k, v in pairs)


def scope_and_name(name):
    scope, _, rest = name.partition(".")
    return bytes([SCOPES.index(scope)]), text(rest)


def set_var(name, value):
    scope, rest = scope_and_name(name)
    return b"\x01\x03" + scope + rest + value


class Agent:
    def __init__(self, options):
        self.options = options
        self.connections = 0
        self.held = []
        self.out = open(options.log, "a", buffering=1) if options.log else None

    def log(self, line):
        if self.out:
            self.out.write((f"{time.monotonic() % 1000:.3f} " if self.options.times else "") + line + "\n")

    async def serve(self, reader, writer):
        self.connections += 1
        conn = Connection(self, self.connections, reader, writer)
        self.log(f"connect {conn.number}")
        try:
            await conn.run()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        self.log(f"end {conn.number}")
        writer.close()


class Connection:
    def __init__(self, agent, number, reader, writer):
        self.agent, self.number, self.reader, self.writer = agent, number, reader, writer
        self.served = 0

    async def frames(self):
        while True:
            length = struct.unpack(">I", await self.reader.readexactly(4))[0]
            body = Reader(await self.reader.readexactly(length))
            kind = body.byte()
            flags = struct.unpack(">I", body.take(4))[0]
            stream, number = body.number(), body.number()
            yield kind, flags, stream, number, body, length

    def send(self, data):
        self.writer.write(data)

    async def run(self):
        async for kind, flags, stream, number, body, length in self.frames():
            if kind == HELLO:
                if not await self.hello(body):
                    return
            elif kind == NOTIFY:
                self.served += 1
                messages = []
                while not body.done():
                    name = body.text().decode()
                    args = [(body.text().decode(),) + body.value() for _ in range(body.byte())]
                    messages.append((name, args))
                shown = " ".join(
                    m + "(" + ",".join(f"{n}={k}:{v}" for n, k, v in a if n != "do") + ")" for m, a in messages
                )
                self.agent.log(f"notify {self.number} {stream} {number} {flags} {length} {shown}")
                asyncio.ensure_future(self.answer(stream, number, messages, self.served))
            elif kind == DISCONNECT:
                told = {}
                while not body.done():
                    key = body.text().decode()
                    told[key] = body.value()[1]
                self.agent.log(f"disconnect {self.number} {told.get('status-code')} {told.get('message')}")
                self.send(frame(AGENT_DISCONNECT, self.farewell(0)))
                await self.writer.drain()
                return
            else:
                self.agent.log(f"frame {self.number} {kind}")

    def farewell(self, code):
        return items([("status-code", typed("uint32", code)), ("message", typed("str", f"code {code}"))])

    async def hello(self, body):
        o, told = self.agent.options, {}
        while not body.done():
            key = body.text().decode()
            told[key] = body.value()[1]
        shown = " ".join(f"{k}={v}" for k, v in told.items() if k != "engine-id")
        self.agent.log(f"hello {self.number} {shown}" + (" engine" if "engine-id" in told else ""))
        if o.hello == "silent":
            await asyncio.sleep(3600)
        if o.hello == "close":
            return False
        if o.hello == "garbage":
            self.send(b"HTTP/1.1 400 Bad\r\n\r\n")
            return True
        if o.hello.startswith("disconnect="):
            self.send(frame(AGENT_DISCONNECT, self.farewell(int(o.hello[11:]))))
            await self.writer.drain()
            return False
        await asyncio.sleep(o.hello_delay / 1000)
        most = o.max_frame_size or told.get("max-frame-size", 16380)
        pairs = [
            ("version", typed("str", o.version)),
            ("max-frame-size", typed("uint32", most)),
            ("capabilities", typed("str", o.capabilities)),
        ]
        pairs = [p for p in pairs if p[0] not in o.without]
        self.send(frame(AGENT_HELLO, items(pairs)))
        return not told.get("healthcheck")

    async def answer(self, stream, number, messages, served):
        words = []
        for _, args in messages:
            for name, kind, value in args:
                if name == "do" and kind == "str":
                    words += value.split()
        words += self.agent.options.do.split()
        actions, flags, twice, pieces = b"", 1, False, False
        delay = self.agent.options.delay
        for word in words:
            key, _, rest = word.partition("=")
            if key == "delay":
                delay = float(rest)
            elif key == "set":
                name, kind, value = rest.split(":", 2)
                actions += set_var(name, typed(kind, value))
            elif key == "unset":
                scope, name = scope_and_name(rest)
                actions += b"\x02\x02" + scope + name
            elif key == "echo":
                order = ",".join(m for m, _ in messages)
                actions += set_var("txn.order", typed("str", order))
                for _, args in messages:
                    for name, kind, value in args:
                        if name and name != "do":
                            actions += set_var("txn." + name, typed("str", f"{kind}:{value}"))
            elif key == "count":
                actions += set_var("txn.conn", typed("int32", self.number))
                actions += set_var("txn.served", typed("int32", served))
        if delay:
            await asyncio.sleep(delay / 1000)
        for word in words:
            key, _, rest = word.partition("=")
            if key == "silent":
                return
            if key == "close":
                self.writer.transport.abort() if rest == "rst" else self.writer.close()
                return
            if key == "disconnect":
                self.send(frame(AGENT_DISCONNECT, self.farewell(int(rest))))
                await self.writer.drain()
                self.writer.close()
                return
            if key == "garbage":
                self.send(b"HTTP/1.1 200 OK\r\n\r\n")
                return
            if key == "big":
                actions += set_var("txn.big", typed("str", "x" * 20000))
            if key == "badaction":
                actions += b"\x09\x00\x01"
            stream += 1000 if key == "wrongid" else 0
            number += 1000 if key == "wrongframe" else 0
            flags = 0 if key == "nofin" else 3 if key == "abort" else flags
            twice |= key == "twice"
            pieces |= key in ("pieces", "half")
        data = frame(ACK, actions, stream, number, flags) * (2 if twice else 1)
        if "half" in words:
            data = data[: len(data) // 2]
        if "swap" in words and not self.agent.held:
            self.agent.held.append((self, data))
            return
        if pieces:
            for at in range(len(data)):
                self.send(data[at : at + 1])
                await self.writer.drain()
                await asyncio.sleep(0.001)
            if "half" in words:
                self.writer.close()
        else:
            self.send(data)
        for other, held in self.agent.held:
            other.send(held)
        self.agent.held.clear()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--log")
    parser.add_argument("--times", action="store_true", help="put the time in front of each line")
    parser.add_argument("--port-file")
    parser.add_argument("--life", type=float, default=60)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--do", default="")
    parser.add_argument("--hello", default="")
    parser.add_argument("--hello-delay", type=float, default=0)
    parser.add_argument("--version", default="2.0")
    parser.add_argument("--max-frame-size", type=int)
    parser.add_argument("--capabilities", default="pipelining")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--tls", help="a PEM file with certificate and key")
    options = parser.parse_args()
    agent = Agent(options)
    tls = None
    if options.tls:
        import ssl

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.tls)
    if "/" in options.address:
        if os.path.exists(options.address):
            os.unlink(options.address)
        # Who waits for the path finds somebody who listens there.
        hidden = options.address + ".new"
        await asyncio.start_unix_server(agent.serve, hidden, ssl=tls, backlog=1000)
        os.rename(hidden, options.address)
    else:
        host, _, port = options.address.rpartition(":")
        server = await asyncio.start_server(agent.serve, host, int(port), ssl=tls, backlog=1000)
        if options.port_file:
            with open(options.port_file + ".new", "w") as f:
                f.write(str(server.sockets[0].getsockname()[1]))
            os.rename(options.port_file + ".new", options.port_file)
    # The folder of a test goes when the test is over.
    folder, end = os.path.dirname(options.log or options.address) or "/", time.monotonic() + options.life
    while time.monotonic() < end and os.path.isdir(folder):
        await asyncio.sleep(0.2)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
