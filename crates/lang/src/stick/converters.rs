//! `table_*` and `in_table`: figures of the key that a sample makes (section 7.3.1).
//!
//! Looking does not use an entry: it expires as if nobody had looked. Keys that are not there read as zero.

use std::sync::OnceLock;

use ::stick::{Data, Row, Table};

use super::figure::{self, Op, changes, code};
use super::{key, now, of};
use crate::arg::{Arg, arg};
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::sample::{Found, Miss, Type, Value};

/// Name, function, arguments, example, and what it is.
type Line = (&'static str, ConvFn, &'static str, &'static str, &'static str);

const fn plain<const CODE: u16>(name: &'static str, doc: &'static str) -> Line {
    (name, figure::<CODE>, "table", "(be)", doc)
}

const fn indexed<const CODE: u16>(name: &'static str, doc: &'static str) -> Line {
    (name, element::<CODE>, "integer,table", "(0,be)", doc)
}

const LINES: &[Line] = &[
    plain::<{ code(Op::Blocks, Data::BytesInRate) }>("table_bytes_in_rate", "Bytes from clients per period."),
    plain::<{ code(Op::Blocks, Data::BytesOutRate) }>("table_bytes_out_rate", "Bytes to clients per period."),
    indexed::<{ code(Op::Clear, Data::Gpc) }>("table_clr_gpc", "Sets a general purpose counter to 0."),
    plain::<{ code(Op::Clear, Data::Gpc0) }>("table_clr_gpc0", "Sets the first counter to 0."),
    plain::<{ code(Op::Clear, Data::Gpc1) }>("table_clr_gpc1", "Sets the second counter to 0."),
    plain::<{ code(Op::Read, Data::ConnCnt) }>("table_conn_cnt", "Connections."),
    plain::<{ code(Op::Read, Data::ConnCur) }>("table_conn_cur", "Connections now."),
    plain::<{ code(Op::Read, Data::ConnRate) }>("table_conn_rate", "Connections per period."),
    ("table_expire", expire, "table[,integer]", "(be,7)", "Time until the entry expires, ms."),
    plain::<{ code(Op::Read, Data::GlitchCnt) }>("table_glitch_cnt", "Odd events of the protocol."),
    plain::<{ code(Op::Read, Data::GlitchRate) }>("table_glitch_rate", "Odd events per period."),
    indexed::<{ code(Op::Read, Data::Gpc) }>("table_gpc", "A general purpose counter."),
    plain::<{ code(Op::Read, Data::Gpc0) }>("table_gpc0", "First general purpose counter."),
    plain::<{ code(Op::Read, Data::Gpc0Rate) }>("table_gpc0_rate", "Its increments per period."),
    plain::<{ code(Op::Read, Data::Gpc1) }>("table_gpc1", "Second general purpose counter."),
    plain::<{ code(Op::Read, Data::Gpc1Rate) }>("table_gpc1_rate", "Its increments per period."),
    indexed::<{ code(Op::Read, Data::GpcRate) }>("table_gpc_rate", "Increments of a counter per period."),
    indexed::<{ code(Op::Read, Data::Gpt) }>("table_gpt", "A general purpose tag."),
    plain::<{ code(Op::Read, Data::Gpt0) }>("table_gpt0", "First general purpose tag."),
    plain::<{ code(Op::Read, Data::HttpErrCnt) }>("table_http_err_cnt", "Requests that were in error."),
    plain::<{ code(Op::Read, Data::HttpErrRate) }>("table_http_err_rate", "Requests in error per period."),
    plain::<{ code(Op::Read, Data::HttpFailCnt) }>("table_http_fail_cnt", "Responses that were failures."),
    plain::<{ code(Op::Read, Data::HttpFailRate) }>("table_http_fail_rate", "Failures per period."),
    plain::<{ code(Op::Read, Data::HttpReqCnt) }>("table_http_req_cnt", "Requests."),
    plain::<{ code(Op::Read, Data::HttpReqRate) }>("table_http_req_rate", "Requests per period."),
    ("table_idle", idle, "table[,integer]", "(be,7)", "Time since the entry was used, ms."),
    indexed::<{ code(Op::Inc, Data::Gpc) }>("table_inc_gpc", "Counts with a general purpose counter."),
    plain::<{ code(Op::Inc, Data::Gpc0) }>("table_inc_gpc0", "Counts with the first counter."),
    plain::<{ code(Op::Inc, Data::Gpc1) }>("table_inc_gpc1", "Counts with the second counter."),
    plain::<{ code(Op::Kilo, Data::BytesInCnt) }>("table_kbytes_in", "Kilobytes from clients."),
    plain::<{ code(Op::Kilo, Data::BytesOutCnt) }>("table_kbytes_out", "Kilobytes to clients."),
    plain::<{ code(Op::Read, Data::ServerId) }>("table_server_id", "Number of the server that is stuck to."),
    plain::<{ code(Op::Read, Data::SessCnt) }>("table_sess_cnt", "Sessions."),
    plain::<{ code(Op::Read, Data::SessRate) }>("table_sess_rate", "Sessions per period."),
    ("table_trackers", trackers, "table", "(be)", "How many hold the entry, this look-up included."),
];

