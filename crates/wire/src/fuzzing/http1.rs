//! Heads of HTTP/1: the same however they arrive, one meaning only, and the same again when written and read.

use super::cuts;
use crate::head::{Head, Kind, Known};
use crate::http1::{
    Body, ErrorKind, Limits, ParseError, Parsed, parse_request, parse_response, request_body, response_body,
    write_head,
};
use crate::method::Method;

const LIMITS: Limits = Limits::of(1024, 20);
/// A head that was accepted may grow a little where its writer was brief.
const AGAIN: Limits = Limits::of(4096, 20);

/// Any bytes as the head of a request.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn http1_request(data: &[u8]) {
    for relax in [false, true] {
        head(data, Kind::Request, relax);
    }
}

/// Any bytes as the head of a response.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn http1_response(data: &[u8]) {
    for relax in [false, true] {
        head(data, Kind::Response, relax);
    }
}

fn parse(data: &[u8], head: &mut Head, limits: &Limits, relax: bool) -> Result<Parsed, ParseError> {
    match head.kind() {
        Kind::Request => parse_request(data, head, limits, relax),
        Kind::Response => parse_response(data, head, limits, relax),
    }
}

fn empty(kind: Kind) -> Head {
    match kind {
        Kind::Request => Head::request(),
        Kind::Response => Head::response(),
    }
}

fn head(data: &[u8], kind: Kind, relax: bool) {
    let mut head = empty(kind);
    let parsed = parse(data, &mut head, &LIMITS, relax);
    in_pieces(data, &head, parsed, relax);
    match parsed {
        Ok(Parsed::Complete { consumed }) => {
            assert!(consumed <= data.len() && consumed <= LIMITS.head);
            one_meaning(&head, relax);
            for method in [Method::Get, Method::Head, Method::Connect] {
                one_framing(&head, if kind == Kind::Request { head.method_id() } else { method });
            }
            again(&head, relax);
        }
        Ok(Parsed::Partial) => assert!(data.len() < LIMITS.head),
        Err(error) => assert!(error.position <= data.len(), "{error} in {} bytes", data.len()),
    }
}

/// Pieces come to the same end. Only a fault that is there early may hide one of the whole.
fn in_pieces(data: &[u8], whole: &Head, expected: Result<Parsed, ParseError>, relax: bool) {
    let mut head = empty(whole.kind());
    for cut in cuts(data) {
        let parsed = parse(&data[..cut], &mut head, &LIMITS, relax);
        match parsed {
            Ok(Parsed::Partial) if cut < data.len() => continue,
            Err(error) if is_size(error) => assert!(expected.is_err(), "{parsed:?} {expected:?}"),
            _ => assert_eq!(parsed, expected, "{cut} of {}", data.len()),
        }
        if parsed == expected && parsed.is_ok() {
            same(&head, whole);
        }
        break;
    }
}

fn is_size(error: ParseError) -> bool {
    matches!(error.kind, ErrorKind::TooLarge | ErrorKind::TargetTooLong)
}

fn same(one: &Head, other: &Head) {
    let facts = |head: &Head| {
        let fields: Vec<(Vec<u8>, Vec<u8>)> =
            head.fields().map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect();
        let line = (head.method().to_vec(), head.target().to_vec(), head.version(), head.status());
        (line, head.reason().to_vec(), fields)
    };
    assert_eq!(facts(one), facts(other));
}

/// No byte that another reader may take for an end, no second length, no second host.
fn one_meaning(head: &Head, relax: bool) {
    let lines = |text: &[u8]| text.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
    for (_, name, value) in head.fields() {
        assert!(!name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'));
        assert!(!name.iter().any(u8::is_ascii_uppercase));
        assert!(!lines(value));
        assert!(relax || !value.contains(&0));
        assert!(!matches!(value.first(), Some(b' ' | b'\t')) && !matches!(value.last(), Some(b' ' | b'\t')));
    }
    assert!(!lines(head.reason()));
    assert!(head.method().iter().all(u8::is_ascii_graphic));
    assert!(!head.target().iter().any(|byte| *byte <= b' ' || *byte == 127));
    assert!(relax || head.target().iter().all(u8::is_ascii_graphic));
    assert!(head.count(Known::ContentLength) <= 1);
    if head.kind() == Kind::Request {
        assert!(head.count(Known::Host) <= 1);
        assert!(!head.target().is_empty());
    }
}

fn body(head: &Head, method: Method) -> Body {
    if head.kind() == Kind::Request { request_body(head) } else { response_body(head, method) }
}

/// The framing follows from the fields alone, and only one of them decides.
fn one_framing(head: &Head, method: Method) {
    let (chunked, length) = (head.has(Known::TransferEncoding), head.first(Known::ContentLength));
    match body(head, method) {
        Body::Chunked => {
            assert!(chunked && length.is_none());
            let last = head.values(Known::TransferEncoding).filter(|coding| !coding.is_empty()).last();
            assert!(last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")));
        }
        Body::Length(number) => {
            assert!(length.is_some_and(|text| text == number.to_string().as_bytes()));
        }
        Body::UntilClose => assert!(head.kind() == Kind::Response && length.is_none()),
        Body::None if length == Some(b"0") => {}
        Body::None => {
            let bare = head.kind() == Kind::Request || !matches!(head.status(), 100..=199 | 204 | 304);
            assert!(!bare || method == Method::Head || (!chunked && length.is_none()));
        }
    }
}

/// Written, it has one end; read again, it says the same; written again, it is the same.
fn again(head: &Head, relax: bool) {
    let mut out = Vec::new();
    write_head(head, &mut |part| out.extend_from_slice(part));
    assert_eq!(out.len(), head.wire_len());
    let end = out.windows(4).position(|four| four == b"\r\n\r\n");
    assert_eq!(end, Some(out.len() - 4), "the head has one end");
    assert!(out.windows(2).all(|two| (two[0] == b'\r') == (two[1] == b'\n')), "no line end but CR LF");
    let mut read = empty(head.kind());
    let parsed = parse(&out, &mut read, &AGAIN, relax);
    assert_eq!(parsed, Ok(Parsed::Complete { consumed: out.len() }), "{}", out.escape_ascii());
    let mut twice = Vec::new();
    write_head(&read, &mut |part| twice.extend_from_slice(part));
    assert_eq!(out.escape_ascii().to_string(), twice.escape_ascii().to_string());
    for method in [Method::Get, Method::Head, Method::Connect] {
        let method = if head.kind() == Kind::Request { head.method_id() } else { method };
        assert_eq!(body(head, method), body(&read, method));
    }
}
