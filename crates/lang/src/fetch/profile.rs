//! Figures of the process for whoever looks for its costs, and entities that stopped a stream (section 7.3.2).
//!
//! A request is one task here. Its calls are counted, their time is measured with `profiling.tasks on`; how long a
//! task that was woken waits for its turn is not.

use crate::arg::Arg;
use crate::env::Env;
use crate::places::{CONSTANT, INTERNAL};
use crate::registry::{FetchDef, FetchFn};
use crate::sample::{Found, Miss, Type, Value};

use super::int;

const fn figure(name: &'static str, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, INTERNAL, eval, doc).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    figure("cpu_calls", |e, _| int(e.conn.calls.get()), "Calls of the task that serves the stream."),
    figure(
        "cpu_ns_avg",
        |e, _| int(e.conn.cpu_ns.get() / u64::from(e.conn.calls.get().max(1))),
        "CPU time of a call, ns, if tasks are profiled.",
    ),
    figure(
        "cpu_ns_tot",
        |e, _| int(e.conn.cpu_ns.get()),
        "CPU time of the stream, ns, if tasks are profiled.",
    ),
    figure("cpu_usage_grp", |e, _| int(e.live.cpu_usage()), "CPU usage of the thread's group, percent."),
    figure("cpu_usage_proc", |e, _| int(e.live.cpu_usage()), "CPU usage of the process, percent."),
    figure("cpu_usage_thr", |e, _| int(e.live.cpu_usage()), "CPU usage of the thread, percent."),
    figure("lat_ns_avg", |_, _| int(0), "Wait of a call, ns, if tasks are profiled."),
    figure("lat_ns_tot", |_, _| int(0), "Waits of the stream, ns, if tasks are profiled."),
    FetchDef::new("last_entity", Type::Str, INTERNAL, last, "File and line of the last rule that decided.")
        .volatile(),
    FetchDef::new(
        "quic_enabled",
        Type::Bool,
        CONSTANT,
        |_, _| Ok(Value::Bool(false)),
        "Whether QUIC listeners may be had.",
    ),
    FetchDef::new(
        "spoe.engine-id",
        Type::Str,
        INTERNAL,
        |_, _| Err(Miss::None),
        "Name of the SPOE engine at work.",
    ),
    FetchDef::new(
        "term_events",
        Type::Str,
        INTERNAL,
        |e, _| Ok(Value::Str(events(e))),
        "Termination events by layer, for debugging.",
    )
    .volatile(),
    FetchDef::new(
        "uptime",
        Type::Int,
        CONSTANT,
        |e, _| int(e.live.uptime().as_secs()),
        "Age of the process, seconds.",
    )
    .volatile(),
    FetchDef::new(
        "waiting_entity",
        Type::Str,
        INTERNAL,
        |_, _| Err(Miss::None),
        "What the stream waited for when it was cut.",
    )
    .volatile(),
];

/// No events are kept: only which layers there are, the client's, the stream's, and the server's once it is reached.
fn events(env: &Env<'_>) -> &'static [u8] {
    let http = env.conn.http_major.get() > 0;
    match (env.txn.times.connected.is_some(), http && !env.txn.has_req) {
        (true, _) => b"{,,,,,,}",
        (false, true) => b"{,,-,-,-,-,-}",
        (false, false) => b"{,,,,,-,-}",
    }
}

fn last<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let rule = env.txn.last_rule.get().ok_or(Miss::None)?;
    let (file, line) = env.live.rule_place(rule).ok_or(Miss::None)?;
    Ok(Value::Str(env.arena.alloc_str(&format!("{file}:{line}")).as_bytes()))
}
