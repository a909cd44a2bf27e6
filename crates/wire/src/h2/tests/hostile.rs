//! Each MUST of RFC 9113 that a peer can break, with the error that has to follow.

use super::*;
use crate::h2::frame::*;

/// What follows from input: nothing bad, the end of stream 1, or the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Fine,
    Stream(Code),
    Connection(Code),
}

use End::{Connection as Conn, Fine, Stream as Strm};

const PROTOCOL: Code = Code::PROTOCOL_ERROR;
const FLOW: Code = Code::FLOW_CONTROL_ERROR;
const SIZE: Code = Code::FRAME_SIZE_ERROR;
const CLOSED: Code = Code::STREAM_CLOSED;

fn check(make: fn() -> Connection, cases: &[(&str, Vec<Vec<u8>>, End)]) {
    for (section, input, expected) in cases {
        let input = input.concat();
        let (_, sent, fatal) = feed(&mut make(), &input);
        let goaway = sent.iter().find(|(kind, ..)| *kind == GOAWAY).map(|(.., code)| Code(*code));
        let reset = sent.iter().find(|(kind, ..)| *kind == RST_STREAM).map(|(.., code)| Code(*code));
        let end = match (fatal, reset) {
            (Some(fatal), _) => {
                assert_eq!(Some(fatal.code), goaway, "{section}: the peer is told");
                Conn(fatal.code)
            }
            (None, Some(code)) => Strm(code),
            (None, None) => Fine,
        };
        assert_eq!(end, *expected, "{section}");
        in_pieces(make, &input, section, &sent, fatal);
    }
}

/// Byte by byte, the same comes of it.
fn in_pieces(make: fn() -> Connection, input: &[u8], section: &str, expected: &Sent, fatal: Option<Fatal>) {
    let mut connection = make();
    let (mut head, mut out, mut at) = (Head::request(), Vec::new(), 0);
    'pieces: for upto in 1..=input.len() {
        loop {
            match connection.receive(&input[at..upto], &mut head, &mut out) {
                Err(error) => {
                    assert_eq!(Some(error), fatal, "{section}");
                    break 'pieces;
                }
                Ok(Received { consumed, event }) => {
                    at += consumed;
                    match event {
                        Some(Event::Data { stream, bytes, .. }) => {
                            connection.release(stream, bytes.len(), &mut out)
                        }
                        Some(_) => {}
                        None => break,
                    }
                }
            }
        }
    }
    let bad = |sent: &Sent| -> Sent {
        sent.iter().copied().filter(|(kind, ..)| matches!(*kind, GOAWAY | RST_STREAM)).collect()
    };
    assert_eq!(bad(&sent(&out)), bad(expected), "{section}");
}

fn plain() -> Connection {
    server(Limits::default())
}

fn get(stream: u32) -> Vec<u8> {
    headers(stream, true, &GET)
}

fn post(stream: u32) -> Vec<u8> {
    headers(stream, false, &POST)
}

