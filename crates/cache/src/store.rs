//! The store.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use parking_lot::{Mutex, MutexGuard};

use crate::fetch::{Fetch, Fetches};
use crate::shard::{Kept, Place, Shard, links_size};
use crate::{Entry, Hints, OVERHEAD, Settings, blocks};

const SHARDS: usize = 16;

/// What a key leads to.
#[derive(Debug)]
pub enum Found<M> {
    /// An entry that is good.
    Fresh(Arc<Entry<M>>),
    /// One that was good, and may be of use still.
    Stale(Arc<Entry<M>>),
    /// Nothing but links: of an entry that went, or is no longer good.
    Links(Arc<[u8]>),
    /// Nothing.
    Nothing,
}

/// What is shown of an entry (`show cache`).
#[derive(Clone, Debug)]
pub struct Row<T> {
    /// A number that its key has.
    pub hash: u64,
    /// One that no other entry has.
    pub number: u64,
    /// What its user tells of it; `None` for links.
    pub told: Option<T>,
    /// Bytes.
    pub size: usize,
    /// Blocks.
    pub blocks: usize,
    /// Who serves it now.
    pub users: usize,
    /// Good until then, in seconds of its user's clock.
    pub expires: u64,
}

/// All that a `cache` section keeps.
#[derive(Debug)]
pub struct Store<M> {
    settings: Settings,
    shards: [Mutex<Shard<M>>; SHARDS],
    /// Keys come from clients: which of them share a place must not be known outside.
    seed: u64,
    /// Blocks taken, by what is being received too.
    used: AtomicUsize,
    /// Of these, by links alone.
    links: AtomicUsize,
    /// Counts whatever is put or asked for.
    clock: AtomicU64,
    fetches: Fetches,
}

impl<M> Store<M> {
    /// An empty one.
    pub fn new(settings: Settings) -> Store<M> {
        Store {
            settings,
            shards: Default::default(),
            seed: RandomState::new().hash_one("cache"),
            used: AtomicUsize::new(0),
            links: AtomicUsize::new(0),
            clock: AtomicU64::new(1),
            fetches: Fetches::default(),
        }
    }

    /// What its section says.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What `key` leads to at `now` (seconds) for somebody whom an entry `suits`.
    pub fn find(&self, key: &[u8], now: u64, suits: impl Fn(&M) -> bool) -> Found<M> {
        let hash = self.hash(key);
        let mut shard = self.shard(hash);
        let Some(list) = shard.places.get_mut(&hash) else { return Found::Nothing };
        let (mut links, mut stale) = (None, None);
        for place in list.iter_mut().filter(|place| place.kept.key() == key) {
            match &place.kept {
                Kept::Whole(entry) if now >= entry.expires => {
                    if now < entry.expires.saturating_add(self.settings.stale()) && suits(&entry.meta) {
                        stale = Some(entry.clone());
                    }
                    links = links.or((!entry.hints.is_empty()).then(|| Arc::from(&*entry.hints)));
                }
                Kept::Whole(entry) if suits(&entry.meta) => {
                    let entry = entry.clone();
                    place.used = self.clock.fetch_add(1, Relaxed);
                    let used = place.used;
                    shard.touch(hash, used);
                    return Found::Fresh(entry);
                }
                Kept::Whole(_) => {}
                Kept::Links { hints, .. } => links = links.or(Some(hints.clone())),
            }
        }
        stale.map_or_else(|| links.map_or(Found::Nothing, Found::Links), Found::Stale)
    }

    /// Forgets all that is kept under `key`.
    pub fn forget(&self, key: &[u8]) {
        let hash = self.hash(key);
        let mut shard = self.shard(hash);
        self.remove(&mut shard, hash, |place| place.kept.key() == key);
    }

