//! A part of the keys: a map, and the order in which its entries were asked for last.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::Entry;

/// An entry, or the links that are left of it.
#[derive(Debug)]
pub(crate) enum Kept<M> {
    Whole(Arc<Entry<M>>),
    Links { key: Box<[u8]>, hints: Arc<[u8]>, expires: u64 },
}

impl<M> Kept<M> {
    pub fn key(&self) -> &[u8] {
        match self {
            Kept::Whole(entry) => &entry.key,
            Kept::Links { key, .. } => key,
        }
    }

    pub fn size(&self) -> usize {
        match self {
            Kept::Whole(entry) => entry.size,
            Kept::Links { hints, .. } => links_size(hints),
        }
    }
}

pub(crate) fn links_size(hints: &[u8]) -> usize {
    // HAProxy keeps the values, each with its length.
    const BESIDE: usize = b"link: \r\n".len() - 2;
    let fields = hints.iter().filter(|byte| **byte == b'\n').count();
    (crate::OVERHEAD + hints.len()).saturating_sub(BESIDE * fields)
}

#[derive(Debug)]
pub(crate) struct Place<M> {
    pub kept: Kept<M>,
    /// When it was asked for last, as a number that only grows.
    pub used: u64,
    /// When it was put there, likewise.
    pub number: u64,
}

/// The map's keys are hashes already.
#[derive(Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Nothing but whole numbers comes.
        bytes.iter().for_each(|b| self.0 = self.0.rotate_left(8) ^ u64::from(*b));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

pub(crate) type Places<M> = HashMap<u64, Vec<Place<M>>, BuildHasherDefault<AsIs>>;

/// One shard. Places are looked through under the hash of their key; two keys of one hash are told apart by
/// their bytes.
#[derive(Debug)]
pub(crate) struct Shard<M> {
    pub places: Places<M>,
    /// Hashes with the numbers at which they were asked for, oldest first. Who was asked for again stands in
    /// it once more: an old number is passed over.
    order: VecDeque<(u64, u64)>,
}

impl<M> Default for Shard<M> {
    fn default() -> Shard<M> {
        Shard { places: HashMap::default(), order: VecDeque::new() }
    }
}

impl<M> Shard<M> {
    /// Notes that something under `hash` was put there or asked for at `number`.
    pub fn touch(&mut self, hash: u64, number: u64) {
        self.order.push_back((number, hash));
        // Numbers that are passed over may not pile up.
        if self.order.len() > 64 && self.order.len() / 4 > self.places.len() {
            let places = &self.places;
            self.order.retain(|(number, hash)| is_current(places, *hash, *number));
        }
    }

    /// The number at which the oldest place was asked for last.
    pub fn oldest(&mut self) -> Option<u64> {
        while let Some((number, hash)) = self.order.front() {
            if is_current(&self.places, *hash, *number) {
                return Some(*number);
            }
            self.order.pop_front();
        }
        None
    }

    /// The oldest whole entry's number, where links are to go last.
    pub fn oldest_whole(&self) -> Option<u64> {
        let whole = |(number, hash): &&(u64, u64)| {
            let found = self.places.get(hash).and_then(|list| list.iter().find(|p| p.used == *number));
            found.is_some_and(|place| matches!(place.kept, Kept::Whole(_)))
        };
        self.order.iter().find(whole).map(|(number, _)| *number)
    }

    /// Takes out the place that was asked for last at `number`.
    pub fn take(&mut self, number: u64) -> Option<(u64, Place<M>)> {
        let at = self.order.iter().position(|(n, _)| *n == number)?;
        let (_, hash) = self.order.remove(at)?;
        let list = self.places.get_mut(&hash)?;
        let place = list.iter().position(|p| p.used == number).map(|at| list.swap_remove(at))?;
        if list.is_empty() {
            self.places.remove(&hash);
        }
        Some((hash, place))
    }
}

fn is_current<M>(places: &Places<M>, hash: u64, number: u64) -> bool {
    places.get(&hash).is_some_and(|list| list.iter().any(|place| place.used == number))
}
