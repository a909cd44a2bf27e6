//! Header fields (section 7.3.6).
//!
//! A field is looked at value by value (`hdr`, commas part) or whole (`fhdr`). The last value is taken
//! unless an occurrence is asked for; ACLs take all. Families differ only in what they make of a value.

use std::net::{IpAddr, Ipv4Addr};

use wire::head::{Head, Known, Name, split_values, trim};

use crate::arg::{Arg, arg};
use crate::entry::{EachFn, FetchDef, FetchFn};
use crate::env::{Env, Side};
use crate::names::Names;
use crate::places::{EITHER_HEAD, REQUEST, RESPONSE};
use crate::sample::{Found, Miss, Type, Value, parse_int};
use crate::words::Fault;

use super::int;

/// Furthest occurrence counted from the end.
const FURTHEST: i64 = -10;

const fn named(
    name: &'static str,
    out: Type,
    eval: FetchFn,
    each: EachFn,
    doc: &'static str,
    example: &'static str,
) -> FetchDef {
    FetchDef::new(name, out, REQUEST, eval, doc).args("[string,integer]", example).check(check).each(each)
}

const fn counting(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, REQUEST, eval, doc).args("[string]", example).check(check)
}

const HDR: FetchDef = named(
    "req.hdr",
    Type::Str,
    |e, a| one(e, Side::Request, a, true, as_text),
    |e, a, v| each(e, Side::Request, a, true, as_text, v),
    "A value of a header field; commas part values.",
    "req.hdr(x-forwarded-for,-1)",
);
const IP: FetchDef = named(
    "req.hdr_ip",
    Type::Addr,
    |e, a| one(e, Side::Request, a, true, as_ip),
    |e, a, v| each(e, Side::Request, a, true, as_ip, v),
    "A value of a header field as an address.",
    "req.hdr_ip(x-forwarded-for)",
);
const VAL: FetchDef = named(
    "req.hdr_val",
    Type::Int,
    |e, a| one(e, Side::Request, a, true, as_int),
    |e, a, v| each(e, Side::Request, a, true, as_int, v),
    "A value of a header field as an integer.",
    "req.hdr_val(content-length)",
);
const FHDR: FetchDef = named(
    "req.fhdr",
    Type::Str,
    |e, a| one(e, Side::Request, a, false, as_text),
    |e, a, v| each(e, Side::Request, a, false, as_text, v),
    "The whole value of a header field.",
    "req.fhdr(user-agent)",
);
const CNT: FetchDef = counting(
    "req.hdr_cnt",
    |e, a| count(e, Side::Request, a, true),
    "Number of values of a header field.",
    "req.hdr_cnt(accept)",
);
const FCNT: FetchDef = counting(
    "req.fhdr_cnt",
    |e, a| count(e, Side::Request, a, false),
    "Number of header fields of a name.",
    "req.fhdr_cnt(accept)",
);
const NAMES: FetchDef = FetchDef::new(
    "req.hdr_names",
    Type::Str,
    REQUEST,
    |e, a| names(e, Side::Request, a),
    "Names of all header fields, joined by a delimiter.",
)
.args("[string]", "req.hdr_names(;)");
const HDRS: FetchDef = FetchDef::new(
    "req.hdrs",
    Type::Bin,
    REQUEST,
    |e, _| whole(e, Side::Request),
    "All header fields as they stand on the wire.",
);

/// The entry of the response that mirrors one of the request.
const fn response(
    def: FetchDef,
    name: &'static str,
    eval: FetchFn,
    each: Option<EachFn>,
    example: &'static str,
) -> FetchDef {
    FetchDef { each, ..def.alias(name, RESPONSE, example).eval(eval) }
}

const RES_HDR: FetchDef = response(
    HDR,
    "res.hdr",
    |e, a| one(e, Side::Response, a, true, as_text),
    Some(|e, a, v| each(e, Side::Response, a, true, as_text, v)),
    "res.hdr(via,1)",
);
const RES_IP: FetchDef = response(
    IP,
    "res.hdr_ip",
    |e, a| one(e, Side::Response, a, true, as_ip),
    Some(|e, a, v| each(e, Side::Response, a, true, as_ip, v)),
    "res.hdr_ip(x-origin)",
);
const RES_VAL: FetchDef = response(
    VAL,
    "res.hdr_val",
    |e, a| one(e, Side::Response, a, true, as_int),
    Some(|e, a, v| each(e, Side::Response, a, true, as_int, v)),
    "res.hdr_val(age)",
);
const RES_CNT: FetchDef =
    response(CNT, "res.hdr_cnt", |e, a| count(e, Side::Response, a, true), None, "res.hdr_cnt(vary)");

