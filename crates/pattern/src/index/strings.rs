//! Whole strings, prefixes, suffixes, parts between delimiters, and blocks of bytes: by hash.
//!
//! A value has one hash for each length that some pattern has, all made in one pass over it; each is looked
//! up once. Only what is found is compared.

use super::key::{Keys, Lengths, Rolling, folded};
use super::scan::{Probe, delimiter_of, hex, strip};
use super::{Found, Query, longest_wins};
use crate::dead::Dead;
use crate::entries::{Entries, TextRoom};
use crate::error::PatternError;
use crate::kind::{Flags, Kind};
use crate::value::Scratch;

/// Entries by the hash of their text.
#[derive(Debug)]
pub(crate) struct Strings {
    kind: Kind,
    fold: bool,
    keys: Keys,
    lengths: Lengths,
    /// Entries made of nothing but delimiters.
    bare: Vec<u32>,
    /// The most delimiters inside one pattern.
    inner: usize,
}

impl Strings {
    pub(crate) fn build(kind: Kind, flags: Flags, entries: &Entries) -> Result<Strings, (u32, PatternError)> {
        let mut index = Strings {
            kind,
            fold: flags.ignore_case,
            keys: Keys::with_capacity(entries.len() as usize),
            lengths: Lengths::default(),
            bare: Vec::new(),
            inner: 0,
        };
        let mut room = TextRoom::default();
        for n in 0..entries.len() {
            let pattern = entries.pattern(n, &mut room);
            if kind == Kind::Bin {
                hex(pattern).map_err(|e| (n, e))?;
            }
            index.insert(entries, n, pattern);
        }
        Ok(index)
    }

    fn insert(&mut self, entries: &Entries, n: u32, pattern: &[u8]) {
        let key = self.key(pattern);
        if let Some(delimiter) = delimiter_of(self.kind) {
            if key.is_empty() {
                return self.bare.push(n);
            }
            self.inner = self.inner.max(key.iter().filter(|c| delimiter(**c)).count());
        }
        let hash = self.hash_key(key);
        self.lengths.insert(key.len());
        let (kind, fold) = (self.kind, self.fold);
        let mut keys = std::mem::take(&mut self.keys);
        let same = |m| same_key(kind, fold, entries, m, key);
        keys.insert(hash, n, same, |m| {
            let mut room = TextRoom::default();
            self.hash_key(self.key(entries.pattern(m, &mut room)))
        });
        self.keys = keys;
    }

    /// The part of a pattern that is compared; hexadecimal digits stay what they are.
    fn key<'p>(&self, pattern: &'p [u8]) -> &'p [u8] {
        match delimiter_of(self.kind) {
            Some(delimiter) => strip(pattern, delimiter),
            None => pattern,
        }
    }

    fn hash_key(&self, key: &[u8]) -> u64 {
        match self.kind {
            Kind::Bin => self.hash(&hex(key).unwrap_or_default()),
            _ => self.hash(key),
        }
    }

    /// The hash of bytes of a value.
    fn hash(&self, bytes: &[u8]) -> u64 {
        match self.kind {
            Kind::Str | Kind::Bin if !self.fold => base::hash::xxh3(bytes, 0),
            Kind::End => Rolling::of(bytes.iter().rev().copied().map(folded(self.fold))).finish(),
            _ => Rolling::of(bytes.iter().copied().map(folded(self.fold))).finish(),
        }
    }

    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        let mut scratch = Scratch::new();
        let Probe::Bytes(value) = Probe::of(self.kind, &query.value, &mut scratch)? else { return None };
        let search = Search { index: self, entries: query.entries, dead: query.dead, value };
        let mut best: Option<Found> = None;
        let longest = longest_wins(self.kind, self.fold);
        search.run(&mut |entry, len| {
            let weight = if longest { u32::try_from(len).unwrap_or(u32::MAX) } else { 0 };
            if best.is_none_or(|b| if longest { weight > b.weight } else { entry < b.entry }) {
                best = Some(Found { entry, weight });
            }
            query.any
        });
        best
    }

    pub(crate) fn written(&self, entries: &Entries, text: &[u8], each: &mut dyn FnMut(u32)) {
        let key = self.key(text);
        if key.is_empty() {
            self.bare.iter().copied().for_each(&mut *each);
        }
        let hash = self.hash_key(key);
        self.keys.all(hash, |n| same_key(self.kind, self.fold, entries, n, key), each);
    }
}

