//! Processors.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may run on, in order.
///
/// # Errors
/// If the kernel can't say.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The calling thread's number.
pub(crate) fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// For how long a thread of this process has had a processor; nothing if there is no such thread.
pub(crate) fn thread_time(thread: i32) -> Option<Duration> {
    if thread <= 0 {
        return None;
    }
    // The number of the clock of a thread's time on processors, as the kernel makes it out of the thread's
    // (clock_getcpuclockid(3)).
    let clock = (!thread << 3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

thread_local! {
    /// When the use of the processor was last measured, the time on it by then, and what it was, percent.
    static USAGE: Cell<Option<(Instant, Duration, u32)>> = const { Cell::new(None) };
}

/// The share of the last half second or more that this thread had a processor, percent.
pub fn cpu_usage() -> u32 {
    const SPAN: Duration = Duration::from_millis(500);
    let now = Instant::now();
    let last = USAGE.get();
    if let Some((_, _, usage)) = last.filter(|(since, ..)| now - *since < SPAN) {
        return usage;
    }
    let busy = thread_time(thread_number()).unwrap_or_default();
    let usage = last.map_or(0, |(since, before, _)| {
        let share = busy.saturating_sub(before).as_nanos() * 100 / (now - since).as_nanos().max(1);
        u32::try_from(share).unwrap_or(100).min(100)
    });
    USAGE.set(Some((now, busy, usage)));
    usage
}

/// Restricts the calling thread to these processors. If none of them exists or is allowed it goes on where it
/// is: the same configuration may serve on a machine with fewer of them.
pub fn set_affinity(cpus: &[usize]) {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    let _ = sched_setaffinity(None, &set);
}
