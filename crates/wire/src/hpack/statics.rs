//! The static table (RFC 7541 appendix A), and what is known of a name at a glance.

use crate::head::{Known, NAMES};
use crate::http1::bytes::{TOKEN, UPPER, class};

/// A pseudo-header field (RFC 9113 section 8.3, RFC 8441 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    Status,
}

/// What the name of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Pseudo(Pseudo),
    /// A field with a name that HTTP/2 allows: lower-case bytes of a token.
    Field(Known),
    /// Anything else, which makes a message malformed (RFC 9113 section 8.2.1).
    Bad,
}

impl Tag {
    /// The tag of `name`.
    pub fn of(name: &[u8]) -> Tag {
        match name {
            [b':', rest @ ..] => pseudo(rest).map_or(Tag::Bad, Tag::Pseudo),
            [] => Tag::Bad,
            _ if name.iter().all(|&byte| class(byte) & (TOKEN | UPPER) == TOKEN) => {
                Tag::Field(Known::of(name))
            }
            _ => Tag::Bad,
        }
    }
}

fn pseudo(name: &[u8]) -> Option<Pseudo> {
    Some(match name {
        b"method" => Pseudo::Method,
        b"scheme" => Pseudo::Scheme,
        b"authority" => Pseudo::Authority,
        b"path" => Pseudo::Path,
        b"protocol" => Pseudo::Protocol,
        b"status" => Pseudo::Status,
        _ => return None,
    })
}

/// The entries by index, the first at 1: name, value, tag.
pub const STATIC: [(&str, &str, Tag); 61] = [
    (":authority", "", Tag::Pseudo(Pseudo::Authority)),
    (":method", "GET", Tag::Pseudo(Pseudo::Method)),
    (":method", "POST", Tag::Pseudo(Pseudo::Method)),
    (":path", "/", Tag::Pseudo(Pseudo::Path)),
    (":path", "/index.html", Tag::Pseudo(Pseudo::Path)),
    (":scheme", "http", Tag::Pseudo(Pseudo::Scheme)),
    (":scheme", "https", Tag::Pseudo(Pseudo::Scheme)),
    (":status", "200", Tag::Pseudo(Pseudo::Status)),
    (":status", "204", Tag::Pseudo(Pseudo::Status)),
    (":status", "206", Tag::Pseudo(Pseudo::Status)),
    (":status", "304", Tag::Pseudo(Pseudo::Status)),
    (":status", "400", Tag::Pseudo(Pseudo::Status)),
    (":status", "404", Tag::Pseudo(Pseudo::Status)),
    (":status", "500", Tag::Pseudo(Pseudo::Status)),
    ("accept-charset", "", Tag::Field(Known::Other)),
    ("accept-encoding", "gzip, deflate", Tag::Field(Known::AcceptEncoding)),
    ("accept-language", "", Tag::Field(Known::AcceptLanguage)),
    ("accept-ranges", "", Tag::Field(Known::Other)),
    ("accept", "", Tag::Field(Known::Accept)),
    ("access-control-allow-origin", "", Tag::Field(Known::Other)),
    ("age", "", Tag::Field(Known::Age)),
    ("allow", "", Tag::Field(Known::Other)),
    ("authorization", "", Tag::Field(Known::Authorization)),
    ("cache-control", "", Tag::Field(Known::CacheControl)),
    ("content-disposition", "", Tag::Field(Known::ContentDisposition)),
    ("content-encoding", "", Tag::Field(Known::ContentEncoding)),
    ("content-language", "", Tag::Field(Known::Other)),
    ("content-length", "", Tag::Field(Known::ContentLength)),
    ("content-location", "", Tag::Field(Known::Other)),
    ("content-range", "", Tag::Field(Known::Other)),
    ("content-type", "", Tag::Field(Known::ContentType)),
    ("cookie", "", Tag::Field(Known::Cookie)),
    ("date", "", Tag::Field(Known::Date)),
    ("etag", "", Tag::Field(Known::Etag)),
    ("expect", "", Tag::Field(Known::Expect)),
    ("expires", "", Tag::Field(Known::Expires)),
    ("from", "", Tag::Field(Known::Other)),
    ("host", "", Tag::Field(Known::Host)),
    ("if-match", "", Tag::Field(Known::Other)),
    ("if-modified-since", "", Tag::Field(Known::IfModifiedSince)),
    ("if-none-match", "", Tag::Field(Known::IfNoneMatch)),
    ("if-range", "", Tag::Field(Known::Other)),
    ("if-unmodified-since", "", Tag::Field(Known::Other)),
    ("last-modified", "", Tag::Field(Known::LastModified)),
    ("link", "", Tag::Field(Known::Other)),
    ("location", "", Tag::Field(Known::Location)),
    ("max-forwards", "", Tag::Field(Known::Other)),
    ("proxy-authenticate", "", Tag::Field(Known::ProxyAuthenticate)),
    ("proxy-authorization", "", Tag::Field(Known::ProxyAuthorization)),
    ("range", "", Tag::Field(Known::Range)),
    ("referer", "", Tag::Field(Known::Referer)),
    ("refresh", "", Tag::Field(Known::Other)),
    ("retry-after", "", Tag::Field(Known::Other)),
    ("server", "", Tag::Field(Known::Server)),
    ("set-cookie", "", Tag::Field(Known::SetCookie)),
    ("strict-transport-security", "", Tag::Field(Known::StrictTransportSecurity)),
    ("transfer-encoding", "", Tag::Field(Known::TransferEncoding)),
    ("user-agent", "", Tag::Field(Known::UserAgent)),
    ("vary", "", Tag::Field(Known::Vary)),
    ("via", "", Tag::Field(Known::Via)),
    ("www-authenticate", "", Tag::Field(Known::WwwAuthenticate)),
];