    /// Forgets what is kept under the keys that are `meant`; how many entries those were.
    pub fn clear(&self, meant: impl Fn(&[u8]) -> bool) -> usize {
        let mut gone = 0;
        for shard in &self.shards {
            let mut shard = shard.lock();
            let hashes: Vec<u64> = shard.places.keys().copied().collect();
            for hash in hashes {
                self.remove(&mut shard, hash, |place| {
                    let is_meant = meant(place.kept.key());
                    gone += usize::from(is_meant);
                    is_meant
                });
            }
        }
        gone
    }

    /// Says that what is under `key` is being fetched; `None` if somebody said so before.
    pub fn fetch(&self, key: &[u8]) -> Option<Fetch> {
        self.fetches.begin(key)
    }

    /// Ready when nobody fetches what is under `key`.
    pub fn poll_fetched(&self, key: &[u8], cx: &mut Context<'_>) -> Poll<()> {
        self.fetches.poll_over(key, cx)
    }

    /// Whether somebody fetches for this one.
    pub fn is_fetched_for(&self, fetch: &Fetch) -> bool {
        self.fetches.has(fetch)
    }

    /// Begins to receive an entry of `head` bytes and perhaps so many of body. `None` if it is too long, or
    /// finds no room.
    pub fn begin(self: &Arc<Self>, key: &[u8], head: usize, body: Option<u64>) -> Option<Writer<M>> {
        let most = self.settings.most().checked_sub(head)?;
        let expected = match body {
            Some(length) => usize::try_from(length).ok().filter(|length| *length <= most)?,
            None => 0,
        };
        let mut writer = Writer { store: self.clone(), key: key.into(), head, body: Vec::new(), blocks: 0 };
        writer.grow(expected).then_some(())?;
        writer.body.reserve_exact(expected);
        Some(writer)
    }

    /// Puts another entry with the body of `old` in its place: `size` bytes with its head and [`OVERHEAD`],
    /// good until `expires` (seconds). Where the old one went meanwhile, or there is no room, nobody finds
    /// it.
    pub fn renew(&self, old: &Arc<Entry<M>>, meta: M, size: usize, expires: u64) -> Arc<Entry<M>> {
        let (key, body, hints) = (old.key.clone(), old.body.clone(), old.hints.clone());
        let entry = Arc::new(Entry { key, meta, body, hints, expires, size });
        let hash = self.hash(&old.key);
        let mut there = false;
        self.remove(&mut self.shard(hash), hash, |place| {
            let is_old = matches!(&place.kept, Kept::Whole(known) if Arc::ptr_eq(known, old));
            there |= is_old;
            is_old
        });
        if there && self.take_room(blocks(size)) {
            self.put(hash, Kept::Whole(entry.clone()));
        }
        entry
    }

    /// Keeps the links of a response and nothing else of it.
    pub fn keep_links(&self, key: &[u8], hints: &[u8], expires: u64) {
        let hash = self.hash(key);
        self.remove(&mut self.shard(hash), hash, |place| place.kept.key() == key);
        let kept = Kept::Links { key: key.into(), hints: hints.into(), expires };
        let size = blocks(kept.size());
        if self.take_room(size) {
            self.links.fetch_add(size, Relaxed);
            self.put(hash, kept);
        }
    }

    /// Shows what there is in a part of it; `tell` makes something of what belongs to an entry. `None` behind
    /// the last part.
    pub fn rows_of<T>(&self, part: usize, tell: impl Fn(&M) -> T) -> Option<Vec<Row<T>>> {
        let mut rows = Vec::new();
        for (hash, list) in &self.shards.get(part)?.lock().places {
            rows.extend(list.iter().map(|place| self.row(*hash, place, &tell)));
        }
        Some(rows)
    }

    /// The same of all parts.
    #[cfg(test)]
    pub(crate) fn rows<T>(&self, tell: impl Fn(&M) -> T) -> Vec<Row<T>> {
        (0..SHARDS).filter_map(|part| self.rows_of(part, &tell)).flatten().collect()
    }

