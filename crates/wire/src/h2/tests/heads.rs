//! Heads of HTTP/2 to heads of HTTP/1 and back.

use super::*;
use crate::hpack::{Decoder, Encoder};
use crate::http1::write_head;
use crate::method::Version;

fn request(lines: &[(&str, &str)]) -> (Head, bool) {
    let (mut out, mut head) = (Vec::new(), Head::request());
    let input = headers(1, true, lines);
    let received = server(Limits::default()).receive(&input, &mut head, &mut out).unwrap();
    let Some(Event::Head { refused: None, extended, .. }) = received.event else {
        panic!("{:?} of {lines:?}", received.event)
    };
    (head, extended)
}

fn http1(head: &mut Head) -> String {
    head.set_version(Version::HTTP_11);
    let mut out = Vec::new();
    write_head(head, &mut |part| out.extend_from_slice(part));
    assert_eq!(out.len(), head.wire_len());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_request_becomes_what_http1_expects() {
    let (mut head, extended) = request(&[
        (":method", "GET"),
        (":path", "/a?b"),
        (":scheme", "https"),
        (":authority", "example.org:8443"),
        ("cookie", "a=1"),
        ("accept", "*/*"),
        ("host", "other.example"),
        ("cookie", "b=2"),
    ]);
    assert!(!extended && head.is_normalized());
    assert_eq!(head.target(), b"https://example.org:8443/a?b");
    assert_eq!(head.version(), Version::HTTP_2);
    assert_eq!(
        http1(&mut head),
        "GET /a?b HTTP/1.1\r\nhost: example.org:8443\r\naccept: */*\r\ncookie: a=1; b=2\r\n\r\n"
    );
}

#[test]
fn blanks_around_a_value_are_no_part_of_it() {
    let lines = [
        (":method", "POST"),
        (":path", "/"),
        (":scheme", "http"),
        (":authority", "h"),
        ("a", " b\t c\t"),
        ("empty", " \t"),
        ("cookie", " x=1 "),
        ("cookie", "y=2"),
        ("content-length", " 3"),
    ];
    let (mut head, _) = request(&lines[..8]);
    assert_eq!(
        http1(&mut head),
        "POST / HTTP/1.1\r\nhost: h\r\na: b\t c\r\nempty: \r\ncookie: x=1; y=2\r\n\r\n"
    );
    let input = headers(1, false, &lines);
    let received = server(Limits::default()).receive(&input, &mut head, &mut Vec::new()).unwrap();
    assert!(matches!(received.event, Some(Event::Head { refused: None, .. })));
    assert_eq!(head.first("content-length"), Some(&b"3"[..]));
}

#[test]
fn default_ports_are_cut_from_target_and_host() {
    for (scheme, authority, target, host) in [
        ("http", "h:80", "http://h/", "h"),
        ("https", "h:443", "https://h/", "h"),
        ("https", "h:80", "https://h:80/", "h:80"),
        ("http", "[::1]:80", "http://[::1]/", "[::1]"),
    ] {
        let lines = [(":method", "GET"), (":path", "/"), (":scheme", scheme), (":authority", authority)];
        let (mut head, _) = request(&lines);
        assert_eq!((head.target(), head.first("host")), (target.as_bytes(), Some(host.as_bytes())));
        assert!(http1(&mut head).starts_with("GET / HTTP/1.1\r\n"));
    }
}

#[test]
fn an_asterisk_is_the_root_unless_it_is_asked_for_options() {
    let of = |method| {
        let lines = [(":method", method), (":path", "*"), (":scheme", "http"), (":authority", "h")];
        http1(&mut request(&lines).0).split_once(" HTTP").expect("a request line").0.to_owned()
    };
    assert_eq!([of("GET"), of("FOO"), of("OPTIONS")], ["GET /", "FOO /", "OPTIONS *"]);
}

#[test]
fn without_an_authority_host_stands() {
    let (head, _) = request(&[(":method", "GET"), (":path", "/x"), (":scheme", "http"), ("host", "h")]);
    assert_eq!((head.target(), head.first("host")), (&b"/x"[..], Some(&b"h"[..])));
    let (head, _) =
        request(&[(":method", "OPTIONS"), (":path", "*"), (":scheme", "http"), (":authority", "h")]);
    assert_eq!((head.target(), head.first("host")), (&b"http://h"[..], Some(&b"h"[..])));
    assert_eq!(head.written_target(), b"*");
    let (head, _) = request(&[(":method", "CONNECT"), (":authority", "h:99")]);
    assert_eq!((head.target(), head.first("host")), (&b"h:99"[..], Some(&b"h:99"[..])));
}

#[test]
fn an_extended_connect_is_an_upgrade_and_back() {
    let lines = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "h:1234"),
        ("sec-websocket-version", "13"),
    ];
    let (mut head, extended) = request(&lines);
    assert!(extended);
    assert_eq!(
        http1(&mut head),
        "GET /chat HTTP/1.1\r\nhost: h:1234\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\n\r\n"
    );
    head.append(b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ==").unwrap();
    let outline = Outline { scheme: b"https", protocol: Some(b"websocket") };
    assert_eq!(listed(|encoder, out| outlet::request(&head, outline, encoder, out)), lines);
}

