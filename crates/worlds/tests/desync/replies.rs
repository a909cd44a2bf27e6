//! Hostile responses: what an origin may say to `GET /hostile`, or to HEAD, and the statuses that the client
//! may see then.

use crate::frames::{data, frame, headers};

/// A response of HTTP/1.
pub struct Reply {
    pub method: &'static str,
    pub bytes: &'static [u8],
    /// The origin closes behind it.
    pub close: bool,
    /// What the client sees: the status of a response that is whole, or 0 where it is not.
    pub want: &'static [u16],
}

const fn reply(bytes: &'static [u8], want: &'static [u16]) -> Reply {
    Reply { method: "GET", bytes, close: false, want }
}
const fn last(bytes: &'static [u8], want: &'static [u16]) -> Reply {
    Reply { method: "GET", bytes, close: true, want }
}
const fn to_head(bytes: &'static [u8], want: &'static [u16]) -> Reply {
    Reply { method: "HEAD", bytes, close: false, want }
}

pub const REPLIES: &[Reply] = &[
    // Lengths and codings at odds.
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551621\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nhello", &[200, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nX: y\r\n Content-Length: 50\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    last(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", &[200]),
    // Chunks.
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\ry\r\nhello\r\n0\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX : y\r\n\r\n", &[0, 502]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\rz\r\n\r\n", &[0, 502]),
    last(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", &[0, 502]),
    last(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", &[0, 502]),
    // More than was asked for.
    reply(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[200]),
    reply(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[204]),
    reply(b"HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[204]),
    reply(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n", &[204]),
    reply(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 44\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[304]),
    reply(b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n", &[304]),
    to_head(b"HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[200]),
    to_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n", &[200]),
    to_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    to_head(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", &[200]),
    to_head(b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil", &[204]),
    // Interim responses.
    reply(b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1 100 Continue\r\nContent-Length: 43\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[502]),
    reply(b"HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", &[502]),
    reply(b"HTTP/1.1 199 Whatever\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    // Status lines.
    reply(b"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 099 OK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 0x1 OK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1\t200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 O\rK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"hello\r\n\r\n", &[502]),
    reply(b" HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    // Fields.
    reply(b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nX\0: a\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nX a: b\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\nX\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 5\r\n\r\nhello", &[502]),
    reply(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: foo\r\nContent-Length: 5\r\n\r\nhello", &[200]),
    reply(b"HTTP/1.1 200 OK\r\n\rContent-Length: 5\r\n\r\nhello", &[502]),
    last(b"HTTP/1.1 200 OK\r\n\r\nhello", &[200]),
    last(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", &[502]),
    last(b"", &[0, 502]),
];

/// A response of HTTP/2: its frames on a stream.
pub struct Stream {
    pub method: &'static str,
    pub frames: fn(u32) -> Vec<u8>,
    pub want: &'static [u16],
}

type Line = (&'static [u8], &'static [u8]);

const OK: Line = (b":status", b"200");

fn whole(stream: u32, lines: &[Line]) -> Vec<u8> {
    [headers(stream, lines, false), data(stream, b"hello", true)].concat()
}

/// A head and nothing more, with a field.
macro_rules! field {
    ($name:expr, $value:expr, $want:expr) => {
        Stream { method: "GET", frames: |id| whole(id, &[OK, ($name, $value)]), want: $want }
    };
}
macro_rules! stream {
    ($frames:expr, $want:expr) => {
        Stream { method: "GET", frames: $frames, want: $want }
    };
}
macro_rules! status {
    ($status:expr, $want:expr) => {
        stream!(|id| whole(id, &[(b":status", $status)]), $want)
    };
}

/// A server that breaks the protocol has not answered: where the connection was used before, the client is
/// told to send its request again, as HAProxy does.
const BROKEN: &[u16] = &[502, 0];

pub const STREAMS: &[Stream] = &[
    field!(b"x", b"y", &[200]),
    field!(b"content-length", b"5", &[200]),
    field!(b"content-length", b"4", &[502, 0]),
    field!(b"content-length", b"6", &[502, 0]),
    field!(b"content-length", b"+5", &[502]),
    field!(b"content-length", b"-5", &[502]),
    field!(b"content-length", b"0x5", &[502]),
    field!(b"content-length", b"5, 6", &[502]),
    field!(b"content-length", b"", &[502]),
    field!(b"content-length", b"18446744073709551621", &[502]),
    field!(b"content-length", b"5\r\nx: y", &[502]),
    field!(b"transfer-encoding", b"chunked", &[502]),
    field!(b"connection", b"close", &[502]),
    field!(b"keep-alive", b"timeout=5", &[502]),
    field!(b"proxy-connection", b"close", &[502]),
    field!(b"upgrade", b"foo", &[502]),
    field!(b"X", b"y", &[502]),
    field!(b"", b"y", BROKEN),
    field!(b"x y", b"z", &[502]),
    field!(b"x:y", b"z", &[502]),
    field!(b"x\r\ny", b"z", &[502]),
    field!(b"x\ny", b"z", &[502]),
    field!(b"x\0y", b"z", &[502]),
    field!(b"x\xe9", b"z", &[502]),
    field!(b"transfer-encoding ", b"chunked", &[502]),
    field!(b"x", b"a\r\ncontent-length: 0", &[502]),
    field!(b"x", b"a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", &[502]),
    field!(b"x", b"a\nb", &[502]),
    field!(b"x", b"a\rb", &[502]),
    field!(b"x", b"a\0b", &[502]),
    field!(b"x", b" a", &[200]),
    field!(b"x", b"a ", &[200]),
    field!(b":status", b"200", &[502]),
    field!(b":path", b"/", &[502]),
    field!(b":method", b"GET", &[502]),
    field!(b":foo", b"bar", &[502]),
    field!(b"te", b"chunked", &[200, 502]),
    field!(b"set-cookie", b"a=b\r\nx: y", &[502]),
    status!(b"", &[502]),
    status!(b"20", &[502]),
    status!(b"2000", &[502]),
    status!(b"200 OK", &[502]),
    status!(b"200\r\nx: y", &[502]),
    status!(b"+20", &[502]),
    status!(b"099", &[502]),
    status!(b"101", &[502]),
    status!(b"100", BROKEN),
    status!(b"\xd9\xa2\xd9\xa0\xd9\xa0", &[502]),
    stream!(|id| whole(id, &[(b"x", b"y"), OK]), &[502]),
    stream!(|id| whole(id, &[(b"x", b"y")]), &[502]),
    stream!(|id| whole(id, &[]), BROKEN),
    stream!(|id| whole(id, &[OK, OK]), &[502]),
    // Several lengths.
    stream!(|id| whole(id, &[OK, (b"content-length", b"5"), (b"content-length", b"5")]), &[200]),
    stream!(|id| whole(id, &[OK, (b"content-length", b"5"), (b"content-length", b"6")]), &[502]),
    // Bodies where there can be none.
    stream!(|id| whole(id, &[(b":status", b"204")]), &[204, 502]),
    stream!(|id| whole(id, &[(b":status", b"304")]), &[304, 502]),
    stream!(|id| headers(id, &[(b":status", b"204"), (b"content-length", b"50")], true), &[204]),
    stream!(|id| headers(id, &[(b":status", b"304"), (b"content-length", b"50")], true), &[304]),
    stream!(|id| headers(id, &[OK, (b"content-length", b"5")], true), &[502]),
    Stream {
        method: "HEAD",
        frames: |id| headers(id, &[OK, (b"content-length", b"50")], true),
        want: &[200],
    },
    Stream { method: "HEAD", frames: |id| whole(id, &[OK, (b"content-length", b"5")]), want: &[200, 502] },
    Stream { method: "HEAD", frames: |id| whole(id, &[OK]), want: &[200, 502] },
    // Interim ones.
    stream!(
        |id| [headers(id, &[(b":status", b"103"), (b"link", b"<a>")], false), whole(id, &[OK])].concat(),
        &[200]
    ),
    stream!(|id| headers(id, &[(b":status", b"103")], true), &[502]),
    stream!(
        |id| [headers(id, &[(b":status", b"103"), (b"content-length", b"50")], false), whole(id, &[OK])]
            .concat(),
        &[200]
    ),
    stream!(
        |id| [headers(id, &[(b":status", b"103"), (b"x", b"a\r\nb")], false), whole(id, &[OK])].concat(),
        &[502]
    ),
    stream!(|id| [headers(id, &[(b":status", b"101")], false), whole(id, &[OK])].concat(), &[502]),
    stream!(
        |id| [headers(id, &[(b":status", b"100")], false), data(id, b"evil", false), whole(id, &[OK])]
            .concat(),
        BROKEN
    ),
    // Frames out of order.
    stream!(|id| [data(id, b"evil", false), whole(id, &[OK])].concat(), BROKEN),
    stream!(|id| [whole(id, &[OK]), data(id, b"evil", true)].concat(), &[200, 0]),
    stream!(|id| [whole(id, &[OK]), headers(id, &[OK], true)].concat(), &[200, 0]),
    stream!(
        |id| [headers(id, &[OK], false), headers(id, &[OK], false), data(id, b"evil", true)].concat(),
        &[502, 0]
    ),
    stream!(
        |id| [headers(id, &[OK], false), data(id, b"hello", false), frame(3, 0, id, &[0, 0, 0, 2])].concat(),
        &[0, 502]
    ),
    stream!(|id| [headers(id, &[OK], false), frame(3, 0, id, &[0, 0, 0, 0])].concat(), &[0, 502]),
    stream!(|id| frame(3, 0, id, &[0, 0, 0, 1]), &[0, 502]),
    stream!(|id| [headers(2, &[OK], false), whole(id, &[OK])].concat(), BROKEN),
    stream!(|id| [frame(5, 4, id, &[0, 0, 0, 2, 0x82]), whole(id, &[OK])].concat(), BROKEN),
    stream!(|id| frame(1, 4, id, &[0x80]), BROKEN),
    stream!(|id| [frame(1, 0, id, &[0x88]), data(id, b"evil", true)].concat(), BROKEN),
    stream!(|id| [frame(1, 0, id, &[0x88]), frame(9, 4, id, &[]), data(id, b"hello", true)].concat(), &[200]),
    // Trailers.
    stream!(
        |id| [headers(id, &[OK], false), data(id, b"hello", false), headers(id, &[(b"x", b"y")], true)]
            .concat(),
        &[200]
    ),
    stream!(
        |id| [
            headers(id, &[OK], false),
            data(id, b"hello", false),
            headers(id, &[(b"content-length", b"50")], true)
        ]
        .concat(),
        &[0, 502]
    ),
    stream!(
        |id| [headers(id, &[OK], false), data(id, b"hello", false), headers(id, &[OK], true)].concat(),
        &[0, 502]
    ),
    stream!(
        |id| [
            headers(id, &[OK], false),
            data(id, b"hello", false),
            headers(id, &[(b"x", b"a\r\n\r\nHTTP/1.1 200 OK")], true)
        ]
        .concat(),
        &[0, 502]
    ),
    stream!(
        |id| [
            headers(id, &[OK], false),
            data(id, b"hello", false),
            headers(id, &[(b"transfer-encoding", b"chunked")], true)
        ]
        .concat(),
        &[0, 502]
    ),
    stream!(
        |id| [
            headers(id, &[OK, (b"content-length", b"9")], false),
            data(id, b"hello", false),
            headers(id, &[(b"x", b"y")], true)
        ]
        .concat(),
        &[0, 502]
    ),
];
