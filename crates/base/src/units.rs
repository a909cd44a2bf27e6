//! Times, sizes and percentages as configurations write them (manual, sections 2.5 and 2.6).
//!
//! Both are an integer with at most one unit behind it. The parsers say what is wrong as a value; the
//! sentences that HAProxy makes of it differ from keyword to keyword, so only the common one for times is
//! kept here.

use std::fmt;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// `us`
    Microsecond,
    /// `ms`
    Millisecond,
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
}

impl Unit {
    /// How many microseconds it has.
    pub const fn microseconds(self) -> u64 {
        match self {
            Unit::Microsecond => 1,
            Unit::Millisecond => 1_000,
            Unit::Second => 1_000_000,
            Unit::Minute => 60_000_000,
            Unit::Hour => 3_600_000_000,
            Unit::Day => 86_400_000_000,
        }
    }

    /// The unit that `text` begins with, and what follows it.
    fn lead(text: &str) -> Option<(Unit, &str)> {
        const UNITS: [(&str, Unit); 6] = [
            ("us", Unit::Microsecond),
            ("ms", Unit::Millisecond),
            ("s", Unit::Second),
            ("m", Unit::Minute),
            ("h", Unit::Hour),
            ("d", Unit::Day),
        ];
        UNITS.iter().find_map(|(name, unit)| Some((*unit, text.strip_prefix(name)?)))
    }
}

/// The longest time, in whatever unit is asked for: 2147483647, about 24.8 days of milliseconds.
pub const LONGEST_TIME: u32 = i32::MAX as u32;

/// Why a text is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// There is nothing.
    Empty,
    /// A character that is neither a digit nor a unit.
    Unexpected(char),
    /// More than [`LONGEST_TIME`].
    Overflow,
    /// Something stands behind the unit. HAProxy warns, and uses the value.
    Trailing {
        /// The value in front of it.
        value: u32,
        /// The first character too many.
        found: char,
    },
}

impl TimeError {
    /// HAProxy's words for `argument` to `keyword`, as most keywords have them.
    pub fn text(self, argument: &str, keyword: &str) -> String {
        match self {
            TimeError::Empty => format!("missing value for '{keyword}'"),
            TimeError::Unexpected(c) => format!("unexpected character '{c}' in '{keyword}'"),
            TimeError::Overflow => format!(
                "timer overflow in argument '{argument}' to '{keyword}' (maximum value is {LONGEST_TIME} ms or ~24.8 days)"
            ),
            TimeError::Trailing { found, .. } => format!(
                "unexpected character '{found}' after the timer value '{argument}', only (us=microseconds,\
                 ms=milliseconds,s=seconds,m=minutes,h=hours,d=days) are supported. This will be reported as an error \
                 in next versions."
            ),
        }
    }
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeError::Empty => f.write_str("missing time"),
            TimeError::Unexpected(c) => write!(f, "unexpected character '{c}'"),
            TimeError::Overflow => f.write_str("timer overflow"),
            TimeError::Trailing { found, .. } => write!(f, "unexpected character '{found}' after the unit"),
        }
    }
}

/// Reads a time. A bare number counts in `unit`, and so does the result; what is not a whole number of units
/// is rounded up, so that only zero becomes zero.
pub fn time(text: &str, unit: Unit) -> Result<u32, TimeError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Err(rest.chars().next().map_or(TimeError::Empty, TimeError::Unexpected));
    }
    let (written, tail) = match Unit::lead(rest) {
        Some(found) => found,
        None => match rest.chars().next() {
            Some(c) => return Err(TimeError::Unexpected(c)),
            None => (unit, ""),
        },
    };
    let number: u64 = number.parse().map_err(|_| TimeError::Overflow)?;
    let total = number.checked_mul(written.microseconds()).ok_or(TimeError::Overflow)?;
    let value = u32::try_from(total.div_ceil(unit.microseconds())).map_err(|_| TimeError::Overflow)?;
    if value > LONGEST_TIME {
        return Err(TimeError::Overflow);
    }
    tail.chars().next().map_or(Ok(value), |found| Err(TimeError::Trailing { value, found }))
}

/// Why a text is no size: what is left of it where reading stopped, which is what HAProxy shows
/// (`unexpected 'b' after size passed to ...`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeError<'t> {
    /// From the first byte that makes no sense.
    pub rest: &'t str,
}

