//! All algorithms behind one face.
//!
//! A [`Balancer`] belongs to a backend. Its settings are fixed; its schedule follows the servers: whenever
//! health, weight or administrative state changes, the caller hands the whole list to [`Balancer::rebuild`].
//! How readers reach the schedule is told in [`crate::published`].
//!
//! Two verbs: *pick* only names a server; *take* also counts a request on it, as does *acquire* for a server
//! that was found otherwise (a cookie, a stick table). Each request so counted is given back by *release*.
//! Loads are counted for every algorithm, because persistence, `hash-balance-factor` and statistics ask for
//! them.

use crate::leastconn::Tree;
use crate::load::Loads;
use crate::map::{self, Map};
use crate::published::Published;
use crate::random::Draw;
use crate::ring::{Member, Ring, Walk};
use crate::rotation::Rotation;
use crate::sync::{AtomicU32, Ordering};
use crate::view::{ServerView, farm};
use base::hash::{Function, avalanche};
use std::sync::Mutex;

/// How hashes find servers: the `<method>` of `hash-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// A slot per unit of weight.
    #[default]
    MapBased,
    /// The nearest point on a ring.
    Consistent,
}

/// The whole of `hash-type` (configuration manual, `hash-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HashType {
    /// How hashes find servers.
    pub method: Method,
    /// How keys become hashes.
    pub function: Function,
    /// Whether the hash is mixed once more.
    pub avalanche: bool,
}

impl HashType {
    /// `hash-type consistent` without a function: sdbm with avalanche.
    pub const CONSISTENT: HashType =
        HashType { method: Method::Consistent, function: Function::Sdbm, avalanche: true };

    /// The hash of a key.
    pub fn hash(self, key: &[u8]) -> u32 {
        self.mix(self.function.hash(key))
    }

    /// The hash of a key that is a number already, such as a source address: only the modifier applies.
    pub fn mix(self, number: u32) -> u32 {
        if self.avalanche { avalanche(number) } else { number }
    }
}

/// The algorithm of a backend (configuration manual, `balance`). Where keys come from is not its business:
/// `source`, `uri`, `url_param`, `hdr`, `rdp-cookie` and `hash` are all [`Algorithm::Hash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// In turn by effective weight.
    RoundRobin,
    /// In turn by configured weight.
    StaticRr,
    /// The least loaded.
    LeastConn,
    /// The first with room, by identifier.
    First,
    /// The least loaded of some draws.
    Random {
        /// The number of draws, from 1; 2 by default.
        draws: u32,
    },
    /// By the hash of a key; in turn without one.
    Hash(HashType),
    /// The first of those that are up, in the order in which they came up.
    Sticky,
}

/// What a backend says of its balancing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `balance`.
    pub algorithm: Algorithm,
    /// `option allbackups`.
    pub allbackups: bool,
    /// `hash-balance-factor` in percent, above 100; 0 for none.
    pub balance_factor: u32,
}

impl Settings {
    /// An algorithm with the defaults for everything else.
    pub fn new(algorithm: Algorithm) -> Settings {
        Settings { algorithm, allbackups: false, balance_factor: 0 }
    }
}

/// The balancing state of one backend. See the head of the module.
#[derive(Debug)]
pub struct Balancer {
    settings: Settings,
    schedule: Published,
    loads: Loads,
    total: Total,
    /// Serialises rebuilds; no reader touches it.
    rebuilding: Mutex<()>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Total(AtomicU32);

/// What a rebuild makes of the servers.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The servers that take part, in order of declaration.
    farm: Vec<u32>,
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    Rotation(Rotation),
    Tree(Tree),
    List(Vec<u32>),
    Draw(Draw, Shares),
    Map(Map, Rotation),
    Ring(Ring, Walk, Shares),
}

