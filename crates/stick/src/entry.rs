//! One entry: its key, its row, when it was touched and who holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use crate::data::{Data, Shape};
use crate::freq;
use crate::layout::Layout;

/// One entry of a table.
#[derive(Debug)]
pub struct Entry {
    pub(crate) key: Box<[u8]>,
    pub(crate) hash: u64,
    /// When it was used last, ms.
    pub(crate) touched: AtomicU64,
    /// How many hold it. Raised only under the lock of its shard.
    pub(crate) uses: AtomicU32,
    /// It was taken out of its table.
    pub(crate) gone: AtomicBool,
    cells: Mutex<Cells>,
}

/// The figures of an entry.
#[derive(Debug)]
struct Cells {
    words: Box<[u64]>,
    server: Option<Arc<str>>,
}

impl Entry {
    pub(crate) fn new(key: &[u8], hash: u64, layout: &Layout, now: u64) -> Entry {
        Entry {
            key: key.into(),
            hash,
            touched: AtomicU64::new(now),
            uses: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            cells: Mutex::new(Cells { words: vec![0; layout.words()].into(), server: None }),
        }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// How many hold it now.
    pub fn uses(&self) -> u32 {
        self.uses.load(Relaxed)
    }

    /// Its row, locked.
    pub fn row<'e>(&'e self, layout: &'e Layout, now: u64) -> Row<'e> {
        Row { layout, cells: self.cells.lock(), now }
    }

    /// Milliseconds since it was used.
    pub fn idle(&self, now: u64) -> u64 {
        now.saturating_sub(self.touched())
    }

    pub(crate) fn touch(&self, now: u64) {
        // Most uses fall into the millisecond of the one before.
        if self.touched() < now {
            self.touched.fetch_max(now, Relaxed);
        }
    }

    pub(crate) fn touched(&self) -> u64 {
        self.touched.load(Relaxed)
    }
}

/// The figures of an entry, locked for as long as this lives: keep it short.
pub struct Row<'e> {
    layout: &'e Layout,
    cells: MutexGuard<'e, Cells>,
    now: u64,
}

impl Row<'_> {
    /// The value of an element: `None` when the table does not store it.
    pub fn get(&self, data: Data, index: usize) -> Option<u64> {
        let (column, at) = self.layout.find(data, index)?;
        let words = self.cells.words.get(at)?;
        Some(match column.data.shape() {
            Shape::Rate => freq::read(words, self.now, column.period),
            _ => words.first().copied()?,
        })
    }

    /// Adds to a counter or a rate; nothing happens where it is not stored. The new value.
    pub fn add(&mut self, data: Data, index: usize, n: u64) -> Option<u64> {
        let (column, at) = self.layout.find(data, index)?;
        let words = self.cells.words.get_mut(at)?;
        match column.data.shape() {
            Shape::Rate => {
                freq::add(words, self.now, column.period, n);
                return Some(freq::read(words, self.now, column.period));
            }
            Shape::Count => words.iter_mut().for_each(|w| *w = u64::from((*w).wrapping_add(n) as u32)),
            _ => words.iter_mut().for_each(|w| *w = w.wrapping_add(n)),
        }
        words.first().copied()
    }

    /// Takes one off a counter, down to zero.
    pub fn decrement(&mut self, data: Data) {
        if let Some((_, at)) = self.layout.find(data, 0)
            && let Some(word) = self.cells.words.get_mut(at).and_then(|w| w.first_mut())
        {
            *word = word.saturating_sub(1);
        }
    }

    /// Sets an element (numbers of 32 bits are cut); whether it is stored.
    pub fn set(&mut self, data: Data, index: usize, value: u64) -> bool {
        let Some((column, at)) = self.layout.find(data, index) else { return false };
        let Some(words) = self.cells.words.get_mut(at) else { return false };
        match column.data.shape() {
            Shape::Rate => freq::set(words, self.now, value),
            Shape::Count => words.iter_mut().for_each(|w| *w = u64::from(value as u32)),
            _ => words.iter_mut().for_each(|w| *w = value),
        }
        true
    }

    /// The server (`server_key`), if one was noted.
    pub fn server(&self) -> Option<&Arc<str>> {
        self.cells.server.as_ref()
    }

    /// Notes the server where the table stores `server_key`.
    pub fn set_server(&mut self, key: &Arc<str>) {
        if self.layout.has(Data::ServerKey) {
            self.cells.server = Some(key.clone());
        }
    }
}
