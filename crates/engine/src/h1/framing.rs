//! Where a body ends (RFC 9112 section 6.3), and what a head says of its connection. The parser has made sure that
//! lengths and codings are sound.

use crate::pump::Framing;
use wire::http1::Scanner;

use wire::head::{Head, Known};
use wire::method::{Method, Version};

/// The body behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// All until the server closes.
    Close,
}

impl Body {
    /// How the pump finds its end.
    pub fn framing(self) -> Framing {
        match self {
            Body::None => Framing::Length(0),
            Body::Length(n) => Framing::Length(n),
            Body::Chunked => Framing::Chunked(Scanner::default()),
            Body::Close => Framing::Close,
        }
    }
}

impl Body {
    /// Whether a body is whole in a buffer that starts where it starts.
    pub fn is_whole(self, buf: Option<&rt::Buf>) -> bool {
        let data = buf.map(rt::Buf::filled).unwrap_or_default();
        match self {
            Body::None => true,
            Body::Length(n) => data.len() as u64 >= n,
            Body::Chunked => Scanner::default().scan(data).is_ok_and(|(_, end)| end),
            Body::Close => false,
        }
    }
}

/// The body of a request: chunked (section 6.3, rule 4), a length (rule 6), else none (rule 7).
pub fn of_request(head: &Head) -> Body {
    declared(head).unwrap_or(Body::None)
}

/// The body of a response to `method`.
pub fn of_response(head: &Head, method: Method) -> Body {
    let status = head.status();
    // Rule 1: HEAD, 1xx, 204, 304. Rule 2: 2xx to CONNECT is a tunnel, no message.
    if method == Method::Head || (100..200).contains(&status) || status == 204 || status == 304 {
        return Body::None;
    }
    // Rule 8: without any declaration, until the server closes.
    declared(head).unwrap_or(Body::Close)
}

fn declared(head: &Head) -> Option<Body> {
    if head.has(Known::TransferEncoding) {
        let last = head.values(Known::TransferEncoding).last()?;
        return last.eq_ignore_ascii_case(b"chunked").then_some(Body::Chunked);
    }
    let length = head.first(Known::ContentLength)?;
    match decimal(length) {
        Some(0) => Some(Body::None),
        n => n.map(Body::Length),
    }
}

/// Whether the sender of a head wants its connection kept (RFC 9112 section 9.3).
pub fn keeps(head: &Head) -> bool {
    if head.is_distrusted() {
        return false;
    }
    let says = |token: &[u8]| head.has(Known::Connection) && head.has_token(Known::Connection, token);
    if head.version() >= Version::HTTP_11 { !says(b"close") } else { says(b"keep-alive") && !says(b"close") }
}

/// Whether a request asks for another protocol (RFC 9110 section 7.8).
pub fn upgrade(head: &Head) -> bool {
    head.has(Known::Upgrade) && head.has_token(Known::Connection, b"upgrade")
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}
