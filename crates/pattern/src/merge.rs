//! Making one segment of several.
//!
//! Additions make segments of one entry. Where two neighbours are small and of like size they are merged at
//! once, so a thousand additions leave ten segments. What is larger is left to [`LiveSet::maintenance`],
//! which builds the merged segment while readers and writers go on; what is deleted or changed meanwhile is
//! noted and done again to the result.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::changed::NewValue;
use crate::draft::Draft;
use crate::error::PatternError;
use crate::index::Reading;
use crate::kind::{Flags, Kind};
use crate::layers::Layers;
use crate::live::LiveSet;
use crate::segment::{Ids, Segment};

/// Entries that two segments may have to be merged at once.
const AT_ONCE: u32 = 512;

/// Segments of one version, beyond which the later ones are merged at once whatever their size.
const TOO_MANY: usize = 48;

/// Segments of one version that are worth a merge in the background.
const WORTH: usize = 4;

/// A base of at most this many entries is merged with what was added to it.
const SMALL_BASE: u32 = 1 << 16;

/// Adds a segment behind others and merges what can be merged at once.
pub(crate) fn push(layers: &mut Layers, segment: Segment, views: &[(Kind, Flags)]) {
    layers.0.push(Arc::new(segment));
    while let [.., a, b] = layers.0.as_slice() {
        let (len_a, len_b) = (a.len(), b.len());
        if len_a > 2 * len_b || len_a + len_b > AT_ONCE {
            break;
        }
        if !collapse(layers, 2, views) {
            return;
        }
    }
    if layers.0.len() > TOO_MANY {
        collapse(layers, layers.0.len() - 1, views);
    }
}

/// Merges the last `count` segments; whether that went well.
fn collapse(layers: &mut Layers, count: usize, views: &[(Kind, Flags)]) -> bool {
    let at = layers.0.len().saturating_sub(count);
    // References of small segments stay: they are never compact.
    let Ok(one) = merged(&layers.0[at..], Plan { views, hasty: true, fresh: 0 }) else { return false };
    layers.0.truncate(at);
    if one.len() > 0 {
        layers.0.push(Arc::new(one));
    }
    true
}

/// The segments worth merging in the background, as a range; what was deleted counts as work too.
pub(crate) fn worthwhile(layers: &Layers) -> Option<std::ops::Range<usize>> {
    let base = layers.0.first()?;
    let all = layers.0.len();
    let added: u32 = layers.0.iter().skip(1).map(|s| s.len()).fold(0, u32::saturating_add);
    let dead: u32 = layers.0.iter().map(|s| s.dead.len()).fold(0, u32::saturating_add);
    let many_dead = dead > 64 && dead > base.len() / 4;
    let much_added = all > WORTH && (base.len() <= SMALL_BASE || added > base.len() / 4);
    if many_dead || much_added {
        Some(0..all)
    } else if all > WORTH + 1 {
        Some(1..all)
    } else {
        None
    }
}

/// How a merge is done.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) views: &'a [(Kind, Flags)],
    /// Leaves out what takes long to build.
    pub(crate) hasty: bool,
    /// References from here on may be given to entries that can't keep theirs.
    pub(crate) fresh: u64,
}

/// One segment of the entries of several that are still there.
pub(crate) fn merged(segments: &[Arc<Segment>], plan: Plan<'_>) -> Result<Segment, PatternError> {
    let compact = segments.iter().any(|s| s.entries.host_count() > 0);
    let mut draft = Draft::new(compact);
    let mut ids = Ids::default();
    let mut origins = Vec::new();
    let expressions = plan.views.iter().filter(|(kind, _)| *kind == Kind::Reg).count() == 1;
    for segment in segments {
        for n in segment.live() {
            if expressions {
                origins.push((segment, n));
            }
            ids.push(draft.len(), segment.ids.id(n));
            take(&mut draft, segment, n).ok_or_else(full)?;
        }
    }
    let entries = draft.finish().ok_or_else(full)?;
    // Positions of compact entries say nothing of their age.
    let ids = if entries.host_count() > 0 { Ids::from(plan.fresh) } else { ids };
    let compiled = |n: u32| {
        let (segment, n) = origins.get(n as usize)?;
        segment.indexes.iter().find_map(|i| i.compiled(*n)).cloned()
    };
    let reading = Reading { names: false, compiled: Some(&compiled), singly: plan.hasty };
    Segment::build(entries, plan.views, ids, reading).map_err(|(_, e)| e)
}

