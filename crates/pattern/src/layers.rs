//! One published state of a live set: segments in the order of their entries, and for each
//! what was deleted or given another value since it was built.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::index::Found;
use crate::segment::Segment;
use crate::value::Value;

/// A segment with its later changes.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) segment: Arc<Segment>,
    pub(crate) dead: Arc<HashSet<u32>>,
    pub(crate) changed: Arc<HashMap<u32, Arc<[u8]>>>,
}

/// What readers see of one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers(pub(crate) Vec<Layer>);

impl Layer {
    pub(crate) fn new(segment: Segment) -> Layer {
        Layer { segment: Arc::new(segment), dead: Arc::default(), changed: Arc::default() }
    }

    fn find(&self, view: usize, value: Value<'_>) -> Option<Found> {
        let index = self.segment.indexes.get(view)?;
        index.find(&self.segment.entries, value, &|n| self.dead.is_empty() || !self.dead.contains(&n))
    }

    pub(crate) fn value(&self, entry: u32) -> Option<&[u8]> {
        if let Some(value) = self.changed.get(&entry) {
            return Some(value);
        }
        self.segment.entries.value(entry)
    }

    pub(crate) fn pattern(&self, entry: u32) -> Cow<'_, [u8]> {
        self.segment.pattern(entry)
    }

    /// Entries that are still there.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.segment.len()).filter(|n| !self.dead.contains(n))
    }

    /// Entries whose pattern is written `key`.
    pub(crate) fn written(&self, key: &[u8]) -> Vec<u32> {
        self.live().filter(|n| *self.pattern(*n) == *key).collect()
    }

    /// Takes entries away.
    pub(crate) fn kill(&mut self, entries: &[u32]) {
        if !entries.is_empty() {
            Arc::make_mut(&mut self.dead).extend(entries);
        }
    }

    /// Gives entries another value.
    pub(crate) fn change(&mut self, entries: &[u32], value: &Arc<[u8]>) {
        if !entries.is_empty() {
            let changed = Arc::make_mut(&mut self.changed);
            changed.extend(entries.iter().map(|n| (*n, value.clone())));
        }
    }
}

impl Layers {
    /// The layer and entry that `value` finds: the heaviest, of those the first.
    pub(crate) fn find(&self, view: usize, value: Value<'_>) -> Option<(usize, u32)> {
        let mut best: Option<(usize, Found)> = None;
        for (at, layer) in self.0.iter().enumerate() {
            let Some(found) = layer.find(view, value) else { continue };
            if best.is_none_or(|(_, b)| found.weight > b.weight) {
                best = Some((at, found));
            }
        }
        best.map(|(at, found)| (at, found.entry))
    }

    /// Whether `value` finds anything.
    pub(crate) fn contains(&self, view: usize, value: Value<'_>) -> bool {
        self.0.iter().any(|layer| layer.find(view, value).is_some())
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|l| l.segment.len() as usize - l.dead.len()).sum()
    }
}

impl Layer {
    /// The entry with reference `id`, if it is still there.
    pub(crate) fn with_id(&self, id: u64) -> Option<u32> {
        let entry = self.segment.ids.entry(id, self.segment.len())?;
        (!self.dead.contains(&entry)).then_some(entry)
    }
}
