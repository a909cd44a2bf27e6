//! AES as converters and encrypted tokens need it: CBC with padding, GCM, key unwrapping.
//!
//! The cipher itself is AWS-LC's. Its GCM takes nonces of 12 bytes and whole tags only, while HAProxy takes
//! any nonce and compares as many bytes of the tag as it is given; for those, GHASH is computed here (NIST SP
//! 800-38D) around the library's counter mode. Keys that are too long are cut, as HAProxy does.

use aws_lc_rs::aead;
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

const BLOCK: usize = 16;
/// Bytes of a whole tag.
pub(crate) const TAG: usize = 16;

fn algorithm(bits: usize) -> Option<&'static Algorithm> {
    match bits {
        128 => Some(&AES_128),
        192 => Some(&AES_192),
        256 => Some(&AES_256),
        _ => None,
    }
}

fn key(bits: usize, key: &[u8]) -> Option<UnboundCipherKey> {
    UnboundCipherKey::new(algorithm(bits)?, key.get(..bits / 8)?).ok()
}

/// The first 16 bytes; what is missing counts as zero.
fn start(nonce: &[u8]) -> [u8; BLOCK] {
    std::array::from_fn(|i| nonce.get(i).copied().unwrap_or(0))
}

/// CBC with PKCS #7 padding.
pub(crate) fn cbc_encrypt(bits: usize, secret: &[u8], nonce: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let cipher = PaddedBlockEncryptingKey::cbc_pkcs7(key(bits, secret)?).ok()?;
    let mut out = data.to_vec();
    let iv = EncryptionContext::Iv128(FixedLength::from(start(nonce)));
    cipher.less_safe_encrypt(&mut out, iv).ok()?;
    Some(out)
}

/// The other way; `None` when the padding is wrong.
pub(crate) fn cbc_decrypt(bits: usize, secret: &[u8], nonce: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    if data.is_empty() || !data.len().is_multiple_of(BLOCK) {
        return None;
    }
    let cipher = PaddedBlockDecryptingKey::cbc_pkcs7(key(bits, secret)?).ok()?;
    let mut out = data.to_vec();
    let iv = DecryptionContext::Iv128(FixedLength::from(start(nonce)));
    let length = cipher.decrypt(&mut out, iv).ok()?.len();
    out.truncate(length);
    Some(out)
}

fn aead_key(bits: usize, secret: &[u8]) -> Option<aead::LessSafeKey> {
    let algorithm = match bits {
        128 => &aead::AES_128_GCM,
        192 => &aead::AES_192_GCM,
        256 => &aead::AES_256_GCM,
        _ => return None,
    };
    Some(aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, secret.get(..bits / 8)?).ok()?))
}

/// GCM: what was encrypted, and the tag.
pub(crate) fn gcm_encrypt(
    bits: usize,
    secret: &[u8],
    nonce: &[u8],
    aad: &[u8],
    data: &[u8],
) -> Option<(Vec<u8>, [u8; TAG])> {
    let mut out = data.to_vec();
    if let Ok(short) = aead::Nonce::try_assume_unique_for_key(nonce) {
        let sealed =
            aead_key(bits, secret)?.seal_in_place_separate_tag(short, aead::Aad::from(aad), &mut out);
        let tag = sealed.ok()?.as_ref().try_into().ok()?;
        return Some((out, tag));
    }
    let gcm = Gcm::new(bits, secret, nonce)?;
    gcm.counter(&mut out)?;
    let tag = gcm.tag(aad, &out)?;
    Some((out, tag))
}

/// The other way; `None` when the tag, of which as much is compared as is given, does not fit.
pub(crate) fn gcm_decrypt(
    bits: usize,
    secret: &[u8],
    nonce: &[u8],
    aad: &[u8],
    tag: &[u8],
    data: &[u8],
) -> Option<Vec<u8>> {
    let mut out = data.to_vec();
    if let (Ok(short), TAG) = (aead::Nonce::try_assume_unique_for_key(nonce), tag.len()) {
        out.extend_from_slice(tag);
        let length = aead_key(bits, secret)?.open_in_place(short, aead::Aad::from(aad), &mut out).ok()?.len();
        out.truncate(length);
        return Some(out);
    }
    let gcm = Gcm::new(bits, secret, nonce)?;
    let wanted = gcm.tag(aad, data)?;
    let compared = wanted.get(..tag.len()).filter(|t| !t.is_empty())?;
    aws_lc_rs::constant_time::verify_slices_are_equal(compared, tag).ok()?;
    gcm.counter(&mut out)?;
    Some(out)
}

/// GCM over the library's block cipher.
struct Gcm<'k> {
    bits: usize,
    secret: &'k [u8],
    /// The hash key.
    h: u128,
    /// The first counter block.
    first: u128,
}

