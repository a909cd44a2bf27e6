//! How large records may be, and how often keys may change.

use std::time::Duration;

/// Limits of records and keys (manual, `tune.ssl.maxrecord`, `tune.ssl.hard-maxrecord`,
/// `tune.ssl.keyupdate-rate-limit`).
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Most plaintext in the first records after a pause, 0: no limit.
    pub first: usize,
    /// How long a pause is.
    pub idle: Duration,
    /// Most plaintext in any record, 0: no limit.
    pub hard: usize,
    /// New keys of the peer in a second, 0: no limit.
    pub updates: u32,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { first: 0, idle: Duration::from_secs(1), hard: 0, updates: 100 }
    }
}