fn data(stream: u32, end: bool, text: &[u8]) -> Vec<u8> {
    frame(DATA, u8::from(end), stream, text)
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

#[test]
fn frames_and_their_sizes() {
    check(
        plain,
        &[
            ("4.1 an unknown frame is ignored", vec![frame(99, 255, 1, b"x"), get(1)], Fine),
            ("4.1 the reserved bit is ignored", vec![frame(PING, 0, 1 << 31, &[0; 8])], Fine),
            ("4.2 a frame above the limit", vec![post(1), data(1, false, &[0; 16_385])], Conn(SIZE)),
            ("4.2 headers above the limit", vec![frame(HEADERS, 4, 1, &[0; 16_385])], Conn(SIZE)),
            ("6.1 data on stream 0", vec![data(0, false, b"x")], Conn(PROTOCOL)),
            ("6.1 padding of the whole frame", vec![post(1), frame(DATA, 8, 1, &[2, 0])], Conn(PROTOCOL)),
            ("6.1 all but padding", vec![post(1), frame(DATA, 8, 1, &[1, 0])], Fine),
            ("6.1 no room for its length", vec![post(1), frame(DATA, 8, 1, &[])], Conn(SIZE)),
            ("6.2 headers on stream 0", vec![headers(0, true, &GET)], Conn(PROTOCOL)),
            ("6.2 padding beyond the frame", vec![frame(HEADERS, 4 | 8, 1, &[5, 0])], Conn(PROTOCOL)),
            ("6.2 no room for a priority", vec![frame(HEADERS, 4 | 32, 1, &[0; 4])], Conn(SIZE)),
            ("6.3 priority on stream 0", vec![frame(PRIORITY, 0, 0, &[0; 5])], Conn(PROTOCOL)),
            ("6.3 priority of 4 bytes", vec![get(1), frame(PRIORITY, 0, 1, &[0; 4])], Strm(SIZE)),
            ("6.3 priority of an idle stream", vec![frame(PRIORITY, 0, 5, &[0, 0, 0, 1, 9]), get(5)], Fine),
            ("6.4 reset of 3 bytes", vec![post(1), frame(RST_STREAM, 0, 1, &[0; 3])], Conn(SIZE)),
            ("6.4 reset of stream 0", vec![frame(RST_STREAM, 0, 0, &[0; 4])], Conn(PROTOCOL)),
            ("6.4 reset of an idle stream", vec![frame(RST_STREAM, 0, 1, &[0; 4])], Conn(PROTOCOL)),
            ("6.5 settings on a stream", vec![frame(SETTINGS, 0, 1, &[])], Conn(PROTOCOL)),
            ("6.5 settings of 5 bytes", vec![frame(SETTINGS, 0, 0, &[0; 5])], Conn(SIZE)),
            ("6.5 an acknowledgement that says more", vec![frame(SETTINGS, 1, 0, &[0; 6])], Conn(SIZE)),
            ("6.5.2 push 2", vec![setting(2, 2)], Conn(PROTOCOL)),
            ("6.5.2 window 2^31", vec![setting(4, 1 << 31)], Conn(FLOW)),
            ("6.5.2 frames of 16383", vec![setting(5, 16_383)], Conn(PROTOCOL)),
            ("6.5.2 frames of 2^24", vec![setting(5, 1 << 24)], Conn(PROTOCOL)),
            ("6.5.2 an unknown setting", vec![setting(77, 1), get(1)], Fine),
            ("8441 3: connect 2 means nothing to a server", vec![setting(8, 2)], Fine),
            ("8441 3: nor is it missed when withdrawn", vec![setting(8, 1), setting(8, 0)], Fine),
            ("9218 2.1: no priorities 2", vec![setting(9, 2)], Conn(PROTOCOL)),
            ("9218 7.1: update on a stream", vec![frame(16, 0, 1, &[0, 0, 0, 1])], Conn(PROTOCOL)),
            ("9218 7.1: update too short", vec![frame(16, 0, 0, &[0, 0, 1])], Conn(SIZE)),
            ("9218 7.1: update", vec![frame(16, 0, 0, b"\0\0\0\x01u=1"), get(1)], Fine),
            ("6.6 a push", vec![get(1), frame(5, 4, 1, &[0, 0, 0, 2])], Conn(PROTOCOL)),
            ("6.7 ping on a stream", vec![frame(PING, 0, 1, &[0; 8])], Conn(PROTOCOL)),
            ("6.7 ping of 7 bytes", vec![frame(PING, 0, 0, &[0; 7])], Conn(SIZE)),
            ("6.8 goaway on a stream", vec![frame(GOAWAY, 0, 1, &[0; 8])], Conn(PROTOCOL)),
            ("6.8 goaway of 7 bytes", vec![frame(GOAWAY, 0, 0, &[0; 7])], Conn(SIZE)),
            ("6.9 update of 3 bytes", vec![post(1), frame(WINDOW_UPDATE, 0, 1, &[0; 3])], Conn(SIZE)),
            ("6.9 update of nothing", vec![post(1), frame(WINDOW_UPDATE, 0, 1, &[0; 4])], Strm(PROTOCOL)),
            ("6.9 update of nothing for all", vec![frame(WINDOW_UPDATE, 0, 0, &[0; 4])], Conn(PROTOCOL)),
            ("6.10 continuation of nothing", vec![frame(CONTINUATION, 4, 1, &[])], Conn(PROTOCOL)),
            (
                "6.10 another frame in between",
                vec![frame(HEADERS, 1, 1, &block(&GET)), frame(PING, 0, 0, &[0; 8])],
                Conn(PROTOCOL),
            ),
            (
                "6.10 another stream in between",
                vec![frame(HEADERS, 1, 1, &block(&GET)), frame(CONTINUATION, 4, 3, &[])],
                Conn(PROTOCOL),
            ),
            (
                "6.10 a whole one",
                vec![frame(HEADERS, 1, 1, &block(&GET)), frame(CONTINUATION, 4, 1, &[])],
                Fine,
            ),
            (
                "4.3 a block that can't be decoded",
                vec![frame(HEADERS, 5, 1, &[0x80])],
                Conn(Code::COMPRESSION_ERROR),
            ),
        ],
    );
}

#[test]
fn states_of_streams() {
    let reset = |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    check(
        plain,
        &[
            ("5.1 idle: data", vec![data(1, true, b"x")], Conn(PROTOCOL)),
            ("5.1 idle: window", vec![frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], Conn(PROTOCOL)),
            ("5.1 half-closed: data", vec![get(1), data(1, true, b"x")], Strm(CLOSED)),
            ("5.1 half-closed: headers", vec![get(1), get(1)], Conn(PROTOCOL)),
            ("5.1 half-closed: window", vec![get(1), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], Fine),
            ("5.1 closed by reset: data", vec![post(1), reset(1), data(1, true, b"x")], Strm(CLOSED)),
            ("5.1 closed by reset: headers", vec![post(1), reset(1), get(1)], Conn(CLOSED)),
            (
                "5.1 closed by reset: window",
                vec![post(1), reset(1), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])],
                Fine,
            ),
            ("5.1 closed: priority", vec![post(1), reset(1), frame(PRIORITY, 0, 1, &[0; 5])], Fine),
            ("5.1 closed: reset", vec![post(1), reset(1), reset(1)], Fine),
            ("5.1.1 an even number", vec![get(2)], Conn(PROTOCOL)),
            ("5.1.1 a smaller number", vec![get(5), get(3)], Conn(CLOSED)),
            (
                "7540 5.3.1 depends on itself",
                vec![frame(HEADERS, 37, 1, &[&[0, 0, 0, 1, 9], &block(&GET)[..]].concat())],
                Conn(PROTOCOL),
            ),
            (
                "7540 5.3.1 priority on itself",
                vec![post(1), frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 9])],
                Conn(PROTOCOL),
            ),
            ("8.1 trailers that do not end", vec![post(1), headers(1, false, &[("x", "y")])], Conn(PROTOCOL)),
            ("8.1 trailers", vec![post(1), headers(1, true, &[("x", "y")])], Fine),
            (
                "trailers with a length",
                vec![post(1), headers(1, true, &[("content-length", "0")])],
                Strm(PROTOCOL),
            ),
            ("trailers with a host", vec![post(1), headers(1, true, &[("host", "h")])], Strm(PROTOCOL)),
            ("trailers with te", vec![post(1), headers(1, true, &[("te", "trailers")])], Strm(PROTOCOL)),
            (
                "8.1 pseudo-header in trailers",
                vec![post(1), headers(1, true, &[(":method", "GET")])],
                Strm(PROTOCOL),
            ),
            (
                "what follows a reset of ours",
                vec![post(1), headers(1, true, &[(":path", "/")]), data(1, true, b"x")],
                Strm(PROTOCOL),
            ),
        ],
    );
}

