//! Who is who: names and numbers of proxies, servers and listeners, and their live state in the world.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::{Proxy, Server};
use syntax::{Diagnostic, Diagnostics, Level, Style};

use super::Ground;
use super::server as make;
use super::state_file::{self, Known, StateFiles};
use crate::draft::Draft;
use crate::names::Declared;
use crate::statement::unique_name;

/// No two proxies of one number, no two servers of one name in a backend. That names of proxies differ is
/// seen to by `syntax`, which resolves `defaults` by them.
pub(super) fn check(proxies: &[Draft], ground: &Ground<'_>, notes: &mut Diagnostics) {
    let mut ids: HashMap<u32, &Draft> = HashMap::new();
    for p in proxies {
        if let Some(id) = p.id {
            match ids.get(&id) {
                Some(first) => {
                    let text = format!(
                        "{} {} reuses same custom id as {} {} (declared at {}).",
                        p.kind.noun(),
                        p.name,
                        first.kind.noun(),
                        first.name,
                        ground.place(first.span)
                    );
                    notes.alert(p.span, text);
                }
                None => drop(ids.insert(id, p)),
            }
        }
        servers(p, notes);
    }
    unique_names(proxies, ground, notes);
}

/// All objects with a `guid` have one of their own. A listener's is made when all else is known, so it is the
/// one at fault.
fn unique_names(proxies: &[Draft], ground: &Ground<'_>, notes: &mut Diagnostics) {
    let mut holders: HashMap<Box<str>, String> = HashMap::new();
    for p in proxies {
        let label = format!("{} {}", p.kind.noun(), p.name);
        if let Some(guid) = &p.guid {
            match holders.get(guid) {
                Some(other) => notes.alert(p.guid_span, format!("'guid': duplicate entry with {other}")),
                None => drop(holders.insert(guid.clone(), label)),
            }
        }
        for s in &p.servers {
            let Some(guid) = &s.guid else { continue };
            let label = format!("server {}/{}", p.name, s.name);
            if let Some(other) = holders.get(guid) {
                let text = format!("'{label}' : 'guid': duplicate entry with {other}.");
                notes.push(Diagnostic::alert(s.span, text).styled(Style::Bracket));
            } else {
                holders.insert(guid.clone(), label);
            }
        }
    }
    for (p, bind) in proxies.iter().flat_map(|p| p.binds.iter().map(move |b| (p, b))) {
        let place = ground.place(bind.span);
        for guid in (0..bind.addresses.len()).filter_map(|at| bind.guid(at)) {
            let free = |guid: Box<str>| match holders.get(&guid) {
                Some(other) => Err(format!("duplicate entry with {other}")),
                None => Ok(guid),
            };
            match unique_name(&guid).and_then(free) {
                Ok(guid) => drop(holders.insert(guid, format!("listener {} ({place})", p.name))),
                Err(why) => {
                    let text = format!(
                        "[{place}] : error on GUID generation : {why}. You may fix it by adjusting guid-prefix."
                    );
                    return notes.push(Diagnostic::plain(Level::Alert, text).styled(Style::Bare));
                }
            }
        }
    }
}

/// No two servers of a proxy have one name.
pub(super) fn servers(p: &Draft, notes: &mut Diagnostics) {
    let mut seen = HashMap::new();
    for server in p.named_servers.iter().chain(&p.servers) {
        let line = *seen.entry(&server.name).or_insert(server.span.line);
        if line != server.span.line {
            let text = format!(
                "'server {}/{}' : another server named '{}' was already defined at line {line}, please use a distinct name.",
                p.name, server.name, server.name
            );
            notes.push(Diagnostic::alert(server.span, text).styled(Style::Bracket));
        }
    }
}

/// Gives numbers to those that have none: servers the lowest free one from the position on, proxies the next
/// free one. Those start at 2, as HAProxy's do. Who is alive keeps the number that it has.
pub(super) fn number(proxies: &mut [Draft], world: &model::World) {
    let mut given: HashSet<u32> = proxies.iter().filter_map(|p| p.id).collect();
    for p in proxies.iter_mut() {
        let Some(alive) = world.find_proxy(&p.name) else { continue };
        if p.id.is_none() && given.insert(alive.id) {
            p.id = Some(alive.id);
        }
        keep_numbers(p, &alive);
    }
    let mut next = 2;
    for id in proxies.iter_mut().map(|p| &mut p.id).filter(|id| id.is_none()) {
        while given.contains(&next) {
            next = next.saturating_add(1);
        }
        *id = Some(next);
        next = next.saturating_add(1);
    }
    for p in proxies {
        fill(p.servers.iter_mut().map(|s| &mut s.id), 1);
    }
}

