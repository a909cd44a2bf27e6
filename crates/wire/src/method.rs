//! Request methods and HTTP versions as small numbers, so that rules and framing compare integers, not text.
//!
//! The numbered methods are those that the manual's fetch `method` knows; every other one is
//! [`Method::Other`] and keeps its text in the head. Methods are case-sensitive (RFC 9110 section 9.1).

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Method {
    Options,
    #[default]
    Get,
    Head,
    Post,
    Put,
    Delete,
    Trace,
    Connect,
    Other,
}

impl Method {
    /// The method written by `name`, compared exactly.
    pub fn from_bytes(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"POST" => Method::Post,
            b"HEAD" => Method::Head,
            b"PUT" => Method::Put,
            b"OPTIONS" => Method::Options,
            b"DELETE" => Method::Delete,
            b"TRACE" => Method::Trace,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        }
    }

    /// The text of a numbered method, empty for [`Method::Other`].
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Options => "OPTIONS",
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Trace => "TRACE",
            Method::Connect => "CONNECT",
            Method::Other => "",
        }
    }

    /// Safe to send twice without harm (RFC 9110 section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Method::Post | Method::Connect | Method::Other)
    }
}

/// The version of the protocol that a message came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u8,
    pub minor: u8,
}

impl Version {
    pub const HTTP_09: Version = Version { major: 0, minor: 9 };
    pub const HTTP_10: Version = Version { major: 1, minor: 0 };
    pub const HTTP_11: Version = Version { major: 1, minor: 1 };
    pub const HTTP_2: Version = Version { major: 2, minor: 0 };
    pub const HTTP_3: Version = Version { major: 3, minor: 0 };

    /// `HTTP/x.y`, as start lines and logs write it.
    pub fn as_str(self) -> &'static str {
        match (self.major, self.minor) {
            (0, _) => "HTTP/0.9",
            (1, 0) => "HTTP/1.0",
            (1, _) => "HTTP/1.1",
            (2, _) => "HTTP/2.0",
            _ => "HTTP/3.0",
        }
    }
}

impl Default for Version {
    fn default() -> Version {
        Version::HTTP_11
    }
}

/// The reason phrase for `status` when a message brings none: the registered phrase, or one for its class.
pub fn default_reason(status: u16) -> &'static str {
    match REASONS.binary_search_by_key(&status, |&(code, _)| code) {
        Ok(at) => REASONS.get(at).map_or("", |&(_, reason)| reason),
        Err(_) => match status {
            100..=199 => "Informational",
            200..=299 => "Success",
            300..=399 => "Redirection",
            400..=499 => "Client Error",
            500..=599 => "Server Error",
            _ => "Other",
        },
    }
}

/// Status codes and the phrases that HAProxy says for them, by code: what reads logs and responses may look
/// for those.
const REASONS: &[(u16, &str)] = &[
    (100, "Continue"),
    (101, "Switching Protocols"),
    (102, "Processing"),
    (200, "OK"),
    (201, "Created"),
    (202, "Accepted"),
    (203, "Non-Authoritative Information"),
    (204, "No Content"),
    (205, "Reset Content"),
    (206, "Partial Content"),
    (207, "Multi-Status"),
    (210, "Content Different"),
    (226, "IM Used"),
    (300, "Multiple Choices"),
    (301, "Moved Permanently"),
    (302, "Found"),
    (303, "See Other"),
    (304, "Not Modified"),
    (305, "Use Proxy"),
    (307, "Temporary Redirect"),
    (308, "Permanent Redirect"),
    (310, "Too many Redirects"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (406, "Not Acceptable"),
    (407, "Proxy Authentication Required"),
    (408, "Request Time-out"),
    (409, "Conflict"),
    (410, "Gone"),
    (411, "Length Required"),
    (412, "Precondition Failed"),
    (413, "Request Entity Too Large"),
    (414, "Request-URI Too Long"),
    (415, "Unsupported Media Type"),
    (416, "Requested range unsatisfiable"),
    (417, "Expectation failed"),
    (418, "I'm a teapot"),
    (421, "Misdirected Request"),
    (422, "Unprocessable Content"),
    (423, "Locked"),
    (424, "Method failure"),
    (425, "Too Early"),
    (426, "Upgrade Required"),
    (428, "Precondition Required"),
    (429, "Too Many Requests"),
    (431, "Request Header Fields Too Large"),
    (449, "Retry With"),
    (450, "Blocked by Windows Parental Controls"),
    (451, "Unavailable For Legal Reasons"),
    (456, "Unrecoverable Error"),
    (499, "client has closed connection"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway or Proxy Error"),
    (503, "Service Unavailable"),
    (504, "Gateway Time-out"),
    (505, "HTTP Version not supported"),
    (506, "Variant also negotiate"),
    (507, "Insufficient storage"),
    (508, "Loop detected"),
    (509, "Bandwidth Limit Exceeded"),
    (510, "Not extended"),
    (511, "Network authentication required"),
    (520, "Web server is returning an unknown error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_methods_read_back() {
        for method in [
            Method::Options,
            Method::Get,
            Method::Head,
            Method::Post,
            Method::Put,
            Method::Delete,
            Method::Trace,
            Method::Connect,
        ] {
            assert_eq!(Method::from_bytes(method.as_str().as_bytes()), method);
        }
        assert_eq!(Method::from_bytes(b"get"), Method::Other);
    }

    #[test]
    fn every_status_has_a_reason() {
        assert!(REASONS.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted for the search");
        assert_eq!(default_reason(404), "Not Found");
        assert!((100..=999).all(|status| !default_reason(status).is_empty()));
    }
}
