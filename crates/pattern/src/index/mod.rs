//! What makes looking up fast: one index per kind over the entries of a segment.
//!
//! An index answers with the number of the entry that HAProxy would have found: the first of
//! the file, or for addresses and prefixes the longest. Entries that were deleted since the
//! index was built are left out by the `alive` test, which costs nothing while there are none.

mod scan;

use crate::entries::Entries;
use crate::error::PatternError;
use crate::kind::{Flags, Kind};
use crate::value::Value;

/// An entry found, and how much of the value it covers: the greater wins over several
/// segments where the longest match is wanted. It is zero for all other kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) entry: u32,
    pub(crate) weight: u32,
}

/// The index of one segment for one kind.
#[derive(Debug)]
pub(crate) enum Index {
    Scan(scan::Scan),
}

impl Index {
    /// Builds the index of `entries`; an error carries the number of the entry at fault.
    pub(crate) fn build(kind: Kind, flags: Flags, entries: &Entries) -> Result<Index, (u32, PatternError)> {
        Ok(Index::Scan(scan::Scan::build(kind, flags, entries)?))
    }

    /// Looks up `value` among the entries for which `alive` holds.
    pub(crate) fn find(
        &self,
        entries: &Entries,
        value: Value<'_>,
        alive: &dyn Fn(u32) -> bool,
    ) -> Option<Found> {
        match self {
            Index::Scan(scan) => scan.find(entries, value, alive),
        }
    }

    /// The compiled expression of an entry of a `reg` index.
    pub(crate) fn regex(&self, entry: u32) -> Option<&crate::Regex> {
        match self {
            Index::Scan(scan) => scan.regex(entry),
        }
    }
}

/// The answer of a kind that has no patterns.
pub(crate) fn without_patterns(kind: Kind, value: Value<'_>) -> Option<bool> {
    match kind {
        Kind::Found => Some(true),
        Kind::Bool => Some(value.as_bool()),
        _ => None,
    }
}

/// Checks one pattern without keeping it.
pub(crate) fn check(kind: Kind, flags: Flags, pattern: &[u8]) -> Result<(), PatternError> {
    scan::read(kind, flags, pattern).map(drop)
}
