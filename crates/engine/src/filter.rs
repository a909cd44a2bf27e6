//! Filters: what sees the data of a stream on its way and may hold it back.
//!
//! A filter works on one direction. The pump asks it how much of what is there may go now, and tells it what went; it
//! never copies or waits itself. Filters stand in a chain, each sees only what those before it let pass; a direction
//! without filters has no chain and pays for none. What a chain sees goes through the buffer, never through a pipe.
//! Bandwidth limits (section 9.7) and `trace` (9.1) are filters; what rewrites data (compression) will need a
//! step of its own between buffer and socket.

mod limit;
mod trace;

use std::task::Context;
use std::time::Duration;

use lang::env::Side;
use rt::Timer;

use crate::stream::Stream;

pub use trace::{headers, started, stopped};

/// A filter on one direction of a stream.
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

/// The chain of one direction as rules and proxies want it; none, if they want none.
pub fn chain(stream: &mut Stream<'_>, side: Side) -> Option<Box<Chain>> {
    let traced = trace::is_traced(stream);
    if stream.txn.bandwidth.is_empty() && !traced {
        return None;
    }
    let mut filters: Vec<(u32, Box<dyn Filter>)> = trace::filters(stream, side);
    let upload = side == Side::Request;
    let mut rest = Vec::new();
    for limit in std::mem::take(&mut stream.txn.bandwidth) {
        match limit.upload == upload {
            true => filters.push((limit.order, Box::new(limit::Limit::new(limit)))),
            false => rest.push(limit),
        }
    }
    stream.txn.bandwidth = rest;
    filters.sort_by_key(|(order, _)| *order);
    let filters: Vec<_> = filters.into_iter().map(|(_, f)| f).collect();
    (!filters.is_empty()).then(|| Box::new(Chain { filters, timer: Timer::new() }))
}
