//! Streams and the connections that carry them (sections 7.3.3 and 7.3.4).
//!
//! In HTTP/1 and TCP a connection carries one stream at a time, which is what the figures say there.

use crate::arg::Arg;
use crate::entry::{FetchDef, FetchFn};
use crate::env::{Env, Side};
use crate::places::{CLIENT_L4, CLIENT_L5, RESPONSE_KEPT, SERVER, SERVER_CONN};
use crate::sample::{Found, Miss, Type, Value};

use super::int;
use super::profile::is_stream;
use model::conn::{Conn, ConnPhase, Multiplex};
use model::term::Cause;

const fn front(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L5, eval, doc).volatile()
}

const fn back(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, SERVER_CONN, eval, doc).volatile()
}

/// A client connection whose streams are known of: nobody speaks of streams before it is served.
fn served<'a>(env: &Env<'a>) -> Result<&'a Conn, Miss> {
    if env.conn.phase.get() == ConnPhase::Served { Ok(env.conn) } else { Err(Miss::None) }
}

const fn client(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L4, eval, doc).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    back(
        "bc_glitches",
        Type::Int,
        |e, _| server(e, |_| e.txn.server_conn.glitches),
        "Protocol glitches of the server connection.",
    )
    .of_stream(),
    back(
        "bc_nb_streams",
        Type::Int,
        // Of a multiplexed one a stream that is over has left it, though its response is still here.
        |e, _| server(e, |m| if m.limit == 0 { 1 } else { m.streams }),
        "Streams open on the server connection.",
    )
    .of_stream(),
    back(
        "bc_settings_streams_limit",
        Type::Int,
        |e, _| server(e, |m| m.limit.max(1)),
        "Streams that the server connection may carry at once.",
    )
    .of_stream(),
    back(
        "bs.aborted",
        Type::Int,
        |e, _| aborted(e, Side::Response),
        "Whether the server aborted this stream.",
    ),
    back("bs.debug_str", Type::Str, |e, _| describe(e, Side::Response), "Internal state of the server side.")
        .args("[integer]", "bs.debug_str"),
    back(
        "bs.id",
        Type::Int,
        |e, _| server(e, |_| e.txn.server_conn.stream.id.unwrap_or(0)),
        "Number of the stream on the server connection.",
    ),
    back(
        "bs.rst_code",
        Type::Int,
        |e, _| int(e.txn.server_conn.stream.reset.ok_or(Miss::None)?),
        "Code with which an HTTP/2 or QUIC server reset the stream.",
    ),
    client(
        "fc_glitches",
        Type::Int,
        |e, _| {
            // TCP has none.
            let http = served(e)?.http_major.get() != 0;
            if http { int(e.conn.glitches.get()) } else { Err(Miss::None) }
        },
        "Protocol glitches of the client connection.",
    ),
    client(
        "fc_nb_streams",
        Type::Int,
        |e, _| int(served(e)?.multiplex.get().streams.max(1)),
        "Streams open on the client connection.",
    ),
    client(
        "fc_saved_syn",
        Type::Bin,
        saved_syn,
        "The SYN packet of the client connection (bind option tcp-ss).",
    ),
    front(
        "fc_settings_streams_limit",
        Type::Int,
        |e, _| int(served(e)?.multiplex.get().limit.max(1)),
        "Streams that the client connection may carry at once.",
    ),
    front(
        "fs.aborted",
        Type::Int,
        |e, _| aborted(e, Side::Request),
        "Whether the client aborted this stream.",
    ),
    front("fs.debug_str", Type::Str, |e, _| describe(e, Side::Request), "Internal state of the client side.")
        .args("[integer]", "fs.debug_str"),
    front("fs.id", Type::Str, number, "Number of the stream on the client connection."),
    front(
        "fs.rst_code",
        Type::Int,
        |e, _| int(e.txn.client_stream.reset.ok_or(Miss::None)?),
        "Code with which an HTTP/2 or QUIC client reset the stream.",
    ),
    client(
        "src_is_local",
        Type::Bool,
        |e, _| local(e, e.src()),
        "Whether the client's address is one of this machine.",
    ),
    client(
        "dst_is_local",
        Type::Bool,
        |e, _| local(e, e.dst()),
        "Whether the destination is an address of this machine.",
    ),
    client(
        "fc_src_is_local",
        Type::Bool,
        |e, _| local(e, e.conn.fc_src.get()),
        "Whether the client's address, before any rule, is one of this machine.",
    ),
    client(
        "fc_dst_is_local",
        Type::Bool,
        |e, _| local(e, e.conn.fc_dst.get()),
        "Whether the destination, before any rule, is an address of this machine.",
    ),
    FetchDef::new(
        "res.cache_hit",
        Type::Bool,
        SERVER,
        |env, _| Ok(Value::Bool(env.txn.caching.hit.is_some())),
        "Whether the response came from a cache.",
    ),
    FetchDef::new("res.cache_name", Type::Str, SERVER, cache_name, "The cache that the response came from."),
    FetchDef::new(
        "res.comp",
        Type::Bool,
        RESPONSE_KEPT,
        |env, _| Ok(Value::Bool(env.txn.decisions.compressed.is_some())),
        "Whether the response was compressed here.",
    ),
    FetchDef::new(
        "res.comp_algo",
        Type::Str,
        RESPONSE_KEPT,
        |env, _| env.txn.decisions.compressed.map(|name| Value::Str(name.as_bytes())).ok_or(Miss::None),
        "How the response was compressed here.",
    ),
];

