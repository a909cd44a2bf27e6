//! What the calls of streams take, where that is measured (`show profiling`).

use std::time::Duration;

/// What the calls of streams took while they were measured (`show profiling`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    /// Calls.
    pub calls: u64,
    /// Time that they took, ns.
    pub cpu_ns: u64,
    /// Time that they waited to be run, ns.
    pub lat_ns: u64,
    /// When measuring began; `None`: never.
    pub since: Option<rt::Mono>,
    /// When it ended; `None`: it goes on.
    pub until: Option<rt::Mono>,
}

impl Profile {
    /// One that begins now, if anything is measured.
    pub fn begun(measured: bool) -> Profile {
        Profile { since: measured.then(rt::now), ..Profile::default() }
    }

    /// With one more call, which took so long and had waited so long, ns.
    pub fn call(self, cpu: u64, wait: u64) -> Profile {
        let (cpu_ns, lat_ns) = (self.cpu_ns.saturating_add(cpu), self.lat_ns.saturating_add(wait));
        Profile { calls: self.calls + 1, cpu_ns, lat_ns, ..self }
    }

    /// Both together.
    pub fn and(self, other: Profile) -> Profile {
        Profile {
            calls: self.calls + other.calls,
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            lat_ns: self.lat_ns.saturating_add(other.lat_ns),
            since: self.since.or(other.since),
            until: self.until.or(other.until),
        }
    }
}

/// Nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