pub(super) const FETCHES: &[FetchDef] = &[
    HDR,
    IP,
    VAL,
    FHDR,
    CNT,
    FCNT,
    NAMES,
    HDRS,
    HDR.alias("hdr", EITHER_HEAD, "hdr(host)")
        .eval(|e, a| one(e, e.side, a, true, as_text))
        .each(|e, a, v| each(e, e.side, a, true, as_text, v)),
    IP.alias("hdr_ip", REQUEST, "hdr_ip(x-forwarded-for)"),
    VAL.alias("hdr_val", REQUEST, "hdr_val(content-length)"),
    CNT.alias("hdr_cnt", REQUEST, "hdr_cnt(accept)"),
    RES_HDR,
    RES_IP,
    RES_VAL,
    RES_CNT,
    RES_HDR.alias("shdr", RESPONSE, "shdr(via)"),
    RES_IP.alias("shdr_ip", RESPONSE, "shdr_ip(x-origin)"),
    RES_VAL.alias("shdr_val", RESPONSE, "shdr_val(age)"),
    RES_CNT.alias("shdr_cnt", RESPONSE, "shdr_cnt(vary)"),
    response(
        FHDR,
        "res.fhdr",
        |e, a| one(e, Side::Response, a, false, as_text),
        Some(|e, a, v| each(e, Side::Response, a, false, as_text, v)),
        "res.fhdr(date)",
    ),
    response(FCNT, "res.fhdr_cnt", |e, a| count(e, Side::Response, a, false), None, "res.fhdr_cnt(date)"),
    response(NAMES, "res.hdr_names", |e, a| names(e, Side::Response, a), None, "res.hdr_names"),
    response(HDRS, "res.hdrs", |e, _| whole(e, Side::Response), None, "res.hdrs"),
];

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    if arg(args, 1).int_or(0) < FURTHEST {
        return Err(Fault::new(format!("header occurrence must be >= {FURTHEST}")));
    }
    // A field that has a number is found by it, not by its name.
    let known = arg(args, 0).bytes().map_or(Known::Other, Known::of);
    if known != Known::Other {
        args[0] = Arg::Field(known);
    }
    Ok(())
}

type Make = for<'v> fn(&'v [u8]) -> Option<Value<'v>>;

fn as_text(value: &[u8]) -> Option<Value<'_>> {
    Some(Value::Str(value))
}

fn as_int(value: &[u8]) -> Option<Value<'_>> {
    Some(Value::Int(parse_int(value).unwrap_or(0)))
}

/// An address, an IPv4 one with an optional port; IPv6 may stand in brackets.
fn as_ip(value: &[u8]) -> Option<Value<'_>> {
    let text = std::str::from_utf8(value).ok()?;
    // IPv6 may stand in brackets, as in a URL.
    if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return Some(Value::Ipv6(inside.parse().ok()?));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip.into());
    }
    let (host, port) = text.rsplit_once(':')?;
    let ip = host.parse::<Ipv4Addr>().ok()?;
    port.parse::<u16>().ok()?;
    Some(Value::Ipv4(ip))
}

/// Visits the values of the fields that the arguments name, in order.
fn visit<'a>(head: &'a Head, args: &'a [Arg], split: bool, seen: &mut dyn FnMut(&'a [u8]) -> bool) {
    let mut field = |value: &'a [u8]| {
        // Blanks around a value are not part of it, also where a rule wrote them.
        if split { split_values(value).any(&mut *seen) } else { seen(trim(value)) }
    };
    let name = match arg(args, 0) {
        Arg::Field(known) => Name::from(*known),
        Arg::Str(name) if !name.is_empty() => Name::new(name),
        _ => {
            let _ = head.fields().any(|(_, _, value)| field(value));
            return;
        }
    };
    let _ = head.all(name).any(|(_, value)| field(value));
}

fn one<'a>(env: &Env<'a>, side: Side, args: &'a [Arg], split: bool, make: Make) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let occurrence = match arg(args, 1).int_or(0) {
        0 => -1,
        n => n,
    };
    let value = if occurrence > 0 {
        nth(head, args, split, occurrence as usize)
    } else if occurrence == -1 {
        last(head, args, split)
    } else {
        let total = total(head, args, split);
        total.checked_sub(occurrence.unsigned_abs() as usize).and_then(|i| nth(head, args, split, i + 1))
    };
    value.and_then(make).ok_or(Miss::None)
}

/// The value at a position, from 1.
fn nth<'a>(head: &'a Head, args: &'a [Arg], split: bool, n: usize) -> Option<&'a [u8]> {
    let (mut at, mut found) = (0, None);
    visit(head, args, split, &mut |value| {
        at += 1;
        if at == n {
            found = Some(value);
        }
        at == n
    });
    found
}

fn last<'a>(head: &'a Head, args: &'a [Arg], split: bool) -> Option<&'a [u8]> {
    let mut found = None;
    visit(head, args, split, &mut |value| {
        found = Some(value);
        false
    });
    found
}

fn total(head: &Head, args: &[Arg], split: bool) -> usize {
    let mut n = 0;
    visit(head, args, split, &mut |_| {
        n += 1;
        false
    });
    n
}

fn each<'a>(
    env: &Env<'a>,
    side: Side,
    args: &'a [Arg],
    split: bool,
    make: Make,
    seen: &mut dyn FnMut(Value<'a>) -> bool,
) -> Found<'a> {
    if arg(args, 1).int_or(0) != 0 {
        seen(one(env, side, args, split, make)?);
        return Err(Miss::None);
    }
    let head = env.head(side).ok_or(Miss::None)?;
    visit(head, args, split, &mut |value| make(value).is_some_and(&mut *seen));
    Err(Miss::None)
}

fn count<'a>(env: &Env<'a>, side: Side, args: &'a [Arg], split: bool) -> Found<'a> {
    int(total(env.head(side).ok_or(Miss::None)?, args, split) as u64)
}

fn names<'a>(env: &Env<'a>, side: Side, args: &'a [Arg]) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let delimiter = arg(args, 0).bytes().and_then(|d| d.first()).copied().unwrap_or(b',');
    let mut all = bumpalo::collections::Vec::new_in(env.arena);
    for (i, (_, name, _)) in head.fields().enumerate() {
        if i > 0 {
            all.push(delimiter);
        }
        all.extend_from_slice(name);
    }
    Ok(Value::Str(all.into_bump_slice()))
}

fn whole<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let mut all = bumpalo::collections::Vec::new_in(env.arena);
    for (_, name, value) in head.fields() {
        for part in [name, b": ", value, b"\r\n"] {
            all.extend_from_slice(part);
        }
    }
    all.extend_from_slice(b"\r\n");
    Ok(Value::Bin(all.into_bump_slice()))
}
