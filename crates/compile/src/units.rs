//! Numbers, times and sizes as the configuration writes them (manual, sections 2.4 and 2.5).
//!
//! HAProxy reads numbers in two ways. Most keywords take the leading digits and ignore the rest, so `maxconn x` is
//! zero: [`lenient`]. Times and sizes are strict.

use std::time::Duration;

/// Why a time can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFault {
    /// This character does not belong there.
    Unexpected(char),
    /// More than 2^31-1 units.
    Overflow,
    /// Not zero, yet less than one unit.
    Underflow,
}

/// What `atoi` makes of a word: an optional sign and leading digits, zero without any; saturates.
pub(crate) fn lenient(text: &str) -> i64 {
    lang::sample::parse_int(text.trim_start().as_bytes()).unwrap_or(0)
}

/// A whole word of digits, perhaps with a sign.
pub(crate) fn strict(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A time in milliseconds, the unit of a bare number.
pub(crate) fn millis(text: &str) -> Result<u64, TimeFault> {
    time(text, 1_000)
}

/// The same for keywords that tolerate something behind the unit, as in `15min`: the value, and the first character
/// too many. HAProxy warns, and uses the value.
pub(crate) fn tolerant(text: &str) -> Result<(u64, Option<char>), TimeFault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let suffix = text.get(digits..).unwrap_or_default();
    let known = unit_length(suffix);
    let found = suffix.chars().nth(known).filter(|_| known > 0);
    let cut = if found.is_some() { digits.saturating_add(known) } else { text.len() };
    Ok((millis(text.get(..cut).unwrap_or(text))?, found))
}

/// A time in seconds, the unit of a bare number.
pub(crate) fn seconds(text: &str) -> Result<u64, TimeFault> {
    time(text, 1_000_000)
}

/// A time of up to 2^31-1 ms as a duration; zero means none.
pub(crate) fn limit(millis: u64) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis))
}

/// Reads digits and a unit; the result and a bare number count in `unit` microseconds.
fn time(text: &str, unit: u64) -> Result<u64, TimeFault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    if number.is_empty() {
        return Err(TimeFault::Unexpected(suffix.chars().next().unwrap_or('\0')));
    }
    let factor = match suffix {
        "" => unit,
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(TimeFault::Unexpected(odd(suffix))),
    };
    let micros = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or(TimeFault::Overflow)?;
    let units = micros.div_ceil(unit);
    match units {
        _ if micros > 0 && micros < unit => Err(TimeFault::Underflow),
        u if u > i32::MAX as u64 => Err(TimeFault::Overflow),
        u => Ok(u),
    }
}

/// The character at which a suffix stops being a unit.
fn odd(suffix: &str) -> char {
    suffix.chars().nth(unit_length(suffix)).unwrap_or('\0')
}

/// The length of the unit that `suffix` begins with; zero without one.
fn unit_length(suffix: &str) -> usize {
    match suffix.as_bytes() {
        [b'u' | b'm', b's', ..] => 2,
        [b's' | b'm' | b'h' | b'd', ..] => 1,
        _ => 0,
    }
}

/// A size in bytes: digits and perhaps `k`, `m` or `g`. The error is what follows the part that is understood.
pub(crate) fn size(text: &str) -> Result<u64, &str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.as_bytes() {
        _ if number.is_empty() => return Err(text),
        [] => 0,
        [b'k' | b'K'] => 10,
        [b'm' | b'M'] => 20,
        [b'g' | b'G'] => 30,
        [b'k' | b'K' | b'm' | b'M' | b'g' | b'G', ..] => return Err(suffix.get(1..).unwrap_or(suffix)),
        _ => return Err(suffix),
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or(text)
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
        assert_eq!(millis("1us"), Err(TimeFault::Underflow));
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
