//! Keys out of a passphrase as PKCS #12 makes them (RFC 7292, appendix B.2), with SHA-1: what `PBE-SHA1-3DES`
//! means, which older programs write.

use crate::ocsp::sha1;

/// Bytes of a block of SHA-1.
const BLOCK: usize = 64;

/// What the bytes are for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Key = 1,
    Start = 2,
}

/// So many bytes. A passphrase is text, that is UTF-8; one that is none counts as Latin-1.
pub(super) fn derive(phrase: &[u8], salt: &[u8], rounds: u32, purpose: Purpose, length: usize) -> Vec<u8> {
    let units: Vec<u16> = match std::str::from_utf8(phrase) {
        Ok(text) => text.encode_utf16().collect(),
        Err(_) => phrase.iter().map(|b| u16::from(*b)).collect(),
    };
    let phrase: Vec<u8> = units.into_iter().chain([0]).flat_map(u16::to_be_bytes).collect();
    let mut input = filled(salt);
    input.extend(filled(&phrase));
    let mut out = Vec::new();
    while out.len() < length {
        let mut digest = sha1(&[&[purpose as u8; BLOCK][..], &input].concat());
        for _ in 1..rounds {
            digest = sha1(&digest);
        }
        let mut repeated = digest.iter().copied().cycle();
        let addend: [u8; BLOCK] = std::array::from_fn(|_| repeated.next().unwrap_or(0));
        input.as_chunks_mut::<BLOCK>().0.iter_mut().for_each(|block| add(block, &addend));
        out.extend_from_slice(&digest);
    }
    out.truncate(length);
    out
}

/// Repeated to fill whole blocks; nothing stays nothing.
fn filled(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().cycle().take(bytes.len().next_multiple_of(BLOCK)).collect()
}

/// Adds a number and one, as numbers of 512 bits.
fn add(block: &mut [u8; BLOCK], addend: &[u8; BLOCK]) {
    let mut carry = 1u16;
    for (b, a) in block.iter_mut().zip(addend).rev() {
        let sum = u16::from(*b) + u16::from(*a) + carry;
        (*b, carry) = (sum as u8, sum >> 8);
    }
}
