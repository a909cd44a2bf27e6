//! What TLS counts of the process: connections now and so far, and look-ups of sessions (`show info`).
//!
//! A connection may begin on one worker and end on another, so nobody owns a gauge of it. Each worker counts
//! what begins and ends with it on a cache line of its own; the sum over all is the figure, however the parts
//! came about.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Workers that count apart; those beyond share.
const WORKERS: usize = 64;

#[repr(align(128))]
struct Slot {
    open: AtomicI64,
    total: AtomicU64,
    lookups: AtomicU64,
    misses: AtomicU64,
}

static SLOTS: [Slot; WORKERS] = [const {
    Slot {
        open: AtomicI64::new(0),
        total: AtomicU64::new(0),
        lookups: AtomicU64::new(0),
        misses: AtomicU64::new(0),
    }
}; WORKERS];

fn own() -> &'static Slot {
    &SLOTS[base::worker::number() % WORKERS]
}

/// Figures of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections on either side, from the beginning of their handshake.
    pub open: u32,
    /// The same so far, and those to servers that could not be reached.
    pub total: u64,
    /// Sessions that clients asked to resume out of the cache.
    pub lookups: u64,
    /// Those that were not there.
    pub misses: u64,
}

/// The figures now.
pub fn read() -> Figures {
    let sum = |f: fn(&Slot) -> &AtomicU64| SLOTS.iter().map(|s| f(s).load(Relaxed)).sum();
    let open: i64 = SLOTS.iter().map(|s| s.open.load(Relaxed)).sum();
    Figures {
        open: u32::try_from(open).unwrap_or(0),
        total: sum(|s| &s.total),
        lookups: sum(|s| &s.lookups),
        misses: sum(|s| &s.misses),
    }
}

/// A connection that is counted while this lives.
#[derive(Debug)]
pub(crate) struct Open(());

impl Open {
    pub fn new() -> Open {
        let slot = own();
        slot.open.fetch_add(1, Relaxed);
        slot.total.fetch_add(1, Relaxed);
        Open(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        own().open.fetch_sub(1, Relaxed);
    }
}

/// Counts a connection with TLS that came to no handshake: its server could not be reached, or its client did
/// not begin with the header that it owes, or
/// was turned away by rules before that.
pub fn not_shaken() {
    own().total.fetch_add(1, Relaxed);
}

/// Counts a look-up in a cache of sessions.
pub(crate) fn looked_up(found: bool) {
    let slot = own();
    slot.lookups.fetch_add(1, Relaxed);
    if !found {
        slot.misses.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_on_one_worker_may_end_on_another() {
        // Other tests of this process shake hands, too: a number that none of them has.
        let one = Open::new();
        let before = read();
        let (open, total) = std::thread::spawn(move || {
            base::worker::set_number(7);
            let two = Open::new();
            drop(one);
            let slot = own();
            let seen = (slot.open.load(Relaxed), slot.total.load(Relaxed));
            drop(two);
            seen
        })
        .join()
        .unwrap();
        assert_eq!((open, total), (0, 1));
        assert!(before.total >= 1);
    }
}
