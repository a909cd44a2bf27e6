//! Where a responder is, and the request that goes there (RFC 6960, appendix A.1).
//!
//! A question goes into the path of a GET, so that caches may answer it; one that is too long for that goes into the body of
//! a POST. The address comes out of a certificate: what is not plain is refused.

use std::fmt::Write as _;

/// Most bytes of a GET's path and the question in base64 together; RFC 6960, appendix A.1, says as much of the request.
const LONGEST: usize = 255;

/// The address of a responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'u> {
    /// The name, an IPv6 address in brackets.
    pub host: &'u str,
    /// The port; 80 unless it is named.
    pub port: u16,
    /// Host and port as they are written.
    authority: &'u str,
    /// Path and query.
    path: &'u str,
}

impl<'u> Place<'u> {
    /// Reads an address; `None`: it is none of HTTP.
    pub fn parse(uri: &'u str) -> Option<Place<'u>> {
        let (scheme, rest) = uri.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case("http://") || !rest.bytes().all(|c| c.is_ascii_graphic()) {
            return None;
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let split = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match split {
            Some((host, "")) => (host, 80),
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, 80),
        };
        (!host.is_empty()).then_some(Place { host, port, authority, path })
    }

    /// The request that asks `question`, through a proxy if `proxied`, and its first line as logs show it.
    pub fn request(&self, question: &[u8], proxied: bool) -> (Vec<u8>, String) {
        let digits = base::base64::encode(question);
        let path = if self.path.starts_with('/') { self.path.to_owned() } else { format!("/{}", self.path) };
        let within = path.len() + digits.len() <= LONGEST;
        let (method, path) = match within {
            true => ("GET", joined(path, &digits)),
            false => ("POST", path),
        };
        let whole = format!("http://{}{path}", self.authority);
        let target = if proxied { &whole } else { &path };
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\nuser-agent: Harrier\r\n",
            self.authority
        );
        if !within {
            let length = question.len();
            let _ = write!(head, "content-type: application/ocsp-request\r\ncontent-length: {length}\r\n");
        }
        head.push_str("\r\n");
        let mut out = head.into_bytes();
        if !within {
            out.extend_from_slice(question);
        }
        (out, format!("{method} {whole} HTTP/1.1"))
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
        String::from_utf8_lossy(&Place::parse(uri).unwrap().request(question, proxied).0).into_owned()
    }

    #[test]
    fn addresses_are_taken_apart() {
        for (uri, host, port) in [
            ("http://ocsp.example", "ocsp.example", 80),
            ("HTTP://127.0.0.1:12345/a/b", "127.0.0.1", 12345),
            ("http://[::1]:81/", "[::1]", 81),
            ("http://[::1]", "[::1]", 80),
            ("http://user:word@x:/#part", "x", 80),
        ] {
            let place = Place::parse(uri).unwrap();
            assert_eq!((place.host, place.port), (host, port), "{uri}");
        }
        for bad in
            ["https://x/", "http:///", "ldap://x", "http://x/a b", "http://x:99999/", "http://", "ü", ""]
        {
            assert_eq!(Place::parse(bad), None, "{bad}");
        }
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
        let (_, line) = Place::parse("http://x/a").unwrap().request(b"abc", false);
        assert_eq!(line, "GET http://x/a/YWJj HTTP/1.1");
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
