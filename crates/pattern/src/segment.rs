//! A segment: entries that were added together, with one index per view of the set. What it holds is never
//! changed after it was built; deletions and new values are noted beside it. A set is a short list of
//! segments; see [`crate::live`].

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use crate::changed::{Changed, NewValue};
use crate::dead::Dead;
use crate::entries::{Entries, TextRoom};
use crate::error::PatternError;
use crate::index::{Found, Index, Query, Reading};
use crate::kind::{Flags, Kind};
use crate::value::Value;

/// Entries and their indexes.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    indexed: Arc<Indexed>,
    pub(crate) indexes: Box<[Index]>,
}

/// Entries and what happened to them.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) entries: Entries,
    pub(crate) ids: Ids,
    pub(crate) dead: Dead,
    pub(crate) changed: Changed,
}

impl Deref for Segment {
    type Target = Indexed;

    fn deref(&self) -> &Indexed {
        &self.indexed
    }
}

/// References of entries: the first one's, and later runs of consecutive ones, as (first entry, its
/// reference).
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    first: u64,
    more: Vec<(u32, u64)>,
}

impl Ids {
    /// Entries numbered from `first`.
    pub(crate) fn from(first: u64) -> Ids {
        Ids { first, more: Vec::new() }
    }

    /// Notes the reference of the next entry; references come in rising order.
    pub(crate) fn push(&mut self, entry: u32, id: u64) {
        let (run, first) = self.more.last().copied().unwrap_or((0, self.first));
        if entry == 0 {
            self.first = id;
        } else if first + u64::from(entry - run) != id {
            self.more.push((entry, id));
        }
    }

    /// The run before which there are `n` others.
    fn run(&self, n: usize) -> Option<(u32, u64)> {
        match n.checked_sub(1) {
            None => Some((0, self.first)),
            Some(n) => self.more.get(n).copied(),
        }
    }

    /// The reference of `entry`.
    pub(crate) fn id(&self, entry: u32) -> u64 {
        let run = self.run(self.more.partition_point(|(e, _)| *e <= entry));
        run.map_or(0, |(e, id)| id + u64::from(entry - e))
    }

    /// The entry of a reference among `count` entries.
    pub(crate) fn entry(&self, id: u64, count: u32) -> Option<u32> {
        let run = self.more.partition_point(|(_, i)| *i <= id);
        let (first, first_id) = self.run(run)?;
        let end = self.more.get(run).map_or(count, |(e, _)| *e);
        let entry = u32::try_from(id.checked_sub(first_id)?).ok()?.checked_add(first)?;
        (entry < end).then_some(entry)
    }
}

impl Segment {
    /// Builds the indexes of `views` over `entries`.
    pub(crate) fn build(
        entries: Entries,
        views: &[(Kind, Flags)],
        ids: Ids,
        reading: Reading<'_>,
    ) -> Result<Segment, (u32, PatternError)> {
        let indexes: Result<_, _> =
            views.iter().map(|(k, f)| Index::build(*k, *f, &entries, reading)).collect();
        let (dead, changed) = (Dead::of(entries.len()), Changed::of(entries.len()));
        Ok(Segment { indexes: indexes?, indexed: Arc::new(Indexed { entries, ids, dead, changed }) })
    }

    /// The same entries with one more view.
    pub(crate) fn with_view(
        &self,
        kind: Kind,
        flags: Flags,
        reading: Reading<'_>,
    ) -> Result<Segment, (u32, PatternError)> {
        let new = Index::build(kind, flags, &self.entries, reading)?;
        let indexes = self.indexes.iter().cloned().chain([new]).collect();
        Ok(Segment { indexed: self.indexed.clone(), indexes })
    }

    /// Looks a value up in a view.
    pub(crate) fn find(&self, view: usize, value: Value<'_>, any: bool) -> Option<Found> {
        let index = self.indexes.get(view)?;
        index.find(Query { entries: &self.entries, dead: &self.dead, value, any })
    }

    /// Number of entries, deleted ones included.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Entries that are still there, in the order of the file.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|place| self.entries.at(place)).filter(|n| self.dead.spares(*n))
    }

    /// Number of entries that are still there.
    pub(crate) fn live_count(&self) -> u32 {
        self.len() - self.dead.len()
    }

    /// The pattern of entry `n`.
    pub(crate) fn pattern(&self, n: u32) -> Cow<'_, [u8]> {
        match self.entries.text(n) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(self.entries.pattern(n, &mut TextRoom::default()).to_vec()),
        }
    }

    /// The value that entry `n` was given at run time.
    pub(crate) fn new_value(&self, n: u32) -> Option<NewValue> {
        self.changed.get(n)
    }

    /// Entries that are still there and whose pattern is written `key`.
    pub(crate) fn written(&self, key: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut room = TextRoom::default();
        let mut each = |n| {
            if self.dead.spares(n) && self.entries.pattern(n, &mut room) == key {
                found.push(n);
            }
        };
        match self.indexes.iter().find(|i| i.is_quick()) {
            Some(index) => index.written(&self.entries, key, &mut each),
            None => (0..self.len()).for_each(each),
        }
        found
    }

    /// The entry with reference `id`, if it is still there.
    pub(crate) fn with_id(&self, id: u64) -> Option<u32> {
        let entry = self.ids.entry(id, self.len())?;
        self.dead.spares(entry).then_some(entry)
    }
}
