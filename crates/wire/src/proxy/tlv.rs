//! Type-length-value records behind a version 2 header.

/// Application protocol (ALPN).
pub const ALPN: u8 = 0x01;
/// Host name.
pub const AUTHORITY: u8 = 0x02;
/// CRC32c of the whole header.
pub const CRC32C: u8 = 0x03;
/// Padding.
pub const NOOP: u8 = 0x04;
/// Unique id.
pub const UNIQUE_ID: u8 = 0x05;
/// TLS facts, with records of their own.
pub const SSL: u8 = 0x20;
/// Among them: the version.
pub const SSL_VERSION: u8 = 0x21;
/// The common name of the client's certificate.
pub const SSL_CN: u8 = 0x22;
/// The cipher suite.
pub const SSL_CIPHER: u8 = 0x23;
/// How the server's certificate is signed.
pub const SSL_SIG_ALG: u8 = 0x24;
/// Kind and size of its key.
pub const SSL_KEY_ALG: u8 = 0x25;
/// Name space.
pub const NETNS: u8 = 0x30;

/// How long the value of a record may be.
pub(super) fn longest(kind: u8) -> usize {
    match kind {
        AUTHORITY => 255,
        UNIQUE_ID => 128,
        _ => 1024,
    }
}

/// Walks over records; ends early at one that does not fit.
#[derive(Clone, Debug)]
pub struct Tlvs<'t>(pub &'t [u8]);

impl<'t> Iterator for Tlvs<'t> {
    type Item = (u8, &'t [u8]);

    fn next(&mut self) -> Option<(u8, &'t [u8])> {
        let [kind, high, low, rest @ ..] = self.0 else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*kind, value))
    }
}

impl Tlvs<'_> {
    /// Whether the records fill their room exactly.
    pub fn are_sound(mut self) -> bool {
        while self.next().is_some() {}
        self.0.is_empty()
    }
}

/// Appends a record; one that is too long for its length field is left out.
pub fn append(kind: u8, value: &[u8], out: &mut Vec<u8>) {
    let Ok(length) = u16::try_from(value.len()) else { return };
    out.push(kind);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
}