    fn row<T>(&self, hash: u64, place: &Place<M>, tell: impl Fn(&M) -> T) -> Row<T> {
        let (kept, number) = (&place.kept, place.number);
        let size = kept.size();
        let (told, users, expires) = match kept {
            Kept::Whole(entry) => (Some(tell(&entry.meta)), Arc::strong_count(entry) - 1, entry.expires),
            Kept::Links { expires, .. } => (None, 0, *expires),
        };
        Row { hash, number, told, size, blocks: blocks(size), users, expires }
    }

    /// Blocks that are free, or held by entries that nobody serves now.
    pub fn available(&self) -> usize {
        let mut held = 0;
        for shard in &self.shards {
            let shard = shard.lock();
            let rows = shard.places.values().flatten().map(|place| self.row(0, place, |_| ()));
            held += rows.filter(|row| row.users > 0).map(|row| row.blocks).sum::<usize>();
        }
        self.settings.blocks.saturating_sub(held)
    }

    /// Blocks taken by entries and by what is being received.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        twox_hash::XxHash3_64::oneshot_with_seed(self.seed, key)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<M>> {
        // The map takes the low bits.
        self.shards[(hash >> 60) as usize % SHARDS].lock()
    }

    fn put(&self, hash: u64, kept: Kept<M>) {
        let used = self.clock.fetch_add(1, Relaxed);
        let mut shard = self.shard(hash);
        shard.places.entry(hash).or_default().push(Place { kept, used, number: used });
        shard.touch(hash, used);
    }

    fn remove(&self, shard: &mut Shard<M>, hash: u64, mut which: impl FnMut(&Place<M>) -> bool) {
        let Some(list) = shard.places.get_mut(&hash) else { return };
        list.retain(|place| {
            let stays = !which(place);
            if !stays {
                self.count_out(&place.kept);
            }
            stays
        });
        if list.is_empty() {
            shard.places.remove(&hash);
        }
    }

    /// Whether one more entry of `key` may be there. What is no longer good at `now` makes place.
    fn has_place(&self, shard: &mut Shard<M>, hash: u64, key: &[u8], now: u64) -> bool {
        let is_full = |shard: &Shard<M>| {
            let list = shard.places.get(&hash).map_or(&[][..], Vec::as_slice);
            let others = list.iter().filter(|place| place.kept.key() == key).count();
            self.settings.vary && others >= self.settings.max_secondary
        };
        if is_full(shard) && self.settings.standard {
            let late = |kept: &Kept<M>| matches!(kept, Kept::Whole(entry) if entry.expires <= now);
            self.remove(shard, hash, |place| place.kept.key() == key && late(&place.kept));
        }
        !is_full(shard)
    }

    fn count_out(&self, kept: &Kept<M>) {
        let size = blocks(kept.size());
        self.used.fetch_sub(size, Relaxed);
        if matches!(kept, Kept::Links { .. }) {
            self.links.fetch_sub(size, Relaxed);
        }
    }

    /// Takes so many blocks, if need be those of the oldest entries. False if there are not as many.
    fn take_room(&self, wanted: usize) -> bool {
        loop {
            let fits = |used: usize| Some(used + wanted).filter(|sum| *sum <= self.settings.blocks);
            if self.used.fetch_update(Relaxed, Relaxed, fits).is_ok() {
                return true;
            }
            if wanted > self.settings.blocks || !self.drop_oldest() {
                return false;
            }
        }
    }

    /// Lets the oldest entry go, but for its links where they may stay; links go when nothing else is left,
    /// or when they take more than their share. False if there is nothing.
    fn drop_oldest(&self) -> bool {
        let share = match self.settings.hints {
            Hints::On { ratio } => self.settings.blocks * usize::from(ratio) / 100,
            Hints::Off | Hints::Only => 0,
        };
        let crowded = share > 0 && self.links.load(Relaxed) > share;
        let whole = (!crowded).then(|| self.find_oldest(|shard| shard.oldest_whole())).flatten();
        let Some((index, number)) = whole.or_else(|| self.find_oldest(Shard::oldest)) else { return false };
        // Somebody else may have been quicker.
        let Some((hash, place)) = self.shards[index].lock().take(number) else { return true };
        self.count_out(&place.kept);
        if let Kept::Whole(entry) = &place.kept
            && share > 0
            && !entry.hints.is_empty()
        {
            self.keep_rest(hash, entry);
        }
        true
    }

    /// Keeps the links of an entry that goes.
    fn keep_rest(&self, hash: u64, entry: &Entry<M>) {
        let size = blocks(links_size(&entry.hints));
        self.used.fetch_add(size, Relaxed);
        self.links.fetch_add(size, Relaxed);
        let hints = Arc::from(&*entry.hints);
        self.put(hash, Kept::Links { key: entry.key.clone(), hints, expires: entry.expires });
    }

    fn find_oldest(&self, of: impl Fn(&mut Shard<M>) -> Option<u64>) -> Option<(usize, u64)> {
        let numbers =
            self.shards.iter().enumerate().filter_map(|(at, shard)| Some((at, of(&mut shard.lock())?)));
        numbers.min_by_key(|(_, number)| *number)
    }
}

