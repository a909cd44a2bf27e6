//! Rates of events over a rolling period, without locks and without a clock.
//!
//! A rate is asked for far more often than it may be computed from a list of events, and by threads that must
//! not wait for each other. So time is cut into windows of one period; a counter remembers the window that
//! runs and the one before. The rate now is what the running window holds plus that part of the previous one
//! which the period, looking back from now, still covers. That is exact for steady traffic and never off by
//! more than the previous window holds. Windows follow each other from the first event on, and after a
//! silence of two periods the next event begins anew: so a burst is counted whole for a period, as HAProxy
//! counts it.
//!
//! The two windows live in two words chosen by parity. A word holds the number of its window next to
//! its count, so one compare-and-swap opens a window and one addition counts an event. The time is
//! passed in by the caller, which knows it anyway. A thread that was held up may come with the time
//! of the window before: for it, too, the newest window runs, else it would miss what others have
//! counted there, and a limit would not hold.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// One second, in the milliseconds that this module counts.
pub const SECOND: u32 = 1000;

const COUNT_BITS: u32 = 40;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const TAG_MASK: u64 = (1 << (64 - COUNT_BITS)) - 1;

/// Events per period. Every call on one counter must name the same period.
///
/// Counts saturate at 2^40 - 1 per window. A counter that nobody touched for 2^24 windows may be taken for
/// recent; with a period of a second that is half a year.
#[derive(Debug, Default)]
pub struct Rate {
    windows: [AtomicU64; 2],
    /// How far behind the multiples of the period windows begin.
    phase: AtomicU32,
}

impl Rate {
    /// A counter that has seen nothing.
    pub const fn new() -> Rate {
        Rate { windows: [AtomicU64::new(0), AtomicU64::new(0)], phase: AtomicU32::new(0) }
    }

    /// Counts `events` at `now_ms` (any monotonic clock) in windows of `period_ms`.
    pub fn add(&self, now_ms: u64, period_ms: u32, events: u64) {
        let (mut tag, _) = self.window(now_ms, period_ms);
        let mut seen = self.word(tag).load(Relaxed);
        let before = tag.wrapping_sub(1) & TAG_MASK;
        if is_older(seen >> COUNT_BITS, tag)
            && is_older(self.word(before).load(Relaxed) >> COUNT_BITS, before)
        {
            // Both words are too old to be read under any phase. Of threads that come at once the last one
            // says when it began.
            self.phase.store((now_ms % u64::from(period_ms.max(1))) as u32, Relaxed);
            (tag, _) = self.window(now_ms, period_ms);
            seen = self.word(tag).load(Relaxed);
        }
        let word = self.word(tag);
        while is_older(seen >> COUNT_BITS, tag) {
            let fresh = tag << COUNT_BITS | events.min(COUNT_MAX);
            match word.compare_exchange_weak(seen, fresh, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(current) => seen = current,
            }
        }
        let room = COUNT_MAX - (seen & COUNT_MAX);
        // Half of the room is left for threads that add at the same time.
        word.fetch_add(events.min(room / 2), Relaxed);
    }

    /// The events of the period that ends at `now_ms`.
    pub fn read(&self, now_ms: u64, period_ms: u32) -> u64 {
        let (tag, left) = self.window(now_ms, period_ms);
        let current = self.count(tag);
        let previous = self.count(tag.wrapping_sub(1) & TAG_MASK);
        if current == 0 && previous <= 1 {
            return previous; // one event a period reads as 1, not as 1 and 0 in turns
        }
        current + (u128::from(previous) * u128::from(left) / u128::from(period_ms.max(1))) as u64
    }

    /// How many events may still come at `now_ms` before the rate exceeds `limit`.
    pub fn remaining(&self, now_ms: u64, period_ms: u32, limit: u64) -> u64 {
        limit.saturating_sub(self.read(now_ms, period_ms))
    }

