//! Entries by a key, first ones first.
//!
//! A table finds one entry for each distinct key, the first; later ones with the same key hang on it. So a
//! file of a million equal lines costs no more than one of a million different ones.

use std::collections::HashMap;

use hashbrown::HashTable;

use crate::dead::Dead;

/// Entries by hash.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    table: HashTable<u32>,
    twins: HashMap<u32, Vec<u32>>,
}

impl Keys {
    /// An empty table with room.
    pub(crate) fn with_capacity(n: usize) -> Keys {
        Keys { table: HashTable::with_capacity(n), twins: HashMap::new() }
    }

    /// Takes in an entry; entries come in order. `same` compares with the key of an entry, `rehash` hashes
    /// one.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: u32,
        same: impl Fn(u32) -> bool,
        rehash: impl Fn(u32) -> u64,
    ) {
        match self.table.find(hash, |n| same(*n)) {
            Some(first) => self.twins.entry(*first).or_default().push(entry),
            None => {
                self.table.insert_unique(hash, entry, |n| rehash(*n));
            }
        }
    }

    /// The first entry with a key that is still there.
    pub(crate) fn find(&self, hash: u64, dead: &Dead, same: impl Fn(u32) -> bool) -> Option<u32> {
        let first = *self.table.find(hash, |n| same(*n))?;
        if dead.spares(first) {
            return Some(first);
        }
        self.twins.get(&first)?.iter().copied().find(|n| dead.spares(*n))
    }

    /// Calls `each` for all entries with a key.
    pub(crate) fn all(&self, hash: u64, same: impl Fn(u32) -> bool, each: &mut dyn FnMut(u32)) {
        let Some(first) = self.table.find(hash, |n| same(*n)) else { return };
        each(*first);
        self.twins.get(first).into_iter().flatten().for_each(|n| each(*n));
    }
}

/// A hash that grows byte by byte, so that the hashes of all prefixes of a value cost one pass.
#[derive(Clone, Copy)]
pub(crate) struct Rolling(u64);

/// The factor by which a byte counts more than the one behind it.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rolling {
    pub(crate) const EMPTY: Rolling = Rolling(0);

    pub(crate) fn push(self, byte: u8) -> Rolling {
        Rolling(self.0.wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1))
    }

    /// Takes the first byte away again; `power` is [`Rolling::power`] of the length.
    pub(crate) fn drop_first(self, byte: u8, power: u64) -> Rolling {
        Rolling(self.0.wrapping_sub((u64::from(byte) + 1).wrapping_mul(power)))
    }

    /// What the first of `len` bytes was multiplied with.
    pub(crate) fn power(len: usize) -> u64 {
        (1..len).fold(1u64, |p, _| p.wrapping_mul(FACTOR))
    }

    /// Hash of some bytes.
    pub(crate) fn of(bytes: impl Iterator<Item = u8>) -> Rolling {
        bytes.fold(Rolling::EMPTY, Rolling::push)
    }

    /// The hash for a table.
    pub(crate) fn finish(self) -> u64 {
        mix(self.0)
    }
}

/// Spreads the bits of a number.
pub(crate) fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (n ^ n >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ n >> 32
}

/// A letter of ASCII in lower case, if case is ignored.
pub(crate) fn folded(fold: bool) -> impl Fn(u8) -> u8 + Copy {
    move |c| if fold { c.to_ascii_lowercase() } else { c }
}

/// A set of lengths.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    bits: Vec<u64>,
    pub(crate) most: usize,
}

impl Lengths {
    pub(crate) fn insert(&mut self, n: usize) {
        let word = n / 64;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (n % 64);
        self.most = self.most.max(n);
    }

    pub(crate) fn contains(&self, n: usize) -> bool {
        self.bits.get(n / 64).is_some_and(|w| w >> (n % 64) & 1 == 1)
    }
}
