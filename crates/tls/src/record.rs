//! Records of an established connection (RFC 8446 section 5, RFC 5246 section 6.2).
//!
//! rustls does the handshake; afterwards its keys are taken over and records are sealed and opened here,
//! straight between the buffers of the connection: its own record layer copies each byte into vectors on the
//! way in and out.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

use crate::room::{HEADER, MAX_EXTRA, MAX_PLAIN, Room};

/// Content types.
pub mod content {
    /// Nothing any more.
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    /// An alert.
    pub const ALERT: u8 = 21;
    /// Handshake messages.
    pub const HANDSHAKE: u8 = 22;
    /// Data.
    pub const DATA: u8 = 23;
}

const TAG: usize = 16;
const EXPLICIT: usize = 8;
/// After so many records a key is replaced (TLS 1.3) or used up (AES-GCM's limit, RFC 8446 section 5.5).
const KEY_LIFE: u64 = 1 << 24;

/// How nonces and additional data are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// TLS 1.3.
    Tls13,
    /// TLS 1.2 with AES-GCM: part of the nonce goes over the wire.
    Explicit,
    /// TLS 1.2 with ChaCha20-Poly1305.
    Tls12,
}

/// The key of one direction.
#[derive(Debug)]
pub struct Key {
    /// `None` while the handshake has not given it.
    key: Option<LessSafeKey>,
    iv: [u8; 12],
    seq: u64,
    shape: Shape,
}

/// A record that can't be opened; the alert that says why (RFC 8446 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad(pub u8);

/// `bad_record_mac`.
pub const BAD_MAC: Bad = Bad(20);
/// `record_overflow`.
pub const OVERFLOW: Bad = Bad(22);
/// `unexpected_message`.
pub const UNEXPECTED: Bad = Bad(10);
/// What comes is no record of TLS.
pub const VERSION: Bad = Bad(70);
/// `decode_error`.
pub const DECODE: Bad = Bad(50);

/// `internal_error`.
pub const INTERNAL: Bad = Bad(80);

/// Whether a key of TLS 1.3 should be replaced after so many records.
pub fn is_old(records: u64) -> bool {
    records >= KEY_LIFE / 2
}

/// Whether a key is used up after so many records.
pub fn is_worn(records: u64) -> bool {
    records >= KEY_LIFE
}

/// What a record held: its type, and where in the record its plaintext is.
pub type Opened = (u8, std::ops::Range<usize>);

