//! A table: its shards, its limits, and what may be done with a key.
//!
//! An entry expires when it was not used for the time given and nobody holds it. Nothing wakes up for that: whoever
//! comes across an expired entry takes it for absent, a new entry first takes away some expired ones, and a sweep
//! each second frees the memory of the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::entry::Entry;
use crate::key::KeyKind;
use crate::layout::Layout;
use crate::shard::Shard;
use crate::track::Tracked;

/// How servers are named in a table (`srvkey`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SrvKey {
    /// By name.
    #[default]
    Name,
    /// By address and port.
    Addr,
}

/// A table as it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name: that of its proxy, or `section/name`.
    pub name: Box<str>,
    /// Kind of keys.
    pub kind: KeyKind,
    /// The most entries.
    pub size: u32,
    /// How long an unused entry stays, ms; 0: until it has to make room.
    pub expire: u64,
    /// New keys are refused when it is full.
    pub nopurge: bool,
    /// Only peers write it.
    pub recv_only: bool,
    /// The table that learns from peers in its place.
    pub write_to: Option<Box<str>>,
    /// How servers are named.
    pub srvkey: SrvKey,
    /// Bytes that count as one in rates of bytes, at least 1.
    pub brates_factor: u32,
    /// The section of peers that it is shared with.
    pub peers: Option<Box<str>>,
    /// What is stored.
    pub layout: Layout,
}

/// Tables larger than this are cut into shards.
const UNDIVIDED: u32 = 1024;
/// Entries of a shard, as far as the number of shards allows: who walks over a table holds one for as long as it takes to
/// note what is in it.
const SHARE: u32 = 4096;
const FEWEST: u32 = 16;
const MOST: u32 = 256;
/// Expired entries that a new one takes away at most.
const TOLL: usize = 2;

/// A stick table.
#[derive(Debug)]
pub struct Table {
    settings: Settings,
    shards: Box<[Mutex<Shard>]>,
    seed: u64,
    used: AtomicU32,
}

