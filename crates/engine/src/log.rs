//! Lines of the log about streams and connections: when one is written, and what it says.

use std::sync::atomic::Ordering::Relaxed;

use lang::env::Side;
use lang::logfmt::{Use, Waits};
use model::Origin;
use model::term::{Cause, Phase};
use program::Proxy;
use program::log::Style;
use program::log::level::{ERROR, INFO};
use program::proxy::Mode;

use crate::client::Client;
use crate::lines::{SILENT, early_lines, made};
use crate::sinks::{Body, Event, local_stamp};
use crate::stream::Stream;

/// Whether a stream deserves a line.
pub fn wanted(stream: &Stream<'_>) -> bool {
    let proxy = stream.frontend();
    let (txn, options) = (&stream.txn, &proxy.options);
    if txn.silent || proxy.log.targets.is_empty() || txn.decisions.log_level == Some(SILENT) {
        return false;
    }
    if options.dontlognull && txn.null {
        return false;
    }
    !options.dontlog_normal || is_error(stream)
}

fn is_error(stream: &Stream<'_>) -> bool {
    stream.txn.is_error()
}

/// A stream begins: what proxies without any log format say, and `log-steps accept`.
pub fn accepted(stream: &mut Stream<'_>) {
    let proxy = stream.frontend();
    if proxy.log.targets.is_empty() || stream.txn.silent {
        return;
    }
    if tells_who_came(proxy) {
        let mode = if proxy.mode == Mode::Http { "HTTP" } else { "TCP" };
        let text = format!("{} ({}/{mode})", connected(stream), proxy.name);
        let event = Event { origin: Origin::Accept, level: INFO, profile: None };
        stream.worker.sinks.send(proxy, event, Body::Text(text.as_bytes()));
        return;
    }
    step(stream, Origin::Accept);
}

/// Whether a proxy says no more of a stream than who came: there is no format, and it names no steps of its
/// own. Where they are inherited HAProxy says who came all the same.
fn tells_who_came(proxy: &Proxy) -> bool {
    proxy.log.style == Style::Default && (!proxy.log.own_steps || proxy.options.logasap)
}

/// From where to where a client connected, addresses and ports parted by a colon in either family. A Unix
/// socket is named by the number of its `bind` line.
fn connected(stream: &Stream<'_>) -> String {
    match (stream.src(), stream.dst()) {
        (model::Peer::Inet(from), model::Peer::Inet(to)) => {
            format!("Connect from {}:{} to {}:{}", from.ip(), from.port(), to.ip(), to.port())
        }
        // Rules have said where the client is.
        (model::Peer::Inet(from), model::Peer::Unix) => {
            format!("Connect from {}:{} to unix:0", from.ip(), from.port())
        }
        _ => {
            let bind = stream.frontend().binds.get(stream.client.listener as usize);
            format!("Connect to unix:{}", bind.map_or(0, |b| b.state.id))
        }
    }
}

/// A moment has come: a line is written if `log-steps` names it.
pub fn step(stream: &mut Stream<'_>, origin: Origin) {
    let proxy = stream.frontend();
    let named = proxy.log.steps.is_some_and(|s| s & origin.bit() != 0);
    if named && !proxy.options.logasap && wanted(stream) {
        line(stream, origin);
    }
}

/// Writes the line of a stream that has come to its end.
pub fn write(stream: &mut Stream<'_>) {
    let proxy = stream.frontend();
    // In HTTP mode a stream that never saw a request ended before it began: that is none of the steps.
    let failed = speaks_http(stream) && !stream.txn.has_req && !stream.txn.refused;
    let steps = proxy.log.steps.filter(|_| !proxy.options.logasap && !failed);
    // Where only who came is told, what failed is told to those whose profile has a format.
    if stream.txn.logged
        || (tells_who_came(proxy) && !failed)
        || steps.is_some_and(|s| s & Origin::Close.bit() == 0)
    {
        return;
    }
    line(stream, if failed { Origin::Error } else { Origin::Close });
}

