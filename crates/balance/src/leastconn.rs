//! `leastconn`: the server with the fewest requests for its weight, in turn among equals, without a lock.
//!
//! The loads change with every request of every thread, so a sorted structure would be a convoy. This is a
//! wide tree of minima instead: a leaf is the key of a server (its load per weight), a node the least key of
//! its [`FAN`] children. Ten servers need no node, a thousand two levels. Nodes hold keys and not servers:
//! with many servers at the same load, which is the usual case, a pick changes its leaf and hardly ever a
//! node above. A pick walks down from the root along equal keys, from a place that moves on behind each pick;
//! that is the round robin among equals. Every worker has its own such place, so that several of them work on
//! different cache lines and not side by side on the same ones.
//!
//! # Why it stays right
//!
//! A word is a key, a version, and a mark. The key of a node may lag, but in one direction only: **when all
//! threads are at rest no node is above the least key below it**. So nothing idle is ever hidden.
//! - A rising key (a pick) recomputes the nodes that stood at the old key. To raise a node one marks it,
//!   looks at its children, and stores the result if the word is still as one left it.
//! - A falling key (a release) lowers the nodes above it until one is no higher. If that one is marked it
//!   takes the mark away, so that whoever computed from the old key fails to store and looks again; if it
//!   isn't, whoever marks it later will see the new key. So in the usual case neither picks nor releases
//!   write a node at all.
//! - Who gives up raising after a few collisions leaves a node too low: a pick that is led to it finds no
//!   such child and mends it.
//!
//! The truth is in [`Loads`], which outlive the tree. A leaf copies it under a version; whoever fails twice
//! to write a leaf has been overtaken by somebody who read the load later. Every loop is bounded; what can't
//! be settled in a few tries falls back to looking at all servers once.

use crate::load::Loads;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, after_write};

/// Children per node: two cache lines. (loom could not explore so many.)
pub const FAN: usize = if cfg!(loom) { 2 } else { 16 };

const UNUSABLE: u32 = u32::MAX;
const MARK: u64 = 1 << 32;
const VERSION: u64 = 1 << 33;
const TRIES: usize = 8;
const TURNS: usize = if cfg!(loom) { 1 } else { 16 };

/// The least loads of a farm.
#[derive(Debug)]
pub struct Tree {
    /// From the leaves up to a level of [`FAN`] nodes, each padded with unusable ones to a multiple of that.
    /// The root above the last is not stored: every thread would write it, and it is quickly computed.
    levels: Vec<Box<[AtomicU64]>>,
    weights: Box<[u32]>,
    /// Where each worker looks first.
    turns: Box<[Turn]>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Turn(AtomicUsize);

impl Tree {
    /// A tree over `servers` servers, of which those in `farm` (index and effective weight) take part.
    /// Call [`Tree::refresh`] for each of them once the tree is published.
    pub fn new(servers: usize, farm: &[(u32, u32)], loads: &Loads) -> Tree {
        let mut weights = vec![0; servers];
        for &(server, weight) in farm {
            weights[server as usize] = weight;
        }
        let key = |server: usize| weights.get(server).map_or(UNUSABLE, |&w| key(loads.get(server), w));
        let mut keys: Vec<u32> = (0..servers.next_multiple_of(FAN).max(FAN)).map(key).collect();
        let mut levels = vec![level(&keys)];
        while keys.len() > FAN {
            let least = |children: &[u32]| children.iter().copied().min().unwrap_or(UNUSABLE);
            keys = keys.chunks(FAN).map(least).collect();
            keys.resize(keys.len().next_multiple_of(FAN), UNUSABLE);
            levels.push(level(&keys));
        }
        Tree { levels, weights: weights.into(), turns: (0..TURNS).map(|_| Turn::default()).collect() }
    }

    /// Lets each worker look first at the server after the one it picked last in `old`.
    pub fn resume(&self, old: &Tree) {
        for (new, old) in self.turns.iter().zip(&*old.turns) {
            let turn = old.0.load(Ordering::Relaxed) % self.weights.len().max(1);
            new.0.store(turn, Ordering::Relaxed);
        }
    }

