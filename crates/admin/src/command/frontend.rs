//! `enable`, `disable` and `shutdown frontend`.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::proxy::FrontState;

use crate::cli::call::{Call, Outcome, Reply, Whose, severity};
use crate::cli::table::Command;
use crate::gather::tell_all;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::later(
        &["disable", "frontend"],
        "<frontend>",
        "let a frontend accept no connections",
        Level::Admin,
        disable,
    ),
    Command::later(
        &["enable", "frontend"],
        "<frontend>",
        "let a frontend accept connections again",
        Level::Admin,
        enable,
    ),
    Command::later(
        &["shutdown", "frontend"],
        "<frontend>",
        "stop a frontend for good",
        Level::Admin,
        shutdown,
    ),
];

fn note(call: &Call<'_>, whose: Whose, text: &str) {
    let level = program::log::level::WARNING;
    engine::lines::console(&call.worker, "WARNING", text);
    match whose {
        Whose::Proxy(index) => engine::lines::proxy_line(&call.worker, index, level, text),
        Whose::Forward(index) => engine::lines::forward_line(&call.worker, index, level, text),
    }
    wake();
}

/// Those who accept look at the state again.
fn wake() {
    tell_all(|w| {
        w.freed.raise();
        w.stop.raise();
    });
}

/// `disable frontend`: it gives up its ports. The answer comes when it has, so that another program may bind
/// them at once.
pub fn disable<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let at = call.frontend()?;
        let front = &at.state.front;
        match front.state() {
            FrontState::Stopped => return nothing("Frontend was previously shut down, cannot disable."),
            FrontState::Paused => return nothing("All sockets are already disabled."),
            // A frontend without sockets has none that is enabled.
            FrontState::Open if !at.has_sockets => {
                return nothing("All sockets are already disabled.");
            }
            FrontState::Open => front.set_state(FrontState::Paused),
        }
        note(call, at.whose, &format!("Paused frontend {}.", at.state.name));
        until_all(|| front.holding.load(Relaxed) == 0 || front.state() != FrontState::Paused).await;
        Ok(Reply::Done)
    })
}

/// Tells that there is nothing to do.
fn nothing(text: &'static str) -> Outcome {
    Ok(Reply::Message(severity::NOTICE, text.into()))
}

/// How long it takes at most until all workers have seen what became of a frontend.
const SEEN: Duration = Duration::from_secs(5);

/// Waits for what the workers do, each when its turn comes.
async fn until_all(done: impl Fn() -> bool) {
    let deadline = rt::now() + SEEN;
    while !done() && rt::now() < deadline {
        rt::sleep(Duration::from_millis(1)).await;
    }
}

/// `enable frontend`: the answer comes when its ports are had again, or not.
pub fn enable<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let at = call.frontend()?;
        let front = &at.state.front;
        match front.state() {
            state if state == FrontState::Stopped || at.disabled => {
                return Err("Frontend was previously shut down, cannot enable.".into());
            }
            FrontState::Paused => front.set_state(FrontState::Open),
            _ => return nothing("All sockets are already enabled."),
        }
        wake();
        until_all(|| front.away.load(Relaxed) == 0 || front.state() != FrontState::Open).await;
        if front.state() == FrontState::Paused {
            let text = "Failed to resume frontend, check logs for precise cause (port conflict?).";
            return Err(text.into());
        }
        note(call, at.whose, &format!("Resumed frontend {}.", at.state.name));
        Ok(Reply::Done)
    })
}

/// `shutdown frontend`: for good. The answer comes when its sockets are closed.
pub fn shutdown<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let at = call.frontend()?;
        let front = &at.state.front;
        if front.state() == FrontState::Stopped {
            return nothing("Frontend was already shut down.");
        }
        front.set_state(FrontState::Stopped);
        if !at.has_sockets {
            // Nothing ended that anybody could have come to.
            return Ok(Reply::Done);
        }
        let (ours, theirs) = (&front.counters, &at.state.back.counters);
        let (ours, theirs) = (ours.sum(|c| &c.connections), theirs.sum(|c| &c.sessions));
        let text = format!("Proxy {} stopped (cumulated conns: FE: {ours}, BE: {theirs}).", at.state.name);
        match at.whose {
            Whose::Proxy(_) => note(call, at.whose, &text),
            // Its own targets hear nothing of that, as in HAProxy.
            Whose::Forward(_) => {
                engine::lines::console(&call.worker, "WARNING", &text);
                wake();
            }
        }
        until_all(|| front.holding.load(Relaxed) == 0).await;
        Ok(Reply::Done)
    })
}
