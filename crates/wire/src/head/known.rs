//! The header fields that rules, framing and logs ask for so often that a number stands for them.
//!
//! The parser numbers a field once; later look-ups compare a byte. A field is found by a small open-addressed table
//! computed at compile time from [`NAMES`], keyed by length, first and last letter, and confirmed by a comparison.

/// A numbered header field. [`Known::Other`] is every field not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Known {
    Other,
    Host,
    Connection,
    ContentLength,
    TransferEncoding,
    Cookie,
    SetCookie,
    Expect,
    Upgrade,
    KeepAlive,
    ProxyConnection,
    Te,
    Trailer,
    Date,
    Location,
    ContentType,
    ContentEncoding,
    XForwardedFor,
    XOriginalTo,
    Forwarded,
    Authorization,
    ProxyAuthorization,
    WwwAuthenticate,
    ProxyAuthenticate,
    UserAgent,
    Referer,
    CacheControl,
    Accept,
    AcceptEncoding,
    AcceptLanguage,
    Origin,
    Server,
    Vary,
    Age,
    Expires,
    LastModified,
    Etag,
    IfNoneMatch,
    IfModifiedSince,
    Range,
    SecWebsocketKey,
    SecWebsocketAccept,
    XForwardedProto,
    XForwardedHost,
    XForwardedPort,
    XRequestId,
    Via,
    Pragma,
    ContentDisposition,
    AltSvc,
    StrictTransportSecurity,
    Http2Settings,
}

/// Every numbered field with its name in lower case, in the order of [`Known`].
pub const NAMES: &[(Known, &str)] = &[
    (Known::Other, ""),
    (Known::Host, "host"),
    (Known::Connection, "connection"),
    (Known::ContentLength, "content-length"),
    (Known::TransferEncoding, "transfer-encoding"),
    (Known::Cookie, "cookie"),
    (Known::SetCookie, "set-cookie"),
    (Known::Expect, "expect"),
    (Known::Upgrade, "upgrade"),
    (Known::KeepAlive, "keep-alive"),
    (Known::ProxyConnection, "proxy-connection"),
    (Known::Te, "te"),
    (Known::Trailer, "trailer"),
    (Known::Date, "date"),
    (Known::Location, "location"),
    (Known::ContentType, "content-type"),
    (Known::ContentEncoding, "content-encoding"),
    (Known::XForwardedFor, "x-forwarded-for"),
    (Known::XOriginalTo, "x-original-to"),
    (Known::Forwarded, "forwarded"),
    (Known::Authorization, "authorization"),
    (Known::ProxyAuthorization, "proxy-authorization"),
    (Known::WwwAuthenticate, "www-authenticate"),
    (Known::ProxyAuthenticate, "proxy-authenticate"),
    (Known::UserAgent, "user-agent"),
    (Known::Referer, "referer"),
    (Known::CacheControl, "cache-control"),
    (Known::Accept, "accept"),
    (Known::AcceptEncoding, "accept-encoding"),
    (Known::AcceptLanguage, "accept-language"),
    (Known::Origin, "origin"),
    (Known::Server, "server"),
    (Known::Vary, "vary"),
    (Known::Age, "age"),
    (Known::Expires, "expires"),
    (Known::LastModified, "last-modified"),
    (Known::Etag, "etag"),
    (Known::IfNoneMatch, "if-none-match"),
    (Known::IfModifiedSince, "if-modified-since"),
    (Known::Range, "range"),
    (Known::SecWebsocketKey, "sec-websocket-key"),
    (Known::SecWebsocketAccept, "sec-websocket-accept"),
    (Known::XForwardedProto, "x-forwarded-proto"),
    (Known::XForwardedHost, "x-forwarded-host"),
    (Known::XForwardedPort, "x-forwarded-port"),
    (Known::XRequestId, "x-request-id"),
    (Known::Via, "via"),
    (Known::Pragma, "pragma"),
    (Known::ContentDisposition, "content-disposition"),
    (Known::AltSvc, "alt-svc"),
    (Known::StrictTransportSecurity, "strict-transport-security"),
    (Known::Http2Settings, "http2-settings"),
];

const SLOTS: usize = 256;
const TABLE: [u8; SLOTS] = fill();

impl Known {
    /// The number of `name`, compared without regard to case.
    #[inline]
    pub fn of(name: &[u8]) -> Known {
        let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return Known::Other };
        let mut slot = slot_of(name.len(), first | 0x20, last | 0x20);
        loop {
            match NAMES.get(TABLE[slot] as usize) {
                None | Some((Known::Other, _)) => return Known::Other,
                Some((known, text)) if name.eq_ignore_ascii_case(text.as_bytes()) => return *known,
                Some(_) => slot = (slot + 1) % SLOTS,
            }
        }
    }

    /// The name in lower case; empty for [`Known::Other`].
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// The bit of this field in a mask of fields present.
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        1 << self as u8
    }
}

const fn slot_of(len: usize, first: u8, last: u8) -> usize {
    (len.wrapping_mul(37) ^ (first as usize).wrapping_mul(11) ^ (last as usize).wrapping_mul(71)) % SLOTS
}

const fn fill() -> [u8; SLOTS] {
    assert!(NAMES.len() <= 64, "the mask of fields present has 64 bits");
    let mut table = [0; SLOTS];
    let mut at = 1;
    while at < NAMES.len() {
        let name = NAMES[at].1.as_bytes();
        let mut slot = slot_of(name.len(), name[0] | 0x20, name[name.len() - 1] | 0x20);
        while table[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = at as u8;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_in_any_case() {
        for (at, &(known, name)) in NAMES.iter().enumerate() {
            assert_eq!(known as usize, at, "{name} stands at its number");
            assert_eq!(Known::of(name.as_bytes()), known);
            assert_eq!(Known::of(name.to_ascii_uppercase().as_bytes()), known);
        }
        assert_eq!(Known::of(b"x-unknown"), Known::Other);
        assert_eq!(Known::of(b"hosu"), Known::Other);
    }
}
