"""The cases of frames.py: a kind, what is sent, and what a server of HTTP/2 does where the client is the one that is told. None lets what was sent take effect, "shut" closes the sending side, "wait" waits for
timeouts; a case sends its parts at once where nothing stands between them."""
import struct

CASES, METHOD = {}, {}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def joined(parts):
    out = []
    for part in parts:
        if isinstance(part, bytes) and out and isinstance(out[-1], bytes):
            out[-1] += part
        else:
            out.append(part)
    return out


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    name, value = (text.encode() if isinstance(text, str) else text for text in (name, value))
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


SETTINGS = frame(4, 0, 0)
AUTHORITY = field(":authority", "a")
GET, POST = b"\x82\x86\x84" + AUTHORITY, b"\x83\x86\x84" + AUTHORITY
SLOW = b"\x82\x86" + field(":path", "/slow") + AUTHORITY
CANCEL = b"\0\0\0\x08"


def headers(stream, block=GET, flags=5):
    return frame(1, flags, stream, block)


def data(stream, payload=b"abc", flags=1):
    return frame(0, flags, stream, payload)


def h2(name, *parts):
    """A client of HTTP/2 that says hello first."""
    CASES["h2 " + name] = ("h2", [PREFACE + SETTINGS, *parts])
    slow = [part for part in parts for part in (part, None)]
    if len(parts) > 1 and None not in parts and "shut" not in parts:
        CASES["h2 slowly: " + name] = ("h2", [PREFACE + SETTINGS, *slow])


def request(name, block, flags=5):
    """A request, and a good one behind it."""
    h2("request, " + name, headers(1, block, flags), None, headers(3))