#[test]
fn windows() {
    let huge = |stream| frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff]);
    check(
        plain,
        &[
            ("6.9.1 the connection above 2^31-1", vec![huge(0)], Conn(FLOW)),
            ("6.9.1 a stream above 2^31-1", vec![post(1), huge(1)], Strm(FLOW)),
            (
                "6.9.2 above by a setting",
                vec![post(1), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0xff, 0xff]), setting(4, 0x7fff_ffff)],
                Conn(FLOW),
            ),
        ],
    );
    let small = || server(Limits { window: 100, rxbuf: 100, ..Limits::default() });
    check(
        small,
        &[
            ("6.9.1 more than a stream may", vec![post(1), data(1, false, &[0; 101])], Strm(FLOW)),
            (
                "6.9.1 as much as it may",
                vec![post(1), data(1, false, &[0; 100]), data(1, true, &[0; 100])],
                Fine,
            ),
        ],
    );
}

#[test]
fn malformed_requests() {
    const ONE: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
    let with = |more: &[(&str, &str)]| vec![headers(1, true, &[&GET[..], more].concat())];
    let only = |lines: &[(&str, &str)]| vec![headers(1, true, lines)];
    let bad = Strm(PROTOCOL);
    check(
        plain,
        &[
            ("8.2.1 upper case", with(&[("X-A", "b")]), bad),
            ("8.2.1 empty name", with(&[("", "b")]), Conn(Code::COMPRESSION_ERROR)),
            ("8.2.1 a colon", with(&[("a:b", "c")]), bad),
            ("8.2.1 a blank", with(&[("a b", "c")]), bad),
            ("8.2.1 CR in a value", with(&[("a", "b\rc")]), bad),
            ("8.2.1 LF in a value", with(&[("a", "b\nc")]), bad),
            ("8.2.1 NUL in a value", with(&[("a", "b\0c")]), bad),
            ("8.2.1 a path that begins with a blank", only(&[GET[0], GET[1], (":path", " /")]), bad),
            ("8.2.1 a host that ends with a tab", only(&[ONE[0], ONE[1], ONE[2], ("host", "b\t")]), bad),
            ("8.2.2 a blank before trailers", with(&[("te", " trailers")]), bad),
            (
                "8.2.1 LF in a path",
                only(&[(":method", "GET"), (":scheme", "http"), (":path", "/\r\nx: y")]),
                bad,
            ),
            ("8.2.2 connection", with(&[("connection", "x")]), bad),
            ("8.2.2 keep-alive", with(&[("keep-alive", "x")]), bad),
            ("8.2.2 proxy-connection", with(&[("proxy-connection", "x")]), bad),
            ("8.2.2 transfer-encoding", with(&[("transfer-encoding", "chunked")]), bad),
            ("8.2.2 upgrade", with(&[("upgrade", "x")]), bad),
            ("8.2.2 te", with(&[("te", "gzip")]), bad),
            ("8.2.2 te: trailers", with(&[("te", "trailers")]), Fine),
            ("8.3 unknown pseudo-header", with(&[(":x", "y")]), bad),
            ("8.3 of a response", with(&[(":status", "200")]), bad),
            (
                "8.3 after a field",
                only(&[(":method", "GET"), ("a", "b"), (":scheme", "http"), (":path", "/")]),
                bad,
            ),
            ("8.3 repeated", with(&[(":path", "/x")]), bad),
            ("8.3.1 no method", only(&GET[1..]), bad),
            ("8.3.1 no scheme", only(&[GET[0], GET[2]]), bad),
            ("8.3.1 no path", only(&[GET[0], GET[1]]), bad),
            ("8.3.1 empty path", only(&[GET[0], GET[1], (":path", "")]), bad),
            ("8.3.1 relative path", only(&[GET[0], GET[1], (":path", "x")]), bad),
            ("8.3.1 * with GET, the root for HAProxy", only(&[GET[0], GET[1], (":path", "*")]), Fine),
            ("8.3.1 * with OPTIONS", only(&[(":method", "OPTIONS"), GET[1], (":path", "*")]), Fine),
            ("8.3.1 no authority", only(&ONE), Fine),
            ("8.5 CONNECT", only(&[(":method", "CONNECT"), (":authority", "h:1")]), Fine),
            ("8.5 CONNECT without authority", only(&[(":method", "CONNECT")]), bad),
            (
                "8.5 CONNECT with a path",
                only(&[(":method", "CONNECT"), (":authority", "h:1"), (":path", "/")]),
                bad,
            ),
            (
                "8441 protocol with GET",
                only(&[GET[0], (":protocol", "websocket"), GET[1], GET[2], GET[3]]),
                bad,
            ),
            (
                "8441 extended CONNECT",
                only(&[(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], GET[3]]),
                Fine,
            ),
        ],
    );
}

