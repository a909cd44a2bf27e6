//! Constants, variables, and what needs no traffic: dates, random numbers (section 7.3.2).

use std::sync::Arc;

use crate::arg::{Arg, arg};
use crate::calendar::per_second;
use crate::cond::{Condition, Outcome, Term};
use crate::entry::FetchDef;
use crate::env::Env;
use crate::names::Names;
use crate::places::CONSTANT;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::int;

const fn def(name: &'static str, out: Type, eval: crate::entry::FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CONSTANT, eval, doc)
}

pub(super) const FETCHES: &[FetchDef] = &[
    def("acl", Type::Bool, acl, "Whether all the ACLs named are true; '!' in front of a name negates it.")
        .args(
            "string[,string,string,string,string,string,string,string,string,string,string,string]",
            "acl(TRUE,!FALSE)",
        )
        .check(check_acl)
        .volatile(),
    def("always_false", Type::Bool, |_, _| Ok(Value::Bool(false)), "False."),
    def("always_true", Type::Bool, |_, _| Ok(Value::Bool(true)), "True."),
    def(
        "bin",
        Type::Bin,
        |_, a| Ok(Value::Bin(arg(a, 0).bytes().ok_or(Miss::None)?)),
        "Bytes given as hexadecimal digits.",
    )
    .args("string", "bin(0a0B)")
    .check(check_bin),
    def(
        "bool",
        Type::Bool,
        |_, a| Ok(Value::Bool(arg(a, 0).int_or(0) != 0)),
        "A boolean: true, false, 1 or 0.",
    )
    .args("string", "bool(true)")
    .check(check_bool),
    def(
        "date",
        Type::Int,
        date,
        "The date, in seconds since the epoch, plus an offset; 'ms' and 'us' count finer.",
    )
    .args("[integer,string]", "date(-3600,ms)")
    .check(|args, _| unit(args, 1, "date"))
    .volatile(),
    def(
        "date_us",
        Type::Int,
        |e, _| int(e.live.date().subsec_micros()),
        "The microseconds within the current second.",
    )
    .volatile(),
    def(
        "env",
        Type::Str,
        |_, a| super::text(arg(a, 0).bytes()),
        "An environment variable, as it was at the start.",
    )
    .args("string", "env(PATH)")
    .check(check_env),
    def("int", Type::Int, |_, a| Ok(Value::Int(arg(a, 0).int_or(0))), "An integer.")
        .args("integer", "int(42)"),
    def("ipv4", Type::Ipv4, address, "An IPv4 address.").args("IPv4 address", "ipv4(192.0.2.1)"),
    def("ipv6", Type::Ipv6, address, "An IPv6 address.").args("IPv6 address", "ipv6(2001:db8::1)"),
    def(
        "meth",
        Type::Method,
        |_, a| Ok(Value::Method(arg(a, 0).bytes().ok_or(Miss::None)?)),
        "An HTTP method.",
    )
    .args("string", "meth(GET)")
    .check(|args, _| {
        let word = arg(args, 0).bytes().unwrap_or_default();
        let valid = word.iter().all(|c| super::message::is_token(*c));
        if valid { Ok(()) } else { Err(Fault::new("expects valid method")) }
    }),
    def("rand", Type::Int, rand, "A random integer from 0 to below the range, 2^32 by default.")
        .args("[integer]", "rand(100)")
        .volatile(),
    def("str", Type::Str, |_, a| super::text(arg(a, 0).bytes()), "A string.").args("string", "str(hello)"),
    def("unique-id", Type::Str, unique_id, "The unique id of the transaction."),
    def("uuid", Type::Str, uuid, "A UUID of version 4 or 7 (RFC 9562).")
        .args("[integer]", "uuid(7)")
        .check(check_uuid)
        .volatile(),
    def("var", Type::Any, var, "A variable, or a default when it is not set.")
        .args("string[,string]", "var(txn.x,none)")
        .check(check_var),
];

fn check_acl(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let mut terms = Vec::new();
    for name in args.iter().filter_map(Arg::bytes) {
        let name = String::from_utf8_lossy(name);
        let (negated, name) = name.strip_prefix('!').map_or((false, &*name), |rest| (true, rest));
        let acl = names.acl(name).map_err(|_| Fault::new(format!("ACL '{name}' not found")))?;
        terms.push(Term { negated, acl });
    }
    let condition = Condition { unless: false, any: Box::new([terms.into()]), text: "".into() };
    *args = vec![Arg::Other(Arc::new(condition))];
    Ok(())
}

