//! The machine's time zone.

/// Seconds to add to UTC for local time at `secs` since the epoch, daylight saving included.
pub fn local_offset(secs: i64) -> i32 {
    // SAFETY: an all-zero `tm` is a valid value of that plain C struct.
    let mut out: libc::tm = unsafe { std::mem::zeroed() };
    let time: libc::time_t = secs;
    // SAFETY: both pointers are to live values of this frame; `localtime_r` writes `out` only.
    let done = unsafe { libc::localtime_r(&raw const time, &raw mut out) };
    if done.is_null() { 0 } else { i32::try_from(out.tm_gmtoff).unwrap_or(0) }
}