/// Whether the key of entry `n` is `key`, itself that of a pattern.
fn same_key(kind: Kind, fold: bool, entries: &Entries, n: u32, key: &[u8]) -> bool {
    let mut room = TextRoom::default();
    let own = entries.pattern(n, &mut room);
    let own = delimiter_of(kind).map_or(own, |d| strip(own, d));
    if fold || kind == Kind::Bin { own.eq_ignore_ascii_case(key) } else { own == key }
}

/// One look-up.
struct Search<'a> {
    index: &'a Strings,
    entries: &'a Entries,
    dead: &'a Dead,
    value: &'a [u8],
}

impl Search<'_> {
    /// Calls `hit` with entries and their lengths until it says that this is enough.
    fn run(&self, hit: &mut dyn FnMut(u32, usize) -> bool) {
        let whole = self.value.len();
        match self.index.kind {
            Kind::Beg => self.prefixes(hit),
            Kind::End => self.suffixes(hit),
            Kind::Dir | Kind::Dom => self.parts(hit),
            _ if self.index.lengths.contains(whole) || self.index.kind == Kind::Bin => {
                self.look(self.index.hash(self.value), self.value, hit);
            }
            _ => {}
        }
    }

    /// Looks one part of the value up; whether to stop.
    fn look(&self, hash: u64, part: &[u8], hit: &mut dyn FnMut(u32, usize) -> bool) -> bool {
        let Strings { kind, fold, .. } = *self.index;
        let found = self.index.keys.find(hash, self.dead, |n| match kind {
            Kind::Bin => {
                let mut room = TextRoom::default();
                hex(self.entries.pattern(n, &mut room)).is_ok_and(|b| b == part)
            }
            _ => same_key(kind, fold, self.entries, n, part),
        });
        found.is_some_and(|n| hit(n, part.len()))
    }

    fn prefixes(&self, hit: &mut dyn FnMut(u32, usize) -> bool) {
        let lengths = &self.index.lengths;
        let fold = folded(self.index.fold);
        let mut hash = Rolling::EMPTY;
        for len in 0..=self.value.len().min(lengths.most) {
            if lengths.contains(len) && self.look(hash.finish(), &self.value[..len], hit) {
                return;
            }
            if let Some(c) = self.value.get(len) {
                hash = hash.push(fold(*c));
            }
        }
    }

    fn suffixes(&self, hit: &mut dyn FnMut(u32, usize) -> bool) {
        let lengths = &self.index.lengths;
        let fold = folded(self.index.fold);
        let mut hash = Rolling::EMPTY;
        for len in 0..=self.value.len().min(lengths.most) {
            let start = self.value.len() - len;
            if lengths.contains(len) && self.look(hash.finish(), &self.value[start..], hit) {
                return;
            }
            if let Some(c) = start.checked_sub(1).and_then(|at| self.value.get(at)) {
                hash = hash.push(fold(*c));
            }
        }
    }

    /// All parts between delimiters.
    fn parts(&self, hit: &mut dyn FnMut(u32, usize) -> bool) {
        let Some(delimiter) = delimiter_of(self.index.kind) else { return };
        let bare_matches = self.value.last().is_none_or(|c| delimiter(*c));
        let bare = self.index.bare.iter().find(|n| self.dead.spares(**n));
        if bare_matches && bare.is_some_and(|n| hit(*n, 0)) {
            return;
        }
        let mut fresh = true;
        for (start, c) in self.value.iter().enumerate() {
            if !delimiter(*c) && fresh && self.parts_from(start, delimiter, hit) {
                return;
            }
            fresh = delimiter(*c);
        }
    }

    fn parts_from(
        &self,
        start: usize,
        delimiter: fn(u8) -> bool,
        hit: &mut dyn FnMut(u32, usize) -> bool,
    ) -> bool {
        let rest = &self.value[start..];
        let lengths = &self.index.lengths;
        let fold = folded(self.index.fold);
        let (mut hash, mut inner) = (Rolling::EMPTY, 0);
        for len in 1..=rest.len().min(lengths.most) {
            hash = hash.push(fold(rest[len - 1]));
            if rest.get(len).is_some_and(|c| !delimiter(*c)) {
                continue;
            }
            if lengths.contains(len) && self.look(hash.finish(), &rest[..len], hit) {
                return true;
            }
            inner += 1;
            if inner > self.index.inner {
                return false;
            }
        }
        false
    }
}