impl Key {
    /// The key of a direction from what rustls agreed on, and the number of its next record.
    pub fn new(version: ProtocolVersion, seq: u64, secrets: &ConnectionTrafficSecrets) -> Option<Key> {
        let (algorithm, key, iv): (&'static Algorithm, _, _) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return None,
        };
        let shape = match (version, algorithm == &CHACHA20_POLY1305) {
            (ProtocolVersion::TLSv1_3, _) => Shape::Tls13,
            (_, true) => Shape::Tls12,
            (_, false) => Shape::Explicit,
        };
        let key =
            LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref().get(..algorithm.key_len())?).ok()?);
        Some(Key { key: Some(key), iv: iv.as_ref().try_into().ok()?, seq, shape })
    }

    /// The key of a direction that has none yet: it seals and opens nothing.
    pub fn none() -> Key {
        Key { key: None, iv: [0; 12], seq: 0, shape: Shape::Tls13 }
    }

    /// Number of the next record.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether it should be replaced before it is worn out.
    pub fn is_old(&self) -> bool {
        self.shape == Shape::Tls13 && is_old(self.seq)
    }

    /// Whether no more records may be sealed with it.
    pub fn is_worn(&self) -> bool {
        is_worn(self.seq)
    }

    /// What a record adds to its plaintext.
    pub fn extra(&self) -> usize {
        HEADER + TAG + if self.shape == Shape::Explicit { EXPLICIT } else { 1 }
    }

    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (n, s) in nonce[4..].iter_mut().zip(self.seq.to_be_bytes()) {
            *n ^= s;
        }
        nonce
    }

    /// Additional data of TLS 1.2.
    fn additional(&self, kind: u8, len: usize) -> [u8; 13] {
        let mut out = [0; 13];
        out[..8].copy_from_slice(&self.seq.to_be_bytes());
        out[8..11].copy_from_slice(&[kind, 3, 3]);
        out[11..].copy_from_slice(&(len as u16).to_be_bytes());
        out
    }

    /// Seals the bytes of `first` and `second`, at most [`MAX_PLAIN`] together, into `out`, where there must
    /// be room for them and [`Key::extra`]. Whether that was possible.
    pub fn seal(&mut self, kind: u8, first: &[u8], second: &[u8], out: &mut Room) -> bool {
        let Some(key) = &self.key else { return false };
        let plain = first.len() + second.len();
        let whole = plain + self.extra() - usize::from(self.shape == Shape::Tls12);
        let nonce = self.nonce();
        let tls13 = self.shape == Shape::Tls13;
        let Some(record) = out.spare_mut().get_mut(..whole).filter(|_| plain <= MAX_PLAIN) else {
            return false;
        };
        let (header, body) = record.split_at_mut(HEADER);
        let wire = (whole - HEADER) as u16;
        header[..3].copy_from_slice(&[if tls13 { content::DATA } else { kind }, 3, 3]);
        header[3..].copy_from_slice(&wire.to_be_bytes());
        let start = if self.shape == Shape::Explicit { EXPLICIT } else { 0 };
        body[..start].copy_from_slice(&nonce[4..4 + start]);
        let (text, tag) = body[start..].split_at_mut(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let additional = self.additional(kind, plain);
        // TLS 1.3 encrypts the type behind the content.
        let (aad, behind) = if tls13 { (&*header, &[kind][..]) } else { (&additional[..], &[][..]) };
        let aad = Aad::from(aad);
        let sealed = if second.is_empty() {
            key.seal_out_of_place_scatter(nonce, aad, first, text, behind, tag)
        } else {
            let (head, body) = text.split_at_mut(first.len());
            head.copy_from_slice(first);
            body.copy_from_slice(second);
            key.seal_in_place_scatter(nonce, aad, text, behind, tag)
        };
        if sealed.is_err() {
            return false;
        }
        self.seq += 1;
        out.advance(whole);
        true
    }

    /// Opens a whole record in place.
    ///
    /// # Errors
    /// Why it is none.
    pub fn open(&mut self, record: &mut [u8]) -> Result<Opened, Bad> {
        let Some((header, body)) = record.split_at_mut_checked(HEADER) else { return Err(DECODE) };
        let kind = header[0];
        let Some(key) = &self.key else { return Err(UNEXPECTED) };
        match self.shape {
            Shape::Tls13 => {
                if kind != content::DATA {
                    return Err(UNEXPECTED);
                }
                let nonce = Nonce::assume_unique_for_key(self.nonce());
                let aad = Aad::from(&*header);
                let plain = key.open_in_place(nonce, aad, body).map_err(|_| BAD_MAC)?;
                self.seq += 1;
                // The type stands behind the content, padding behind the type.
                let end = plain.iter().rposition(|c| *c != 0).ok_or(UNEXPECTED)?;
                let kind = plain[end];
                if end > MAX_PLAIN { Err(OVERFLOW) } else { Ok((kind, HEADER..HEADER + end)) }
            }
            shape => {
                let start = if shape == Shape::Explicit { EXPLICIT } else { 0 };
                let Some((explicit, text)) = body.split_at_mut_checked(start) else { return Err(BAD_MAC) };
                let len = text.len().checked_sub(TAG).ok_or(BAD_MAC)?;
                let mut nonce = self.nonce();
                if shape == Shape::Explicit {
                    nonce[..4].copy_from_slice(&self.iv[..4]);
                    nonce[4..].copy_from_slice(explicit);
                }
                let nonce = Nonce::assume_unique_for_key(nonce);
                let aad = Aad::from(self.additional(kind, len));
                key.open_in_place(nonce, aad, text).map_err(|_| BAD_MAC)?;
                self.seq += 1;
                let from = HEADER + start;
                if len > MAX_PLAIN { Err(OVERFLOW) } else { Ok((kind, from..from + len)) }
            }
        }
    }
}

/// The length of the first record in `bytes`, if it is there whole.
///
/// # Errors
/// When the bytes are no record.
pub fn whole(bytes: &[u8]) -> Result<Option<usize>, Bad> {
    let [kind, major, _, high, low, ..] = bytes else { return Ok(None) };
    if !(20..=24).contains(kind) || *major != 3 {
        return Err(VERSION);
    }
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    if len > MAX_PLAIN + MAX_EXTRA {
        return Err(OVERFLOW);
    }
    Ok((bytes.len() >= HEADER + len).then_some(HEADER + len))
}
