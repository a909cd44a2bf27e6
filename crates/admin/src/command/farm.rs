//! Servers and backends that come and go: `add server`, `del server`, `add backend`, `del backend`.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use farm::dynamic::{self, Kept, Stays};
use program::{Mode, Proxy};

use crate::cli::call::{Call, Outcome, Refusal, Reply, find_server, severity};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["add", "backend"],
        "<bk> from <defaults> [mode <mode>] [guid <guid>]",
        "add a backend, unpublished and without servers",
        Level::Admin,
        add_backend,
    ),
    Command::now(
        &["add", "server"],
        "<bk>/<srv> <addr> [opts]*",
        "add a server to a backend",
        Level::Admin,
        add,
    ),
    Command::later(
        &["del", "backend"],
        "<bk>",
        "delete an unpublished backend without servers",
        Level::Admin,
        delete_backend,
    ),
    Command::later(&["del", "server"], "<bk>/<srv>", "delete a server in maintenance", Level::Admin, delete),
    Command::now(
        &["publish", "backend"],
        "<backend>",
        "let content switching choose a backend again",
        Level::Admin,
        publish,
    ),
    Command::now(
        &["unpublish", "backend"],
        "<backend>",
        "let content switching pass a backend by",
        Level::Admin,
        unpublish,
    ),
];

/// What is said of a server that can't be deleted.
pub fn why(kept: Kept) -> &'static str {
    match kept {
        Kept::Referenced => {
            "This server cannot be removed at runtime due to other configuration elements pointing to it."
        }
        Kept::Active => "Only servers in maintenance mode can be deleted.",
        Kept::Busy => "Server still has connections attached to it, cannot remove it.",
    }
}

/// `add server <backend>/<server> <address> [words]`, `add server help`.
pub fn add(call: &mut Call<'_>) -> Outcome {
    if call.arg(0) == "help" {
        let words: String = compile::dynamic::words().iter().map(|w| format!("{w}\n")).collect();
        return Ok(Reply::Dump(format!("List of keywords supported for dynamic server:\n{words}")));
    }
    let pair = call.arg(0).split_once('/').filter(|(b, server)| !b.is_empty() && !server.is_empty());
    let (backend, name) = pair.ok_or("Require 'backend/server'.")?;
    if let Some(odd) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !".:_-".contains(*c)) {
        return Err(format!("character '{odd}' is not permitted in server name '{name}'.").into());
    }
    let (index, proxy) = call.find_backend(backend).ok_or("No such backend.")?;
    if let Some(why) = fixed(&proxy) {
        return Err(format!("Backend does not support dynamic servers : {why}.").into());
    }
    let defaults = proxy.default_servers.iter().any(|(known, _)| known.as_deref() == Some(name));
    if defaults || find_server(&proxy, name).is_some() {
        return Err("Already exists a server with the same name in backend.".into());
    }
    let words = call.args().get(1..).unwrap_or(&[]);
    let said = |word, text: &str| {
        engine::lines::console(&call.worker, word, &format!("CLI : 'server {backend}/{name}' : {text}"));
    };
    let made = compile::dynamic::server(&call.shared().program, index, name, words);
    let (server, notes) = made.inspect_err(|why| said("ALERT", why))?;
    dynamic::add(&call.worker.farm, index, server).ok_or("Too many servers were added to this backend.")?;
    said("NOTICE", "New server registered.");
    let notes: String = notes.iter().map(|n| format!("{n}\n")).collect();
    Ok(Reply::Message(severity::INFO, format!("{notes}New server registered.").into()))
}

/// How long streams that other threads are about to end are waited for: their clients may have the whole
/// answer, and have told whoever deletes what served them.
const SETTLE: Duration = Duration::from_millis(50);

/// Removes what may be busy for a moment yet; the refusal says whether it is.
async fn settled<T>(mut remove: impl FnMut() -> Result<T, (Refusal, bool)>) -> Result<T, Refusal> {
    let deadline = rt::now() + SETTLE;
    loop {
        match remove() {
            Err((_, true)) if rt::now() < deadline => {}
            done => return done.map_err(|(refusal, _)| refusal),
        }
        rt::sleep_until(rt::now() + Duration::from_millis(2)).await;
    }
}

