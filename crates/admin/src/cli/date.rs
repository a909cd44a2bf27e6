//! Dates as the runtime API writes them, in local time.

use base::date::Date;
use rt::Wall;

fn seconds(at: Wall) -> String {
    let secs = i64::try_from(at.as_secs()).unwrap_or(0);
    let d = Date::of(secs + i64::from(rt::sys::local_offset(secs)));
    let (month, year) = (d.month_name(), d.year);
    format!("{:02}/{month}/{year}:{:02}:{:02}:{:02}", d.day, d.hour, d.minute, d.second)
}

/// `21/Nov/2026:05:34:06 +0000`, of seconds since 1970.
pub fn zoned(secs: i64) -> String {
    let offset = rt::sys::local_offset(secs);
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    let at = Wall::from_micros(u64::try_from(secs).unwrap_or(0).saturating_mul(1_000_000));
    format!("{} {sign}{:02}{:02}", seconds(at), minutes / 60, minutes % 60)
}

/// `21/Nov/2026:05:34:06.086`.
pub fn millis(at: Wall) -> String {
    format!("{}.{:03}", seconds(at), at.subsec_millis())
}

/// `21/Nov/2026:05:34:06.086123`.
pub fn micros(at: Wall) -> String {
    format!("{}.{:06}", seconds(at), at.subsec_micros())
}

/// `21/Nov/2026:05:34:06`.
pub fn plain(at: Wall) -> String {
    seconds(at)
}
