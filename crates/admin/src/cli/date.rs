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

/// A time in its two largest units.
pub fn human_age(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let at = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let (unit, name) = UNITS[at];
    let rest = UNITS.get(at + 1).map(|(less, name)| (seconds % unit / less, name)).filter(|(n, _)| *n > 0);
    let rest = rest.map(|(n, name)| format!("{n}{name}")).unwrap_or_default();
    format!("{}{name}{rest}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::human_age;

    #[test]
    fn ages_have_two_units() {
        let of = |s: u64| human_age(s);
        assert_eq!([of(0), of(59), of(60), of(63), of(558)], ["0s", "59s", "1m", "1m3s", "9m18s"]);
        assert_eq!([of(3600), of(3661), of(90_000), of(86_459)], ["1h", "1h1m", "1d1h", "1d"]);
    }
}
