//! What the process compresses: its limits, which the configuration sets when it is adopted, and its figures.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use base::rate::Rate;

/// Windows of the rates, ms.
pub const PERIOD: u32 = 1000;

/// What a configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// `maxcomprate`: bytes a second, 0: no limit.
    pub rate: u32,
    /// `maxcompcpuusage`, percent.
    pub cpu: u32,
    /// `maxzlibmem`, MB, 0: no limit.
    pub memory: u32,
    /// `tune.comp.maxlevel`, of gzip and deflate.
    pub level: u32,
    /// `tune.zlib.memlevel`.
    pub memory_level: u32,
    /// `tune.zlib.windowsize`, bits.
    pub window: u32,
    /// `tune.comp.brotli.level`.
    pub brotli: u32,
    /// `tune.comp.zstd.level`.
    pub zstd: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { rate: 0, cpu: 100, memory: 0, level: 1, memory_level: 8, window: 15, brotli: 4, zstd: 3 }
    }
}

/// Limits and figures of the process.
#[derive(Debug, Default)]
pub struct Compression {
    /// `tune.comp.maxlevel` and its like, as [`Terms`] has them; 0 before a configuration was adopted.
    pub cpu: AtomicU32,
    pub level: AtomicU32,
    pub memory_level: AtomicU32,
    pub window: AtomicU32,
    pub brotli: AtomicU32,
    pub zstd: AtomicU32,
    /// Bytes that packers of gzip and deflate may take, 0: no limit.
    pub most_memory: AtomicU64,
    /// Bytes that they take.
    pub memory: AtomicU64,
    /// Bytes given to packers of responses.
    pub bytes_in: Rate,
    /// Bytes that came out.
    pub bytes_out: Rate,
}

/// Those of this process. Packers outlive the streams that know the world, so that they are found here.
pub static PROCESS: Compression = Compression {
    cpu: AtomicU32::new(100),
    level: AtomicU32::new(1),
    memory_level: AtomicU32::new(8),
    window: AtomicU32::new(15),
    brotli: AtomicU32::new(4),
    zstd: AtomicU32::new(3),
    most_memory: AtomicU64::new(0),
    memory: AtomicU64::new(0),
    bytes_in: Rate::new(),
    bytes_out: Rate::new(),
};

impl Terms {
    /// They hold from now on.
    pub(crate) fn apply(&self) {
        let to = &PROCESS;
        for (value, place) in [
            (self.cpu, &to.cpu),
            (self.level, &to.level),
            (self.memory_level, &to.memory_level),
            (self.window, &to.window),
            (self.brotli, &to.brotli),
            (self.zstd, &to.zstd),
        ] {
            place.store(value, Relaxed);
        }
        to.most_memory.store(u64::from(self.memory) << 20, Relaxed);
    }
}

/// Of one side of the traffic of a proxy (`comp_in`, `comp_out`, `comp_byp`, `comp_rsp`).
#[derive(Debug, Default)]
pub struct CompressionCounters {
    /// Bytes of responses given to packers.
    pub bytes_in: crate::counter::Counter,
    /// Bytes that came out of them.
    pub bytes_out: crate::counter::Counter,
    /// Bytes that went through the filter as they were.
    pub bypassed: crate::counter::Counter,
    /// Responses.
    pub responses: crate::counter::Counter,
}

impl CompressionCounters {
    /// Back to zero.
    pub fn clear(&self) {
        let CompressionCounters { bytes_in, bytes_out, bypassed, responses } = self;
        [bytes_in, bytes_out, bypassed, responses].iter().for_each(|counter| counter.set(0));
    }
}