fn acl<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let Arg::Other(any) = arg(args, 0) else { return Err(Miss::None) };
    let condition = any.downcast_ref::<Condition>().ok_or(Miss::None)?;
    match condition.holds(env) {
        Outcome::Yes => Ok(Value::Bool(true)),
        Outcome::No => Ok(Value::Bool(false)),
        Outcome::Later => Err(Miss::Later),
    }
}

fn check_bin(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let text = arg(args, 0).bytes().unwrap_or_default();
    if text.is_empty() || !text.len().is_multiple_of(2) {
        return Err(Fault::new("an even number of hex digit is expected"));
    }
    if let Some(bad) = text.iter().find(|c| !c.is_ascii_hexdigit()) {
        return Err(Fault::new(format!("an hex digit is expected (found '{}')", char::from(*bad))));
    }
    let digit = |c: u8| char::from(c).to_digit(16).unwrap_or(0) as u8;
    let bytes: Vec<u8> = text.chunks_exact(2).map(|p| digit(p[0]) << 4 | digit(p[1])).collect();
    *args = vec![Arg::Str(bytes.into())];
    Ok(())
}

fn check_bool(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let value = match arg(args, 0).bytes().unwrap_or_default() {
        b"true" | b"1" => 1,
        b"false" | b"0" => 0,
        _ => return Err(Fault::new("Expects 'true', 'false', '0' or '1'")),
    };
    *args = vec![Arg::Int(value)];
    Ok(())
}

/// Turns a unit (`s`, `ms`, `us`) into the number of them in a second.
pub(super) fn unit(args: &mut Vec<Arg>, at: usize, _fetch: &str) -> Result<(), Fault> {
    let per_second = per_second(arg(args, at))?;
    args.resize(at.max(args.len()), Arg::None);
    args.truncate(at);
    args.push(Arg::Int(per_second));
    Ok(())
}

/// A date in the unit that [`unit`] left at `at`.
pub(super) fn date_in(micros: u64, args: &[Arg], at: usize) -> i64 {
    let per_second = arg(args, at).int_or(1).max(1);
    i64::try_from(micros).unwrap_or(i64::MAX) / (1_000_000 / per_second)
}

fn date<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let now = date_in(env.live.date().as_micros(), args, 1);
    Ok(Value::Int(now.saturating_add(arg(args, 0).int_or(0))))
}

fn check_env(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let name = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    *args = names.environment(&name).map(|v| Arg::Str(v.into())).into_iter().collect();
    Ok(())
}

fn address<'a>(_: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    match arg(args, 0) {
        Arg::Ipv4(a) => Ok(Value::Ipv4(*a)),
        Arg::Ipv6(a) => Ok(Value::Ipv6(*a)),
        _ => Err(Miss::None),
    }
}

fn rand<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let range = u64::try_from(arg(args, 0).int_or(1 << 32)).unwrap_or(1);
    int(base::rand::scale(env.live.random(), range))
}

fn check_uuid(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 0).int_or(4) {
        4 | 7 => Ok(()),
        other => Err(Fault::new(format!("Unsupported UUID version: '{other}'"))),
    }
}

fn uuid<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let version = arg(args, 0).int_or(4) as u128;
    let mut bits = u128::from(env.live.random()) << 64 | u128::from(env.live.random());
    if version == 7 {
        let ms = u128::from(env.live.date().as_micros() / 1000);
        bits = bits >> 48 | ms << 80;
    }
    bits = bits & !(0xf << 76) | version << 76;
    bits = bits & !(0x3 << 62) | 0x2 << 62;
    let digits = bumpalo::format!(in env.arena, "{:032x}", bits).into_bump_str();
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    let [a, b, c, d, e] = parts.map(str::as_bytes);
    Ok(Value::Str(super::joined(env, &[a, b"-", b, b"-", c, b"-", d, b"-", e])))
}

fn check_var(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let name = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    args[0] = Arg::Var(crate::parse::variable(&name, names)?);
    Ok(())
}

fn var<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let Arg::Var(var) = arg(args, 0) else { return Err(Miss::None) };
    match crate::variables::read(env, *var) {
        Some(value) => Ok(value),
        None => super::text(arg(args, 1).bytes()),
    }
}

fn unique_id<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let arena = env.arena;
    env.with_unique_id(|id| Value::Str(arena.alloc_slice_copy(id))).ok_or(Miss::None)
}