impl SizeError<'_> {
    /// HAProxy's words for an argument to `keyword`.
    pub fn text(&self, keyword: &str) -> String {
        format!("unexpected '{}' after size passed to '{keyword}'", self.rest)
    }
}

/// Reads a size in bytes of at most `max`: an integer and perhaps `k`, `m` or `g`, in either case.
pub fn size(text: &str, max: u64) -> Result<u64, SizeError<'_>> {
    let mut value: u64 = 0;
    let mut digits = 0;
    for byte in text.bytes().take_while(u8::is_ascii_digit) {
        let more = value.checked_mul(10).and_then(|ten| ten.checked_add(u64::from(byte - b'0')));
        match more.filter(|more| *more <= max) {
            Some(more) => value = more,
            None => return Err(SizeError { rest: text.get(digits..).unwrap_or_default() }),
        }
        digits += 1;
    }
    let rest = text.get(digits..).unwrap_or_default();
    if digits == 0 {
        return Err(SizeError { rest });
    }
    let shift = match rest.as_bytes().first() {
        None => return Ok(value),
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        Some(_) => return Err(SizeError { rest }),
    };
    let tail = rest.get(1..).unwrap_or_default();
    if !tail.is_empty() {
        return Err(SizeError { rest: tail });
    }
    value.checked_mul(1 << shift).filter(|value| *value <= max).ok_or(SizeError { rest })
}

/// Reads a percentage: an integer up to `max` with a `%` behind it.
pub fn percent(text: &str, max: u32) -> Option<u32> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|value| is_number && *value <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_unit_asked_for() {
        let ms = |text| time(text, Unit::Millisecond);
        assert_eq!(ms("1"), Ok(1));
        assert_eq!(ms("1s"), Ok(1000));
        assert_eq!(ms("10m"), Ok(600_000));
        assert_eq!(ms("24d"), Ok(2_073_600_000));
        assert_eq!(ms("2147483647"), Ok(LONGEST_TIME));
        assert_eq!((ms("0us"), ms("1us"), ms("1000us"), ms("1001us")), (Ok(0), Ok(1), Ok(1), Ok(2)));
        assert_eq!(time("10", Unit::Second), Ok(10));
        assert_eq!(time("1500ms", Unit::Second), Ok(2));
        assert_eq!(time("1h", Unit::Second), Ok(3600));
    }

    #[test]
    fn what_is_no_time_says_why() {
        let ms = |text| time(text, Unit::Millisecond).expect_err("no time");
        assert_eq!(ms(""), TimeError::Empty);
        for (text, found) in
            [("1x", 'x'), ("x", 'x'), ("-1", '-'), ("1.5s", '.'), ("us", 'u'), ("1S", 'S'), ("1w", 'w')]
        {
            assert_eq!(ms(text), TimeError::Unexpected(found), "{text}");
        }
        for text in
            ["2147483648", "25d", "99999999999", "24855h", "9999999999999999us", "99999999999999999999999"]
        {
            assert_eq!(ms(text), TimeError::Overflow, "{text}");
        }
        assert_eq!(ms("1sx"), TimeError::Trailing { value: 1000, found: 'x' });
        assert_eq!(
            ms("25d").text("25d", "timeout queue"),
            "timer overflow in argument '25d' to 'timeout queue' (maximum value is 2147483647 ms or ~24.8 days)"
        );
    }

    #[test]
    fn sizes_stop_where_the_oracle_stops() {
        let max = u64::from(u32::MAX);
        assert_eq!(size("1k", max), Ok(1024));
        assert_eq!(size("1K", max), Ok(1024));
        assert_eq!(size("3g", max), Ok(3 << 30));
        assert_eq!(size("4g", u64::MAX), Ok(4 << 30));
        for (text, rest) in [
            ("1x", "x"),
            ("1kb", "b"),
            ("x", "x"),
            ("-1", "-1"),
            ("4g", "g"),
            ("4294967296", "6"),
            ("1.5k", ".5k"),
        ] {
            assert_eq!(size(text, max), Err(SizeError { rest }), "{text}");
        }
        assert_eq!(size("", max), Err(SizeError { rest: "" }));
    }

    #[test]
    fn a_percentage_needs_its_sign_and_has_a_limit() {
        assert_eq!(percent("10%", 100), Some(10));
        assert_eq!(
            (percent("101%", 100), percent("10", 100), percent("%", 100), percent("+1%", 100)),
            (None, None, None, None)
        );
    }
}
