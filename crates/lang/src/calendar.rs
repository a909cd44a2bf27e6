//! Dates as text: the forms of logs and HTTP, and the conversions of strftime(3) that the manual's time
//! converters take.

use std::io::Write;

use base::date::Date;

use crate::arg::Arg;
use crate::env::Env;
use crate::words::Fault;

/// How many of a unit of time (`s`, `ms`, `us`; seconds if none is given) make a second.
pub(crate) fn per_second(unit: &Arg) -> Result<i64, Fault> {
    match unit.bytes() {
        None | Some(b"s") => Ok(1),
        Some(b"ms") => Ok(1000),
        Some(b"us") => Ok(1_000_000),
        Some(other) => {
            let got = String::from_utf8_lossy(other);
            Err(Fault::new(format!("expects 's', 'ms' or 'us', got '{got}'")))
        }
    }
}

/// A date and time, split up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    date: Date,
    /// Seconds east of UTC.
    pub(crate) offset: i32,
}

impl Civil {
    /// UTC.
    pub(crate) fn utc(_: &Env<'_>, seconds: i64) -> Civil {
        Civil::at(seconds, 0)
    }

    /// Local time.
    pub(crate) fn local(env: &Env<'_>, seconds: i64) -> Civil {
        Civil::at(seconds, env.live.local_offset(seconds))
    }

    fn at(seconds: i64, offset: i32) -> Civil {
        Civil { date: Date::of(seconds.saturating_add(i64::from(offset))), offset }
    }
}

impl std::ops::Deref for Civil {
    type Target = Date;

    fn deref(&self) -> &Date {
        &self.date
    }
}

