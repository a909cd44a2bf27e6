//! Cookies (section 7.3.6).

use wire::head::{Cookie, Head, Known};

use crate::arg::{Arg, arg};
use crate::entry::FetchDef;
use crate::env::{Env, Side};
use crate::places::{EITHER_HEAD, REQUEST, RESPONSE};
use crate::sample::{Found, Miss, Type, Value, parse_int};

use super::int;

const COOK: FetchDef = FetchDef::new(
    "req.cook",
    Type::Str,
    REQUEST,
    |e, a| one(e, Side::Request, a, as_text),
    "Value of a cookie.",
)
.args("[string]", "req.cook(sid)")
.each(|e, a, v| each(e, Side::Request, a, as_text, v));
const VAL: FetchDef = FetchDef::new(
    "req.cook_val",
    Type::Int,
    REQUEST,
    |e, a| one(e, Side::Request, a, as_int),
    "Value of a cookie as an integer.",
)
.args("[string]", "req.cook_val(sid)")
.each(|e, a, v| each(e, Side::Request, a, as_int, v));
const CNT: FetchDef = FetchDef::new(
    "req.cook_cnt",
    Type::Int,
    REQUEST,
    |e, a| count(e, Side::Request, a),
    "Number of cookies of a name.",
)
.args("[string]", "req.cook_cnt(sid)");
const NAMES: FetchDef = FetchDef::new(
    "req.cook_names",
    Type::Str,
    REQUEST,
    |e, a| names(e, Side::Request, a),
    "Names of all cookies, joined by a delimiter.",
)
.args("[string]", "req.cook_names(;)");
const RES_COOK: FetchDef = COOK
    .alias("res.cook", RESPONSE, "res.cook(sid)")
    .eval(|e, a| one(e, Side::Response, a, as_text))
    .each(|e, a, v| each(e, Side::Response, a, as_text, v));
const RES_VAL: FetchDef = VAL
    .alias("res.cook_val", RESPONSE, "res.cook_val(sid)")
    .eval(|e, a| one(e, Side::Response, a, as_int))
    .each(|e, a, v| each(e, Side::Response, a, as_int, v));
const RES_CNT: FetchDef =
    CNT.alias("res.cook_cnt", RESPONSE, "res.cook_cnt(sid)").eval(|e, a| count(e, Side::Response, a));

pub(super) const FETCHES: &[FetchDef] = &[
    COOK,
    VAL,
    CNT,
    NAMES,
    COOK.alias("cook", REQUEST, "cook(sid)"),
    VAL.alias("cook_val", REQUEST, "cook_val(sid)"),
    CNT.alias("cook_cnt", REQUEST, "cook_cnt(sid)"),
    COOK.alias("cookie", EITHER_HEAD, "cookie(sid)")
        .eval(|e, a| one(e, e.side, a, as_text))
        .each(|e, a, v| each(e, e.side, a, as_text, v)),
    RES_COOK,
    RES_VAL,
    RES_CNT,
    RES_COOK.alias("scook", RESPONSE, "scook(sid)"),
    RES_VAL.alias("scook_val", RESPONSE, "scook_val(sid)"),
    RES_CNT.alias("scook_cnt", RESPONSE, "scook_cnt(sid)"),
    NAMES.alias("res.cook_names", RESPONSE, "res.cook_names").eval(|e, a| names(e, Side::Response, a)),
];

type Make = for<'v> fn(&'v [u8]) -> Value<'v>;

fn as_text(value: &[u8]) -> Value<'_> {
    Value::Str(value)
}

fn as_int(value: &[u8]) -> Value<'_> {
    Value::Int(parse_int(value).unwrap_or(0))
}

/// Visits cookies until told to stop.
fn visit<'a>(head: &'a Head, side: Side, seen: &mut dyn FnMut(Cookie<'a>) -> bool) {
    match side {
        Side::Request => drop(head.cookies().any(seen)),
        Side::Response => drop(head.set_cookies().any(seen)),
    }
}

fn wanted(args: &[Arg]) -> Option<&[u8]> {
    arg(args, 0).bytes().filter(|name| !name.is_empty())
}

/// Whether a cookie is one that is looked for. HAProxy overlooks one without a value at the end of its line
/// by name.
fn is_wanted(name: Option<&[u8]>, cookie: &Cookie<'_>) -> bool {
    name.is_none_or(|name| name == cookie.name && !cookie.trails_empty)
}

/// The last cookie of a name, or the first of all.
fn one<'a>(env: &Env<'a>, side: Side, args: &'a [Arg], make: Make) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let (name, mut found) = (wanted(args), None);
    visit(head, side, &mut |cookie| {
        if is_wanted(name, &cookie) {
            found = Some(cookie.value);
        }
        name.is_none() && found.is_some()
    });
    found.map(make).ok_or(Miss::None)
}

fn each<'a>(
    env: &Env<'a>,
    side: Side,
    args: &'a [Arg],
    make: Make,
    seen: &mut dyn FnMut(Value<'a>) -> bool,
) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let name = wanted(args);
    visit(head, side, &mut |cookie| is_wanted(name, &cookie) && seen(make(cookie.value)));
    Err(Miss::None)
}

fn count<'a>(env: &Env<'a>, side: Side, args: &'a [Arg]) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let (name, mut n) = (wanted(args), 0u64);
    if side == Side::Response && name.is_none() {
        return int(head.all(Known::SetCookie).map(|(_, line)| pairs(line)).sum::<u64>());
    }
    visit(head, side, &mut |cookie| {
        n += u64::from(is_wanted(name, &cookie));
        false
    });
    int(n)
}

/// Pairs of a `Set-Cookie` line. HAProxy counts the attributes, too.
fn pairs(mut line: &[u8]) -> u64 {
    let mut n = 0;
    loop {
        let segment = wire::head::segment(line);
        n += u64::from(segment.pair.is_some() && !segment.is_attribute());
        if segment.separator == 0 {
            return n;
        }
        line = line.get(segment.text.len() + 1..).unwrap_or_default();
    }
}

fn names<'a>(env: &Env<'a>, side: Side, args: &'a [Arg]) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let delimiter = arg(args, 0).bytes().and_then(|d| d.first()).copied().unwrap_or(b',');
    let mut all = bumpalo::collections::Vec::new_in(env.arena);
    visit(head, side, &mut |cookie| {
        if !all.is_empty() {
            all.push(delimiter);
        }
        all.extend_from_slice(cookie.name);
        false
    });
    Ok(Value::Str(all.into_bump_slice()))
}
