//! Filters on one direction: what sees the data on their way and may hold them back.
//!
//! The pump asks a filter how much of what is there may go now, and tells it what went; a filter never copies
//! or waits itself. Filters stand in a chain, each sees only what those before it let pass; a direction
//! without filters has no chain and pays for none. What a chain sees goes through the buffer, never through a
//! pipe.

use std::task::Context;
use std::time::Duration;

use rt::Timer;

/// A filter on one direction.
pub trait Filter {
    /// How many of `ready` bytes may go at `now` (ms).
    ///
    /// # Errors
    /// None for so many milliseconds.
    fn admit(&mut self, now: u64, ready: usize) -> Result<usize, u64>;

    /// These bytes went.
    fn passed(&mut self, now: u64, bytes: &[u8]);
}

/// The filters of one direction, in order.
pub struct Chain {
    filters: Vec<Box<dyn Filter>>,
    timer: Timer,
}

/// Who waits longer than this looks again: the other side may be gone.
const LONGEST: u64 = 500;

impl Chain {
    /// A chain of these filters.
    pub fn new(filters: Vec<Box<dyn Filter>>) -> Chain {
        Chain { filters, timer: Timer::new() }
    }

    /// How many of the bytes at hand may go now. With 0 the task is woken when more may.
    pub fn admit(&mut self, cx: &mut Context<'_>, ready: usize) -> usize {
        let now = rt::now();
        let mut left = ready;
        for filter in &mut self.filters {
            match filter.admit(now.as_millis(), left) {
                Ok(n) if n > 0 => left = left.min(n),
                Ok(_) => return self.wait(cx, now, 1),
                Err(wait) => return self.wait(cx, now, wait),
            }
        }
        left
    }

    fn wait(&mut self, cx: &mut Context<'_>, now: rt::Mono, millis: u64) -> usize {
        self.timer.set(Some(now + Duration::from_millis(millis.clamp(1, LONGEST))));
        if self.timer.poll_expired(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        0
    }

    /// Tells all filters what went.
    pub fn passed(&mut self, bytes: &[u8]) {
        let now = rt::now().as_millis();
        for filter in &mut self.filters {
            filter.passed(now, bytes);
        }
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain({})", self.filters.len())
    }
}
