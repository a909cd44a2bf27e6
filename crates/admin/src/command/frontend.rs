//! `enable`, `disable` and `shutdown frontend`.

use model::proxy::FrontState;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use crate::gather::tell_all;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["disable", "frontend"],
        "<frontend>",
        "let a frontend accept no connections",
        Level::Admin,
        disable,
    ),
    Command::now(
        &["enable", "frontend"],
        "<frontend>",
        "let a frontend accept connections again",
        Level::Admin,
        enable,
    ),
    Command::now(&["shutdown", "frontend"], "<frontend>", "stop a frontend for good", Level::Admin, shutdown),
];

fn note(call: &Call<'_>, proxy: u32, text: &str) {
    engine::log::proxy_line(&call.worker, proxy, engine::log::WARNING, text);
    tell_all(|w| {
        w.freed.notify();
        w.stop.raise();
    });
}

/// `disable frontend`: it stops accepting, its sockets stay.
pub fn disable(call: &mut Call<'_>) -> Outcome {
    let (index, proxy) = call.frontend()?;
    match proxy.state.front.state() {
        FrontState::Stopped => Err("Frontend was previously shut down, cannot disable.".into()),
        FrontState::Paused => Err("All sockets are already disabled.".into()),
        FrontState::Open => {
            proxy.state.front.set_state(FrontState::Paused);
            note(call, index, &format!("Paused frontend {}.", proxy.name));
            Ok(Reply::Done)
        }
    }
}

/// `enable frontend`.
pub fn enable(call: &mut Call<'_>) -> Outcome {
    let (index, proxy) = call.frontend()?;
    match proxy.state.front.state() {
        FrontState::Stopped => Err("Frontend was previously shut down, cannot enable.".into()),
        FrontState::Open => Err("All sockets are already enabled.".into()),
        FrontState::Paused => {
            proxy.state.front.set_state(FrontState::Open);
            note(call, index, &format!("Resumed frontend {}.", proxy.name));
            Ok(Reply::Done)
        }
    }
}

/// `shutdown frontend`: for good.
pub fn shutdown(call: &mut Call<'_>) -> Outcome {
    let (index, proxy) = call.frontend()?;
    if proxy.state.front.state() == FrontState::Stopped {
        return Err("Frontend was already shut down.".into());
    }
    proxy.state.front.set_state(FrontState::Stopped);
    let front = proxy.state.front.counters.sum(|c| &c.sessions);
    let back = proxy.state.back.counters.sum(|c| &c.sessions);
    let text = format!("Proxy {} stopped (cumulated conns: FE: {front}, BE: {back}).", proxy.name);
    note(call, index, &text);
    Ok(Reply::Done)
}