const BY_KNOWN: [u8; NAMES.len()] = by_known();

const fn by_known() -> [u8; NAMES.len()] {
    let mut table = [0; NAMES.len()];
    let mut at = STATIC.len();
    while at > 0 {
        if let (_, _, Tag::Field(known)) = STATIC[at - 1] {
            table[known as usize] = at as u8;
        }
        at -= 1;
    }
    table[Known::Other as usize] = 0;
    table
}

/// The index of a static entry with this name, 0 when there is none.
#[inline]
pub fn name_index(known: Known, name: &[u8]) -> u8 {
    match known {
        Known::Other => other_index(name),
        known => BY_KNOWN.get(known as usize).copied().unwrap_or(0),
    }
}

fn other_index(name: &[u8]) -> u8 {
    match name {
        b"accept-charset" => 15,
        b"accept-ranges" => 18,
        b"access-control-allow-origin" => 20,
        b"allow" => 22,
        b"content-language" => 27,
        b"content-location" => 29,
        b"content-range" => 30,
        b"from" => 37,
        b"if-match" => 39,
        b"if-range" => 42,
        b"if-unmodified-since" => 43,
        b"link" => 45,
        b"max-forwards" => 47,
        b"refresh" => 52,
        b"retry-after" => 53,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_indices_agree_with_the_table() {
        for (at, (name, _, tag)) in STATIC.iter().enumerate() {
            assert_eq!(Tag::of(name.as_bytes()), *tag, "{name}");
            if let Tag::Field(known) = tag {
                assert_eq!(usize::from(name_index(*known, name.as_bytes())), at + 1, "{name}");
            }
        }
        assert_eq!(name_index(Known::Other, b"x-none"), 0);
        assert_eq!(name_index(Known::Upgrade, b"upgrade"), 0);
    }

    #[test]
    fn names_that_http2_forbids_are_bad() {
        for name in [&b""[..], b"Host", b"a b", b"a:", b":", b":foo", b"a\0", b"\xe4"] {
            assert_eq!(Tag::of(name), Tag::Bad, "{}", name.escape_ascii());
        }
    }
}
