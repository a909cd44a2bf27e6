//! The methods that need memory: scrypt (`$7$`) and yescrypt (`$y$`, what Debian and Fedora use for system
//! passwords). One function computes both, as yescrypt holds scrypt as its classic mode. Texts are digits of
//! six bits, the least significant first.

use yescrypt::{Mode, Params};

use super::{MEMORY, digit, put};

/// The whole text of a hash with yescrypt: `cost$salt$hash`, the salt in digits.
pub(super) fn yescrypt(setting: &str, password: &[u8]) -> Option<String> {
    let (cost, rest) = setting.split_once('$')?;
    let text = rest.split('$').next()?;
    let digest = compute(password, &bytes(text.as_bytes())?, cost.parse().ok()?)?;
    Some(written(format!("$y${cost}${text}$"), &digest))
}

/// The whole text of a hash with scrypt: one digit for the logarithm of N, five each for r and p, the salt as
/// it is.
pub(super) fn classic(setting: &str, password: &[u8]) -> Option<String> {
    let (cost, rest) = setting.split_at_checked(11)?;
    let salt = rest.rsplit_once('$').map_or(rest, |(salt, _)| salt);
    let (first, rest) = cost.as_bytes().split_first()?;
    let (r, p) = rest.split_at(5);
    let n = 1u64.checked_shl(digit(*first)?)?;
    let params = Params::new(Mode::Classic, n, number(r)?, number(p)?).ok()?;
    let digest = compute(password, salt.as_bytes(), params)?;
    Some(written(format!("$7${cost}{salt}$"), &digest))
}

/// The digest, unless the cost is out of all bounds.
fn compute(password: &[u8], salt: &[u8], cost: Params) -> Option<[u8; 32]> {
    let block = 128 * u64::from(cost.r());
    let needed = block.checked_mul(cost.n().max(u64::from(cost.p())))?;
    if needed == 0 || needed > MEMORY || cost.p() == 0 {
        return None;
    }
    let mut digest = [0; 32];
    yescrypt::yescrypt(password, salt, &cost, &mut digest).ok()?;
    Some(digest)
}

/// A number of digits, the least significant first.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().rev().try_fold(0, |n, c| Some(n << 6 | digit(*c)?))
}

/// What digits stand for; `None` when they are none or bits are left over.
fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for group in digits.chunks(4) {
        let bits = number(group)?;
        let whole = group.len() * 6 / 8;
        if whole == 0 || bits.checked_shr(whole as u32 * 8).unwrap_or(0) != 0 {
            return None;
        }
        out.extend_from_slice(&bits.to_le_bytes()[..whole]);
    }
    Some(out)
}

fn written(mut out: String, digest: &[u8]) -> String {
    for group in digest.chunks(3) {
        let bits = group.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b));
        put(&mut out, bits, (group.len() * 8).div_ceil(6));
    }
    out
}