/// Servers that are alive keep their numbers.
fn keep_numbers(p: &mut Draft, alive: &Proxy) {
    let known: HashMap<Box<str>, u32> =
        alive.back.servers.read().iter().map(|s| ((*s.name).into(), s.id)).collect();
    let mut given: HashSet<u32> = p.servers.iter().filter_map(|s| s.id).collect();
    for server in p.servers.iter_mut().filter(|s| s.id.is_none()) {
        if let Some(id) = known.get(&server.name).filter(|id| given.insert(**id)) {
            server.id = Some(*id);
        }
    }
}

/// Numbers in order from `first` on; those given are kept, and each entry moves the next number on.
pub(super) fn fill<'i>(ids: impl Iterator<Item = &'i mut Option<u32>>, first: u32) {
    let mut ids: Vec<_> = ids.collect();
    let used: HashSet<u32> = ids.iter().filter_map(|id| **id).collect();
    let mut next = first;
    for id in &mut ids {
        if id.is_none() {
            while used.contains(&next) {
                next = next.saturating_add(1);
            }
            **id = Some(next);
        }
        next = next.saturating_add(1);
    }
}

/// The live state of all proxies and servers: what the world already has, and what is new.
pub(super) fn declare(
    proxies: &mut [Draft],
    ground: &Ground<'_>,
    files: &StateFiles,
    told: &mut Diagnostics,
    notes: &mut Diagnostics,
) -> Vec<Declared> {
    let workers = ground.world.workers;
    let mut out: Vec<Declared> = Vec::new();
    let mut new: HashMap<Box<str>, Arc<Proxy>> = HashMap::new();
    let before = notes.count(Level::Alert);
    for p in proxies {
        let id = p.id.unwrap_or(0);
        let guid = p.guid.as_deref();
        // Numbers and unique names are for good: who has others is somebody else.
        let same = |alive: &Arc<Proxy>| alive.id == id && alive.guid.as_deref() == guid;
        let state = ground.world.find_proxy(&p.name).filter(same).unwrap_or_else(|| {
            let made = || Arc::new(Proxy::new(&p.name, id, guid, workers));
            new.entry(p.name.clone()).or_insert_with(made).clone()
        });
        // The world finds a server by looking at all of them; here they are many and come at once.
        let known: HashMap<Box<str>, Arc<Server>> =
            state.back.servers.read().iter().map(|s| ((*s.name).into(), s.clone())).collect();
        let mut servers: Vec<Arc<Server>> = Vec::with_capacity(p.servers.len());
        // Nobody wants the addresses of a proxy that never serves.
        let mut unsaid = Diagnostics::new();
        let notes = if p.disabled { &mut unsaid } else { &mut *notes };
        let states = files.of(p, told);
        let (mut configured, mut stated) = (Vec::with_capacity(p.servers.len()), Vec::new());
        for draft in &p.servers {
            let same =
                |s: &&Arc<Server>| Some(s.id) == draft.id && s.guid.as_deref() == draft.guid.as_deref();
            if let Some(server) = known.get(&draft.name).filter(same) {
                configured.push(make::renewed(draft, server, p, ground, notes));
                servers.push(server.clone());
                continue;
            }
            let last = states.get(&draft.name).and_then(Known::address);
            let target = make::target(draft, last, p, ground, notes);
            let server = Arc::new(make::state(draft, p, target, workers));
            configured.push(server.configured.lock().clone());
            stated.extend(states.get(&draft.name).map(|known| (known, server.clone(), draft)));
            servers.push(server);
        }
        let all: Vec<_> = servers.iter().cloned().zip(p.servers.iter().map(|draft| draft.backup)).collect();
        for (known, server, draft) in stated {
            state_file::apply(known, &server, draft, p, &all, told);
        }
        out.push(Declared {
            name: p.name.clone(),
            state,
            is_front: p.kind.is_front(),
            is_back: p.kind.is_back(),
            servers,
            configured,
            referenced: Default::default(),
            mirror: Default::default(),
            named: Default::default(),
            mode: p.mode,
        });
    }
    if notes.count(Level::Alert) > before {
        notes.push(
            Diagnostic::plain(Level::Alert, "Failed to initialize server(s) addr.").styled(Style::Bare),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn numbers_are_given_as_haproxy_gives_them() {
        // Seen on the oracle: three servers, the second with `id 1`.
        let mut ids = [None, Some(1), None];
        fill(ids.iter_mut(), 1);
        assert_eq!(ids, [Some(2), Some(1), Some(4)]);
    }
}
