//! A set that never changes: for what is known when the configuration is read and has no
//! name to change it by.

use std::borrow::Cow;
use std::sync::Arc;

use crate::entries::Entries;
use crate::error::PatternError;
use crate::index::{self, Index};
use crate::kind::{Flags, Kind};
use crate::value::Value;

/// The number of a pattern in its [`PatternSet`], counted from 0 in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(pub u32);

/// Patterns of one kind and their index, optionally with a value each (a map).
#[derive(Clone, Debug)]
pub struct PatternSet {
    kind: Kind,
    flags: Flags,
    entries: Arc<Entries>,
    index: Arc<Index>,
}

/// A set whose patterns all have a value.
pub type MapSet = PatternSet;

impl PatternSet {
    /// Reads patterns, each with the line that an error shall name.
    pub fn build<'a>(
        kind: Kind,
        flags: Flags,
        patterns: impl IntoIterator<Item = (&'a [u8], u32)>,
    ) -> Result<PatternSet, PatternError> {
        Self::collect(kind, flags, patterns.into_iter().map(|(p, line)| (p, None, line)))
    }

    /// Reads patterns and their values, each with the line that an error shall name.
    pub fn build_map<'a>(
        kind: Kind,
        flags: Flags,
        pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8], u32)>,
    ) -> Result<MapSet, PatternError> {
        Self::collect(kind, flags, pairs.into_iter().map(|(p, v, line)| (p, Some(v), line)))
    }

    fn collect<'a>(
        kind: Kind,
        flags: Flags,
        items: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>, u32)>,
    ) -> Result<PatternSet, PatternError> {
        let mut entries = Entries::default();
        let mut lines = Vec::new();
        for (pattern, value, line) in items {
            entries.push(pattern, value).ok_or_else(|| {
                let mut e = PatternError::new(pattern, "out of memory");
                e.line = line;
                e
            })?;
            lines.push(line);
        }
        entries.seal();
        let index = Index::build(kind, flags, &entries).map_err(|(n, mut e)| {
            e.line = lines.get(n as usize).copied().unwrap_or(0);
            e
        })?;
        Ok(PatternSet { kind, flags, entries: Arc::new(entries), index: Arc::new(index) })
    }

    /// The pattern that matches `value`: the first, or for addresses and case-sensitive
    /// prefixes the longest. Nothing for `found` and `bool`, which have no patterns.
    pub fn matches(&self, value: Value<'_>) -> Option<PatternId> {
        let found = self.index.find(&self.entries, value, &|_| true)?;
        Some(PatternId(found.entry))
    }

    /// Whether `value` matches; also for `found` and `bool`.
    pub fn contains(&self, value: Value<'_>) -> bool {
        match index::without_patterns(self.kind, value) {
            Some(answer) => answer,
            None => self.matches(value).is_some(),
        }
    }

    /// The pattern `id` as written; empty if there is none.
    pub fn pattern(&self, id: PatternId) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.entries.pattern(id.0))
    }

    /// The value of pattern `id`, in a map.
    pub fn value(&self, id: PatternId) -> Option<&[u8]> {
        self.entries.value(id.0)
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How patterns are compared.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The flags patterns were read with.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// The compiled expression of pattern `id` of a `reg` set.
    pub fn regex(&self, id: PatternId) -> Option<&crate::Regex> {
        self.index.regex(id.0)
    }
}
