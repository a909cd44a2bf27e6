//! JSON web tokens, signed ones (section 7.3.1, `jwt_verify*`, `jwt_*_query`; RFC 7515, 7518).
//!
//! Public keys are read when the configuration names them, into one table by path that lives as long as the
//! process: a key given by a variable must be among them, so that verifying never touches a disk. The table
//! is read under a lock that only start-up ever takes for writing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aws_lc_rs::{hmac, signature};
use parking_lot::RwLock;

use super::{bytes, made, secret};
use crate::arg::{Arg, arg};
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::pem;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "jwt_header_query",
        Type::Bin,
        Type::Any,
        |e, v, a| query(e, v, a, 0),
        "The header of a JSON web token, or a value in it by its path.",
        "http_auth_bearer,jwt_header_query($.alg)",
    )
    .args("[string,string]")
    .check(check_query),
    ConvDef::new(
        "jwt_payload_query",
        Type::Bin,
        Type::Any,
        |e, v, a| query(e, v, a, 1),
        "The payload of a signed JSON web token, or a value in it by its path.",
        "http_auth_bearer,jwt_payload_query($.exp,int)",
    )
    .args("[string,string]")
    .check(check_query),
    ConvDef::new(
        "jwt_verify",
        Type::Bin,
        Type::Int,
        |e, v, a| verify(e, v, a, false),
        "Verifies a signed JSON web token with a secret or a public key: 1, 0, or an error below 0.",
        "http_auth_bearer,jwt_verify(HS256,secret)",
    )
    .args("string,string")
    .check(check_verify),
    ConvDef::new(
        "jwt_verify_cert",
        Type::Bin,
        Type::Int,
        |e, v, a| verify(e, v, a, true),
        "Verifies a signed JSON web token with a certificate: 1, 0, or an error below 0.",
        "http_auth_bearer,jwt_verify_cert(txn.alg,txn.cert)",
    )
    .args("string,string")
    .check(check_certificate),
];

/// What `jwt_verify` answers besides yes and no.
const UNKNOWN_ALGORITHM: i64 = -1;
const UNMANAGED_ALGORITHM: i64 = -2;
const INVALID_TOKEN: i64 = -3;
const UNKNOWN_KEY: i64 = -5;
const UNAVAILABLE: i64 = -7;
/// Longest token: parts beyond it are none.
const PARTS: usize = 6;

/// Public keys by the path that the configuration gave.
static KEYS: LazyLock<RwLock<Keys>> = LazyLock::new(RwLock::default);

/// Keys in DER by path.
type Keys = HashMap<Vec<u8>, Arc<[u8]>>;

