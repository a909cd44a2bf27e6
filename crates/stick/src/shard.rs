//! A part of a table: the entries whose hashes fall into it, found by key and by age.
//!
//! Entries stand in a list from the one used longest ago to the latest. Who wants the oldest takes the first;
//! one that somebody holds then steps aside until it is let go, so that it is met once, however long that is.

use hashbrown::HashTable;

use crate::key::KeyKind;
use crate::layout::Layout;
use crate::slab::{ASIDE, FREE, NONE, Slab};
use crate::updates::Log;

/// The entries of one part.
#[derive(Debug)]
pub struct Shard {
    index: HashTable<u32>,
    pub(crate) slab: Slab,
    /// What peers are to be told of.
    pub(crate) log: Log,
    seed: u64,
    oldest: u32,
    newest: u32,
    /// The one that found its place in the list last: the next one's is often close to it.
    placed: u32,
}

/// The hash of a key. The seed keeps clients from choosing keys that collide.
pub fn hash(seed: u64, key: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, key)
}

impl Shard {
    /// One without entries.
    pub fn new(kind: KeyKind, layout: &Layout, seed: u64, logged: bool) -> Shard {
        Shard {
            index: HashTable::new(),
            slab: Slab::new(kind, layout, logged),
            log: Log::default(),
            seed,
            oldest: NONE,
            newest: NONE,
            placed: NONE,
        }
    }

    /// The entry of a key.
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.index.find(hash, |place| self.slab.key(*place) == key).copied()
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.index.iter().map(|place| self.slab.key(*place))
    }

    /// Makes an entry of a key that is not there.
    pub fn insert(&mut self, hash: u64, key: &[u8], now: u64) -> Option<u32> {
        let place = self.slab.take(key, now)?;
        let Shard { index, slab, seed, .. } = self;
        index.insert_unique(hash, place, |place| self::hash(*seed, slab.key(*place)));
        self.line_up(place);
        Some(place)
    }

    /// The entry is used now.
    pub fn touch(&mut self, place: u32, now: u64) {
        let head = self.slab.head_mut(place);
        // Most uses fall into the millisecond of the one before.
        if head.touched >= now {
            return;
        }
        head.touched = now;
        if head.newer != ASIDE && place != self.newest {
            self.step_aside(place);
            self.line_up(place);
        }
    }

    /// Somebody holds the entry.
    pub fn hold(&mut self, place: u32) {
        self.slab.head_mut(place).uses += 1;
    }

    /// Somebody lets the entry go.
    pub fn release(&mut self, place: u32) {
        let head = self.slab.head_mut(place);
        head.uses -= 1;
        if head.uses == 0 && head.newer == ASIDE {
            self.line_up(place);
        }
    }

    /// Takes an entry out unless somebody holds it; whether it is out.
    pub fn remove(&mut self, place: u32) -> bool {
        if self.slab.head(place).uses > 0 {
            return false;
        }
        let hash = hash(self.seed, self.slab.key(place));
        let Ok(found) = self.index.find_entry(hash, |known| *known == place) else { return false };
        found.remove();
        self.log.forget(&mut self.slab, place);
        self.step_aside(place);
        self.slab.give(place);
        true
    }

    /// When the oldest entry was touched that nobody holds.
    pub fn oldest(&mut self) -> Option<u64> {
        while self.oldest != NONE {
            let head = self.slab.head(self.oldest);
            if head.uses == 0 {
                return Some(head.touched);
            }
            self.step_aside(self.oldest);
        }
        None
    }

    /// Takes the oldest entry out if it was touched at `until` or before; whether it was.
    pub fn pop_oldest(&mut self, until: u64) -> bool {
        self.oldest().is_some_and(|touched| touched <= until) && self.remove(self.oldest)
    }

    /// The entry was used last at this time, whatever it was before: what a peer says of it.
    pub fn age(&mut self, place: u32, touched: u64) {
        let head = self.slab.head_mut(place);
        head.touched = touched;
        if head.newer != ASIDE {
            self.step_aside(place);
            self.line_up(place);
        }
    }

    /// Takes an entry out of the list.
    fn step_aside(&mut self, place: u32) {
        let head = self.slab.head_mut(place);
        let (older, newer) = (head.older, head.newer);
        (head.older, head.newer) = (NONE, ASIDE);
        if self.placed == place {
            self.placed = older;
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slab.head_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slab.head_mut(newer).older = older,
        }
    }

    /// Puts an entry into the list where it belongs. That is an end of it or close to one: it was used just
    /// now, or stepped aside as the oldest; or it is close to the one before, where a peer teaches in order
    /// of age. So its place is looked for from these three.
    fn line_up(&mut self, place: u32) {
        let touched = self.slab.head(place).touched;
        let (mut older, mut newer, mut near) = (self.newest, self.oldest, self.placed);
        let (older, newer) = loop {
            if older == NONE || self.slab.head(older).touched <= touched {
                break (older, if older == NONE { self.oldest } else { self.slab.head(older).newer });
            }
            if self.slab.head(newer).touched > touched {
                break (self.slab.head(newer).older, newer);
            }
            if near != NONE {
                let (by, next) = (self.slab.head(near).touched, self.slab.head(near).newer);
                // Both neighbours exist: the ends were looked at.
                if by > touched {
                    near = self.slab.head(near).older;
                } else if next < FREE && self.slab.head(next).touched > touched {
                    break (near, next);
                } else {
                    near = if next < FREE { next } else { NONE };
                }
            }
            (older, newer) = (self.slab.head(older).older, self.slab.head(newer).newer);
        };
        // One that is new stands at the end first, then where the peer says: that must not make us forget
        // where the one before was put. The end itself is looked at anyway.
        if newer != NONE {
            self.placed = place;
        }
        let head = self.slab.head_mut(place);
        (head.older, head.newer) = (older, newer);
        match older {
            NONE => self.oldest = place,
            older => self.slab.head_mut(older).newer = place,
        }
        match newer {
            NONE => self.newest = place,
            newer => self.slab.head_mut(newer).older = place,
        }
    }
}
