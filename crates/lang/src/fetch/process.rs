//! The process and its threads (section 7.3.2).

use std::sync::atomic::Ordering::Relaxed;

use crate::arg::Arg;
use crate::entry::FetchDef;
use crate::env::Env;
use crate::places::{CONSTANT, INTERNAL};
use crate::sample::{Found, Miss, Type, Value};

use super::{int, text};

pub(super) const FETCHES: &[FetchDef] = &[
    FetchDef::new("act_conn", Type::Int, CONSTANT, act_conn, "Connections of the process.").volatile(),
    FetchDef::new(
        "hostname",
        Type::Str,
        CONSTANT,
        |e, _| text(Some(e.live.node().0.as_bytes())),
        "Host name of the machine.",
    ),
    FetchDef::new("last_rule_file", Type::Str, INTERNAL, last_file, "File of the last rule that decided.")
        .volatile(),
    FetchDef::new("last_rule_line", Type::Int, INTERNAL, last_line, "Line of the last rule that decided.")
        .volatile(),
    FetchDef::new("pid", Type::Int, CONSTANT, |e, _| int(e.live.node().1), "Number of the process."),
    FetchDef::new(
        "prio_class",
        Type::Int,
        INTERNAL,
        |e, _| int(e.txn.decisions.priority_class),
        "Priority class in queues.",
    )
    .of_stream()
    .volatile(),
    FetchDef::new(
        "prio_offset",
        Type::Int,
        INTERNAL,
        |e, _| int(e.txn.decisions.priority_offset),
        "Priority offset in queues, ms.",
    )
    .of_stream()
    .volatile(),
    FetchDef::new("proc", Type::Int, CONSTANT, |_, _| int(1), "Position of the process, always 1."),
    FetchDef::new("stopping", Type::Bool, INTERNAL, stopping, "Whether the process is stopping.").volatile(),
    FetchDef::new("tgroup", Type::Int, CONSTANT, |_, _| int(0), "Position of the thread's group, from 0."),
    FetchDef::new(
        "thread",
        Type::Int,
        CONSTANT,
        |e, _| int(e.live.worker() as u64),
        "Position of the thread, from 0.",
    )
    .volatile(),
    FetchDef::new("wait_end", Type::Bool, INTERNAL, wait_end, "True once the inspection delay has passed.")
        .volatile(),
];

fn act_conn<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    int(env.live.world().process.connections.load(Relaxed))
}

fn stopping<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(Value::Bool(env.live.world().process.is_to_stop()))
}

fn last_file<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let rule = env.txn.last_rule.get().ok_or(Miss::None)?;
    text(env.live.rule_place(rule).map(|(file, _)| file.as_bytes()))
}

fn last_line<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let rule = env.txn.last_rule.get().ok_or(Miss::None)?;
    int(env.live.rule_place(rule).ok_or(Miss::None)?.1)
}

fn wait_end<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    if env.last { Ok(Value::Bool(true)) } else { Err(Miss::Later) }
}
