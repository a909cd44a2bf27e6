//! bcrypt (`$2b$` and its names `$2a$`, `$2y$`, which `htpasswd -B` writes): the key schedule of Blowfish,
//! made slow. It has an alphabet of its own, most significant digit first.

use blowfish::Blowfish;

const DIGITS: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// The text that is enciphered, as the paper has it.
const TEXT: &[u8; 24] = b"OrpheanBeholderScryDoubt";

/// The whole text of a hash: two digits of cost, `$`, 22 of salt, 31 of the hash stand in `setting`.
pub(super) fn hash(method: &str, setting: &str, password: &[u8]) -> Option<String> {
    let (cost, rest) = setting.split_once('$')?;
    let rounds: u32 = cost.parse().ok().filter(|_| cost.len() == 2)?;
    let salt = rest.get(..22).filter(|_| (4..=31).contains(&rounds))?;
    let mut key = [password, &[0]].concat();
    key.truncate(72);
    let digest = compute(1u64 << rounds, &salt_of(salt.as_bytes())?, &key);
    let mut out = format!("{method}{cost}${salt}");
    for group in digest[..23].chunks(3) {
        let bits = group.iter().fold(0, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for i in 0..(group.len() * 8).div_ceil(6) {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63]));
        }
    }
    Some(out)
}

/// The 16 bytes of a salt; what its last digit has too much is passed over.
fn salt_of(digits: &[u8]) -> Option<[u8; 16]> {
    let mut bits = 0u128;
    for (i, c) in digits.iter().enumerate() {
        let value = DIGITS.iter().position(|d| d == c)? as u128;
        bits = if i < 21 { bits << 6 | value } else { bits << 2 | value >> 4 };
    }
    Some(bits.to_be_bytes())
}

fn compute(rounds: u64, salt: &[u8; 16], key: &[u8]) -> [u8; 24] {
    let mut state: Blowfish = Blowfish::bc_init_state();
    state.salted_expand_key(salt, key);
    for _ in 0..rounds {
        state.bc_expand_key(key);
        state.bc_expand_key(salt);
    }
    let mut out = [0; 24];
    for (to, from) in out.chunks_exact_mut(8).zip(TEXT.chunks_exact(8)) {
        let (left, right) = from.split_at(4);
        let mut pair = [left, right].map(|h| h.iter().fold(0, |w, b| w << 8 | u32::from(*b)));
        for _ in 0..64 {
            pair = state.bc_encrypt(pair);
        }
        to[..4].copy_from_slice(&pair[0].to_be_bytes());
        to[4..].copy_from_slice(&pair[1].to_be_bytes());
    }
    out
}
