//! Text: case, parts, substitution, comparison (section 7.3.1).

use std::net::IpAddr;
use std::sync::Arc;

use pattern::{Groups, Regex};

use super::{bytes, made, some, variable_at};
use crate::arg::{Arg, arg};
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value, parse_int};
use crate::words::Fault;

const fn def(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Str, Type::Str, eval, doc, example)
}

const fn test(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Str, Type::Int, eval, doc, example)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    def(
        "cut_crlf",
        |_, v, _| Ok(Value::Str(until_line_end(bytes(v)))),
        "Cuts at the first line end.",
        "path,cut_crlf",
    ),
    ConvDef::new(
        "has_ctl",
        Type::Bin,
        Type::Bool,
        has_ctl,
        "Whether there are control characters: those of a mask, or all but the tabulator.",
        "path,has_ctl",
    )
    .args("[string]")
    .check(check_mask),
    def(
        "host_only",
        |e, v, _| Ok(Value::Str(mapped(e, Value::Str(split_port(bytes(v)).0), u8::to_ascii_lowercase))),
        "A host in lower case, without its port.",
        "hdr(host),host_only",
    ),
    ConvDef::new(
        "iif",
        Type::Bool,
        Type::Str,
        iif,
        "One text if true, another if false.",
        "http_first_req,iif(yes,no)",
    )
    .args("string,string"),
    ConvDef::new("ipmask", Type::Addr, Type::Addr, ipmask, "Keeps the bits of a mask.", "src,ipmask(24,64)")
        .args("IPv4 mask[,IPv6 mask]"),
    test("length", |_, v, _| Ok(Value::Int(bytes(v).len() as i64)), "Number of bytes.", "path,length"),
    def(
        "lower",
        |e, v, _| Ok(Value::Str(mapped(e, v, u8::to_ascii_lowercase))),
        "Lower case.",
        "hdr(host),lower",
    ),
    def(
        "ltrim",
        |_, v, a| Ok(Value::Str(ltrim(bytes(v), set(a)))),
        "Drops characters at the start.",
        "path,ltrim(/)",
    )
    .args("string"),
    test(
        "port_only",
        |_, v, _| Ok(Value::Int(split_port(bytes(v)).1.and_then(parse_int).unwrap_or(0))),
        "A port without its host, 0 if none.",
        "hdr(host),port_only",
    ),
    def(
        "regsub",
        regsub,
        "Substitutes what a regular expression matches; 'g' everywhere, 'i' without case.",
        "path,regsub(/+,/,g)",
    )
    .args("regex,string[,string]")
    .check(check_regsub),
    def("reverse", reverse, "Reverses the bytes.", "path,reverse"),
    def("reverse_dom", reverse_dom, "Reverses the parts of a domain name.", "hdr(host),reverse_dom"),
    def(
        "rtrim",
        |_, v, a| Ok(Value::Str(rtrim(bytes(v), set(a)))),
        "Drops characters at the end.",
        "path,rtrim(/)",
    )
    .args("string"),
    ConvDef::new(
        "secure_memcmp",
        Type::Bin,
        Type::Bool,
        secure,
        "Compares with a variable in constant time.",
        "path,secure_memcmp(txn.key)",
    )
    .args("string")
    .check(check_variable),
    test("strcmp", strcmp, "Compares with a variable: 0 when equal.", "path,strcmp(txn.key)")
        .args("string")
        .check(check_variable),
    def("upper", |e, v, _| Ok(Value::Str(mapped(e, v, u8::to_ascii_uppercase))), "Upper case.", "path,upper"),
];

fn mapped<'a>(env: &Env<'a>, value: Value<'a>, change: fn(&u8) -> u8) -> &'a [u8] {
    env.arena.alloc_slice_fill_iter(bytes(value).iter().map(change))
}

fn until_line_end(text: &[u8]) -> &[u8] {
    text.split(|c| matches!(c, b'\r' | b'\n')).next().unwrap_or_default()
}

fn has_ctl<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let mask = arg(args, 0).int_or(NO_CONTROL);
    let bit = |c: u8| match c {
        0..=31 => 1 << c,
        127 => 1 << 32,
        _ => 0,
    };
    Ok(Value::Bool(bytes(value).iter().any(|c| mask & bit(*c) != 0)))
}

/// All control characters but the tabulator, by bit; DEL is bit 32.
const NO_CONTROL: i64 = 0x1_ffff_fdff;

/// The bits of all control characters.
const ALL_CONTROLS: i64 = 0x1_ffff_ffff;

fn check_mask(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let Some(text) = arg(args, 0).bytes().filter(|t| !t.is_empty()) else {
        args.clear();
        return Ok(());
    };
    let text = String::from_utf8_lossy(text);
    let mask = match &*text {
        "any" => Some(ALL_CONTROLS),
        "http" => Some(0x2401),
        number => match number.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        },
    };
    let mask = mask.ok_or_else(|| {
        let at = text.bytes().take_while(u8::is_ascii_digit).count();
        Fault::new(format!(
            "cannot parse value '{text}', problem at position {at}; expecting an integer value (decimal or hex with '0x' prefix).\n"
        ))
    })?;
    let excess = mask & !ALL_CONTROLS;
    if excess != 0 {
        let text = format!("unsupported excess bits {excess:#x} in argument value {mask}");
        return Err(Fault::new(text));
    }
    args[0] = Arg::Int(mask);
    Ok(())
}