/// `log-steps close` means the end of every stream: also of one that its client is to try again by itself,
/// whose end is not worth a line otherwise; said in a section that the frontend inherits from it does not, in
/// HAProxy. What rules made of its level is forgotten then, there as well.
/// Whether there is a line.
pub fn left_to_client(stream: &mut Stream<'_>) -> bool {
    let proxy = stream.frontend();
    let own = proxy.log.steps.filter(|_| proxy.log.own_steps);
    let named = own.is_some_and(|s| s & Origin::Close.bit() != 0);
    let written =
        named && !proxy.options.logasap && !proxy.log.targets.is_empty() && !stream.txn.mirror.is_copy;
    if written {
        stream.end(Cause::ServerAbort, Phase::Data);
        stream.txn.decisions.log_level = None;
        // That there is no status is told as 0.
        stream.txn.hinted = true;
        line(stream, Origin::Close);
    }
    written
}

/// Whether the client's connection carries HTTP, be it since it turned to it.
fn speaks_http(stream: &Stream<'_>) -> bool {
    stream.client.conn().http_major.get() > 0
}

/// The head of a request of HTTP is there: a line that says no more than that need not wait. One follows with
/// the response.
pub fn request_known(stream: &mut Stream<'_>) {
    // Steps have no say with `option logasap`, but with them no line comes before the response.
    let stepless = stream.frontend().log.steps.is_none();
    if stepless && waits(stream).is_some_and(|w| w.request && !w.response && !w.end) {
        early(stream, Origin::Request);
    }
}

/// The server is connected (TCP), or its response is there as rules have left it: nothing but what is
/// complete at the end is open.
pub fn response_known(stream: &mut Stream<'_>) {
    if waits(stream).is_some_and(|w| !w.end) {
        early(stream, if speaks_http(stream) { Origin::Response } else { Origin::Connect });
    }
}

/// Whether a line is written with the response's head that may tell its bytes.
pub fn shows_response_early(stream: &Stream<'_>) -> bool {
    let proxy = stream.frontend();
    early_lines(proxy) || proxy.log.steps.is_some_and(|s| s & Origin::Response.bit() != 0)
}

/// What the line of a stream waits for where no moment is named; with `option logasap` never for the end.
fn waits(stream: &Stream<'_>) -> Option<Waits> {
    let (log, asap) = (&stream.frontend().log, stream.frontend().options.logasap);
    let waits = Waits { end: log.waits.end && !asap, ..log.waits };
    (log.format.is_some() && (log.steps.is_none() || asap)).then_some(waits)
}

fn early(stream: &mut Stream<'_>, origin: Origin) {
    let wanted = wanted(stream);
    if wanted {
        line(stream, origin);
    }
    // With the request nothing is wrong yet, which `option dontlog-normal` keeps silent about, and HAProxy
    // does not come back to it when the response is an error.
    stream.txn.logged = wanted || origin == Origin::Request;
}

/// A line about a stream as it stands.
fn line(stream: &mut Stream<'_>, origin: Origin) {
    stream.number();
    settle_unique_id(stream, origin);
    let worker = stream.worker.clone();
    let proxy = worker.shared.program.configured(stream.client.front);
    let separate = proxy.options.log_separate_errors && is_error(stream);
    let level = stream.txn.decisions.log_level.unwrap_or(if separate { ERROR } else { INFO });
    let before = proxy.state.front.log_count.fetch_add(1, Relaxed);
    stream.txn.log_number.set(before);
    let event = Event { origin, level, profile: None };
    stream.evaluate(Side::Request, |env| made(&worker, proxy, event, env));
}

/// A line about a connection that ended before it had a stream (`error-log-format`).
pub fn connection_error(client: &Client, text: &str) {
    let proxy = client.frontend();
    if !proxy.options.dontlognull || client.has_input() {
        handshake_error(client, text);
    }
}

