//! From a passphrase to a key, and from there to what the key hides.
//!
//! PBES2 (RFC 8018, section 6.2) with PBKDF2 or scrypt (RFC 7914), triple DES with a key of [PKCS
//! #12](super::pkcs12), and OpenSSL's older way (`EVP_BytesToKey` with MD5); AES and triple DES in CBC,
//! whatever the way. What comes out must be one element of DER: that tells a wrong passphrase whose padding
//! happens to look right. Costs are bounded, for a payload of the runtime API may name any.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use des::TdesEde3;
use des::cipher::{Array, BlockCipherDecrypt, KeyInit};
use md5::{Digest, Md5};
use zeroize::Zeroizing;

use super::Closed;
use super::pkcs12::{Purpose, derive};
use x509::Der;

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const INTEGER: u8 = 0x02;
/// Most memory for scrypt in bytes; OpenSSL allows as much.
const MEMORY: u64 = 32 << 20;
/// Most rounds of PBKDF2: about ten seconds of a processor.
const ROUNDS: u32 = 10_000_000;
/// Longest key of a cipher here.
const KEY: usize = 32;

/// A cipher, in CBC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
}

impl Cipher {
    /// By the name that `DEK-Info` has.
    pub fn named(name: &str) -> Option<Cipher> {
        Some(match name.trim() {
            "AES-128-CBC" => Cipher::Aes128,
            "AES-192-CBC" => Cipher::Aes192,
            "AES-256-CBC" => Cipher::Aes256,
            "DES-EDE3-CBC" => Cipher::TripleDes,
            _ => return None,
        })
    }

    fn of(oid: &[u8]) -> Option<Cipher> {
        Some(match oid {
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2] => Cipher::Aes128,
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22] => Cipher::Aes192,
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42] => Cipher::Aes256,
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 3, 7] => Cipher::TripleDes,
            _ => return None,
        })
    }

    fn key_len(self) -> usize {
        match self {
            Cipher::Aes128 => 16,
            Cipher::Aes192 | Cipher::TripleDes => 24,
            Cipher::Aes256 => 32,
        }
    }

    fn block(self) -> usize {
        if self == Cipher::TripleDes { 8 } else { 16 }
    }

    /// What was encrypted, without its padding.
    fn decrypt(self, key: &[u8], start: &[u8], data: &[u8]) -> Result<Vec<u8>, Closed> {
        if data.is_empty() || !data.len().is_multiple_of(self.block()) || start.len() != self.block() {
            return Err(Closed::Unknown);
        }
        let algorithm = match self {
            Cipher::Aes128 => &AES_128,
            Cipher::Aes192 => &AES_192,
            Cipher::Aes256 => &AES_256,
            Cipher::TripleDes => return triple_des(key, start, data),
        };
        let start = FixedLength::try_from(start).map_err(|_| Closed::Unknown)?;
        let key = UnboundCipherKey::new(algorithm, key).map_err(|_| Closed::Unknown)?;
        let cipher = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(|_| Closed::Unknown)?;
        let mut out = data.to_vec();
        let plain = cipher.decrypt(&mut out, DecryptionContext::Iv128(start)).map_err(|_| Closed::Wrong)?;
        let length = plain.len();
        out.truncate(length);
        Ok(out)
    }
}

fn triple_des(key: &[u8], start: &[u8], data: &[u8]) -> Result<Vec<u8>, Closed> {
    let cipher = TdesEde3::new_from_slice(key).map_err(|_| Closed::Unknown)?;
    let mut before: [u8; 8] = start.try_into().map_err(|_| Closed::Unknown)?;
    let mut out = Vec::with_capacity(data.len());
    for block in data.as_chunks::<8>().0 {
        let mut plain = Array::from(*block);
        cipher.decrypt_block(&mut plain);
        out.extend(plain.iter().zip(before).map(|(p, b)| p ^ b));
        before = *block;
    }
    let pad = out.last().copied().filter(|p| (1..=8).contains(p)).ok_or(Closed::Wrong)?;
    let length = out.len().saturating_sub(usize::from(pad));
    let tail = out.get(length..).unwrap_or_default();
    if tail.iter().any(|c| *c != pad) {
        return Err(Closed::Wrong);
    }
    out.truncate(length);
    Ok(out)
}

/// Whether this is one element of DER and nothing else.
fn whole(der: Vec<u8>) -> Result<Vec<u8>, Closed> {
    let mut cursor = Der(&der);
    match cursor.expect(SEQUENCE) {
        Some(_) if cursor.0.is_empty() => Ok(der),
        _ => Err(Closed::Wrong),
    }
}

/// OpenSSL's older form.
pub(super) fn traditional(
    cipher: Cipher,
    start: &[u8],
    data: &[u8],
    phrase: &[u8],
) -> Result<Vec<u8>, Closed> {
    let salt = start.get(..8).ok_or(Closed::Unknown)?;
    let mut key = Zeroizing::new(Vec::with_capacity(2 * KEY));
    let mut digest = Vec::new();
    while key.len() < cipher.key_len() {
        digest = Md5::new().chain_update(&digest).chain_update(phrase).chain_update(salt).finalize().to_vec();
        key.extend_from_slice(&digest);
    }
    key.truncate(cipher.key_len());
    whole(cipher.decrypt(&key, start, data)?)
}

