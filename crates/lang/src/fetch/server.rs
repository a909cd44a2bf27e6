//! The backend, the server and the connection to it (sections 7.3.3 and 7.3.4).

use crate::arg::Arg;
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::places::{BACKEND, INTERNAL, RESPONSE_KEPT, SERVER, SERVER_CONN};
use crate::sample::{Found, Miss, Type, Value};

use super::client::{error_name, error_text};
use super::{int, ip, port, text};

const fn conn(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, SERVER_CONN, eval, doc).of_stream()
}

pub(super) const FETCHES: &[FetchDef] = &[
    conn(
        "bc_be_queue",
        Type::Int,
        |e, _| int(e.txn.queue_positions.1),
        "Requests ahead in the backend's queue.",
    ),
    conn(
        "bc_srv_queue",
        Type::Int,
        |e, _| int(e.txn.queue_positions.0),
        "Requests ahead in servers' queues.",
    ),
    conn("bc_dst", Type::Addr, |e, _| ip(e.txn.server_conn.dst), "Address of the server connected to."),
    conn("bc_dst_port", Type::Int, |e, _| port(e.txn.server_conn.dst), "Port of the server connected to."),
    conn(
        "bc_err",
        Type::Int,
        |e, _| known_error(e).and_then(int),
        "Number of the server connection's error.",
    ),
    conn(
        "bc_err_name",
        Type::Str,
        |e, _| error_name(e.txn.server_conn.error.0),
        "Name of the server connection's error.",
    ),
    conn(
        "bc_err_str",
        Type::Str,
        |e, _| known_error(e).and_then(error_text),
        "Text of the server connection's error.",
    ),
    conn(
        "bc_http_major",
        Type::Int,
        |e, _| super::client::major(if e.txn.server_conn.begun { e.txn.server_conn.http_major } else { 0 }),
        "Major HTTP version of the server side.",
    ),
    conn(
        "bc_reused",
        Type::Bool,
        |e, _| Ok(Value::Bool(e.txn.server_conn.reused)),
        "Whether the server connection had served before.",
    ),
    conn("bc_src", Type::Addr, |e, _| ip(e.server_source()), "Local address of the server connection."),
    conn("bc_src_port", Type::Int, |e, _| port(e.server_source()), "Local port of the server connection."),
    FetchDef::new(
        "be_id",
        Type::Int,
        BACKEND,
        |e, _| int(e.live.backend().unwrap_or(e.live.frontend()).id),
        "Number of the backend.",
    ),
    FetchDef::new(
        "be_name",
        Type::Str,
        BACKEND,
        |e, _| text(Some(e.live.backend().unwrap_or(e.live.frontend()).name.as_bytes())),
        "Name of the backend.",
    ),
    FetchDef::new(
        "srv_id",
        Type::Int,
        SERVER,
        |e, _| int(e.live.server().ok_or(Miss::None)?.id),
        "Number of the server.",
    ),
    FetchDef::new(
        "srv_name",
        Type::Str,
        SERVER,
        |e, _| text(e.live.server().map(|s| s.name.as_bytes())),
        "Name of the server.",
    ),
    conn("txn.conn_retries", Type::Int, |e, _| int(e.txn.retries), "Connection attempts beyond the first."),
    conn(
        "txn.redispatched",
        Type::Bool,
        |e, _| Ok(Value::Bool(e.txn.redispatched)),
        "Whether another server was tried than the first chosen.",
    ),
    FetchDef::new(
        "txn.sess_term_state",
        Type::Str,
        INTERNAL,
        term,
        "How the stream ended: the first two letters of section 8.5.",
    )
    .of_stream()
    .volatile(),
    FetchDef::new(
        "txn.id32",
        Type::Int,
        INTERNAL,
        |e, _| int(e.txn.serial & 0xffff_ffff),
        "Number of the transaction, 32 bits.",
    )
    .of_stream(),
    FetchDef::new("txn.status", Type::Int, RESPONSE_KEPT, told_status, "Status as logged.").of_stream(),
];

/// None as long as there is none.
fn told_status<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    if env.txn.status == 0 { Err(Miss::None) } else { int(env.txn.status) }
}

fn term<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(Value::Str(env.arena.alloc_slice_copy(&env.txn.term.two())))
}

/// The error of a connection that is there or failed: one that nobody waited for to the end has none.
pub(super) fn known_error(env: &Env<'_>) -> Result<u8, Miss> {
    let facts = &env.txn.server_conn;
    let known = env.txn.times.connected.is_some() || !facts.error.is_none();
    known.then_some(facts.error.0).ok_or(Miss::None)
}
