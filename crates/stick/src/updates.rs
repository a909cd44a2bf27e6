//! What peers have to be told: a log of the entries of each shard that were changed here.
//!
//! A record is a number and a place. An entry has at most one that counts, the latest, whose number it
//! knows; older ones are litter that is swept out when there is much of it. Who reads the log remembers the
//! number that it has read up to, and finds the next by bisection. An entry that was changed again before
//! anybody has read its record needs no other: a key that is used a thousand times between two looks at the
//! log costs one record.

use std::collections::VecDeque;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::slab::Slab;

/// How far somebody has read the log of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The numbering that the number belongs to.
    epoch: u32,
    /// The last record that was read.
    pub(crate) number: u32,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    number: u32,
    place: u32,
}

/// The log of a shard.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// By number.
    records: VecDeque<Record>,
    /// The number of the latest.
    last: u32,
    /// The highest number that anybody has read.
    read: u32,
    /// How often numbering began anew.
    epoch: u32,
    /// Records that don't count any more.
    litter: usize,
}

/// Litter that is left lying around.
const TOLERATED: usize = 64;

impl Log {
    /// An entry has changed. The number of its record if one was made.
    pub fn note(&mut self, slab: &mut Slab, place: u32) -> Option<u32> {
        let known = slab.number(place);
        if known > self.read {
            return None;
        }
        if self.last == u32::MAX {
            self.renumber(slab);
        }
        self.last += 1;
        if slab.set_number(place, self.last) != 0 {
            self.litter += 1;
            self.sweep(slab);
        }
        if self.records.len() == self.records.capacity() {
            // Grown by a quarter: half of what doubling would take lies idle.
            self.records.reserve_exact((self.records.len() / 4).max(16));
        }
        self.records.push_back(Record { number: self.last, place });
        Some(self.last)
    }

    /// An entry is taken out.
    pub fn forget(&mut self, slab: &mut Slab, place: u32) {
        if slab.set_number(place, 0) != 0 {
            self.litter += 1;
            self.sweep(slab);
        }
    }

    fn sweep(&mut self, slab: &Slab) {
        if self.litter > TOLERATED + self.records.len() / 4 {
            self.records.retain(|r| slab.number(r.place) == r.number);
            self.litter = 0;
        }
    }

    /// Numbers have run out: they begin anew, and whoever reads does.
    fn renumber(&mut self, slab: &mut Slab) {
        self.records.retain(|r| slab.number(r.place) == r.number);
        self.litter = 0;
        self.last = 0;
        for record in &mut self.records {
            self.last += 1;
            record.number = self.last;
            slab.set_number(record.place, self.last);
        }
        (self.read, self.epoch) = (0, self.epoch.wrapping_add(1));
    }

    /// The place of the next entry to tell of.
    pub fn next(&mut self, slab: &Slab, cursor: &mut Cursor) -> Option<u32> {
        if cursor.epoch != self.epoch {
            *cursor = Cursor { epoch: self.epoch, number: 0 };
        }
        let mut at = self.records.partition_point(|r| r.number <= cursor.number);
        let found = loop {
            match self.records.get(at) {
                None => break None,
                Some(r) if slab.number(r.place) == r.number => break Some(*r),
                Some(_) => at += 1,
            }
        };
        cursor.number = found.map_or(self.last, |r| r.number);
        self.read = self.read.max(cursor.number);
        found.map(|r| r.place)
    }

    /// Records, litter included.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// A reader that has read everything.
    pub fn caught_up(&mut self) -> Cursor {
        self.read = self.last;
        Cursor { epoch: self.epoch, number: self.last }
    }
}

/// Tells whoever speaks to peers that entries of a table have changed. It rings once, until somebody has
/// heard it.
#[derive(Default)]
pub struct Bell {
    rung: AtomicBool,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").field("rung", &self.rung).finish_non_exhaustive()
    }
}

impl Bell {
    /// Who is to be woken; the first to ask is.
    pub fn attach(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake.set(Box::new(wake));
    }

    /// Something has changed.
    pub(crate) fn ring(&self) {
        if !self.rung.load(SeqCst)
            && !self.rung.swap(true, SeqCst)
            && let Some(wake) = self.wake.get()
        {
            wake();
        }
    }

    /// It was heard: whatever changes from here on rings it again. To be called before the logs are read.
    pub fn heard(&self) {
        self.rung.store(false, SeqCst);
    }
}