/// All converters on tables.
pub(crate) fn converters() -> &'static [ConvDef] {
    static ALL: OnceLock<Vec<ConvDef>> = OnceLock::new();
    ALL.get_or_init(|| {
        let def = |line: &Line, out: Type| {
            let (name, eval, args, example, doc) = *line;
            let example = format!("src,{name}{example}").leak();
            ConvDef::new(name, Type::Any, out, eval, doc, example).args(args).volatile()
        };
        let mut all: Vec<ConvDef> = LINES.iter().map(|line| def(line, Type::Int)).collect();
        let line = ("in_table", in_table as ConvFn, "table", "(be)", "Whether the key is in the table.");
        all.push(def(&line, Type::Bool));
        all
    })
}

fn int<'a>(n: Option<u64>) -> Found<'a> {
    n.map(|n| Value::Int(i64::try_from(n).unwrap_or(i64::MAX))).ok_or(Miss::None)
}

/// What makes no key of the table, such as an address of IPv6 where IPv4 is kept, is not in the table.
fn key_of<'a>(env: &Env<'a>, value: Value<'a>, table: &Table) -> Option<&'a [u8]> {
    key::of(table.kind(), value, env.arena)
}

fn run<'a, const CODE: u16>(env: &Env<'a>, value: Value<'a>, table: &'a Arg, index: usize) -> Found<'a> {
    let table = of(table).ok_or(Miss::None)?;
    let Some(key) = key_of(env, value, table) else { return Ok(Value::Int(0)) };
    let now = now(env);
    let read = |row: &mut Row<'_>| figure::run(CODE, table, row, index);
    if changes(CODE) {
        let held = if figure::op(CODE) == Op::Inc { table.enter(key, now) } else { table.find(key, now) };
        return int(held.map_or(Some(0), |held| read(&mut held.touched_row(now))));
    }
    int(table.peek(key, now).map_or(Some(0), |mut row| read(&mut row)))
}

fn figure<'a, const CODE: u16>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    run::<CODE>(env, value, arg(args, 0), 0)
}

fn element<'a, const CODE: u16>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let index = usize::try_from(arg(args, 0).int_or(-1)).unwrap_or(usize::MAX);
    run::<CODE>(env, value, arg(args, 1), index)
}

/// A time of the entry, or the default given.
fn time<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg], read: impl Fn(&Row<'_>) -> u64) -> Found<'a> {
    let table = of(arg(args, 0)).ok_or(Miss::None)?;
    let key = key_of(env, value, table);
    let now = now(env);
    match key.and_then(|key| table.peek(key, now).map(|row| read(&row))) {
        Some(ms) => int(Some(ms)),
        None if arg(args, 1).is_none() => Err(Miss::None),
        None => Ok(Value::Int(arg(args, 1).int_or(0))),
    }
}

fn expire<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    time(env, value, args, |row| row.expires_in())
}

fn idle<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    time(env, value, args, |row| row.idle())
}

/// HAProxy's figure counts the look-up itself, and rules are written for that.
fn trackers<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let table = of(arg(args, 0)).ok_or(Miss::None)?;
    let key = key_of(env, value, table);
    let uses = key.and_then(|key| table.peek(key, now(env)).map(|row| u64::from(row.uses()) + 1));
    int(Some(uses.unwrap_or(0)))
}

fn in_table<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let table = of(arg(args, 0)).ok_or(Miss::None)?;
    let key = key_of(env, value, table);
    Ok(Value::Bool(key.and_then(|key| table.peek(key, now(env))).is_some()))
}
