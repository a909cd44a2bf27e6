//! Timeouts and retries, as configured and as they apply to this transaction (section 7.3.2 and 7.3.3).

use std::time::Duration;

use crate::entry::{FetchDef, FetchFn};
use crate::env::{Env, Limits, Side};
use crate::places::{BACKEND, CLIENT, CLIENT_L4};
use crate::sample::{Found, Miss, Type, Value};

use super::int;

const fn back(name: &'static str, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, BACKEND, eval, doc).volatile()
}

const fn front(name: &'static str, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, CLIENT, eval, doc).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    back("be_connect_timeout", |e, _| ms(be(e)?.connect), "Connect timeout of the backend, ms."),
    back("be_max_retries", |e, _| int(be(e)?.retries), "Retries that the backend allows."),
    back("be_queue_timeout", |e, _| ms(be(e)?.queue), "Queue timeout of the backend, ms."),
    back("be_server_timeout", |e, _| ms(be(e)?.server), "Server timeout of the backend, ms."),
    back("be_tarpit_timeout", |e, _| ms(be(e)?.tarpit), "Tarpit timeout of the backend, ms."),
    back("be_tunnel_timeout", |e, _| ms(be(e)?.tunnel), "Tunnel timeout of the backend, ms."),
    front(
        "cur_client_timeout",
        |e, _| ms(e.txn.overrides.client.or(fe(e)?.client)),
        "Client timeout in force, ms.",
    )
    .of_stream(),
    back(
        "cur_connect_timeout",
        |e, _| ms(e.txn.overrides.connect.or(chosen(e)?.connect)),
        "Connect timeout in force, ms.",
    ),
    back(
        "cur_max_retries",
        |e, _| int(e.txn.overrides.retries.unwrap_or(retries(be(e)?))),
        "Retries in force.",
    ),
    back(
        "cur_queue_timeout",
        |e, _| ms(e.txn.overrides.queue.or(chosen(e)?.queue)),
        "Queue timeout in force, ms.",
    ),
    back("cur_server_timeout", server, "Server timeout in force, ms."),
    FetchDef::new("cur_tarpit_timeout", Type::Int, CLIENT_L4, tarpit, "Tarpit timeout in force, ms.")
        .volatile(),
    back("cur_tunnel_timeout", tunnel, "Tunnel timeout in force, ms."),
    front("fe_client_timeout", |e, _| ms(fe(e)?.client), "Client timeout of the frontend, ms."),
    front("fe_tarpit_timeout", |e, _| ms(fe(e)?.tarpit), "Tarpit timeout of the frontend, ms."),
];

/// What has no limit counts as 0.
fn ms<'a>(limit: Option<Duration>) -> Found<'a> {
    Ok(Value::Int(limit.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))))
}

fn fe(env: &Env<'_>) -> Result<Limits, Miss> {
    env.live.limits(Side::Request).ok_or(Miss::None)
}

fn be(env: &Env<'_>) -> Result<Limits, Miss> {
    env.live.limits(Side::Response).ok_or(Miss::None)
}

/// Those of the backend, in force once it is chosen.
fn chosen(env: &Env<'_>) -> Result<Limits, Miss> {
    be(env).map(|limits| if limits.chosen { limits } else { Limits::default() })
}

fn retries(limits: Limits) -> u32 {
    if limits.serves { limits.retries } else { 0 }
}

fn tunnel<'a>(env: &Env<'a>, _: &'a [crate::Arg]) -> Found<'a> {
    let configured = be(env)?.tunnel.filter(|_| env.txn.times.connected.is_some());
    ms(env.txn.overrides.tunnel.or(configured))
}

/// In force from when there is a connection to the server, like that of a tunnel.
fn server<'a>(env: &Env<'a>, _: &'a [crate::Arg]) -> Found<'a> {
    let configured = be(env)?.server.filter(|_| env.txn.times.connected.is_some());
    ms(env.txn.overrides.server.or(configured))
}

fn tarpit<'a>(env: &Env<'a>, _: &'a [crate::Arg]) -> Found<'a> {
    let configured = be(env).or_else(|_| fe(env)).ok().and_then(|l| l.tarpit);
    ms(env.txn.overrides.tarpit.or(configured))
}
