//! Facts and figures of the process (`show info`; management manual, 9.3).
//!
//! One table says what there is; positions, names and types are those that tools for HAProxy know. A figure that does
//! not apply, such as those of TLS in a build without it, is zero, because tools expect it to be there.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::time::Mono;
use engine::Shared;
use model::world::Process;
use program::Global;
use rt::{BufStats, WorkerStats};

use crate::product;
use crate::stats::value::{Tag, Value, json_string, json_tag};

/// What the figures are read from.
pub struct Facts<'f> {
    shared: &'f Shared,
    workers: Vec<WorkerStats>,
    /// Memory of buffers, and how much of it is in use, in bytes.
    buffers: u64,
    buffers_used: u64,
    now: Mono,
    float: bool,
}

struct Item {
    position: u32,
    name: &'static str,
    tag: Tag,
    about: &'static str,
    read: fn(&Facts<'_>) -> Value,
}

const ITEMS: &[Item] = &[
    Item {
        position: 0,
        name: "Name",
        tag: "POSV",
        about: "Name of the product",
        read: |_| product::NAME.into(),
    },
    Item {
        position: 1,
        name: "Version",
        tag: "POSV",
        about: "Version of the product",
        read: |_| product::VERSION.into(),
    },
    Item {
        position: 2,
        name: "Release_date",
        tag: "POSV",
        about: "Date of the version",
        read: |_| product::RELEASE_DATE.into(),
    },
    Item {
        position: 3,
        name: "Nbthread",
        tag: "CGSV",
        about: "Worker threads",
        read: |f| f.global().threads.into(),
    },
    Item {
        position: 4,
        name: "Nbproc",
        tag: "CGSV",
        about: "Worker processes (always 1)",
        read: |_| 1u32.into(),
    },
    Item {
        position: 5,
        name: "Process_num",
        tag: "KGPV",
        about: "Number of the worker process (always 1)",
        read: |_| 1u32.into(),
    },
    Item { position: 6, name: "Pid", tag: "SGPV", about: "Process id", read: |_| std::process::id().into() },
    Item {
        position: 7,
        name: "Uptime",
        tag: "MDPV",
        about: "Time since the start, in days, hours, minutes and seconds",
        read: |f| f.uptime_text().into(),
    },
    Item {
        position: 8,
        name: "Uptime_sec",
        tag: "MDPV",
        about: "Time since the start, in seconds",
        read: |f| f.seconds(f.uptime()),
    },
    Item {
        position: 9,
        name: "Memmax_MB",
        tag: "CLPV",
        about: "Limit of memory, in MB (0: none)",
        read: |_| (memory_limit() >> 20).into(),
    },
    Item {
        position: 10,
        name: "PoolAlloc_MB",
        tag: "MGPV",
        about: "Memory of buffers, in MB",
        read: |f| f.mega(f.buffers),
    },
    Item {
        position: 11,
        name: "PoolUsed_MB",
        tag: "MGPV",
        about: "Memory of buffers in use, in MB",
        read: |f| f.mega(f.buffers_used),
    },
    Item {
        position: 12,
        name: "PoolFailed",
        tag: "MCPV",
        about: "Buffers that could not be had",
        read: |_| 0u32.into(),
    },
    Item {
        position: 13,
        name: "Ulimit-n",
        tag: "CLPV",
        about: "Limit of file descriptors",
        read: |f| clip(f.global().ulimit_n),
    },
    Item {
        position: 14,
        name: "Maxsock",
        tag: "CLPV",
        about: "Limit of sockets",
        read: |f| clip(f.global().ulimit_n),
    },
    Item {
        position: 15,
        name: "Maxconn",
        tag: "CLPV",
        about: "Limit of client connections",
        read: |f| f.process().maxconn.load(Relaxed).into(),
    },
    Item {
        position: 16,
        name: "Hard_maxconn",
        tag: "CLPV",
        about: "Limit of client connections at the start",
        read: |f| f.global().maxconn.into(),
    },
    Item {
        position: 17,
        name: "CurrConns",
        tag: "MGPV",
        about: "Client connections now",
        read: |f| f.process().connections.load(Relaxed).into(),
    },
    Item {
        position: 18,
        name: "CumConns",
        tag: "MCPV",
        about: "Client connections so far",
        read: |f| clip(f.process().counters.sum(|c| &c.connections)),
    },
    Item {
        position: 19,
        name: "CumReq",
        tag: "MCPV",
        about: "Requests so far",
        read: |f| clip(f.process().counters.sum(|c| &c.requests)),
    },
    Item {
        position: 20,
        name: "MaxSslConns",
        tag: "MMPV",
        about: "Limit of TLS connections (0: none)",
        read: |f| f.process().ssl_limit.load(Relaxed).into(),
    },
    Item {
        position: 21,
        name: "CurrSslConns",
        tag: "MGPV",
        about: "TLS connections now",
        read: |_| tls::figures::read().open.into(),
    },
    Item {
        position: 22,
        name: "CumSslConns",
        tag: "MCPV",
        about: "TLS connections so far",
        read: |_| clip(tls::figures::read().total),
    },
    Item {
        position: 23,
        name: "Maxpipes",
        tag: "CLPV",
        about: "Limit of pipes for splicing (0: none)",
        read: |f| f.global().maxpipes.into(),
    },
    Item { position: 24, name: "PipesUsed", tag: "MGPV", about: "Pipes in use", read: |_| 0u32.into() },
    Item {
        position: 25,
        name: "PipesFree",
        tag: "MGPV",
        about: "Pipes kept for later",
        read: |_| 0u32.into(),
    },
    Item {
        position: 26,
        name: "ConnRate",
        tag: "MRPV",
        about: "Client connections in the last second",
        read: |f| clip(f.process().conn_rate.read(f.now_ms())),
    },
    Item {
        position: 27,
        name: "ConnRateLimit",
        tag: "CLPV",
        about: "Limit of ConnRate (maxconnrate)",
        read: |f| f.process().conn_rate_limit.load(Relaxed).into(),
    },
    Item {
        position: 28,
        name: "MaxConnRate",
        tag: "MMPV",
        about: "Highest ConnRate so far",
        read: |f| f.process().conn_rate.peak().into(),
    },
    Item {
        position: 29,
        name: "SessRate",
        tag: "MRPV",
        about: "Sessions in the last second",
        read: |f| clip(f.process().sess_rate.read(f.now_ms())),
    },
    Item {
        position: 30,
        name: "SessRateLimit",
        tag: "CLPV",
        about: "Limit of SessRate (maxsessrate)",
        read: |f| f.process().sess_rate_limit.load(Relaxed).into(),
    },
    Item {
        position: 31,
        name: "MaxSessRate",
        tag: "MRPV",
        about: "Highest SessRate so far",
        read: |f| f.process().sess_rate.peak().into(),
    },
    Item {
        position: 32,
        name: "SslRate",
        tag: "MRPV",
        about: "TLS connections in the last second",
        read: |f| clip(f.process().ssl_rate.read(f.now_ms())),
    },
    Item {
        position: 33,
        name: "SslRateLimit",
        tag: "CLPV",
        about: "Limit of SslRate (maxsslrate)",
        read: |f| f.process().ssl_rate_limit.load(Relaxed).into(),
    },
    Item {
        position: 34,
        name: "MaxSslRate",
        tag: "MMPV",
        about: "Highest SslRate so far",
        read: |f| f.process().ssl_rate.peak().into(),
    },
    Item {
        position: 35,
        name: "SslFrontendKeyRate",
        tag: "MGPV",
        about: "TLS keys made for clients in the last second",
        read: |f| clip(f.process().ssl_front_keys.read(f.now_ms())),
    },
    Item {
        position: 36,
        name: "SslFrontendMaxKeyRate",
        tag: "MMPV",
        about: "Highest SslFrontendKeyRate so far",
        read: |f| f.process().ssl_front_keys.peak().into(),
    },
    Item {
        position: 37,
        name: "SslFrontendSessionReuse_pct",
        tag: "MGPV",
        about: "Share of client TLS connections that resumed a session, percent",
        read: |f| reused(f.process(), f.now_ms()).into(),
    },
    Item {
        position: 38,
        name: "SslBackendKeyRate",
        tag: "MRPV",
        about: "TLS keys made for servers in the last second",
        read: |f| clip(f.process().ssl_back_keys.read(f.now_ms())),
    },
    Item {
        position: 39,
        name: "SslBackendMaxKeyRate",
        tag: "MMPV",
        about: "Highest SslBackendKeyRate so far",
        read: |f| f.process().ssl_back_keys.peak().into(),
    },
    Item {
        position: 40,
        name: "SslCacheLookups",
        tag: "MCPV",
        about: "Look-ups in the TLS session cache",
        read: |_| clip(tls::figures::read().lookups),
    },
    Item {
        position: 41,
        name: "SslCacheMisses",
        tag: "MCPV",
        about: "Of these, without success",
        read: |_| clip(tls::figures::read().misses),
    },
    Item {
        position: 42,
        name: "CompressBpsIn",
        tag: "MRPV",
        about: "Bytes given to compression in the last second",
        read: |_| 0u32.into(),
    },
    Item {
        position: 43,
        name: "CompressBpsOut",
        tag: "MRPV",
        about: "Bytes from compression in the last second",
        read: |_| 0u32.into(),
    },
    Item {
        position: 44,
        name: "CompressBpsRateLim",
        tag: "CLPV",
        about: "Limit of CompressBpsOut",
        read: |f| f.process().comp_rate_limit.load(Relaxed).into(),
    },
    Item {
        position: 47,
        name: "Tasks",
        tag: "MGPV",
        about: "Tasks of all workers",
        read: |f| f.tasks().into(),
    },
    Item { position: 48, name: "Run_queue", tag: "MGPV", about: "Tasks that are due", read: |_| 0u32.into() },
    Item {
        position: 49,
        name: "Idle_pct",
        tag: "MaPV",
        about: "Time since the start without work, percent",
        read: |f| f.idle().into(),
    },
    Item {
        position: 50,
        name: "node",
        tag: "COSV",
        about: "Name of the node",
        read: |f| f.global().node.to_string().into(),
    },
    Item {
        position: 51,
        name: "description",
        tag: "COSV",
        about: "Description of the node",
        read: |f| f.global().description.as_deref().map(str::to_owned).into(),
    },
    Item {
        position: 52,
        name: "Stopping",
        tag: "MGPV",
        about: "1 while the process is stopping",
        read: |f| u32::from(f.process().stopping.load(Relaxed)).into(),
    },
    Item {
        position: 53,
        name: "Jobs",
        tag: "MGPV",
        about: "Connections and listeners",
        read: |f| f.jobs().into(),
    },
    Item {
        position: 54,
        name: "Unstoppable Jobs",
        tag: "MGPV",
        about: "Of these, such as never end by themselves",
        read: |_| 0u32.into(),
    },
    Item { position: 55, name: "Listeners", tag: "MGPV", about: "Listeners", read: |f| f.listeners().into() },
    Item {
        position: 56,
        name: "ActivePeers",
        tag: "MGPV",
        about: "Peers that are in use",
        read: |_| 0u32.into(),
    },
    Item {
        position: 57,
        name: "ConnectedPeers",
        tag: "MGPV",
        about: "Peers that are connected",
        read: |_| 0u32.into(),
    },
    Item {
        position: 58,
        name: "DroppedLogs",
        tag: "MGPV",
        about: "Log lines that could not be delivered",
        read: |f| clip(f.process().counters.sum(|c| &c.dropped_logs)),
    },
    Item {
        position: 59,
        name: "BusyPolling",
        tag: "MGPV",
        about: "1 with busy polling",
        read: |f| u32::from(f.global().busy_polling).into(),
    },
    Item {
        position: 60,
        name: "FailedResolutions",
        tag: "MGPV",
        about: "Names that could not be resolved",
        read: |f| clip(f.process().counters.sum(|c| &c.failed_resolutions)),
    },
    Item {
        position: 61,
        name: "TotalBytesOut",
        tag: "MGPV",
        about: "Bytes sent to clients",
        read: |f| f.process().counters.sum(|c| &c.bytes_out).into(),
    },
    Item {
        position: 62,
        name: "TotalSplicedBytesOut",
        tag: "MGPV",
        about: "Of these, through a pipe of the kernel",
        read: |f| f.process().counters.sum(|c| &c.spliced_bytes_out).into(),
    },
    Item {
        position: 63,
        name: "BytesOutRate",
        tag: "MRPV",
        about: "Bytes sent to clients in the last second",
        read: |_| 0u64.into(),
    },
    Item {
        position: 64,
        name: "DebugCommandsIssued",
        tag: "MGPV",
        about: "Debugging commands given",
        read: |_| 0u32.into(),
    },
    Item {
        position: 65,
        name: "CumRecvLogs",
        tag: "MCPV",
        about: "Log messages received",
        read: |_| 0u32.into(),
    },
    Item {
        position: 66,
        name: "Build info",
        tag: "POSV",
        about: "Version of the product",
        read: |_| product::VERSION.into(),
    },
    Item {
        position: 67,
        name: "Memmax_bytes",
        tag: "CLPV",
        about: "Limit of memory, in bytes (0: none)",
        read: |_| memory_limit().into(),
    },
    Item {
        position: 68,
        name: "PoolAlloc_bytes",
        tag: "MGPV",
        about: "Memory of buffers, in bytes",
        read: |f| f.buffers.into(),
    },
    Item {
        position: 69,
        name: "PoolUsed_bytes",
        tag: "MGPV",
        about: "Memory of buffers in use, in bytes",
        read: |f| f.buffers_used.into(),
    },
    Item {
        position: 70,
        name: "Start_time_sec",
        tag: "MDPV",
        about: "When the process started, in seconds since 1970",
        read: |f| f.seconds(f.started()),
    },
    Item {
        position: 71,
        name: "Tainted",
        tag: "SGPV",
        about: "Experimental features in use",
        read: |_| "0".into(),
    },
    Item {
        position: 72,
        name: "TotalWarnings",
        tag: "MCPV",
        about: "Warnings so far",
        read: |_| 0u32.into(),
    },
    Item {
        position: 73,
        name: "MaxconnReached",
        tag: "MCPV",
        about: "Times that Maxconn was reached",
        read: |_| 0u32.into(),
    },
    Item {
        position: 74,
        name: "BootTime_ms",
        tag: "MDPV",
        about: "Time that starting took, in ms",
        read: |_| 0u32.into(),
    },
    Item {
        position: 75,
        name: "Niced_tasks",
        tag: "MGPV",
        about: "Tasks with a priority of their own that are due",
        read: |_| 0u32.into(),
    },
    Item {
        position: 76,
        name: "CurrStreams",
        tag: "MGPV",
        about: "Streams now",
        read: |f| u64::from(f.process().connections.load(Relaxed)).into(),
    },
    Item {
        position: 77,
        name: "CumStreams",
        tag: "MGPV",
        about: "Streams so far",
        read: |f| f.process().counters.sum(|c| &c.requests).into(),
    },
    Item {
        position: 78,
        name: "BlockedTrafficWarnings",
        tag: "MGPV",
        about: "Warnings about tasks that held up traffic",
        read: |_| 0u32.into(),
    },
    Item {
        position: 79,
        name: "PatternsAdded",
        tag: "MGPV",
        about: "Patterns added to ACLs and maps",
        read: |_| 0u64.into(),
    },
    Item {
        position: 80,
        name: "PatternsFreed",
        tag: "MGPV",
        about: "Patterns removed from them",
        read: |_| 0u64.into(),
    },
    Item {
        position: 81,
        name: "NbThreadGroups",
        tag: "CGSV",
        about: "Groups of threads",
        read: |_| 1u32.into(),
    },
];

/// Of a hundred TLS connections of clients in the last second, how many needed no new key.
fn reused(process: &model::world::Process, now_ms: u64) -> u32 {
    let (all, keys) = (process.ssl_rate.read(now_ms), process.ssl_front_keys.read(now_ms));
    (100 * all.saturating_sub(keys)).checked_div(all).unwrap_or(0) as u32
}

fn clip(n: u64) -> Value {
    u32::try_from(n).unwrap_or(u32::MAX).into()
}

impl Facts<'_> {
    /// The facts as of now. `float` gives times with fractions.
    pub fn new(
        shared: &Shared,
        workers: impl Iterator<Item = (WorkerStats, BufStats)>,
        float: bool,
    ) -> Facts<'_> {
        let (workers, buffers): (Vec<_>, Vec<_>) = workers.unzip();
        let bytes = |n: usize| n as u64 * rt::bufsize() as u64;
        Facts {
            shared,
            workers,
            buffers: buffers.iter().map(|b| bytes(b.used + b.idle)).sum(),
            buffers_used: buffers.iter().map(|b| bytes(b.used)).sum(),
            now: rt::now(),
            float,
        }
    }

    /// The value of this name, as text; empty if there is none.
    pub fn text(&self, name: &str) -> String {
        ITEMS.iter().find(|i| i.name == name).map_or(String::new(), |i| (i.read)(self).to_text())
    }

    /// The share of time since the start in which the threads used no processor.
    fn idle(&self) -> u32 {
        let (user, system) = rt::sys::cpu_time();
        let all = self.uptime().as_micros() as u64 * u64::from(self.global().threads.max(1));
        let used = (user + system).saturating_mul(100) / all.max(1);
        u32::try_from(100u64.saturating_sub(used)).unwrap_or(0)
    }

    fn global(&self) -> &Global {
        &self.shared.program.global
    }

    fn process(&self) -> &Process {
        &self.shared.program.world.process
    }

    fn now_ms(&self) -> u64 {
        self.now.as_millis()
    }

    fn uptime(&self) -> Duration {
        self.now.since(self.shared.started)
    }

    fn started(&self) -> Duration {
        Duration::from_micros(self.shared.started_at.as_micros())
    }

    fn uptime_text(&self) -> String {
        let s = self.uptime().as_secs();
        format!("{}d {}h{:02}m{:02}s", s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60)
    }

    fn seconds(&self, d: Duration) -> Value {
        if self.float {
            return format!("{}.{:06}", d.as_secs(), d.subsec_micros()).into();
        }
        clip(d.as_secs())
    }

    fn mega(&self, bytes: u64) -> Value {
        clip(bytes >> 20)
    }

    fn tasks(&self) -> u32 {
        let sum: usize = self.workers.iter().map(|w| w.tasks).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    fn listeners(&self) -> u32 {
        let program = &self.shared.program;
        let binds: usize = program.proxies.iter().map(|p| p.binds.len()).sum();
        u32::try_from(binds + program.global.cli.len()).unwrap_or(u32::MAX)
    }

    fn jobs(&self) -> u32 {
        self.listeners().saturating_add(self.process().connections.load(Relaxed))
    }
}

