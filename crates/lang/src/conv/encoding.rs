//! Encodings: hexadecimal, base64, URLs, JSON strings, blocks of bytes (section 7.3.1).

use super::{Made, bytes, made, number_or_variable, operand, some};
use crate::arg::{Arg, arg};
use crate::codec::hex_digit;
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "b64dec",
        Type::Str,
        Type::Bin,
        |e, v, _| decode(e, v, false),
        "Decodes base64.",
        "str(YWJj),b64dec",
    ),
    ConvDef::new("base2", Type::Bin, Type::Str, base2, "Bytes in binary digits.", "src,base2"),
    ConvDef::new(
        "base64",
        Type::Bin,
        Type::Str,
        |e, v, _| encode(e, v, false),
        "Encodes base64.",
        "src,base64",
    ),
    ConvDef::new(
        "be2dec",
        Type::Bin,
        Type::Str,
        |e, v, a| chunks(e, v, a, decimal),
        "Blocks of bytes as decimal numbers.",
        "bin(01020304),be2dec(:,2)",
    )
    .args("string[,integer,integer]")
    .check(check_chunks),
    ConvDef::new(
        "be2hex",
        Type::Bin,
        Type::Str,
        |e, v, a| chunks(e, v, a, digits),
        "Blocks of bytes as hexadecimal digits.",
        "bin(01020304),be2hex(:,2)",
    )
    .args("string[,integer,integer]")
    .check(check_hex_chunks),
    ConvDef::new(
        "bytes",
        Type::Bin,
        Type::Bin,
        cut,
        "Bytes from an offset, all or so many.",
        "path,bytes(1,3)",
    )
    .args("string[,string]")
    .check(check_cut),
    ConvDef::new("hex", Type::Bin, Type::Str, hex, "Hexadecimal digits.", "src,hex"),
    ConvDef::new(
        "hex2i",
        Type::Str,
        Type::Int,
        hex2i,
        "The number that hexadecimal digits spell.",
        "str(0a),hex2i",
    ),
    ConvDef::new("json", Type::Str, Type::Str, json, "Escapes for a JSON string.", "path,json(utf8s)")
        .args("string")
        .check(check_json),
    ConvDef::new(
        "le2dec",
        Type::Bin,
        Type::Str,
        |e, v, a| chunks(e, v, a, decimal_reversed),
        "Blocks of bytes, least significant first, as decimal numbers.",
        "bin(0102),le2dec(:,2)",
    )
    .args("string[,integer,integer]")
    .check(check_chunks),
    ConvDef::new(
        "ub64dec",
        Type::Str,
        Type::Bin,
        |e, v, _| decode(e, v, true),
        "Decodes base64 of URLs.",
        "str(YWI_Pg),ub64dec",
    ),
    ConvDef::new(
        "ub64enc",
        Type::Bin,
        Type::Str,
        |e, v, _| encode(e, v, true),
        "Encodes base64 for URLs.",
        "path,ub64enc",
    ),
    ConvDef::new(
        "url_dec",
        Type::Str,
        Type::Str,
        url_dec,
        "Decodes a URL; with an argument of 1 '+' is a blank everywhere.",
        "path,url_dec",
    )
    .args("[integer]"),
    ConvDef::new(
        "url_enc",
        Type::Str,
        Type::Str,
        url_enc,
        "Encodes for a URL's query.",
        "path,url_enc(query)",
    )
    .args("string")
    .check(check_url_enc),
];

fn decode<'a>(env: &Env<'a>, value: Value<'a>, url: bool) -> Found<'a> {
    let mut out = made(env.arena);
    base::base64::decode_to(bytes(value), url, &mut |c| out.push(c)).ok_or(Miss::None)?;
    Ok(Value::Bin(out.into_bump_slice()))
}

fn encode<'a>(env: &Env<'a>, value: Value<'a>, url: bool) -> Found<'a> {
    let mut out = made(env.arena);
    base::base64::encode_to(bytes(value), url, &mut |c| out.push(c));
    Ok(Value::Str(out.into_bump_slice()))
}

fn base2<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    let mut out = made(env.arena);
    out.extend(bytes(value).iter().flat_map(|b| (0..8).rev().map(move |bit| b'0' + (b >> bit & 1))));
    Ok(Value::Str(out.into_bump_slice()))
}

fn hex<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    let mut out = made(env.arena);
    digits(bytes(value), &mut out);
    Ok(Value::Str(out.into_bump_slice()))
}

fn hex2i<'a>(_: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    let text = bytes(value);
    let n = text.iter().try_fold(0i64, |n, c| Some(n << 4 | i64::from(hex_digit(*c)?)));
    some(n.map(Value::Int))
}

fn digits(chunk: &[u8], out: &mut Made<'_>) {
    chunk.iter().for_each(|c| out.extend_from_slice(&crate::tag::hex(*c)));
}

fn decimal(chunk: &[u8], out: &mut Made<'_>) {
    let n = chunk.iter().fold(0u64, |n, c| n << 8 | u64::from(*c));
    out.extend_from_slice(n.to_string().as_bytes());
}

fn decimal_reversed(chunk: &[u8], out: &mut Made<'_>) {
    let n = chunk.iter().rev().fold(0u64, |n, c| n << 8 | u64::from(*c));
    out.extend_from_slice(n.to_string().as_bytes());
}

fn check_chunks(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 1).int_or(0) {
        1..=8 => check_truncation(args),
        other => Err(Fault::new(format!("chunk_size out of [1..8] range ({other})"))),
    }
}

fn check_hex_chunks(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let size = arg(args, 1).int_or(0);
    if size < 0 || (size == 0 && arg(args, 0).bytes().is_some_and(|s| !s.is_empty())) {
        return Err(Fault::new(format!("chunk_size needs to be positive ({size})")));
    }
    check_truncation(args)
}