impl Table {
    /// An empty table. `seed` keeps clients from choosing keys that collide.
    pub fn new(settings: Settings, seed: u64) -> Table {
        let shards = if settings.size > UNDIVIDED { (settings.size / SHARE).clamp(FEWEST, MOST) } else { 1 };
        Table {
            settings,
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            seed,
            used: AtomicU32::new(0),
        }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it stores.
    pub fn layout(&self) -> &Layout {
        &self.settings.layout
    }

    /// Kind of its keys.
    pub fn kind(&self) -> KeyKind {
        self.settings.kind
    }

    /// Entries in it.
    pub fn used(&self, now: u64) -> u32 {
        self.sweep(now, usize::MAX);
        self.used.load(Relaxed)
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The map takes its bits from both ends of the hash; these are from the middle.
        let at = (hash >> 32) as usize % self.shards.len();
        &self.shards[at]
    }

    fn hash(&self, key: &[u8]) -> u64 {
        twox_hash::XxHash3_64::oneshot_with_seed(self.seed, key)
    }

    fn is_expired(&self, entry: &Entry, now: u64) -> bool {
        self.settings.expire > 0
            && entry.uses() == 0
            && now.saturating_sub(entry.touched()) >= self.settings.expire
    }

    /// Milliseconds until an entry expires; 0 where entries don't.
    pub fn expires_in(&self, entry: &Entry, now: u64) -> u64 {
        match self.settings.expire {
            0 => 0,
            expire => (entry.touched() + expire).saturating_sub(now),
        }
    }

    /// Looks a key up, without touching it, and holds what it finds.
    pub fn find(self: &Arc<Table>, key: &[u8], now: u64) -> Option<Tracked> {
        let hash = self.hash(key);
        let shard = self.shard(hash).lock();
        let entry = shard.find(hash, key).filter(|e| !self.is_expired(e, now))?;
        Some(Tracked::hold(self, entry))
    }

    /// Looks a key up and lets `read` see its entry, without touching or holding it.
    pub fn peek<R>(&self, key: &[u8], now: u64, read: impl FnOnce(&Arc<Entry>) -> R) -> Option<R> {
        let hash = self.hash(key);
        let shard = self.shard(hash).lock();
        let entry = shard.find(hash, key).filter(|e| !self.is_expired(e, now))?.clone();
        drop(shard);
        Some(read(&entry))
    }

    /// Looks a key up, enters it if it is new, touches it and holds it. `None`: there is no room.
    pub fn enter(self: &Arc<Table>, key: &[u8], now: u64) -> Option<Tracked> {
        let hash = self.hash(key);
        {
            let mut shard = self.shard(hash).lock();
            if let Some(entry) = shard.find(hash, key) {
                if !self.is_expired(entry, now) {
                    entry.touch(now);
                    return Some(Tracked::hold(self, entry));
                }
                let entry = entry.clone();
                self.left(shard.remove(&entry));
            }
        }
        if !self.make_room(now) {
            return None;
        }
        let mut shard = self.shard(hash).lock();
        // Somebody may have been faster.
        if let Some(entry) = shard.find(hash, key) {
            self.used.fetch_sub(1, Relaxed);
            entry.touch(now);
            return Some(Tracked::hold(self, entry));
        }
        let entry = Arc::new(Entry::new(key, hash, self.layout(), now));
        shard.insert(entry.clone());
        self.expire(&mut shard, now, TOLL);
        Some(Tracked::hold(self, &entry))
    }

    fn left(&self, out: bool) {
        if out {
            self.used.fetch_sub(1, Relaxed);
        }
    }

    /// Takes expired entries out of a shard, at most `max`.
    fn expire(&self, shard: &mut Shard, now: u64, max: usize) -> usize {
        let Some(until) = now.checked_sub(self.settings.expire).filter(|_| self.settings.expire > 0) else {
            return 0;
        };
        let mut out = 0;
        while out < max && shard.pop_oldest(now, until) {
            self.left(true);
            out += 1;
        }
        out
    }

    /// Reserves the place of a new entry.
    fn make_room(&self, now: u64) -> bool {
        let reserve = || {
            let more = |used: u32| (used < self.settings.size).then_some(used + 1);
            self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
        };
        if reserve() {
            return true;
        }
        if self.sweep(now, usize::MAX) == 0 {
            if self.settings.nopurge {
                return false;
            }
            self.purge(now);
        }
        reserve()
    }

    /// Takes out the oldest entries: one in 256, at least one.
    fn purge(&self, now: u64) {
        let mut oldest: Vec<Option<u64>> = self.shards.iter().map(|s| s.lock().oldest(now)).collect();
        for _ in 0..=self.settings.size / 256 {
            let first = oldest.iter().enumerate().filter_map(|(i, age)| age.map(|age| (age, i))).min();
            let Some((_, i)) = first else { return };
            let mut shard = self.shards[i].lock();
            self.left(shard.pop_oldest(now, u64::MAX));
            oldest[i] = shard.oldest(now);
        }
    }

    /// Takes expired entries out, at most `max` of each shard; how many were.
    pub fn sweep(&self, now: u64, max: usize) -> usize {
        if self.settings.expire == 0 {
            return 0;
        }
        self.shards.iter().map(|s| self.expire(&mut s.lock(), now, max)).sum()
    }

    /// Removes an entry unless somebody holds it; whether it is out.
    pub fn remove(&self, entry: &Arc<Entry>) -> bool {
        let out = self.shard(entry.hash).lock().remove(entry);
        self.left(out);
        out
    }

    /// A walk over its entries.
    pub fn walk(self: &Arc<Table>) -> Walk {
        Walk { table: self.clone(), shard: 0, noted: Vec::new().into_iter() }
    }
}

/// A walk over the entries of a table, shard by shard and sorted by key within each. It may pause as long as its reader
/// likes and holds no lock meanwhile; what comes and goes then may be seen or not.
#[derive(Debug)]
pub struct Walk {
    table: Arc<Table>,
    shard: usize,
    noted: std::vec::IntoIter<Arc<Entry>>,
}

impl Walk {
    /// The table walked over.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The next entry that has not expired.
    pub fn advance(&mut self, now: u64) -> Option<Arc<Entry>> {
        let table = &*self.table;
        let is_there = |e: &Entry| !e.gone.load(Relaxed) && !table.is_expired(e, now);
        loop {
            if let Some(entry) = self.noted.find(|e| is_there(e)) {
                return Some(entry);
            }
            let shard = table.shards.get(self.shard)?;
            self.shard += 1;
            let mut noted: Vec<_> = shard.lock().iter().cloned().collect();
            noted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            self.noted = noted.into_iter();
        }
    }
}
