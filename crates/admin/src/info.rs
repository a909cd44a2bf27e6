//! Facts and figures of the process (`show info`; management manual, 9.3).
//!
//! One table says what there is; positions, names and types are those that tools for HAProxy know. A figure
//! that does not apply, such as those of TLS in a build without it, is zero, because tools expect it to be
//! there.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::time::Mono;
use engine::Shared;
use model::compression;
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

impl Item {
    /// The value; `float` gives rates in the form of times.
    fn value(&self, facts: &Facts<'_>) -> Value {
        match (self.read)(facts) {
            Value::U32(n) if facts.float && self.is_rate() => Value::Flt(n.into()),
            value => value,
        }
    }

    /// Whether it is measured over the last second.
    fn is_rate(&self) -> bool {
        matches!(self.position, 26 | 29 | 32 | 35 | 37 | 38 | 42 | 43)
    }

    /// What it means; with a fraction all of them are rates.
    fn tag(&self, facts: &Facts<'_>) -> Tag {
        if facts.float && self.is_rate() { "MRPV" } else { self.tag }
    }
}

/// An entry of the table.
const fn item(
    position: u32,
    name: &'static str,
    tag: Tag,
    about: &'static str,
    read: fn(&Facts<'_>) -> Value,
) -> Item {
    Item { position, name, tag, about, read }
}

/// Names of all figures, and what they mean.
pub fn figures() -> impl Iterator<Item = (&'static str, &'static str)> {
    ITEMS.iter().map(|item| (item.name, item.about))
}

const ITEMS: &[Item] = &[
    item(0, "Name", "POSV", "Name of the product", |_| product::NAME.into()),
    item(1, "Version", "POSV", "Version of the product", |_| product::VERSION.into()),
    item(2, "Release_date", "POSV", "Date of the version", |_| product::RELEASE_DATE.into()),
    item(3, "Nbthread", "CGSV", "Worker threads", |f| f.global().threads.into()),
    item(4, "Nbproc", "CGSV", "Worker processes (always 1)", |_| 1u32.into()),
    item(5, "Process_num", "KGPV", "Number of the worker process (always 1)", |_| 1u32.into()),
    item(6, "Pid", "SGPV", "Process id", |_| std::process::id().into()),
    item(7, "Uptime", "MDPV", "Time since the start, in days, hours, minutes and seconds", |f| {
        f.uptime_text().into()
    }),
    item(8, "Uptime_sec", "MDPV", "Time since the start, in seconds", |f| f.seconds(f.uptime())),
    item(9, "Memmax_MB", "CLPV", "Limit of memory, in MB (0: none)", |_| clip(memory_limit() >> 20)),
    item(10, "PoolAlloc_MB", "MGPV", "Memory of buffers, in MB", |f| f.mega(f.buffers)),
    item(11, "PoolUsed_MB", "MGPV", "Memory of buffers in use, in MB", |f| f.mega(f.buffers_used)),
    item(12, "PoolFailed", "MCPV", "Buffers that could not be had", |_| 0u32.into()),
    item(13, "Ulimit-n", "CLPV", "Limit of file descriptors", |f| clip(f.global().ulimit_n)),
    item(14, "Maxsock", "CLPV", "Limit of sockets", |f| clip(f.global().ulimit_n)),
    item(15, "Maxconn", "CLPV", "Limit of client connections", |f| f.process().maxconn.load(Relaxed).into()),
    item(16, "Hard_maxconn", "CLPV", "Limit of client connections at the start", |f| {
        f.global().maxconn.into()
    }),
    item(17, "CurrConns", "MGPV", "Client connections now", |f| f.process().connections.load(Relaxed).into()),
    item(18, "CumConns", "MCPV", "Client connections so far", |f| {
        clip(f.process().counters.sum(|c| &c.connections))
    }),
    item(19, "CumReq", "MCPV", "Requests so far", |f| clip(f.process().counters.sum(|c| &c.requests))),
    item(20, "MaxSslConns", "MMPV", "Limit of TLS connections (0: none)", |f| {
        f.process().ssl_limit.load(Relaxed).into()
    }),
    item(21, "CurrSslConns", "MGPV", "TLS connections now", |_| tls::figures::read().open.into()),
    item(22, "CumSslConns", "MCPV", "TLS connections so far", |_| clip(tls::figures::read().total)),
    item(23, "Maxpipes", "CLPV", "Limit of pipes for splicing (0: none)", |f| f.global().maxpipes.into()),
    item(24, "PipesUsed", "MGPV", "Pipes in use", |_| clip(rt::pipe_stats().used as u64)),
    item(25, "PipesFree", "MGPV", "Pipes kept for later", |_| clip(rt::pipe_stats().free as u64)),
    item(26, "ConnRate", "MRPV", "Client connections in the last second", |f| {
        clip(f.process().conn_rate.read(f.now_ms()))
    }),
    item(27, "ConnRateLimit", "CLPV", "Limit of ConnRate (maxconnrate)", |f| {
        f.process().conn_rate_limit.load(Relaxed).into()
    }),
    item(28, "MaxConnRate", "MMPV", "Highest ConnRate so far", |f| f.process().conn_rate.peak().into()),
    item(29, "SessRate", "MRPV", "Sessions in the last second", |f| {
        clip(f.process().sess_rate.read(f.now_ms()))
    }),
    item(30, "SessRateLimit", "CLPV", "Limit of SessRate (maxsessrate)", |f| {
        f.process().sess_rate_limit.load(Relaxed).into()
    }),
    item(31, "MaxSessRate", "MRPV", "Highest SessRate so far", |f| f.process().sess_rate.peak().into()),
    item(32, "SslRate", "MRPV", "TLS connections in the last second", |f| {
        clip(f.process().ssl_rate.read(f.now_ms()))
    }),
    item(33, "SslRateLimit", "CLPV", "Limit of SslRate (maxsslrate)", |f| {
        f.process().ssl_rate_limit.load(Relaxed).into()
    }),
    item(34, "MaxSslRate", "MMPV", "Highest SslRate so far", |f| f.process().ssl_rate.peak().into()),
    item(35, "SslFrontendKeyRate", "MGPV", "TLS keys made for clients in the last second", |f| {
        clip(f.process().ssl_front_keys.read(f.now_ms()))
    }),
    item(36, "SslFrontendMaxKeyRate", "MMPV", "Highest SslFrontendKeyRate so far", |f| {
        f.process().ssl_front_keys.peak().into()
    }),
    item(
        37,
        "SslFrontendSessionReuse_pct",
        "MGPV",
        "Share of client TLS connections that resumed a session, percent",
        |f| reused(f.process(), f.now_ms()).into(),
    ),
    item(38, "SslBackendKeyRate", "MRPV", "TLS keys made for servers in the last second", |f| {
        clip(f.process().ssl_back_keys.read(f.now_ms()))
    }),
    item(39, "SslBackendMaxKeyRate", "MMPV", "Highest SslBackendKeyRate so far", |f| {
        f.process().ssl_back_keys.peak().into()
    }),
    item(40, "SslCacheLookups", "MCPV", "Look-ups in the TLS session cache", |_| {
        clip(tls::figures::read().lookups)
    }),
    item(41, "SslCacheMisses", "MCPV", "Of these, without success", |_| clip(tls::figures::read().misses)),
    item(42, "CompressBpsIn", "MRPV", "Bytes given to compression in the last second", |f| {
        clip(compression::PROCESS.bytes_in.read(f.now_ms(), compression::PERIOD))
    }),
    item(43, "CompressBpsOut", "MRPV", "Bytes from compression in the last second", |f| {
        clip(compression::PROCESS.bytes_out.read(f.now_ms(), compression::PERIOD))
    }),
    item(44, "CompressBpsRateLim", "CLPV", "Limit of CompressBpsOut", |f| {
        f.process().comp_rate_limit.load(Relaxed).into()
    }),
    item(45, "ZlibMemUsage", "MGPV", "Bytes that packers of gzip and deflate take", |_| {
        clip(compression::PROCESS.memory.load(Relaxed))
    }),
    item(46, "MaxZlibMemUsage", "CLPV", "Limit of ZlibMemUsage (maxzlibmem)", |_| {
        clip(compression::PROCESS.most_memory.load(Relaxed))
    }),
    item(47, "Tasks", "MGPV", "Tasks of all workers", |f| f.tasks().into()),
    item(48, "Run_queue", "MGPV", "Tasks that are due", |_| 0u32.into()),
    item(49, "Idle_pct", "MaPV", "Time since the start without work, percent", |f| f.idle().into()),
    item(50, "node", "COSV", "Name of the node", |f| f.global().node.to_string().into()),
    item(51, "description", "COSV", "Description of the node", |f| {
        f.global().description.as_deref().map(str::to_owned).into()
    }),
    item(52, "Stopping", "MGPV", "1 while the process is stopping", |f| {
        u32::from(f.process().is_to_stop()).into()
    }),
    item(53, "Jobs", "MGPV", "Connections and listeners", |f| f.jobs().into()),
    item(54, "Unstoppable Jobs", "MGPV", "Of these, such as never end by themselves", |_| 0u32.into()),
    item(55, "Listeners", "MGPV", "Listeners", |f| f.listeners().into()),
    item(56, "ActivePeers", "MGPV", "Peers that are in use", |f| f.peers().into()),
    item(57, "ConnectedPeers", "MGPV", "Peers that are connected", |f| f.peers().into()),
    item(58, "DroppedLogs", "MGPV", "Log lines that could not be delivered", |f| {
        clip(f.process().counters.sum(|c| &c.dropped_logs))
    }),
    item(59, "BusyPolling", "MGPV", "1 with busy polling", |f| u32::from(f.global().busy_polling).into()),
    item(60, "FailedResolutions", "MGPV", "Names that could not be resolved", |f| {
        clip(f.process().counters.sum(|c| &c.failed_resolutions))
    }),
    item(61, "TotalBytesOut", "MGPV", "Bytes sent to clients", |f| {
        f.process().counters.sum(|c| &c.bytes_out).into()
    }),
    item(62, "TotalSplicedBytesOut", "MGPV", "Of these, through a pipe of the kernel", |f| {
        f.process().counters.sum(|c| &c.spliced_bytes_out).into()
    }),
    item(63, "BytesOutRate", "MRPV", "Bytes sent to clients in the last second", |_| 0u64.into()),
    item(64, "DebugCommandsIssued", "MGPV", "Debugging commands given", |_| 0u32.into()),
    item(65, "CumRecvLogs", "MCPV", "Log messages received", |f| {
        clip(f.process().counters.sum(|c| &c.received_logs))
    }),
    item(66, "Build info", "POSV", "Version of the product", |_| product::VERSION.into()),
    item(67, "Memmax_bytes", "CLPV", "Limit of memory, in bytes (0: none)", |_| clip(memory_limit())),
    item(68, "PoolAlloc_bytes", "MGPV", "Memory of buffers, in bytes", |f| f.buffers.into()),
    item(69, "PoolUsed_bytes", "MGPV", "Memory of buffers in use, in bytes", |f| f.buffers_used.into()),
    item(70, "Start_time_sec", "MDPV", "When the process started, in seconds since 1970", |f| {
        f.seconds(f.started())
    }),
    item(71, "Tainted", "SGPV", "Experimental features in use", |_| "0".into()),
    item(72, "TotalWarnings", "MCPV", "Warnings so far", |_| crate::product::warnings().into()),
    item(73, "MaxconnReached", "MCPV", "Times that Maxconn was reached", |_| 0u32.into()),
    item(74, "BootTime_ms", "MDPV", "Time that starting took, in ms", |_| 0u32.into()),
    item(75, "Niced_tasks", "MGPV", "Tasks with a priority of their own that are due", |_| 0u32.into()),
    item(76, "CurrStreams", "MGPV", "Streams now", |f| f.process().counters.sum(|c| &c.open_streams).into()),
    item(77, "CumStreams", "MGPV", "Streams so far", |f| f.process().counters.sum(|c| &c.requests).into()),
    item(78, "BlockedTrafficWarnings", "MGPV", "Warnings about tasks that held up traffic", |_| 0u32.into()),
    item(79, "PatternsAdded", "MGPV", "Patterns added to ACLs and maps", |_| 0u64.into()),
    item(80, "PatternsFreed", "MGPV", "Patterns removed from them", |_| 0u64.into()),
    item(81, "NbThreadGroups", "CGSV", "Groups of threads", |f| f.global().thread_groups.into()),
];

/// Of a hundred TLS connections of clients in the last second, how many needed no new key.
fn reused(process: &model::world::Process, now_ms: u64) -> u32 {
    let (all, keys) = (process.ssl_rate.read(now_ms), process.ssl_front_keys.read(now_ms));
    // Four of five are 19 percent to HAProxy: it takes the share from one, and cuts off.
    if all == 0 { 0 } else { (100.0 * (1.0 - keys.min(all) as f64 / all as f64)) as u32 }
}

fn clip(n: u64) -> Value {
    u32::try_from(n).unwrap_or(u32::MAX).into()
}

impl Facts<'_> {
    /// Peers with whom a session stands.
    fn peers(&self) -> u32 {
        let all = self.shared.program.peers.iter().flat_map(|section| &section.state.peers);
        u32::try_from(all.filter(|peer| peer.connected.load(Relaxed)).count()).unwrap_or(u32::MAX)
    }

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

    /// The figure of this name, and what it means.
    pub fn figure(&self, name: &str) -> Option<(Value, &'static str)> {
        ITEMS.iter().find(|i| i.name == name).map(|i| (i.value(self), i.about))
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
            return Value::Flt(d.as_secs_f64());
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
        let proxies = program.proxies.iter().filter(|p| !p.disabled).map(|p| p.binds.len());
        let forwards = program.forwards.iter().map(|f| f.binds.len() + f.datagrams.len());
        let all: usize = proxies.chain(forwards).sum();
        u32::try_from(all + program.peers.len() + program.global.cli.len()).unwrap_or(u32::MAX)
    }

    fn jobs(&self) -> u32 {
        self.listeners().saturating_add(self.process().connections.load(Relaxed))
    }
}

/// `Name: value` lines.
pub fn plain(facts: &Facts<'_>, desc: bool) -> String {
    let mut out = String::new();
    for item in ITEMS {
        let value = item.value(facts);
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
        let value = item.value(facts);
        if value.is_some() {
            let _ =
                write!(out, "{}.{}.1:{}:{}:", item.position, item.name, item.tag(facts), value.type_name());
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
        let value = item.value(facts);
        if !value.is_some() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let _ = write!(out, "{{\"field\":{{\"pos\":{},\"name\":", item.position);
        json_string(item.name, &mut out);
        out.push_str("},\"processNum\":1,");
        json_tag(item.tag(facts), &mut out);
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