def first():
    raw = lambda name, *parts: CASES.update({"h2 hello: " + name: ("h2", list(parts))})
    raw("no settings", PREFACE + headers(1))
    raw("bad preface", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + SETTINGS)
    raw("short preface", b"PRI * HTT", "shut")
    raw("a request of HTTP/1", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    raw("a ping", PREFACE + frame(6, 0, 0, b"12345678"))
    raw("settings of 7 bytes", PREFACE + frame(4, 0, 0, b"1234567"))
    raw("settings acknowledged", PREFACE + frame(4, 1, 0))
    raw("settings on a stream", PREFACE + frame(4, 0, 1))
    raw("nothing and the end", "shut")
    raw("a preface and the end", PREFACE, "shut")
    raw("half of the settings and the end", PREFACE + SETTINGS[:5], "shut")
    raw("settings and the end", PREFACE + SETTINGS, "shut")
    raw("a get and the end", PREFACE + SETTINGS + headers(1), None, "shut")
    raw("a post and the end", PREFACE + SETTINGS + headers(1, POST, 4), None, "shut")
    raw("a slow get and the end", PREFACE + SETTINGS + headers(1, SLOW), "shut")
    h2("nothing else")
    h2("a get", headers(1))


def connection():
    setting = lambda name, number, value: h2(f"setting {name}", frame(4, 0, 0, struct.pack(">HI", number, value)), headers(1))
    for name, number, value in (("window", 4, 2**31), ("frames too small", 5, 1), ("frames too large", 5, 2**24), ("push 2", 2, 2), ("push 1", 2, 1),
                                ("unknown", 0x77, 2), ("connect 2", 8, 2), ("table", 1, 0), ("streams 0", 3, 0), ("window 0", 4, 0)):
        setting(name, number, value)
    h2("settings with a payload acknowledged", frame(4, 1, 0, b"\0\4\0\0\0\1"))
    h2("settings on a stream", frame(4, 0, 1))
    h2("ping of 7", frame(6, 0, 0, b"1234567"))
    h2("ping on a stream", frame(6, 0, 1, b"12345678"))
    h2("ping acknowledged", frame(6, 1, 0, b"12345678"))
    h2("ping", frame(6, 0, 0, b"12345678"))
    h2("goaway on a stream", frame(7, 0, 1, b"\0" * 8))
    h2("goaway too short", frame(7, 0, 0, b"\0" * 7))
    h2("goaway, then a request", frame(7, 0, 0, b"\0" * 8), headers(1))
    h2("goaway of an error", headers(1), None, frame(7, 0, 0, b"\0\0\0\0\0\0\0\1"), headers(3))
    h2("push", frame(5, 4, 1, b"\0\0\0\2" + GET))
    h2("push on a stream", headers(1, SLOW), frame(5, 4, 1, b"\0\0\0\2" + GET))
    h2("priority of 4", frame(2, 0, 1, b"1234"))
    h2("priority of nothing", frame(2, 0, 0, b"\0\0\0\3\1"))
    h2("priority on itself", frame(2, 0, 3, b"\0\0\0\3\1"), headers(5))
    h2("priority on another", frame(2, 0, 3, b"\0\0\0\1\1"), headers(1))
    h2("priority of an open stream on itself", headers(1, SLOW), frame(2, 0, 1, b"\0\0\0\1\1"))
    h2("window of 0", frame(8, 0, 0, b"\0\0\0\0"))
    h2("window of 3 bytes", frame(8, 0, 0, b"\0\0\1"))
    h2("window of 5 bytes", frame(8, 0, 0, b"\0\0\0\0\1"))
    h2("window above all", frame(8, 0, 0, b"\x7f\xff\xff\xff"))
    h2("ping too large", frame(6, 0, 0, b"x" * 16385))
    h2("unknown frame", frame(99, 255, 0, b"xyz"), headers(1))
    h2("unknown frame on an idle stream", frame(99, 255, 7, b"xyz"), headers(1))
    h2("unknown frame on an open stream", headers(1, SLOW), frame(99, 255, 1, b"xyz"))
    h2("unknown frame too large", frame(99, 0, 0, b"x" * 16385))


def streams():
    reset = lambda stream, code=CANCEL: frame(3, 0, stream, code)
    h2("reset of an idle stream", reset(1))
    h2("reset of nothing", reset(0))
    h2("reset of 3 bytes", headers(1, SLOW), reset(1, b"\0\0\x08"))
    h2("reset at once", headers(1, SLOW), reset(1), None, headers(3))
    h2("reset of a post at once", headers(1, POST, 4), reset(1), None, headers(3))
    h2("reset later", headers(1, SLOW), None, reset(1))
    h2("reset later, no error", headers(1, SLOW), None, reset(1, b"\0\0\0\0"))
    h2("reset of an even stream", reset(2))
    h2("reset of what is over", headers(1), None, reset(1), headers(3))
    h2("reset twice", headers(1, POST, 4), None, reset(1), None, reset(1), None, headers(3))
    h2("window of an idle stream", frame(8, 0, 1, b"\0\0\0\1"))
    h2("window of an even stream", frame(8, 0, 2, b"\0\0\0\1"))
    h2("window of a stream, 0", headers(1, SLOW), frame(8, 0, 1, b"\0\0\0\0"))
    h2("window of a stream above all", headers(1, SLOW), frame(8, 0, 1, b"\x7f\xff\xff\xff"))
    h2("window of a stream, short", headers(1, SLOW), frame(8, 0, 1, b"\0\0\0"))
    h2("window of what is over", headers(1), None, frame(8, 0, 1, b"\0\0\0\1"), headers(3))
    h2("window of what was reset", headers(1, POST, 4), None, reset(1), None, frame(8, 0, 1, b"\0\0\0\1"), None, headers(3))
    h2("data on nothing", data(0))
    h2("data on an idle stream", data(1))
    h2("data behind the end", headers(1, SLOW), data(1))
    h2("data behind the answer", headers(1), None, data(1), headers(3))
    h2("no data behind the answer", headers(1), None, data(1, b""), headers(3))
    h2("data behind a reset", headers(1, POST, 4), None, reset(1), data(1), headers(3))
    h2("data with too much padding", headers(1, POST, 4), data(1, b"\x09abc", 9))
    h2("data without room for padding", headers(1, POST, 4), data(1, b"", 9))
    h2("data with padding", headers(1, POST, 4), data(1, b"\x02abc\0\0", 9))
    h2("data too large", headers(1, POST, 4), data(1, b"x" * 16385))
    h2("the end alone", headers(1, POST, 4), data(1, b""), None, headers(3))
    length = lambda number: POST + field("content-length", str(number))
    h2("longer than said", headers(1, length(3), 4), data(1, b"abcd"), None, headers(3))
    h2("shorter than said", headers(1, length(3), 4), data(1, b"ab"), None, headers(3))
    h2("as long as said", headers(1, length(3), 4), data(1, b"abc"), None, headers(3))
    h2("shorter, and trailers", headers(1, length(3), 4), data(1, b"ab", 0), None, headers(1, field("x", "y")), None, headers(3))
    for name, block, flags in (("", field("x", "y"), 5), (" without an end", field("x", "y"), 4), (" with a pseudo-header", b"\x84", 5),
                               (" in capitals", field("X", "y"), 5), (" of the connection", field("connection", "close"), 5), (" of nothing", b"", 5)):
        h2("trailers" + name, headers(1, POST, 4), data(1, b"ab", 0), None, headers(1, block, flags), None, headers(3))
    h2("trailers twice", headers(1, POST, 4), data(1, b"ab", 0), headers(1, field("x", "y")), None, headers(1, field("x", "y")), headers(3))


def blocks():
    h2("headers on nothing", headers(0))
    h2("headers on an even stream", headers(2))
    h2("headers of nothing", frame(1, 5, 1))
    h2("headers of nothing without an end", frame(1, 4, 1))
    h2("a lower stream", headers(5), None, headers(3), headers(7))
    h2("headers behind the end", headers(1, SLOW), headers(1, SLOW))
    h2("headers behind the answer", headers(1), None, headers(1), headers(3))
    h2("headers behind a reset", headers(1, POST, 4), None, frame(3, 0, 1, CANCEL), None, headers(1), None, headers(3))
    h2("depends on itself", frame(1, 0x25, 1, b"\0\0\0\1\1" + GET))
    h2("depends on nothing", frame(1, 0x25, 1, b"\0\0\0\0\1" + GET))
    h2("priority cut", frame(1, 0x25, 1, b"\0\0\0"))
    h2("padding too long", frame(1, 0xd, 1, b"\xff" + GET))
    h2("no room for padding", frame(1, 0xd, 1))
    h2("padding", frame(1, 0xd, 1, b"\2" + GET + b"\0\0"))
    h2("all padding", frame(1, 0xd, 1, bytes([len(GET)]) + GET))
    h2("one more padding", frame(1, 0xd, 1, bytes([len(GET) + 1]) + GET))
    h2("headers too large", frame(1, 5, 1, GET + b"x" * 16385))
    more = frame(9, 4, 1, GET[5:])
    CASES["h2 continuation"] = ("h2", [PREFACE + SETTINGS + frame(1, 1, 1, GET[:5]) + more])
    for name, parts in (("alone", frame(9, 4, 1, GET)), ("on nothing", frame(1, 1, 1, GET[:5]) + frame(9, 4, 0, GET[5:])),
                        ("on another stream", frame(1, 1, 1, GET[:5]) + frame(9, 4, 3, GET[5:])),
                        ("behind a ping", frame(1, 1, 1, GET[:5]) + frame(6, 0, 0, b"12345678") + more),
                        ("behind the end", headers(1, SLOW) + frame(9, 4, 1))):
        CASES["h2 continuation " + name] = ("h2", [PREFACE + SETTINGS + parts])
    for name, block in (("index 0", b"\x80"), ("index too large", b"\x82\x86\x84\xff\xff\xff\x0f"), ("number too large", b"\xff" * 9 + b"\x7f"),
                        ("cut", b"\x82\x86\x84\0\x09ab"), ("bad Huffman code", b"\x82\x86\x84\0\x84\xff\xff\xff\xff\x01a"), ("size at the end", GET + b"\x20"),
                        ("size too large", b"\x3f\xe2\xff\x03" + GET), ("size", b"\x20" + GET)):
        h2("HPACK: " + name, headers(1, block))
    h2("HPACK: broken later", headers(1), None, headers(3, b"\x80"))
    h2("HPACK: broken trailers", headers(1, POST, 4), None, headers(1, b"\x80"))


def requests():
    pseudo = {":method": b"\x82", ":scheme": b"\x86", ":path": b"\x84", ":authority": AUTHORITY}
    for name in pseudo:
        request("no " + name, b"".join(value for key, value in pseudo.items() if key != name))
        request("empty " + name, b"".join(field(key, "") if key == name else value for key, value in pseudo.items()))
        request("twice " + name, b"".join(pseudo.values()) + pseudo[name])
    request("host alone", b"\x82\x86\x84" + field("host", "a"))
    request("empty host alone", b"\x82\x86\x84" + field("host", ""))
    request("another host", GET + field("host", "b"))
    request("host beside", GET + field("host", ""))
    request("pseudo-header late", b"\x82\x86" + field("x", "y") + b"\x84" + AUTHORITY)
    for name in (":foo", ":status", ":protocol"):
        request(name, GET + field(name, "200"))
    connect = field(":method", "CONNECT")
    for name, block in (("", field(":authority", "a:1")), (" with a path", b"\x84" + field(":authority", "a:1")), (" to nobody", b""),
                        (" with a scheme", b"\x86" + field(":authority", "a:1")), (" without a port", field(":authority", "a")),
                        (" to no number", field(":authority", "a:x"))):
        request("CONNECT" + name, connect + block, 4)
    h2("CONNECT whose client ends first", headers(1, connect + field(":authority", "a:1"), 4), data(1, b"x", 0), data(1, b"y"), None)
    for name in ("X-Up", "x y", "x:y", "", "x\0"):
        request(f"field {name!r}", GET + field(name, "y"))
    for value in ("a\x01b", "a\0b", "a\rb", "a\nb", " ab", "ab\t", "a\x7fb"):
        request(f"value {value!r}", GET + field("x", value))
    for name in ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"):
        request(name, GET + field(name, "close"))
    for value in ("trailers", "gzip", "trailers, gzip", "Trailers"):
        request("te " + value, GET + field("te", value))
    for value in ("0", "5", "+5", "-1", "05", "5, 5", "5,6", "x", "", "99999999999999999999", " 5"):
        request(f"length {value!r}", POST + field("content-length", value))
    request("two lengths", POST + field("content-length", "3") + field("content-length", "4"), 4)
    for path in ("abc", "*", "http://x/y", "/a b", "/a#b", b"/a\xff", "/a\x01"):
        request(f"path {path!r}", b"\x82\x86" + field(":path", path) + AUTHORITY)
    request("OPTIONS of everything", field(":method", "OPTIONS") + b"\x86" + field(":path", "*") + AUTHORITY)
    for method in ("get", "G T", "PRI", "G:T"):
        request(f"method {method!r}", field(":method", method) + b"\x86\x84" + AUTHORITY)
    for scheme in ("ftp", "ht tp", "1http", "HTTP"):
        request(f"scheme {scheme!r}", b"\x82\x84" + field(":scheme", scheme) + AUTHORITY)
    for host in ("u@a", "a/b", "a b", "A:80", "a:443", "a:x", "a:1:2", "[::1]", "[::1]:80", "a[b", "a,b", "a?b", "a%b", "a\x80"):
        request(f"authority {host!r}", b"\x82\x86\x84" + field(":authority", host))
        request(f"host {host!r}", b"\x82\x86\x84" + field("host", host))
    request("three cookies", GET + field("cookie", "a=1") + field("cookie", "b=2") + field("x", "y") + field("cookie", "c=3"))
    request("120 fields", GET + b"".join(field(f"x{n}", "") for n in range(120)))


first()
connection()
streams()
blocks()
requests()


# ---------------------------------------------------------------- servers of HTTP/2

ANSWER = b"\x88" + field("content-length", "5")


def framed(name, *parts, method=None):
    """A server of HTTP/2 that says hello and then this, to a request that came by HTTP/1."""
    name = "h2 server: " + name
    CASES[name] = ("framed", [SETTINGS, *parts])
    if method:
        METHOD[name] = method


def servers():
    framed("an answer", headers(1, ANSWER, 4), data(1, b"hello"))
    framed("an answer without a length", headers(1, b"\x88", 4), data(1, b"hello"))
    framed("the end alone", headers(1, b"\x88", 4), data(1, b"hello", 0), data(1, b""))
    framed("trailers", headers(1, b"\x88", 4), data(1, b"hello", 0), headers(1, field("x", "y")))
    framed("nothing", None, "close")
    framed("half of a frame", headers(1, ANSWER, 4)[:7], None, "close")
    framed("a head alone", headers(1, ANSWER, 4), None, "close")
    framed("half of a body", headers(1, ANSWER, 4), data(1, b"he", 0), None, "close")
    framed("half of a body, and the end", headers(1, ANSWER, 4), None, data(1, b"he"))
    framed("too much of a body", headers(1, ANSWER, 4), data(1, b"hello!"))
    framed("too much of a body later", headers(1, ANSWER, 4), data(1, b"hello", 0), None, data(1, b"!"))
    framed("a length and no body", headers(1, ANSWER))
    framed("no body", headers(1, b"\x88"))
    framed("a body for HEAD", headers(1, ANSWER, 4), data(1, b"hello"), method=b"HEAD")
    framed("no body for HEAD", headers(1, ANSWER), method=b"HEAD")
    for status in ("99", "100", "101", "103", "199", "204", "304", "600", "999", "1000", "abc", "20", "2000", "+20"):
        framed("status " + status, headers(1, field(":status", status), 4), headers(1, ANSWER, 4), data(1, b"hello"))
        framed("status " + status + " alone", headers(1, field(":status", status)))
    framed("early hints, then an answer", headers(1, field(":status", "103") + field("link", "x"), 4), headers(1, ANSWER, 4), data(1, b"hello"))
    framed("100 with an end", headers(1, field(":status", "100")))
    for name, block in (("no status", field("x", "y")), ("two statuses", b"\x88\x88"), ("a path", b"\x88\x84"), ("a status late", field("x", "y") + b"\x88"),
                        ("capitals", b"\x88" + field("X", "y")), ("connection", b"\x88" + field("connection", "close")),
                        ("transfer-encoding", b"\x88" + field("transfer-encoding", "chunked")), ("no name", b"\x88" + field("", "y")),
                        ("keep-alive", b"\x88" + field("keep-alive", "x")), ("upgrade", b"\x88" + field("upgrade", "x")), ("te", b"\x88" + field("te", "trailers")),
                        ("a NUL", b"\x88" + field("x", "a\0b")), ("a line feed", b"\x88" + field("x", "a\nb")), ("a control", b"\x88" + field("x", "a\x01b")),
                        ("blanks", b"\x88" + field("x", " ab ")), ("two lengths", ANSWER + field("content-length", "6")),
                        ("the same length twice", ANSWER + field("content-length", "5")), ("a bad length", b"\x88" + field("content-length", "+5")),
                        ("a colon in a name", b"\x88" + field("x:y", "z")), ("a blank in a name", b"\x88" + field("x y", "z"))):
        framed("head with " + name, headers(1, block, 4), data(1, b"hello"))
    for name, block in (("pseudo-header", b"\x88"), ("capitals", field("X", "y")), ("connection", field("connection", "close")), ("length", field("content-length", "5"))):
        framed("trailers with " + name, headers(1, b"\x88", 4), data(1, b"hello", 0), None, headers(1, block))
    framed("trailers without an end", headers(1, b"\x88", 4), data(1, b"hello", 0), headers(1, field("x", "y"), 4))
    framed("trailers of nothing", headers(1, b"\x88", 4), data(1, b"hello", 0), frame(1, 5, 1))
    for name, code in (("no error", 0), ("protocol", 1), ("refused", 7), ("cancel", 8), ("enhance your calm", 11), ("unknown", 77)):
        reset = frame(3, 0, 1, struct.pack(">I", code))
        framed(f"reset, {name}", reset)
        framed(f"reset behind a head, {name}", headers(1, ANSWER, 4), reset)
        framed(f"reset behind a head, later, {name}", headers(1, ANSWER, 4), None, reset)
        framed(f"reset in a body, {name}", headers(1, ANSWER, 4), data(1, b"he", 0), None, reset)
        framed(f"reset behind an answer, {name}", headers(1, ANSWER, 4), data(1, b"hello"), reset)
        framed(f"goaway of all, {name}", frame(7, 0, 0, struct.pack(">II", 0, code)))
        framed(f"goaway of nobody, {name}", frame(7, 0, 0, struct.pack(">II", 1, code)), None, headers(1, ANSWER, 4), data(1, b"hello"))
        framed(f"goaway and the end, {name}", frame(7, 0, 0, struct.pack(">II", 1, code)), None, "close")
    for name, parts in (("no settings first", None), ("ping", frame(6, 0, 0, b"12345678")), ("push", frame(5, 4, 1, b"\0\0\0\2" + GET)), ("data on nothing", data(0)),
                        ("data on an idle stream", data(3)), ("headers on an idle stream", headers(3, ANSWER)), ("headers on an even stream", headers(2, ANSWER)),
                        ("window of 0", frame(8, 0, 0, b"\0\0\0\0")), ("window of a stream, 0", frame(8, 0, 1, b"\0\0\0\0")), ("window above all", frame(8, 0, 0, b"\x7f\xff\xff\xff")),
                        ("window of a stream above all", frame(8, 0, 1, b"\x7f\xff\xff\xff")), ("window of an idle stream", frame(8, 0, 3, b"\0\0\0\1")),
                        ("reset of an idle stream", frame(3, 0, 3, CANCEL)), ("reset of 3 bytes", frame(3, 0, 1, b"\0\0\1")), ("priority on itself", frame(2, 0, 1, b"\0\0\0\1\1")),
                        ("unknown", frame(99, 255, 0, b"x")), ("unknown on the stream", frame(99, 255, 1, b"x")), ("unknown on an idle stream", frame(99, 255, 7, b"x")),
                        ("ping of 7", frame(6, 0, 0, b"1234567")), ("ping too large", frame(6, 0, 0, b"x" * 16385)), ("data first", data(1, b"hello")),
                        ("continuation alone", frame(9, 4, 1, b"\x88")), ("broken HPACK", headers(1, b"\x80")), ("headers of nothing", frame(1, 5, 1)),
                        ("depends on itself", frame(1, 0x25, 1, b"\0\0\0\1\1\x88")), ("bad padding", frame(1, 0xd, 1, b"\x09\x88")), ("goaway too short", frame(7, 0, 0, b"1234567")),
                        ("goaway on a stream", frame(7, 0, 1, b"12345678")), ("settings on a stream", frame(4, 0, 1)), ("settings of 7", frame(4, 0, 0, b"1234567")),
                        ("push allowed", frame(4, 0, 0, b"\0\2\0\0\0\1")), ("connect 2", frame(4, 0, 0, b"\0\x08\0\0\0\2")), ("window of settings", frame(4, 0, 0, b"\0\4\x80\0\0\0"))):
        if parts is None:
            CASES["h2 server: " + name] = ("framed", [frame(6, 0, 0, b"12345678"), headers(1, ANSWER, 4), data(1, b"hello")])
            CASES["h2 server: speaks HTTP/1"] = ("framed", [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"])
            continue
        framed("frame, " + name, parts, None, headers(1, ANSWER, 4), data(1, b"hello"))
    framed("continuation", frame(1, 0, 1, ANSWER[:3]), frame(9, 4, 1, ANSWER[3:]), data(1, b"hello"))
    framed("padding", frame(1, 0xc, 1, b"\2" + ANSWER + b"\0\0"), frame(0, 9, 1, b"\2hello\0\0"))
    framed("headers behind the end", headers(1, ANSWER, 4), data(1, b"hello"), headers(1, ANSWER))
    framed("data behind the end", headers(1, ANSWER, 4), data(1, b"hello"), data(1, b"hello"))


def served(name, client, script):
    """A client of HTTP/1 sends this, a server of HTTP/2 plays the script when the request has come: what it sends, None for a moment, a tuple to
    wait until so many frames like it have come, "now" to begin before there is a request, "close"."""
    CASES["h2 server: " + name] = ("one", client, [SETTINGS, *script])


def greeted(name, settings, client, script):
    """The same with settings of the server's own."""
    CASES["h2 server: " + name] = ("one", client, [frame(4, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in settings)), *script])


def both(name, client, script):
    """A client of HTTP/2, and a server of HTTP/2."""
    CASES["h2 both: " + name] = ("h2", [PREFACE + SETTINGS, *client], [SETTINGS, *script])


def asks(method, path="/framed", lines="", body=""):
    return f"{method} {path} HTTP/1.1\r\nhost: a\r\n{lines}\r\n{body}".encode()


def to(name, more=b"", method=b"\x82"):
    return method + b"\x86" + field(":path", name) + AUTHORITY + more

GOOD = [headers(1, ANSWER, 4), data(1, b"hello")]
LENGTH = "content-length: 6\r\n"
CHUNKED = "transfer-encoding: chunked\r\n"
REFUSED, NONE = b"\0\0\0\7", b"\0\0\0\0"
reset = lambda stream, code: frame(3, 0, stream, code)
window = lambda stream, more: frame(8, 0, stream, struct.pack(">I", more))


def uploads():
    """Bodies towards a server of HTTP/2 that answers, resets or leaves before it has them."""
    served("upload", [asks("POST", lines=LENGTH, body="abcdef")], [("DATA/1 6 end", 1), *GOOD])
    served("upload, slowly", [asks("POST", lines=LENGTH, body="abc"), None, b"def"], [("DATA/1 6 end", 1), *GOOD])
    served("upload in chunks", [asks("POST", lines=CHUNKED, body="6\r\nabcdef\r\n0\r\n\r\n")], [("DATA/1 6 end", 1), *GOOD])
    served("upload with trailers", [asks("POST", lines=CHUNKED, body="6\r\nabcdef\r\n0\r\nx: y\r\n\r\n")], [("HEADERS/1 x=y end", 1), *GOOD])
    served("upload of nothing", [asks("POST", lines="content-length: 0\r\n")], GOOD)
    served("upload of no chunks", [asks("POST", lines=CHUNKED, body="0\r\n\r\n")], [("DATA/1", 1), *GOOD])
    served("upload answered early", [asks("POST", lines=LENGTH, body="abc"), None, None, b"def"], [("DATA/1 3", 1), *GOOD])
    served("upload answered early, no error", [asks("POST", lines=LENGTH, body="abc"), None, None, b"def"], [("DATA/1 3", 1), *GOOD, reset(1, NONE)])
    served("upload answered early, cancel", [asks("POST", lines=LENGTH, body="abc"), None, None, b"def"], [("DATA/1 3", 1), *GOOD, reset(1, CANCEL)])
    for code, name in ((NONE, "no error"), (CANCEL, "cancel"), (REFUSED, "refused")):
        served("upload reset, " + name, [asks("POST", lines=LENGTH, body="abc"), None, None, b"def"], [("DATA/1 3", 1), reset(1, code)])
    served("upload, closed", [asks("POST", lines=LENGTH, body="abc"), None, None, b"def"], [("DATA/1 3", 1), ("SETTINGS/0 ack", 1), "close"])
    served("upload whose client ends", [asks("POST", lines=LENGTH, body="abc"), None, "shut"], [("DATA/1 3", 1)])
    served("upload, 100", [asks("POST", lines=LENGTH + "expect: 100-continue\r\n"), None, None, b"abcdef"], [headers(1, field(":status", "100"), 4), ("DATA/1 6 end", 1), *GOOD])
    served("upload, expected and refused", [asks("POST", lines=LENGTH + "expect: 100-continue\r\n"), None], [headers(1, field(":status", "417") + field("content-length", "0"))])
    served("upload behind 100s", [asks("POST", lines=LENGTH, body="abcdef")], [("DATA/1 6 end", 1), headers(1, field(":status", "100"), 4), headers(1, field(":status", "100"), 4), *GOOD])


def windows():
    """Servers that open their windows later, or change their minds."""
    post, body = asks("POST", lines=LENGTH), b"abcdef"
    sized = lambda size: frame(4, 0, 0, struct.pack(">HI", 4, size))
    greeted("window of 3, opened", [(4, 3)], [post, None, body, None, None], [("DATA/1 3", 1), None, window(1, 3), ("DATA/1 6 end", 1), *GOOD])
    greeted("window of 0, opened", [(4, 0)], [post, None, body, None, None], [None, None, window(1, 6), ("DATA/1 6 end", 1), *GOOD])
    greeted("window of 0, raised", [(4, 0)], [post, None, body, None, None], [None, None, sized(100), ("DATA/1 6 end", 1), *GOOD])
    greeted("window of 3, raised to 5 and opened", [(4, 3)], [post, None, body, None, None], [("DATA/1 3", 1), None, sized(5), ("DATA/1 5", 1), None, window(1, 1), ("DATA/1 6 end", 1), *GOOD])
    greeted("window of 6, lowered", [(4, 6)], [post, None, b"abc", None, None, b"def", None, None], [("DATA/1 3", 1), sized(3), None, None, None, None, window(1, 3), ("DATA/1 6 end", 1), *GOOD])
    greeted("window of 0, reset", [(4, 0)], [post, None, body, None], [None, None, reset(1, CANCEL)])
    greeted("window of 0, closed", [(4, 0)], [post, None, body, None], [None, None, ("SETTINGS/0 ack", 1), "close"])
    greeted("frames of 20000", [(5, 20000), (4, 50000)], [asks("POST", lines="content-length: 18000\r\n", body="x" * 18000)], [("DATA/1 18000 end", 1), *GOOD])
    greeted("window of 20000", [(4, 20000)], [asks("POST", lines="content-length: 30000\r\n"), None, b"x" * 30000, None, None], [("DATA/1 20000", 1), None, window(1, 10000), ("DATA/1 30000 end", 1), *GOOD])
    greeted("no table", [(1, 0)], [asks("GET", lines="x-a: b\r\n")], GOOD)
    greeted("a huge table", [(1, 1 << 20)], [asks("GET", lines="x-a: b\r\n")], GOOD)
    greeted("a table of 100, then of none", [(1, 100)], [asks("GET", "/kept", "x-a: b\r\n"), None, asks("GET", "/kept", "x-a: b\r\n")],
            [*GOOD, frame(4, 0, 0, struct.pack(">HI", 1, 0)), ("HEADERS/.", 2), headers(3, ANSWER, 4), data(3, b"hello"), None, "close"])
    greeted("no streams", [(3, 0)], [asks("GET")], GOOD)
    greeted("a small list", [(6, 10)], [asks("GET", lines="x-a: b\r\n")], GOOD)



def requests_to():
    """Requests as a server of HTTP/2 gets them."""
    for name, text in (("OPTIONS *", b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n"), ("HEAD", asks("HEAD")), ("DELETE", asks("DELETE")), ("te trailers", asks("GET", lines="te: trailers, gzip\r\n")),
                       ("connection fields", asks("GET", lines="connection: x-a, keep-alive\r\nx-a: b\r\nkeep-alive: 1\r\nproxy-connection: c\r\n")), ("cookies", asks("GET", lines="cookie: a=1; b=2\r\ncookie: c=3\r\n")),
                       ("HTTP/1.0", b"GET /framed HTTP/1.0\r\n\r\n"), ("HTTP/1.0 keep-alive", b"GET /framed HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n"),
                       ("absolute", b"GET http://b/framed HTTP/1.1\r\nhost: b\r\n\r\n"), ("absolute https", b"GET https://b/framed HTTP/1.1\r\nhost: b\r\n\r\n"), ("no host", b"GET /framed HTTP/1.0\r\nx: y\r\n\r\n"),
                       ("capitals", asks("GET", lines="X-AbC: Def\r\n")), ("many fields", asks("GET", lines="".join(f"x{n}: {'v' * 100}\r\n" for n in range(90)))),
                       ("a huge field", asks("GET", lines=f"x: {'v' * 14000}\r\n"))):
        served("request, " + name, [text], GOOD if name != "HEAD" else [headers(1, ANSWER)])
    upgrade = asks("GET", lines="connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n")
    asked, connects = ("HEADERS/1 .*", 1), [(8, 1)]
    served("upgrade that is not offered", [upgrade, None, None], ["now", None, None, "close"])
    greeted("upgrade", connects, [upgrade, None, b"abc", None, None], ["now", asked, headers(1, b"\x88", 4), ("DATA/1 3", 1), data(1, b"xyz"), None, "close"])
    greeted("upgrade ended by its client", connects, [upgrade, None, b"abc", "shut", None], ["now", asked, headers(1, b"\x88", 4), ("DATA/1 3 end", 1), data(1, b"xyz"), None, "close"])
    greeted("upgrade refused", connects, [upgrade, None, None], ["now", asked, headers(1, field(":status", "403") + field("content-length", "5"), 4), data(1, b"hello"), None, "close"])
    greeted("upgrade reset", connects, [upgrade, None, None], ["now", asked, reset(1, CANCEL), None, "close"])
    served("CONNECT", [b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n"], GOOD)


def heads_of():
    """Heads of servers, large and in pieces."""
    for count in (5, 6, 30, 40):
        served(f"head in {count} frames", [asks("GET")], [frame(1, 0, 1, ANSWER), *[frame(9, 0, 1, field(f"x{n}", "y")) for n in range(count - 2)], frame(9, 4, 1, field("z", "y")), data(1, b"hello")])
    served("a huge head", [asks("GET")], [headers(1, ANSWER + b"".join(b"\0\2x%c\x7f\x09" % (97 + n) + b"v" * 136 for n in range(25)), 4), data(1, b"hello")])
    served("110 fields", [asks("GET")], [headers(1, ANSWER + b"".join(field(f"x{n}", "") for n in range(110)), 4), data(1, b"hello")])
    served("continuation of another stream", [asks("GET")], [frame(1, 0, 1, ANSWER[:3]), frame(9, 4, 3, ANSWER[3:])])
    served("data within a head", [asks("GET")], [frame(1, 0, 1, ANSWER[:3]), data(1, b"hello")])
    served("table used twice", [asks("GET", "/kept"), None, asks("GET", "/kept")], [headers(1, b"\x88\x0f\x0d\x015\x40\2xa\2bc", 4), data(1, b"hello"), ("HEADERS/.", 2), headers(3, b"\x88\x0f\x0d\x015\xbe", 4), data(3, b"hello"), None, "close"])


def kept():
    """What a connection to a server that served one request makes of the next."""
    get = asks("GET", "/kept")
    second = [headers(3, ANSWER, 4), data(3, b"hello"), None, "close"]
    served("two requests", [get, None, get], [*GOOD, ("HEADERS/.", 2), *second])
    served("two requests, goaway between", [get, None, None, get], [*GOOD, frame(7, 0, 0, struct.pack(">II", 1, 0)), None, "close"])
    served("ping of 7 for the second", [get, None, get], [*GOOD, ("HEADERS/.", 2), frame(6, 0, 0, b"1234567")])
    served("bad head for the second", [get, None, get], [*GOOD, ("HEADERS/.", 2), headers(3, b"\x88" + field("X", "y")), None, "close"])
    served("close for the second", [get, None, get], [*GOOD, ("HEADERS/.", 2), "close"])
    served("reset for the second", [get, None, get], [*GOOD, ("HEADERS/.", 2), reset(3, CANCEL), None, "close"])
    served("late data of the first", [get, None, get], [headers(1, ANSWER, 4), data(1, b"hello", 0), None, None, data(1, b"", 1), ("HEADERS/.", 2), *second])
    served("reset behind the first", [get, None, None, get], [*GOOD, reset(1, CANCEL), ("HEADERS/.", 2), *second])
    served("window of the first", [get, None, None, get], [*GOOD, window(1, 5), ("HEADERS/.", 2), *second])
    served("settings between", [get, None, None, get], [*GOOD, frame(4, 0, 0, struct.pack(">HI", 4, 100000)), frame(6, 0, 0, b"12345678"), ("HEADERS/.", 2), *second])
    served("ping of 7 at rest", [get, None, None, get], [*GOOD, None, frame(6, 0, 0, b"1234567")])


def together():
    """Streams of a client beside each other on one connection to a server, and HTTP/2 on both sides."""
    one, two = headers(1, to("/kept")), headers(3, to("/kept"))
    answers = [headers(1, ANSWER, 4), headers(3, ANSWER, 4), data(3, b"HELLO"), data(1, b"hello"), None, "close"]
    both("two at once", [one, None, two], [("HEADERS/.", 2), *answers])
    both("one is reset", [one, None, two], [("HEADERS/.", 2), reset(1, CANCEL), headers(3, ANSWER, 4), data(3, b"hello"), None, "close"])
    both("the client resets one", [one, None, two, None, reset(1, CANCEL)], [("HEADERS/.", 2), ("RST/1", 1), headers(3, ANSWER, 4), data(3, b"hello"), None, "close"])
    both("the client resets one that is answered", [one, None, two, None, None, reset(1, CANCEL)], [("HEADERS/.", 2), headers(1, ANSWER, 4), data(1, b"he", 0), ("RST/1", 1), headers(3, ANSWER, 4), data(3, b"hello"), None, "close"])
    both("goaway of one of two", [one, None, two], [("HEADERS/.", 2), frame(7, 0, 0, struct.pack(">II", 3, 0)), *answers])
    both("both are cut", [one, None, two], [("HEADERS/.", 2), headers(1, ANSWER, 4), data(1, b"he", 0), None, "close"])
    both("a broken frame for two", [one, None, two], [("HEADERS/.", 2), headers(1, ANSWER, 4), data(1, b"he", 0), None, frame(6, 0, 0, b"1234567")])
    both("a bad head for one", [one, None, two], [("HEADERS/.", 2), headers(1, b"\x88" + field("X", "y")), headers(3, ANSWER, 4), data(3, b"hello"), None, "close"])
    get, post = headers(1, to("/framed")), headers(1, to("/framed", method=b"\x83"), 4)
    both("get", [get], GOOD)
    both("a response without a length", [get], [headers(1, b"\x88", 4), data(1, b"hello")])
    both("no body", [get], [headers(1, b"\x88")])
    both("an end alone", [get], [headers(1, b"\x88", 4), None, data(1, b"")])
    both("trailers", [get], [headers(1, b"\x88", 4), data(1, b"hello", 0), headers(1, field("x", "y"))])
    both("trailers behind a head", [get], [headers(1, b"\x88", 4), None, headers(1, field("grpc-status", "1"))])
    both("early hints", [get], [headers(1, field(":status", "103") + field("link", "x"), 4), None, *GOOD])
    both("head", [headers(1, to("/framed", method=field(":method", "HEAD")))], [headers(1, ANSWER)])
    both("204", [get], [headers(1, field(":status", "204"))])
    both("304 with a length", [get], [headers(1, field(":status", "304") + field("content-length", "5"))])
    both("post", [post, data(1, b"abc")], [("DATA/1 3 end", 1), *GOOD])
    both("post with a length", [headers(1, to("/framed", field("content-length", "3"), b"\x83"), 4), data(1, b"abc")], [("DATA/1 3 end", 1), *GOOD])
    both("post with trailers", [post, data(1, b"abc", 0), headers(1, field("x", "y"))], [("HEADERS/1 x=y end", 1), *GOOD])
    both("post with an end alone", [post, data(1, b"abc", 0), None, data(1, b"")], [("DATA/1 3 end", 1), *GOOD])
    both("post of nothing", [post, None, data(1, b"")], [("DATA/1", 1), *GOOD])
    both("post answered early", [post, data(1, b"abc", 0), None, None, data(1, b"def")], [("DATA/1 3", 1), *GOOD])
    both("post reset by its client", [post, data(1, b"abc", 0), None, reset(1, CANCEL)], [("DATA/1 3", 1)])
    both("post reset by the server", [post, data(1, b"abc", 0), None, None, data(1, b"def")], [("DATA/1 3", 1), reset(1, CANCEL)])
    both("response reset by its client", [get, None, reset(1, CANCEL)], [headers(1, ANSWER, 4), data(1, b"he", 0)])
    both("response reset by the server", [get], [headers(1, ANSWER, 4), data(1, b"he", 0), None, reset(1, b"\0\0\0\2")])
    both("response cut", [get], [headers(1, ANSWER, 4), data(1, b"he", 0), None, "close"])
    both("too few data", [get], [headers(1, ANSWER, 4), None, data(1, b"he")])
    both("bad trailers", [get], [headers(1, b"\x88", 4), data(1, b"hello", 0), None, headers(1, field("X", "y"))])
    both("te trailers", [headers(1, to("/framed", field("te", "trailers")))], GOOD)
    both("cookies", [headers(1, to("/framed", field("cookie", "a=1") + field("cookie", "b=2")))], GOOD)
    both("another scheme", [headers(1, b"\x82" + field(":scheme", "ftp") + field(":path", "/framed") + AUTHORITY)], GOOD)
    both("https", [headers(1, b"\x82\x87" + field(":path", "/framed") + AUTHORITY)], GOOD)
    both("host alone", [headers(1, b"\x82\x86" + field(":path", "/framed") + field("host", "a"))], GOOD)
    both("goaway of the client", [get, frame(7, 0, 0, b"\0" * 8)], [None, None, None, *GOOD])
    both("the client closes its side", [get, None, "shut"], [None, None, None, *GOOD])


# ---------------------------------------------------------------- HTTP/1

def raw(name, *parts, method=None):
    """What a server of HTTP/1 answers."""
    name = "h1 server: " + name
    CASES[name] = ("raw", [part.encode("latin-1") if isinstance(part, str) and part not in ("shut", "close") else part for part in parts])
    if method:
        METHOD[name] = method


def one(name, *parts):
    """What a client of HTTP/1 sends."""
    CASES["h1 " + name] = ("one", [part.encode("latin-1") if isinstance(part, str) and part not in ("shut", "wait") else part for part in parts])


ODD = ["\0", "\x01", "\t", "\n", "\x0b", "\x0c", "\r", "\x1f", " ", "!", '"', "#", "%", "(", "/", ":", ";", "@", "[", "\\", "]", "^", "`", "{", "|", "}", "~", "\x7f", "\x80", "\xff"]


def old():
    host = "host: a\r\n"
    for byte in ODD:
        one(f"byte {byte!r} in the method", f"G{byte}T / HTTP/1.1\r\n{host}\r\n")
        one(f"byte {byte!r} in the path", f"GET /a{byte}b HTTP/1.1\r\n{host}\r\n")
        one(f"byte {byte!r} in the version", f"GET / HTTP/1.1{byte}\r\n{host}\r\n")
        one(f"byte {byte!r} in a name", f"GET / HTTP/1.1\r\n{host}x{byte}y: z\r\n\r\n")
        one(f"byte {byte!r} behind a name", f"GET / HTTP/1.1\r\n{host}x{byte}: z\r\n\r\n")
        one(f"byte {byte!r} in a value", f"GET / HTTP/1.1\r\n{host}x: y{byte}z\r\n\r\n")
        one(f"byte {byte!r} in the host", f"GET / HTTP/1.1\r\nhost: a{byte}b\r\n\r\n")
        one(f"byte {byte!r} in a chunk's size", f"POST / HTTP/1.1\r\n{host}transfer-encoding: chunked\r\n\r\n3{byte}\r\nabc\r\n0\r\n\r\n")
        one(f"byte {byte!r} behind a chunk", f"POST / HTTP/1.1\r\n{host}transfer-encoding: chunked\r\n\r\n3\r\nabc{byte}0\r\n\r\n")
        raw(f"byte {byte!r} in the version", f"HTTP/1.1{byte} 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        raw(f"byte {byte!r} in the reason", f"HTTP/1.1 200 O{byte}K\r\ncontent-length: 5\r\n\r\nhello")
        raw(f"byte {byte!r} in a name", f"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx{byte}y: z\r\n\r\nhello")
        raw(f"byte {byte!r} in a value", f"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: y{byte}z\r\n\r\nhello")
        raw(f"byte {byte!r} in a chunk's size", f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5{byte}\r\nhello\r\n0\r\n\r\n", None, "close")
        raw(f"byte {byte!r} behind a chunk", f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello{byte}0\r\n\r\n", None, "close")
    for status in ("20", "099", "100", "101", "103", "199", "204", "205", "304", "600", "999", "1000", "2x0", "-20", "", "+20"):
        raw(f"status {status}", f"HTTP/1.1 {status} OK\r\ncontent-length: 5\r\n\r\nhello", None, "close")
        raw(f"status {status} alone", f"HTTP/1.1 {status}\r\n\r\n", None, "close")
    for name, lines in (("two lengths", "content-length: 5\r\ncontent-length: 6"), ("the same length twice", "content-length: 5\r\ncontent-length: 5"),
                        ("a list of lengths", "content-length: 5, 5"), ("length +5", "content-length: +5"), ("length -5", "content-length: -5"), ("length 05", "content-length: 05"),
                        ("empty length", "content-length:"), ("length 5x", "content-length: 5x"), ("huge length", "content-length: 99999999999999999999"),
                        ("length and chunks", "content-length: 5\r\ntransfer-encoding: chunked"), ("gzip, chunked", "transfer-encoding: gzip, chunked"),
                        ("chunked, gzip", "transfer-encoding: chunked, gzip"), ("chunked twice", "transfer-encoding: chunked\r\ntransfer-encoding: chunked"),
                        ("empty coding", "transfer-encoding:"), ("identity", "transfer-encoding: identity"), ("Chunked", "transfer-encoding: Chunked"), ("xchunked", "transfer-encoding: xchunked"),
                        ("folded", "x: y\r\n z"), ("no colon", "xyz"), ("colon first", ": xyz"), ("close", "connection: close"), ("keep-alive", "connection: keep-alive"),
                        ("close, keep-alive", "connection: close, keep-alive"), ("names a field", "x: y\r\nconnection: x"), ("upgrade", "connection: upgrade\r\nupgrade: foo")):
        one("POST with " + name, f"POST / HTTP/1.1\r\n{host}{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\n", None)
        one("GET with " + name, f"GET / HTTP/1.1\r\n{host}{lines}\r\n\r\n")
        raw("head with " + name, f"HTTP/1.1 200 OK\r\n{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\n", None, "close")
        raw("1.0 with " + name, f"HTTP/1.0 200 OK\r\n{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\n", None, "close")
    for version in ("HTTP/1.0", "HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "HTTP/1", "HTTP/1.10", "HTTP/11.1", "http/1.1", "RTSP/1.0", "", "ABC"):
        one(f"version {version}", f"GET / {version}\r\n{host}\r\n")
        raw(f"version {version}", f"{version} 200 OK\r\ncontent-length: 5\r\n\r\nhello", None, "close")
    for name, line in (("no host", ""), ("two hosts", "host: a\r\nhost: b\r\n"), ("twice the host", "host: a\r\nhost: a\r\n"), ("empty host", "host:\r\n"), ("port 80", "host: a:80\r\n"),
                       ("port 443", "host: a:443\r\n"), ("port x", "host: a:x\r\n"), ("two ports", "host: a:1:2\r\n"), ("address", "host: [::1]:80\r\n")):
        for target in ("/", "http://a/", "http://b/", "https://a:443/x", "http://a:80", "*"):
            one(f"{name}, target {target}", f"GET {target} HTTP/1.1\r\n{line}\r\n")
        one(f"{name}, CONNECT", f"CONNECT a:80 HTTP/1.1\r\n{line}\r\n")
        one(f"{name}, OPTIONS *", f"OPTIONS * HTTP/1.1\r\n{line}\r\n")
    for name, text in (("nothing", ""), ("an empty line", "\r\n"), ("half a request", "GET / HT"), ("a head that does not end", f"GET / HTTP/1.1\r\n{host}"), ("no target", f"GET HTTP/1.1\r\n{host}\r\n"),
                       ("a request and the end", f"GET / HTTP/1.1\r\n{host}\r\n"), ("half a body and the end", f"POST / HTTP/1.1\r\n{host}content-length: 9\r\n\r\nabc"),
                       ("half a chunk and the end", f"POST / HTTP/1.1\r\n{host}transfer-encoding: chunked\r\n\r\n9\r\nabc"), ("lines that end in LF", f"GET / HTTP/1.1\nhost: a\n\n"),
                       ("two requests", f"GET / HTTP/1.1\r\n{host}\r\nGET /b HTTP/1.1\r\n{host}\r\n"), ("a request and dirt", f"GET / HTTP/1.1\r\n{host}\r\n\0\1\2 dirt\r\n\r\n"),
                       ("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), ("spaces first", f"  GET / HTTP/1.1\r\n{host}\r\n"), ("two spaces", f"GET  /  HTTP/1.1\r\n{host}\r\n"),
                       ("HTTP/0.9", "GET /\r\n")):
        one(name, text, None)
        # The end comes before any answer.
        one(name + ", shut", *([text.replace("GET / HTTP", "GET /slow HTTP")] if text else []), "shut")
    for name, text in (("nothing", ""), ("half a line", "HTTP/1.1 20"), ("half a head", "HTTP/1.1 200 OK\r\nx: y\r\n"), ("half a body", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe"),
                       ("half a chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe"), ("chunks without an end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                       ("a body until the end", "HTTP/1.1 200 OK\r\n\r\nhello"), ("more than said", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello!"), ("dirt", "dirt\r\n\r\n"),
                       ("lines that end in LF", "HTTP/1.1 200 OK\ncontent-length: 5\n\nhello"), ("100 and the end", "HTTP/1.1 100 Continue\r\n\r\n"),
                       ("100, then an answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
                       ("103, then an answer", "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
                       ("two answers", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
                       ("trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n"), ("broken trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx y\r\n\r\n"),
                       ("an extension", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n"), ("a huge chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n")):
        raw(name, *([text] if text else []), None, "close")
        raw(name + ", open", *([text] if text else []), None, "shut")
        raw(name + ", for HEAD", *([text] if text else []), None, "close", method=b"HEAD")


servers()
uploads()
windows()
requests_to()
heads_of()
kept()
together()
old()