/// The same, where the caller knows whether the peer has said anything. A frontend without any format says
/// nothing of such connections, unless it names steps, but its samples count them, as in HAProxy.
pub fn handshake_error(client: &Client, text: &str) {
    let worker = &client.worker;
    let proxy = client.frontend();
    if proxy.log.targets.is_empty() {
        return;
    }
    let level = if proxy.options.log_separate_errors { ERROR } else { INFO };
    let event = Event { origin: Origin::Error, level, profile: None };
    if !(proxy.log.waits.some || proxy.log.steps.is_some()) {
        return worker.sinks.send(proxy, event, Body::Nothing);
    }
    let before = proxy.state.front.log_count.fetch_add(1, Relaxed);
    if proxy.log.error_format.is_some() {
        return evaluate(client, |env| {
            env.txn.log_number.set(before);
            made(worker, proxy, event, env);
        });
    }
    let mut line = Vec::new();
    default_error_line(client, proxy, text, &mut line);
    worker.sinks.send(proxy, event, Body::Text(&line));
}

/// Without `error-log-format`: who, when, where, and what went wrong.
fn default_error_line(client: &Client, proxy: &Proxy, text: &str, line: &mut Vec<u8>) {
    use std::io::Write;
    let conn = client.conn();
    let bind = &proxy.binds[client.listener as usize];
    let _ = match conn.src.get() {
        model::Peer::Inet(from) => write!(line, "{}:{} [", from.ip(), from.port()),
        model::Peer::Unix => write!(line, "unix:{} [", bind.state.id),
        other => write!(line, "{other} ["),
    };
    local_stamp(line, conn.accept_date);
    let _ = write!(line, "] {}/", proxy.name);
    // Listeners without a name go by their number, unless `option socket-stats` has given them one.
    let given = bind.state.name.strip_prefix("sock-").filter(|_| !proxy.options.socket_stats);
    let _ = match given.unwrap_or(&bind.state.name) {
        "" => write!(line, "{}", bind.state.id),
        name => write!(line, "{name}"),
    };
    let _ = write!(line, ": {text}");
}

fn evaluate(client: &Client, f: impl FnOnce(&lang::Env<'_>)) {
    let worker = &client.worker;
    let mut txn = worker.take_txn();
    sessions_own(&mut txn);
    worker.with_arena(|arena| {
        let conn = client.conn();
        let own = crate::live::View::of(worker, conn);
        let view = crate::live::View { frontend: client.front, listener: client.listener, ..own };
        f(&lang::Env { conn, txn: &txn, live: &view, arena, side: Side::Request, last: true });
    });
    worker.give_txn(txn);
}

/// Makes a transaction that of a session without a stream: it ends by our will, at the request, and has no
/// status.
pub fn sessions_own(txn: &mut model::Txn) {
    txn.unread = true;
    // A unique id is a stream's, and is made when one asks for it.
    *txn.unique_id.get_mut() = Some(Box::default());
    txn.times.ended = Some(rt::now());
    txn.term.end(Cause::Proxy, Phase::Request);
}

/// Makes the unique id for a log line, unless it stands. What its format takes from the request is gone by
/// then but in a line of the request, and a client that sent no request gets none.
fn settle_unique_id(stream: &mut Stream<'_>, origin: Origin) {
    if stream.txn.unique_id.borrow().is_some() {
        return;
    }
    let Some(format) = stream.frontend().unique_id_format.clone() else { return };
    let mut id = Vec::new();
    if stream.txn.has_req || !speaks_http(stream) {
        stream.evaluate(Side::Request, |env| match origin {
            Origin::Request => format.append(env, Use::Header, &mut id),
            _ => format.append_late(env, Use::Header, &mut id),
        });
    }
    *stream.txn.unique_id.borrow_mut() = Some(id.into());
}
