//! What a reload in place changes, section by section, for whoever asked for it.

use std::collections::HashMap;
use std::sync::Arc;

use engine::worker::Moves;
use program::forward::Forward;
use program::{Program, Proxy};

use crate::say;

/// More sections are only counted.
const MOST: usize = 50;

fn key<T>(state: &Arc<T>) -> usize {
    Arc::as_ptr(state).addr()
}

/// A line for each section that is new, gone, or has other listeners or servers than before, and for each
/// table and cache that begins empty. Rules and settings are not compared: those of the new configuration
/// hold.
pub fn changes(before: &Program, now: &Program, moves: &Moves) -> String {
    let known: HashMap<usize, (u32, &Proxy)> = (0u32..)
        .zip(before.proxies.beginning())
        .map(|(at, proxy)| (key(&proxy.state), (at, proxy)))
        .collect();
    let mut lines = Vec::new();
    for (at, proxy) in (0u32..).zip(now.proxies.beginning()) {
        let name = format!("{} {}", noun(proxy), proxy.name);
        match known.get(&key(&proxy.state)) {
            None => lines.push(format!("{name}: new")),
            Some((was_at, was)) => {
                let changed = [listeners((*was_at, was), (at, proxy), moves), servers(was, proxy)];
                let changed: Vec<String> = changed.into_iter().flatten().collect();
                lines.extend((!changed.is_empty()).then(|| format!("{name}: {}", changed.join(", "))));
            }
        }
    }
    let here: Vec<usize> = now.proxies.iter().map(|proxy| key(&proxy.state)).collect();
    let here: std::collections::HashSet<usize> = here.into_iter().collect();
    let gone = before.present().filter(|proxy| !here.contains(&key(&proxy.state)));
    lines.extend(gone.map(|proxy| format!("{} {}: gone", noun(&proxy), proxy.name)));
    lines.extend(forwards(before, now, moves));
    for table in &now.tables {
        let name = &table.settings().name;
        let same = before.tables.iter().find(|was| was.settings().name == *name);
        if same.is_some_and(|was| !Arc::ptr_eq(was, table)) {
            lines.push(format!("table {name}: begins empty, its settings changed"));
        }
    }
    for cache in &now.caches {
        let name = &cache.settings().name;
        let same = before.caches.iter().find(|was| was.settings().name == *name);
        if same.is_some_and(|was| !Arc::ptr_eq(was, cache)) {
            lines.push(format!("cache {name}: begins empty, its settings changed"));
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    lines.extend((more > 0).then(|| format!("and {more} sections more")));
    lines.iter().map(|line| say::plain("[NOTICE]", &format!("config : {line}."))).collect()
}

/// `log-forward` sections that are new, gone, or have other sockets.
fn forwards(before: &Program, now: &Program, moves: &Moves) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, forward) in now.forwards.iter().enumerate() {
        let was = before.forwards.iter().position(|was| key(&was.state) == key(&forward.state));
        let Some((was_at, was)) = was.and_then(|at| Some((at, before.forwards.get(at)?))) else {
            lines.push(format!("log-forward {}: new", forward.name));
            continue;
        };
        let all = moves.streams.iter().chain(&moves.datagrams);
        let kept = all.filter(|(from, to)| from.0 == was_at && to.0 == at).count();
        let count = |forward: &Forward| (forward.binds.len() + forward.datagrams.len()).saturating_sub(kept);
        let changed = listened(count(forward), count(was), kept);
        lines.extend(changed.map(|text| format!("log-forward {}: {text}", forward.name)));
    }
    let here = |was: &&Forward| !now.forwards.iter().any(|forward| key(&forward.state) == key(&was.state));
    lines.extend(before.forwards.iter().filter(here).map(|was| format!("log-forward {}: gone", was.name)));
    lines
}

/// The word of a section.
fn noun(proxy: &Proxy) -> &'static str {
    match (proxy.is_frontend, proxy.is_backend) {
        (true, true) => "listen",
        (true, false) => "frontend",
        _ => "backend",
    }
}

/// Listeners that are opened and closed.
fn listeners((was_at, was): (u32, &Proxy), (at, now): (u32, &Proxy), moves: &Moves) -> Option<String> {
    let kept = moves.frontends.iter().filter(|(from, to)| from.0 == was_at && to.0 == at).count();
    listened(now.binds.len().saturating_sub(kept), was.binds.len().saturating_sub(kept), kept)
}

fn listened(opened: usize, closed: usize, kept: usize) -> Option<String> {
    (opened + closed > 0).then(|| format!("listeners opened {opened}, closed {closed}, kept {kept}"))
}

/// Servers that came and went.
fn servers(was: &Proxy, now: &Proxy) -> Option<String> {
    let names = |of: &Proxy, other: &Proxy| {
        let known: std::collections::HashSet<usize> = other.present().map(|s| key(&s.state)).collect();
        let new = of.present().filter(|s| !known.contains(&key(&s.state)));
        new.map(|s| s.name.to_string()).collect::<Vec<_>>()
    };
    let (came, went) = (names(now, was), names(was, now));
    let part = |what: &str, names: &[String]| match names {
        [] => None,
        [.., _] if names.len() > 5 => Some(format!("{} servers {what}", names.len())),
        names => Some(format!("servers {what}: {}", names.join(" "))),
    };
    let parts: Vec<String> = [part("new", &came), part("gone", &went)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
