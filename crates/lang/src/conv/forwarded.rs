//! The Forwarded header field (RFC 7239, section 7.3.1).
//!
//! Its value is a list of `parameter=value` parts between semicolons; HAProxy reads one element of it, and of
//! the parameters the four registered ones.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::bytes;
use crate::arg::{Arg, arg};
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "rfc7239_field",
        Type::Str,
        Type::Str,
        field,
        "A parameter of a Forwarded value: proto, host, for or by.",
        "hdr(forwarded),rfc7239_field(for)",
    )
    .args("string")
    .check(check_field),
    ConvDef::new(
        "rfc7239_is_valid",
        Type::Str,
        Type::Bool,
        |_, v, _| Ok(Value::Bool(is_valid(bytes(v)))),
        "Whether a Forwarded value is valid.",
        "hdr(forwarded),rfc7239_is_valid",
    ),
    ConvDef::new(
        "rfc7239_n2nn",
        Type::Str,
        Type::Any,
        name,
        "Name of a node: an address, 'unknown' or an obfuscated name.",
        "hdr(forwarded),rfc7239_field(for),rfc7239_n2nn",
    ),
    ConvDef::new(
        "rfc7239_n2np",
        Type::Str,
        Type::Any,
        port,
        "Port of a node: a number or an obfuscated name.",
        "hdr(forwarded),rfc7239_field(for),rfc7239_n2np",
    ),
    ConvDef::new(
        "rfc7239_nn",
        Type::Any,
        Type::Str,
        |e, v, _| node_text(e, v, true),
        "Name of a node, for a Forwarded value.",
        "src,rfc7239_nn",
    ),
    ConvDef::new(
        "rfc7239_np",
        Type::Any,
        Type::Str,
        |e, v, _| node_text(e, v, false),
        "Port of a node, for a Forwarded value.",
        "src_port,rfc7239_np",
    ),
];

const FIELDS: [&[u8]; 4] = [b"proto", b"host", b"for", b"by"];

fn check_field(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let name = arg(args, 0).bytes().unwrap_or_default();
    // Any other name is found in no element.
    args[0] = Arg::Int(FIELDS.iter().position(|f| *f == name).map_or(-1, |at| at as i64));
    Ok(())
}

/// Whether a text is one element of a `Forwarded` field.
pub fn is_valid(element: &[u8]) -> bool {
    parse(element).is_some()
}

/// The values of the four parameters, without quotes; `None` when the text breaks the rules.
fn parse(text: &[u8]) -> Option<[Option<&[u8]>; 4]> {
    let mut found = [None; 4];
    let mut rest = text;
    loop {
        let equals = rest.iter().position(|c| *c == b'=')?;
        let which = FIELDS.iter().position(|f| rest[..equals].eq_ignore_ascii_case(f))?;
        let (value, tail) = value(&rest[equals + 1..])?;
        let fits = match which {
            0 => matches!(value, b"http" | b"https"),
            1 => {
                !value.is_empty() && value.iter().all(|c| c.is_ascii_alphanumeric() || b"-._~:[]".contains(c))
            }
            _ => node(value).is_some(),
        };
        if !fits || found[which].is_some() {
            return None;
        }
        found[which] = Some(value);
        match tail {
            [] => return Some(found),
            [b';', more @ ..] => rest = more,
            _ => return None,
        }
    }
}

/// A token or a quoted string, and what follows it. A token holds neither colon nor bracket.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let end = quoted.iter().position(|c| *c == b'"')?;
        return Some((&quoted[..end], &quoted[end + 1..]));
    }
    let token = |c: &u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(c);
    let end = text.iter().position(|c| !token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn obfuscated(text: &[u8]) -> bool {
    text.len() > 1
        && text[0] == b'_'
        && text[1..].iter().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(c))
}

/// Name and port of a node (RFC 7239 section 6).
fn node(text: &[u8]) -> Option<(Value<'_>, Option<Value<'_>>)> {
    let end = match text.first()? {
        b'[' => text.iter().position(|c| *c == b']')? + 1,
        _ => text.iter().position(|c| *c == b':').unwrap_or(text.len()),
    };
    let (name, tail) = text.split_at(end);
    let utf8 = std::str::from_utf8(name).ok()?;
    let name = match name {
        [b'[', ..] => Value::Ipv6(utf8[1..utf8.len() - 1].parse::<Ipv6Addr>().ok()?),
        b"unknown" => Value::Str(name),
        _ if obfuscated(name) => Value::Str(name),
        _ => Value::Ipv4(utf8.parse::<Ipv4Addr>().ok()?),
    };
    let port = match tail {
        [] => None,
        [b':', port @ ..] if obfuscated(port) => Some(Value::Str(port)),
        [b':', port @ ..] => {
            Some(Value::Int(i64::from(std::str::from_utf8(port).ok()?.parse::<u16>().ok()?)))
        }
        _ => return None,
    };
    Some((name, port))
}

fn field<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let all = parse(bytes(value)).ok_or(Miss::None)?;
    let at = usize::try_from(arg(args, 0).int_or(0)).map_err(|_| Miss::None)?;
    all.get(at).copied().flatten().map(Value::Str).ok_or(Miss::None)
}

fn name<'a>(_: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(node(bytes(value)).ok_or(Miss::None)?.0)
}

fn port<'a>(_: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    node(bytes(value)).and_then(|(_, port)| port).ok_or(Miss::None)
}

fn node_text<'a>(env: &Env<'a>, value: Value<'a>, name: bool) -> Found<'a> {
    let text = match (name, value) {
        (true, Value::Ipv4(_)) => return Ok(Value::Str(value.text(env.arena))),
        (true, Value::Ipv6(a)) => {
            return Ok(Value::Str(bumpalo::format!(in env.arena, "[{}]", a).into_bump_str().as_bytes()));
        }
        // A port is printed as 32 bits whatever it is.
        (false, Value::Int(n)) => return Ok(Value::Str(Value::Int(i64::from(n as u32)).text(env.arena))),
        (_, Value::Bin(bytes)) => bytes.split(|c| *c == 0).next().unwrap_or_default(),
        (_, other) => other.text(env.arena),
    };
    if name && text.is_empty() {
        return Ok(Value::Str(b"unknown"));
    }
    let mut out = super::made(env.arena);
    out.push(b'_');
    out.extend_from_slice(text);
    let out = out.into_bump_slice();
    if obfuscated(out) { Ok(Value::Str(out)) } else { Err(Miss::None) }
}