impl<'k> Gcm<'k> {
    fn new(bits: usize, secret: &'k [u8], nonce: &[u8]) -> Option<Gcm<'k>> {
        if nonce.is_empty() {
            return None;
        }
        let mut gcm = Gcm { bits, secret, h: 0, first: 0 };
        gcm.h = gcm.block(0)?;
        gcm.first = match <[u8; 12]>::try_from(nonce) {
            Ok(short) => short.iter().fold(0u128, |n, b| n << 8 | u128::from(*b)) << 32 | 1,
            Err(_) => gcm.ghash(&[], nonce),
        };
        // With a nonce of another length only its own length is hashed, in the place of the data's.
        Some(gcm)
    }

    fn block(&self, value: u128) -> Option<u128> {
        let cipher = EncryptingKey::ecb(key(self.bits, self.secret)?).ok()?;
        let mut bytes = value.to_be_bytes();
        cipher.less_safe_encrypt(&mut bytes, EncryptionContext::None).ok()?;
        Some(u128::from_be_bytes(bytes))
    }

    /// Adds the key stream. The counter wraps in its last 32 bits, where the library's runs on.
    fn counter(&self, data: &mut [u8]) -> Option<()> {
        let high = self.first >> 32 << 32;
        let mut low = (self.first as u32).wrapping_add(1);
        let mut rest = data;
        while !rest.is_empty() {
            let room = (1u64 << 32).saturating_sub(u64::from(low)).saturating_mul(BLOCK as u64);
            let now = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let (part, tail) = rest.split_at_mut(now);
            let cipher = EncryptingKey::ctr(key(self.bits, self.secret)?).ok()?;
            let iv = FixedLength::from((high | u128::from(low)).to_be_bytes());
            cipher.less_safe_encrypt(part, EncryptionContext::Iv128(iv)).ok()?;
            rest = tail;
            low = 0;
        }
        Some(())
    }

    fn tag(&self, aad: &[u8], encrypted: &[u8]) -> Option<[u8; TAG]> {
        Some((self.ghash(aad, encrypted) ^ self.block(self.first)?).to_be_bytes())
    }

    fn ghash(&self, aad: &[u8], data: &[u8]) -> u128 {
        let blocks = aad.chunks(BLOCK).chain(data.chunks(BLOCK)).map(|c| u128::from_be_bytes(start(c)));
        let bits = |part: &[u8]| part.len() as u128 * 8;
        let lengths = (bits(aad) << 64) | bits(data);
        blocks.chain([lengths]).fold(0, |hash, block| multiply(hash ^ block, self.h))
    }
}

/// Multiplication in the field of GCM, bit by bit and without branches on the values.
fn multiply(x: u128, y: u128) -> u128 {
    const POLYNOMIAL: u128 = 0xe1 << 120;
    let (mut product, mut shifted) = (0, y);
    for bit in (0..128).rev() {
        product ^= shifted & 0u128.wrapping_sub(x >> bit & 1);
        shifted = shifted >> 1 ^ (POLYNOMIAL & 0u128.wrapping_sub(shifted & 1));
    }
    product
}

/// Unwraps a key (RFC 3394); `None` when it was not wrapped with this one.
pub(crate) fn unwrap_key(wrapping: &[u8], wrapped: &[u8]) -> Option<Vec<u8>> {
    const CHECK: u64 = 0xa6a6_a6a6_a6a6_a6a6;
    let (blocks, rest) = wrapped.as_chunks::<8>();
    let (first, parts) = blocks.split_first()?;
    if !rest.is_empty() || parts.len() < 2 {
        return None;
    }
    let cipher = DecryptingKey::ecb(key(wrapping.len() * 8, wrapping)?).ok()?;
    let mut check = u64::from_be_bytes(*first);
    let mut parts: Vec<u64> = parts.iter().map(|p| u64::from_be_bytes(*p)).collect();
    let count = parts.len() as u64;
    for step in (0..6 * count).rev() {
        let part = parts.get_mut((step % count) as usize)?;
        let mut block = (u128::from(check ^ (step + 1)) << 64 | u128::from(*part)).to_be_bytes();
        cipher.decrypt(&mut block, DecryptionContext::None).ok()?;
        let block = u128::from_be_bytes(block);
        check = (block >> 64) as u64;
        *part = block as u64;
    }
    (check == CHECK).then(|| parts.iter().flat_map(|p| p.to_be_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_gcm_agrees_with_the_library() {
        let (secret, nonce) = ([7; 32], [9; 12]);
        for (bits, data) in [(128, &b""[..]), (192, b"sixteen bytes ok"), (256, &[5; 100])] {
            let whole = gcm_encrypt(bits, &secret, &nonce, b"aad", data).unwrap();
            let gcm = Gcm::new(bits, &secret, &nonce).unwrap();
            let mut own = data.to_vec();
            gcm.counter(&mut own).unwrap();
            assert_eq!((own.clone(), gcm.tag(b"aad", &own).unwrap()), whole);
            let half = &whole.1[..8];
            assert_eq!(gcm_decrypt(bits, &secret, &nonce, b"aad", half, &own).as_deref(), Some(data));
            assert_eq!(gcm_decrypt(bits, &secret, &nonce, b"other", half, &own), None);
        }
    }

    #[test]
    fn a_key_wrapped_as_in_rfc_3394_is_unwrapped() {
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
        };
        let wrapping = hex("000102030405060708090A0B0C0D0E0F");
        let wrapped = hex("1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5");
        assert_eq!(unwrap_key(&wrapping, &wrapped), Some(hex("00112233445566778899AABBCCDDEEFF")));
        assert_eq!(unwrap_key(&[1; 16], &wrapped), None);
    }
}