impl Balancer {
    /// A balancer that knows no server yet.
    pub fn new(settings: Settings) -> Balancer {
        let loads = Loads::new();
        let plan = plan(&settings, &[], &[], None, &loads);
        Balancer {
            settings,
            schedule: Published::new(Schedule { farm: Vec::new(), plan }),
            loads,
            total: Total::default(),
            rebuilding: Mutex::new(()),
        }
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Publishes a new schedule for these servers. The index of a server must stay its own as long as
    /// requests are counted on it; servers may be added at the end. May be called from any thread, at any
    /// time.
    pub fn rebuild(&self, servers: &[ServerView]) {
        let _one_at_a_time = self.rebuilding.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.loads.grow(servers.len());
        let farm = farm(servers, self.settings.allbackups);
        let plan = self.schedule.read(|_, old| plan(&self.settings, servers, &farm, Some(old), &self.loads));
        self.schedule.publish(Schedule { farm, plan });
        // Loads that changed between reading and publishing went to the old tree only.
        self.schedule.read(|_, new| {
            if let Plan::Tree(tree) = &new.plan {
                new.farm.iter().for_each(|&server| tree.refresh(server as usize, &self.loads));
            }
        });
    }

    /// The server for a request, which is not counted yet; none when there is none that `skip` doesn't
    /// refuse.
    ///
    /// `key` is the hash of the key for the hashing algorithms (none when the request has no key: then
    /// servers take turns), a random number for `random`, and ignored by the others. `skip` says of a server
    /// that it is full or was tried already.
    pub fn pick(&self, key: Option<u32>, skip: impl Fn(usize) -> bool) -> Option<usize> {
        self.schedule.read(|_, schedule| self.pick_from(schedule, key, skip))
    }

    fn pick_from(
        &self,
        schedule: &Schedule,
        key: Option<u32>,
        skip: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match &schedule.plan {
            Plan::Rotation(rotation) => rotation.pick(skip),
            Plan::Tree(tree) => tree.pick(&self.loads, skip).map(|(server, _)| server),
            Plan::List(list) => list.iter().map(|&server| server as usize).find(|&server| !skip(server)),
            Plan::Draw(draw, shares) => {
                let full = self.bound(shares);
                let chance = key.map_or_else(|| draw.chance(), u64::from);
                draw.pick(chance, self.draws(), &self.loads, |server| skip(server) || full(server))
            }
            Plan::Map(map, turns) => match key {
                Some(hash) => map.pick(hash, skip),
                None => turns.pick(skip),
            },
            Plan::Ring(ring, walk, shares) => {
                let full = self.bound(shares);
                let skip = |server| skip(server) || full(server);
                match key {
                    Some(hash) => ring.pick(hash, skip),
                    None => ring.turn(walk, skip),
                }
            }
        }
    }

    /// Picks a server and counts the request on it, until [`Balancer::release`].
    pub fn take(&self, key: Option<u32>, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let (server, stale) = self.schedule.read(|version, schedule| match &schedule.plan {
            Plan::Tree(tree) => {
                let server = tree.take(&self.loads, skip)?;
                Some((server, !self.schedule.is_current(version)))
            }
            _ => {
                let server = self.pick_from(schedule, key, skip)?;
                self.loads.add(server);
                Some((server, false))
            }
        })?;
        self.count_total(1);
        if stale {
            self.refresh(server);
        }
        Some(server)
    }

    /// Counts a request on a server that was found otherwise, until [`Balancer::release`].
    pub fn acquire(&self, server: usize) {
        self.loads.add(server);
        self.count_total(1);
        self.refresh(server);
    }

    /// Ends a request that [`Balancer::take`] or [`Balancer::acquire`] counted.
    pub fn release(&self, server: usize) {
        self.loads.sub(server);
        self.count_total(1_u32.wrapping_neg());
        self.refresh(server);
    }

    /// The requests counted on a server now.
    pub fn load(&self, server: usize) -> u32 {
        self.loads.get(server)
    }

    /// Where a request goes that consistent hashing refused everywhere: the server of the last point before
    /// the one its hash belongs to (`hash-preserve-affinity maxconn`). None for every other algorithm.
    pub fn last_resort(&self, hash: u32) -> Option<usize> {
        self.schedule.read(|_, schedule| match &schedule.plan {
            Plan::Ring(ring, ..) => ring.last(hash),
            _ => None,
        })
    }

    /// The number of servers that take part now.
    pub fn usable(&self) -> usize {
        self.schedule.read(|_, schedule| schedule.farm.len())
    }

    /// Whether this server takes part now.
    pub fn takes_part(&self, server: usize) -> bool {
        let found = |server| self.schedule.read(|_, schedule| schedule.farm.binary_search(&server).is_ok());
        u32::try_from(server).is_ok_and(found)
    }

    fn refresh(&self, server: usize) {
        if self.settings.algorithm == Algorithm::LeastConn {
            self.schedule.read(|_, schedule| {
                if let Plan::Tree(tree) = &schedule.plan {
                    tree.refresh(server, &self.loads);
                }
            });
        }
    }

    // Only the balance factor asks for the sum, and a sum is a line that all threads write.
    fn count_total(&self, by: u32) {
        if self.settings.balance_factor > 0 {
            self.total.0.fetch_add(by, Ordering::Relaxed);
        }
    }

    fn bound<'a>(&'a self, shares: &'a Shares) -> impl Fn(usize) -> bool + 'a {
        let factor = self.settings.balance_factor;
        let total = if factor > 0 { self.total.0.load(Ordering::Relaxed) } else { 0 };
        let slots = shares.slots(total, factor);
        move |server| factor > 0 && self.loads.get(server) >= shares.of(server, slots)
    }

    fn draws(&self) -> u32 {
        match self.settings.algorithm {
            Algorithm::Random { draws } => draws,
            _ => 1,
        }
    }
}

/// How `hash-balance-factor` divides the requests of a backend among its servers.
#[derive(Debug, Default)]
pub struct Shares {
    /// For each server its weight and the sum of those before it.
    weights: Box<[(u32, u64)]>,
    total: u64,
}

impl Shares {
    /// Shares of `servers` servers, of which those in `farm` (index and effective weight) take part.
    pub fn new(servers: usize, farm: &[(u32, u32)]) -> Shares {
        let mut weights = vec![(0, 0); servers];
        let mut total = 0;
        for &(server, weight) in farm {
            weights[server as usize] = (weight, total);
            total += u64::from(weight);
        }
        Shares { weights: weights.into(), total }
    }