#[test]
fn lengths_that_are_not_those_of_the_body() {
    let with = |more: &[(&str, &str)]| vec![headers(1, true, &[&GET[..], more].concat())];
    let bad = Strm(PROTOCOL);
    let long = |text: &'static str| headers(1, false, &[&POST[..], &[("content-length", text)]].concat());
    check(
        plain,
        &[
            ("8.1.1 length without a body", with(&[("content-length", "1")]), bad),
            ("8.1.1 length 0 without a body", with(&[("content-length", "0")]), Fine),
            ("8.1.1 a bad length", with(&[("content-length", "+0")]), bad),
            ("8.1.1 two lengths", with(&[("content-length", "0"), ("content-length", "1")]), bad),
            ("8.1.1 twice the same", with(&[("content-length", "0"), ("content-length", "0")]), Fine),
            ("8.1.1 more data than said", vec![long("2"), data(1, false, b"abc")], bad),
            ("8.1.1 less data than said", vec![long("2"), data(1, true, b"a")], bad),
            (
                "8.1.1 less, and trailers",
                vec![long("2"), data(1, false, b"a"), headers(1, true, &[("x", "y")])],
                bad,
            ),
            (
                "8.1.1 as said",
                vec![long("2"), data(1, false, b"a"), data(1, false, b""), data(1, true, b"b")],
                Fine,
            ),
        ],
    );
}

