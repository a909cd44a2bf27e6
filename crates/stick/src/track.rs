//! Holding entries: what connections and streams track.

use std::sync::Arc;

use crate::data::Data;
use crate::row::Row;
use crate::table::Table;

/// An entry that is held: it neither expires nor makes room. Dropping it lets it go.
#[derive(Debug)]
pub struct Tracked {
    table: Arc<Table>,
    /// The number of its shard.
    part: u32,
    place: u32,
}

impl Table {
    /// Looks a key up, without touching it, and holds what it finds.
    pub fn find(self: &Arc<Table>, key: &[u8], now: u64) -> Option<Tracked> {
        self.peek(key, now).map(|row| Tracked::hold(self, row))
    }

    /// Looks a key up, enters it if it is new, touches it and holds it. `None`: there is no room.
    pub fn enter(self: &Arc<Table>, key: &[u8], now: u64) -> Option<Tracked> {
        self.entered(key, now).map(|row| Tracked::hold(self, row))
    }
}

impl Tracked {
    fn hold(table: &Arc<Table>, mut row: Row<'_>) -> Tracked {
        row.shard.hold(row.place);
        Tracked { table: table.clone(), part: row.part, place: row.place }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// It, locked.
    pub fn row(&self, now: u64) -> Row<'_> {
        self.table.row(self.part, self.table.shard(self.part), self.place, now)
    }

    /// It, locked, to be changed: it counts as used now.
    pub fn touched_row(&self, now: u64) -> Row<'_> {
        let mut row = self.row(now);
        row.touch();
        row
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.table.shard(self.part).release(self.place);
    }
}

/// The entries that a connection or a stream tracks, by number of the counter. Every connection has one of
/// these, few track anything: the list is made at first use.
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
