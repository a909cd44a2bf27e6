//! Log lines: when one is written, what it says, and the sinks that never make traffic wait.

mod frame;
mod sinks;

use lang::env::Side;
use lang::logfmt::Use;
use model::term::Cause;
use program::Proxy;

use crate::Worker;
use crate::session::Client;
use crate::stream::Stream;

pub use sinks::Sinks;

/// Syslog level of a backend without servers.
pub const EMERGENCY: u8 = 0;
/// Syslog level of a failure that needs action at once.
pub const ALERT: u8 = 1;
/// Syslog level of an error.
pub const ERROR: u8 = 3;
/// Syslog level of something odd.
pub const WARNING: u8 = 4;
/// Syslog level of something that operators want to know.
pub const NOTICE: u8 = 5;
/// Syslog level of traffic.
pub const INFO: u8 = 6;

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

/// `set-log-level silent`.
pub const SILENT: u8 = 8;

fn is_error(stream: &Stream<'_>) -> bool {
    let txn = &stream.txn;
    txn.term.cause != Cause::Normal && txn.term.cause != Cause::Local
        || txn.retries > 0
        || txn.redispatched
        || txn.status >= 500
}

/// Writes the line of a stream.
pub fn write(stream: &mut Stream<'_>) {
    if stream.txn.logged {
        return;
    }
    ensure_unique_id(stream);
    let worker = stream.worker.clone();
    let proxy = worker.shared.program.proxy(stream.client.conn().frontend);
    let Some(format) = &proxy.log.format else { return };
    let separate = proxy.options.log_separate_errors && is_error(stream);
    let level = stream.txn.decisions.log_level.unwrap_or(if separate { ERROR } else { INFO });
    proxy.state.front.log_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    worker.with_scratch(|line| {
        stream.evaluate(Side::Request, |env| format.append(env, Use::Log, line));
        let mut structured = Vec::new();
        if let Some(sd) = &proxy.log.structured {
            stream.evaluate(Side::Request, |env| sd.append(env, Use::Log, &mut structured));
        }
        worker.sinks.send(&worker, proxy, level, line, &structured);
    });
}

/// Writes the line of a stream early, for `option logasap`.
pub fn write_early(stream: &mut Stream<'_>) {
    if stream.frontend().options.logasap && wanted(stream) {
        write(stream);
        stream.txn.logged = true;
    }
}

/// A line about a proxy as a whole, or the process.
pub fn proxy_line(worker: &Worker, proxy: u32, level: u8, text: &str) {
    let proxy = worker.shared.program.proxy(proxy);
    worker.sinks.send(worker, proxy, level, text.as_bytes(), b"");
}

/// A line on standard error, where there is one to read it; what it does not take at once is lost.
pub fn console(worker: &Worker, word: &str, text: &str) {
    if let Some(out) = &worker.console {
        let line = format!("{:<10} ({}) : {text}\n", format!("[{word}]"), std::process::id());
        let _ = out.try_write(line.as_bytes());
    }
}

/// A line about a connection that ended before it had a stream (`error-log-format`).
pub fn connection_error(client: &Client, text: &str) {
    let worker = &client.worker;
    let proxy = client.frontend();
    if proxy.log.targets.is_empty() || (proxy.options.dontlognull && !client.has_input()) {
        return;
    }
    let mut line = Vec::new();
    match &proxy.log.error_format {
        Some(format) => evaluate(client, |env| format.append(env, Use::Log, &mut line)),
        None => default_error_line(client, proxy, text, &mut line),
    }
    let level = if proxy.options.log_separate_errors { ERROR } else { INFO };
    worker.sinks.send(worker, proxy, level, &line, b"");
}

/// Without `error-log-format`: who, when, where, and what went wrong.
fn default_error_line(client: &Client, proxy: &Proxy, text: &str, line: &mut Vec<u8>) {
    use std::io::Write;
    let conn = client.conn();
    let bind = &proxy.binds[conn.listener as usize];
    let _ = write!(line, "{} [", conn.src.get());
    frame::local_stamp(line, conn.accept_date);
    let _ = write!(line, "] {}/", proxy.name);
    if bind.state.name.is_empty() {
        let _ = write!(line, "{}", bind.state.id);
    } else {
        let _ = write!(line, "{}", bind.state.name);
    }
    let _ = write!(line, ": {text}");
}

fn evaluate(client: &Client, f: impl FnOnce(&lang::Env<'_>)) {
    let worker = &client.worker;
    let txn = worker.take_txn();
    worker.with_arena(|arena| {
        let conn = client.conn();
        let view = crate::live::View::of(worker, conn);
        f(&lang::Env { conn, txn: &txn, live: &view, arena, side: Side::Request, last: true });
    });
    worker.give_txn(txn);
}

/// Makes the unique id of a stream, unless it stands.
pub fn ensure_unique_id(stream: &mut Stream<'_>) {
    if stream.txn.unique_id.borrow().is_some() {
        return;
    }
    let Some(format) = stream.frontend().unique_id_format.clone() else { return };
    let id = stream.evaluate(Side::Request, |env| {
        let mut out = Vec::new();
        format.append(env, Use::Value, &mut out);
        out
    });
    *stream.txn.unique_id.borrow_mut() = Some(id.into());
}
