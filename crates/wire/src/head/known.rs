//! The header fields that rules, framing and logs ask for so often that a number stands for them.
//!
//! The parser numbers a field once; later look-ups compare a byte. A field is found by a small open-addressed
//! table computed at compile time from [`NAMES`], keyed by length, first and last letter, and confirmed by a
//! comparison.

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
                Some((known, text)) if is_in_any_case(name, text.as_bytes()) => return *known,
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

/// Whether `name` is `lower`, a text of small letters, digits and hyphens, in any case. No branch for each
/// byte: only where a letter is due the name is given the bit that its capital lacks.
#[inline]
fn is_in_any_case(name: &[u8], lower: &[u8]) -> bool {
    const LETTER: u64 = 0x4040_4040_4040_4040;
    if name.len() != lower.len() {
        return false;
    }
    let (names, name_rest) = name.as_chunks::<8>();
    let (lowers, lower_rest) = lower.as_chunks::<8>();
    let mut differ = 0;
    for (name, lower) in names.iter().zip(lowers) {
        let (name, lower) = (u64::from_le_bytes(*name), u64::from_le_bytes(*lower));
        differ |= (name | (lower & LETTER) >> 1) ^ lower;
    }
    for (name, lower) in name_rest.iter().zip(lower_rest) {
        differ |= u64::from((name | (lower & 0x40) >> 1) ^ lower);
    }
    differ == 0
}

/// Whether two names are the same in any case. Most that are have the same letters, and most that are not
/// differ in length.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one == other || one.eq_ignore_ascii_case(other))
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

    /// A byte is taken for another one only where a letter's case is all that parts them.
    #[test]
    fn no_other_byte_passes_for_a_letter_of_a_name() {
        for &(known, name) in NAMES.iter().skip(1) {
            for at in 0..name.len() {
                for byte in 0..=255u8 {
                    let mut text = name.as_bytes().to_vec();
                    text[at] = byte;
                    let same = text.eq_ignore_ascii_case(name.as_bytes());
                    assert_eq!(Known::of(&text) == known, same, "{text:?}");
                }
            }
        }
    }
}