#[test]
fn what_is_no_request_is_answered() {
    for (why, lines) in [
        ("a method", vec![(":method", "GE?T"), GET[1], GET[2]]),
        ("the method of the preface", vec![(":method", "PRI"), GET[1], GET[2]]),
        ("the preface", vec![(":method", "PRI"), GET[1], (":path", "*")]),
        ("a scheme", vec![GET[0], (":scheme", "http://x/?"), GET[2]]),
    ] {
        let (events, sent, fatal) = feed(&mut plain(), &headers(1, true, &lines));
        assert_eq!((events, sent, fatal), (vec!["refused 400 true".to_string()], vec![], None), "{why}");
    }
    for path in ["/a b", "/#a"] {
        let (events, sent, _) = feed(&mut plain(), &headers(1, true, &[GET[0], GET[1], (":path", path)]));
        assert_eq!(events, ["malformed bad byte in :path"]);
        assert_eq!(sent, [(RST_STREAM, 0, 1, PROTOCOL.0)]);
    }
    let raw = feed(&mut plain(), &headers(1, true, &[GET[0], GET[1], (":path", "/\u{e9}"), GET[3]]));
    assert_eq!(raw.0, ["GET http://example.org/\\xc3\\xa9 true"]);
}

#[test]
fn lists_too_large_end_their_stream_and_the_connection_lives() {
    let mut server = plain();
    let value = "v".repeat(4000);
    let mut bomb = vec![0x40, 1, b'x', 127, 0xa1, 0x1e];
    bomb.extend_from_slice(value.as_bytes());
    bomb.extend([0xbe; 1000]);
    let input = [headers(1, true, &GET)[HEADER..].to_vec(), bomb].concat();
    let (events, sent, fatal) = feed(&mut server, &frame(HEADERS, 5, 1, &input));
    assert_eq!((events, fatal), (vec!["malformed header list too large".to_string()], None));
    assert_eq!(sent, vec![(RST_STREAM, 0, 1, PROTOCOL.0)]);
    let many: Vec<_> = GET.into_iter().chain(std::iter::repeat_n(("a", "b"), 101)).collect();
    assert_eq!(feed(&mut server, &headers(3, true, &many)).0, ["malformed header list too large"]);
    assert_eq!(feed(&mut server, &get(5)).0, ["GET http://example.org/ true"]);
}

