//! Tickets: sessions that clients keep for us, sealed with keys of ours (RFC 5077, RFC 8446 section 4.6.1).
//!
//! A ring of keys seals with the last but one and opens with all, so that a fleet whose machines get a new
//! key one after the other understands each other's tickets all the while (manual, `tls-ticket-keys`, `set
//! ssl tls-key`). Without such keys the process makes its own. Both halves of a key as OpenSSL has it (one
//! authenticates, one encrypts) go into the key of an AEAD. A ticket tells when it was made: one that is
//! older than `tune.ssl.lifetime` opens nothing.
//!
//! ```text
//! name of the key (16) | nonce (12) | sealed: seconds since the epoch (8) | session | tag (16)
//! ```

use base::outside;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use base::base64;
use rustls::server::ProducesTickets;

/// How many keys are kept (HAProxy's `TLS_TICKETS_NO`).
pub const KEYS: usize = 3;
const NAME: usize = 16;
const DATE: usize = 8;
/// What stands in front of what is sealed.
const FRONT: usize = NAME + NONCE_LEN;
/// Longest session that is sealed: a chain of client certificates may be in it.
const LONGEST: usize = 60_000;

/// One key: its text as a file has it, and what became of it.
struct Key {
    raw: Box<[u8]>,
    name: [u8; NAME],
    cipher: RandomizedNonceKey,
}

impl Key {
    /// From 48 or 80 bytes.
    fn new(raw: &[u8]) -> Option<Key> {
        let name: [u8; NAME] = raw.get(..NAME)?.try_into().ok()?;
        let halves = raw.get(NAME..).filter(|h| matches!(h.len(), 32 | 64))?;
        let (authenticates, encrypts) = halves.split_at(halves.len() / 2);
        let prk = Salt::new(HKDF_SHA256, authenticates).extract(encrypts);
        let mut key = [0; 32];
        prk.expand(&[b"harrier ticket"], &AES_256_GCM).ok()?.fill(&mut key).ok()?;
        let cipher = RandomizedNonceKey::new(&AES_256_GCM, &key).ok()?;
        Some(Key { raw: raw.into(), name, cipher })
    }

    fn seal(&self, plain: &[u8], now: u64) -> Option<Vec<u8>> {
        let mut ticket = Vec::with_capacity(FRONT + DATE + plain.len() + AES_256_GCM.tag_len());
        ticket.extend_from_slice(&self.name);
        // The nonce is known when the rest is sealed.
        ticket.extend_from_slice(&[0; NONCE_LEN]);
        ticket.extend_from_slice(&now.to_be_bytes());
        ticket.extend_from_slice(plain);
        let (front, text) = ticket.split_at_mut(FRONT);
        let (nonce, tag) = self.cipher.seal_in_place_separate_tag(Aad::from(&self.name), text).ok()?;
        front[NAME..].copy_from_slice(nonce.as_ref());
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, nonce: &[u8], sealed: &[u8]) -> Option<(u64, Vec<u8>)> {
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = sealed.to_vec();
        let plain = self.cipher.open_in_place(nonce, Aad::from(&self.name), &mut text).ok()?;
        let (date, len) = (u64::from_be_bytes(*plain.first_chunk::<DATE>()?), plain.len());
        text.truncate(len);
        text.drain(..DATE);
        Some((date, text))
    }
}

/// Why a key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongSize;

/// The keys of a file, or of the process; oldest first.
pub struct Keys {
    /// The file, empty for keys of the process.
    pub file: Box<str>,
    /// Those that the file had when it was read, oldest first.
    given: Vec<Box<[u8]>>,
    ring: ArcSwap<Vec<Arc<Key>>>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.file)
    }
}

impl Keys {
    /// Random ones, known to this process only.
    pub fn random() -> Option<Keys> {
        let ring = (0..KEYS).map(|_| {
            let mut raw = [0; 80];
            aws_lc_rs::rand::fill(&mut raw).ok()?;
            Some(Arc::new(Key::new(&raw)?))
        });
        let ring: Vec<_> = ring.collect::<Option<_>>()?;
        Some(Keys { file: Box::default(), given: Vec::new(), ring: ArcSwap::from_pointee(ring) })
    }

