//! Limits of frontends and of the process: `set maxconn frontend`, `set maxconn global`, `set rate-limit`.

use std::sync::atomic::Ordering::Relaxed;

use crate::cli::call::{Call, Outcome, Refusal, Reply, Whose};
use crate::cli::table::Command;
use crate::gather::tell_all;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["set", "maxconn", "frontend"],
        "<frontend> <value>",
        "change the limit of connections of a frontend",
        Level::Admin,
        frontend,
    ),
    Command::now(
        &["set", "maxconn", "global"],
        "<value>",
        "change the limit of connections of the process",
        Level::Admin,
        global,
    ),
    Command::now(&["set", "rate-limit"], "<setting> <value>", "change a limit of rates", Level::Admin, rate),
];

/// An integer as C reads it: what stands before other characters, 0 if nothing does. HAProxy is that lenient
/// here.
fn lenient(text: &str) -> i64 {
    let sign = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    let digits = digits.get(..end).unwrap_or("");
    let n: i64 = digits.parse().unwrap_or(if digits.is_empty() { 0 } else { i64::MAX });
    if sign { -n } else { n }
}

/// Listeners that rest look again at their limits.
fn wake_listeners() {
    tell_all(|w| w.freed.raise());
}

/// `set maxconn frontend <frontend> <limit>`.
pub fn frontend(call: &mut Call<'_>) -> Outcome {
    let front = call.frontend()?;
    if call.arg(1).is_empty() {
        return Err("Integer value expected.".into());
    }
    let limit = lenient(call.arg(1));
    let limit = u32::try_from(limit).ok().filter(|n| *n <= i32::MAX as u32);
    let limit = limit.ok_or(Refusal::from("Value out of range."))?;
    let state = &front.state.front;
    let had_room = state.current.load(Relaxed) < state.maxconn.load(Relaxed);
    if let Whose::Proxy(index) = front.whose
        && had_room
    {
        // Whoever waited was let in meanwhile.
        let proxy = call.shared().program.proxy(index);
        proxy.binds.iter().for_each(|bind| bind.state.waits.store(false, Relaxed));
    }
    state.maxconn.store(limit, Relaxed);
    wake_listeners();
    Ok(Reply::Done)
}

/// `set maxconn global <limit>`; 0 returns to the configured one.
pub fn global(call: &mut Call<'_>) -> Outcome {
    if call.arg(0).is_empty() {
        return Err("Expects an integer value.".into());
    }
    let program = &call.shared().program;
    let most = program.global.maxconn;
    let limit = match lenient(call.arg(0)) {
        ..=0 => most,
        n => u32::try_from(n).ok().filter(|n| *n <= most).ok_or("Value out of range.")?,
    };
    program.world.process.maxconn.store(limit, Relaxed);
    wake_listeners();
    Ok(Reply::Done)
}

const RATE_USAGE: &str = "\
'set rate-limit' only supports :
   - 'connections global' to set the per-process maximum connection rate
   - 'sessions global' to set the per-process maximum session rate
   - 'ssl-sessions global' to set the per-process maximum SSL session rate
   - 'http-compression global' to set the per-process maximum compression speed in kB/s
";

/// `set rate-limit connections|sessions|ssl-sessions|http-compression global <rate>`. The last one counts in
/// kB/s.
pub fn rate(call: &mut Call<'_>) -> Outcome {
    let process = &call.shared().program.world.process;
    let limit = match (call.arg(0), call.arg(1)) {
        ("connections", "global") => &process.conn_rate_limit,
        ("sessions", "global") => &process.sess_rate_limit,
        ("ssl-sessions", "global") => &process.ssl_rate_limit,
        ("http-compression", "global") => &process.comp_rate_limit,
        _ => return Err(RATE_USAGE.into()),
    };
    if call.arg(2).is_empty() {
        return Err("Expects an integer value.".into());
    }
    let rate = u32::try_from(lenient(call.arg(2))).map_err(|_| Refusal::from("Value out of range."))?;
    limit.store(if call.arg(0) == "http-compression" { rate.saturating_mul(1024) } else { rate }, Relaxed);
    wake_listeners();
    Ok(Reply::Done)
}

#[cfg(test)]
mod tests {
    use super::lenient;

    #[test]
    fn integers_end_where_their_digits_end() {
        for (text, n) in
            [("5", 5), ("5x", 5), ("x", 0), ("", 0), ("-5", -5), ("-", 0), ("99999999999999999999", i64::MAX)]
        {
            assert_eq!(lenient(text), n, "{text:?}");
        }
    }
}
