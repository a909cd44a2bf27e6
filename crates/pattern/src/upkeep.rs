//! The merge of what run-time changes left scattered, done while readers and writers go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::layers::Layers;
use crate::live::LiveSet;
use crate::merge::{self, Plan};
use crate::segment::Segment;
use crate::writer::Merging;

impl LiveSet {
    /// Merges what run-time changes left scattered. The thread of [`crate::merge_in_background`] calls it
    /// when there is something to do; readers and writers go on. Says whether there was work.
    pub fn maintenance(&self) -> bool {
        self.asked.store(false, Ordering::Release);
        let mut writer = self.writer();
        let layers = self.published.load_full();
        let Some(range) = merge::worthwhile(&layers).filter(|_| writer.merging.is_none()) else {
            return false;
        };
        let segments = layers.0.get(range).unwrap_or_default().to_vec();
        let count = segments.iter().map(|s| u64::from(s.len())).sum::<u64>();
        let fresh = writer.next_id;
        writer.next_id += count;
        writer.merging = Some(Box::new(Merging { segments: segments.clone(), events: Vec::new() }));
        let views = writer.views.clone();
        drop(writer);
        let one = merge::merged(&segments, Plan { views: &views, hasty: false, fresh });
        let mut writer = self.writer();
        let Some(merging) = writer.merging.take() else { return true };
        if let Ok(one) = one {
            merging.events.iter().for_each(|e| e.replay(&one));
            self.replace(&segments, one);
        }
        true
    }

    /// Puts the merged segment where those stand that it was made of, if they still do.
    fn replace(&self, segments: &[Arc<Segment>], one: Segment) {
        let mut layers = Layers::clone(&self.published.load());
        let Some(first) = segments.first() else { return };
        let Some(at) = layers.0.iter().position(|s| Arc::ptr_eq(s, first)) else { return };
        let there = layers.0.get(at..at + segments.len()).unwrap_or_default();
        if there.len() == segments.len() && there.iter().zip(segments).all(|(a, b)| Arc::ptr_eq(a, b)) {
            let one = (one.live_count() > 0).then(|| Arc::new(one));
            layers.0.splice(at..at + segments.len(), one);
            self.publish(layers);
        }
    }

    pub(crate) fn ask_for_merge(&self, layers: &Layers) {
        if merge::worthwhile(layers).is_some() && !self.asked.swap(true, Ordering::AcqRel) {
            merge::ask(&self.me);
        }
    }
}