/// The third argument: whether a chunk that is not whole is left out.
fn check_truncation(args: &[Arg]) -> Result<(), Fault> {
    match arg(args, 2).int_or(0) {
        0 | 1 => Ok(()),
        other => Err(Fault::new(format!("Unsupported truncate value ({other})"))),
    }
}

/// Blocks of a size, joined by a separator; a shorter last one is left out if the third argument says so.
fn chunks<'a>(
    env: &Env<'a>,
    value: Value<'a>,
    args: &'a [Arg],
    write: fn(&[u8], &mut Made<'_>),
) -> Found<'a> {
    let separator = arg(args, 0).bytes().unwrap_or_default();
    let size = usize::try_from(arg(args, 1).int_or(1).max(1)).unwrap_or(1);
    let truncate = arg(args, 2).int_or(0) != 0;
    let mut out = made(env.arena);
    for (i, chunk) in bytes(value).chunks(size).enumerate() {
        if truncate && chunk.len() < size {
            break;
        }
        if i > 0 {
            out.extend_from_slice(separator);
        }
        write(chunk, &mut out);
    }
    Ok(Value::Str(out.into_bump_slice()))
}

fn check_cut(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    number_or_variable(args, 0, names)?;
    number_or_variable(args, 1, names)?;
    for (i, least) in [(0, "non-negative"), (1, "positive")] {
        if arg(args, i).int_or(1) < i64::from(i == 1) {
            return Err(Fault::new(format!("expects a {least} integer")));
        }
    }
    Ok(())
}

fn cut<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let all = bytes(value);
    let offset = operand(env, arg(args, 0)).and_then(|n| usize::try_from(n).ok()).ok_or(Miss::None)?;
    let rest = all.get(offset..).unwrap_or_default();
    if arg(args, 1).is_none() {
        return Ok(Value::Bin(rest));
    }
    let length = operand(env, arg(args, 1)).and_then(|n| usize::try_from(n).ok()).ok_or(Miss::None)?;
    Ok(Value::Bin(&rest[..length.min(rest.len())]))
}

fn url_dec<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let mut form = arg(args, 0).int_or(0) != 0;
    let mut out = made(env.arena);
    let mut rest = bytes(value).iter();
    while let Some(&c) = rest.next() {
        out.push(match c {
            b'+' if form => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|c| hex_digit(*c)).ok_or(Miss::None);
                digit()? << 4 | digit()?
            }
            _ => {
                form |= c == b'?';
                c
            }
        });
    }
    Ok(Value::Str(out.into_bump_slice()))
}

fn check_url_enc(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 0).bytes() {
        None | Some(b"" | b"query") => Ok(()),
        Some(_) => Err(Fault::new("Unexpected encode type. Allowed value is 'query'")),
    }
}

fn url_enc<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    let mut out = made(env.arena);
    for &c in bytes(value) {
        if c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_' | b'~') {
            out.push(c);
        } else {
            out.push(b'%');
            out.extend_from_slice(&crate::tag::hex(c));
        }
    }
    Ok(Value::Str(out.into_bump_slice()))
}

/// How bytes that are no UTF-8 are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// Each byte is a character anyway (`ascii`).
    Bytes,
    /// The conversion fails (`utf8`).
    Fail,
    /// They are left out (`utf8s`, `utf8ps`).
    Skip,
    /// Accepted as they come (`utf8p`): fails where no character begins.
    Permissive,
}

fn check_json(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let code = match arg(args, 0).bytes().unwrap_or_default() {
        b"" | b"ascii" => 0,
        b"utf8" => 1,
        b"utf8s" | b"utf8ps" => 2,
        b"utf8p" => 3,
        _ => {
            return Err(Fault::new(
                "Unexpected input code type. Allowed value are 'ascii', 'utf8', 'utf8s', 'utf8p' and 'utf8ps'",
            ));
        }
    };
    *args = vec![Arg::Int(code)];
    Ok(())
}

fn json<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let wrong = match arg(args, 0).int_or(0) {
        0 => Wrong::Bytes,
        1 => Wrong::Fail,
        2 => Wrong::Skip,
        _ => Wrong::Permissive,
    };
    let mut out = made(env.arena);
    if wrong == Wrong::Bytes {
        bytes(value).iter().for_each(|c| escape(u32::from(*c), &mut out));
        return Ok(Value::Str(out.into_bump_slice()));
    }
    for chunk in bytes(value).utf8_chunks() {
        for c in chunk.valid().chars().map(u32::from) {
            // Four digits can't spell what lies beyond the first plane.
            match (c, wrong) {
                (0..=0xffff, _) => escape(c, &mut out),
                (_, Wrong::Skip) => {}
                _ => return Err(Miss::None),
            }
        }
        if !chunk.invalid().is_empty() && wrong != Wrong::Skip {
            return Err(Miss::None);
        }
    }
    Ok(Value::Str(out.into_bump_slice()))
}

/// Appends one character as it stands in a JSON string; all but printable ASCII as an escape of four hex
/// digits.
fn escape(c: u32, out: &mut Made<'_>) {
    let short = match c {
        0x22 => b'"',
        0x5c => b'\\',
        0x2f => b'/',
        0x08 => b'b',
        0x0c => b'f',
        0x0a => b'n',
        0x0d => b'r',
        0x09 => b't',
        0x20..=0x7e => return out.push(c as u8),
        _ => {
            out.extend_from_slice(b"\\u");
            for digit in (0..4).rev().map(|i| c >> (4 * i) & 15) {
                out.push(char::from_digit(digit, 16).map_or(b'0', |d| d as u8));
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
