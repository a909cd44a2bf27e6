//! `sc_*`, `sc0_*` to `sc2_*`, `src_*`: figures of what is tracked, and of the client's address (section
//! 7.3.3); `table_avl`, `table_cnt` (7.3.2).

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use ::stick::{Data, Table, Tracked};

use super::figure::{self, Op, changes, code};
use super::{key, now, of, tracked};
use crate::arg::{Arg, arg};
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::places::{CLIENT_L4, INTERNAL};
use crate::sample::{Found, Miss, Type, Value};

/// The number of the counter is an argument.
const ANY: u8 = u8::MAX;

/// The functions of one figure.
struct Family {
    suffix: &'static str,
    doc: &'static str,
    /// Any counter, then the counters 0 to 2.
    sc: [FetchFn; 4],
    src: FetchFn,
}

const fn family<const CODE: u16>(suffix: &'static str, doc: &'static str) -> Family {
    Family {
        suffix,
        doc,
        sc: [counter::<CODE, ANY>, counter::<CODE, 0>, counter::<CODE, 1>, counter::<CODE, 2>],
        src: source::<CODE>,
    }
}

/// One element of an array, by index.
struct Indexed {
    suffix: &'static str,
    doc: &'static str,
    sc: FetchFn,
    sc1: FetchFn,
    src: FetchFn,
}

const fn indexed<const CODE: u16>(suffix: &'static str, doc: &'static str) -> Indexed {
    Indexed { suffix, doc, sc: element::<CODE, ANY>, sc1: element::<CODE, 1>, src: source_element::<CODE> }
}

const FAMILIES: &[Family] = &[
    family::<{ code(Op::Blocks, Data::BytesInRate) }>("bytes_in_rate", "Bytes from clients per period."),
    family::<{ code(Op::Blocks, Data::BytesOutRate) }>("bytes_out_rate", "Bytes to clients per period."),
    family::<{ code(Op::Clear, Data::Gpc0) }>("clr_gpc0", "Sets the first general purpose counter to 0."),
    family::<{ code(Op::Clear, Data::Gpc1) }>("clr_gpc1", "Sets the second general purpose counter to 0."),
    family::<{ code(Op::Read, Data::ConnCnt) }>("conn_cnt", "Connections."),
    family::<{ code(Op::Read, Data::ConnCur) }>("conn_cur", "Connections now."),
    family::<{ code(Op::Read, Data::ConnRate) }>("conn_rate", "Connections per period."),
    family::<{ code(Op::Read, Data::Gpc0) }>("get_gpc0", "First general purpose counter."),
    family::<{ code(Op::Read, Data::Gpc1) }>("get_gpc1", "Second general purpose counter."),
    family::<{ code(Op::Read, Data::Gpt0) }>("get_gpt0", "First general purpose tag."),
    family::<{ code(Op::Read, Data::GlitchCnt) }>("glitch_cnt", "Odd events of the protocol."),
    family::<{ code(Op::Read, Data::GlitchRate) }>("glitch_rate", "Odd events of the protocol per period."),
    family::<{ code(Op::Read, Data::Gpc0Rate) }>("gpc0_rate", "Increments of the first counter per period."),
    family::<{ code(Op::Read, Data::Gpc1Rate) }>("gpc1_rate", "Increments of the second counter per period."),
    family::<{ code(Op::Read, Data::HttpErrCnt) }>("http_err_cnt", "Requests that were in error."),
    family::<{ code(Op::Read, Data::HttpErrRate) }>("http_err_rate", "Requests in error per period."),
    family::<{ code(Op::Read, Data::HttpFailCnt) }>("http_fail_cnt", "Responses that were failures."),
    family::<{ code(Op::Read, Data::HttpFailRate) }>("http_fail_rate", "Failures per period."),
    family::<{ code(Op::Read, Data::HttpReqCnt) }>("http_req_cnt", "Requests."),
    family::<{ code(Op::Read, Data::HttpReqRate) }>("http_req_rate", "Requests per period."),
    family::<{ code(Op::Inc, Data::Gpc0) }>("inc_gpc0", "Counts with the first general purpose counter."),
    family::<{ code(Op::Inc, Data::Gpc1) }>("inc_gpc1", "Counts with the second general purpose counter."),
    family::<{ code(Op::Kilo, Data::BytesInCnt) }>("kbytes_in", "Kilobytes from clients."),
    family::<{ code(Op::Kilo, Data::BytesOutCnt) }>("kbytes_out", "Kilobytes to clients."),
    family::<{ code(Op::Read, Data::SessCnt) }>("sess_cnt", "Sessions."),
    family::<{ code(Op::Read, Data::SessRate) }>("sess_rate", "Sessions per period."),
];