fn listed(write: impl FnOnce(&mut Encoder, &mut Vec<u8>)) -> Vec<Pair> {
    let mut out = Vec::new();
    write(&mut Encoder::new(4096), &mut out);
    let mut lines = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Decoder::new(4096).decode(&out, &mut |line| lines.push(Pair(text(line.name), text(line.value)))).unwrap();
    lines
}

impl PartialEq<(&str, &str)> for Pair {
    fn eq(&self, other: &(&str, &str)) -> bool {
        (self.0.as_str(), self.1.as_str()) == *other
    }
}

#[derive(Debug)]
struct Pair(String, String);

fn sent_as(text: &str, protocol: Option<&[u8]>) -> Vec<Pair> {
    let mut head = Head::request();
    crate::http1::parse_request(text.as_bytes(), &mut head, &Default::default(), false).unwrap();
    let outline = Outline { scheme: b"http", protocol };
    listed(|encoder, out| outlet::request(&head, outline, encoder, out))
}

#[test]
fn a_request_of_http1_leaves_its_connection_behind() {
    let text = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nTE: gzip, trailers\r\n\
                Keep-Alive: 5\r\nProxy-Connection: close\r\nX-Kept: 2\r\nTransfer-Encoding: chunked\r\n\r\n";
    let expected = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/a"),
        ("host", "h"),
        ("x-hop", "1"),
        ("te", "trailers"),
        ("x-kept", "2"),
    ];
    assert_eq!(sent_as(text, None), expected);
}

#[test]
fn targets_of_all_forms() {
    for (line, expected) in [
        (
            "GET https://a:1/p?q",
            vec![(":method", "GET"), (":scheme", "https"), (":path", "/p?q"), (":authority", "a:1")],
        ),
        ("OPTIONS *", vec![(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), ("host", "a:1")]),
        (
            "GET http://a:1?q",
            vec![(":method", "GET"), (":scheme", "http"), (":path", "/?q"), (":authority", "a:1")],
        ),
        (
            "OPTIONS http://a:1",
            vec![(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), (":authority", "a:1")],
        ),
        ("CONNECT a:1", vec![(":method", "CONNECT"), (":authority", "a:1")]),
    ] {
        assert_eq!(sent_as(&format!("{line} HTTP/1.1\r\nHost: a:1\r\n\r\n"), None), expected, "{line}");
    }
}

#[test]
fn a_connect_keeps_an_authority_whatever_rules_make_of_its_target() {
    let mut head = Head::request();
    let text = "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n";
    crate::http1::parse_request(text.as_bytes(), &mut head, &Default::default(), false).unwrap();
    head.set_target(b"/q").unwrap();
    let outline = Outline { scheme: b"http", protocol: None };
    let lines = listed(|encoder, out| outlet::request(&head, outline, encoder, out));
    assert_eq!(lines, [(":method", "CONNECT"), (":authority", "a:1")]);
}

#[test]
fn no_path_is_the_root() {
    for (method, path) in [("GET", "/"), ("OPTIONS", "*")] {
        let mut head = Head::request();
        let text = format!("{method} /a HTTP/1.1\r\nHost: h\r\n\r\n");
        crate::http1::parse_request(text.as_bytes(), &mut head, &Default::default(), false).unwrap();
        head.set_target(b"").unwrap();
        let outline = Outline { scheme: b"http", protocol: None };
        let lines = listed(|encoder, out| outlet::request(&head, outline, encoder, out));
        assert_eq!(lines, [(":method", method), (":scheme", "http"), (":path", path), ("host", "h")]);
    }
}

#[test]
fn a_response_of_http1_leaves_its_connection_behind() {
    let mut head = Head::response();
    let text = "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\nA: b\r\n\r\n";
    crate::http1::parse_response(text.as_bytes(), &mut head, &Default::default(), false).unwrap();
    let lines = listed(|encoder, out| outlet::response(&head, 200, encoder, out));
    assert_eq!(lines, [(":status", "200"), ("a", "b")]);
}
