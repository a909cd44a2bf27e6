//! Numbers, times and sizes as the configuration writes them (manual, sections 2.4 and 2.5).
//!
//! HAProxy reads numbers in two ways. Most keywords take the leading digits and ignore the rest, so `maxconn
//! x` is zero: [`lenient`]. Times and sizes are strict.

use std::time::Duration;

use base::units::{TimeError, Unit};

/// Why a time can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFault {
    /// This character does not belong there.
    Unexpected(char),
    /// More than 2^31-1 units.
    Overflow,
}

/// What `atoi` makes of a word: an optional sign and leading digits, zero without any; what does not fit
/// wraps around.
pub(crate) fn lenient(text: &str) -> i64 {
    i64::from(lang::sample::parse_int(text.trim_start().as_bytes()).unwrap_or(0) as i32)
}

/// The same without limits.
pub(crate) fn whole(text: &str) -> i64 {
    lang::sample::parse_int(text.trim_start().as_bytes()).unwrap_or(0)
}

/// A whole word of digits, perhaps with a sign.
pub(crate) fn strict(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A time in milliseconds, the unit of a bare number.
pub(crate) fn millis(text: &str) -> Result<u64, TimeFault> {
    exact(text, Unit::Millisecond)
}

/// The same for keywords that tolerate something behind the unit, as in `15min`: the value, and the first
/// character too many. HAProxy warns, and uses the value.
pub(crate) fn tolerant(text: &str) -> Result<(u64, Option<char>), TimeFault> {
    tolerated(text, Unit::Millisecond)
}

/// The same in seconds, the unit of a bare number.
pub(crate) fn tolerant_seconds(text: &str) -> Result<(u64, Option<char>), TimeFault> {
    tolerated(text, Unit::Second)
}

fn tolerated(text: &str, unit: Unit) -> Result<(u64, Option<char>), TimeFault> {
    match base::units::time(text, unit) {
        Ok(value) => Ok((value.into(), None)),
        Err(TimeError::Trailing { value, found }) => Ok((value.into(), Some(found))),
        Err(TimeError::Overflow) => Err(TimeFault::Overflow),
        Err(TimeError::Unexpected(found)) => Err(TimeFault::Unexpected(found)),
        Err(TimeError::Empty) => Err(TimeFault::Unexpected('\0')),
    }
}

/// A time in seconds, the unit of a bare number.
pub(crate) fn seconds(text: &str) -> Result<u64, TimeFault> {
    exact(text, Unit::Second)
}

/// A time of up to 2^31-1 ms as a duration; zero means none.
pub(crate) fn limit(millis: u64) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis))
}

/// Reads digits and a unit; the result, rounded up, and a bare number count in `unit`.
fn exact(text: &str, unit: Unit) -> Result<u64, TimeFault> {
    base::units::time(text, unit).map(u64::from).map_err(|fault| match fault {
        TimeError::Overflow => TimeFault::Overflow,
        TimeError::Unexpected(found) | TimeError::Trailing { found, .. } => TimeFault::Unexpected(found),
        TimeError::Empty => TimeFault::Unexpected('\0'),
    })
}

/// A size in bytes: digits and perhaps `k`, `m` or `g`. The error is what follows the part that is
/// understood.
pub(crate) fn size(text: &str) -> Result<u64, &str> {
    base::units::size(text, u32::MAX.into()).map_err(|fault| fault.rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_number_and_one_unit() {
        assert_eq!(millis("5s"), Ok(5000));
        assert_eq!(millis("30"), Ok(30));
        assert_eq!(millis("1500us"), Ok(2));
        assert_eq!(millis("24d"), Ok(2_073_600_000));
        assert_eq!(seconds("2m"), Ok(120));
        assert_eq!(millis("5x"), Err(TimeFault::Unexpected('x')));
        assert_eq!(millis("5sx"), Err(TimeFault::Unexpected('x')));
        assert_eq!(millis("25d"), Err(TimeFault::Overflow));
        assert_eq!(millis("99999999999999999999"), Err(TimeFault::Overflow));
        assert_eq!(millis("1us"), Ok(1));
        assert_eq!(millis("0us"), Ok(0));
        assert_eq!(millis("abc"), Err(TimeFault::Unexpected('a')));
    }

    #[test]
    fn a_size_may_be_scaled() {
        assert_eq!(size("16k"), Ok(16384));
        assert_eq!(size("2M"), Ok(2 << 20));
        assert_eq!(size("5"), Ok(5));
        assert_eq!(size("5kb"), Err("b"));
        assert_eq!(size("x"), Err("x"));
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!(lenient("12abc"), 12);
        assert_eq!(lenient("abc"), 0);
        assert_eq!(lenient("-3"), -3);
    }
}