const INDEXED: &[Indexed] = &[
    indexed::<{ code(Op::Clear, Data::Gpc) }>("clr_gpc", "Sets a general purpose counter to 0."),
    indexed::<{ code(Op::Read, Data::Gpc) }>("get_gpc", "A general purpose counter."),
    indexed::<{ code(Op::Read, Data::Gpt) }>("get_gpt", "A general purpose tag."),
    indexed::<{ code(Op::Read, Data::GpcRate) }>("gpc_rate", "Increments of a counter per period."),
    indexed::<{ code(Op::Inc, Data::Gpc) }>("inc_gpc", "Counts with a general purpose counter."),
];

/// A name that lives as long as the process: they are made once.
fn name(prefix: &str, suffix: &str) -> &'static str {
    format!("{prefix}_{suffix}").leak()
}

fn def(
    prefix: &str,
    suffix: &str,
    out: Type,
    args: (&'static str, &str),
    eval: FetchFn,
    doc: &'static str,
) -> FetchDef {
    let (signature, example) = args;
    let name = name(prefix, suffix);
    // What adds up bytes of a session does not exist on the command line, nor do sources.
    let places = if prefix == "src" || suffix.starts_with("kbytes") { CLIENT_L4 } else { INTERNAL };
    FetchDef::new(name, out, places, eval, doc).args(signature, format!("{name}{example}").leak()).volatile()
}

const PREFIXES: [&str; 4] = ["sc", "sc0", "sc1", "sc2"];

/// All fetches on tables.
pub(crate) fn fetches() -> &'static [FetchDef] {
    static ALL: OnceLock<Vec<FetchDef>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for f in FAMILIES {
            for (prefix, eval) in PREFIXES.into_iter().zip(f.sc) {
                let args = if prefix == "sc" { ("integer[,table]", "(0)") } else { ("[table]", "") };
                all.push(def(prefix, f.suffix, Type::Int, args, eval, f.doc));
            }
            all.push(def("src", f.suffix, Type::Int, ("table", "(be)"), f.src, f.doc));
        }
        for f in INDEXED {
            let args = ("integer,integer[,table]", "(0,0)");
            all.push(def("sc", f.suffix, Type::Int, args, f.sc, f.doc));
            all.push(def("src", f.suffix, Type::Int, ("integer,table", "(0,be)"), f.src, f.doc));
            if f.suffix == "clr_gpc" {
                all.push(def("sc1", f.suffix, Type::Int, ("integer[,table]", "(0)"), f.sc1, f.doc));
            }
        }
        others(&mut all);
        all
    })
}

fn others(all: &mut Vec<FetchDef>) {
    let what: [[FetchFn; 4]; 3] = [
        [is_tracked::<ANY>, is_tracked::<0>, is_tracked::<1>, is_tracked::<2>],
        [trackers::<ANY>, trackers::<0>, trackers::<1>, trackers::<2>],
        [the_key::<ANY>, the_key::<0>, the_key::<1>, the_key::<2>],
    ];
    let [tracked, trackers, keys] = what;
    for (i, prefix) in PREFIXES.into_iter().enumerate() {
        let args = if i == 0 { ("integer[,table]", "(0)") } else { ("[table]", "") };
        all.push(def(prefix, "tracked", Type::Bool, args, tracked[i], "Whether the counter is in use."));
        all.push(def(prefix, "trackers", Type::Int, args, trackers[i], "How many track the same key."));
        let args = if i == 0 { ("integer", "(0)") } else { ("", "") };
        all.push(def(prefix, "key", Type::Any, args, keys[i], "The key that is tracked."));
    }
    let doc = "Counts a connection of the client's address, which need not be tracked.";
    all.push(def("src", "updt_conn_cnt", Type::Int, ("table", "(be)"), update_connections, doc));
    all.push(
        FetchDef::new("table_avl", Type::Int, INTERNAL, available, "Entries that still fit the table.")
            .args("table", "table_avl(be)")
            .volatile(),
    );
    all.push(
        FetchDef::new("table_cnt", Type::Int, INTERNAL, used, "Entries of the table.")
            .args("table", "table_cnt(be)")
            .volatile(),
    );
}

fn int<'a>(n: Option<u64>) -> Found<'a> {
    n.map(|n| Value::Int(i64::try_from(n).unwrap_or(i64::MAX))).ok_or(Miss::None)
}