    /// The last ones of a file's lines, each base64 of 48 or 80 bytes, all of one length.
    ///
    /// # Errors
    /// What is wrong with them, in HAProxy's words.
    pub fn from_file(path: &str) -> Result<Keys, String> {
        let text = outside::read_to_string(path)
            .map_err(|_| format!("'{path}' : unable to load ssl tickets keys file"))?;
        let mut ring: Vec<Arc<Key>> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(raw) = base64::decode(line.trim_end().as_bytes()).filter(|raw| !raw.is_empty()) else {
                return Err(format!("'{path}' : unable to decode base64 key on line {number}"));
            };
            let same = ring.first().is_none_or(|first| first.raw.len() == raw.len());
            let Some(key) = Key::new(&raw).filter(|_| same) else {
                return Err(format!("'{path}' : wrong sized key on line {number}"));
            };
            ring.push(Arc::new(key));
        }
        if ring.len() < KEYS {
            return Err(format!("'{path}' : please supply at least {KEYS} keys in the tls-tickets-file"));
        }
        ring.drain(..ring.len() - KEYS);
        let given = ring.iter().map(|k| k.raw.clone()).collect();
        Ok(Keys { file: path.into(), given, ring: ArcSwap::from_pointee(ring) })
    }

    /// Whether others were read from the same file when it was the same.
    pub fn is_as(&self, other: &Keys) -> bool {
        self.file == other.file && self.given == other.given
    }

    /// The keys as they were given, oldest first.
    pub fn raw(&self) -> Vec<Box<[u8]>> {
        self.ring.load().iter().map(|k| k.raw.clone()).collect()
    }

    /// Adds a key; the oldest is gone.
    ///
    /// # Errors
    /// When it is not as long as the others.
    pub fn push(&self, raw: &[u8]) -> Result<(), WrongSize> {
        let ring = self.ring.load();
        let same = ring.first().is_none_or(|first| first.raw.len() == raw.len());
        let key = Key::new(raw).filter(|_| same).ok_or(WrongSize)?;
        let fresh = ring.iter().skip(1).cloned().chain([Arc::new(key)]).collect();
        self.ring.store(Arc::new(fresh));
        Ok(())
    }
}

/// What rustls makes tickets with.
#[derive(Debug)]
pub(crate) struct Tickets {
    pub keys: Arc<Keys>,
    /// `tune.ssl.lifetime`, seconds.
    pub lifetime: u32,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let ring = self.keys.ring.load();
        let key = ring.len().checked_sub(2).and_then(|i| ring.get(i))?;
        if plain.len() > LONGEST {
            return None;
        }
        key.seal(plain, now())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let ring = self.keys.ring.load();
        let (made, plain) = ring.iter().find(|k| k.name[..] == *name)?.open(nonce, sealed)?;
        (now().saturating_sub(made) <= u64::from(self.lifetime)).then_some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(keys: &Arc<Keys>) -> Tickets {
        Tickets { keys: keys.clone(), lifetime: 300 }
    }

    #[test]
    fn a_ticket_opens_until_its_key_has_left_the_ring() {
        let keys = Arc::new(Keys::random().unwrap());
        let mine = tickets(&keys);
        let ticket = mine.encrypt(b"session").unwrap();
        assert_eq!(mine.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        // It was sealed with the last but one.
        keys.push(&[1; 80]).unwrap();
        assert!(mine.decrypt(&ticket).is_some());
        keys.push(&[2; 80]).unwrap();
        assert!(mine.decrypt(&ticket).is_none());
        assert_eq!(keys.push(&[3; 48]), Err(WrongSize));
    }

    #[test]
    fn whoever_has_the_keys_opens_and_nobody_else() {
        let keys = Arc::new(Keys::random().unwrap());
        let other = Arc::new(Keys::random().unwrap());
        for raw in keys.raw() {
            other.push(&raw).unwrap();
        }
        let mut ticket = tickets(&keys).encrypt(b"session").unwrap();
        assert!(tickets(&other).decrypt(&ticket).is_some());
        assert!(tickets(&Arc::new(Keys::random().unwrap())).decrypt(&ticket).is_none());
        *ticket.last_mut().unwrap() ^= 1;
        assert!(tickets(&other).decrypt(&ticket).is_none());
        for short in 0..ticket.len() {
            assert!(tickets(&other).decrypt(&ticket[..short]).is_none());
        }
    }

    #[test]
    fn an_old_ticket_opens_nothing() {
        let keys = Arc::new(Keys::random().unwrap());
        let key = keys.ring.load()[0].clone();
        let mine = tickets(&keys);
        assert!(mine.decrypt(&key.seal(b"session", now() - 200).unwrap()).is_some());
        assert!(mine.decrypt(&key.seal(b"session", now() - 400).unwrap()).is_none());
    }
}
