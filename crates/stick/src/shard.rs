//! A part of a table: the entries whose hashes fall into it, found by key and by age.
//!
//! Age is a heap with one record for each entry. A record says when its entry was touched as far as the heap knows;
//! using an entry only stores a number in it. Who wants the oldest takes the top record, and when its entry was used
//! since, puts it back where it belongs now: records are never later than the truth, so the first one that still is
//! true names the oldest entry.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hashbrown::HashTable;

use crate::entry::Entry;

/// A record of the heap; the greatest is the oldest.
#[derive(Debug)]
struct Age {
    touched: Reverse<u64>,
    entry: Arc<Entry>,
}

impl Ord for Age {
    fn cmp(&self, other: &Age) -> Ordering {
        self.touched.cmp(&other.touched)
    }
}

impl PartialOrd for Age {
    fn partial_cmp(&self, other: &Age) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Age {
    fn eq(&self, other: &Age) -> bool {
        self.touched == other.touched
    }
}

impl Eq for Age {}

/// The entries of one part.
#[derive(Debug, Default)]
pub struct Shard {
    entries: HashTable<Arc<Entry>>,
    ages: BinaryHeap<Age>,
}

/// Records of removed entries that may stay before the heap is cleaned.
const LITTER: usize = 64;

impl Shard {
    /// The entry of a key.
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&Arc<Entry>> {
        self.entries.find(hash, |e| *e.key == *key)
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// Adds an entry whose key is not there.
    pub fn insert(&mut self, entry: Arc<Entry>) {
        if self.ages.len() > 2 * self.entries.len() + LITTER {
            self.ages.retain(|age| !age.entry.gone.load(Relaxed));
        }
        self.ages.push(Age { touched: Reverse(entry.touched()), entry: entry.clone() });
        self.entries.insert_unique(entry.hash, entry, |e| e.hash);
    }

    /// Takes an entry out unless somebody holds it; whether it is out.
    pub fn remove(&mut self, entry: &Arc<Entry>) -> bool {
        if entry.uses.load(Relaxed) > 0 {
            return false;
        }
        let Ok(found) = self.entries.find_entry(entry.hash, |e| Arc::ptr_eq(e, entry)) else { return false };
        found.remove();
        entry.gone.store(true, Relaxed);
        true
    }

    /// When the oldest entry was touched that nobody holds. Held ones are put behind all others: they are touched
    /// when they are let go.
    pub fn oldest(&mut self, now: u64) -> Option<u64> {
        loop {
            let mut top = self.ages.peek_mut()?;
            let known = top.touched.0;
            if top.entry.gone.load(Relaxed) {
                PeekMut::pop(top);
            } else if top.entry.uses.load(Relaxed) > 0 {
                if known > now {
                    return None;
                }
                // Its place is found again when the reference is dropped.
                top.touched = Reverse(now + 1);
            } else if known != top.entry.touched() {
                top.touched = Reverse(top.entry.touched());
            } else {
                return Some(known);
            }
        }
    }

    /// Takes the oldest entry out if it was touched at `until` or before; whether it was.
    pub fn pop_oldest(&mut self, now: u64, until: u64) -> bool {
        if self.oldest(now).is_none_or(|touched| touched > until) {
            return false;
        }
        // What `oldest` found is at the top.
        self.ages.pop().is_some_and(|age| self.remove(&age.entry))
    }
}
