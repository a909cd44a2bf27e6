//! How the body after a head is framed (RFC 9112 section 6.3), read from a head that the parser has checked.

use super::rules::decimal;
use crate::head::{Head, Kind, Known};
use crate::method::{Method, Version};

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No body: RFC 9112 section 6.3 points 1 and 7.
    None,
    /// Content-Length: point 6.
    Length(u64),
    /// Transfer-Encoding ends in chunked: point 4.
    Chunked,
    /// A response without a length: point 8.
    UntilClose,
    /// Bytes both ways from here on: point 2, and 101 (RFC 9110 section 15.2.2).
    Tunnel,
}

/// The framing of a message and whether its connection may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    pub body: Body,
    /// The peer lets the connection go on after this message (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// Connection has `upgrade` and Upgrade is there (RFC 9110 section 7.8).
    pub upgrade: bool,
    /// The client waits for `100 Continue` (RFC 9110 section 10.1.1).
    pub expect_continue: bool,
}

impl Framing {
    /// The framing of a parsed message; `method` is that of the request, also for its response.
    pub fn of(head: &Head, method: Method) -> Framing {
        let upgrade = head.has_token(Known::Connection, b"upgrade") && head.has(Known::Upgrade);
        let body = match head.kind() {
            Kind::Request if method == Method::Connect => Body::Tunnel,
            Kind::Request => length(head).unwrap_or(Body::None),
            Kind::Response => response(head, method),
        };
        let modern = head.version() >= Version::HTTP_11;
        let close =
            head.distrusted || body == Body::UntilClose || head.has_token(Known::Connection, b"close");
        let keep_alive = !close && (modern || head.has_token(Known::Connection, b"keep-alive"));
        let expect_continue = modern
            && head.kind() == Kind::Request
            && head.first(Known::Expect).is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
        Framing { body, keep_alive, upgrade, expect_continue }
    }
}

fn response(head: &Head, method: Method) -> Body {
    match head.status() {
        101 => Body::Tunnel,
        200..=299 if method == Method::Connect => Body::Tunnel,
        100..=199 | 204 | 304 => Body::None,
        _ if method == Method::Head => Body::None,
        _ => length(head).unwrap_or(Body::UntilClose),
    }
}

fn length(head: &Head) -> Option<Body> {
    if head.has_token(Known::TransferEncoding, b"chunked") {
        return Some(Body::Chunked);
    }
    head.first(Known::ContentLength).and_then(decimal).map(Body::Length)
}
