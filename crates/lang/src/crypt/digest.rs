//! The methods that stir a digest: MD5 (`$1$`, a thousand rounds, from FreeBSD) and SHA-crypt (`$5$`, `$6$`,
//! by Ulrich Drepper, in the public domain). All three write their digest out of order; the orders stand
//! here.

use md5::{Digest, Md5};
use sha_crypt::Params;

use super::put;

/// The whole text of a hash with MD5: `salt$hash` stands in `setting`.
pub(super) fn md5(setting: &str, password: &[u8]) -> Option<String> {
    let salt = salt(setting, 8)?;
    let mut out = format!("$1${salt}$");
    let salt = salt.as_bytes();
    let mut digest = md5_first(salt, password);
    for round in 0..1000 {
        let mut next = Md5::new();
        let odd = round % 2 == 1;
        next.update(if odd { password } else { &digest[..] });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if odd { &digest[..] } else { password });
        digest = next.finalize().into();
    }
    for at in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        put(&mut out, at.iter().fold(0, |w, i| w << 8 | u32::from(digest[*i])), 4);
    }
    put(&mut out, u32::from(digest[11]), 2);
    Some(out)
}

/// What the rounds of MD5 begin with.
fn md5_first(salt: &[u8], password: &[u8]) -> [u8; 16] {
    let other = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = Md5::new().chain_update(password).chain_update(b"$1$").chain_update(salt);
    for chunk in password.chunks(16) {
        first.update(&other[..chunk.len()]);
    }
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &[0][..] } else { &password[..1] });
        bits >>= 1;
    }
    first.finalize().into()
}

/// The whole text of a hash with SHA-256.
pub(super) fn sha256(setting: &str, password: &[u8]) -> Option<String> {
    let (mut out, salt, params) = sha(setting, "$5$")?;
    let digest = sha_crypt::sha256_crypt(password, salt.as_bytes(), params);
    spread(&mut out, &digest, [0, 10, 20], |[a, b, c]| [c + 1, a + 1, b + 1]);
    put(&mut out, u32::from(digest[31]) << 8 | u32::from(digest[30]), 3);
    Some(out)
}

/// The whole text of a hash with SHA-512.
pub(super) fn sha512(setting: &str, password: &[u8]) -> Option<String> {
    let (mut out, salt, params) = sha(setting, "$6$")?;
    let digest = sha_crypt::sha512_crypt(password, salt.as_bytes(), params);
    spread(&mut out, &digest, [0, 21, 42], |[a, b, c]| [b + 1, c + 1, a + 1]);
    put(&mut out, u32::from(digest[63]), 2);
    Some(out)
}

/// Writes all whole triples of a digest, in the order that starts so and goes on so.
fn spread(out: &mut String, digest: &[u8], mut at: [usize; 3], next: fn([usize; 3]) -> [usize; 3]) {
    for _ in 0..digest.len() / 3 {
        put(out, at.iter().fold(0, |w, i| w << 8 | u32::from(digest[*i])), 4);
        at = next(at);
    }
}

/// What a SHA hash begins with, its salt and its cost.
fn sha<'a>(setting: &'a str, method: &str) -> Option<(String, &'a str, Params)> {
    let Some((rounds, rest)) = setting.strip_prefix("rounds=").and_then(|s| s.split_once('$')) else {
        let salt = salt(setting, 16)?;
        return Some((format!("{method}{salt}$"), salt, Params::default()));
    };
    let (salt, cost) = (salt(rest, 16)?, rounds.parse().ok()?);
    Some((format!("{method}rounds={cost}${salt}$"), salt, Params::new(cost).ok()?))
}

/// The salt at the start, of at most so many characters.
fn salt(setting: &str, longest: usize) -> Option<&str> {
    let salt = setting.split('$').next()?;
    salt.get(..salt.len().min(longest))
}
