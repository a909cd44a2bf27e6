//! Lines of the log: how one is formed and sent. When one is written of a stream says [`crate::log`].

use std::sync::atomic::Ordering::Relaxed;

use lang::Env;
use model::Origin;
use program::Proxy;
use program::log::level::INFO;

use crate::sinks::{Body, Event};
use crate::worker::Worker;

/// `set-log-level silent`.
pub const SILENT: u8 = 8;

/// Whether the lines of a proxy are written before the end: what they tell of bytes and times is not all
/// then.
pub fn early_lines(proxy: &Proxy) -> bool {
    proxy.options.logasap || (proxy.log.steps.is_none() && !proxy.log.waits.end)
}

/// A line that formats make.
pub fn made(worker: &Worker, proxy: &Proxy, event: Event, env: &Env<'_>) {
    let log = &proxy.log;
    let format = match event.origin {
        Origin::Error => log.error_format.as_deref().or(log.format.as_deref()),
        _ => log.format.as_deref(),
    };
    env.txn.origin.set(event.origin);
    worker.sinks.send(proxy, event, Body::Made { format, structured: log.structured.as_deref(), env });
}

/// `do-log`: a line now, whatever else is logged of the transaction.
pub fn now(worker: &Worker, frontend: u32, env: &Env<'_>, origin: Origin, profile: Option<u32>) {
    let level = env.txn.decisions.log_level.unwrap_or(INFO);
    if level != SILENT {
        let proxy = worker.shared.program.configured(frontend);
        env.txn.log_number.set(proxy.state.front.log_count.load(Relaxed));
        made(worker, proxy, Event { origin, level, profile }, env);
    }
}

/// A line about a proxy as a whole, or the process.
pub fn proxy_line(worker: &Worker, proxy: u32, level: u8, text: &str) {
    let proxy = &*worker.shared.program.proxy(proxy);
    let event = Event { origin: Origin::Unspecified, level, profile: None };
    worker.sinks.send(proxy, event, Body::Text(text.as_bytes()));
}

/// A line about a `log-forward` section, to its targets.
pub fn forward_line(worker: &Worker, section: usize, level: u8, text: &str) {
    let Some(forward) = worker.shared.program.forwards.get(section) else { return };
    let event = Event { origin: Origin::Unspecified, level, profile: None };
    worker.sinks.send_to(&forward.log.targets, None, event, Body::Text(text.as_bytes()));
}

/// A line about the process, to the targets of `global`.
pub fn global_line(worker: &Worker, level: u8, text: &str) {
    let event = Event { origin: Origin::Unspecified, level, profile: None };
    worker.sinks.send_to(&worker.shared.program.global.log, None, event, Body::Text(text.as_bytes()));
}

/// A line on standard error, where there is one to read it; what it does not take at once is lost.
pub fn console(worker: &Worker, word: &str, text: &str) {
    if let Some(out) = &worker.console {
        let line = format!("{:<10} ({}) : {text}\n", format!("[{word}]"), std::process::id());
        let _ = out.try_write(line.as_bytes());
    }
}
