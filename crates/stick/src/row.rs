//! One entry, with the lock of its shard.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use parking_lot::MutexGuard;
use twox_hash::XxHash64;

use crate::data::{Data, Shape};
use crate::freq::{self, RawRate};
use crate::key::KeyKind;
use crate::settings::Settings;
use crate::shard::Shard;
use crate::updates::Bell;

/// An entry, locked for as long as this lives: keep it short, and ask the same table for nothing meanwhile.
pub struct Row<'t> {
    pub(crate) settings: &'t Settings,
    /// Entries of the table.
    pub(crate) used: &'t AtomicU32,
    /// The number of the latest record in the log of its shard.
    pub(crate) last: &'t AtomicU32,
    /// Rung when there is a new one.
    pub(crate) bell: &'t Bell,
    /// The number of its shard.
    pub(crate) part: u32,
    pub(crate) shard: MutexGuard<'t, Shard>,
    pub(crate) place: u32,
    pub(crate) now: u64,
    /// Peers are to be told.
    pub(crate) changed: bool,
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        if self.changed && self.settings.peers.is_some() {
            let Shard { log, slab, .. } = &mut *self.shard;
            if let Some(number) = log.note(slab, self.place) {
                self.last.store(number, Relaxed);
                self.bell.ring();
            }
        }
    }
}

/// What it holds, but not where.
impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.shard.slab.row(self.place);
        let (touched, uses) = (self.touched(), self.uses());
        let mut out = f.debug_struct("Row");
        out.field("key", &self.key()).field("touched", &touched).field("uses", &uses);
        out.field("cells", &cells).field("server", &self.server()).finish()
    }
}

fn load(cell: &[u8]) -> u64 {
    match cell.first_chunk() {
        Some(long) => u64::from_ne_bytes(*long),
        None => cell.first_chunk().map_or(0, |count| u32::from_ne_bytes(*count).into()),
    }
}

/// What does not fit a number of 32 bits is cut.
fn store(cell: &mut [u8], value: u64) {
    match cell.first_chunk_mut() {
        Some(long) => *long = value.to_ne_bytes(),
        None => {
            if let Some(count) = cell.first_chunk_mut() {
                *count = (value as u32).to_ne_bytes();
            }
        }
    }
}

