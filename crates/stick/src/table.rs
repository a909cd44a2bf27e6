//! A table: its shards, its limits, and what may be done with a key.
//!
//! An entry expires when it was not used for the time given and nobody holds it. Nothing wakes up for that:
//! whoever comes across an expired entry takes it for absent, a new entry first takes away some expired ones,
//! and a sweep each second frees the memory of the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use crate::key::KeyKind;
use crate::layout::Layout;
use crate::row::Row;
use crate::settings::Settings;
use crate::shard::{self, Shard};
use crate::updates::{Bell, Cursor};

/// Tables larger than this are cut into shards.
const UNDIVIDED: u32 = 128;
/// Entries of a shard, as far as the number of shards allows: who walks over a table holds one for as long as
/// it takes to note what is in it.
const SHARE: u32 = 4096;
const FEWEST: u32 = 16;
const MOST: u32 = 256;
/// Expired entries that a new one takes away at most.
const TOLL: usize = 2;

/// A stick table.
#[derive(Debug)]
pub struct Table {
    settings: Settings,
    shards: Box<[Part]>,
    seed: u64,
    used: AtomicU32,
    /// Whoever tells peers is told that there is something to tell.
    bell: Bell,
}

/// A shard on cache lines of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Part {
    shard: Mutex<Shard>,
    /// The number of the latest record of its log.
    last: AtomicU32,
}

impl Table {
    /// An empty table. `seed` keeps clients from choosing keys that collide.
    pub fn new(settings: Settings, seed: u64) -> Table {
        let shards = if settings.size > UNDIVIDED { (settings.size / SHARE).clamp(FEWEST, MOST) } else { 1 };
        let logged = settings.peers.is_some();
        let part = |_| Part {
            shard: Mutex::new(Shard::new(settings.kind, &settings.layout, seed, logged)),
            last: AtomicU32::new(0),
        };
        let shards = (0..shards).map(part).collect();
        Table { settings, shards, seed, used: AtomicU32::new(0), bell: Bell::default() }
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

    /// Places for entries that have memory, and the bytes of one; texts left out.
    pub fn size(&self) -> (usize, usize) {
        let sizes = self.shards.iter().map(|part| part.shard.lock().slab.size());
        sizes.fold((0, 0), |(slots, _), (more, slot)| (slots + more, slot))
    }

    /// The hash of a key and the number of its shard.
    fn hash(&self, key: &[u8]) -> (u64, u32) {
        let hash = shard::hash(self.seed, key);
        // The map takes its bits from both ends of the hash; these are from the middle.
        (hash, ((hash >> 32) % self.shards.len() as u64) as u32)
    }

    pub(crate) fn shard(&self, part: u32) -> MutexGuard<'_, Shard> {
        self.shards[part as usize].shard.lock()
    }

