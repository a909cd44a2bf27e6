//! Instants as integers.
//!
//! A proxy compares and stores instants far more often than it prints them, so both clocks are plain integers
//! that fit a register: [`Mono`] for deadlines and durations (nanoseconds of a clock that never goes back),
//! [`Wall`] for logs and dates (microseconds since the Unix epoch). Neither reads a clock: the runtime does,
//! once per loop turn.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// An instant of the monotonic clock, in nanoseconds since an arbitrary origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The origin of the clock; no later than any instant.
    pub const ZERO: Mono = Mono(0);
    /// Later than any instant that is reached in practice.
    pub const FAR: Mono = Mono(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Mono {
        Mono(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time from `earlier` to `self`, zero if `earlier` is the later one.
    pub const fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whole milliseconds from `earlier` to `self`, zero if `earlier` is the later one.
    pub const fn millis_since(self, earlier: Mono) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000_000
    }

    /// The instant `d` before `self`, the origin at the earliest.
    pub fn saturating_sub(self, d: Duration) -> Mono {
        Mono(self.0.saturating_sub(nanos(d)))
    }
}

impl Add<Duration> for Mono {
    type Output = Mono;
    /// Saturates at [`Mono::FAR`].
    fn add(self, d: Duration) -> Mono {
        Mono(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Mono {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Mono> for Mono {
    type Output = Duration;
    /// As [`Mono::since`].
    fn sub(self, earlier: Mono) -> Duration {
        self.since(earlier)
    }
}

/// A date, in microseconds since the Unix epoch (1970-01-01 00:00:00 UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(u64);

impl Wall {
    /// The date `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Wall {
        Wall(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The microseconds within the second: 0 to 999,999.
    pub const fn subsec_micros(self) -> u32 {
        (self.0 % 1_000_000) as u32
    }

    /// The milliseconds within the second: 0 to 999.
    pub const fn subsec_millis(self) -> u32 {
        self.subsec_micros() / 1_000
    }
}

impl Add<Duration> for Wall {
    type Output = Wall;
    fn add(self, d: Duration) -> Wall {
        Wall(self.0.saturating_add(u64::try_from(d.as_micros()).unwrap_or(u64::MAX)))
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        assert_eq!(Mono::from_nanos(5) + Duration::MAX, Mono::FAR);
        assert_eq!(Mono::from_nanos(5).since(Mono::from_nanos(9)), Duration::ZERO);
        assert_eq!(Mono::from_nanos(5).saturating_sub(Duration::from_secs(1)), Mono::ZERO);
    }

    #[test]
    fn a_date_splits_into_seconds_and_fractions() {
        let date = Wall::from_micros(1_700_000_000_123_456);
        assert_eq!(
            (date.as_secs(), date.subsec_millis(), date.subsec_micros()),
            (1_700_000_000, 123, 123_456)
        );
    }
}
