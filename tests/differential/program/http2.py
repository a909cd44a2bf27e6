"""HTTP/2 as the harness speaks it: frames and HPACK, enough for honest and for odd clients and origins.

Compared is what a stream carried and how it ended, not how bytes were cut into frames: DATA of a stream are joined, window
updates are not recorded.
"""
import struct

import masks

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, PRIO, ACK = 1, 4, 8, 0x20, 1

STATIC = [tuple(line.split("\t")) for line in (
    ":authority\t|:method\tGET|:method\tPOST|:path\t/|:path\t/index.html|:scheme\thttp|:scheme\thttps|:status\t200|:status\t204|"
    ":status\t206|:status\t304|:status\t400|:status\t404|:status\t500|accept-charset\t|accept-encoding\tgzip, deflate|"
    "accept-language\t|accept-ranges\t|accept\t|access-control-allow-origin\t|age\t|allow\t|authorization\t|cache-control\t|"
    "content-disposition\t|content-encoding\t|content-language\t|content-length\t|content-location\t|content-range\t|"
    "content-type\t|cookie\t|date\t|etag\t|expect\t|expires\t|from\t|host\t|if-match\t|if-modified-since\t|if-none-match\t|"
    "if-range\t|if-unmodified-since\t|last-modified\t|link\t|location\t|max-forwards\t|proxy-authenticate\t|"
    "proxy-authorization\t|range\t|referer\t|refresh\t|retry-after\t|server\t|set-cookie\t|strict-transport-security\t|"
    "transfer-encoding\t|user-agent\t|vary\t|via\t|www-authenticate\t").split("|")]


def number(value, bits, first):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out = bytearray([first | limit])
    value -= limit
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    out.append(value)
    return bytes(out)


def encode(pairs, index=False):
    """A field block without Huffman codes; with `index` it uses the static table where it can."""
    out = bytearray()
    for name, value in pairs:
        if index and (name, value) in STATIC:
            out += number(STATIC.index((name, value)) + 1, 7, 0x80)
            continue
        raw, text = name.encode("latin-1"), value.encode("latin-1")
        out += b"\x00" + number(len(raw), 7, 0) + raw + number(len(text), 7, 0) + text
    return bytes(out)


class Decoder:
    def __init__(self):
        self.table, self.size = [], 4096

    def number(self, data, at, bits):
        limit = (1 << bits) - 1
        value = data[at] & limit
        at += 1
        shift = 0
        while value >= limit:
            byte = data[at]
            at += 1
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        return value, at

    def text(self, data, at):
        huffman = data[at] & 0x80
        size, at = self.number(data, at, 7)
        raw = bytes(data[at:at + size])
        return ("huffman:" + raw.hex() if huffman else raw.decode("latin-1")), at + size

    def entry(self, index):
        if index <= len(STATIC):
            return STATIC[index - 1]
        return self.table[index - len(STATIC) - 1]

    def decode(self, data):
        out, at = [], 0
        while at < len(data):
            first = data[at]
            if first & 0x80:
                index, at = self.number(data, at, 7)
                out.append(self.entry(index))
                continue
            if first & 0xe0 == 0x20:
                self.size, at = self.number(data, at, 5)
                self.trim()
                continue
            keep = first & 0xc0 == 0x40
            index, at = self.number(data, at, 6 if keep else 4)
            name, at = (self.entry(index)[0], at) if index else self.text(data, at)
            value, at = self.text(data, at)
            out.append((name, value))
            if keep:
                self.table.insert(0, (name, value))
                self.trim()
        return out

    def trim(self):
        while self.table and sum(len(n) + len(v) + 32 for n, v in self.table) > self.size:
            self.table.pop()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Stream:
    def __init__(self):
        self.blocks, self.body, self.ended, self.reset, self.shown = [], bytearray(), False, None, 0
        self.window, self.queue, self.fin, self.body_shown = 65535, bytearray(), False, 0
        self.answered, self.trailing = False, None

    def over(self):
        return self.ended or self.reset is not None


