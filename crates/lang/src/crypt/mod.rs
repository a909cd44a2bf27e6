//! Hashed passwords of user lists, as crypt(3) of Linux distributions understands them.
//!
//! A hash states its own method, cost and salt, so checking a password means hashing it once more under the
//! same setting and comparing the text. That costs what whoever made the hash wanted it to cost, up to tens
//! of milliseconds and megabytes, on the worker that serves the request; therefore a right password is
//! remembered by a keyed 64-bit hash ([`Hashed`]), and asked for again at the price of that. A wrong one
//! always costs the full time.
//!
//! Known are `$1$` (MD5), `$2a$`, `$2b$`, `$2y$` (bcrypt), `$5$`, `$6$` (SHA), `$7$` (scrypt) and `$y$`
//! (yescrypt). The older DES forms, and those that only single systems ever had, match nothing.

mod bcrypt;
mod digest;
mod scrypt;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::codec::same;

/// The longest password that is hashed, as in libxcrypt: the cost of some methods grows with the length.
const LONGEST: usize = 511;
/// The most memory that a hash may ask for, in bytes. Beyond that it matches nothing.
const MEMORY: u64 = 1 << 30;

/// The digits of crypt(3), least significant first unless told otherwise.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A hash and the password that was last found to be right.
#[derive(Debug, Default)]
pub struct Hashed {
    text: Box<str>,
    key: RandomState,
    /// Keyed hash of the right password; 0 when none was seen.
    proved: AtomicU64,
}

impl Hashed {
    /// A hash in the form of crypt(3).
    pub fn new(text: &str) -> Self {
        Hashed { text: text.into(), ..Self::default() }
    }

    /// Whether this is the password. Takes as long as the hash was made to take, but for the right one only
    /// once.
    pub fn matches(&self, given: &[u8]) -> bool {
        self.checked(given, matches)
    }

    fn checked(&self, given: &[u8], check: fn(&str, &[u8]) -> bool) -> bool {
        let tag = self.key.hash_one(given);
        if tag != 0 && self.proved.load(Relaxed) == tag {
            return true;
        }
        let right = check(&self.text, given);
        if right {
            self.proved.store(tag, Relaxed);
        }
        right
    }
}

impl Clone for Hashed {
    fn clone(&self) -> Self {
        Hashed::new(&self.text)
    }
}

impl PartialEq for Hashed {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Hashed {}

/// Whether a password has this hash. A NUL would end it in C, so it is no part of any.
fn matches(hash: &str, given: &[u8]) -> bool {
    if given.len() > LONGEST || given.contains(&0) {
        return false;
    }
    let computed = match hash.get(1..).and_then(|h| h.split_once('$')) {
        Some(("1", rest)) => digest::md5(rest, given),
        Some(("2a" | "2b" | "2y", rest)) => bcrypt::hash(&hash[..4], rest, given),
        Some(("5", rest)) => digest::sha256(rest, given),
        Some(("6", rest)) => digest::sha512(rest, given),
        Some(("7", rest)) => scrypt::classic(rest, given),
        Some(("y", rest)) => scrypt::yescrypt(rest, given),
        _ => None,
    };
    hash.starts_with('$') && computed.is_some_and(|c| same(c.as_bytes(), hash.as_bytes()))
}

/// Appends the low bits of a number in so many digits, the least significant first.
fn put(out: &mut String, mut bits: u32, digits: usize) {
    for _ in 0..digits {
        out.push(char::from(DIGITS[bits as usize & 63]));
        bits >>= 6;
    }
}

/// The value of a digit.
fn digit(c: u8) -> Option<u32> {
    DIGITS.iter().position(|d| *d == c).map(|at| at as u32)
}
