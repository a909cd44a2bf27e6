//! Taking servers and their checks in and out: `enable` and `disable`, for `server`, `health` and `agent`.

use std::sync::atomic::Ordering::Relaxed;

use farm::state::{self as change, Wanted};

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["disable", "agent"],
        "<bk>/<srv>",
        "stop the agent check of a server",
        Level::Admin,
        disable_agent,
    ),
    Command::now(
        &["disable", "health"],
        "<bk>/<srv>",
        "stop the health check of a server",
        Level::Admin,
        disable_health,
    ),
    Command::now(
        &["disable", "server"],
        "<bk>/<srv>",
        "take a server into maintenance",
        Level::Admin,
        disable,
    ),
    Command::now(
        &["enable", "agent"],
        "<bk>/<srv>",
        "run the agent check of a server again",
        Level::Admin,
        enable_agent,
    ),
    Command::now(
        &["enable", "health"],
        "<bk>/<srv>",
        "run the health check of a server again",
        Level::Admin,
        enable_health,
    ),
    Command::now(
        &["enable", "server"],
        "<bk>/<srv>",
        "end the maintenance and the draining of a server",
        Level::Admin,
        enable,
    ),
];

/// `disable server`.
pub fn disable(call: &mut Call<'_>) -> Outcome {
    change::set_admin(&call.worker.farm, call.server_to_change()?, Wanted::Maint);
    Ok(Reply::Done)
}

/// `enable server`.
pub fn enable(call: &mut Call<'_>) -> Outcome {
    change::set_admin(&call.worker.farm, call.server_to_change()?, Wanted::Ready);
    Ok(Reply::Done)
}

/// `disable health`.
pub fn disable_health(call: &mut Call<'_>) -> Outcome {
    call.config(call.server_to_change()?).state.check_enabled.store(false, Relaxed);
    Ok(Reply::Done)
}

/// `enable health`.
pub fn enable_health(call: &mut Call<'_>) -> Outcome {
    let server = call.config(call.server_to_change()?);
    if server.check.is_none() {
        return Err("Health check was not configured on this server, cannot enable.".into());
    }
    server.state.check_enabled.store(true, Relaxed);
    Ok(Reply::Done)
}

/// `disable agent`.
pub fn disable_agent(call: &mut Call<'_>) -> Outcome {
    call.config(call.server_to_change()?).state.agent_enabled.store(false, Relaxed);
    Ok(Reply::Done)
}

/// `enable agent`.
pub fn enable_agent(call: &mut Call<'_>) -> Outcome {
    let server = call.config(call.server_to_change()?);
    if server.agent.is_none() {
        return Err("Agent was not configured on this server, cannot enable.".into());
    }
    server.state.agent_enabled.store(true, Relaxed);
    Ok(Reply::Done)
}
