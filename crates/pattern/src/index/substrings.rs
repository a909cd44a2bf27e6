//! Substrings: one automaton that reads the value once, whatever the number of patterns.
//!
//! An automaton takes up to twenty bytes for each byte of its patterns. Very long lists are therefore kept in
//! tables instead: patterns of at least 2^n bytes by the hash of their first 2^n bytes, which a window slides
//! over the value to find.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use hashbrown::HashTable;

use super::key::{Rolling, folded};
use super::scan::Probe;
use super::{Found, Query};
use crate::entries::{Entries, TextRoom};
use crate::kind::{Flags, Kind};
use crate::value::Scratch;

/// Bytes of patterns that an automaton is made for.
const LARGEST: usize = 4 << 20;

/// Bytes of patterns whose automaton may be the fastest and largest kind.
const SMALL: usize = 4 << 10;

/// Patterns that may stand anywhere.
#[derive(Debug)]
pub(crate) enum Substrings {
    Automaton(AhoCorasick),
    Windows(Windows),
}

impl Substrings {
    pub(crate) fn build(flags: Flags, entries: &Entries) -> Substrings {
        let mut room = TextRoom::default();
        let total: usize = (0..entries.len()).map(|n| entries.pattern(n, &mut room).len()).sum();
        let automaton = (total <= LARGEST).then(|| automaton(flags, entries, total)).flatten();
        match automaton {
            Some(automaton) => Substrings::Automaton(automaton),
            None => Substrings::Windows(Windows::build(flags.ignore_case, entries)),
        }
    }

    /// As for more patterns than an automaton is made for.
    #[cfg(test)]
    pub(crate) fn windows(fold: bool, entries: &Entries) -> Substrings {
        Substrings::Windows(Windows::build(fold, entries))
    }

    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        let mut scratch = Scratch::new();
        let Probe::Bytes(value) = Probe::of(Kind::Sub, &query.value, &mut scratch)? else { return None };
        let mut best = None;
        match self {
            Substrings::Automaton(a) if query.any && query.dead.is_empty() => {
                best = a.find(value).map(|m| m.pattern().as_u32());
            }
            Substrings::Automaton(a) => each_match(a, value, &mut |n| {
                if query.dead.spares(n) && best.is_none_or(|b| n < b) {
                    best = Some(n);
                }
                best.is_some_and(|b| query.any || b == 0)
            }),
            Substrings::Windows(w) => w.each(query.entries, value, &mut |n| {
                if query.dead.spares(n) && best.is_none_or(|b| n < b) {
                    best = Some(n);
                }
                best.is_some_and(|b| query.any || b == 0)
            }),
        }
        best.map(|entry| Found { entry, weight: 0 })
    }

    pub(crate) fn written(&self, entries: &Entries, text: &[u8], each: &mut dyn FnMut(u32)) {
        let mut go_on = |n| {
            each(n);
            false
        };
        match self {
            Substrings::Automaton(a) => each_match(a, text, &mut go_on),
            Substrings::Windows(w) => w.each(entries, text, &mut go_on),
        }
    }
}

