//! What a set keeps for its writers, behind their lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::changed::NewValue;
use crate::error::ChangeError;
use crate::heard::Heard;
use crate::kind::{Flags, Kind};
use crate::layers::Layers;
use crate::merge::Event;
use crate::segment::Segment;
use crate::usage::{Face, Output};

/// The state of a set that only writers see.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) current: u32,
    pub(crate) next: u32,
    pub(crate) views: Vec<(Kind, Flags)>,
    pub(crate) prepared: BTreeMap<u32, Layers>,
    pub(crate) next_id: u64,
    pub(crate) merging: Option<Box<Merging>>,
    /// Raised at every change: see [`LiveSet::watch`].
    pub(crate) watched: Vec<Arc<AtomicBool>>,
    /// Who is told of changes.
    pub(crate) heard: Heard,
    /// How the configuration uses the set.
    pub(crate) faces: Vec<Face>,
}

/// A merge that goes on beside the writers.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) events: Vec<Event>,
}

impl Writer {
    /// Tells who watches the set.
    pub(crate) fn raise(&self) {
        self.watched.iter().for_each(|w| w.store(true, Ordering::Relaxed));
    }

    /// Keeps in mind what has to be done again to a segment that is being merged.
    pub(crate) fn note(&mut self, segment: &Arc<Segment>, n: u32, value: Option<&NewValue>) {
        let Some(merging) = &mut self.merging else { return };
        if merging.segments.iter().any(|s| Arc::ptr_eq(s, segment)) {
            let pattern = segment.pattern(n).into_owned().into();
            merging.events.push(Event { id: segment.ids.id(n), pattern, value: value.cloned() });
        }
    }

    /// The prepared version meant, or nothing for the current one.
    pub(crate) fn resolve(&self, version: Option<u32>) -> Result<Option<u32>, ChangeError> {
        match version {
            None => Ok(None),
            Some(v) if v == self.current => Ok(None),
            Some(v) if v.wrapping_sub(self.current) <= self.next.wrapping_sub(self.current) => Ok(Some(v)),
            Some(_) => Err(ChangeError::Version),
        }
    }

    /// Whether values have to be looked at before they are taken in.
    pub(crate) fn is_choosy(&self) -> bool {
        self.faces.iter().any(|f| f.output != Output::Text)
    }

    /// Whether all uses of the set can read a value.
    pub(crate) fn reads(&self, value: &[u8]) -> bool {
        self.faces.iter().all(|f| f.output.reads(value))
    }
}
