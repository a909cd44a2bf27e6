//! The words for a server's state, as statistics and commands write them.

use std::sync::atomic::Ordering::Relaxed;

use model::server::{Op, Target, admin};
use program::{Program, Server};

use crate::stats::row::tracked;

/// The `status` of a server (management manual, 9.1).
pub fn status(program: &Program, server: &Server) -> String {
    let state = &server.state;
    let bits = state.admin();
    if bits & admin::RMAINT != 0 {
        return "MAINT (resolution)".into();
    }
    if bits & admin::IMAINT != 0
        && let Some((proxy, via)) = tracked(program, server)
    {
        return format!("MAINT (via {}/{})", proxy.name, via.name);
    }
    if bits & admin::MAINT != 0 {
        return "MAINT".into();
    }
    let source = source(program, server);
    let health = source.state.health.load(Relaxed);
    if state.op() == Op::Stopped {
        return down(source, health);
    }
    let going_down = source.check.as_ref().map(|c| (i64::from(c.rise), i64::from(c.fall)));
    // A server that is up before its checks have passed counts from below the border: "UP -1/3".
    let steps = going_down.filter(|(rise, fall)| health < rise + fall - 1);
    let steps = steps.map_or(String::new(), |(rise, fall)| format!(" {}/{fall}", health - rise + 1));
    match (bits & admin::DRAIN != 0, state.op()) {
        (_, Op::Stopping) => format!("NOLB{steps}"),
        (true, _) if source.asks_agent() => "DRAIN (agent)".into(),
        (true, _) => format!("DRAIN{steps}"),
        _ if source.check.is_none() || !source.state.check_enabled.load(Relaxed) => "no check".into(),
        _ => format!("UP{steps}"),
    }
}

/// The server whose checks decide: the end of a chain of `track`. Chains are short; the limit is for circles.
fn source<'p>(program: &'p Program, server: &'p Server) -> &'p Server {
    let mut found = server;
    for _ in 0..64 {
        match tracked(program, found) {
            Some((_, next)) => found = next,
            None => break,
        }
    }
    found
}

/// A server that is down, with the steps towards being up. Without checks they are told where an agent is
/// asked, though nothing counts them.
fn down(source: &Server, health: i64) -> String {
    let state = &source.state;
    let asks = source.asks_agent();
    if asks && state.agent_health.load(Relaxed) == 0 {
        return "DOWN (agent)".into();
    }
    let checked = source.check.is_some() && state.check_enabled.load(Relaxed);
    let rise = state.configured.lock().rise;
    let told = if checked { health > 0 && health < rise } else { asks };
    if told { format!("DOWN {health}/{rise}") } else { "DOWN".into() }
}

/// The address and port of a server apart, as `show servers` writes them: `-` when there is none.
pub fn address(server: &Server) -> (String, u16) {
    match &**server.state.target.load() {
        Target::None => ("-".into(), u16::try_from(server.state.port.load(Relaxed)).unwrap_or(0)),
        Target::Unix { .. } => ("-".into(), 0),
        Target::Inet(a) => (a.ip().to_string(), a.port()),
    }
}

/// The address of a server with its port, as the statistics write it.
pub fn full_address(server: &Server) -> String {
    match &**server.state.target.load() {
        Target::None => "none".into(),
        Target::Inet(a) => a.to_string(),
        Target::Unix { .. } => "unix".into(),
    }
}