/// PKCS #8.
pub(super) fn pkcs8(der: &[u8], phrase: &[u8]) -> Result<Vec<u8>, Closed> {
    if let Some((salt, rounds, data)) = older(der) {
        let cipher = Cipher::TripleDes;
        let key = Zeroizing::new(derive(phrase, salt, rounds, Purpose::Key, cipher.key_len()));
        let start = derive(phrase, salt, rounds, Purpose::Start, cipher.block());
        return whole(cipher.decrypt(&key, &start, data)?);
    }
    let told = told(der).ok_or(Closed::Unknown)?;
    let mut key = Zeroizing::new([0; KEY]);
    let key = key.get_mut(..told.cipher.key_len()).ok_or(Closed::Unknown)?;
    told.stretch.run(phrase, told.salt, key).ok_or(Closed::Unknown)?;
    whole(told.cipher.decrypt(key, told.start, told.data)?)
}

/// Salt, rounds and data of a key that is encrypted as PKCS #12 does it.
fn older(der: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    const SHA1_TRIPLE_DES: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 12, 1, 3];
    let mut outer = Der(Der(der).expect(SEQUENCE)?.content);
    let mut scheme = Der(outer.expect(SEQUENCE)?.content);
    if scheme.expect(OID)?.content != SHA1_TRIPLE_DES {
        return None;
    }
    let mut words = Der(scheme.expect(SEQUENCE)?.content);
    let salt = words.expect(OCTETS)?.content;
    let rounds = u32::try_from(number(&mut words)?).ok().filter(|n| (1..=ROUNDS).contains(n))?;
    Some((salt, rounds, outer.expect(OCTETS)?.content))
}

/// How a passphrase is made dear to try.
enum Stretch {
    Rounds(NonZeroU32, pbkdf2::Algorithm),
    Memory { n: u64, r: u32, p: u32 },
}

impl Stretch {
    fn run(&self, phrase: &[u8], salt: &[u8], key: &mut [u8]) -> Option<()> {
        match *self {
            Stretch::Rounds(rounds, hash) => pbkdf2::derive(hash, rounds, salt, phrase, key),
            Stretch::Memory { n, r, p } => {
                let block = 128u64.checked_mul(u64::from(r))?;
                let needed = block.checked_mul(n.checked_add(u64::from(p))?)?;
                if needed == 0 || needed > MEMORY || p == 0 || p > 64 {
                    return None;
                }
                let cost = yescrypt::Params::new(yescrypt::Mode::Classic, n, r, p).ok()?;
                yescrypt::yescrypt(phrase, salt, &cost, key).ok()?;
            }
        }
        Some(())
    }
}

/// What an encrypted PKCS #8 key says of itself.
struct Told<'a> {
    stretch: Stretch,
    salt: &'a [u8],
    cipher: Cipher,
    start: &'a [u8],
    data: &'a [u8],
}

fn told(der: &[u8]) -> Option<Told<'_>> {
    const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 5, 13];
    let mut outer = Der(Der(der).expect(SEQUENCE)?.content);
    let mut scheme = Der(outer.expect(SEQUENCE)?.content);
    let data = outer.expect(OCTETS)?.content;
    if scheme.expect(OID)?.content != PBES2 {
        return None;
    }
    let mut parts = Der(scheme.expect(SEQUENCE)?.content);
    let (stretch, salt) = stretch(Der(parts.expect(SEQUENCE)?.content))?;
    let mut encryption = Der(parts.expect(SEQUENCE)?.content);
    let cipher = Cipher::of(encryption.expect(OID)?.content)?;
    Some(Told { stretch, salt, cipher, start: encryption.expect(OCTETS)?.content, data })
}

fn stretch(mut der: Der<'_>) -> Option<(Stretch, &[u8])> {
    const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 5, 12];
    const SCRYPT: &[u8] = &[0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
    let kind = der.expect(OID)?.content;
    let mut words = Der(der.expect(SEQUENCE)?.content);
    let salt = words.expect(OCTETS)?.content;
    let first = number(&mut words)?;
    let stretch = match kind {
        PBKDF2 => {
            let rounds = u32::try_from(first).ok().filter(|n| *n <= ROUNDS)?;
            // The length of the key follows from the cipher.
            words.expect(INTEGER);
            Stretch::Rounds(NonZeroU32::new(rounds)?, hash(words.expect(SEQUENCE).map(|e| e.content))?)
        }
        SCRYPT => {
            let mut small = || u32::try_from(number(&mut words)?).ok();
            Stretch::Memory { n: first, r: small()?, p: small()? }
        }
        _ => return None,
    };
    Some((stretch, salt))
}

/// The hash that PBKDF2 runs; SHA-1 unless it is named.
fn hash(named: Option<&[u8]>) -> Option<pbkdf2::Algorithm> {
    let Some(named) = named else { return Some(pbkdf2::PBKDF2_HMAC_SHA1) };
    match Der(named).expect(OID)?.content {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 2, last] => Some(match last {
            7 => pbkdf2::PBKDF2_HMAC_SHA1,
            9 => pbkdf2::PBKDF2_HMAC_SHA256,
            10 => pbkdf2::PBKDF2_HMAC_SHA384,
            11 => pbkdf2::PBKDF2_HMAC_SHA512,
            _ => return None,
        }),
        _ => None,
    }
}

fn number(der: &mut Der<'_>) -> Option<u64> {
    let digits = der.expect(INTEGER)?.content;
    let mut bytes = digits.iter().skip_while(|b| **b == 0);
    if digits.first()? & 0x80 != 0 || bytes.clone().count() > 8 {
        return None;
    }
    Some(bytes.by_ref().fold(0, |n, b| n << 8 | u64::from(*b)))
}
