//! What a responder answers: HTTP in any framing.

use wire::head::{Head, Known};
use wire::http1::{Body, Limits, Parsed, Scanner, parse_response, response_body};
use wire::method::Method;

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its status.
    pub status: u16,
    /// It says that it is a response of OCSP.
    pub is_response: bool,
    /// Its body, without the framing.
    pub body: Vec<u8>,
}

/// How far an answer has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// There is more to come; its status, if that is known.
    Partial(Option<u16>),
    /// It is whole.
    Whole(Answer),
    /// It is none of HTTP.
    Broken,
}

/// Reads what came so far. `ended`: the responder closed in order, and nothing follows.
pub(super) fn read(data: &[u8], ended: bool) -> Reading {
    let mut rest = data;
    let head = loop {
        let mut head = Head::default();
        match parse_response(rest, &mut head, &Limits::default(), false) {
            Ok(Parsed::Complete { consumed }) => rest = rest.get(consumed..).unwrap_or_default(),
            Ok(Parsed::Partial) => return Reading::Partial(None),
            Err(_) => return Reading::Broken,
        }
        if !(100..200).contains(&head.status()) {
            break head;
        }
    };
    let partial = Reading::Partial(Some(head.status()));
    let body = match response_body(&head, Method::Get) {
        Body::None => Vec::new(),
        Body::Length(length) => {
            let whole = usize::try_from(length).ok().and_then(|length| rest.get(..length));
            let Some(body) = whole else { return partial };
            body.to_vec()
        }
        Body::Chunked => {
            let mut body = Vec::new();
            match Scanner::default().data(rest, |piece| body.extend_from_slice(piece)) {
                Ok(true) => body,
                Ok(false) => return partial,
                Err(_) => return Reading::Broken,
            }
        }
        Body::UntilClose if ended => rest.to_vec(),
        Body::UntilClose => return partial,
    };
    Reading::Whole(Answer { status: head.status(), is_response: is_response(&head), body })
}

fn is_response(head: &Head) -> bool {
    const KIND: &[u8] = b"application/ocsp-response";
    let kind = head.first(Known::ContentType).and_then(|v| v.split(|c| *c == b';').next());
    kind.is_some_and(|k| k.trim_ascii().eq_ignore_ascii_case(KIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "Content-Type: application/ocsp-response; x=y\r\n";

    fn body(text: String, ended: bool) -> Option<Vec<u8>> {
        match read(text.as_bytes(), ended) {
            Reading::Whole(answer) if answer.is_response && answer.status == 200 => Some(answer.body),
            _ => None,
        }
    }

    #[test]
    fn bodies_come_in_every_framing() {
        let told = |rest: &str| format!("HTTP/1.1 200 OK\r\n{KIND}{rest}");
        assert_eq!(body(told("Content-Length: 2\r\n\r\nabc"), false).unwrap(), b"ab");
        assert_eq!(body(told("Content-Length: 0\r\n\r\n"), false).unwrap(), b"");
        let chunked = "Transfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n3\r\ncde\r\n0\r\nt: x\r\n\r\n";
        assert_eq!(body(told(chunked), false).unwrap(), b"abcde");
        assert_eq!(body(told("\r\nabc"), true).unwrap(), b"abc");
        assert_eq!(body(told("\r\nabc"), false), None);
        let after = format!("HTTP/1.1 100 Continue\r\n\r\n{}", told("Content-Length: 1\r\n\r\na"));
        assert_eq!(body(after, false).unwrap(), b"a");
    }

    #[test]
    fn each_beginning_of_an_answer_is_partial_and_asks_for_more() {
        let framings =
            ["Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"];
        for framing in framings {
            let whole = format!("HTTP/1.1 200 OK\r\n{KIND}{framing}");
            for cut in 0..whole.len() {
                let so_far = read(&whole.as_bytes()[..cut], true);
                assert!(matches!(so_far, Reading::Partial(_)), "{cut} {so_far:?}");
            }
            assert!(matches!(read(whole.as_bytes(), false), Reading::Whole(_)));
        }
    }

    #[test]
    fn what_is_no_answer_is_told_from_another_answer() {
        for bad in ["junk\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"] {
            assert_eq!(read(bad.as_bytes(), false), Reading::Broken, "{bad}");
        }
        let other =
            read(b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n", false);
        assert_eq!(other, Reading::Whole(Answer { status: 404, is_response: false, body: Vec::new() }));
    }
}
