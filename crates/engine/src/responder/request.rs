//! The request that goes to a responder (RFC 6960, appendix A.1).
//!
//! A question goes into the path of a GET, so that caches may answer it; one that is too long for that goes
//! into the body of a POST. The address comes out of a certificate: what is not plain is refused.

use std::fmt::Write as _;

use wire::method::Method;

use crate::inner::place::Place;

/// Most bytes of a GET's path and the question in base64 together; RFC 6960, appendix A.1, says as much of
/// the request.
const LONGEST: usize = 255;

/// A question as it is sent.
pub(super) struct Request {
    /// Its method.
    pub method: Method,
    /// Head and body in the form of HTTP/1.
    pub bytes: Vec<u8>,
    /// Its first line as logs show it.
    pub line: String,
}

impl Place<'_> {
    /// The request that asks `question`, through a proxy if `proxied`.
    pub(super) fn request(&self, question: &[u8], proxied: bool) -> Request {
        let digits = base::base64::encode(question);
        let path = if self.path.starts_with('/') { self.path.to_owned() } else { format!("/{}", self.path) };
        let within = path.len() + digits.len() <= LONGEST;
        let (method, path) = match within {
            true => (Method::Get, joined(path, &digits)),
            false => (Method::Post, path),
        };
        let name = if within { "GET" } else { "POST" };
        let whole = format!("{}://{}{path}", self.scheme.name(), self.authority);
        let target = if proxied { &whole } else { &path };
        let mut head = format!(
            "{name} {target} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\nuser-agent: Harrier\r\n",
            self.authority
        );
        if !within {
            let length = question.len();
            let _ = write!(head, "content-type: application/ocsp-request\r\ncontent-length: {length}\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if !within {
            bytes.extend_from_slice(question);
        }
        Request { method, bytes, line: format!("{name} {whole} HTTP/1.1") }
    }
}

/// A path with base64 behind it, whose signs mean something in an address.
fn joined(mut path: String, digits: &str) -> String {
    if !path.ends_with('/') {
        path.push('/');
    }
    for digit in digits.chars() {
        match digit {
            '+' => path.push_str("%2B"),
            '/' => path.push_str("%2F"),
            '=' => path.push_str("%3D"),
            plain => path.push(plain),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(uri: &str, question: &[u8], proxied: bool) -> String {
        String::from_utf8_lossy(&Place::parse(uri).unwrap().request(question, proxied).bytes).into_owned()
    }

    #[test]
    fn a_question_goes_into_the_path() {
        let question = [0xfb, 0xff, 0xfe, 0xff];
        let said = head("http://user@ocsp.example:81/ask?x=1", &question, false);
        assert!(
            said.starts_with("GET /ask?x=1/%2B%2F%2F%2B%2Fw%3D%3D HTTP/1.1\r\nhost: ocsp.example:81\r\n"),
            "{said}"
        );
        assert!(said.ends_with("\r\n\r\n") && !said.contains("content-"));
        assert!(head("http://x", b"abc", false).starts_with("GET /YWJj HTTP/1.1\r\nhost: x\r\n"));
        assert!(head("http://x/", b"abc", false).starts_with("GET /YWJj HTTP/1.1\r\n"));
        assert!(head("http://x/a", b"abc", true).starts_with("GET http://x/a/YWJj HTTP/1.1\r\nhost: x\r\n"));
        let request = Place::parse("http://x/a").unwrap().request(b"abc", false);
        assert_eq!(request.line, "GET http://x/a/YWJj HTTP/1.1");
    }

    #[test]
    fn a_long_question_goes_into_a_body() {
        // HAProxy draws the line at the same place.
        for (length, method) in [(162, "GET"), (163, "POST")] {
            let uri = format!("http://x/{}", "p".repeat(length));
            let said = head(&uri, &[7; 69], false);
            assert!(said.starts_with(method), "{length}");
            assert_eq!(said.contains("content-length: 69\r\n\r\n\u{7}\u{7}"), method == "POST");
        }
    }
}
