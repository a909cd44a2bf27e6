//! JSON web tokens, encrypted ones (section 7.3.1, `jwt_decrypt_*`; RFC 7516, 7517, 7518).
//!
//! Five parts: the header, which is also authenticated; the encrypted content key; nonce; content; tag. How
//! the content key is had depends on `alg`, how the content is read on `enc`. Whatever does not fit gives no
//! sample: nothing tells a sender which step failed.

use std::sync::Arc;

use aws_lc_rs::{agreement, digest, hmac, rsa};

use super::{bytes, json};
use crate::aes;
use crate::arg::{Arg, arg};
use crate::entry::{CheckFn, ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

const fn def(
    name: &'static str,
    eval: ConvFn,
    check: CheckFn,
    doc: &'static str,
    example: &'static str,
) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Bin, eval, doc, example).args("string").check(check)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    def(
        "jwt_decrypt_cert",
        by_certificate,
        check_certificate,
        "The content of an encrypted JSON web token, by the key of a certificate loaded with `jwt on`.",
        "http_auth_bearer,jwt_decrypt_cert(txn.cert)",
    ),
    def(
        "jwt_decrypt_jwk",
        by_jwk,
        check_jwk,
        "The content of an encrypted JSON web token, by a JSON web key.",
        "http_auth_bearer,jwt_decrypt_jwk(txn.jwk)",
    ),
    def(
        "jwt_decrypt_secret",
        by_secret,
        |args, names| super::secret::prepare(args, 0, "secret:", names).map_err(one_colon),
        "The content of an encrypted JSON web token, by a shared secret in base64.",
        "http_auth_bearer,jwt_decrypt_secret(GawgguFyGrWKav7AX4VKUg==)",
    ),
];

fn one_colon(fault: Fault) -> Fault {
    Fault::new(fault.text.replacen(" : argument", " argument", 1))
}

/// The certificate store is filled by `crt-store` and `bind ... ssl`; what is not in it can't be named.
fn check_certificate(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let name = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    let store = names.tls_store();
    if !store.as_ref().is_some_and(|s| s.has_cert(&name)) {
        super::variable_at(args, 0, names).map_err(|_| Fault::new(format!("unknown certificate {name}")))?;
    }
    args.extend(store.map(|s| Arg::Other(s)));
    Ok(())
}

fn by_certificate<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let name = super::secret::text(env, arg(args, 0)).ok_or(Miss::None)?;
    let cert = super::jwt::certificate(args, 1, name).filter(|c| c.allowed).ok_or(Miss::None)?;
    let prepared = cert.prepared.get_or_init(|| Some(Arc::new(certificate_key(&cert)?)));
    let key = prepared.as_ref().and_then(|k| k.downcast_ref::<Key>()).ok_or(Miss::None)?;
    found(env, decrypt(env, bytes(value), key))
}

/// The private key of a certificate.
fn certificate_key(cert: &tls::store::JwtKey) -> Option<Key> {
    let Some((oid, number)) = cert.on_curve() else {
        return Some(Key::Rsa(rsa::PrivateDecryptingKey::from_pkcs8(&cert.pkcs8()?).ok()?));
    };
    let curve = match oid[..] {
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => &agreement::ECDH_P256,
        [0x2b, 0x81, 4, 0, 0x22] => &agreement::ECDH_P384,
        [0x2b, 0x81, 4, 0, 0x23] => &agreement::ECDH_P521,
        _ => return None,
    };
    Some(Key::Curve(curve, number))
}

/// The ways to have the key of the content (`jwt.decrypt_alg_list`).
pub const ALGORITHMS: &[&str] = &[
    "dir",
    "A128KW",
    "A192KW",
    "A256KW",
    "A128GCMKW",
    "A192GCMKW",
    "A256GCMKW",
    "RSA1_5",
    "RSA-OAEP",
    "RSA-OAEP-256",
    "ECDH-ES",
    "ECDH-ES+A128KW",
    "ECDH-ES+A192KW",
    "ECDH-ES+A256KW",
];

/// The ways to encrypt the content (`jwt.decrypt_enc_list`).
pub const ENCODINGS: &[&str] =
    &["A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512", "A128GCM", "A192GCM", "A256GCM"];