    /// The least loaded server that `skip` doesn't refuse, and its key. Nothing is counted.
    pub fn pick(&self, loads: &Loads, skip: impl Fn(usize) -> bool) -> Option<(usize, u32)> {
        let turn = self.turn().load(Ordering::Relaxed);
        for _ in 0..TRIES {
            let (server, least) = self.least(turn)?;
            match server {
                Some(server) if !skip(server) => return Some(self.pass(server, least)),
                Some(_) => break,
                None => self.mend(least),
            }
        }
        let (server, key) = self.scan(loads, turn, skip)?;
        Some(self.pass(server, key))
    }

    /// The same, counting a request on it. Two threads that see the same least server don't both get it as
    /// long as another is as little loaded.
    pub fn take(&self, loads: &Loads, skip: impl Fn(usize) -> bool) -> Option<usize> {
        for _ in 0..TRIES {
            let (server, least) = self.pick(loads, &skip)?;
            let load = loads.get(server);
            if key(load, self.weight(server)) <= least && loads.add_if(server, load) {
                self.refresh(server, loads);
                return Some(server);
            }
            self.refresh(server, loads);
            self.move_away();
        }
        let (server, _) = self.pick(loads, skip)?;
        loads.add(server);
        self.refresh(server, loads);
        Some(server)
    }

    /// Brings the tree up to date with the load of `server`. Must follow each change of that load.
    pub fn refresh(&self, server: usize, loads: &Loads) {
        let Some(leaf) = self.levels[0].get(server) else { return };
        let weight = self.weight(server);
        if weight == 0 {
            return;
        }
        for _ in 0..2 {
            let seen = leaf.load(Ordering::SeqCst);
            let (old, new) = (key_of(seen), key(loads.get(server), weight));
            if swap(leaf, seen, new) {
                return match new.cmp(&old) {
                    std::cmp::Ordering::Less => self.lower(server, new),
                    std::cmp::Ordering::Greater => self.raise(server, old),
                    std::cmp::Ordering::Equal => {}
                };
            }
        }
    }

    // A key below `index` of the leaves fell to `key`.
    fn lower(&self, mut index: usize, key: u32) {
        for level in &self.levels[1..] {
            index /= FAN;
            let node = &level[index];
            after_write();
            loop {
                let seen = node.load(Ordering::SeqCst);
                let falls = key_of(seen) > key;
                if !falls && seen & MARK == 0 {
                    return;
                }
                if swap(node, seen, key.min(key_of(seen))) {
                    if falls {
                        break;
                    }
                    return;
                }
            }
        }
    }

    // A key below `index` of the leaves rose from `old`.
    fn raise(&self, mut index: usize, mut old: u32) {
        for number in 1..self.levels.len() {
            index /= FAN;
            match self.recompute(number, index, old) {
                Some(risen_from) => old = risen_from,
                None => return,
            }
        }
    }

    // Raises a node that stands at `old` or above and below all of its children; gives the key that it had.
    fn recompute(&self, number: usize, index: usize, old: u32) -> Option<u32> {
        let node = &self.levels[number][index];
        for _ in 0..TRIES {
            let key = key_of(node.load(Ordering::SeqCst));
            if key < old || self.least_child(number, index, key) <= key {
                return None;
            }
            let marked = node.fetch_or(MARK, Ordering::SeqCst) | MARK;
            after_write();
            let key = key_of(marked);
            let least = self.least_child(number, index, key).max(key);
            if swap(node, marked, least) && least > key {
                return Some(key);
            }
        }
        None
    }

    // The least key of a node's children; stops at one that is no higher than `enough`.
    fn least_child(&self, number: usize, index: usize, enough: u32) -> u32 {
        let mut least = UNUSABLE;
        for child in &self.levels[number - 1][index * FAN..(index + 1) * FAN] {
            least = least.min(key_of(child.load(Ordering::SeqCst)));
            if least <= enough {
                break;
            }
        }
        least
    }

    // The least key, and the first leaf from `turn` on, around, that has it: none if a node is too low.
    fn least(&self, turn: usize) -> Option<(Option<usize>, u32)> {
        let top = self.levels.len();
        if top == 1 {
            return self.least_leaf(turn).map(|(server, key)| (Some(server), key));
        }
        let least = self.least_child(top, 0, 0);
        let found = || self.find(top, 0, least, turn).or_else(|| self.find(top, 0, least, 0));
        (least != UNUSABLE).then(|| (found(), least))
    }

