//! Dates as text: the civil calendar, the local time zone, and the conversions of strftime(3) that the
//! manual's time converters take.
//!
//! The zone is read once, when the registry is put together, so that it works inside a chroot.

use std::io::Write;
use std::sync::OnceLock;

/// A date and time, split up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: u32,
    /// 1 to 31.
    pub(crate) day: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
    /// 0 is Sunday.
    pub(crate) weekday: u32,
    /// 0 is the first of January.
    pub(crate) yearday: u32,
    /// Seconds east of UTC.
    pub(crate) offset: i32,
}

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Civil {
    /// UTC.
    pub(crate) fn utc(seconds: i64) -> Civil {
        Civil::at(seconds, 0)
    }

    /// Local time.
    pub(crate) fn local(seconds: i64) -> Civil {
        Civil::at(seconds, zone().offset(seconds))
    }

    /// Days are counted in eras of 400 years that begin in March, so that leap days come last.
    fn at(seconds: i64, offset: i32) -> Civil {
        let local = seconds.saturating_add(i64::from(offset));
        let (days, rest) = (local.div_euclid(86_400), local.rem_euclid(86_400) as u32);
        let shifted = days + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * march + 2) / 5 + 1) as u32;
        let month = (if march < 10 { march + 3 } else { march - 9 }) as u32;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let yearday = before[(month - 1) as usize] + u32::from(leap && month > 2) + day - 1;
        Civil {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7) as u32,
            yearday,
            offset,
        }
    }

    pub(crate) fn month_name(&self) -> &'static str {
        MONTHS[(self.month - 1) as usize % 12]
    }

    pub(crate) fn day_name(&self) -> &'static str {
        DAYS[self.weekday as usize % 7]
    }
}

/// Appends two digits.
pub(crate) fn two(out: &mut Vec<u8>, n: u32) {
    out.extend([b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
}

/// Appends `21/Nov/2026:04:57:40`, as logs have it.
pub(crate) fn log_date(out: &mut Vec<u8>, t: &Civil) {
    two(out, t.day);
    out.push(b'/');
    out.extend_from_slice(&t.month_name().as_bytes()[..3]);
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
    out.extend_from_slice(&t.day_name().as_bytes()[..3]);
    out.extend_from_slice(b", ");
    two(out, t.day);
    out.push(b' ');
    out.extend_from_slice(&t.month_name().as_bytes()[..3]);
    out.push(b' ');
    crate::sample::append_int(out, t.year);
    for (sep, n) in [(b' ', t.hour), (b':', t.minute), (b':', t.second)] {
        out.push(sep);
        two(out, n);
    }
    out.extend_from_slice(b" GMT");
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
        b'a' => out.extend_from_slice(&t.day_name().as_bytes()[..3]),
        b'A' => out.extend_from_slice(t.day_name().as_bytes()),
        b'b' | b'h' => out.extend_from_slice(&t.month_name().as_bytes()[..3]),
        b'B' => out.extend_from_slice(t.month_name().as_bytes()),
        b'c' => nested(out, "%a %b %e %H:%M:%S %Y"),
        b'C' => two(out, (t.year.div_euclid(100)) as u32),
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
        b'u' => out.push(b'0' + if t.weekday == 0 { 7 } else { t.weekday as u8 }),
        b'U' => two(out, (t.yearday + 7 - t.weekday) / 7),
        b'W' => two(out, (t.yearday + 7 - (t.weekday + 6) % 7) / 7),
        b'V' => two(out, iso_week(t).1),
        b'G' => crate::sample::append_int(out, iso_week(t).0),
        b'g' => two(out, iso_week(t).0.rem_euclid(100) as u32),
        b'w' => out.push(b'0' + t.weekday as u8),
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

/// The offsets of a time zone, from the moment each begins.
#[derive(Debug, Default)]
struct Zone {
    from: Vec<i64>,
    offset: Vec<i32>,
    first: i32,
}

impl Zone {
    fn offset(&self, seconds: i64) -> i32 {
        match self.from.partition_point(|t| *t <= seconds) {
            0 => self.first,
            n => self.offset.get(n - 1).copied().unwrap_or(0),
        }
    }

    /// Reads the 64-bit part of a TZif file (RFC 9636 section 3). What it says beyond its last transition is
    /// taken to stay.
    fn parse(file: &[u8]) -> Option<Zone> {
        let counts = |at: usize| -> Option<[usize; 6]> {
            let mut all = [0; 6];
            for (i, n) in all.iter_mut().enumerate() {
                *n =
                    u32::from_be_bytes(file.get(at + 20 + 4 * i..at + 24 + 4 * i)?.try_into().ok()?) as usize;
            }
            Some(all)
        };
        if !file.starts_with(b"TZif") {
            return None;
        }
        let [isut, isstd, leap, times, types, chars] = counts(0)?;
        let second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut;
        let [_, _, _, times, types, _] = counts(second)?;
        let at = second + 44;
        let (kinds, infos) = (at + times * 8, at + times * 9);
        let mut offsets = Vec::new();
        for i in 0..types {
            offsets.push(i32::from_be_bytes(file.get(infos + i * 6..infos + i * 6 + 4)?.try_into().ok()?));
        }
        let mut zone = Zone { first: offsets.first().copied().unwrap_or(0), ..Zone::default() };
        for i in 0..times {
            zone.from.push(i64::from_be_bytes(file.get(at + i * 8..at + i * 8 + 8)?.try_into().ok()?));
            zone.offset.push(*offsets.get(usize::from(*file.get(kinds + i)?))?);
        }
        Some(zone)
    }
}

fn zone() -> &'static Zone {
    static ZONE: OnceLock<Zone> = OnceLock::new();
    ZONE.get_or_init(|| {
        let path = match std::env::var("TZ") {
            Ok(tz) if tz.starts_with(['/', ':']) => tz.trim_start_matches(':').to_owned(),
            Ok(tz) if !tz.is_empty() => format!("/usr/share/zoneinfo/{tz}"),
            Ok(_) => return Zone::default(),
            Err(_) => "/etc/localtime".to_owned(),
        };
        std::fs::read(path).ok().and_then(|file| Zone::parse(&file)).unwrap_or_default()
    })
}

/// Reads the local time zone now, while the file system is still whole.
pub(crate) fn load_zone() {
    zone();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(pattern: &str, seconds: i64) -> String {
        let mut out = Vec::new();
        format(&mut out, pattern.as_bytes(), &Civil::utc(seconds), seconds, 123_456);
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

    #[test]
    fn a_zone_file_gives_the_offset_of_each_moment() {
        let Ok(file) = std::fs::read("/usr/share/zoneinfo/Europe/Paris") else { return };
        let zone = Zone::parse(&file).unwrap();
        assert_eq!(zone.offset(1_700_000_000), 3600);
        assert_eq!(zone.offset(1_690_000_000), 7200);
    }
}
