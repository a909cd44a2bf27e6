//! What makes looking up fast: one index per kind over the entries of a segment.
//!
//! An index answers with the number of the entry that HAProxy would have found: the first of the file, or for
//! addresses and case-sensitive prefixes the longest. Entries that were deleted since the index was built are
//! left out.
//!
//! A handful of patterns is compared one by one ([`scan`]), which nothing beats. Beyond that, whole strings,
//! prefixes, suffixes and parts between delimiters are found by hash ([`strings`]), substrings by one
//! automaton ([`substrings`]), numbers by hash and by sorted bounds ([`ranges`]), addresses by sorted bounds
//! ([`nets`]), regular expressions in groups ([`regexes`]).

mod bounds;
mod key;
mod nets;
mod ranges;
mod regexes;
mod scan;
mod strings;
mod substrings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::Regex;
use crate::dead::Dead;
use crate::entries::Entries;
use crate::error::PatternError;
use crate::kind::{Flags, Kind};
use crate::value::Value;

/// Up to this many patterns are compared one by one.
const FEW: u32 = 6;

/// An entry found, and how much of the value it covers: the greater wins over several
/// segments where the longest match is wanted. It is zero for all other kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) entry: u32,
    pub(crate) weight: u32,
}

/// What a look-up is about.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) entries: &'a Entries,
    pub(crate) dead: &'a Dead,
    pub(crate) value: Value<'a>,
    /// Any entry will do.
    pub(crate) any: bool,
}

/// How patterns are read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reading<'a> {
    /// Addresses may be host names.
    pub(crate) names: bool,
    /// Expressions that were compiled before.
    pub(crate) compiled: Option<&'a dyn Fn(u32) -> Option<Regex>>,
    /// Expressions are not put together in groups.
    pub(crate) singly: bool,
}

/// The index of one segment for one kind. That of a few patterns, which is what most lists are, takes no
/// allocation; the others are shared by those who clone it.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    Scan(scan::Scan),
    Strings(Arc<strings::Strings>),
    Substrings(Arc<substrings::Substrings>),
    Ranges(Arc<ranges::Ranges>),
    Nets(Arc<nets::Nets>),
    Regexes(Arc<regexes::Regexes>),
}

impl Index {
    /// Builds the index of `entries`; an error carries the number of the entry at fault.
    pub(crate) fn build(
        kind: Kind,
        flags: Flags,
        entries: &Entries,
        reading: Reading<'_>,
    ) -> Result<Index, (u32, PatternError)> {
        let few = entries.len() <= FEW && entries.host_count() == 0;
        Ok(match kind {
            Kind::Found | Kind::Bool => Index::Scan(scan::Scan::empty(kind)),
            Kind::Reg => Index::Regexes(regexes::Regexes::build(flags, entries, reading)?.into()),
            _ if few => Index::Scan(scan::Scan::build(kind, flags, entries, reading)?),
            Kind::Ip => Index::Nets(nets::Nets::build(entries, reading)?.into()),
            Kind::Int | Kind::Len | Kind::Version => {
                Index::Ranges(ranges::Ranges::build(kind, entries)?.into())
            }
            Kind::Sub => Index::Substrings(substrings::Substrings::build(flags, entries).into()),
            _ => Index::Strings(strings::Strings::build(kind, flags, entries)?.into()),
        })
    }

    /// Looks up a value.
    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        match self {
            Index::Scan(i) => i.find(query),
            Index::Strings(i) => i.find(query),
            Index::Substrings(i) => i.find(query),
            Index::Ranges(i) => i.find(query),
            Index::Nets(i) => i.find(query),
            Index::Regexes(i) => i.find(query),
        }
    }

    /// Calls `each` for entries among which are all that are written `text`.
    pub(crate) fn written(&self, entries: &Entries, text: &[u8], each: &mut dyn FnMut(u32)) {
        match self {
            Index::Strings(i) => i.written(entries, text, each),
            Index::Substrings(i) => i.written(entries, text, each),
            Index::Ranges(i) => i.written(text, each),
            Index::Nets(i) => i.written(entries, text, each),
            Index::Scan(_) | Index::Regexes(_) => (0..entries.len()).for_each(each),
        }
    }

    /// Whether [`Index::written`] looks at few entries.
    pub(crate) fn is_quick(&self) -> bool {
        !matches!(self, Index::Scan(_) | Index::Regexes(_))
    }

    /// The expression of an entry of a `reg` index, if it was compiled before.
    pub(crate) fn compiled(&self, entry: u32) -> Option<&Regex> {
        match self {
            Index::Regexes(i) => i.compiled(entry),
            _ => None,
        }
    }

    /// The compiled expression of an entry of a `reg` index.
    pub(crate) fn regex(&self, entry: u32) -> Option<&Regex> {
        match self {
            Index::Regexes(i) => i.regex(entry),
            _ => None,
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
    scan::read(kind, flags, pattern, false).map(drop)
}

/// Whether the longest pattern wins instead of the first.
fn longest_wins(kind: Kind, fold: bool) -> bool {
    kind == Kind::Ip || (kind == Kind::Beg && !fold)
}
