//! Encryption and decryption of samples (section 7.3.1, `aes_*`).

use super::{bytes, secret};
use crate::aes;
use crate::arg::{Arg, arg};
use crate::entry::{CheckFn, ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

const CBC: &str = "integer,string,string[,string]";
const GCM: &str = "integer,string,string,string[,string]";

const fn def(
    name: &'static str,
    args: &'static str,
    eval: ConvFn,
    check: CheckFn,
    doc: &'static str,
    example: &'static str,
) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Bin, eval, doc, example).args(args).check(check)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    def(
        "aes_cbc_dec",
        CBC,
        |e, v, a| cbc(e, v, a, aes::cbc_decrypt),
        check,
        "Decrypts AES-CBC of 128, 192 or 256 bits; nonce and key are base64 or variables.",
        "bin(00),aes_cbc_dec(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==)",
    ),
    def(
        "aes_cbc_enc",
        CBC,
        |e, v, a| cbc(e, v, a, aes::cbc_encrypt),
        check,
        "Encrypts with AES-CBC of 128, 192 or 256 bits; nonce and key are base64 or variables.",
        "path,aes_cbc_enc(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==)",
    ),
    def(
        "aes_gcm_dec",
        GCM,
        open,
        check_open,
        "Decrypts AES-GCM and verifies its tag; nonce, key, tag and additional data are base64 or variables.",
        "bin(00),aes_gcm_dec(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==,txn.tag)",
    ),
    def(
        "aes_gcm_enc",
        GCM,
        seal,
        check_seal,
        "Encrypts with AES-GCM and keeps the tag, in base64, in a variable.",
        "path,aes_gcm_enc(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==,txn.tag)",
    )
    .volatile(),
];

fn check_bits(args: &[Arg]) -> Result<(), Fault> {
    match arg(args, 0).int_or(0) {
        128 | 192 | 256 => Ok(()),
        _ => Err(Fault::new("key size must be 128, 192 or 256 (bits).")),
    }
}

fn check(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    check_bits(args)?;
    secret::prepare(args, 1, "nonce", names)?;
    secret::prepare(args, 2, "key", names)?;
    secret::prepare(args, 3, "aad", names)
}

fn check_gcm(args: &mut [Arg], names: &mut dyn Names) -> Result<(), Fault> {
    check_bits(args)?;
    secret::prepare(args, 1, "nonce", names)?;
    secret::prepare(args, 2, "key", names)?;
    secret::prepare(args, 4, "aad", names)
}

fn check_open(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    check_gcm(args, names)?;
    secret::prepare(args, 3, "aead_tag", names)
}

fn check_seal(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    check_gcm(args, names)?;
    let name = String::from_utf8_lossy(arg(args, 3).bytes().unwrap_or_default()).into_owned();
    let var = crate::parse::variable(&name, names);
    args[3] =
        Arg::Var(var.map_err(|fault| Fault::new(format!("failed to parse aead_tag : {}", fault.text)))?);
    Ok(())
}

fn bits(args: &[Arg]) -> usize {
    usize::try_from(arg(args, 0).int_or(0)).unwrap_or(0)
}

/// Additional data left out are none; a variable that holds none is an error.
fn additional<'a>(env: &Env<'a>, args: &'a [Arg], i: usize) -> Result<&'a [u8], Miss> {
    if arg(args, i).is_none() {
        return Ok(&[]);
    }
    secret::read(env, args, i).ok_or(Miss::None)
}

type Cbc = fn(usize, &[u8], &[u8], &[u8]) -> Option<Vec<u8>>;

fn cbc<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg], run: Cbc) -> Found<'a> {
    let nonce = secret::read(env, args, 1).filter(|n| !n.is_empty()).ok_or(Miss::None)?;
    let key = secret::read(env, args, 2).ok_or(Miss::None)?;
    additional(env, args, 3)?;
    let out = run(bits(args), key, nonce, bytes(value)).ok_or(Miss::None)?;
    Ok(Value::Bin(env.arena.alloc_slice_copy(&out)))
}

fn seal<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let nonce = secret::read(env, args, 1).ok_or(Miss::None)?;
    let key = secret::read(env, args, 2).ok_or(Miss::None)?;
    let aad = additional(env, args, 4)?;
    let (out, tag) = aes::gcm_encrypt(bits(args), key, nonce, aad, bytes(value)).ok_or(Miss::None)?;
    let mut text = Vec::with_capacity(24);
    base::base64::encode_to(&tag, false, &mut |c| text.push(c));
    if let Arg::Var(var) = arg(args, 3) {
        crate::variables::write(env, *var, Some(Value::Str(&text).to_owned_value()));
    }
    Ok(Value::Bin(env.arena.alloc_slice_copy(&out)))
}

fn open<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let nonce = secret::read(env, args, 1).ok_or(Miss::None)?;
    let key = secret::read(env, args, 2).ok_or(Miss::None)?;
    let tag = secret::read(env, args, 3).ok_or(Miss::None)?;
    let aad = additional(env, args, 4)?;
    let out = aes::gcm_decrypt(bits(args), key, nonce, aad, tag, bytes(value)).ok_or(Miss::None)?;
    Ok(Value::Bin(env.arena.alloc_slice_copy(&out)))
}
