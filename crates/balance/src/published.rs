//! How readers reach the schedule: each thread keeps a copy of the pointer and checks a version.
//!
//! A schedule is read twice per request and replaced a few times an hour. `arc-swap` alone needs no lock, but
//! its guard costs two atomic writes: 19 ns here, more than the pick itself (5 ns this way). So each thread
//! remembers the last schedule it used and loads the current version, a word that stays in every core's
//! cache. Only when that differs does it fetch the pointer, without a lock, through `arc-swap`.
//!
//! The price is that a thread keeps a replaced schedule alive until it reads again, at most one per thread
//! and backend. Places in the threads' lists are recycled when a backend goes; versions are unique in the
//! process, so what another backend left there is never taken for one's own.

use crate::balancer::Schedule;
use arc_swap::ArcSwap;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

static VERSIONS: AtomicU64 = AtomicU64::new(1);
static PLACES: Mutex<Places> = Mutex::new(Places { free: Vec::new(), made: 0 });

thread_local! {
    static KEPT: RefCell<Vec<Option<Arc<Versioned>>>> = const { RefCell::new(Vec::new()) };
}

/// A schedule that can be replaced while it is read.
#[derive(Debug)]
pub(crate) struct Published {
    place: usize,
    version: AtomicU64,
    current: ArcSwap<Versioned>,
}

#[derive(Debug)]
struct Versioned {
    version: u64,
    schedule: Schedule,
}

#[derive(Debug)]
struct Places {
    free: Vec<usize>,
    made: usize,
}

impl Published {
    pub(crate) fn new(schedule: Schedule) -> Published {
        let first = Versioned::new(schedule);
        Published {
            place: places().take(),
            version: AtomicU64::new(first.version),
            current: ArcSwap::from_pointee(first),
        }
    }

    /// Replaces the schedule. Who reads after this returns sees the new one.
    pub(crate) fn publish(&self, schedule: Schedule) {
        let new = Versioned::new(schedule);
        let version = new.version;
        self.current.store(Arc::new(new));
        self.version.store(version, Ordering::SeqCst);
    }

    /// Whether a schedule read under this version is still the current one.
    pub(crate) fn is_current(&self, version: u64) -> bool {
        self.version.load(Ordering::SeqCst) == version
    }

    /// Gives the current schedule and its version to `f`.
    pub(crate) fn read<R>(&self, f: impl FnOnce(u64, &Schedule) -> R) -> R {
        let mut f = Some(f);
        let version = self.version.load(Ordering::SeqCst);
        let kept = |kept: &RefCell<Vec<Option<Arc<Versioned>>>>| {
            let list = kept.try_borrow().ok()?;
            let found = list.get(self.place)?.as_ref().filter(|found| found.version == version)?;
            f.take().map(|f| f(found.version, &found.schedule))
        };
        if let Ok(Some(result)) = KEPT.try_with(kept) {
            return result;
        }
        let current = self.current.load_full();
        self.keep(&current);
        // Not taken above, or that would have given its result.
        f.take().map(|f| f(current.version, &current.schedule)).expect("a reader runs once")
    }

    // A reader inside a reader, or at the end of its thread, goes without.
    fn keep(&self, current: &Arc<Versioned>) {
        let keep = |kept: &RefCell<Vec<Option<Arc<Versioned>>>>| {
            let Ok(mut list) = kept.try_borrow_mut() else { return None };
            if list.len() <= self.place {
                list.resize(self.place + 1, None);
            }
            list[self.place].replace(current.clone())
        };
        drop(KEPT.try_with(keep));
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        places().free.push(self.place);
    }
}

impl Versioned {
    fn new(schedule: Schedule) -> Versioned {
        Versioned { version: VERSIONS.fetch_add(1, Ordering::Relaxed), schedule }
    }
}

impl Places {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }
}

fn places() -> MutexGuard<'static, Places> {
    PLACES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