/// A JSON web key, as far as it decrypts.
enum Key {
    Secret(Vec<u8>),
    Rsa(rsa::PrivateDecryptingKey),
    Curve(&'static agreement::Algorithm, Vec<u8>),
}

fn check_jwk(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let text = arg(args, 0).bytes().unwrap_or_default().to_vec();
    if text.contains(&b'{') || super::variable_at(args, 0, names).is_err() {
        args[0] = Arg::Other(Arc::new(jwk(&text)?));
    }
    Ok(())
}

fn jwk(text: &[u8]) -> Result<Key, Fault> {
    let member = |name: &str| json::string_at(text, &[name]);
    let part = |name: &str| decode(&member(name)?);
    let key = match member("kty").as_deref() {
        Some(b"oct") => part("k").map(Key::Secret),
        Some(b"RSA") => rsa_key(&part).map(Key::Rsa),
        Some(b"EC") => member("crv").and_then(|name| Some(Key::Curve(curve(&name)?, part("d")?))),
        _ => return Err(Fault::new("Missing key type (expected 'oct', 'RSA' or 'EC')")),
    };
    key.ok_or_else(|| Fault::new("Failed to parse JWK"))
}

fn curve(name: &[u8]) -> Option<&'static agreement::Algorithm> {
    match name {
        b"P-256" => Some(&agreement::ECDH_P256),
        b"P-384" => Some(&agreement::ECDH_P384),
        b"P-521" => Some(&agreement::ECDH_P521),
        _ => None,
    }
}

/// PKCS #8 around PKCS #1 (RFC 8017, appendix A.1.2) around the numbers of the key.
fn rsa_key(part: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<rsa::PrivateDecryptingKey> {
    const RSA: &[u8] = &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0];
    let mut numbers = der(2, &[0]);
    for name in ["n", "e", "d", "p", "q", "dp", "dq", "qi"] {
        numbers.extend(der(2, &[&[0], &part(name)?[..]].concat()));
    }
    let inner = der(4, &der(0x30, &numbers));
    let key = der(0x30, &[&der(2, &[0]), RSA, &inner].concat());
    rsa::PrivateDecryptingKey::from_pkcs8(&key).ok()
}

/// One element of DER; numbers lose the zeros in front that they don't need.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut content = content;
    while let (2, [0, next, ..]) = (tag, content)
        && *next < 0x80
    {
        content = &content[1..];
    }
    let length = content.len() as u32;
    let mut out = vec![tag];
    match length {
        0..0x80 => out.push(length as u8),
        0x80..0x100 => out.extend([0x81, length as u8]),
        _ => out.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend_from_slice(content);
    out
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    base::base64::decode_to(text, true, &mut |c| out.push(c))?;
    Some(out)
}

fn by_secret<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let secret = super::secret::read(env, args, 0).ok_or(Miss::None)?;
    found(env, decrypt(env, bytes(value), &Key::Secret(secret.to_vec())))
}

fn by_jwk<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    match arg(args, 0) {
        Arg::Other(any) => {
            found(env, decrypt(env, bytes(value), any.downcast_ref::<Key>().ok_or(Miss::None)?))
        }
        other => {
            let text = super::secret::text(env, other).ok_or(Miss::None)?;
            found(env, decrypt(env, bytes(value), &jwk(text).map_err(|_| Miss::None)?))
        }
    }
}

fn found<'a>(env: &Env<'a>, content: Option<Vec<u8>>) -> Found<'a> {
    content.map(|c| Value::Bin(env.arena.alloc_slice_copy(&c))).ok_or(Miss::None)
}

fn decrypt(env: &Env<'_>, token: &[u8], key: &Key) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = token.splitn(6, |c| *c == b'.').collect();
    let [head, encrypted_key, nonce, content, tag] = parts[..] else { return None };
    let header = decode(head)?;
    let field = |name: &str| json::string_at(&header, &[name]);
    let (alg, enc) = (field("alg")?, field("enc")?);
    let method = Method::named(&enc).filter(|_| env.live.decrypts(&alg, &enc))?;
    let cek = content_key(key, &alg, &enc, &header, &decode(encrypted_key)?, method.bytes)?;
    let (nonce, content, tag) = (decode(nonce)?, decode(content)?, decode(tag)?);
    method.open(&cek, &nonce, head, &content, &tag)
}

/// A content encryption (RFC 7518, section 5).
struct Method {
    /// Bytes of its key.
    bytes: usize,
    gcm: bool,
}

impl Method {
    fn named(name: &[u8]) -> Option<Method> {
        let (bytes, gcm) = match name {
            b"A128GCM" => (16, true),
            b"A192GCM" => (24, true),
            b"A256GCM" => (32, true),
            b"A128CBC-HS256" => (32, false),
            b"A192CBC-HS384" => (48, false),
            b"A256CBC-HS512" => (64, false),
            _ => return None,
        };
        Some(Method { bytes, gcm })
    }

    fn open(&self, key: &[u8], nonce: &[u8], aad: &[u8], content: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
        if key.len() != self.bytes {
            return None;
        }
        if self.gcm {
            return (tag.len() == aes::TAG)
                .then(|| aes::gcm_decrypt(key.len() * 8, key, nonce, aad, tag, content))?;
        }
        let half = self.bytes / 2;
        let (mac, secret) = key.split_at_checked(half)?;
        let kind = match half {
            16 => hmac::HMAC_SHA256,
            24 => hmac::HMAC_SHA384,
            _ => hmac::HMAC_SHA512,
        };
        let mut all = hmac::Context::with_key(&hmac::Key::new(kind, mac));
        for part in [aad, nonce, content, &(aad.len() as u64 * 8).to_be_bytes()] {
            all.update(part);
        }
        let whole = all.sign();
        aws_lc_rs::constant_time::verify_slices_are_equal(whole.as_ref().get(..half)?, tag).ok()?;
        aes::cbc_decrypt(half * 8, secret, nonce, content)
    }
}