/// `del server <backend>/<server>`.
pub fn delete<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let server = settled(|| {
            // Somebody else may delete it meanwhile, and another take its place.
            let at = call.server().map_err(|refusal| (refusal, false))?;
            let server = call.config(at);
            let kept = |kept| (why(kept).into(), kept == Kept::Busy);
            dynamic::remove(&call.worker.farm, at).map_err(kept).map(|()| server)
        })
        .await?;
        let checks = server.check.as_ref().and_then(|c| c.connector.as_ref());
        for connector in server.tls.as_ref().map(|t| &t.connector).into_iter().chain(checks) {
            call.shared().program.tls.forget_server(connector);
        }
        engine::lines::console(&call.worker, "NOTICE", "Server deleted.");
        Ok(Reply::info("Server deleted."))
    })
}

/// What is said of a backend that can't be deleted.
pub fn why_backend(stays: Stays) -> &'static str {
    match stays {
        Stays::Listens => "Cannot delete a listen section.",
        Stays::Referenced => {
            "This proxy cannot be removed at runtime due to other configuration elements pointing to it."
        }
        Stays::Table => "Cannot remove a backend with stick-table.",
        Stays::Published => "Backend must be unpublished prior to its deletion.",
        Stays::Servers => "Only a backend without server can be deleted.",
        Stays::Busy => "Backend still has attached streams on it.",
    }
}

/// Why a backend takes no servers at run time.
fn fixed(proxy: &Proxy) -> Option<String> {
    if proxy.mode == Mode::Log {
        return Some(format!("backend '{}' uses mode log", proxy.name));
    }
    let text = || format!("backend '{}' uses a non dynamic load balancing method", proxy.name);
    (!dynamic::is_dynamic(proxy)).then(text)
}

const USAGE: &str = "Usage: add backend <name> from <defproxy> [mode <px_mode>] [guid <val>].";

/// `add backend <name> from <defaults> [mode tcp|http] [guid <guid>]`.
pub fn add_backend(call: &mut Call<'_>) -> Outcome {
    let name = call.arg(0);
    if name.is_empty() {
        return Err("Require backend name.".into());
    }
    if let Some(odd) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !".:_-".contains(*c)) {
        return Err(format!("Invalid character '{odd}' in backend name.").into());
    }
    if call.arg(1) != "from" || call.arg(2).is_empty() {
        return Err("Usage: add backend <name> from <defproxy>.".into());
    }
    let (mut mode, mut guid) = (None, None);
    let mut words = call.args().get(3..).unwrap_or(&[]).iter();
    while let Some(word) = words.next() {
        let value = words.next().filter(|v| !v.is_empty()).ok_or(USAGE)?;
        match (word.as_str(), value.as_str()) {
            ("mode", "tcp") => mode = Some(Mode::Tcp),
            ("mode", "http") => mode = Some(Mode::Http),
            ("mode", "log" | "spop") => {
                return Err("Dynamic backends are compatible with only TCP or HTTP mode.".into());
            }
            ("mode", _) => return Err("Unknown proxy mode.".into()),
            ("guid", value) => guid = Some(value),
            _ => return Err(USAGE.into()),
        }
    }
    let program = &call.shared().program;
    let proxy = compile::dynamic::backend(program, name, call.arg(2), mode, guid)?;
    let (fixed, state) = (fixed(&proxy), proxy.state.clone());
    dynamic::add_backend(&call.worker.farm, proxy).ok_or("Too many backends were added.")?;
    program.world.join(&state);
    let fixed = fixed.map_or(String::new(), |why| format!(" (no support for dynamic servers: {why})"));
    Ok(Reply::info(format!("New backend registered{fixed}.")))
}

/// `del backend <name>`.
pub fn delete_backend<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        settled(|| {
            let (index, _) = call.find_backend(call.arg(0)).ok_or(("No such backend.".into(), false))?;
            let stays = |stays| (why_backend(stays).into(), stays == Stays::Busy);
            dynamic::remove_backend(&call.worker.farm, index).map_err(stays)
        })
        .await?;
        Ok(Reply::info("Backend deleted."))
    })
}

/// `publish backend`.
pub fn publish(call: &mut Call<'_>) -> Outcome {
    set_unpublished(call, false, "Backend published.")
}

/// `unpublish backend`: content switching passes it by, checks go on.
pub fn unpublish(call: &mut Call<'_>) -> Outcome {
    set_unpublished(call, true, "Backend unpublished.")
}

fn set_unpublished(call: &Call<'_>, value: bool, done: &'static str) -> Outcome {
    let (_, proxy) = call.find_backend(call.arg(0)).ok_or("No such backend.")?;
    if proxy.disabled {
        return Ok(Reply::info("No effect on a disabled backend."));
    }
    proxy.state.back.unpublished.store(value, Relaxed);
    engine::lines::console(&call.worker, "NOTICE", &format!("CLI : {done}"));
    Ok(Reply::info(done))
}
