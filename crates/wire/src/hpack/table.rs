//! The dynamic table (RFC 7541 sections 2.3.2 and 4): the newest entry first, the oldest evicted when room is
//! needed.
//!
//! The bytes of all entries lie in one vector in the order of insertion; eviction only moves its start. When
//! the dead part at its front outgrows the living, the living is moved down: each byte is moved at most once
//! for each byte inserted. An unused table owns no memory.

use std::collections::VecDeque;

use super::Tag;

/// What an entry counts beside its text (RFC 7541 section 4.1).
const OVERHEAD: usize = 32;
/// Dead bytes that are not worth moving the living.
const SLACK: usize = 1024;

/// Whether the value of a line may stand in a message (RFC 9113 section 8.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    Sound,
    /// It begins or ends with a blank.
    Padded,
    /// It has a NUL, CR or LF.
    Bad,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where it starts, counted over all that was ever inserted.
    start: u64,
    name: u32,
    value: u32,
    tag: Tag,
    form: ValueForm,
}

impl Entry {
    fn size(&self) -> usize {
        self.name as usize + self.value as usize + OVERHEAD
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'t> {
    pub name: &'t [u8],
    pub value: &'t [u8],
    pub tag: Tag,
    pub form: ValueForm,
}

/// See the module.
#[derive(Debug)]
pub struct Table {
    entries: VecDeque<Entry>,
    bytes: Vec<u8>,
    /// How many bytes were inserted before the first of `bytes`.
    base: u64,
    size: usize,
    max: usize,
    inserted: u64,
}

impl Table {
    pub fn new(max: u32) -> Table {
        Table {
            entries: VecDeque::new(),
            bytes: Vec::new(),
            base: 0,
            size: 0,
            max: max as usize,
            inserted: 0,
        }
    }

    pub fn max(&self) -> usize {
        self.max
    }

    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sets the limit and evicts what no longer fits.
    pub fn set_max(&mut self, max: usize) {
        self.max = max;
        self.evict(0);
    }

    /// How many entries there were ever; the number of the next one.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The entry at `index`, 0 for the newest.
    pub fn get(&self, index: usize) -> Option<Stored<'_>> {
        let at = self.entries.len().checked_sub(index)?.checked_sub(1)?;
        let entry = self.entries.get(at)?;
        let start = (entry.start - self.base) as usize;
        let middle = start + entry.name as usize;
        Some(Stored {
            name: self.bytes.get(start..middle)?,
            value: self.bytes.get(middle..middle + entry.value as usize)?,
            tag: entry.tag,
            form: entry.form,
        })
    }

    /// Adds an entry; one that is larger than the table only empties it (RFC 7541 section 4.4).
    pub fn insert(&mut self, line: Stored<'_>) {
        let size = line.name.len() + line.value.len() + OVERHEAD;
        self.evict(size);
        if size > self.max {
            return;
        }
        self.compact();
        let entry = Entry {
            start: self.base + self.bytes.len() as u64,
            name: line.name.len() as u32,
            value: line.value.len() as u32,
            tag: line.tag,
            form: line.form,
        };
        self.bytes.extend_from_slice(line.name);
        self.bytes.extend_from_slice(line.value);
        self.entries.push_back(entry);
        self.size += size;
        self.inserted += 1;
    }

    fn evict(&mut self, more: usize) {
        while self.size + more > self.max {
            let Some(entry) = self.entries.pop_front() else { return };
            self.size -= entry.size();
        }
    }

    fn compact(&mut self) {
        let end = self.base + self.bytes.len() as u64;
        let first = self.entries.front().map_or(end, |entry| entry.start);
        let dead = (first - self.base) as usize;
        if dead > SLACK && dead * 2 > self.bytes.len() {
            self.bytes.drain(..dead);
            self.base = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Known;
    use proptest::prelude::*;

    fn line<'t>(name: &'t [u8], value: &'t [u8]) -> Stored<'t> {
        Stored { name, value, tag: Tag::Field(Known::Other), form: ValueForm::Sound }
    }

    #[test]
    fn an_entry_too_large_empties_the_table() {
        let mut table = Table::new(64);
        table.insert(line(b"a", b"b"));
        assert_eq!(table.size(), 34);
        table.insert(line(b"a", &[0; 32]));
        assert_eq!((table.size(), table.get(0).is_none()), (0, true));
    }

    proptest! {
        #[test]
        fn the_newest_that_fit_are_there(values in proptest::collection::vec(0usize..300, 1..200), max in 0u32..2000) {
            let mut table = Table::new(max);
            let text = vec![b'x'; 300];
            for (at, len) in values.iter().enumerate() {
                table.insert(line(b"n", &text[..*len]));
                let mut room = max as usize;
                let live = values[..=at].iter().rev().take_while(|len| {
                    let fits = **len + 33 <= room;
                    room = room.saturating_sub(**len + 33);
                    fits
                });
                let live: Vec<usize> = live.copied().collect();
                for (index, len) in live.iter().enumerate() {
                    prop_assert_eq!(table.get(index).map(|stored| stored.value.len()), Some(*len));
                }
                prop_assert!(table.get(live.len()).is_none());
                prop_assert!(table.size() <= max as usize);
                prop_assert!(table.bytes.len() <= 2 * max as usize + SLACK + 400);
            }
        }
    }
}
