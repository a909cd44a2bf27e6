//! Lines and items as JSON (RFC 8259) and CBOR (RFC 8949), for `+json` and `+cbor`.
//!
//! When a whole line is encoded, only items with a name count, and text between them is dropped.

use std::io::Write;

use super::{cast_of, hex, shown, streamless, until_nul};
use crate::env::Env;
use crate::logfmt::{Item, LogFormat, Options, TagKind, Use};
use crate::sample::{Type, Value, append_int, parse_int};

/// What an item is in the encodings.
enum Piece {
    Nothing,
    /// No header is captured at all.
    Null,
    Bool(bool),
    Int(i64),
    Text(Vec<u8>),
    /// A text with encoded bytes, in which braces and bars may part captures.
    Encoded(Vec<u8>, bool),
    /// A number that was asked for as a text, which only JSON does.
    Digits(Vec<u8>),
    /// What is a string of bytes in CBOR; in JSON their text.
    Bytes(Vec<u8>),
    List(Vec<u8>),
}

fn piece(item: &Item, env: &Env<'_>, how: Use) -> Piece {
    match item {
        Item::Text(_) => Piece::Nothing,
        Item::Expr(expr, _) if streamless(env, how) && expr.fetch.def.is_of_stream() => Piece::Nothing,
        Item::Expr(expr, options) => match expr.eval(env) {
            Ok(value) => sample(value, options),
            Err(_) => Piece::Nothing,
        },
        Item::Tag(tag, options) => {
            let mut text = Vec::new();
            match (tag.write)(env, options, &mut text) {
                Some(()) => alias(tag.kind, text, options),
                None => Piece::Nothing,
            }
        }
    }
}

/// What an alias wrote. Only numbers can be turned into something else.
fn alias(kind: TagKind, mut text: Vec<u8>, options: &Options) -> Piece {
    match kind {
        TagKind::List | TagKind::Captures if text.is_empty() => Piece::Null,
        TagKind::List => {
            Piece::List(text.split(|c| *c == 0).map(|part| shown(part, options)).collect::<Vec<_>>().join(&0))
        }
        TagKind::Captures => Piece::Encoded(text, true),
        TagKind::Encoded => Piece::Encoded(text, false),
        TagKind::Text | TagKind::Address | TagKind::Plain => Piece::Text(text),
        TagKind::Figure if options.hex => Piece::Text(text),
        TagKind::Figure | TagKind::Number | TagKind::Running => {
            if text.first() == Some(&b'+') {
                text.remove(0);
            }
            match options.cast {
                Some(Type::Str) => Piece::Digits(text),
                cast => typed(Value::Str(&text), cast.unwrap_or(Type::Int)),
            }
        }
    }
}

/// What an expression found. Nothing is made of an empty text, and no number of bytes.
fn sample(value: Value<'_>, options: &Options) -> Piece {
    match value {
        Value::Str(b"") | Value::Bin(b"") => Piece::Nothing,
        Value::Bin(bytes) => match options.cast {
            None => Piece::Bytes(bytes.to_vec()),
            Some(Type::Str) => sample(Value::Str(until_nul(bytes)), options),
            Some(_) => Piece::Nothing,
        },
        Value::Bool(_) => typed(value, cast_of(options, Type::Bool)),
        Value::Int(_) => typed(value, cast_of(options, Type::Int)),
        _ => typed(value, cast_of(options, Type::Str)),
    }
}

fn typed(value: Value<'_>, to: Type) -> Piece {
    match to {
        Type::Int => value.int().map_or(Piece::Nothing, Piece::Int),
        Type::Bool => match value {
            Value::Str(b"true") => Piece::Bool(true),
            Value::Str(s) => Piece::Bool(parse_int(s).is_some_and(|n| n != 0)),
            other => other.truth().map_or(Piece::Nothing, Piece::Bool),
        },
        _ => {
            let mut text = Vec::new();
            value.append_text(&mut text);
            Piece::Text(text)
        }
    }
}

fn named(item: &Item) -> Option<&str> {
    match item {
        Item::Expr(_, options) | Item::Tag(_, options) => options.name.as_deref(),
        Item::Text(_) => None,
    }
}

pub(super) fn json_object(format: &LogFormat, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    for item in &format.items {
        let Some(name) = named(item) else { continue };
        if !std::mem::take(&mut first) {
            out.extend_from_slice(b", ");
        }
        json_text(name.as_bytes(), out);
        out.extend_from_slice(b": ");
        json_item(item, env, how, out);
    }
    out.push(b'}');
}