/// The key of the content (RFC 7518, section 4).
fn content_key(
    key: &Key,
    alg: &[u8],
    enc: &[u8],
    header: &[u8],
    encrypted: &[u8],
    bytes: usize,
) -> Option<Vec<u8>> {
    match (key, alg) {
        (Key::Secret(secret), b"dir") => encrypted.is_empty().then(|| secret.clone()),
        (Key::Secret(secret), b"A128KW" | b"A192KW" | b"A256KW") => {
            (secret.len() == wrapping_bytes(alg)?).then(|| aes::unwrap_key(secret, encrypted))?
        }
        (Key::Secret(secret), b"A128GCMKW" | b"A192GCMKW" | b"A256GCMKW") => {
            let part = |name: &str| decode(&json::string_at(header, &[name])?);
            let bits = wrapping_bytes(alg)? * 8;
            (secret.len() * 8 == bits)
                .then(|| aes::gcm_decrypt(bits, secret, &part("iv")?, &[], &part("tag")?, encrypted))?
        }
        (Key::Rsa(key), b"RSA-OAEP" | b"RSA-OAEP-256") => {
            let kind =
                if alg == b"RSA-OAEP" { &rsa::OAEP_SHA1_MGF1SHA1 } else { &rsa::OAEP_SHA256_MGF1SHA256 };
            let key = rsa::OaepPrivateDecryptingKey::new(key.clone()).ok()?;
            let mut out = vec![0; key.min_output_size()];
            Some(key.decrypt(kind, encrypted, &mut out, None).ok()?.to_vec())
        }
        (Key::Rsa(key), b"RSA1_5") => {
            let key = rsa::Pkcs1PrivateDecryptingKey::new(key.clone()).ok()?;
            let mut out = vec![0; key.min_output_size()];
            // Whether the padding was right is nobody's business (RFC 7516, section 11.5): a key that opens
            // nothing takes the place of one that can't be read.
            match key.decrypt(encrypted, &mut out) {
                Ok(plain) if plain.len() == bytes => Some(plain.to_vec()),
                _ => {
                    let mut other = vec![0; bytes];
                    aws_lc_rs::rand::fill(&mut other).ok()?;
                    Some(other)
                }
            }
        }
        (Key::Curve(curve, private), b"ECDH-ES") => agree(curve, private, header, enc, bytes),
        (Key::Curve(curve, private), b"ECDH-ES+A128KW" | b"ECDH-ES+A192KW" | b"ECDH-ES+A256KW") => {
            let wrapping = agree(curve, private, header, alg, wrapping_bytes(alg)?)?;
            aes::unwrap_key(&wrapping, encrypted)
        }
        _ => None,
    }
}

/// Bytes of the key that wraps, from the name of the algorithm.
fn wrapping_bytes(alg: &[u8]) -> Option<usize> {
    let has = |word: &[u8]| alg.windows(word.len()).any(|w| w == word);
    [(&b"A128"[..], 16), (b"A192", 24), (b"A256", 32)].into_iter().find(|(w, _)| has(w)).map(|(_, n)| n)
}

/// ECDH with the key in the header, then the key derivation of RFC 7518, section 4.6.2.
fn agree(
    curve: &'static agreement::Algorithm,
    private: &[u8],
    header: &[u8],
    purpose: &[u8],
    bytes: usize,
) -> Option<Vec<u8>> {
    let coordinate = |name: &str| decode(&json::string_at(header, &["epk", name])?);
    let point = [&[4], &coordinate("x")?[..], &coordinate("y")?[..]].concat();
    let party = |name: &str| json::string_at(header, &[name]).map_or(Some(Vec::new()), |text| decode(&text));
    let mut info = Vec::new();
    for part in [purpose.to_vec(), party("apu")?, party("apv")?] {
        info.extend_from_slice(&(part.len() as u32).to_be_bytes());
        info.extend_from_slice(&part);
    }
    info.extend_from_slice(&(bytes as u32 * 8).to_be_bytes());
    let own = agreement::PrivateKey::from_private_key(curve, private).ok()?;
    let peer = agreement::UnparsedPublicKey::new(curve, point);
    agreement::agree(&own, peer, (), |secret| Ok(derive(secret, &info, bytes))).ok()
}

fn derive(secret: &[u8], info: &[u8], bytes: usize) -> Vec<u8> {
    let round = |n: u32| digest::digest(&digest::SHA256, &[&n.to_be_bytes(), secret, info].concat());
    let mut key: Vec<u8> = (1..=bytes.div_ceil(32) as u32).flat_map(|n| round(n).as_ref().to_vec()).collect();
    key.truncate(bytes);
    key
}