fn cache_name<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let (cache, _) = env.txn.caching.hit.as_ref().ok_or(Miss::None)?;
    Ok(Value::Str(cache.settings().name.as_bytes()))
}

/// A figure of the server connection, once there is one.
fn server<'a>(env: &Env<'a>, figure: impl Fn(&Multiplex) -> u32) -> Found<'a> {
    if !env.txn.server_conn.begun {
        return Err(Miss::None);
    }
    // What no handshake has given a protocol yet carries no streams.
    if env.txn.has_req && env.txn.server_conn.http_major == 0 {
        return Err(Miss::None);
    }
    int(figure(&env.txn.server_conn.multiplex))
}

/// Streams of HTTP/1 are numbered from 0; in TCP there is none.
fn number<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    if !is_stream(env) {
        return Err(Miss::None);
    }
    let plain = || if env.conn.http_major.get() == 0 { 0 } else { env.conn.requests.get().saturating_sub(1) };
    int(env.txn.client_stream.id.unwrap_or_else(plain))
}

fn aborted<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    if !is_stream(env) {
        return Err(Miss::None);
    }
    // Of HTTP/1 it is never told: there the connection ends.
    let (cause, major) = match side {
        Side::Request => (Cause::ClientAbort, env.conn.http_major.get()),
        Side::Response => (Cause::ServerAbort, env.txn.server_conn.http_major),
    };
    Ok(Value::Bool(env.txn.term.cause == cause && major > 1))
}

fn saved_syn<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(Value::Bin(env.arena.alloc_slice_copy(&env.live.saved_syn())))
}

fn local<'a>(env: &Env<'a>, peer: model::Peer) -> Found<'a> {
    let ip = peer.ip().ok_or(Miss::None)?;
    Ok(Value::Bool(env.live.is_local(ip)))
}

/// Names and values separated by blanks, as `*.debug_str` has them; which ones is ours to choose.
fn describe<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    use std::io::Write;
    let mut out = Vec::new();
    let (peer, major, traffic) = match side {
        Side::Request => (env.conn.fc_src.get(), env.conn.http_major.get(), env.txn.up),
        Side::Response => (env.txn.server_conn.dst, env.txn.server_conn.http_major, env.txn.down),
    };
    // Writing into a Vec can't fail.
    let _ = write!(
        out,
        "conn={} strm={} http={major} peer={:?} rcvd={} sent={}",
        env.conn.serial,
        env.txn.serial,
        peer.ip(),
        traffic.received,
        traffic.sent
    );
    Ok(Value::Str(env.arena.alloc_slice_copy(&out)))
}
