//! Hashes and digests (section 7.3.1).

use base::hash;
use sha1::Digest;

use super::{bytes, some};
use crate::arg::{Arg, arg};
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Type, Value};
use crate::words::Fault;

const fn hash32(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Int, eval, doc, example).args("[integer]")
}

const fn digest(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Bin, eval, doc, example)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    hash32(
        "crc32",
        |_, v, a| mixed(hash::crc32(bytes(v)), a),
        "CRC-32, with an argument of 1 mixed.",
        "src,crc32(1)",
    ),
    hash32(
        "crc32c",
        |_, v, a| mixed(hash::crc32c(bytes(v)), a),
        "CRC-32C, with an argument of 1 mixed.",
        "src,crc32c",
    ),
    hash32(
        "djb2",
        |_, v, a| mixed(hash::djb2(bytes(v)), a),
        "djb2, with an argument of 1 mixed.",
        "src,djb2",
    ),
    hash32(
        "sdbm",
        |_, v, a| mixed(hash::sdbm(bytes(v)), a),
        "sdbm, with an argument of 1 mixed.",
        "src,sdbm",
    ),
    hash32("wt6", |_, v, a| mixed(hash::wt6(bytes(v)), a), "wt6, with an argument of 1 mixed.", "src,wt6"),
    hash32(
        "xxh3",
        |_, v, a| wide(hash::xxh3(bytes(v), seed(a))),
        "XXH3 of 64 bits, with a seed.",
        "src,xxh3",
    ),
    hash32(
        "xxh32",
        |_, v, a| Ok(Value::Int(hash::xxh32(bytes(v), seed(a) as u32).into())),
        "XXH32, with a seed.",
        "src,xxh32(5)",
    ),
    hash32("xxh64", |_, v, a| wide(hash::xxh64(bytes(v), seed(a))), "XXH64, with a seed.", "src,xxh64"),
    digest(
        "digest",
        |e, v, a| named(e, &[bytes(v)], arg(a, 0)),
        "A digest by name: md5, sha1, sha224, sha256, sha384, sha512.",
        "path,digest(sha256)",
    )
    .args("string")
    .check(check_digest),
    digest("hmac", hmac, "HMAC by digest name and base64 key (RFC 2104).", "path,hmac(sha256,a2V5)")
        .args("string,string")
        .check(check_hmac),
    digest("sha1", |e, v, _| sized(e, &[bytes(v)], 1), "SHA-1.", "path,sha1"),
    digest(
        "sha2",
        |e, v, a| sized(e, &[bytes(v)], arg(a, 0).int_or(256)),
        "SHA-2 of 224, 256, 384 or 512 bits.",
        "path,sha2(512)",
    )
    .args("[integer]")
    .check(check_bits),
];

fn mixed<'a>(hash: u32, args: &[Arg]) -> Found<'a> {
    let hash = if arg(args, 0).int_or(0) != 0 { hash::avalanche(hash) } else { hash };
    Ok(Value::Int(i64::from(hash)))
}

fn wide<'a>(hash: u64) -> Found<'a> {
    Ok(Value::Int(hash as i64))
}

fn seed(args: &[Arg]) -> u64 {
    arg(args, 0).int_or(0) as u64
}

fn check_bits(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 0).int_or(256) {
        224 | 256 | 384 | 512 => Ok(()),
        other => Err(Fault::new(format!("Unsupported number of bits: '{other}'"))),
    }
}

/// Stands for MD5 where functions are named by their bits.
const MD5: i64 = 5;

/// Digests the parts with the function of so many bits; 1 stands for SHA-1, [`MD5`] for that.
fn sized<'a>(env: &Env<'a>, parts: &[&[u8]], bits: i64) -> Found<'a> {
    fn all<'a, D: Digest>(env: &Env<'a>, parts: &[&[u8]]) -> Found<'a> {
        let mut digest = D::new();
        parts.iter().for_each(|p| digest.update(p));
        Ok(Value::Bin(env.arena.alloc_slice_copy(&digest.finalize())))
    }
    match bits {
        MD5 => all::<md5::Md5>(env, parts),
        1 => all::<sha1::Sha1>(env, parts),
        224 => all::<sha2::Sha224>(env, parts),
        384 => all::<sha2::Sha384>(env, parts),
        512 => all::<sha2::Sha512>(env, parts),
        _ => all::<sha2::Sha256>(env, parts),
    }
}

fn bits_of(name: &[u8]) -> Option<i64> {
    Some(match name.to_ascii_lowercase().as_slice() {
        b"md5" => MD5,
        b"sha1" => 1,
        b"sha224" => 224,
        b"sha256" => 256,
        b"sha384" => 384,
        b"sha512" => 512,
        _ => return None,
    })
}

fn check_digest(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let name = arg(args, 0).bytes().unwrap_or_default();
    let bits =
        bits_of(name).ok_or_else(|| Fault::new("algorithm must be a valid OpenSSL message digest name"))?;
    args[0] = Arg::Int(bits);
    Ok(())
}

fn named<'a>(env: &Env<'a>, parts: &[&[u8]], which: &Arg) -> Found<'a> {
    sized(env, parts, which.int_or(256))
}

fn check_hmac(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    check_digest(args, names)?;
    let text = arg(args, 1).bytes().unwrap_or_default();
    let mut key = Vec::new();
    if base::base64::decode_to(text, false, &mut |c| key.push(c)).is_none() {
        super::variable_at(args, 1, names).map_err(|_| Fault::new("failed to parse key"))?;
        return Ok(());
    }
    args[1] = Arg::Str(key.into());
    Ok(())
}

fn hmac<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let key = match arg(args, 1) {
        Arg::Var(var) => {
            let text = some(crate::variables::read(env, *var))?;
            let mut key = super::made(env.arena);
            base::base64::decode_to(bytes(text), false, &mut |c| key.push(c)).ok_or(crate::Miss::None)?;
            key.into_bump_slice()
        }
        other => other.bytes().unwrap_or_default(),
    };
    let bits = arg(args, 0).int_or(256);
    let mut block = [0u8; 128];
    let size = if matches!(bits, 384 | 512) { 128 } else { 64 };
    let key = if key.len() > size { bytes(sized(env, &[key], bits)?) } else { key };
    block[..key.len()].copy_from_slice(key);
    let inner = block.map(|b| b ^ 0x36);
    let outer = block.map(|b| b ^ 0x5c);
    let first = bytes(sized(env, &[&inner[..size], bytes(value)], bits)?);
    sized(env, &[&outer[..size], first], bits)
}