    /// The slots of the whole backend while it has `requests`: ceil((requests + 1) * factor / 100).
    pub fn slots(&self, requests: u32, factor: u32) -> u64 {
        ((u64::from(requests) + 1) * u64::from(factor)).div_ceil(100)
    }

    /// The slots of one server: its weight's part of them, at least 1.
    pub fn of(&self, server: usize, slots: u64) -> u32 {
        let Some(&(weight, before)) = self.weights.get(server) else { return 0 };
        let (weight, total) = (u64::from(weight), self.total.max(1));
        let (each, rest) = (slots / total, slots % total);
        let part = (before + weight) * rest / total - before * rest / total;
        (weight * each + part).clamp(1, u64::from(u32::MAX)) as u32
    }
}

fn plan(
    settings: &Settings,
    servers: &[ServerView],
    farm: &[u32],
    old: Option<&Schedule>,
    loads: &Loads,
) -> Plan {
    let weighted = |weight: fn(&ServerView) -> u32| -> Vec<(u32, u32)> {
        farm.iter().map(|&server| (server, weight(&servers[server as usize]))).collect()
    };
    let old = old.map(|schedule| &schedule.plan);
    match settings.algorithm {
        Algorithm::RoundRobin => Plan::Rotation(rotation(Rotation::new(&weighted(|s| s.eweight)), old)),
        Algorithm::StaticRr => {
            let map = static_map(servers, &weighted(|s| s.weight));
            Plan::Rotation(walk(&map, old))
        }
        Algorithm::LeastConn => {
            let tree = Tree::new(servers.len(), &weighted(|s| s.eweight), loads);
            if let Some(Plan::Tree(old)) = old {
                tree.resume(old);
            }
            Plan::Tree(tree)
        }
        Algorithm::First => {
            let mut list = farm.to_vec();
            list.sort_by_key(|&server| servers[server as usize].id);
            Plan::List(list)
        }
        Algorithm::Sticky => Plan::List(sticky(farm, old)),
        Algorithm::Random { .. } => {
            let farm = weighted(|s| s.eweight);
            Plan::Draw(Draw::new(&farm), Shares::new(servers.len(), &farm))
        }
        Algorithm::Hash(HashType { method: Method::MapBased, .. }) => {
            let map = static_map(servers, &weighted(|s| s.weight));
            let turns = walk(&map, old);
            Plan::Map(map, turns)
        }
        Algorithm::Hash(HashType { method: Method::Consistent, .. }) => {
            let farm = weighted(|s| s.eweight);
            let member = |&(server, points): &(u32, u32)| Member {
                server,
                points,
                seed: servers[server as usize].seed,
            };
            let ring = Ring::new(&farm.iter().map(member).collect::<Vec<_>>());
            let walk = match old {
                Some(Plan::Ring(_, old, _)) => Walk::default().resume(old),
                _ => Walk::default(),
            };
            Plan::Ring(ring, walk, Shares::new(servers.len(), &farm))
        }
    }
}

fn static_map(servers: &[ServerView], farm: &[(u32, u32)]) -> Map {
    Map::new(farm, map::divisor(servers.iter().map(|s| s.weight)))
}

fn rotation(new: Rotation, old: Option<&Plan>) -> Rotation {
    match old {
        Some(Plan::Rotation(old) | Plan::Map(_, old)) => new.resume(old),
        _ => new,
    }
}

// The turns of a map, for requests without a key.
fn walk(map: &Map, old: Option<&Plan>) -> Rotation {
    let new = Rotation::from_order(map.slots().to_vec());
    match old {
        Some(Plan::Rotation(old) | Plan::Map(_, old)) => new.keep_place(old),
        _ => new,
    }
}

// Who was up stays in its place; who comes up goes to the end.
fn sticky(farm: &[u32], old: Option<&Plan>) -> Vec<u32> {
    let before: &[u32] = match old {
        Some(Plan::List(list)) => list,
        _ => &[],
    };
    let staying = before.iter().filter(|server| farm.contains(server));
    let coming = farm.iter().filter(|server| !before.contains(server));
    staying.chain(coming).copied().collect()
}

#[cfg(all(test, not(loom)))]
#[path = "balancer_tests.rs"]
mod tests;
