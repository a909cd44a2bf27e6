//! Servers that come and go: `add server`, `del server`.

use std::sync::atomic::Ordering::Relaxed;

use engine::farm::{self, Kept};

use crate::cli::call::{Call, Outcome, Refusal, Reply, find_server, severity};

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
        let words: String = compile::dynamic::words().map(|w| format!("{w}\n")).collect();
        return Ok(Reply::Dump(format!("List of keywords supported for dynamic server:\n{words}")));
    }
    let pair = call.arg(0).split_once('/').filter(|(_, server)| !server.is_empty());
    let (backend, name) = pair.ok_or("Require 'backend/server'.")?;
    if let Some(odd) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !".:_-".contains(*c)) {
        return Err(format!("character '{odd}' is not permitted in server name '{name}'.").into());
    }
    let (index, proxy) = call.find_backend(backend).ok_or("No such backend.")?;
    if !farm::is_dynamic(proxy) {
        let name = &proxy.name;
        return Err(format!(
            "Backend does not support dynamic servers : backend '{name}' uses a non dynamic load balancing method."
        )
        .into());
    }
    if find_server(proxy, name).is_some() {
        return Err("Already exists a server with the same name in backend.".into());
    }
    let words = call.args().get(1..).unwrap_or(&[]);
    let (server, notes) = compile::dynamic::server(&call.shared().program, index, name, words)?;
    farm::add(&call.worker, index, server).ok_or("Too many servers were added to this backend.")?;
    let notes: String = notes.iter().map(|n| format!("{n}\n")).collect();
    Ok(Reply::Message(severity::INFO, format!("{notes}New server registered.").into()))
}

/// `del server <backend>/<server>`.
pub fn delete(call: &mut Call<'_>) -> Outcome {
    let at = call.server()?;
    farm::remove(&call.worker, at).map_err(why)?;
    Ok(Reply::info("Server deleted."))
}

/// `publish backend`.
pub fn publish(call: &mut Call<'_>) -> Outcome {
    set_unpublished(call, false)?;
    Ok(Reply::info("Backend published."))
}

/// `unpublish backend`: content switching passes it by, checks go on.
pub fn unpublish(call: &mut Call<'_>) -> Outcome {
    set_unpublished(call, true)?;
    Ok(Reply::info("Backend unpublished."))
}

fn set_unpublished(call: &Call<'_>, value: bool) -> Result<(), Refusal> {
    let (_, proxy) = call.find_backend(call.arg(0)).ok_or("No such backend.")?;
    proxy.state.back.unpublished.store(value, Relaxed);
    Ok(())
}
