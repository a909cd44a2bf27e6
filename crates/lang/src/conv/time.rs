//! Dates (section 7.3.1).

use super::{bytes, made, number, some};
use crate::arg::{Arg, arg};
use base::date::MONTHS;

use crate::calendar::{Civil, format, http_date, per_second};
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Type, Value, parse_int};
use crate::words::Fault;

const fn def(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Int, Type::Str, eval, doc, example).args("string[,integer]")
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "date",
        Type::Str,
        Type::Int,
        parse_date,
        "The seconds since the epoch of an HTTP date.",
        "hdr(date),date",
    ),
    ConvDef::new(
        "http_date",
        Type::Int,
        Type::Str,
        to_http_date,
        "An HTTP date; offset, then unit s, ms or us.",
        "date,http_date(3600)",
    )
    .args("[integer,string]")
    .check(check_unit),
    def("ltime", |e, v, a| written(e, v, a, 1, Civil::local), "Local time, formatted.", "date,ltime(%Y%m%d)"),
    def(
        "ms_ltime",
        |e, v, a| written(e, v, a, 1000, Civil::local),
        "Local time of milliseconds, formatted.",
        "date(0,ms),ms_ltime(%H:%M:%S.%3N)",
    ),
    def(
        "ms_utime",
        |e, v, a| written(e, v, a, 1000, Civil::utc),
        "UTC of milliseconds, formatted.",
        "date(0,ms),ms_utime(%H:%M:%S.%3N)",
    ),
    def(
        "us_ltime",
        |e, v, a| written(e, v, a, 1_000_000, Civil::local),
        "Local time of microseconds, formatted.",
        "date(0,us),us_ltime(%6N)",
    ),
    def(
        "us_utime",
        |e, v, a| written(e, v, a, 1_000_000, Civil::utc),
        "UTC of microseconds, formatted.",
        "date(0,us),us_utime(%6N)",
    ),
    def("utime", |e, v, a| written(e, v, a, 1, Civil::utc), "UTC, formatted.", "date,utime(%Y%m%d)"),
];

/// The offset is in seconds whatever the unit.
fn written<'a>(
    env: &Env<'a>,
    value: Value<'a>,
    args: &'a [Arg],
    per_second: i64,
    split: fn(&Env<'_>, i64) -> Civil,
) -> Found<'a> {
    let n = number(value);
    let seconds = (n / per_second).saturating_add(arg(args, 1).int_or(0));
    let micros = ((n % per_second).unsigned_abs() as i64 * (1_000_000 / per_second)) as u32;
    let mut out = Vec::new();
    format(&mut out, arg(args, 0).bytes().unwrap_or_default(), &split(env, seconds), seconds, micros);
    Ok(Value::Str(env.arena.alloc_slice_copy(&out)))
}

fn check_unit(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    args.resize(2, Arg::None);
    args[1] = Arg::Int(per_second(arg(args, 1))?);
    Ok(())
}

/// In milliseconds and microseconds the part of the second stands behind a dot.
fn to_http_date<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let per_second = arg(args, 1).int_or(1).max(1);
    let n = number(value).saturating_add(arg(args, 0).int_or(0));
    let mut text = Vec::new();
    http_date(&mut text, &Civil::utc(env, n / per_second));
    let mut out = made(env.arena);
    let zone = text.len().saturating_sub(4);
    out.extend_from_slice(&text[..zone]);
    if per_second > 1 {
        out.push(b'.');
        out.extend_from_slice(Value::Int(n % per_second).text(env.arena));
    }
    out.extend_from_slice(&text[zone..]);
    Ok(Value::Str(out.into_bump_slice()))
}

/// Reads the three forms of RFC 9110 section 5.6.7.
fn parse_date<'a>(_: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    some(seconds_of(bytes(value)).map(Value::Int))
}

/// Seconds since the epoch of a date in one of the three forms of RFC 9110 section 5.6.7.
pub fn seconds_of(text: &[u8]) -> Option<i64> {
    let words: Vec<&[u8]> =
        text.split(|c| matches!(c, b' ' | b'-' | b',')).filter(|w| !w.is_empty()).collect();
    let (day, month, year, time) = match words.as_slice() {
        [_, month, day, time, year] if !time.is_empty() && time.contains(&b':') => {
            (*day, *month, *year, *time)
        }
        [_, day, month, year, time, ..] => (*day, *month, *year, *time),
        _ => return None,
    };
    let month = MONTHS.iter().position(|m| m.as_bytes().get(..3) == month.get(..3))? as i64 + 1;
    let (day, mut year) = (parse_int(day)?, parse_int(year)?);
    if (0..100).contains(&year) {
        year += if year < 70 { 2000 } else { 1900 };
    }
    let mut parts = time.split(|c| *c == b':').map(parse_int);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=31).contains(&day) || !(0..=9999).contains(&year) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let shifted = if month > 2 { year } else { year - 1 };
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days =
        shifted * 365 + shifted.div_euclid(4) - shifted.div_euclid(100) + shifted.div_euclid(400) + of_year
            - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}
