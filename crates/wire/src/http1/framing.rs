//! How the body after a head is framed (RFC 9112 section 6.3), and what a head says of its connection. The
//! parser has made sure that there is one length or one coding at most, so each question has one answer.

use super::Scanner;
use super::rules::decimal;
use crate::head::{Head, Known};
use crate::method::{Method, Version};

/// The end of a body. A tunnel is none of these: whoever knows that one was opened asks no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Body {
    /// No body: RFC 9112 section 6.3 points 1 and 7, or a length of zero.
    #[default]
    None,
    /// Content-Length: point 6.
    Length(u64),
    /// Transfer-Encoding ends in chunked: point 4.
    Chunked,
    /// A response without a length: point 8.
    UntilClose,
}

impl Body {
    /// Whether the body is whole in bytes that start where it starts.
    pub fn is_whole(self, data: &[u8]) -> bool {
        match self {
            Body::None => true,
            Body::Length(length) => data.len() as u64 >= length,
            Body::Chunked => Scanner::default().scan(data).is_ok_and(|(_, end)| end),
            Body::UntilClose => false,
        }
    }
}

/// The body of a request.
pub fn request_body(head: &Head) -> Body {
    declared(head).unwrap_or(Body::None)
}

/// The body of a response to a request with `method`.
pub fn response_body(head: &Head, method: Method) -> Body {
    match head.status() {
        100..=199 | 204 | 304 => Body::None,
        _ if method == Method::Head => Body::None,
        _ => declared(head).unwrap_or(Body::UntilClose),
    }
}

fn declared(head: &Head) -> Option<Body> {
    if let Some(coding) = head.last(Known::TransferEncoding) {
        return coding.eq_ignore_ascii_case(b"chunked").then_some(Body::Chunked);
    }
    match decimal(head.first(Known::ContentLength)?)? {
        0 => Some(Body::None),
        length => Some(Body::Length(length)),
    }
}

/// Whether the sender of a head wants its connection to go on after the message (RFC 9112 section 9.3).
pub fn keeps_alive(head: &Head) -> bool {
    let says = |token| head.has_token(Known::Connection, token);
    match head.version() >= Version::HTTP_11 {
        _ if head.is_distrusted() => false,
        true => !says(b"close"),
        false => says(b"keep-alive") && !says(b"close"),
    }
}

/// Whether a request asks for another protocol, or a response grants it (RFC 9110 section 7.8).
pub fn upgrades(head: &Head) -> bool {
    head.has(Known::Upgrade) && head.has_token(Known::Connection, b"upgrade")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{Limits, parse_response};

    fn response(text: &str) -> Head {
        let mut head = Head::response();
        parse_response(text.as_bytes(), &mut head, &Limits::default(), true).unwrap();
        head
    }

    #[test]
    fn a_status_may_forbid_a_body_whatever_its_length() {
        for (line, body) in [
            ("200 OK", Body::Length(3)),
            ("204 No", Body::None),
            ("304 No", Body::None),
            ("100 C", Body::None),
            ("20 Odd", Body::Length(3)),
        ] {
            let head = response(&format!("HTTP/1.1 {line}\r\nContent-Length: 3\r\n\r\n"));
            assert_eq!(response_body(&head, Method::Get), body, "{line}");
            assert_eq!(response_body(&head, Method::Head), Body::None, "{line}");
        }
        assert_eq!(response_body(&response("HTTP/1.1 200 OK\r\n\r\n"), Method::Get), Body::UntilClose);
    }

    #[test]
    fn the_version_says_what_silence_means() {
        for (text, keeps) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ] {
            assert_eq!(keeps_alive(&response(text)), keeps, "{text}");
        }
    }
}
