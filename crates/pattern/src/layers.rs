//! One published state of a live set: segments in the order of their entries.

use std::sync::Arc;

use crate::index::Found;
use crate::segment::Segment;
use crate::value::Value;

/// What readers see of one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers(pub(crate) Vec<Arc<Segment>>);

impl Layers {
    /// The segment and entry that `value` finds: the heaviest, of those the first.
    pub(crate) fn find(&self, view: usize, value: Value<'_>) -> Option<(usize, u32)> {
        let mut best: Option<(usize, Found)> = None;
        for (at, segment) in self.0.iter().enumerate() {
            let Some(found) = segment.find(view, value, false) else { continue };
            if best.is_none_or(|(_, b)| found.weight > b.weight) {
                best = Some((at, found));
            }
        }
        best.map(|(at, found)| (at, found.entry))
    }

    /// Whether `value` finds anything.
    pub(crate) fn contains(&self, view: usize, value: Value<'_>) -> bool {
        self.0.iter().any(|segment| segment.find(view, value, true).is_some())
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|s| s.live_count() as usize).sum()
    }
}