/// Appends two digits.
pub(crate) fn two(out: &mut Vec<u8>, n: impl Into<u32>) {
    let n = n.into();
    out.extend([b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
}

/// Appends `21/Nov/2026:04:57:40`, as logs have it.
pub(crate) fn log_date(out: &mut Vec<u8>, t: &Civil) {
    two(out, t.day);
    out.push(b'/');
    out.extend_from_slice(t.month_name().as_bytes());
    out.push(b'/');
    crate::sample::append_int(out, t.year);
    for n in [t.hour, t.minute, t.second] {
        out.push(b':');
        two(out, n);
    }
}

/// Appends ` +0000`.
pub(crate) fn zone_suffix(out: &mut Vec<u8>, t: &Civil) {
    out.push(b' ');
    offset(out, t.offset);
}

fn offset(out: &mut Vec<u8>, seconds: i32) {
    out.push(if seconds < 0 { b'-' } else { b'+' });
    two(out, seconds.unsigned_abs() / 3600);
    two(out, seconds.unsigned_abs() / 60 % 60);
}

/// Appends `Sat, 21 Nov 2026 04:57:40 GMT` (RFC 9110 section 5.6.7).
pub(crate) fn http_date(out: &mut Vec<u8>, t: &Civil) {
    out.extend_from_slice(t.weekday_name().as_bytes());
    out.extend_from_slice(b", ");
    two(out, t.day);
    out.push(b' ');
    out.extend_from_slice(t.month_name().as_bytes());
    out.push(b' ');
    crate::sample::append_int(out, t.year);
    for (sep, n) in [(b' ', t.hour), (b':', t.minute), (b':', t.second)] {
        out.push(sep);
        two(out, n);
    }
    out.extend_from_slice(b" GMT");
}

/// Appends the date of so many seconds since 1970 in that form.
pub fn http_date_of(out: &mut Vec<u8>, seconds: i64) {
    http_date(out, &Civil::at(seconds, 0));
}

/// Appends a date as strftime(3) formats it in the C locale. `micros` is the part of the second, for the
/// `%3N`, `%6N` and `%N` that the manual adds.
pub(crate) fn format(out: &mut Vec<u8>, pattern: &[u8], t: &Civil, seconds: i64, micros: u32) {
    let mut rest = pattern.iter();
    while let Some(&c) = rest.next() {
        if c != b'%' {
            out.push(c);
            continue;
        }
        let Some(&c) = rest.next() else { break };
        let c = if matches!(c, b'E' | b'O') { rest.next().copied().unwrap_or(c) } else { c };
        match (c, rest.as_slice().first()) {
            (b'1'..=b'9', Some(b'N')) => {
                rest.next();
                let digits = format!("{:09}", u64::from(micros) * 1000);
                out.extend_from_slice(&digits.as_bytes()[..usize::from(c - b'0')]);
            }
            (b'N', _) => drop(write!(out, "{:09}", u64::from(micros) * 1000)),
            _ => one(out, c, t, seconds),
        }
    }
}

fn one(out: &mut Vec<u8>, c: u8, t: &Civil, seconds: i64) {
    let twelve = match t.hour % 12 {
        0 => 12,
        h => h,
    };
    let nested = |out: &mut Vec<u8>, pattern: &str| format(out, pattern.as_bytes(), t, seconds, 0);
    match c {
        b'a' => out.extend_from_slice(t.weekday_name().as_bytes()),
        b'A' => out.extend_from_slice(t.weekday_long().as_bytes()),
        b'b' | b'h' => out.extend_from_slice(t.month_name().as_bytes()),
        b'B' => out.extend_from_slice(t.month_long().as_bytes()),
        b'c' => nested(out, "%a %b %e %H:%M:%S %Y"),
        b'C' => drop(write!(out, "{:02}", t.year.div_euclid(100))),
        b'd' => two(out, t.day),
        b'D' | b'x' => nested(out, "%m/%d/%y"),
        b'e' => drop(write!(out, "{:2}", t.day)),
        b'F' => nested(out, "%Y-%m-%d"),
        b'H' => two(out, t.hour),
        b'I' => two(out, twelve),
        b'j' => drop(write!(out, "{:03}", t.yearday + 1)),
        b'k' => drop(write!(out, "{:2}", t.hour)),
        b'l' => drop(write!(out, "{twelve:2}")),
        b'm' => two(out, t.month),
        b'M' => two(out, t.minute),
        b'n' => out.push(b'\n'),
        b'p' => out.extend_from_slice(if t.hour < 12 { b"AM" } else { b"PM" }),
        b'P' => out.extend_from_slice(if t.hour < 12 { b"am" } else { b"pm" }),
        b'r' => nested(out, "%I:%M:%S %p"),
        b'R' => nested(out, "%H:%M"),
        b's' => crate::sample::append_int(out, seconds),
        b'S' => two(out, t.second),
        b't' => out.push(b'\t'),
        b'T' | b'X' => nested(out, "%H:%M:%S"),
        b'u' => out.push(b'0' + if t.weekday == 0 { 7 } else { t.weekday }),
        b'U' => two(out, (t.yearday + 7 - u16::from(t.weekday)) / 7),
        b'W' => two(out, (t.yearday + 7 - u16::from((t.weekday + 6) % 7)) / 7),
        b'V' => two(out, iso_week(t).1),
        b'G' => crate::sample::append_int(out, iso_week(t).0),
        b'g' => two(out, iso_week(t).0.rem_euclid(100) as u32),
        b'w' => out.push(b'0' + t.weekday),
        b'y' => two(out, t.year.rem_euclid(100) as u32),
        b'Y' => crate::sample::append_int(out, t.year),
        b'z' => offset(out, t.offset),
        b'Z' => out.extend_from_slice(if t.offset == 0 { b"UTC" } else { b"" }),
        b'%' => out.push(b'%'),
        other => out.extend([b'%', other]),
    }
}

/// Year and week of ISO 8601: weeks begin on Monday, the first holds the first Thursday.
fn iso_week(t: &Civil) -> (i64, u32) {
    let monday = (i64::from(t.weekday) + 6) % 7;
    let week = (i64::from(t.yearday) - monday + 10) / 7;
    let days = |y: i64| if y % 4 == 0 && (y % 100 != 0 || y % 400 == 0) { 366 } else { 365 };
    // The weekday of the first of January, Monday being 0.
    let first = (monday - i64::from(t.yearday)).rem_euclid(7);
    let long = |first: i64, len: i64| first == 3 || (first == 2 && len == 366);
    if week < 1 {
        let len = days(t.year - 1);
        let before = (first - len).rem_euclid(7);
        (t.year - 1, if long(before, len) { 53 } else { 52 })
    } else if week == 53 && !long(first, days(t.year)) {
        (t.year + 1, 1)
    } else {
        (t.year, week as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(pattern: &str, seconds: i64) -> String {
        let mut out = Vec::new();
        format(&mut out, pattern.as_bytes(), &Civil::at(seconds, 0), seconds, 123_456);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_come_out_as_strftime_writes_them() {
        assert_eq!(formatted("%d/%b/%Y:%H:%M:%S.%3N %z", 1_795_237_060), "21/Nov/2026:04:57:40.123 +0000");
        assert_eq!(formatted("%a %j %U %W %V %G %u %%", 1_795_237_060), "Sat 325 46 46 47 2026 6 %");
        assert_eq!(formatted("%F %T", -1), "1969-12-31 23:59:59");
        assert_eq!(formatted("%F %G-W%V", 1_104_537_600), "2005-01-01 2004-W53");
        assert_eq!(formatted("%F %j", 951_782_400), "2000-02-29 060");
        assert_eq!(formatted("%G-W%V", 1_230_768_000), "2009-W01");
        assert_eq!(formatted("%G-W%V", 1_261_958_400), "2009-W53");
    }
}
