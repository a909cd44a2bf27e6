//! Log tags (`%ci` and its family), and how a line is put together (manual, section 8.2.6).
//!
//! A tag appends its plain text. What quoting, escaping and encoding make of it is decided here, once
//! for tags and expressions: the piece just appended is looked at again only when an option asks for it.

mod encode;
mod tables;

use crate::env::Env;
use crate::logfmt::{Encoding, Item, LogFormat, Options, TagDef, TagKind, Use};
use crate::places::Place;
use crate::sample::{Type, Value};

/// All tables of tags.
pub const TABLES: &[&[TagDef]] = &[tables::TAGS];

impl LogFormat {
    /// Appends the line as it can be made when the messages are gone: what needs them is left out.
    pub fn append_late(&self, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
        write_late(self, env, how, out);
    }

    /// Appends the line to `out`.
    pub fn append(&self, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
        write_line(self, env, how, out);
    }
}

/// Appends a line.
pub(crate) fn write_line(format: &LogFormat, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    match format.encoding {
        Encoding::Text => write_text(format, env, how, out),
        Encoding::Json => encode::json_object(format, env, how, out),
        Encoding::Cbor => encode::cbor_map(format, env, how, out),
    }
}

/// Appends a line without the expressions that need a message.
pub(crate) fn write_late(format: &LogFormat, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    for item in &format.items {
        match item {
            Item::Text(text) => out.extend_from_slice(text),
            Item::Expr(expr, _) if !expr.fetch.def.places.has(Place::Log) => {}
            item => write_item(item, format.bin, env, how, out),
        }
    }
}

fn write_text(format: &LogFormat, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    // Whether a blank here would stand at the start of a line or behind another one.
    let mut blank = how == Use::Log;
    for item in &format.items {
        let start = out.len();
        match item {
            Item::Text(text) if blank => out.extend_from_slice(text.strip_prefix(b" ").unwrap_or(text)),
            Item::Text(text) => out.extend_from_slice(text),
            item => write_item(item, format.bin, env, how, out),
        }
        if out.len() > start {
            blank = how == Use::Log && matches!(item, Item::Text(_)) && out.last() == Some(&b' ');
        }
    }
}

fn write_item(item: &Item, bin: bool, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
    let (options, kind) = match item {
        Item::Text(_) => return,
        Item::Expr(_, options) => (options, TagKind::Text),
        Item::Tag(tag, options) => (options, tag.kind),
    };
    match options.encoding {
        Encoding::Text => {}
        Encoding::Json => return encode::json_item(item, env, how, out),
        Encoding::Cbor => return encode::cbor_item(item, env, how, out),
    }
    let begin = out.len();
    // An address in hexadecimal digits is a number. In a header field nobody asks a sample to be quoted.
    let plain = match item {
        Item::Expr(..) => how == Use::Header,
        Item::Tag(..) => kind == TagKind::Address && options.hex,
        Item::Text(_) => false,
    };
    let quoted = options.quote
        && !plain
        && matches!(kind, TagKind::Text | TagKind::Address | TagKind::Encoded | TagKind::Captures);
    if quoted {
        out.push(b'"');
    }
    if kind == TagKind::Running && how == Use::Log && env.live.logs_early() {
        out.push(b'+');
    }
    let start = out.len();
    let found = match item {
        Item::Expr(expr, _) if streamless(env, how) && expr.fetch.def.is_of_stream() => None,
        Item::Expr(expr, _) => {
            write_sample(expr.eval(env).ok(), bin, how, out).filter(|()| out.len() > start)
        }
        Item::Tag(tag, options) => (tag.write)(env, options, out),
        Item::Text(_) => None,
    };
    if found.is_none() {
        out.truncate(begin);
        return match (options.quote, how) {
            (true, Use::Log | Use::Value) => out.extend_from_slice(b"\"\""),
            (true, Use::Header) if !plain => out.extend_from_slice(b"\"\""),
            (false, Use::Log) => out.push(b'-'),
            _ => {}
        };
    }
    if out.len() == start {
        // A part of the request line that is empty is quoted like others.
        return match quoted && kind == TagKind::Encoded {
            true => out.push(b'"'),
            false => out.truncate(begin),
        };
    }
    match kind {
        TagKind::List => separate(out, start, options, how),
        _ => dress(out, start, options, how),
    }
    if quoted {
        out.push(b'"');
    }
}

/// Whether the line at hand is about an error that came before there was a stream.
fn streamless(env: &Env<'_>, how: Use) -> bool {
    use model::Origin::{Error, TcpReqConn, TcpReqSess};
    how == Use::Log && matches!(env.txn.origin.get(), Error | TcpReqConn | TcpReqSess)
}

/// Appends a sample as text. Bytes end before their first NUL, unless `bin` keeps them whole, or a header
/// field takes them, which encodes a text's NUL.
fn write_sample(value: Option<Value<'_>>, bin: bool, how: Use, out: &mut Vec<u8>) -> Option<()> {
    match value? {
        Value::Str(bytes) if how == Use::Header => out.extend_from_slice(bytes),
        Value::Bin(bytes) | Value::Str(bytes) if !bin => out.extend_from_slice(until_nul(bytes)),
        other => other.append_text(out),
    }
    Some(())
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|c| *c == 0).next().unwrap_or_default()
}

/// Puts blanks in place of the NULs between the texts of a list, and dresses and quotes each text.
fn separate(out: &mut Vec<u8>, start: usize, options: &Options, how: Use) {
    let parts = out.split_off(start);
    for (i, part) in parts.split(|c| *c == 0).enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        if options.quote {
            out.push(b'"');
        }
        let begin = out.len();
        out.extend_from_slice(shown(part, options));
        dress(out, begin, options, how);
        if options.quote {
            out.push(b'"');
        }
    }
}

/// A text of a list: quoted, what is missing is empty.
fn shown<'a>(part: &'a [u8], options: &Options) -> &'a [u8] {
    if options.quote && part == b"-" { b"" } else { part }
}

/// Escapes what was appended since `start`, if an option or the use asks for it.
fn dress(out: &mut Vec<u8>, start: usize, options: &Options, how: Use) {
    if how == Use::Header {
        encode_controls(out, start);
    }
    let special = |c: &u8| options.escape && matches!(c, b'"' | b'\\' | b']');
    let Some(first) = out[start..].iter().position(special) else { return };
    let tail = out.split_off(start + first);
    for c in tail {
        match c {
            c if special(&c) => out.extend([b'\\', c]),
            c => out.push(c),
        }
    }
}

/// Writes the control characters since `start` as `%XX`, so that no field value and no target ends before its
/// end: what an expression brings is often a peer's.
pub(crate) fn encode_controls(out: &mut Vec<u8>, start: usize) {
    let control = |c: &u8| (*c < b' ' && *c != b'\t') || *c == 0x7f;
    let Some(first) = out[start..].iter().position(control) else { return };
    for c in out.split_off(start + first) {
        if control(&c) { push_hex(out, b'%', c) } else { out.push(c) }
    }
}

/// Two hexadecimal digits.
pub(crate) fn hex(c: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [DIGITS[usize::from(c >> 4)], DIGITS[usize::from(c & 15)]]
}

/// Appends a mark and two hexadecimal digits.
pub(crate) fn push_hex(out: &mut Vec<u8>, mark: u8, c: u8) {
    out.push(mark);
    out.extend(hex(c));
}

/// The type that an item is turned into when it is encoded.
fn cast_of(options: &Options, default: Type) -> Type {
    options.cast.unwrap_or(default)
}
