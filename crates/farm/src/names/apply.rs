//! What resolvers learnt becomes a change of servers, like those of checks and commands.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::server::{Target, admin};
use program::Server;

use super::ask::Failure;
use super::records::Place;
use super::{Name, Subscriber, Wanted, follow};
use crate::FarmWorker;
use crate::state::Changes;

/// Who tells an address that was known already.
pub(super) const CACHE: &str = "DNS cache";

/// Who tells an address that came along with its record.
const ADDITIONAL: &str = "DNS additional record";

/// Tells all servers of a name what is known of it now; `by` is the name server that told it. Whether the
/// first of them has moved.
pub(super) fn found(worker: &Rc<FarmWorker>, name: &Rc<Name>, by: &str) -> bool {
    if name.wanted == Wanted::Service {
        places(worker, name);
        return false;
    }
    let mut moved = false;
    let servers = name.servers.borrow().clone();
    let mut taken = Taken::default();
    for (first, who) in std::iter::once(true).chain(std::iter::repeat(false)).zip(&servers) {
        let changed = address(worker, name, who, if first { by } else { CACHE }, &mut taken);
        moved |= first && changed;
    }
    moved
}

/// Where the servers of a backend are that have one name, and how many of them at an address. Those that wait
/// for an address don't count.
#[derive(Default)]
pub(super) struct Taken(HashMap<u32, HashMap<IpAddr, usize>>);

impl Taken {
    /// What is known of the backend and name of a server.
    fn of(&mut self, worker: &FarmWorker, who: &Subscriber) -> &mut HashMap<IpAddr, usize> {
        self.0.entry(who.at.proxy).or_insert_with(|| {
            let host = who.state.fqdn.lock().clone().unwrap_or_default();
            let same = |s: &Server| {
                let name = s.state.fqdn.lock();
                name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(&host))
            };
            let mut all = HashMap::new();
            for server in worker.farm.program.proxy(who.at.proxy).present().filter(|s| same(s)) {
                if let Some(ip) = occupied(&server) {
                    *all.entry(ip).or_insert(0) += 1;
                }
            }
            all
        })
    }
}

/// Where a server is, unless it waits for an address.
fn occupied(server: &Server) -> Option<IpAddr> {
    current(server).filter(|_| server.state.admin() & admin::RMAINT == 0)
}

/// The server that a subscriber still is.
fn is_there(worker: &FarmWorker, who: &Subscriber) -> bool {
    let server = worker.farm.program.find_server(who.at.proxy, who.at.server);
    server.is_some_and(|s| Arc::ptr_eq(&s.state, &who.state)) && !who.state.is_removed()
}

/// Tells a server its address; whether it has moved.
pub(super) fn address(
    worker: &Rc<FarmWorker>,
    name: &Name,
    who: &Subscriber,
    by: &str,
    taken: &mut Taken,
) -> bool {
    if !is_there(worker, who) {
        return false;
    }
    let changes = Changes::begin(worker);
    let server = changes.server(who.at);
    let others = taken.of(worker, who);
    if let Some(count) = occupied(&server).and_then(|ip| others.get_mut(&ip)) {
        *count = count.saturating_sub(1);
    }
    let free = |ip| server.naming.allow_dup_ip || others.get(&ip).is_none_or(|count| *count == 0);
    let chosen = name.records.borrow().choose(current(&server), &server.naming, |ip| !free(ip));
    let Some(ip) = chosen else {
        // The words of HAProxy, with nothing where a name would be.
        changes.lost(who.at, "No IP for server ");
        return false;
    };
    let moved = changes.moved(who.at, ip, by);
    changes.resolves(who.at);
    *others.entry(ip).or_insert(0) += 1;
    moved
}

fn current(server: &Server) -> Option<IpAddr> {
    match &**server.state.target.load() {
        Target::Inet(addr) => Some(addr.ip()),
        _ => None,
    }
}

/// Nothing was found of a name for as long as `hold` allows.
pub(super) fn failed(worker: &Rc<FarmWorker>, name: &Name, failure: Failure) {
    let why = match failure {
        Failure::Nx => "DNS NX status",
        Failure::Refused => "DNS refused status",
        Failure::TimedOut => "DNS timeout status",
        Failure::Other => "unspecified DNS error",
    };
    let servers = name.servers.borrow().clone();
    for who in servers.iter().filter(|who| is_there(worker, who)) {
        if name.wanted == Wanted::Service {
            leave(worker, who);
        } else {
            Changes::begin(worker).lost(who.at, why);
        }
    }
}

/// A server without a record.
fn leave(worker: &Rc<FarmWorker>, who: &Subscriber) {
    if who.state.fqdn.lock().is_some() {
        Changes::begin(worker).detach(who.at);
        worker.names.leave(who);
    }
}

/// A host and its port.
type Spot = (Box<str>, u32);

/// Where a server of a service is.
fn spot(who: &Subscriber) -> Option<Spot> {
    let host = who.state.fqdn.lock().as_deref().map(str::to_ascii_lowercase)?;
    Some((host.into(), who.state.port.load(Relaxed)))
}

/// Brings the servers of a service in line with its records: each backend has a server for each record, as
/// long as there are servers.
fn places(worker: &Rc<FarmWorker>, name: &Rc<Name>) {
    let all: Vec<Place> = name.records.borrow().places.iter().map(|held| held.what.clone()).collect();
    let at = |place: &Place| -> Spot { (place.service.host.clone(), place.service.port.into()) };
    let wanted: HashSet<Spot> = all.iter().map(at).collect();
    let mut backends: Vec<(u32, HashMap<Spot, Subscriber>, VecDeque<Subscriber>)> = Vec::new();
    let mut freed = Vec::new();
    for who in name.servers.borrow().iter().filter(|who| is_there(worker, who)) {
        let known = backends.iter().position(|(proxy, ..)| *proxy == who.at.proxy);
        let known = known.unwrap_or_else(|| {
            backends.push((who.at.proxy, HashMap::new(), VecDeque::new()));
            backends.len() - 1
        });
        let Some((_, settled, free)) = backends.get_mut(known) else { continue };
        match spot(who) {
            Some(spot) if wanted.contains(&spot) && !settled.contains_key(&spot) => {
                settled.insert(spot, who.clone());
            }
            Some(_) => {
                leave(worker, who);
                freed.push((known, who.clone()));
            }
            None => free.push_back(who.clone()),
        }
    }
    // A new record takes a server that has rested before one whose record has just gone.
    for (backend, who) in freed {
        if let Some((_, _, free)) = backends.get_mut(backend) {
            free.push_back(who);
        }
    }
    for place in &all {
        for (_, settled, free) in &mut backends {
            match settled.get(&at(place)) {
                Some(who) => settle(worker, who, place, false),
                None => {
                    let Some(who) = free.pop_front() else { continue };
                    settle(worker, &who, place, true);
                }
            }
        }
    }
}

/// A server and its record.
fn settle(worker: &Rc<FarmWorker>, who: &Subscriber, place: &Place, new: bool) {
    let changes = Changes::begin(worker);
    if let Some(ip) = place.ip {
        changes.placed(who.at, SocketAddr::new(ip, place.service.port), ADDITIONAL);
    }
    if new {
        changes.attach(who.at, &place.service.host, place.service.port);
    }
    if !changes.server(who.at).naming.ignore_weight {
        changes.set_weight(who.at, u32::from(place.service.weight).div_ceil(256));
    }
    if place.ip.is_some() {
        changes.resolves(who.at);
        drop(changes);
        worker.names.leave(who);
        return;
    }
    drop(changes);
    follow(worker, who);
}
