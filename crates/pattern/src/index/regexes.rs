//! Regular expressions, in groups.
//!
//! Expressions that run in linear time are put together, 64 to a group: one pass over the value says which of
//! a group match. Single expressions are compiled only when somebody asks what their groups matched, or where
//! there are so few that a set of them would not pay.

use std::sync::OnceLock;

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::scan::Probe;
use super::{Found, Query, Reading};
use crate::Regex;
use crate::entries::{Entries, TextRoom};
use crate::error::PatternError;
use crate::kind::{Flags, Kind};
use crate::regex::SIZE_LIMIT;
use crate::value::Scratch;

/// Expressions in one group.
const GROUP: usize = 64;

/// Fewer expressions are tried one by one.
const FEW: usize = 8;

/// Expressions in the order of their entries.
#[derive(Debug)]
pub(crate) struct Regexes {
    fold: bool,
    items: Vec<Item>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Item {
    source: Box<[u8]>,
    compiled: OnceLock<Option<Regex>>,
}

/// Consecutive entries.
#[derive(Debug)]
struct Group {
    first: u32,
    len: u32,
    set: Option<RegexSet>,
}

impl Regexes {
    pub(crate) fn build(
        flags: Flags,
        entries: &Entries,
        reading: Reading<'_>,
    ) -> Result<Regexes, (u32, PatternError)> {
        let mut index = Regexes { fold: flags.ignore_case, items: Vec::new(), groups: Vec::new() };
        for n in 0..entries.len() {
            let mut room = TextRoom::default();
            let source = entries.pattern(n, &mut room).into();
            let known = reading.compiled.and_then(|compiled| compiled(n));
            let compiled = known.map_or_else(OnceLock::new, |r| OnceLock::from(Some(r)));
            index.items.push(Item { source, compiled });
        }
        let mut at = 0;
        while at < index.items.len() {
            let len = GROUP.min(index.items.len() - at);
            index.group(at, len, reading.singly)?;
            at += len;
        }
        Ok(index)
    }

    /// Makes a group; what can't be put together stays single.
    fn group(&mut self, first: usize, len: usize, singly: bool) -> Result<(), (u32, PatternError)> {
        let items = self.items.get(first..first + len).unwrap_or_default();
        let set = if len < FEW || singly { None } else { set_of(items, self.fold) };
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        if set.is_none() {
            for (n, item) in (first..).zip(items) {
                if item.compiled.get().is_none() {
                    let regex = Regex::new(&item.source, self.fold).map_err(|e| (n, e))?;
                    let _ = item.compiled.set(Some(regex));
                }
            }
        }
        self.groups.push(Group { first, len: len as u32, set });
        Ok(())
    }

    pub(crate) fn compiled(&self, entry: u32) -> Option<&Regex> {
        self.items.get(entry as usize)?.compiled.get()?.as_ref()
    }

    pub(crate) fn regex(&self, entry: u32) -> Option<&Regex> {
        let item = self.items.get(entry as usize)?;
        item.compiled.get_or_init(|| Regex::new(&item.source, self.fold).ok()).as_ref()
    }

    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        let mut scratch = Scratch::new();
        let Probe::Bytes(value) = Probe::of(Kind::Reg, &query.value, &mut scratch)? else { return None };
        let found = self.groups.iter().find_map(|group| self.find_in(group, value, query));
        found.map(|entry| Found { entry, weight: 0 })
    }

    fn find_in(&self, group: &Group, value: &[u8], query: Query<'_>) -> Option<u32> {
        let Some(set) = &group.set else {
            return (group.first..group.first + group.len)
                .find(|n| query.dead.spares(*n) && self.regex(*n).is_some_and(|r| r.is_match(value)));
        };
        if !set.is_match(value) {
            return None;
        }
        if query.any && query.dead.is_empty() {
            return Some(group.first);
        }
        let matches = set.matches(value);
        matches.iter().map(|n| group.first + n as u32).find(|n| query.dead.spares(*n))
    }
}

/// A set of expressions, if all of them run in linear time.
fn set_of(items: &[Item], fold: bool) -> Option<RegexSet> {
    let sources = items.iter().map(|i| crate::pcre::translate(&i.source));
    RegexSetBuilder::new(sources).unicode(false).case_insensitive(fold).size_limit(SIZE_LIMIT).build().ok()
}