/// The number of the counter, and the arguments behind it.
fn split<const AT: u8>(args: &[Arg]) -> (usize, &[Arg]) {
    match AT {
        ANY => (usize::try_from(arg(args, 0).int_or(-1)).unwrap_or(usize::MAX), args.get(1..).unwrap_or(&[])),
        at => (usize::from(at), args),
    }
}

fn index(arg: &Arg) -> usize {
    usize::try_from(arg.int_or(-1)).unwrap_or(usize::MAX)
}

/// A figure of what is tracked, or of the same key in another table: 0 when it is not there.
fn look<const CODE: u16>(env: &Env<'_>, at: usize, table: &Arg, index: usize) -> Option<u64> {
    tracked(env, at, |held| {
        let other = of(table).filter(|t| !Arc::ptr_eq(t, held.table()));
        match other {
            None => figure_of::<CODE>(env, held, index),
            Some(t) if !t.kind().is_like(held.table().kind()) => None,
            Some(t) => match t.find(key_of(env, held), now(env)) {
                Some(found) => figure_of::<CODE>(env, &found, index),
                None => Some(0),
            },
        }
    })?
}

fn key_of<'a>(env: &Env<'a>, held: &Tracked) -> &'a [u8] {
    env.arena.alloc_slice_copy(held.row(now(env)).key())
}

fn figure_of<const CODE: u16>(env: &Env<'_>, held: &Tracked, index: usize) -> Option<u64> {
    let mut row = if changes(CODE) { held.touched_row(now(env)) } else { held.row(now(env)) };
    figure::run(CODE, held.table(), &mut row, index)
}

fn counter<'a, const CODE: u16, const AT: u8>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let (at, rest) = split::<AT>(args);
    int(look::<CODE>(env, at, arg(rest, 0), 0))
}

fn element<'a, const CODE: u16, const AT: u8>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let (at, rest) = split::<AT>(args.get(1..).unwrap_or(&[]));
    int(look::<CODE>(env, at, arg(rest, 0), index(arg(args, 0))))
}

/// A figure of the client's address: 0 when it is not in the table, or can't be; counting enters it.
fn of_source<const CODE: u16>(env: &Env<'_>, table: &Arg, index: usize) -> Option<u64> {
    let table = of(table)?;
    let source = env.src().ip()?;
    let found = source_key(env, table, source).and_then(|key| match figure::op(CODE) {
        Op::Inc => table.enter(key, now(env)),
        _ => table.find(key, now(env)),
    });
    match found {
        Some(held) => figure_of::<CODE>(env, &held, index),
        None => Some(0),
    }
}

fn source_key<'a>(env: &Env<'a>, table: &Table, source: IpAddr) -> Option<&'a [u8]> {
    key::of(table.kind(), source.into(), env.arena)
}

fn source<'a, const CODE: u16>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    int(of_source::<CODE>(env, arg(args, 0), 0))
}

fn source_element<'a, const CODE: u16>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    int(of_source::<CODE>(env, arg(args, 1), index(arg(args, 0))))
}

fn update_connections<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let table = of(arg(args, 0)).ok_or(Miss::None)?;
    let key = env.src().ip().and_then(|ip| source_key(env, table, ip)).ok_or(Miss::None)?;
    let held = table.enter(key, now(env)).ok_or(Miss::None)?;
    let count = held.row(now(env)).add(Data::ConnCnt, 0, 1);
    int(count)
}

fn is_tracked<'a, const AT: u8>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    Ok(Value::Bool(tracked(env, split::<AT>(args).0, |_| ()).is_some()))
}

fn trackers<'a, const AT: u8>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let (at, rest) = split::<AT>(args);
    let uses = tracked(env, at, |held| match of(arg(rest, 0)) {
        Some(t) if !Arc::ptr_eq(t, held.table()) => {
            t.peek(key_of(env, held), now(env)).map_or(0, |row| row.uses())
        }
        _ => held.row(now(env)).uses(),
    });
    int(uses.map(u64::from))
}

fn the_key<'a, const AT: u8>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let sample = |t: &Tracked| key::sample(t.table().kind(), t.row(now(env)).key(), env.arena);
    let found = tracked(env, split::<AT>(args).0, sample);
    found.flatten().ok_or(Miss::None)
}

fn used<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let table = of(arg(args, 0)).ok_or(Miss::None)?;
    int(Some(table.used(now(env)).into()))
}

fn available<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let table = of(arg(args, 0)).ok_or(Miss::None)?;
    int(Some(table.settings().size.saturating_sub(table.used(now(env))).into()))
}
