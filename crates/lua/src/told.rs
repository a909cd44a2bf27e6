//! What scripts log, and what is said of those that fail.

use engine::sinks::{Body, Event};
use model::Origin;

use crate::here::with_worker;
use crate::host;
use crate::settings::{Settings, Stderr};

const NAMES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// Lines longer than this are cut.
const LONGEST: usize = 8192;

/// Whose loggers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loggers {
    /// Those of `global` (`core.log`).
    Process,
    /// Those of the proxy at hand (`txn:log`).
    Proxy,
}

/// Logs a line, as `tune.lua.log.*` say.
pub fn log(settings: &Settings, loggers: Loggers, level: u8, text: &[u8]) {
    let text = text.get(..LONGEST).unwrap_or(text);
    let line: Vec<u8> = text.iter().map(|c| if c.is_ascii_control() { b'.' } else { *c }).collect();
    let sent = settings.loggers && send(loggers, level, &line);
    let aloud = match settings.stderr {
        Stderr::On => true,
        Stderr::Auto => !sent,
        Stderr::Off => false,
    };
    if aloud {
        let name = NAMES.get(usize::from(level)).copied().unwrap_or("info");
        aloud_line(&format!("[{name}] {} ({}) : ", stamp(), std::process::id()), &line);
    }
}

/// Sends a line to the loggers of the context; whether there are any.
fn send(loggers: Loggers, level: u8, line: &[u8]) -> bool {
    let event = Event { origin: Origin::Unspecified, level, profile: None };
    let proxied = loggers == Loggers::Proxy;
    let proxy = if proxied { host::any_env(|env| env.conn.frontend.get()) } else { None };
    let sent = with_worker(|worker| {
        let program = &worker.shared.program;
        match proxy {
            Some(proxy) => {
                let proxy = &*program.proxy(proxy);
                worker.sinks.send(proxy, event, Body::Text(line));
                !proxy.log.targets.is_empty()
            }
            None => {
                worker.sinks.send_to(&program.global.log, None, event, Body::Text(line));
                !program.global.log.is_empty()
            }
        }
    });
    sent.unwrap_or(false)
}

/// Says that a script failed: to the loggers, and on standard error.
pub fn failed(settings: &Settings, text: &str) {
    let line: Vec<u8> = text.bytes().map(|c| if c.is_ascii_control() { b'.' } else { c }).collect();
    let pid = format!("({})", std::process::id());
    crate::here::within(settings.load, || {
        send(Loggers::Proxy, 3, &line);
        aloud_line(&format!("{:<10} {pid} : ", "[ALERT]"), text.as_bytes());
    });
}

fn aloud_line(before: &str, text: &[u8]) {
    use std::io::Write;
    let mut line = before.as_bytes().to_vec();
    line.extend_from_slice(text);
    line.push(b'\n');
    let written = with_worker(|worker| {
        if let Some(console) = &worker.console {
            let _ = console.try_write(&line);
        }
    });
    if written.is_none() {
        // Nobody serves yet.
        let _ = std::io::stderr().write_all(&line);
    }
}

/// Day of the year and time, as HAProxy puts them in front.
fn stamp() -> String {
    let secs = i64::try_from(rt::wall().as_secs()).unwrap_or_default();
    let local = secs + i64::from(rt::sys::local_offset(secs));
    let (days, of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    // Days since the first of January of the year at hand.
    let (mut year, mut rest) = (1970, days);
    loop {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = if leap { 366 } else { 365 };
        if rest < length {
            break;
        }
        (year, rest) = (year + 1, rest - length);
    }
    format!("{rest:03}/{:02}{:02}{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}