#[test]
fn bad_responses() {
    let bad = Strm(PROTOCOL);
    let ok = |more: &[(&str, &str)]| headers(1, true, &[&[(":status", "200")][..], more].concat());
    let empty = |status| headers(1, false, &[(":status", status)]);
    let short = headers(1, false, &[(":status", "200"), ("content-length", "2")]);
    check(
        || client(Limits::default()),
        &[
            ("8.3.2 no status", vec![headers(1, true, &[("a", "b")])], bad),
            ("8.3.2 a short status", vec![headers(1, true, &[(":status", "20")])], bad),
            ("8.3.2 a status of letters", vec![headers(1, true, &[(":status", "2x0")])], bad),
            ("8.3 of a request", vec![ok(&[(":path", "/")])], bad),
            ("8.6 status 101", vec![headers(1, false, &[(":status", "101")])], bad),
            ("8.1 an interim response that ends", vec![headers(1, true, &[(":status", "103")])], bad),
            ("8.1 interim, then final", vec![headers(1, false, &[(":status", "103")]), ok(&[])], Fine),
            ("8.1 data before the head", vec![data(1, true, b"x")], bad),
            ("8.1 a length and no body", vec![ok(&[("content-length", "1")])], bad),
            (
                "8.1 304 with a length",
                vec![headers(1, true, &[(":status", "304"), ("content-length", "9")])],
                Fine,
            ),
            (
                "5.1 a stream that nobody opened",
                vec![headers(3, true, &[(":status", "200")])],
                Conn(PROTOCOL),
            ),
            ("5.1.1 a stream of the server", vec![headers(2, true, &[(":status", "200")])], Conn(PROTOCOL)),
            ("8.4 a push", vec![frame(5, 4, 1, &[0, 0, 0, 2])], Conn(PROTOCOL)),
            // It should not; such a server is understood all the same, as by HAProxy.
            ("6.5.2 a server that allows to push", vec![setting(2, 1)], Fine),
            ("6.5.2 a push that is no switch", vec![setting(2, 2)], Conn(PROTOCOL)),
            ("8441.3 a word on CONNECT that is taken back", vec![setting(8, 1), setting(8, 0)], Fine),
            ("8.1 data where there can be none", vec![empty("204"), data(1, true, b"x")], Fine),
            (
                "8.1 trailers that do not end",
                vec![empty("200"), headers(1, false, &[("x", "y")])],
                Conn(PROTOCOL),
            ),
            ("8.1 trailers in capitals", vec![empty("200"), headers(1, true, &[("X", "y")])], bad),
            ("8.1.1 less data than said", vec![short, data(1, true, b"x")], bad),
            ("5.1 data behind the end", vec![ok(&[]), data(1, true, b"x")], Conn(CLOSED)),
            ("what comes twice", vec![ok(&[]), ok(&[])], Conn(CLOSED)),
        ],
    );
}

#[test]
fn the_first_words() {
    let new = || Connection::new(Role::Server, Limits::default(), &mut Vec::new());
    let settings = frame(SETTINGS, 0, 0, &[]);
    for (why, input, code) in [
        ("3.4 HTTP/1", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), Some(PROTOCOL)),
        ("3.4 no settings", [&PREFACE[..], &get(1)].concat(), Some(PROTOCOL)),
        (
            "3.4 an acknowledgement first",
            [&PREFACE[..], &frame(SETTINGS, 1, 0, &[])].concat(),
            Some(PROTOCOL),
        ),
        ("3.4 as it should be", [&PREFACE[..], &settings].concat(), None),
    ] {
        assert_eq!(feed(&mut new(), &input).2.map(|fatal| fatal.code), code, "{why}");
    }
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let mut server = server(Limits { streams: 2, ..Limits::default() });
    let (events, sent, fatal) = feed(&mut server, &[post(1), post(3), post(5)].concat());
    assert_eq!(events.len(), 2);
    assert!(sent.contains(&(RST_STREAM, 0, 5, Code::REFUSED_STREAM.0)), "{sent:?}");
    assert_eq!(fatal, None);
}