class Peer:
    """One end of a connection of HTTP/2 on a link."""

    def __init__(self, link, client, settings=(), window=1 << 20):
        self.link, self.client, self.streams, self.decoder = link, client, {}, Decoder()
        self.settings, self.goaway, self.raw, self.window, self.initial = None, None, bytearray(), 65535, 65535
        self.block, self.started, self.open_block, self.pings = bytearray(), client, None, 0
        self.fault, self.stingy = "", False
        hello = PREFACE if client else b""
        chosen = dict(settings)
        chosen.setdefault(4, window)
        hello += frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", k, v) for k, v in sorted(chosen.items())))
        hello += frame(WINDOW, 0, 0, struct.pack(">I", 1 << 24))
        self.hello = hello
        if client:
            link.send(hello)

    def take(self):
        """Reads all complete frames; returns the streams that a frame came for."""
        self.raw += self.link.take()
        touched = []
        if not self.started:
            if len(self.raw) < len(PREFACE):
                return touched
            if bytes(self.raw[:len(PREFACE)]) != PREFACE:
                self.fault = "no preface"
                return touched
            del self.raw[:len(PREFACE)]
            self.started = True
            self.link.send(self.hello)
        while len(self.raw) >= 9:
            size = int.from_bytes(self.raw[:3], "big")
            if len(self.raw) < 9 + size:
                break
            kind, flags = self.raw[3], self.raw[4]
            stream = int.from_bytes(self.raw[5:9], "big") & 0x7fffffff
            payload = bytes(self.raw[9:9 + size])
            del self.raw[:9 + size]
            try:
                self.frame(kind, flags, stream, payload)
            except IndexError:
                self.fault = "broken field block"
            if stream and kind != WINDOW:
                touched.append(stream)
        return touched

    def stream(self, number):
        if number not in self.streams:
            self.streams[number] = Stream()
            self.streams[number].window = self.initial
        return self.streams[number]

    def frame(self, kind, flags, number, payload):
        if kind in (DATA, HEADERS) and flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        if kind == DATA:
            stream = self.stream(number)
            stream.body += payload
            stream.ended |= bool(flags & END_STREAM)
            if payload and not self.stingy:
                self.link.send(frame(WINDOW, 0, number, struct.pack(">I", len(payload))))
        elif kind in (HEADERS, CONTINUATION):
            if kind == HEADERS and flags & PRIO:
                payload = payload[5:]
            if kind == HEADERS:
                self.block, self.open_block = bytearray(), bool(flags & END_STREAM)
            self.block += payload
            if flags & END_HEADERS:
                stream = self.stream(number)
                stream.blocks.append(self.decoder.decode(bytes(self.block)))
                stream.ended |= bool(self.open_block)
        elif kind == RST:
            self.stream(number).reset = int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            found = {k: v for k, v in struct.iter_unpack(">HI", payload)}
            self.settings = found if self.settings is None else {**self.settings, **found}
            if 4 in found:
                for stream in self.streams.values():
                    stream.window += found[4] - self.initial
                self.initial = found[4]
            self.link.send(frame(SETTINGS, ACK, 0))
            self.pump()
        elif kind == PING and not flags & ACK:
            self.pings += 1
            self.link.send(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.goaway = struct.unpack(">II", payload[:8])
        elif kind == WINDOW:
            more = int.from_bytes(payload, "big")
            if number:
                self.stream(number).window += more
            else:
                self.window += more
            self.pump()

    def head(self, number, pairs, end=False, index=False, flags=0, prefix=b""):
        self.stream(number)
        block = encode(pairs, index)
        first, rest = block[:16000], block[16000:]
        self.link.send(frame(HEADERS, (END_STREAM if end else 0) | (0 if rest else END_HEADERS) | flags, number, prefix + first))
        while rest:
            part, rest = rest[:16000], rest[16000:]
            self.link.send(frame(CONTINUATION, 0 if rest else END_HEADERS, number, part))

    def body(self, number, data, end=True):
        stream = self.stream(number)
        stream.queue += data
        stream.fin |= end
        if end and not stream.queue:
            self.link.send(frame(DATA, END_STREAM, number))
            stream.fin = False
        self.pump()

    def pump(self):
        """Sends what the windows allow."""
        for number, stream in self.streams.items():
            while stream.queue and stream.reset is None:
                size = min(len(stream.queue), self.window, stream.window, 16384)
                if size <= 0:
                    break
                part = bytes(stream.queue[:size])
                del stream.queue[:size]
                last = stream.fin and not stream.queue
                self.window -= size
                stream.window -= size
                self.link.send(frame(DATA, END_STREAM if last else 0, number, part))
                if last:
                    stream.fin = False
            if stream.trailing and not stream.queue and stream.reset is None:
                trailers, stream.trailing = stream.trailing, None
                self.head(number, trailers, end=True)

    def reset(self, number, code):
        """Takes a stream back, with what windows still hold back of its body."""
        self.stream(number).queue.clear()
        self.link.send(frame(RST, 0, number, code.to_bytes(4, "big")))

    def trailers(self, number, pairs):
        """Ends a stream by trailers, behind what windows still hold back of its body."""
        self.stream(number).trailing = pairs
        self.pump()

    def show(self, text, unpack=False):
        """What has come since the last time, one line each. `text` shows bytes."""
        out = []
        if self.settings is not None:
            out.append("SETTINGS " + " ".join(f"{k}={v}" for k, v in sorted(self.settings.items())))
            self.settings = None
        for number, stream in sorted(self.streams.items()):
            for block in stream.blocks[stream.shown:]:
                out.append(f"stream {number} HEADERS")
                out += [f"  {name}: {value}" for name, value in block]
            stream.shown = len(stream.blocks)
            if len(stream.body) > stream.body_shown:
                coding = dict(stream.blocks[-1]).get("content-encoding", "") if unpack and stream.blocks else ""
                body = masks.unpacked(bytes(stream.body), coding.encode(), text)
                out.append(f"stream {number} DATA {body or text(bytes(stream.body[stream.body_shown:]))}")
                stream.body_shown = len(stream.body)
            if stream.over() and not getattr(stream, "told", False):
                stream.told = True
                out.append(f"stream {number} " + (f"RST {stream.reset}" if stream.reset is not None else "END"))
        if self.goaway is not None:
            out.append(f"GOAWAY last={self.goaway[0]} code={self.goaway[1]}")
            self.goaway = None
        if self.pings:
            out.append(f"PING x{self.pings}")
            self.pings = 0
        if self.fault:
            out.append(self.fault)
            self.fault = ""
        return out
