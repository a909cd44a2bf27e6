//! What stands before the message of a log line (manual, `log`, argument `format`).

use std::cell::RefCell;
use std::io::Write;

use base::date::Date;
use program::log::Format;
use rt::Wall;

/// Everything but the message.
pub struct Frame<'f> {
    /// Format.
    pub format: Format,
    /// Facility, 0 to 23.
    pub facility: u8,
    /// Level, 0 to 7.
    pub level: u8,
    /// Host name, if it is sent.
    pub host: Option<&'f str>,
    /// `log-tag`; `None`: neither tag nor process are told (lines of `debug`).
    pub tag: Option<&'f str>,
    /// Process id.
    pub pid: u32,
    /// Structured data, or nothing.
    pub structured: &'f [u8],
    /// When.
    pub date: Wall,
}

impl Frame<'_> {
    /// Appends what stands before the message.
    pub fn append(&self, out: &mut Vec<u8>) {
        let priority = u32::from(self.facility) * 8 + u32::from(self.level);
        // Writing into a Vec can't fail.
        let _ = match self.format {
            Format::Raw => Ok(()),
            Format::Short => write!(out, "<{}>", self.level),
            Format::Priority => write!(out, "<{priority}>"),
            Format::Timed => {
                let _ = write!(out, "<{}>", self.level);
                stamp(out, self.date, Stamp::Iso);
                write!(out, " ")
            }
            Format::Iso => {
                stamp(out, self.date, Stamp::Iso);
                write!(out, " ")
            }
            Format::Rfc3164 | Format::Local => {
                let _ = write!(out, "<{priority}>");
                stamp(out, self.date, Stamp::Rfc3164);
                if let Some(h) = self.host.filter(|_| self.format == Format::Rfc3164) {
                    let _ = write!(out, " {h}");
                }
                match self.tag {
                    Some(tag) => write!(out, " {tag}[{}]: ", self.pid),
                    None => write!(out, " "),
                }
            }
            Format::Rfc5424 => {
                let _ = write!(out, "<{priority}>1 ");
                stamp(out, self.date, Stamp::Iso);
                let _ = write!(out, " {} ", self.host.unwrap_or("-"));
                let _ = match self.tag {
                    Some(tag) => write!(out, "{tag} {} - ", self.pid),
                    None => write!(out, "- - - "),
                };
                out.extend_from_slice(if self.structured.is_empty() { b"-" } else { self.structured });
                write!(out, " ")
            }
        };
    }
}

/// The form of a date.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// `Jan  1 00:00:00`.
    Rfc3164,
    /// `1970-01-01T00:00:00.000000+00:00`.
    Iso,
}

/// The text of the last second, which most lines share.
struct Cached {
    secs: u64,
    /// Year, and month from 0.
    month: (i64, usize),
    rfc3164: Vec<u8>,
    iso: Vec<u8>,
    zone: Vec<u8>,
    local: Vec<u8>,
}

thread_local! {
    static CACHE: RefCell<Cached> = const {
        RefCell::new(Cached { secs: u64::MAX, month: (0, 0), rfc3164: Vec::new(), iso: Vec::new(), zone: Vec::new(), local: Vec::new() })
    };
}

fn with_cache<R>(date: Wall, f: impl FnOnce(&Cached) -> R) -> R {
    CACHE.with_borrow_mut(|c| {
        if c.secs != date.as_secs() {
            refill(c, date.as_secs());
        }
        f(c)
    })
}

fn refill(c: &mut Cached, secs: u64) {
    let signed = i64::try_from(secs).unwrap_or(0);
    let offset = rt::sys::local_offset(signed);
    let d = Date::of(signed + i64::from(offset));
    c.secs = secs;
    c.month = (d.year, usize::from(d.month).saturating_sub(1));
    for text in [&mut c.rfc3164, &mut c.iso, &mut c.zone, &mut c.local] {
        text.clear();
    }
    let (h, m, s) = (d.hour, d.minute, d.second);
    let _ = write!(c.rfc3164, "{} {:2} {h:02}:{m:02}:{s:02}", d.month_name(), d.day);
    let _ = write!(c.iso, "{:04}-{:02}-{:02}T{h:02}:{m:02}:{s:02}", d.year, d.month, d.day);
    let _ = write!(c.local, "{:02}/{}/{:04}:{h:02}:{m:02}:{s:02}", d.day, d.month_name(), d.year);
    let minutes = offset.unsigned_abs() / 60;
    let sign = if offset < 0 { '-' } else { '+' };
    let _ = write!(c.zone, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
}

/// Appends a date, local time.
pub fn stamp(out: &mut Vec<u8>, date: Wall, form: Stamp) {
    with_cache(date, |c| match form {
        Stamp::Rfc3164 => out.extend_from_slice(&c.rfc3164),
        Stamp::Iso => {
            out.extend_from_slice(&c.iso);
            let _ = write!(out, ".{:06}", date.subsec_micros());
            out.extend_from_slice(&c.zone);
        }
    });
}

/// Year, and month from 0, local time.
pub fn year_and_month(date: Wall) -> (i64, usize) {
    with_cache(date, |c| c.month)
}

/// Appends `21/Nov/2026:04:41:34.123`, local time, as `%t` has it.
pub fn local_stamp(out: &mut Vec<u8>, date: Wall) {
    with_cache(date, |c| out.extend_from_slice(&c.local));
    let _ = write!(out, ".{:03}", date.subsec_millis());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(format: Format) -> String {
        let frame = Frame {
            format,
            facility: 16,
            level: 6,
            host: Some("web1"),
            tag: Some("haproxy"),
            pid: 7,
            structured: b"",
            date: Wall::from_micros(1_000_000_000_123_456),
        };
        let mut out = Vec::new();
        frame.append(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn priorities_and_names_stand_where_the_manual_puts_them() {
        assert_eq!(framed(Format::Raw), "");
        assert_eq!(framed(Format::Short), "<6>");
        assert_eq!(framed(Format::Priority), "<134>");
        let line = framed(Format::Rfc3164);
        assert!(line.starts_with("<134>Sep ") && line.ends_with(" web1 haproxy[7]: "), "{line}");
        let line = framed(Format::Local);
        assert!(line.ends_with(":40 haproxy[7]: "), "{line}");
        let line = framed(Format::Rfc5424);
        assert!(line.starts_with("<134>1 2001-09-") && line.contains(".123456"), "{line}");
        assert!(line.ends_with(" web1 haproxy 7 - - "), "{line}");
    }
}
