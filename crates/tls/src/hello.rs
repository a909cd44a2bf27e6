//! The ClientHello, read before a handshake begins: it decides which certificate and which rules apply, and
//! what fetches such as `ssl_fc_cipherlist_bin` tell of the client (RFC 8446 section 4.1.2).
//!
//! A total cursor: nothing is indexed, whatever does not fit is no hello.

use crate::record::{self, Bad};
use crate::room::HEADER;

/// Most bytes of a hello.
const MOST: usize = 65536;

/// A cursor over nested lengths.
#[derive(Clone, Copy)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    /// A big-endian number of `n` bytes.
    pub fn number(&mut self, n: usize) -> Option<usize> {
        Some(self.take(n)?.iter().fold(0, |all, c| all << 8 | usize::from(*c)))
    }

    /// What follows a length of `n` bytes.
    pub fn vector(&mut self, n: usize) -> Option<&'a [u8]> {
        let len = self.number(n)?;
        self.take(len)
    }
}

/// What a ClientHello says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hello<'a> {
    /// Legacy version.
    pub version: u16,
    /// Random.
    pub random: &'a [u8],
    /// Session id.
    pub session_id: &'a [u8],
    /// Cipher suites, two bytes each.
    pub ciphers: &'a [u8],
    /// Extensions as they came.
    pub extensions: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Reads the message behind its type and length.
    pub fn parse(message: &'a [u8]) -> Option<Hello<'a>> {
        let mut c = Cursor(message);
        let version = c.number(2)? as u16;
        let random = c.take(32)?;
        let session_id = c.vector(1)?;
        let ciphers = c.vector(2)?;
        c.vector(1)?;
        let extensions = if c.0.is_empty() { &[][..] } else { c.vector(2)? };
        Some(Hello { version, random, session_id, ciphers, extensions })
    }

    /// The content of an extension.
    pub fn extension(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut c = Cursor(self.extensions);
        while !c.0.is_empty() {
            let kind = c.number(2)?;
            let content = c.vector(2)?;
            if kind == usize::from(wanted) {
                return Some(content);
            }
        }
        None
    }

    /// Whether one of these protocols is offered, or none at all.
    pub fn offers_any(&self, known: &[Vec<u8>]) -> bool {
        let Some(list) = self.extension(16).and_then(|content| Cursor(content).vector(2)) else {
            return true;
        };
        let mut list = Cursor(list);
        std::iter::from_fn(|| list.vector(1)).any(|name| known.iter().any(|k| k[..] == *name))
    }

    /// Server name.
    pub fn server_name(&self) -> Option<&'a [u8]> {
        let mut list = Cursor(Cursor(self.extension(0)?).vector(2)?);
        while !list.0.is_empty() {
            let kind = list.number(1)?;
            let name = list.vector(2)?;
            if kind == 0 {
                return Some(name);
            }
        }
        None
    }

    /// Whether an extension that is a list of 16-bit numbers behind its length has one that `f` likes.
    fn lists(&self, extension: u16, f: impl Fn(u16) -> bool) -> Option<bool> {
        let list = Cursor(self.extension(extension)?).vector(2)?;
        Some(list.chunks_exact(2).any(|p| f(u16::from(p[0]) << 8 | u16::from(p[1]))))
    }

    /// Whether the client offers TLS 1.3.
    pub fn offers_tls13(&self) -> bool {
        let list = self.extension(43).and_then(|e| Cursor(e).vector(1));
        list.unwrap_or_default().chunks_exact(2).any(|p| p == [3, 4])
    }

    /// The client's version, where that is one that nobody speaks any more.
    pub fn outdated(&self) -> Option<&'static str> {
        match self.version {
            _ if self.offers_tls13() || self.offers_tls12() => None,
            0x0300 => Some("SSLv3"),
            0x0301 => Some("TLSv1"),
            0x0302 => Some("TLSv1.1"),
            _ => None,
        }
    }

    /// Whether the client offers TLS 1.2.
    pub fn offers_tls12(&self) -> bool {
        match self.extension(43).and_then(|e| Cursor(e).vector(1)) {
            Some(list) => list.chunks_exact(2).any(|p| p == [3, 3]),
            None => self.version >= 0x0303,
        }
    }

    /// Whether the client says that it tried a higher version before (RFC 7507), without offering TLS 1.3.
    pub fn is_fallback(&self) -> bool {
        self.offers(|c| c == 0x5600) && !self.offers_tls13()
    }

    /// Whether the client verifies signatures of ECDSA keys.
    pub fn verifies_ecdsa(&self) -> bool {
        self.lists(13, |s| matches!(s, 0x0403 | 0x0503 | 0x0603 | 0x0203)).unwrap_or(false)
    }

    /// Whether the client verifies signatures of RSA keys.
    pub fn verifies_rsa(&self) -> bool {
        self.lists(13, |s| matches!(s, 0x0804..=0x0806 | 0x0401 | 0x0501 | 0x0601)).unwrap_or(true)
    }

    /// The schemes of the signatures that the client verifies, if it says so.
    pub fn schemes(&self) -> Option<impl Iterator<Item = u16> + use<'a>> {
        let list = Cursor(self.extension(13)?).vector(2)?;
        Some(list.chunks_exact(2).map(|p| u16::from(p[0]) << 8 | u16::from(p[1])))
    }

    /// Whether the client offers a cipher suite.
    pub fn offers_suite(&self, number: u16) -> bool {
        self.offers(|c| c == number)
    }

    fn offers(&self, f: impl Fn(u16) -> bool) -> bool {
        self.ciphers.chunks_exact(2).any(|p| f(u16::from(p[0]) << 8 | u16::from(p[1])))
    }
}

/// Collects the first message out of its records. `None`: more has to come.
///
/// # Errors
/// When it is no ClientHello.
pub fn collect(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, Bad> {
    let mut message = Vec::new();
    loop {
        if bytes.first().is_some_and(|kind| *kind != record::content::HANDSHAKE) {
            return Err(record::UNEXPECTED);
        }
        let Some(len) = record::whole(bytes)? else { return Ok(None) };
        let (record, rest) = bytes.split_at(len);
        message.extend_from_slice(record.get(HEADER..).unwrap_or_default());
        bytes = rest;
        if let [kind, a, b, c, ..] = message[..] {
            let whole = 4 + (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c));
            if kind != 1 {
                return Err(record::UNEXPECTED);
            }
            if whole > MOST {
                return Err(record::DECODE);
            }
            if message.len() >= whole {
                message.truncate(whole);
                message.drain(..4);
                return Ok(Some(message));
            }
        }
    }
}