/// An algorithm of RFC 7518, section 3.1.
#[derive(Clone, Copy)]
enum Algorithm {
    None,
    Hmac(hmac::Algorithm),
    /// With the length of its signatures, where that is fixed.
    Public(&'static dyn signature::VerificationAlgorithm, Option<usize>),
}

fn algorithm(name: &[u8]) -> Option<Algorithm> {
    use Algorithm::{Hmac, Public};
    Some(match name {
        b"none" => Algorithm::None,
        b"HS256" => Hmac(hmac::HMAC_SHA256),
        b"HS384" => Hmac(hmac::HMAC_SHA384),
        b"HS512" => Hmac(hmac::HMAC_SHA512),
        b"RS256" => Public(&signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, None),
        b"RS384" => Public(&signature::RSA_PKCS1_2048_8192_SHA384, None),
        b"RS512" => Public(&signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, None),
        b"PS256" => Public(&signature::RSA_PSS_2048_8192_SHA256, None),
        b"PS384" => Public(&signature::RSA_PSS_2048_8192_SHA384, None),
        b"PS512" => Public(&signature::RSA_PSS_2048_8192_SHA512, None),
        b"ES256" => Public(&signature::ECDSA_P256_SHA256_FIXED, Some(64)),
        b"ES384" => Public(&signature::ECDSA_P384_SHA384_FIXED, Some(96)),
        b"ES512" => Public(&signature::ECDSA_P521_SHA512_FIXED, Some(132)),
        _ => return None,
    })
}

fn is_variable(text: &[u8]) -> bool {
    let scopes: [&[u8]; 12] = [
        b"proc.", b"sess.", b"txn.", b"req.", b"res.", b"check.", b"psess.", b"ptxn.", b"preq.", b"pres.",
        b"pcheck.", b"pproc.",
    ];
    scopes.iter().any(|s| text.starts_with(s))
}

/// Checks the algorithm's name, or resolves it as a variable.
fn check_algorithm(args: &mut [Arg], names: &mut dyn Names) -> Result<Option<Algorithm>, Fault> {
    let text = arg(args, 0).bytes().unwrap_or_default();
    if is_variable(text) {
        super::variable_at(args, 0, names)?;
        return Ok(None);
    }
    let known = algorithm(text);
    let unknown = || Fault::new(format!("unknown JWT algorithm: {}", String::from_utf8_lossy(text)));
    Ok(Some(known.ok_or_else(unknown)?))
}

fn check_verify(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let algorithm = check_algorithm(args, names)?;
    let key = arg(args, 1).bytes().unwrap_or_default().to_vec();
    if is_variable(&key) {
        return super::variable_at(args, 1, names);
    }
    if matches!(algorithm, Some(Algorithm::Hmac(_))) {
        return Ok(());
    }
    let loaded = load(&key, names, pem::public_key);
    // With the algorithm in a variable the text may as well be a secret.
    if algorithm.is_none() { Ok(()) } else { loaded }
}

fn check_certificate(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    if let Some(Algorithm::Hmac(_)) = check_algorithm(args, names)? {
        return Err(Fault::new("HMAC-signed tokens can't be processed by this converter"));
    }
    let key = String::from_utf8_lossy(arg(args, 1).bytes().unwrap_or_default()).into_owned();
    let store = names.tls_store();
    if is_variable(key.as_bytes()) {
        super::variable_at(args, 1, names)?;
    } else if let Some(store) = &store {
        // A path that can't be read is told apart only at run time, as unknown.
        let _ = store.want_jwt(&key);
    }
    args.extend(store.map(|s| Arg::Other(s)));
    Ok(())
}

/// The certificate of a name, which stands in the store that `args` has at this place.
pub(super) fn certificate(args: &[Arg], at: usize, name: &[u8]) -> Option<Arc<tls::store::JwtKey>> {
    let Arg::Other(store) = arg(args, at) else { return None };
    store.downcast_ref::<tls::Store>()?.jwt_key(std::str::from_utf8(name).ok()?)
}

/// Reads a key into the table.
fn load(path: &[u8], names: &mut dyn Names, parse: fn(&[u8]) -> Option<Vec<u8>>) -> Result<(), Fault> {
    let name = String::from_utf8_lossy(path).into_owned();
    if KEYS.read().contains_key(path) {
        return Ok(());
    }
    let text = names.read_file(&name)?;
    let key = parse(&text).ok_or_else(|| Fault::new(format!("'{name}' holds no public key")))?;
    KEYS.write().insert(path.to_vec(), key.into());
    Ok(())
}

/// The parts of a compact token.
fn parts(token: &[u8]) -> Option<Vec<&[u8]>> {
    let all: Vec<&[u8]> = token.splitn(PARTS, |c| *c == b'.').collect();
    (all.len() > 1).then_some(all)
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    base::base64::decode_to(text, true, &mut |c| out.push(c))?;
    Some(out)
}

fn verify<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg], by_certificate: bool) -> Found<'a> {
    let name = secret::text(env, arg(args, 0)).ok_or(Miss::None)?;
    let key = secret::text(env, arg(args, 1)).filter(|k| !k.is_empty()).ok_or(Miss::None)?;
    let Some(algorithm) = algorithm(name) else { return Ok(Value::Int(UNKNOWN_ALGORITHM)) };
    let found = match by_certificate {
        true => match certificate(args, 2, key) {
            None => Public::Unknown,
            Some(cert) if cert.allowed => Public::Certificate(cert),
            Some(_) => Public::Unavailable,
        },
        false => Public::Unknown,
    };
    Ok(Value::Int(judge(bytes(value), algorithm, key, by_certificate, &found)))
}

/// A certificate that shall verify.
enum Public {
    Unknown,
    Unavailable,
    Certificate(Arc<tls::store::JwtKey>),
}

fn judge(token: &[u8], wanted: Algorithm, key: &[u8], by_certificate: bool, found: &Public) -> i64 {
    let Some(parts) = parts(token).filter(|p| p.len() == 3) else { return INVALID_TOKEN };
    let [header, payload, signature] = parts[..] else { return INVALID_TOKEN };
    let signed = token.get(..header.len() + 1 + payload.len()).unwrap_or_default();
    let Some(given) = decode(signature) else { return INVALID_TOKEN };
    if given.is_empty() && !matches!(wanted, Algorithm::None) {
        return INVALID_TOKEN;
    }
    match wanted {
        Algorithm::None => i64::from(given.is_empty()),
        Algorithm::Hmac(_) if by_certificate => UNMANAGED_ALGORITHM,
        Algorithm::Hmac(kind) => i64::from(hmac::verify(&hmac::Key::new(kind, key), signed, &given).is_ok()),
        Algorithm::Public(kind, length) if by_certificate => match found {
            Public::Unknown => UNKNOWN_KEY,
            Public::Unavailable => UNAVAILABLE,
            Public::Certificate(_) if length.is_some_and(|l| l != given.len()) => INVALID_TOKEN,
            Public::Certificate(cert) => i64::from(kind.verify_sig(&cert.public, signed, &given).is_ok()),
        },
        Algorithm::Public(kind, length) => match KEYS.read().get(key).cloned() {
            None => UNKNOWN_KEY,
            Some(_) if length.is_some_and(|l| l != given.len()) => INVALID_TOKEN,
            Some(key) => i64::from(kind.verify_sig(&key, signed, &given).is_ok()),
        },
    }
}

fn check_query(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    if arg(args, 0).is_none() {
        return Ok(());
    }
    super::json::check(args, names)
}

fn query<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg], which: usize) -> Found<'a> {
    let parts = parts(bytes(value)).ok_or(Miss::None)?;
    let part = parts.get(which).copied().ok_or(Miss::None)?;
    let mut out = made(env.arena);
    base::base64::decode_to(part, true, &mut |c| out.push(c)).ok_or(Miss::None)?;
    let text = Value::Str(out.into_bump_slice());
    if arg(args, 0).is_none() { Ok(text) } else { super::json::query(env, text, args) }
}