impl Row<'_> {
    /// The value of an element: `None` when the table does not store it.
    pub fn get(&self, data: Data, index: usize) -> Option<u64> {
        let (column, at) = self.settings.layout.find(data, index)?;
        let cell = self.shard.slab.row(self.place).get(at)?;
        match column.data.shape() {
            Shape::Rate => Some(freq::read(cell, self.now, column.period)),
            Shape::Text => None,
            _ => Some(load(cell)),
        }
    }

    /// Adds to a counter or a rate; nothing happens where it is not stored. The new value.
    pub fn add(&mut self, data: Data, index: usize, n: u64) -> Option<u64> {
        let (column, at) = self.settings.layout.find(data, index)?;
        self.changed = true;
        let cell = self.shard.slab.row_mut(self.place).get_mut(at)?;
        match column.data.shape() {
            Shape::Rate => {
                freq::add(cell, self.now, column.period, n);
                Some(freq::read(cell, self.now, column.period))
            }
            Shape::Text => None,
            _ => {
                store(cell, load(cell).wrapping_add(n));
                Some(load(cell))
            }
        }
    }

    /// Takes one off a counter, down to zero.
    pub fn decrement(&mut self, data: Data) {
        if let Some((_, at)) = self.settings.layout.find(data, 0)
            && let Some(cell) = self.shard.slab.row_mut(self.place).get_mut(at)
        {
            store(cell, load(cell).saturating_sub(1));
            self.changed = true;
        }
    }

    /// Sets an element (numbers of 32 bits are cut); whether it is stored.
    pub fn set(&mut self, data: Data, index: usize, value: u64) -> bool {
        let Some((column, at)) = self.settings.layout.find(data, index) else { return false };
        let Some(cell) = self.shard.slab.row_mut(self.place).get_mut(at) else { return false };
        match column.data.shape() {
            Shape::Rate => freq::set(cell, self.now, value),
            _ => store(cell, value),
        }
        self.changed = true;
        true
    }

    /// A rate as it is kept; `None` when the table does not store it.
    pub fn rate(&self, data: Data, index: usize) -> Option<RawRate> {
        let (column, at) = self.settings.layout.find(data, index)?;
        let cell = self.shard.slab.row(self.place).get(at)?;
        (column.data.shape() == Shape::Rate).then(|| freq::tell(cell, self.now))
    }

    /// Sets a rate to what a peer tells; whether it is stored.
    pub fn set_rate(&mut self, data: Data, index: usize, rate: RawRate) -> bool {
        let Some((column, at)) = self.settings.layout.find(data, index) else { return false };
        let Some(cell) = self.shard.slab.row_mut(self.place).get_mut(at) else { return false };
        let is_one = column.data.shape() == Shape::Rate;
        if is_one {
            freq::learn(cell, self.now, rate);
        }
        is_one
    }

    /// Forgets the server (`server_key`).
    pub fn clear_server(&mut self) {
        self.shard.slab.clear_server(self.place);
    }

    /// It was used so many milliseconds ago, as a peer tells.
    pub fn set_idle(&mut self, idle: u64) {
        self.shard.age(self.place, self.now.saturating_sub(idle));
    }

    /// It was changed here, and peers are told or were told.
    pub fn is_noted(&self) -> bool {
        self.shard.slab.number(self.place) != 0
    }

    /// What was done to it was learned from a peer: nobody is told of it.
    pub fn keep_quiet(&mut self) {
        self.changed = false;
    }

    /// The server (`server_key`), if one was noted.
    pub fn server(&self) -> Option<&Arc<str>> {
        self.shard.slab.server(self.place)
    }

    /// Notes the server where the table stores `server_key`.
    pub fn set_server(&mut self, key: &Arc<str>) {
        self.changed = true;
        self.shard.slab.set_server(self.place, key);
    }

    /// In which of so many groups its key is, counted from 1: as HAProxy divides keys among peers (`shards`).
    pub fn group(&self, groups: u32) -> u32 {
        let Some(groups) = NonZero::new(u64::from(groups)) else { return 0 };
        let seed = XxHash64::oneshot(0, self.settings.name.as_bytes());
        let key = self.key();
        let hash = match (self.settings.kind, key.first_chunk::<4>()) {
            // HAProxy looks at a number as its machine has it.
            (KeyKind::Integer, Some(number)) => {
                XxHash64::oneshot(seed, &u32::from_be_bytes(*number).to_le_bytes())
            }
            _ => XxHash64::oneshot(seed, key),
        };
        (hash % groups) as u32 + 1
    }

    /// Whether its key is a text, of any length.
    pub fn is_text(&self) -> bool {
        self.settings.kind.width().is_none()
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.shard.slab.key(self.place)
    }

    /// How many hold it now.
    pub fn uses(&self) -> u32 {
        self.shard.slab.head(self.place).uses
    }

    /// A number that no other entry of the table has as long as this one is there.
    pub fn id(&self) -> u64 {
        u64::from(self.part) << 32 | u64::from(self.place)
    }

    /// It counts as used now.
    pub fn touch(&mut self) {
        self.changed = true;
        self.shard.touch(self.place, self.now);
    }

    /// Milliseconds since it was used.
    pub fn idle(&self) -> u64 {
        self.now.saturating_sub(self.touched())
    }

    /// Milliseconds until it expires; 0 where entries don't.
    pub fn expires_in(&self) -> u64 {
        match self.settings.expire {
            0 => 0,
            expire => (self.touched() + expire).saturating_sub(self.now),
        }
    }

    fn touched(&self) -> u64 {
        self.shard.slab.head(self.place).touched
    }

    /// Removes it unless somebody holds it; whether it is out.
    pub fn remove(mut self) -> bool {
        let out = self.shard.remove(self.place);
        self.used.fetch_sub(u32::from(out), Relaxed);
        self.changed = false;
        out
    }
}