fn set(args: &[Arg]) -> &[u8] {
    arg(args, 0).bytes().unwrap_or_default()
}

fn ltrim<'a>(text: &'a [u8], set: &[u8]) -> &'a [u8] {
    let from = text.iter().position(|c| !set.contains(c)).unwrap_or(text.len());
    &text[from..]
}

fn rtrim<'a>(text: &'a [u8], set: &[u8]) -> &'a [u8] {
    let end = text.iter().rposition(|c| !set.contains(c)).map_or(0, |at| at + 1);
    &text[..end]
}

/// Parts at the last colon, unless that stands in brackets.
fn split_port(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().rposition(|c| matches!(c, b':' | b']')) {
        Some(at) if text[at] == b':' => (&text[..at], Some(&text[at + 1..])),
        _ => (text, None),
    }
}

fn iif<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let which = usize::from(!value.truth().unwrap_or(false));
    Ok(Value::Str(arg(args, which).bytes().unwrap_or_default()))
}

/// IPv6 addresses that hold an IPv4 one (mapped, compatible, 6to4) are masked as such.
fn ipmask<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let (Arg::Mask4(mask4), mask6) = (arg(args, 0), arg(args, 1)) else { return Err(Miss::None) };
    let v4 = |a: u32| Value::Ipv4(std::net::Ipv4Addr::from(a & u32::from(*mask4)));
    match (value.addr().ok_or(Miss::None)?, mask6) {
        (IpAddr::V4(a), _) => Ok(v4(a.into())),
        (IpAddr::V6(a), mask6) => match (pattern::embedded_v4(a), mask6) {
            (Some(a), _) => Ok(v4(a)),
            (None, Arg::Mask6(mask)) => Ok(Value::Ipv6((u128::from(a) & u128::from(*mask)).into())),
            _ => Err(Miss::None),
        },
    }
}

/// Compiles the expression with its flags.
fn check_regsub(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let flags = arg(args, 2).bytes().unwrap_or_default();
    if let Some(bad) = flags.iter().find(|c| !matches!(c, b'i' | b'g')) {
        return Err(Fault::new(format!(
            "invalid regex flag '{}', only 'i' and 'g' are supported",
            char::from(*bad)
        )));
    }
    let (no_case, all) = (flags.contains(&b'i'), flags.contains(&b'g'));
    let text = arg(args, 0).bytes().unwrap_or_default();
    let regex = Regex::new(text, no_case).map_err(|e| Fault::new(e.text))?;
    args[0] = Arg::Regex(Arc::new(regex));
    args.resize(3, Arg::None);
    args[2] = Arg::Int(i64::from(all));
    Ok(())
}

fn regsub<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let Arg::Regex(regex) = arg(args, 0) else { return Err(Miss::None) };
    let template = arg(args, 1).bytes().unwrap_or_default();
    let all = arg(args, 2).int_or(0) != 0;
    let text = bytes(value);
    let (mut at, mut groups, mut out) = (0, Groups::default(), Vec::new());
    while at <= text.len() && regex.captures_at(text, at, &mut groups) {
        let Some((start, end)) = groups.get(0) else { break };
        out.extend_from_slice(&text[at..start]);
        crate::act::expand(template, text, &groups, &mut out);
        at = end;
        if start == end {
            // An empty match: the next character stays.
            out.extend(text.get(end));
            at += 1;
        }
        if !all {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok(Value::Str(env.arena.alloc_slice_copy(&out)))
}

fn reverse<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(Value::Str(env.arena.alloc_slice_fill_iter(bytes(value).iter().rev().copied())))
}

fn reverse_dom<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    // A name may end in the dot of the root; empty parts are no name.
    let name = bytes(value).strip_suffix(b".").unwrap_or(bytes(value));
    if name.split(|c| *c == b'.').any(<[u8]>::is_empty) {
        return Err(Miss::None);
    }
    let mut out = made(env.arena);
    for (i, part) in name.rsplit(|c| *c == b'.').enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(part);
    }
    Ok(Value::Str(out.into_bump_slice()))
}

/// The argument must name a variable.
fn check_variable(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    variable_at(args, 0, names)?;
    match arg(args, 0) {
        Arg::Var(_) => Ok(()),
        _ => Err(Fault::new("missing variable name")),
    }
}

fn other<'a>(env: &Env<'a>, args: &[Arg]) -> Result<&'a [u8], Miss> {
    let Arg::Var(var) = arg(args, 0) else { return Err(Miss::None) };
    some(crate::variables::read(env, *var)).map(|v| v.text(env.arena))
}

fn secure<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    Ok(Value::Bool(crate::codec::same(bytes(value), other(env, args)?)))
}

/// The difference of the first bytes that differ, else that of the lengths.
fn strcmp<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let (a, b) = (bytes(value), other(env, args)?);
    let differ = a.iter().zip(b).find(|(x, y)| x != y).map(|(x, y)| i64::from(*x) - i64::from(*y));
    Ok(Value::Int(differ.unwrap_or((a.len() as i64 - b.len() as i64).signum())))
}
