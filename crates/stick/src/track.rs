//! Holding entries: what connections and streams track.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::data::Data;
use crate::entry::{Entry, Row};
use crate::table::Table;

/// An entry that is held: it neither expires nor makes room. Dropping it lets it go.
#[derive(Debug)]
pub struct Tracked {
    table: Arc<Table>,
    entry: Arc<Entry>,
}

impl Tracked {
    /// Only with the lock of the entry's shard: whoever removes an entry looks at its uses under it.
    pub(crate) fn hold(table: &Arc<Table>, entry: &Arc<Entry>) -> Tracked {
        entry.uses.fetch_add(1, Relaxed);
        Tracked { table: table.clone(), entry: entry.clone() }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The entry.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Its row, locked.
    pub fn row(&self, now: u64) -> Row<'_> {
        self.entry.row(self.table.layout(), now)
    }

    /// Its row, locked, to be changed: the entry counts as used now.
    pub fn touched_row(&self, now: u64) -> Row<'_> {
        self.entry.touch(now);
        self.row(now)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.entry.uses.fetch_sub(1, Release);
    }
}

/// The entries that a connection or a stream tracks, by number of the counter. Every connection has one of these, few
/// track anything: the list is made at first use.
#[derive(Debug, Default)]
pub struct Trackers {
    list: Option<Box<List>>,
}

#[derive(Debug, Default)]
struct List {
    slots: Vec<Option<Tracked>>,
}

impl Trackers {
    /// What is tracked under a number.
    pub fn get(&self, at: usize) -> Option<&Tracked> {
        self.list.as_ref()?.slots.get(at)?.as_ref()
    }

    /// Whether nothing is tracked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.as_ref().is_none_or(|l| l.slots.is_empty())
    }

    /// All that is tracked, with its numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Tracked)> {
        let slots = self.list.iter().flat_map(|l| l.slots.iter().enumerate());
        slots.filter_map(|(i, t)| Some((i, t.as_ref()?)))
    }

    /// Begins to track: counts a connection, for as long as it is tracked, and what `also` adds.
    pub fn start(&mut self, at: usize, tracked: Tracked, now: u64, also: impl FnOnce(&mut Row<'_>)) {
        {
            let mut row = tracked.touched_row(now);
            row.add(Data::ConnCur, 0, 1);
            row.add(Data::ConnCnt, 0, 1);
            row.add(Data::ConnRate, 0, 1);
            also(&mut row);
        }
        let slots = &mut self.list.get_or_insert_default().slots;
        if slots.len() <= at {
            slots.resize_with(at + 1, || None);
        }
        slots[at] = Some(tracked);
    }

    /// Lets everything go without counting; keeps the memory.
    pub fn clear(&mut self) {
        if let Some(list) = &mut self.list {
            list.slots.clear();
        }
    }

    /// Ends all tracking; the entries count as used now.
    pub fn stop(&mut self, now: u64) {
        let Some(list) = &mut self.list else { return };
        for tracked in list.slots.drain(..).flatten() {
            tracked.touched_row(now).decrement(Data::ConnCur);
        }
    }
}