/// `Name: value` lines.
pub fn plain(facts: &Facts<'_>, desc: bool) -> String {
    let mut out = String::new();
    for item in ITEMS {
        let value = (item.read)(facts);
        if value.is_some() {
            let _ = write!(out, "{}: ", item.name);
            value.text(&mut out);
            end_line(&mut out, desc, item.about);
        }
    }
    out
}

/// `position.name.process:tag:type:value` lines.
pub fn typed(facts: &Facts<'_>, desc: bool) -> String {
    let mut out = String::new();
    for item in ITEMS {
        let value = (item.read)(facts);
        if value.is_some() {
            let _ = write!(out, "{}.{}.1:{}:{}:", item.position, item.name, item.tag, value.type_name());
            value.text(&mut out);
            end_line(&mut out, desc, item.about);
        }
    }
    out
}

fn end_line(out: &mut String, desc: bool, about: &str) {
    if desc {
        let _ = write!(out, ":\"{about}\"");
    }
    out.push('\n');
}

/// A JSON array with an object for each figure.
pub fn json(facts: &Facts<'_>) -> String {
    let mut out = String::from("[");
    for item in ITEMS {
        let value = (item.read)(facts);
        if !value.is_some() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let _ = write!(out, "{{\"field\":{{\"pos\":{},\"name\":", item.position);
        json_string(item.name, &mut out);
        out.push_str("},\"processNum\":1,");
        json_tag(item.tag, &mut out);
        out.push_str(",\"value\":{");
        value.json(&mut out);
        out.push_str("}}");
    }
    out.push_str("]\n");
    out
}

/// What `-m` says, in bytes; 0: nothing.
fn memory_limit() -> u64 {
    rt::sys::Limit::Data.get().0.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_unique_and_in_order() {
        assert!(ITEMS.windows(2).all(|p| p[0].position < p[1].position));
    }
}