fn take(draft: &mut Draft, segment: &Segment, n: u32) -> Option<()> {
    let new = segment.new_value(n);
    let value = new.as_ref().map(|v| &***v).or_else(|| segment.entries.value(n));
    match segment.entries.text(n) {
        Some(text) => draft.push(text, value),
        None => draft.push_host(segment.entries.hosts()?.address(n), value),
    }
}

fn full() -> PatternError {
    PatternError::new(b"", "out of memory")
}

/// What happened to an entry of a segment while that was being merged.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Its reference.
    pub(crate) id: u64,
    /// Its pattern as written.
    pub(crate) pattern: Box<[u8]>,
    /// Its new value; nothing if it was deleted.
    pub(crate) value: Option<NewValue>,
}

impl Event {
    /// Does the same to the entry of the merged segment.
    pub(crate) fn replay(&self, segment: &Segment) {
        let by_id = segment.with_id(self.id).filter(|n| *segment.pattern(*n) == *self.pattern);
        let Some(n) = by_id.or_else(|| segment.written(&self.pattern).first().copied()) else { return };
        match &self.value {
            Some(value) => segment.changed.set(n, value.clone()),
            None => {
                segment.dead.kill(n);
            }
        }
    }
}

/// What the thread in the background is asked to do.
enum Job {
    Merge(Weak<LiveSet>),
    Free(Arc<Segment>),
}

/// Where sets ask for it.
static ASKED: OnceLock<Sender<Job>> = OnceLock::new();

/// From this many entries on, giving the memory of a segment back takes milliseconds.
const LONG_TO_FREE: u32 = 1 << 16;

/// How long a segment that was let go is waited for, ms: look-ups take microseconds, and who walks over it
/// for longer (`show map`) may as well free it.
const PATIENCE: u32 = 1000;

/// Starts the thread that merges what run-time changes of all sets leave behind, and frees it. Without it
/// sets merge less, and at the cost of whoever changes them.
pub fn merge_in_background() {
    let (sender, receiver) = channel();
    if ASKED.set(sender).is_err() {
        return;
    }
    let work = move || receiver.iter().for_each(work);
    let _ = std::thread::Builder::new().name("patterns".into()).spawn(work);
}

fn work(job: Job) {
    match job {
        Job::Merge(set) => {
            if let Some(set) = set.upgrade() {
                set.maintenance();
            }
        }
        Job::Free(segment) => {
            let mut patience = PATIENCE;
            while Arc::strong_count(&segment) > 1 && patience > 0 {
                std::thread::sleep(Duration::from_millis(1));
                patience -= 1;
            }
        }
    }
}

/// Asks for a merge of a set.
pub(crate) fn ask(set: &Weak<LiveSet>) {
    if let Some(sender) = ASKED.get() {
        let _ = sender.send(Job::Merge(set.clone()));
    }
}

/// Has what was large in an old state and is not in the new one freed in the background: neither a reader nor
/// a writer is to wait for that.
pub(crate) fn let_go(old: &Layers, new: &Layers) {
    let Some(sender) = ASKED.get() else { return };
    let stays = |s: &Arc<Segment>| new.0.iter().any(|n| Arc::ptr_eq(n, s));
    for segment in old.0.iter().filter(|s| s.len() >= LONG_TO_FREE && !stays(s)) {
        let _ = sender.send(Job::Free(segment.clone()));
    }
}
