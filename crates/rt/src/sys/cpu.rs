//! Processors.

use std::io;
use std::time::Duration;

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
    // The number of the clock of a thread's time on processors, as the kernel makes it out of the thread's (clock_getcpuclockid(3)).
    let clock = (!thread << 3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Restricts the calling thread to these processors. If none of them exists or is allowed it goes on where it is: the same
/// configuration may serve on a machine with fewer of them.
pub fn set_affinity(cpus: &[usize]) {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    let _ = sched_setaffinity(None, &set);
}