    /// How long to wait, in milliseconds from `now_ms`, until one more event keeps the rate within `limit`:
    /// 0 when it may come at once, less than two periods otherwise (with a limit of 0, to the next window).
    pub fn next_in(&self, now_ms: u64, period_ms: u32, limit: u64) -> u64 {
        let (tag, left) = self.window(now_ms, period_ms);
        let (current, previous) = (self.count(tag), self.count(tag.wrapping_sub(1) & TAG_MASK));
        let period = u64::from(period_ms.max(1));
        if self.read(now_ms, period_ms) < limit {
            0
        } else if current < limit {
            left - latest_left(previous, limit - current, period).min(left)
        } else {
            left + period - latest_left(current, limit, period).min(period)
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for word in &self.windows {
            word.store(0, Relaxed);
        }
    }

    /// The number of the window that runs at `now_ms`, and how much of it is left. They are numbered from 2,
    /// so that a fresh word, all zeroes, belongs to none that is asked for at the start. Where another thread
    /// has already begun the next one, that is the one, at its beginning.
    fn window(&self, now_ms: u64, period_ms: u32) -> (u64, u64) {
        let period = u64::from(period_ms.max(1));
        let since = now_ms.saturating_sub(self.phase.load(Relaxed).into());
        let (tag, next) = ((since / period + 2) & TAG_MASK, (since / period + 3) & TAG_MASK);
        match self.word(next).load(Relaxed) >> COUNT_BITS == next {
            true => (next, period),
            false => (tag, period - since % period),
        }
    }

    fn word(&self, tag: u64) -> &AtomicU64 {
        &self.windows[(tag & 1) as usize]
    }

    fn count(&self, tag: u64) -> u64 {
        let word = self.word(tag).load(Relaxed);
        if word >> COUNT_BITS == tag { word & COUNT_MAX } else { 0 }
    }
}

/// A rate per second that remembers its highest value: the `rate` and `rate_max` of the statistics.
#[derive(Debug, Default)]
pub struct PeakRate {
    rate: Rate,
    peak: AtomicU32,
}

impl PeakRate {
    /// A counter that has seen nothing.
    pub const fn new() -> PeakRate {
        PeakRate { rate: Rate::new(), peak: AtomicU32::new(0) }
    }

