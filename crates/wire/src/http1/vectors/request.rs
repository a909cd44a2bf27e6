//! Requests.

use super::{Becomes, Partial, Status, Text, check};
use crate::head::Kind;

const BAD: Becomes = Status(400);

/// Rows in which the option makes no difference: name, input, outcome.
fn both(rows: &[(&str, &[u8], Becomes)]) {
    for &(name, input, expected) in rows {
        check(Kind::Request, name, input, false, expected);
        check(Kind::Request, name, input, true, expected);
    }
}

/// Rows with the strict and the relaxed outcome.
fn apart(rows: &[(&str, &[u8], Becomes, Becomes)]) {
    for &(name, input, strict, relaxed) in rows {
        check(Kind::Request, name, input, false, strict);
        check(Kind::Request, name, input, true, relaxed);
    }
}

const PLAIN: Becomes = Text("GET / HTTP/1.1\r\nhost: a");

#[test]
fn line_ends_and_blanks() {
    both(&[
        ("plain", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
        ("LF alone", b"GET / HTTP/1.1\nHost: a\n\n", PLAIN),
        ("LF behind a blank", b"GET / HTTP/1.1\r\nHost: a \n\r\n", PLAIN),
        ("empty lines before", b"\r\n\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
        ("CR before", b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        ("blank before", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        ("blanks between", b"GET \t /  HTTP/1.1\r\nHost:\ta\t \r\n\r\n", PLAIN),
        ("blank behind the version", b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", BAD),
        ("CR in a value", b"GET / HTTP/1.1\r\nX: a\rb\r\n\r\n", BAD),
        ("CR CR LF", b"GET / HTTP/1.1\r\nX: a\r\r\n\r\n", BAD),
        ("CR in the line", b"GET / HTTP/1.1\rX\r\n\r\n", BAD),
        (
            "controls",
            b"GET / HTTP/1.1\r\nX: a\x01\x7f\x0b\xe9\r\n\r\n",
            Text("GET / HTTP/1.1\r\nx: a\x01\x7f\x0b\u{e9}"),
        ),
        ("folded", b"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", Text("GET / HTTP/1.1\r\nx: a   b")),
        (
            "folded twice",
            b"GET / HTTP/1.1\r\nX:\r\n b\r\n \r\nY: c\r\n\r\n",
            Text("GET / HTTP/1.1\r\nx: b\r\ny: c"),
        ),
        (
            "folded length",
            b"POST / HTTP/1.1\r\nContent-Length:\r\n 3\r\n\r\n",
            Text("POST / HTTP/1.1\r\ncontent-length: 3"),
        ),
        ("incomplete", b"GET / HTTP/1.1\r\nX: a", Partial),
        ("incomplete line", b"GET /", Partial),
    ]);
}

#[test]
fn names_and_values() {
    both(&[
        ("no name", b"GET / HTTP/1.1\r\n: a\r\n\r\n", BAD),
        ("no colon", b"GET / HTTP/1.1\r\nX\r\n\r\n", BAD),
        ("no colon and an odd byte", b"GET / HTTP/1.1\r\nX(\r\nY: a\r\n\r\n", BAD),
        ("blank line of blanks", b"GET / HTTP/1.1\r\n \r\n\r\n", BAD),
        ("CR in what is dropped", b"GET / HTTP/1.1\r\nX : a\rb\r\n\r\n", BAD),
    ]);
    let dropped = Text("GET / HTTP/1.1\r\na: 1\r\nb: 2");
    apart(&[
        ("blank before the colon", b"GET / HTTP/1.1\r\nA: 1\r\nX : a\r\nB: 2\r\n\r\n", BAD, dropped),
        ("odd byte", b"GET / HTTP/1.1\r\nA: 1\r\nX(Y: a\r\nB: 2\r\n\r\n", BAD, dropped),
        ("odd byte first", b"GET / HTTP/1.1\r\nA: 1\r\n(Y: a\r\nB: 2\r\n\r\n", BAD, dropped),
        ("NUL in a name", b"GET / HTTP/1.1\r\nA: 1\r\nX\0Y: a\r\nB: 2\r\n\r\n", BAD, dropped),
        (
            "what folds is dropped with it",
            b"GET / HTTP/1.1\r\nA: 1\r\nX : a\r\n z\r\nB: 2\r\n\r\n",
            BAD,
            dropped,
        ),
        (
            "blank before the first",
            b"GET / HTTP/1.1\r\n X: a\r\n b\r\nB: 2\r\n\r\n",
            BAD,
            Text("GET / HTTP/1.1\r\nb: 2"),
        ),
        ("the same, incomplete", b"GET / HTTP/1.1\r\n X", BAD, Partial),
        (
            "coding with a blank",
            b"POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
            BAD,
            Text("POST / HTTP/1.1"),
        ),
        ("NUL in a value", b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", BAD, Text("GET / HTTP/1.1\r\nx: a\0b")),
        ("incomplete odd name", b"GET / HTTP/1.1\r\nX(", BAD, Partial),
    ]);
}

#[test]
fn methods_and_targets() {
    both(&[
        ("small letters", b"get / HTTP/1.1\r\n\r\n", Text("get / HTTP/1.1")),
        ("odd method", b"GE(T / HTTP/1.1\r\n\r\n", BAD),
        ("no target", b"GET HTTP/1.1\r\n\r\n", BAD),
        ("control in the target", b"GET /\x01 HTTP/1.1\r\n\r\n", BAD),
        ("DEL in the target", b"GET /\x7f HTTP/1.1\r\n\r\n", BAD),
        ("relative", b"GET foo HTTP/1.1\r\n\r\n", BAD),
        ("star", b"GET * HTTP/1.1\r\n\r\n", BAD),
        ("star of a method nobody knows", b"FOO * HTTP/1.1\r\n\r\n", Text("FOO * HTTP/1.1")),
        ("the method of the preface", b"PRI / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        ("star of the preface", b"PRI * HTTP/1.1\r\n\r\n", BAD),
        ("star of OPTIONS", b"OPTIONS * HTTP/1.1\r\n\r\n", Text("OPTIONS * HTTP/1.1")),
        ("authority", b"GET a:80 HTTP/1.1\r\n\r\n", BAD),
        ("two slashes", b"GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n", Text("GET //b/c HTTP/1.1\r\nhost: a")),
        ("unwise", b"GET /\"<>\\^`{|} HTTP/1.1\r\n\r\n", Text("GET /\"<>\\^`{|} HTTP/1.1")),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01", BAD),
    ]);
    apart(&[
        ("fragment", b"GET /a#b HTTP/1.1\r\n\r\n", BAD, Text("GET /a#b HTTP/1.1")),
        ("8 bits", b"GET /\xe9 HTTP/1.1\r\n\r\n", BAD, Text("GET /\u{e9} HTTP/1.1")),
    ]);
}

#[test]
fn versions() {
    both(&[
        ("1.0", b"GET / HTTP/1.0\r\n\r\n", Text("GET / HTTP/1.0")),
        ("0.9 in words", b"GET / HTTP/0.9\r\n\r\n", Text("GET / HTTP/1.0")),
        ("0.1", b"GET / HTTP/0.1\r\n\r\n", Text("GET / HTTP/1.0")),
        ("1.2", b"GET / HTTP/1.2\r\n\r\n", Text("GET / HTTP/1.1")),
        ("2.0", b"GET / HTTP/2.0\r\n\r\n", Text("GET / HTTP/1.1")),
        ("small letters", b"GET / http/1.1\r\n\r\n", BAD),
        ("letter behind", b"GET / HTTP/1.1x\r\n\r\n", BAD),
        ("minus", b"GET / HTTP-1.1\r\n\r\n", BAD),
        ("POST without", b"POST /\r\n", BAD),
    ]);
    apart(&[
        ("none", b"GET /\r\n", BAD, Text("GET / HTTP/1.0")),
        ("none but a blank", b"GET /a \r\nHost: a\r\n\r\n", BAD, Text("GET /a HTTP/1.0")),
        ("01.1", b"GET / HTTP/01.1\r\n\r\n", BAD, Text("GET / HTTP/01.1")),
        ("1.10", b"GET / HTTP/1.10\r\n\r\n", BAD, Text("GET / HTTP/1.10")),
        ("1.", b"GET / HTTP/1.\r\n\r\n", BAD, Text("GET / HTTP/1.")),
        ("a word", b"GET / HTTP\r\n\r\n", BAD, Text("GET / HTTP")),
        ("RTSP/1.0", b"GET / RTSP/1.0\r\n\r\n", BAD, Text("GET / RTSP/1.0")),
        ("RTSP/1.1", b"GET / RTSP/1.1\r\n\r\n", BAD, Text("GET / HTTP/1.1")),
        ("eight bytes", b"GET / ..../2.0\r\n\r\n", BAD, Text("GET / HTTP/1.1")),
    ]);
}

#[test]
fn lengths_and_codings() {
    let three = Text("POST / HTTP/1.1\r\ncontent-length: 3");
    let chunked = Text("POST / HTTP/1.1\r\ntransfer-encoding: chunked");
    both(&[
        ("zeros", b"POST / HTTP/1.1\r\nContent-Length: 03\r\n\r\n", three),
        ("list", b"POST / HTTP/1.1\r\nContent-Length: 3, 03\r\n\r\n", three),
        ("repeated", b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", three),
        ("conflict", b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", BAD),
        ("conflict in a list", b"POST / HTTP/1.1\r\nContent-Length: 3, 4\r\n\r\n", BAD),
        ("plus", b"POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\n", BAD),
        ("minus", b"POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\n", BAD),
        ("empty", b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", BAD),
        ("empty part", b"POST / HTTP/1.1\r\nContent-Length: 3,\r\n\r\n", BAD),
        ("hexadecimal", b"POST / HTTP/1.1\r\nContent-Length: 0x3\r\n\r\n", BAD),
        ("two numbers", b"POST / HTTP/1.1\r\nContent-Length: 3 3\r\n\r\n", BAD),
        ("too large", b"POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n", BAD),
        ("case", b"POST / HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n", chunked),
        (
            "with a length",
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            chunked,
        ),
        (
            "with a bad length",
            b"POST / HTTP/1.1\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            BAD,
        ),
        ("identity", b"POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n", BAD),
        ("gzip", b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", BAD),
        ("gzip, chunked", b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Status(422)),
        (
            "gzip and chunked",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            Status(422),
        ),
        ("chunked, gzip", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", BAD),
        ("twice", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", BAD),
        (
            "twice in two",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            BAD,
        ),
        ("empty coding", b"POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n", BAD),
        ("comma", b"POST / HTTP/1.1\r\nTransfer-Encoding: ,chunked\r\n\r\n", BAD),
        ("word", b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", BAD),
        ("quoted", b"POST / HTTP/1.1\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", BAD),
        ("parameter", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked;x=y\r\n\r\n", BAD),
        ("VT", b"POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", BAD),
        ("CONNECT", b"CONNECT a:80 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", Text("CONNECT a:80 HTTP/1.1")),
        ("1.0 with GET", b"GET / HTTP/1.0\r\nContent-Length: 1\r\n\r\n", Status(413)),
        ("1.0 with HEAD", b"HEAD / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Status(413)),
        ("1.0 with DELETE", b"DELETE / HTTP/1.0\r\nContent-Length: 1\r\n\r\n", Status(413)),
        (
            "1.0 with nothing",
            b"GET / HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
            Text("GET / HTTP/1.0\r\ncontent-length: 0"),
        ),
        (
            "1.0 with PUT",
            b"PUT / HTTP/1.0\r\nContent-Length: 1\r\n\r\n",
            Text("PUT / HTTP/1.0\r\ncontent-length: 1"),
        ),
    ]);
}

#[test]
fn hosts() {
    for host in [
        "", "a:80", "a:65536", "a:x", "a:-1", "a:", ":80", "a:1:2", "::1", "[::1]:80", "[zz]", "[a]:x",
        "a<b", "a%20b", "a_b", "|^`{}",
    ] {
        let input = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for relax in [false, true] {
            let expected = Ok(Some(format!("GET / HTTP/1.1\r\nhost: {host}")));
            assert_eq!(super::outcome(Kind::Request, input.as_bytes(), relax), expected);
        }
    }
    for host in [
        "a,b", "a b", "a\tb", "u@a", "a/b", "a?b", "a#b", "[::1", "[::1]x", "a[b", "a]b", "[a/b]", "\u{e9}",
        "a\x01", "a\x7f", "a\\b",
    ] {
        let input = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for relax in [false, true] {
            assert_eq!(super::outcome(Kind::Request, input.as_bytes(), relax), Err(400), "{host}");
        }
    }
    both(&[
        ("repeated", b"GET / HTTP/1.1\r\nHost: a\r\nHost: A\r\nHost: a\r\n\r\n", PLAIN),
        ("two", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", BAD),
        ("one with a port", b"GET / HTTP/1.1\r\nHost: a\r\nHost: a:80\r\n\r\n", BAD),
        ("one empty", b"GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n", BAD),
    ]);
}

#[test]
fn absolute_targets() {
    let put_in_order = Text("GET http://a/ HTTP/1.1\r\nhost: a");
    both(&[
        ("port of the scheme", b"GET http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n", put_in_order),
        ("in both", b"GET http://a:80/ HTTP/1.1\r\nHost: A:80\r\n\r\n", put_in_order),
        ("empty port", b"GET http://a:/ HTTP/1.1\r\nHost: a:80\r\n\r\n", put_in_order),
        (
            "in Host only",
            b"GET http://a/ HTTP/1.1\r\nHost: A:80\r\n\r\n",
            Text("GET http://a/ HTTP/1.1\r\nhost: A:80"),
        ),
        ("no path", b"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", put_in_order),
        ("no path of OPTIONS", b"OPTIONS http://a:80 HTTP/1.1\r\n\r\n", Text("OPTIONS http://a HTTP/1.1")),
        ("query", b"GET http://a:80?x HTTP/1.1\r\n\r\n", Text("GET http://a?x HTTP/1.1")),
        (
            "https",
            b"GET HTTPS://a:443/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Text("GET HTTPS://a/ HTTP/1.1\r\nhost: a"),
        ),
        (
            "other port",
            b"GET http://a:8080/ HTTP/1.1\r\nHost: a:8080\r\n\r\n",
            Text("GET http://a:8080/ HTTP/1.1\r\nhost: a:8080"),
        ),
        (
            "user",
            b"GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Text("GET http://u:p@a/ HTTP/1.1\r\nhost: a"),
        ),
        (
            "IPv6",
            b"GET http://[::1]:80/ HTTP/1.1\r\nHost: [::1]\r\n\r\n",
            Text("GET http://[::1]/ HTTP/1.1\r\nhost: [::1]"),
        ),
        ("bad scheme", b"GET 1http://a/ HTTP/1.1\r\n\r\n", BAD),
        ("one slash", b"GET http:/a/ HTTP/1.1\r\n\r\n", BAD),
    ]);
    apart(&[
        (
            "other host",
            b"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
            BAD,
            Text("GET http://a/ HTTP/1.1\r\nhost: b"),
        ),
        (
            "other host, 1.0 with a body",
            b"GET http://a/ HTTP/1.0\r\nHost: b\r\nContent-Length: 1\r\n\r\n",
            BAD,
            Status(413),
        ),
        ("other host, cut", b"GET http://a:80/ HTTP/1.1\r\nHost: b\r\n\r\n", BAD, put_in_order),
        (
            "port in one",
            b"GET http://a:8080/ HTTP/1.1\r\nHost: a\r\n\r\n",
            BAD,
            Text("GET http://a:8080/ HTTP/1.1\r\nhost: a"),
        ),
        (
            "other scheme",
            b"GET ws://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
            BAD,
            Text("GET ws://a:80/ HTTP/1.1\r\nhost: a"),
        ),
        ("no host", b"GET http://a,b:80/ HTTP/1.1\r\n\r\n", BAD, Text("GET http://a,b/ HTTP/1.1")),
        // HAProxy cuts one port of two; two readers would not agree on what is left.
        ("two ports", b"GET http://a:1:80/ HTTP/1.1\r\n\r\n", BAD, Text("GET http://a:1:80/ HTTP/1.1")),
    ]);
}

#[test]
fn connect() {
    both(&[
        ("plain", b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", Text("CONNECT a:80 HTTP/1.1\r\nhost: a")),
        ("case", b"CONNECT a:443 HTTP/1.1\r\nHost: A:443\r\n\r\n", Text("CONNECT a:443 HTTP/1.1\r\nhost: A")),
        (
            "user",
            b"CONNECT u@a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
            Text("CONNECT u@a:80 HTTP/1.1\r\nhost: a"),
        ),
        ("no host", b"CONNECT :80 HTTP/1.1\r\nHost: :80\r\n\r\n", Text("CONNECT :80 HTTP/1.1\r\nhost: ")),
        ("large port", b"CONNECT a:99999 HTTP/1.1\r\n\r\n", Text("CONNECT a:99999 HTTP/1.1")),
        ("IPv6", b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n", Text("CONNECT [::1]:80 HTTP/1.1")),
        ("absolute", b"CONNECT http://a:80/ HTTP/1.1\r\n\r\n", BAD),
        ("path", b"CONNECT /a:80 HTTP/1.1\r\n\r\n", BAD),
        ("star", b"CONNECT * HTTP/1.1\r\n\r\n", BAD),
    ]);
    apart(&[
        ("no port", b"CONNECT a HTTP/1.1\r\n\r\n", BAD, Text("CONNECT a HTTP/1.1")),
        ("empty port", b"CONNECT a: HTTP/1.1\r\n\r\n", BAD, Text("CONNECT a: HTTP/1.1")),
        ("word for a port", b"CONNECT a:x HTTP/1.1\r\n\r\n", BAD, Text("CONNECT a:x HTTP/1.1")),
        (
            "other host",
            b"CONNECT a:80 HTTP/1.1\r\nHost: b:80\r\n\r\n",
            BAD,
            Text("CONNECT a:80 HTTP/1.1\r\nhost: b:80"),
        ),
        (
            "other port",
            b"CONNECT a:8080 HTTP/1.1\r\nHost: a\r\n\r\n",
            BAD,
            Text("CONNECT a:8080 HTTP/1.1\r\nhost: a"),
        ),
    ]);
}

#[test]
fn upgrades() {
    let socket = Text(
        "GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: WebSocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    );
    let key = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let short =
        b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";
    let kept = Text("GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x");
    let none = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: foo, websocket\r\n\r\n";
    both(&[
        ("key", key, socket),
        (
            "HTTP/2",
            b"GET / HTTP/1.1\r\nUpgrade: a, h2c , b, H2\r\n\r\n",
            Text("GET / HTTP/1.1\r\nupgrade: a,b"),
        ),
        ("nothing but HTTP/2", b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", Text("GET / HTTP/1.1")),
    ]);
    apart(&[
        ("short key", short, BAD, kept),
        ("no key", none, BAD, Text("GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: foo, websocket")),
    ]);
}