#[test]
fn floods_end_the_connection() {
    let reset = |stream| [get(stream), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat();
    let window = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]);
    for (what, one) in [
        ("pings", frame(PING, 0, 0, &[0; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[])),
        ("priorities", frame(PRIORITY, 0, 1, &[0; 5])),
        ("windows", window),
        ("unknown frames", frame(77, 0, 0, &[])),
        ("empty data", data(1, false, &[])),
    ] {
        let (_, sent, fatal) = feed(&mut plain(), &[post(1), one.repeat(10_100)].concat());
        assert_eq!(fatal.map(|fatal| fatal.code), Some(Code::ENHANCE_YOUR_CALM), "{what}");
        assert!(sent.len() < 10_100, "{what}");
    }
    let rapid: Vec<u8> = (0..10_100).flat_map(|number| reset(number * 2 + 1)).collect();
    assert_eq!(feed(&mut plain(), &rapid).2.map(|fatal| fatal.code), Some(Code::ENHANCE_YOUR_CALM));
    let endless = [frame(HEADERS, 1, 1, &[0x82]), frame(CONTINUATION, 0, 1, &[]).repeat(1100)].concat();
    assert_eq!(feed(&mut plain(), &endless).2.map(|fatal| fatal.code), Some(Code::ENHANCE_YOUR_CALM));
    let large = frame(CONTINUATION, 0, 1, &[0; 10_000]).repeat(2);
    let large = [frame(HEADERS, 1, 1, &[0x82]), large].concat();
    assert_eq!(feed(&mut plain(), &large).2.map(|fatal| fatal.code), Some(Code::INTERNAL_ERROR));
}

#[test]
fn an_honest_peer_never_floods() {
    let mut server = plain();
    let mut out = Vec::new();
    for number in 0..20_000u32 {
        let id = number * 2 + 1;
        let input = [get(id), frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), frame(PING, 0, 0, &[0; 8])].concat();
        let (_, _, fatal) = feed(&mut server, &input);
        assert_eq!(fatal, None);
        let key = server.streams.find(id).unwrap();
        server.respond(key, &Head::response(), 200, true, &mut out);
    }
}

#[test]
fn glitches_wind_up_and_then_end() {
    let mut server = server(Limits { glitches: 8, ..Limits::default() });
    let bad = |stream| headers(stream, true, &[("x", "y")]);
    for number in 0..5 {
        assert!(!feed(&mut server, &bad(number * 2 + 1)).1.iter().any(|(kind, ..)| *kind == GOAWAY));
    }
    let (_, sent, _) = feed(&mut server, &bad(11));
    assert!(sent.contains(&(GOAWAY, 0, 0, 0)), "a graceful end at three quarters");
    assert_eq!(server.glitches(), 6);
    feed(&mut server, &bad(13));
    let (_, sent, fatal) = feed(&mut server, &bad(15));
    assert_eq!(fatal.map(|fatal| fatal.code), Some(Code::ENHANCE_YOUR_CALM));
    assert_eq!(sent.iter().filter(|(kind, ..)| *kind == GOAWAY).count(), 1);
}

#[test]
fn enough_at_once() {
    let mut server = server(Limits { frames_at_once: 3, resets_at_once: 1, ..Limits::default() });
    server.begin_turn();
    let ping = frame(PING, 0, 0, &[0; 8]);
    assert_eq!(feed(&mut server, &ping.repeat(4)).0, ["pause"]);
    server.begin_turn();
    let input = [post(1), frame(RST_STREAM, 0, 1, &[0; 4]), frame(RST_STREAM, 0, 1, &[0; 4])].concat();
    let (events, ..) = feed(&mut server, &input);
    assert_eq!(events, ["POST http://example.org/ false", "reset NO_ERROR true", "pause"]);
}
