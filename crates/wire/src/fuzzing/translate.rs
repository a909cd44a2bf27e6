//! Whole messages from HTTP/2 to HTTP/1, and responses the other way: what is written for one version is read
//! in that version as what came in the other, and in one way only.

use super::h2::{HTTP1, OUTLINE, one_meaning};
use crate::h2::{Connection, Event, Limits, Received, Role};
use crate::head::{Head, Kind, Known};
use crate::http1::{Parsed, Scanner, parse_response, split_trailers};
use crate::method::Method;

const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn limits() -> Limits {
    Limits { list: 200_000, fields: 300, ..Limits::default() }
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len().min(16_384);
    let header = [(length >> 16) as u8, (length >> 8) as u8, length as u8, kind, flags, 0, 0, 0, 1];
    [&header[..], &payload[..length]].concat()
}

/// Any bytes as the header block of a message with a body, and as that of its trailers: what passes is the
/// same in HTTP/1.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn h2_to_h1(data: &[u8]) {
    let (block, trailers) = data.split_at(data.len() - data.len() / 4);
    for role in [Role::Server, Role::Client] {
        for whole in [true, false] {
            message(role, block, (!whole).then_some(trailers));
        }
    }
    // All of it in both parts, so that a seed that is one block is met by both.
    message(Role::Server, data, Some(data));
}

fn message(role: Role, block: &[u8], trailers: Option<&[u8]>) {
    let mut connection = super::h2::peer(role);
    let (mut head, mut out) = (Head::request(), Vec::new());
    let end = if trailers.is_none() { END_STREAM } else { 0 };
    let input = frame(HEADERS, END_HEADERS | end, block);
    let Ok(Received { event: Some(event), .. }) = connection.receive(&input, &mut head, &mut out) else {
        return;
    };
    let Event::Head { refused: None, stream, .. } = event else { return };
    one_meaning(&head);
    nothing_of_the_connection(&head);
    let Some(trailers) = trailers else { return };
    let input = frame(HEADERS, END_HEADERS | END_STREAM, trailers);
    let Ok(Received { event: Some(event), .. }) = connection.receive(&input, &mut head, &mut out) else {
        return;
    };
    if event != (Event::Trailers { stream }) {
        return;
    }
    let mut text = b"0\r\n".to_vec();
    for (_, name, value) in head.fields() {
        [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
    }
    text.extend_from_slice(b"\r\nbehind");
    let mut scanner = Scanner::default();
    let scanned = scanner.strip(&mut text).expect("trailers that passed are trailers");
    assert!(scanned.end && text.get(scanned.used..) == Some(&b"behind"[..]), "they end where they end");
    let mut read = Head::response();
    split_trailers(&scanner.take_trailers(), &mut read);
    // Those that would say something about the body are left out.
    let kept = |head: &Head| -> Vec<_> {
        let allowed = head.fields().filter(|(_, name, _)| !matches!(*name, b"content-length" | b"host"));
        allowed.map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect()
    };
    assert!(kept(&read).iter().all(|field| kept(&head).contains(field)));
}

/// What only one connection is concerned with never comes out of HTTP/2, but for an upgrade made of an
/// extended CONNECT.
fn nothing_of_the_connection(head: &Head) {
    let alone = |known| head.count(known) == 0;
    assert!(alone(Known::TransferEncoding) && alone(Known::KeepAlive) && alone(Known::ProxyConnection));
    if head.has(Known::Upgrade) {
        assert!(head.method_id() == Method::Get && head.count(Known::Connection) == 1);
    } else {
        assert!(alone(Known::Connection));
    }
    for (_, name, value) in head.fields() {
        assert!(!name.is_empty() && !name.contains(&b':'), "{}", name.escape_ascii());
        assert!(!value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')), "{}", value.escape_ascii());
    }
}

/// A response of HTTP/1 that goes through HTTP/2 says the same at the other end.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn response_to_h2(data: &[u8]) {
    let mut head = Head::response();
    if !matches!(parse_response(data, &mut head, &HTTP1, false), Ok(Parsed::Complete { .. })) {
        return;
    }
    let status = head.status();
    if status == 101 || status > 999 {
        return;
    }
    let mut asked = Vec::new();
    let mut client = Connection::new(Role::Client, limits(), &mut asked);
    client.open(&request(), OUTLINE, true, &mut asked).expect("the first stream");
    let mut out = Vec::new();
    let (mut server, mut got) = (Connection::new(Role::Server, limits(), &mut out), Head::request());
    let mut at = 0;
    let stream = loop {
        let Ok(Received { consumed, event }) = server.receive(&asked[at..], &mut got, &mut out) else {
            panic!("a request")
        };
        at += consumed;
        if let Some(Event::Head { stream, .. }) = event {
            break stream;
        }
    };
    server.respond(stream, &head, status, status >= 200, &mut out);
    let (mut read, mut at) = (Head::response(), 0);
    let event = loop {
        let received = client.receive(&out[at..], &mut read, &mut Vec::new());
        let Ok(Received { consumed, event }) = received else { panic!("{received:?}") };
        at += consumed;
        match event {
            Some(Event::Window { .. }) => {}
            other => break other,
        }
    };
    let length = head.first(Known::ContentLength).is_some_and(|length| length != b"0");
    if status >= 200 && length {
        // A length and no body: the client takes it for cut short.
        return;
    }
    assert!(matches!(event, Some(Event::Head { refused: None, .. })), "{event:?} of {}", data.escape_ascii());
    assert_eq!((read.kind(), read.status()), (Kind::Response, status));
    one_meaning(&read);
    nothing_of_the_connection(&read);
}

fn request() -> Head {
    let mut head = Head::request();
    let parsed = crate::http1::parse_request(b"GET /a HTTP/1.1\r\nhost: h\r\n\r\n", &mut head, &HTTP1, false);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })));
    head
}
