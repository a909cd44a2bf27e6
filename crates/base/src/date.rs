//! Calendar dates from seconds since the epoch, and the forms that logs and HTTP write them in.
//!
//! Offsets from UTC come from the caller: what zone the machine is in is the system's business.

/// A date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Year.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Day of the week, 0 is Sunday.
    pub weekday: u8,
    /// Day of the year, 0 is the first of January.
    pub yearday: u16,
}

/// English names of the months.
pub const MONTHS: [&str; 12] = [
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

/// English names of the days of the week, Sunday first.
pub const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Days of a year before each of its months, without a leap day.
const BEFORE: [u16; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Date {
    /// The date `secs` seconds after 1970-01-01 00:00:00, in the same zone.
    pub fn of(secs: i64) -> Date {
        let days = secs.div_euclid(86_400);
        let rest = secs.rem_euclid(86_400);
        let (year, month, day) = civil(days);
        let leap_day = u16::from(month > 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
        Date {
            year,
            month,
            day,
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
            weekday: (days + 4).rem_euclid(7) as u8,
            yearday: BEFORE[usize::from(month - 1)] + leap_day + u16::from(day) - 1,
        }
    }

    /// `January`.
    pub fn month_long(&self) -> &'static str {
        MONTHS[usize::from(self.month.clamp(1, 12)) - 1]
    }

    /// `Jan`.
    pub fn month_name(&self) -> &'static str {
        &self.month_long()[..3]
    }

    /// `Sunday`.
    pub fn weekday_long(&self) -> &'static str {
        WEEKDAYS[usize::from(self.weekday % 7)]
    }

    /// `Sun`.
    pub fn weekday_name(&self) -> &'static str {
        &self.weekday_long()[..3]
    }
}

/// Year, month, day of a number of days since 1970-01-01 in the proleptic Gregorian calendar: years are
/// counted from March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, u8, u8) {
    let from_march_0 = days + 719_468;
    let era = from_march_0.div_euclid(146_097);
    let day_of_era = from_march_0.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        let d = Date::of(0);
        assert_eq!((d.year, d.month, d.day, d.weekday_name()), (1970, 1, 1, "Thu"));
        let d = Date::of(951_782_400 + 3661);
        assert_eq!((d.year, d.month_name(), d.day, d.hour, d.minute, d.second), (2000, "Feb", 29, 1, 1, 1));
        assert_eq!((d.weekday_name(), d.weekday_long(), d.month_long()), ("Tue", "Tuesday", "February"));
        assert_eq!((d.yearday, Date::of(951_782_400 + 86_400).yearday, Date::of(0).yearday), (59, 60, 0));
        let d = Date::of(-1);
        assert_eq!((d.year, d.month, d.day, d.hour, d.second), (1969, 12, 31, 23, 59));
    }
}