/// An entry that is being received. Dropped, it gives its room back.
#[derive(Debug)]
pub struct Writer<M> {
    store: Arc<Store<M>>,
    key: Box<[u8]>,
    head: usize,
    body: Vec<u8>,
    /// Taken for it.
    blocks: usize,
}

impl<M> Writer<M> {
    /// More of the body. False if it is too long now, or finds no room: drop it then.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let length = self.body.len() + bytes.len();
        if self.head + length > self.store.settings.most() || !self.grow(length) {
            return false;
        }
        self.body.extend_from_slice(bytes);
        true
    }

    /// So many bytes more belong to its head. False as with [`Writer::push`].
    #[must_use]
    pub fn add(&mut self, bytes: usize) -> bool {
        self.head += bytes;
        self.head + self.body.len() <= self.store.settings.most() && self.grow(self.body.len())
    }

    fn grow(&mut self, body: usize) -> bool {
        let needed = blocks(OVERHEAD + self.head + body);
        let more = needed.saturating_sub(self.blocks);
        if more > 0 && !self.store.take_room(more) {
            return false;
        }
        self.blocks += more;
        true
    }

    /// It is whole: from now on it is found, in place of those under its key that are the `same`, until
    /// `expires` (seconds). Nothing is kept where too many others are there at `now`.
    pub fn finish(
        mut self,
        meta: M,
        hints: Box<[u8]>,
        (now, expires): (u64, u64),
        same: impl Fn(&M) -> bool,
    ) {
        let store = self.store.clone();
        let hash = store.hash(&self.key);
        let replaced = |place: &Place<M>| {
            place.kept.key() == &*self.key
                && match &place.kept {
                    Kept::Whole(entry) => {
                        entry.expires.saturating_add(store.settings.stale()) <= now || same(&entry.meta)
                    }
                    Kept::Links { .. } => true,
                }
        };
        {
            let mut shard = store.shard(hash);
            store.remove(&mut shard, hash, replaced);
            if !store.has_place(&mut shard, hash, &self.key, now) {
                return;
            }
        }
        self.body.shrink_to_fit();
        let size = OVERHEAD + self.head + self.body.len();
        // What a length promised and did not hold is given back.
        let spare = self.blocks.saturating_sub(blocks(size));
        store.used.fetch_sub(spare, Relaxed);
        self.blocks = 0;
        let (key, body) = (std::mem::take(&mut self.key), Arc::new(std::mem::take(&mut self.body)));
        store.put(hash, Kept::Whole(Arc::new(Entry { key, meta, body, hints, expires, size })));
    }
}

impl<M> Drop for Writer<M> {
    fn drop(&mut self) {
        self.store.used.fetch_sub(self.blocks, Relaxed);
    }
}
