//! Responses.

use super::{Becomes, Partial, Status, Text, check};
use crate::head::Kind;

const BAD: Becomes = Status(502);

/// Rows in which the option makes no difference.
fn both(rows: &[(&str, &[u8], Becomes)]) {
    for &(name, input, expected) in rows {
        check(Kind::Response, name, input, false, expected);
        check(Kind::Response, name, input, true, expected);
    }
}

/// Rows with the strict and the relaxed outcome.
fn apart(rows: &[(&str, &[u8], Becomes, Becomes)]) {
    for &(name, input, strict, relaxed) in rows {
        check(Kind::Response, name, input, false, strict);
        check(Kind::Response, name, input, true, relaxed);
    }
}

const OK: Becomes = Text("HTTP/1.1 200 OK");

#[test]
fn status_lines() {
    both(&[
        ("plain", b"HTTP/1.1 200 OK\r\n\r\n", OK),
        ("empty lines before", b"\r\n\n\r\nHTTP/1.1 200 OK\r\n\r\n", OK),
        ("blank before", b" HTTP/1.1 200 OK\r\n\r\n", BAD),
        ("CR before", b"\rHTTP/1.1 200 OK\r\n\r\n", BAD),
        ("blanks", b"HTTP/1.1 \t200  OK\r\n\r\n", OK),
        ("no reason", b"HTTP/1.1 200\r\n\r\n", OK),
        ("no reason but a blank", b"HTTP/1.1 200 \r\n\r\n", OK),
        ("reason with blanks", b"HTTP/1.1 200  a\tb \r\n\r\n", Text("HTTP/1.1 200 a\tb ")),
        ("reason with anything", b"HTTP/1.1 200 O\0\x01\xe9\r\n\r\n", Text("HTTP/1.1 200 O\0\x01\u{e9}")),
        ("CR in the reason", b"HTTP/1.1 200 O\rK\r\n\r\n", BAD),
        ("999", b"HTTP/1.1 999 OK\r\n\r\n", Text("HTTP/1.1 999 OK")),
        ("letters", b"HTTP/1.1 20x OK\r\n\r\n", BAD),
        ("no status", b"HTTP/1.1 \r\n\r\n", BAD),
        ("too large", b"HTTP/1.1 65535 OK\r\n\r\n", BAD),
        ("1.0", b"HTTP/1.0 200 OK\r\n\r\n", Text("HTTP/1.0 200 OK")),
        ("0.9", b"HTTP/0.9 200 OK\r\n\r\n", Text("HTTP/1.0 200 OK")),
        ("2.0", b"HTTP/2.0 200 OK\r\n\r\n", OK),
        ("small letters", b"http/1.1 200 OK\r\n\r\n", BAD),
        ("slash first", b"/ 200 OK\r\n\r\n", BAD),
        ("junk", b"junk\r\n\r\n", BAD),
        ("incomplete", b"HTTP/1.1 200 OK\r\nX: a", Partial),
    ]);
    apart(&[
        ("four digits", b"HTTP/1.1 2000 OK\r\n\r\n", BAD, Text("HTTP/1.1 2000 OK")),
        // HAProxy passes what is below 100 on; which kind of response it is nobody knows.
        ("two digits", b"HTTP/1.1 20 OK\r\n\r\n", BAD, Text("HTTP/1.1 20 OK")),
        ("two digits alone", b"HTTP/1.1 20\r\n\r\n", BAD, Text("HTTP/1.1 20 Other")),
        ("099", b"HTTP/1.1 099 OK\r\n\r\n", BAD, Text("HTTP/1.1 099 OK")),
        ("leading zero", b"HTTP/1.1 0200 OK\r\n\r\n", BAD, Text("HTTP/1.1 0200 OK")),
        ("1.10", b"HTTP/1.10 200 OK\r\n\r\n", BAD, Text("HTTP/1.10 200 OK")),
        ("RTSP", b"RTSP/1.0 200 OK\r\n\r\n", BAD, Text("RTSP/1.0 200 OK")),
        ("a dot", b". 200 OK\r\n\r\n", BAD, Text(". 200 OK")),
        ("X", b"XTTP/1.1 200 OK\r\n\r\n", BAD, OK),
    ]);
}

#[test]
fn fields() {
    both(&[
        ("folded", b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", Text("HTTP/1.1 200 OK\r\nx: a   b")),
        ("CR", b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", BAD),
    ]);
    apart(&[
        ("odd name", b"HTTP/1.1 200 OK\r\nX(: a\r\n\r\n", BAD, OK),
        ("blank before the colon", b"HTTP/1.1 200 OK\r\nX : a\r\n\r\n", BAD, OK),
        ("NUL", b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", BAD, Text("HTTP/1.1 200 OK\r\nx: \0")),
    ]);
}

#[test]
fn lengths_and_codings() {
    let three = Text("HTTP/1.1 200 OK\r\ncontent-length: 3");
    let chunked = Text("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked");
    both(&[
        ("zeros", b"HTTP/1.1 200 OK\r\nContent-Length: 03\r\nContent-Length: 3\r\n\r\n", three),
        ("conflict", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", BAD),
        ("word", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", BAD),
        ("both", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 3\r\n\r\n", chunked),
        ("gzip", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", BAD),
        ("gzip, chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", BAD),
        ("chunked, gzip", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", BAD),
        ("identity", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", BAD),
        ("204 with a length", b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n", Text("HTTP/1.1 204 No")),
        (
            "204 with chunks",
            b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n",
            Text("HTTP/1.1 204 No"),
        ),
        ("204 with a bad length", b"HTTP/1.1 204 No\r\nContent-Length: x\r\n\r\n", BAD),
        ("100 with a length", b"HTTP/1.1 100 C\r\nContent-Length: 3\r\n\r\n", Text("HTTP/1.1 100 C")),
        ("100 with a coding", b"HTTP/1.1 100 C\r\nTransfer-Encoding: x\r\n\r\n", BAD),
        (
            "304 with a length",
            b"HTTP/1.1 304 No\r\nContent-Length: 3\r\n\r\n",
            Text("HTTP/1.1 304 No\r\ncontent-length: 3"),
        ),
    ]);
    apart(&[
        ("twice", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", BAD, chunked),
        (
            "twice in two",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n",
            BAD,
            chunked,
        ),
        ("comma", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked,\r\n\r\n", BAD, chunked),
        ("empty", b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n\r\n", BAD, three),
        ("empty list", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: ,\r\nContent-Length: 3\r\n\r\n", BAD, OK),
    ]);
}

#[test]
fn upgrades() {
    let without = b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let with =
        b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
    let kept = Text("HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x");
    check(Kind::Response, "without its answer", without, false, BAD);
    both(&[
        ("with its answer", with, kept),
        ("HTTP/2", b"HTTP/1.1 200 OK\r\nUpgrade: h2c, foo\r\n\r\n", Text("HTTP/1.1 200 OK\r\nupgrade: foo")),
    ]);
}
