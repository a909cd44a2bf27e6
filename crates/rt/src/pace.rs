//! Bulk transfers in fewer, larger steps.
//!
//! A worker that moves a long body faster than its sender writes would be woken for every segment: a sleep,
//! an interrupt on the sender's processor and a wake-up for each 32 KB, which costs both sides more than
//! moving the bytes. So while bulk data flow, the worker lets them gather for a moment before it asks for
//! events again, as network cards do before they interrupt. The sockets' buffers hold many times of what
//! comes in that time, so nothing gets slower, and a stream that is slow enough to let the worker sleep
//! longer is passed on at once.

use std::cell::Cell;
use std::time::Duration;

use base::time::Mono;
use rustix::thread::{Timespec, nanosleep};

/// Bytes moved in one turn from which on it counts as bulk.
const BULK: usize = 16 * 1024;
/// Turns further apart than this have nothing to gain: data come slowly.
const BRISK: Duration = Duration::from_micros(200);
/// How long data may gather. Timers count in milliseconds and don't notice.
const GATHER: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };

thread_local! {
    static MOVED: Cell<usize> = const { Cell::new(0) };
}

/// So many bytes of a message were received at once.
#[inline]
pub(crate) fn moved(bytes: usize) {
    MOVED.set(MOVED.get().saturating_add(bytes));
}

/// The pace of one worker.
#[derive(Default)]
pub(crate) struct Pace {
    /// When the turn before this one began.
    last: Cell<Mono>,
}

impl Pace {
    /// Whether data should gather before the worker, which has nothing to do, looks for events; `now` is when
    /// its turn began.
    pub(crate) fn is_brisk(&self, now: Mono) -> bool {
        let since = now.since(self.last.replace(now));
        MOVED.take() >= BULK && since < BRISK
    }
}

/// Lets data gather.
pub(crate) fn gather() {
    // Interrupted by a signal: then it ends earlier.
    let _ = nanosleep(&GATHER);
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Mono {
        Mono::from_nanos(micros * 1000)
    }

    #[test]
    fn only_bulk_that_comes_fast_is_gathered() {
        let pace = Pace::default();
        assert!(!pace.is_brisk(at(10_000)), "nothing moved");
        moved(BULK);
        assert!(pace.is_brisk(at(10_100)), "bulk, soon after");
        assert!(!pace.is_brisk(at(10_150)), "nothing moved since");
        moved(BULK - 1);
        assert!(!pace.is_brisk(at(10_160)), "a small message");
        moved(BULK);
        assert!(!pace.is_brisk(at(11_000)), "the worker had slept long");
    }
}
