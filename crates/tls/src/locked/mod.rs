//! Private keys that a passphrase protects (manual, section 3.1, `ssl-passphrase-cmd`; section 5.1,
//! `ca-sign-pass`).
//!
//! Such a key stands in a PEM file in one of two forms: as `ENCRYPTED PRIVATE KEY` (PKCS #8, RFC 5958), or in
//! OpenSSL's older one, in which two lines of the section name a cipher and its start. [`open`] puts the key
//! itself in the place of what hides it, so that everything behind it reads plain PEM only. [`cipher`] does
//! the arithmetic, [`Phrases`] knows whom to ask for a passphrase.

mod cipher;
mod phrases;
mod pkcs12;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use zeroize::Zeroizing;

use base::base64;

pub use phrases::Phrases;

/// Longest key that is opened, in bytes of PEM: RSA with 16384 bits needs 13 KB.
const LONGEST: usize = 64 * 1024;

/// Why a key stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Nobody gave a passphrase.
    NoPhrase,
    /// The passphrase is not that of the key.
    Wrong,
    /// It is encrypted in a way that is not known here, or broken.
    Unknown,
}

impl Closed {
    /// In words, without a full stop.
    pub fn words(self) -> &'static str {
        match self {
            Closed::NoPhrase => "bad password read",
            Closed::Wrong => "bad decrypt",
            Closed::Unknown => "unsupported or broken encryption of the key",
        }
    }
}

/// Text of a PEM file with its key opened.
#[derive(Debug)]
pub struct Opened<'t> {
    /// The text. A key that stays closed is left out.
    pub text: Cow<'t, [u8]>,
    /// Why a key stayed closed.
    pub closed: Option<Closed>,
}

/// An encrypted key of a PEM file.
#[derive(Debug)]
struct Locked {
    /// What the section is called once the key is plain.
    label: &'static str,
    how: How,
    data: Vec<u8>,
}

/// How a key is encrypted.
#[derive(Debug)]
enum How {
    /// The data say it themselves (PKCS #8).
    Told,
    /// Cipher and its start (`DEK-Info`).
    Lines(cipher::Cipher, Vec<u8>),
}

impl Locked {
    fn open(&self, phrase: &[u8]) -> Result<Vec<u8>, Closed> {
        match &self.how {
            How::Told => cipher::pkcs8(&self.data, phrase),
            How::Lines(cipher, start) => cipher::traditional(*cipher, start, &self.data, phrase),
        }
    }
}

/// Whether a text holds an encrypted key.
pub fn is_locked(text: &[u8]) -> bool {
    next(text).is_some()
}

/// Opens the key of a PEM file: its first one, which is the one that is used. `path` is what the file is
/// called.
pub fn open<'t>(text: &'t [u8], path: &str, phrases: &Phrases) -> Opened<'t> {
    let mut out = Vec::new();
    let (mut rest, mut closed, mut keyed) = (text, None, false);
    while let Some(section) = next(rest) {
        let (before, behind) = (&rest[..section.start], &rest[section.end..]);
        keyed |= contains(before, b"PRIVATE KEY-----");
        out.extend_from_slice(before);
        if !keyed && closed.is_none() {
            let opened = match section.key {
                Ok(key) => phrases.open(&key, path).map(|der| (key.label, der)),
                Err(why) => Err(phrases.told(path, why)),
            };
            match opened {
                Ok((label, der)) => {
                    let mut plain = Zeroizing::new(String::new());
                    crate::pem::put(&mut plain, label, &der);
                    out.extend_from_slice(plain.as_bytes());
                }
                Err(why) => closed = Some(why),
            }
            keyed = closed.is_none();
        }
        rest = behind;
    }
    if rest.len() == text.len() {
        return Opened { text: Cow::Borrowed(text), closed: None };
    }
    out.extend_from_slice(rest);
    Opened { text: Cow::Owned(out), closed }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// An encrypted key and its place in a text.
struct Section {
    start: usize,
    end: usize,
    key: Result<Locked, Closed>,
}

/// The next encrypted key.
fn next(text: &[u8]) -> Option<Section> {
    const LABELS: [(&[u8], &str); 3] = [
        (b"ENCRYPTED PRIVATE KEY-----", "PRIVATE KEY"),
        (b"RSA PRIVATE KEY-----", "RSA PRIVATE KEY"),
        (b"EC PRIVATE KEY-----", "EC PRIVATE KEY"),
    ];
    const BEGIN: &[u8] = b"-----BEGIN ";
    let mut at = 0;
    loop {
        let start = at + find(text.get(at..)?, BEGIN)?;
        at = start + BEGIN.len();
        let rest = text.get(at..)?;
        let Some((line, label)) = LABELS.into_iter().find(|(line, _)| rest.starts_with(line)) else {
            continue;
        };
        let inside = rest.get(line.len()..)?;
        let length = find(inside, b"-----END ")?;
        let (body, tail) = inside.split_at_checked(length)?;
        let lines = label != "PRIVATE KEY";
        if lines && !contains(body, b"ENCRYPTED") {
            continue;
        }
        let end = tail.iter().position(|c| *c == b'\n').map_or(tail.len(), |n| n + 1);
        let end = text.len() - (tail.len() - end);
        return Some(Section { start, end, key: locked(label, lines, body) });
    }
}

/// What stands between the lines of a section.
fn locked(label: &'static str, lines: bool, body: &[u8]) -> Result<Locked, Closed> {
    if body.len() > LONGEST {
        return Err(Closed::Unknown);
    }
    let body = std::str::from_utf8(body).map_err(|_| Closed::Unknown)?;
    let mut how = How::Told;
    let mut digits = String::new();
    for line in body.lines().map(str::trim) {
        match line.split_once(':') {
            Some(("DEK-Info", info)) if lines => {
                let (name, start) = info.trim().split_once(',').ok_or(Closed::Unknown)?;
                let cipher = cipher::Cipher::named(name).ok_or(Closed::Unknown)?;
                how = How::Lines(cipher, unhex(start.trim()).ok_or(Closed::Unknown)?);
            }
            Some(_) => {}
            None => digits.push_str(line),
        }
    }
    if lines && matches!(how, How::Told) {
        return Err(Closed::Unknown);
    }
    Ok(Locked { label, how, data: base64::decode(digits.as_bytes()).ok_or(Closed::Unknown)? })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