    /// An entry of a shard that is locked.
    pub(crate) fn row<'t>(
        &'t self,
        part: u32,
        shard: MutexGuard<'t, Shard>,
        place: u32,
        now: u64,
    ) -> Row<'t> {
        let Table { settings, used, bell, shards, .. } = self;
        let last = &shards[part as usize].last;
        Row { settings, used, last, bell, part, shard, place, now, changed: false }
    }

    fn is_expired(&self, shard: &Shard, place: u32, now: u64) -> bool {
        let head = shard.slab.head(place);
        let expire = self.settings.expire;
        expire > 0 && head.uses == 0 && now.saturating_sub(head.touched) >= expire
    }

    /// Looks a key up, without touching or holding it.
    pub fn peek(&self, key: &[u8], now: u64) -> Option<Row<'_>> {
        let (hash, part) = self.hash(key);
        let shard = self.shard(part);
        let place = shard.find(hash, key).filter(|place| !self.is_expired(&shard, *place, now))?;
        Some(self.row(part, shard, place, now))
    }

    /// The entry of a number that [`Row::id`] gave.
    pub fn by_id(&self, id: u64, now: u64) -> Option<Row<'_>> {
        let (part, place) = ((id >> 32) as u32, id as u32);
        let shard = self.shards.get(part as usize)?.shard.lock();
        let is_there = shard.slab.has(place) && !self.is_expired(&shard, place, now);
        is_there.then(|| self.row(part, shard, place, now))
    }

    /// Looks a key up, enters it if it is new, and touches it. `None`: there is no room.
    pub(crate) fn entered(&self, key: &[u8], now: u64) -> Option<Row<'_>> {
        let mut row = self.learned(key, now)?;
        row.changed = true;
        Some(row)
    }

    /// The same for what a peer tells: nobody is told of it again.
    pub fn learned(&self, key: &[u8], now: u64) -> Option<Row<'_>> {
        let (hash, part) = self.hash(key);
        {
            let mut shard = self.shard(part);
            if let Some(place) = shard.find(hash, key) {
                if !self.is_expired(&shard, place, now) {
                    shard.touch(place, now);
                    return Some(self.row(part, shard, place, now));
                }
                self.left(shard.remove(place));
            }
        }
        if !self.make_room(now) {
            return None;
        }
        let mut shard = self.shard(part);
        // Somebody may have been faster.
        let place = match shard.find(hash, key) {
            Some(place) => {
                self.left(true);
                shard.touch(place, now);
                place
            }
            None => {
                let Some(place) = shard.insert(hash, key, now) else {
                    self.left(true);
                    return None;
                };
                self.expire(&mut shard, now, TOLL);
                place
            }
        };
        Some(self.row(part, shard, place, now))
    }

    /// An entry is out, or one that was counted did not come in.
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
        while out < max && shard.pop_oldest(until) {
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
            self.purge();
        }
        reserve()
    }

    /// Takes out the oldest entries: one in 256, at least one.
    fn purge(&self) {
        let mut oldest: Vec<Option<u64>> = self.shards.iter().map(|s| s.shard.lock().oldest()).collect();
        for _ in 0..=self.settings.size / 256 {
            let first = oldest.iter().enumerate().filter_map(|(i, age)| age.map(|age| (age, i))).min();
            let Some((_, i)) = first else { return };
            let mut shard = self.shards[i].shard.lock();
            self.left(shard.pop_oldest(u64::MAX));
            oldest[i] = shard.oldest();
        }
    }

    /// Takes expired entries out, at most `max` of each shard; how many were.
    pub fn sweep(&self, now: u64, max: usize) -> usize {
        if self.settings.expire == 0 {
            return 0;
        }
        self.shards.iter().map(|s| self.expire(&mut s.shard.lock(), now, max)).sum()
    }

    /// How many shards it has.
    pub fn parts(&self) -> u32 {
        self.shards.len() as u32
    }

    /// The bell that rings when there is something to tell peers.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// How many changes were noted for peers.
    pub fn changes(&self) -> u64 {
        self.shards.iter().map(|p| u64::from(p.last.load(Relaxed))).sum()
    }

    /// Whether a shard may have something to tell whoever has read so far.
    pub fn has_news(&self, part: u32, cursor: Cursor) -> bool {
        self.shards.get(part as usize).is_some_and(|p| p.last.load(Relaxed) != cursor.number)
    }

    /// Goes over at most `most` entries of a shard that have changed since whoever reads was told last; each
    /// is locked while `each` looks at it. How many there were.
    pub fn news(
        &self,
        part: u32,
        cursor: &mut Cursor,
        now: u64,
        most: usize,
        mut each: impl FnMut(&Row<'_>),
    ) -> usize {
        let mut row = self.row(part, self.shard(part), 0, now);
        let mut told = 0;
        while told < most {
            let Shard { log, slab, .. } = &mut *row.shard;
            let Some(place) = log.next(slab, cursor) else { break };
            row.place = place;
            told += 1;
            if !self.is_expired(&row.shard, place, now) {
                each(&row);
            }
        }
        told
    }

    /// Whoever reads has been told everything of a shard so far by other means.
    pub fn caught_up(&self, part: u32) -> Cursor {
        self.shard(part).log.caught_up()
    }

    /// The places of a shard's entries, those first that were used longest ago.
    pub fn places(&self, part: u32) -> Vec<u32> {
        let shard = self.shard(part);
        let mut places: Vec<u32> = shard.slab.places().collect();
        places.sort_by_cached_key(|place| shard.slab.head(*place).touched);
        places
    }

    /// Goes over the entries of a shard that stand at these places and have not expired.
    pub fn at_places(&self, part: u32, places: &[u32], now: u64, mut each: impl FnMut(&Row<'_>)) {
        let mut row = self.row(part, self.shard(part), 0, now);
        for place in places {
            if row.shard.slab.has(*place) && !self.is_expired(&row.shard, *place, now) {
                row.place = *place;
                each(&row);
            }
        }
    }

    /// A walk over its entries.
    pub fn walk(self: &Arc<Table>) -> Walk {
        Walk { table: self.clone(), shard: 0, noted: Vec::new().into_iter() }
    }
}

/// A walk over the entries of a table, shard by shard and sorted by key within each. It may pause as long as
/// its reader likes and holds no lock meanwhile; what comes and goes then may be seen or not.
#[derive(Debug)]
pub struct Walk {
    table: Arc<Table>,
    shard: u32,
    noted: std::vec::IntoIter<Box<[u8]>>,
}

impl Walk {
    /// The table walked over.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The next entry that has not expired.
    pub fn advance(&mut self, now: u64) -> Option<Row<'_>> {
        let Walk { table, shard, noted } = self;
        loop {
            if let Some(row) = noted.find_map(|key| table.peek(&key, now)) {
                return Some(row);
            }
            if *shard as usize == table.shards.len() {
                return None;
            }
            let mut keys: Vec<Box<[u8]>> = table.shard(*shard).keys().map(Into::into).collect();
            *shard += 1;
            keys.sort_unstable();
            *noted = keys.into_iter();
        }
    }
}