    // The same without nodes.
    fn least_leaf(&self, turn: usize) -> Option<(usize, u32)> {
        let leaves = self.levels[0].get(..self.weights.len())?;
        let (before, after) = leaves.split_at_checked(turn)?;
        let mut best = (0, UNUSABLE);
        for (leaf, word) in (turn..).zip(after).chain(before.iter().enumerate()) {
            let key = key_of(word.load(Ordering::Relaxed));
            if key < best.1 {
                best = (leaf, key);
                if key == 0 {
                    break;
                }
            }
        }
        (best.1 != UNUSABLE).then_some(best)
    }

    // The first leaf from `from` on, below a node, along keys no higher than `key`.
    fn find(&self, number: usize, index: usize, key: u32, from: usize) -> Option<usize> {
        if number == 0 {
            return Some(index);
        }
        let span = FAN.pow(number as u32 - 1); // leaves below one child
        let first = (from / span).max(index * FAN);
        let children = &self.levels[number - 1][..(index + 1) * FAN];
        for (child, word) in children.iter().enumerate().skip(first) {
            if key_of(word.load(Ordering::Relaxed)) <= key
                && let Some(leaf) = self.find(number - 1, child, key, from)
            {
                return Some(leaf);
            }
        }
        None
    }

    // Some node at `key` has no child at it: raises the lowest such node and those above.
    fn mend(&self, key: u32) {
        let mut path = vec![];
        let mut parent = 0;
        for number in (1..self.levels.len()).rev() {
            let mut children = parent * FAN..(parent + 1) * FAN;
            let low = |&child: &usize| key_of(self.levels[number][child].load(Ordering::SeqCst)) <= key;
            let Some(child) = children.find(low) else { break };
            path.push((number, child));
            parent = child;
        }
        for (number, index) in path.into_iter().rev() {
            self.recompute(number, index, 0);
        }
    }

    // All servers, once, from `turn` on.
    fn scan(&self, loads: &Loads, turn: usize, skip: impl Fn(usize) -> bool) -> Option<(usize, u32)> {
        let count = self.weights.len();
        let mut best: Option<(usize, u32)> = None;
        for server in (0..count).map(|i| (turn + i) % count) {
            let key = key(loads.get(server), self.weight(server));
            if key < best.map_or(UNUSABLE, |b| b.1) && !skip(server) {
                best = Some((server, key));
            }
        }
        best
    }

    fn pass(&self, server: usize, key: u32) -> (usize, u32) {
        let next = if server + 1 < self.weights.len() { server + 1 } else { 0 };
        self.turn().store(next, Ordering::Relaxed);
        (server, key)
    }

    fn turn(&self) -> &AtomicUsize {
        &self.turns[base::worker::number() % TURNS].0
    }

    // Two workers at the same place write the same cache lines: who loses a race goes a good part further.
    fn move_away(&self) {
        let turn = self.turn().load(Ordering::Relaxed) + self.weights.len() * 5 / 13;
        self.turn().store(turn % self.weights.len().max(1), Ordering::Relaxed);
    }

    fn weight(&self, server: usize) -> u32 {
        self.weights.get(server).copied().unwrap_or(0)
    }
}

// Load per weight, in 1/4096; weights count sixteenths.
fn key(load: u32, weight: u32) -> u32 {
    if weight == 0 {
        return UNUSABLE;
    }
    let key = match weight {
        16 => u64::from(load) * 256, // the weight that most servers have needs no division
        _ => u64::from(load) * 4096 / u64::from(weight),
    };
    key.min(u64::from(UNUSABLE - 1)) as u32
}

fn level(keys: &[u32]) -> Box<[AtomicU64]> {
    keys.iter().map(|&key| AtomicU64::new(u64::from(key))).collect()
}

fn key_of(word: u64) -> u32 {
    word as u32
}

// Stores a key under a new version, without a mark.
fn swap(word: &AtomicU64, seen: u64, key: u32) -> bool {
    let version = (seen | (VERSION - 1)).wrapping_add(1);
    let new = version | u64::from(key);
    word.compare_exchange(seen, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

#[cfg(test)]
#[path = "leastconn_tests.rs"]
mod tests;
