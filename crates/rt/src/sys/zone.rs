//! The machine's time zone.
//!
//! The C library knows its rules, but takes a lock for each question. Offsets change on quarters of an hour
//! only, so a thread asks once for each quarter that it meets.

use std::cell::Cell;

/// What offsets may change on.
const QUARTER: i64 = 900;

/// Seconds to add to UTC for local time at `secs` since the epoch, daylight saving included. The first call
/// of the process reads the zone's file; make it before a chroot.
pub fn local_offset(secs: i64) -> i32 {
    thread_local! {
        static LAST: Cell<(i64, i32)> = const { Cell::new((i64::MIN, 0)) };
    }
    let quarter = secs.div_euclid(QUARTER);
    let (known, offset) = LAST.get();
    if known == quarter {
        return offset;
    }
    let offset = ask(quarter.saturating_mul(QUARTER));
    LAST.set((quarter, offset));
    offset
}

fn ask(secs: i64) -> i32 {
    // SAFETY: an all-zero `tm` is a valid value of that plain C struct.
    let mut out: libc::tm = unsafe { std::mem::zeroed() };
    let time: libc::time_t = secs;
    // SAFETY: both pointers are to live values of this frame; `localtime_r` writes `out` only.
    let done = unsafe { libc::localtime_r(&raw const time, &raw mut out) };
    if done.is_null() { 0 } else { i32::try_from(out.tm_gmtoff).unwrap_or(0) }
}
