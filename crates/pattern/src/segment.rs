//! A segment: entries that were added together, with one index per view of the set, never
//! changed after it is built. A set is a short list of segments; see [`crate::live`].

use std::borrow::Cow;
use std::sync::Arc;

use crate::entries::Entries;
use crate::error::PatternError;
use crate::index::Index;
use crate::kind::{Flags, Kind};

/// Entries and their indexes. The entry `n` has the reference `first_id + n`.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) entries: Arc<Entries>,
    pub(crate) indexes: Vec<Arc<Index>>,
    pub(crate) ids: Ids,
}

/// References of entries: runs of consecutive ones, as (first entry, its reference).
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids(Vec<(u32, u64)>);

impl Ids {
    /// Entries numbered from `first`.
    pub(crate) fn from(first: u64) -> Ids {
        Ids(vec![(0, first)])
    }

    /// The reference of `entry`.
    pub(crate) fn id(&self, entry: u32) -> u64 {
        let run = self.0.partition_point(|(e, _)| *e <= entry);
        match run.checked_sub(1).and_then(|r| self.0.get(r)) {
            Some((e, id)) => id + u64::from(entry - e),
            None => 0,
        }
    }

    /// The entry of a reference among `count` entries.
    pub(crate) fn entry(&self, id: u64, count: u32) -> Option<u32> {
        let run = self.0.partition_point(|(_, i)| *i <= id).checked_sub(1)?;
        let (first, first_id) = *self.0.get(run)?;
        let end = self.0.get(run + 1).map_or(count, |(e, _)| *e);
        let entry = u32::try_from(id - first_id).ok()?.checked_add(first)?;
        (entry < end).then_some(entry)
    }
}

impl Segment {
    /// Builds the indexes of `views` over `entries`.
    pub(crate) fn build(
        entries: Arc<Entries>,
        views: &[(Kind, Flags)],
        ids: Ids,
    ) -> Result<Segment, (u32, PatternError)> {
        let indexes: Result<Vec<_>, _> =
            views.iter().map(|(k, f)| Index::build(*k, *f, &entries).map(Arc::new)).collect();
        Ok(Segment { indexes: indexes?, entries, ids })
    }

    /// The same entries with one more view.
    pub(crate) fn with_view(&self, kind: Kind, flags: Flags) -> Result<Segment, (u32, PatternError)> {
        let mut more = self.clone();
        more.indexes.push(Arc::new(Index::build(kind, flags, &self.entries)?));
        Ok(more)
    }

    /// The pattern of entry `n`.
    pub(crate) fn pattern(&self, n: u32) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.entries.pattern(n))
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }
}