pub(super) fn json_item(item: &Item, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    match piece(item, env, how) {
        Piece::Nothing => out.extend_from_slice(b"\"\""),
        Piece::Null => out.extend_from_slice(b"null"),
        Piece::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        Piece::Int(n) => append_int(out, n),
        Piece::Text(text) | Piece::Encoded(text, _) | Piece::Digits(text) => json_text(&text, out),
        Piece::Bytes(bytes) => json_text(until_nul(&bytes), out),
        Piece::List(list) => {
            out.push(b'[');
            for (i, part) in list.split(|c| *c == 0).enumerate() {
                if i > 0 {
                    out.extend_from_slice(b", ");
                }
                json_text(part, out);
            }
            out.push(b']');
        }
    }
}

fn json_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &c in text {
        match c {
            b'"' | b'\\' => out.extend([b'\\', c]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // Writing into a Vec can't fail.
            0..=31 => drop(write!(out, "\\u{c:04x}")),
            _ => out.push(c),
        }
    }
    out.push(b'"');
}

pub(super) fn cbor_map(format: &LogFormat, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    let mut raw = vec![0xbf];
    for item in &format.items {
        let Some(name) = named(item) else { continue };
        cbor_text(name.as_bytes(), &mut raw);
        cbor_raw(item, env, how, &mut raw);
    }
    raw.push(0xff);
    cbor_out(&raw, format.bin, out);
}

pub(super) fn cbor_item(item: &Item, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    let mut raw = Vec::new();
    cbor_raw(item, env, how, &mut raw);
    cbor_out(&raw, false, out);
}

/// Bytes as they are, or as hexadecimal digits so that they remain printable.
fn cbor_out(raw: &[u8], bin: bool, out: &mut Vec<u8>) {
    if bin {
        return out.extend_from_slice(raw);
    }
    raw.iter().for_each(|c| out.extend(hex(*c)));
}

fn cbor_raw(item: &Item, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    match piece(item, env, how) {
        Piece::Nothing | Piece::Null => out.push(0xf6),
        Piece::Bool(b) => out.push(if b { 0xf5 } else { 0xf4 }),
        Piece::Int(n) => cbor_int(n, out),
        Piece::Text(text) => cbor_text(&text, out),
        Piece::Encoded(text, parted) => cbor_chunks(&text, parted, out),
        Piece::Digits(text) => cbor_int(parse_int(&text).unwrap_or(0), out),
        Piece::Bytes(bytes) => {
            out.push(0x5f);
            cbor_head(2, bytes.len() as u64, out);
            out.extend_from_slice(&bytes);
            out.push(0xff);
        }
        Piece::List(list) => {
            out.push(0x9f);
            list.split(|c| *c == 0).for_each(|part| cbor_chunks(part, false, out));
            out.push(0xff);
        }
    }
}

/// A text of indefinite length (RFC 8949 section 3.2.3): what is encoded, and what parts captures, are chunks
/// of their own.
fn cbor_chunks(text: &[u8], parted: bool, out: &mut Vec<u8>) {
    let own = |c: u8| match c {
        b'#' => 3,
        b'{' | b'|' | b'}' if parted => 1,
        _ => 0,
    };
    out.push(0x7f);
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let length = match own(first) {
            0 => rest.iter().position(|c| own(*c) > 0).unwrap_or(rest.len()),
            length => length.min(rest.len()),
        };
        let (chunk, more) = rest.split_at(length);
        cbor_text(chunk, out);
        rest = more;
    }
    out.push(0xff);
}

fn cbor_int(n: i64, out: &mut Vec<u8>) {
    match n {
        0.. => cbor_head(0, n.unsigned_abs(), out),
        _ => cbor_head(1, n.unsigned_abs() - 1, out),
    }
}

fn cbor_text(text: &[u8], out: &mut Vec<u8>) {
    cbor_head(3, text.len() as u64, out);
    out.extend_from_slice(text);
}

/// The head of a data item: major type and argument, in as few bytes as will do.
fn cbor_head(major: u8, n: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match n {
        0..=23 => out.push(major | n as u8),
        24..=0xff => out.extend([major | 24, n as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend((n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend((n as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend(n.to_be_bytes());
        }
    }
}
