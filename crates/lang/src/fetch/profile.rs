//! Figures of the process for whoever looks for its costs, and entities that stopped a stream (section
//! 7.3.2).
//!
//! A request is one task here. Its calls are counted; their time, and how long the task waited for each after
//! it was woken, are measured with `profiling.tasks on`.

use crate::arg::Arg;
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::places::{CONSTANT, INTERNAL};
use crate::sample::{Found, Miss, Type, Value};
use model::term::{Cause, Phase};

use super::int;

const fn figure(name: &'static str, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, INTERNAL, eval, doc).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    figure("cpu_calls", |e, _| of_stream(e, calls), "Calls of the task that serves the stream."),
    figure(
        "cpu_ns_avg",
        |e, _| of_stream(e, |e| cpu(e) / calls(e).max(1)),
        "CPU time of a call, ns, if tasks are profiled.",
    ),
    figure("cpu_ns_tot", |e, _| of_stream(e, cpu), "CPU time of the stream, ns, if tasks are profiled."),
    figure("cpu_usage_grp", |e, _| int(e.live.cpu_usage()), "CPU usage of the thread's group, percent."),
    figure("cpu_usage_proc", |e, _| int(e.live.cpu_usage()), "CPU usage of the process, percent."),
    figure("cpu_usage_thr", |e, _| int(e.live.cpu_usage()), "CPU usage of the thread, percent."),
    figure(
        "lat_ns_avg",
        |e, _| of_stream(e, |e| e.conn.lat_ns.get() / calls(e).max(1)),
        "Wait of a call, ns, if tasks are profiled.",
    ),
    figure(
        "lat_ns_tot",
        |e, _| of_stream(e, |e| e.conn.lat_ns.get()),
        "Waits of the stream, ns, if tasks are profiled.",
    ),
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

fn of_stream<'a>(env: &Env<'a>, figure: fn(&Env<'a>) -> u64) -> Found<'a> {
    if is_stream(env) { int(figure(env)) } else { Err(Miss::None) }
}

/// Whether there is a stream: what is no request never becomes one.
pub(super) fn is_stream(env: &Env<'_>) -> bool {
    env.conn.http_major.get() == 0 || env.txn.has_req
}

fn calls(env: &Env<'_>) -> u64 {
    env.conn.calls.get().into()
}

/// The call at hand counts as far as it went.
fn cpu(env: &Env<'_>) -> u64 {
    env.conn.cpu_ns.get().saturating_add(env.live.call_ns())
}

/// What happened to each layer, as far as the termination state tells: client connection, its mux, the
/// client's end of the stream, the stream, the server's end, its mux, its connection. The words are those
/// that HAProxy writes in the commonest cases of each state; a layer that was never there is a dash.
fn events(env: &Env<'_>) -> &'static [u8] {
    let server = env.txn.times.connected.is_some();
    let (cause, phase) = (env.txn.term.cause, env.txn.term.phase);
    if !is_stream(env) {
        return match cause {
            Cause::Proxy => b"{,m9,-,-,-,-,-}",
            Cause::ClientAbort => b"{f2,m5,-,-,-,-,-}",
            _ => b"{,,-,-,-,-,-}",
        };
    }
    match (server, env.txn.times.ended.is_some()) {
        (true, false) => b"{,,,,,,}",
        (false, false) => b"{,,,,,-,-}",
        (false, true) => without_server(cause),
        (true, true) => with_server(cause, phase),
    }
}

fn without_server(cause: Cause) -> &'static [u8] {
    match cause {
        Cause::ClientAbort => b"{f2f1,m2m1,e2e1,s2s1,,-,-}",
        Cause::ClientTimeout => b"{f1,m1,e1,s4s1,,-,-}",
        Cause::ServerAbort | Cause::ServerTimeout | Cause::Resource => b"{,,e1,S3s1,,-,-}",
        _ => b"{,,e1,s8S1s1,,-,-}",
    }
}

fn with_server(cause: Cause, phase: Phase) -> &'static [u8] {
    match (cause, phase) {
        (Cause::Normal, _) => b"{,,e1,s1S1,E1,,}",
        (Cause::ClientAbort, Phase::Data) => b"{f3,m1,e1,s3s1S1,E1,M1,F1}",
        (Cause::ClientAbort, _) => b"{f2f1,m2m1,e2e1,s2S1s1,E1,M1,F1}",
        (Cause::ClientTimeout, _) => b"{f1,m1,e1,s4s1S1,E1,M1,F1}",
        (Cause::ServerAbort, Phase::Data) => b"{f1,m1,e1,S5s1,E5E1,M5M1,F2F1}",
        (Cause::ServerAbort, _) => b"{,,e1,S5s1,E5E1,M5M1,F2F1}",
        (Cause::ServerTimeout, _) => b"{,,e1,S7S1s1,E1,M1,F1}",
        (Cause::Proxy, Phase::Headers) => b"{,,e1,S6S1S9s1,E9E1,M1,F1}",
        _ => b"{,,e1,s8S1s1,E1,M1,F1}",
    }
}

fn last<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let rule = env.txn.last_rule.get().ok_or(Miss::None)?;
    let (file, line) = env.live.rule_place(rule).ok_or(Miss::None)?;
    Ok(Value::Str(env.arena.alloc_str(&format!("{file}:{line}")).as_bytes()))
}
