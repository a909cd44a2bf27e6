//! `stick` rules: which server a client is stuck to. They look a key up before a server is chosen and store
//! it once the connection to the server stands.

use std::sync::Arc;

use lang::env::Side;
use model::server::Target;
use program::Proxy;
use program::stick_rules::StickRule;
use stick::{Data, SrvKey, Tracked};

use crate::stream::Stream;
use crate::tracking::Pending;

/// Most keys that one request, and one response, may store.
const MOST_STORES: usize = 8;

fn now() -> u64 {
    rt::now().as_millis()
}

/// Applies the rules on requests: what is to be stored is noted; the server that a known key is stuck to,
/// unless the request has one already.
pub fn wanted(stream: &mut Stream<'_>, proxy: &Proxy, bound: Option<u32>) -> Option<u32> {
    let mut found = bound;
    stream.pending.clear();
    for rule in &proxy.stick.request {
        if rule.stores && noted(stream, rule) {
            continue;
        }
        let stores = rule.stores && stream.pending.len() < MOST_STORES;
        let matches = rule.matches && found.is_none();
        if !(stores || matches) || !stream.holds(rule.condition.as_ref()) {
            continue;
        }
        let key = key(stream, rule, Side::Request);
        let Some(pending) = key else { continue };
        if matches && let Pending::Held(held) = &pending {
            found = server_of(stream, proxy, held);
        }
        if stores {
            stream.pending.push(pending);
        }
    }
    found
}

/// Whether a key for the rule's table is noted already: no other is stored there. Rules that only match do
/// not mind.
fn noted(stream: &Stream<'_>, rule: &StickRule) -> bool {
    stream.pending.iter().any(|p| Arc::ptr_eq(p.table(), &rule.table))
}

fn key(stream: &Stream<'_>, rule: &StickRule, side: Side) -> Option<Pending> {
    let table = &rule.table;
    stream.evaluate(side, |env| {
        let key = lang::stick::key::of(table.kind(), rule.expr.eval(env).ok()?, env.arena)?;
        Some(match table.find(key, now()) {
            Some(held) => Pending::Held(held),
            None => Pending::New(table.clone(), key.into()),
        })
    })
}

/// The server noted in an entry, if it may be used; finding it uses the entry.
fn server_of(stream: &Stream<'_>, proxy: &Proxy, held: &Tracked) -> Option<u32> {
    let row = held.touched_row(now());
    let by_addr = held.table().settings().srvkey == SrvKey::Addr;
    let named = row.server().and_then(|name| {
        let is_it = |s: &program::Server| match by_addr {
            true => address(s).is_some_and(|a| *a == **name),
            false => *s.name == **name,
        };
        proxy.position(|s| is_it(s) && !s.state.is_removed())
    });
    let id = row.get(Data::ServerId, 0).unwrap_or(0);
    let by_id = || proxy.position(|s| id != 0 && u64::from(s.state.id) == id && !s.state.is_removed());
    let at = named.or_else(by_id)?;
    let insists = stream.txn.decisions.force_persist || proxy.options.persist;
    let usable = proxy.servers.get(at as usize)?.state.is_up() || insists;
    Some(at).filter(|_| usable)
}

/// A server as its address names it (`srvkey addr`).
fn address(server: &program::Server) -> Option<String> {
    match &**server.state.target.load() {
        Target::Inet(a) => Some(a.to_string()),
        Target::Unix { path, .. } => Some(String::from_utf8_lossy(path).into_owned()),
        Target::None => None,
    }
}

/// Stores what rules noted.
fn store(stream: &mut Stream<'_>) {
    if !stream.pending.is_empty() {
        for pending in std::mem::take(&mut stream.pending) {
            note(stream, pending);
        }
    }
}

/// Applies the rules on responses, and stores what they and those on the request noted: `tcp-response` rules
/// let the server's answer pass.
pub fn store_response(stream: &mut Stream<'_>, proxy: &Proxy) {
    // Rules on both sides may store in one table: those on the request first.
    store(stream);
    for rule in &proxy.stick.response {
        let holds = |s: &Stream<'_>| {
            rule.condition
                .as_ref()
                .is_none_or(|c| s.evaluate(Side::Response, |env| c.holds(env)) == lang::cond::Outcome::Yes)
        };
        if stream.pending.len() < MOST_STORES
            && !noted(stream, rule)
            && holds(stream)
            && let Some(pending) = key(stream, rule, Side::Response)
        {
            stream.pending.push(pending);
        }
    }
    store(stream);
}

fn note(stream: &Stream<'_>, pending: Pending) {
    let Some(place) = &stream.place else { return };
    let server = place.config();
    if server.non_stick {
        return;
    }
    let held = match pending {
        Pending::Held(held) => held,
        Pending::New(table, key) => match table.enter(&key, now()) {
            Some(held) => held,
            None => return,
        },
    };
    let mut row = held.touched_row(now());
    row.set(Data::ServerId, 0, server.state.id.into());
    let by_addr = held.table().settings().srvkey == SrvKey::Addr;
    let name = if by_addr { address(&server) } else { None };
    let name = name.as_deref().unwrap_or(&server.name);
    if row.server().is_none_or(|known| **known != *name) {
        row.set_server(&name.into());
    }
}