fn automaton(flags: Flags, entries: &Entries, total: usize) -> Option<AhoCorasick> {
    let kind = if total <= SMALL { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
    let patterns = (0..entries.len()).map(|n| {
        let mut room = TextRoom::default();
        entries.pattern(n, &mut room).to_vec()
    });
    AhoCorasick::builder().kind(Some(kind)).ascii_case_insensitive(flags.ignore_case).build(patterns).ok()
}

/// Calls `hit` for every match until it says that this is enough.
fn each_match(automaton: &AhoCorasick, value: &[u8], hit: &mut dyn FnMut(u32) -> bool) {
    for found in automaton.find_overlapping_iter(value) {
        if hit(found.pattern().as_u32()) {
            return;
        }
    }
}

/// No entry.
const NONE: u32 = u32::MAX;

/// Patterns by the hash of what they begin with.
#[derive(Debug)]
pub(crate) struct Windows {
    fold: bool,
    widths: Vec<Width>,
    /// The next entry that begins the same.
    next: Vec<u32>,
    empty: Vec<u32>,
}

#[derive(Debug)]
struct Width {
    bytes: usize,
    power: u64,
    table: HashTable<u32>,
}

impl Windows {
    fn build(fold: bool, entries: &Entries) -> Windows {
        let count = entries.len();
        let mut index =
            Windows { fold, widths: Vec::new(), next: vec![NONE; count as usize], empty: Vec::new() };
        // From the last to the first, so that chains run upwards.
        for n in (0..count).rev() {
            index.insert(entries, n);
        }
        index.empty.reverse();
        index
    }

    fn insert(&mut self, entries: &Entries, n: u32) {
        let mut room = TextRoom::default();
        let pattern = entries.pattern(n, &mut room);
        let Some(power) = pattern.len().checked_ilog2() else { return self.empty.push(n) };
        let bytes = 1usize << power;
        let at = self.widths.iter().position(|w| w.bytes == bytes).unwrap_or_else(|| {
            let table = HashTable::new();
            self.widths.push(Width { bytes, power: Rolling::power(bytes), table });
            self.widths.len() - 1
        });
        let fold = self.fold;
        let start = |m: &u32| start_hash(fold, entries, *m, bytes);
        let Some(width) = self.widths.get_mut(at) else { return };
        let hash = start(&n);
        match width.table.find_mut(hash, |m| same_start(fold, entries, *m, &pattern[..bytes])) {
            Some(head) => {
                if let Some(next) = self.next.get_mut(n as usize) {
                    *next = std::mem::replace(head, n);
                }
            }
            None => {
                width.table.insert_unique(hash, n, start);
            }
        }
    }

    fn each(&self, entries: &Entries, value: &[u8], hit: &mut dyn FnMut(u32) -> bool) {
        if self.empty.iter().any(|n| hit(*n)) {
            return;
        }
        for width in &self.widths {
            if self.slide(width, entries, value, hit) {
                return;
            }
        }
    }

    fn slide(
        &self,
        width: &Width,
        entries: &Entries,
        value: &[u8],
        hit: &mut dyn FnMut(u32) -> bool,
    ) -> bool {
        let fold = folded(self.fold);
        let Some(first) = value.get(..width.bytes) else { return false };
        let mut hash = Rolling::of(first.iter().copied().map(fold));
        for start in 0.. {
            let rest = &value[start..];
            let window = &rest[..width.bytes];
            let head =
                width.table.find(hash.finish(), |n| same_start(self.fold, entries, *n, window)).copied();
            if head.is_some_and(|head| self.chain(head, entries, rest, hit)) {
                return true;
            }
            let Some(next) = rest.get(width.bytes) else { return false };
            hash = hash.drop_first(fold(rest[0]), width.power).push(fold(*next));
        }
        false
    }

    /// All entries of a chain that `rest` begins with.
    fn chain(&self, head: u32, entries: &Entries, rest: &[u8], hit: &mut dyn FnMut(u32) -> bool) -> bool {
        let mut n = head;
        while n != NONE {
            let mut room = TextRoom::default();
            let pattern = entries.pattern(n, &mut room);
            let part = rest.get(..pattern.len());
            let same =
                part.is_some_and(|p| if self.fold { p.eq_ignore_ascii_case(pattern) } else { p == pattern });
            if same && hit(n) {
                return true;
            }
            n = self.next.get(n as usize).copied().unwrap_or(NONE);
        }
        false
    }
}

fn start_hash(fold: bool, entries: &Entries, n: u32, bytes: usize) -> u64 {
    let mut room = TextRoom::default();
    let pattern = entries.pattern(n, &mut room);
    Rolling::of(pattern.iter().copied().take(bytes).map(folded(fold))).finish()
}

fn same_start(fold: bool, entries: &Entries, n: u32, start: &[u8]) -> bool {
    let mut room = TextRoom::default();
    let pattern = entries.pattern(n, &mut room);
    let own = pattern.get(..start.len());
    own.is_some_and(|own| if fold { own.eq_ignore_ascii_case(start) } else { own == start })
}