    /// Counts one event at `now_ms`.
    pub fn add(&self, now_ms: u64) {
        self.rate.add(now_ms, SECOND, 1);
        let now = self.rate.read(now_ms, SECOND).min(u64::from(u32::MAX)) as u32;
        if now > self.peak.load(Relaxed) {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    /// The events of the second that ends at `now_ms`.
    pub fn read(&self, now_ms: u64) -> u64 {
        self.rate.read(now_ms, SECOND)
    }

    /// The underlying counter.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// The highest rate seen right after an event, since the start or the last [`PeakRate::reset_peak`].
    pub fn peak(&self) -> u32 {
        self.peak.load(Relaxed)
    }

    /// Forgets the highest rate (`clear counters`).
    pub fn reset_peak(&self) {
        self.peak.store(0, Relaxed);
    }
}

// How much of its window may be left when `previous` events have faded below `allowed`.
fn latest_left(previous: u64, allowed: u64, period: u64) -> u64 {
    let fading = u128::from(allowed) * u128::from(period);
    (fading.div_ceil(u128::from(previous.max(1))).saturating_sub(1)).min(u128::from(period)) as u64
}

fn is_older(tag: u64, than: u64) -> bool {
    let ahead = than.wrapping_sub(tag) & TAG_MASK;
    ahead != 0 && ahead <= TAG_MASK / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_reads_steadily() {
        let rate = Rate::new();
        for ms in (0..10_000).step_by(10) {
            rate.add(ms, SECOND, 1);
            if ms > 2000 {
                let read = rate.read(ms, SECOND);
                assert!((99..=101).contains(&read), "{read} at {ms}");
            }
        }
    }

    #[test]
    fn a_burst_fades_over_the_next_period_and_is_gone_after_it() {
        let rate = Rate::new();
        rate.add(5_700, SECOND, 100);
        let read =
            [(5_700, 100), (6_000, 100), (6_699, 100), (6_700, 100), (6_950, 75), (7_699, 0), (9_000, 0)];
        for (now, count) in read {
            assert_eq!(rate.read(now, SECOND), count, "{now}");
        }
    }

    /// Two workers, one of which stood still over the turn of a second: its clock is the one before.
    #[test]
    fn who_is_late_sees_what_was_counted_meanwhile() {
        let rate = Rate::new();
        rate.add(10_000, SECOND, 1);
        rate.add(11_001, SECOND, 50);
        assert_eq!(rate.remaining(10_990, SECOND, 50), 0);
        rate.add(10_991, SECOND, 5);
        assert_eq!(rate.read(11_500, SECOND), 55);
    }

    /// What HAProxy shows of 40 events and 40 more, so many milliseconds later.
    #[test]
    fn windows_follow_the_first_event_and_a_silence_ends_that() {
        for (later, read) in [
            (900, &[(950, 80), (1_050, 76), (1_500, 40), (1_950, 4), (2_050, 0)][..]),
            (1_500, &[(1_550, 58), (1_900, 44), (2_050, 38), (2_450, 22), (2_900, 4), (3_400, 0)]),
            (1_900, &[(1_950, 42), (2_100, 36), (2_500, 20), (2_950, 2)]),
            (2_300, &[(2_400, 40), (3_100, 40), (3_250, 40), (3_400, 36), (3_800, 20)]),
        ] {
            let (rate, start) = (Rate::new(), 77_777);
            rate.add(start, SECOND, 40);
            rate.add(start + later, SECOND, 40);
            for (at, count) in read {
                assert_eq!(rate.read(start + at, SECOND), *count, "{at} ms after the first, {later} apart");
            }
        }
    }

    #[test]
    fn one_event_a_period_does_not_flap() {
        let rate = Rate::new();
        rate.add(500, SECOND, 1);
        assert_eq!(rate.read(2_400, SECOND), 1);
        assert_eq!(rate.read(2_500, SECOND), 0);
    }

    #[test]
    fn a_late_clock_counts_in_its_own_window_or_a_newer_one() {
        let rate = Rate::new();
        rate.add(3_000, SECOND, 5);
        rate.add(2_999, SECOND, 7);
        assert_eq!(rate.read(3_000, SECOND), 12);
        rate.add(1_500, SECOND, 1); // its word is used by window 3 already
        assert_eq!(rate.read(3_000, SECOND), 13);
    }

    #[test]
    fn waiting_as_told_keeps_the_rate_within_the_limit() {
        let rate = Rate::new();
        let mut now: u64 = 10_000;
        for _ in 0..200 {
            let wait = rate.next_in(now, SECOND, 10);
            assert!(wait < 2 * u64::from(SECOND));
            now += wait;
            rate.add(now, SECOND, 1);
            assert!(rate.read(now, SECOND) <= 10, "{} at {now}", rate.read(now, SECOND));
        }
        assert!((28_000..32_000).contains(&now), "200 events at 10 a second ended at {now}");
    }

    #[test]
    fn a_saturated_window_does_not_spill_into_its_tag() {
        let rate = Rate::new();
        for _ in 0..100 {
            rate.add(0, SECOND, u64::MAX);
        }
        assert!(rate.read(0, SECOND) > COUNT_MAX / 2);
        assert_eq!(rate.read(2_000, SECOND), 0);
    }

    #[test]
    fn threads_lose_no_event() {
        let rate = Rate::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| rate.add(1_234, SECOND, 1)));
            }
        });
        assert_eq!(rate.read(1_234, SECOND), 40_000);
    }

    #[test]
    fn the_peak_stays_until_it_is_reset() {
        let rate = PeakRate::new();
        (0..50).for_each(|_| rate.add(1_000));
        rate.add(9_000);
        assert_eq!((rate.read(9_000), rate.peak()), (1, 50));
        rate.reset_peak();
        assert_eq!(rate.peak(), 0);
    }
}
