//! What a `cache` section keeps (manual, section 6): whole responses, and of those that had to go perhaps
//! their links (`early-hints`). It knows no message, no clock and no socket: keys are bytes, time is a
//! number of seconds, what belongs to an entry besides its body is a type of who uses it.
//!
//! All threads share a store. An entry is an `Arc`: who serves it holds it, and no lock. Keys are spread over
//! shards, each under a lock of its own that is held for a look-up; how much all of them take together is one
//! number. When room is needed, the entry goes that was not asked for the longest, whichever shard it is in.
//! What is being received takes room, too, and is seen by nobody before it is whole.

mod fetch;
mod shard;
mod store;
#[cfg(test)]
mod tests;

pub use fetch::Fetch;
pub use store::{Found, Row, Store, Writer};

use std::sync::Arc;
use std::time::Duration;

/// Room is counted in blocks of so many bytes.
pub const BLOCK: usize = 1024;

/// What HAProxy keeps of an entry besides head and body; counted here, too, so that as many fit.
pub const OVERHEAD: usize = 168;

/// Whether links are kept for hints (`early-hints`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hints {
    /// No.
    #[default]
    Off,
    /// Links of entries that went may take so many hundredths of all blocks.
    On {
        /// 1 to 99.
        ratio: u8,
    },
    /// Links and nothing else.
    Only,
}

/// What a section says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its name.
    pub name: Box<str>,
    /// Blocks of all entries together (`total-max-size`, in KiB).
    pub blocks: usize,
    /// Bytes of an entry, with its head and [`OVERHEAD`] (`max-object-size`); as many as a block has fit
    /// anyway.
    pub max_object: usize,
    /// Seconds for which an entry is good at most (`max-age`).
    pub max_age: u32,
    /// Entries of one key that differ by fields of the request (`max-secondary-entries`).
    pub max_secondary: usize,
    /// Responses that depend on fields of the request may be kept (`process-vary`).
    pub vary: bool,
    /// `early-hints`.
    pub hints: Hints,
    /// `byte-ranges`: a part may be had of what is kept.
    pub ranges: bool,
    /// `wait-for-fetch`: a request for what another one fetches waits for that, so long at most.
    pub wait: Option<Duration>,
    /// Seconds for which an entry that is no longer good answers while one request fetches it anew
    /// (`stale-while-revalidate`).
    pub stale_meanwhile: u32,
    /// Seconds for which it answers in place of an error (`stale-if-error`).
    pub stale_on_error: u32,
    /// `rfc9111`: whatever the RFC allows is kept, and asked for again when it is no longer good: its user
    /// says of each entry what it is good for then.
    pub standard: bool,
}

impl Settings {
    /// Seconds for which an entry may be of use when it is no longer good.
    fn stale(&self) -> u64 {
        if self.standard { u64::MAX } else { u64::from(self.stale_meanwhile.max(self.stale_on_error)) }
    }

    /// Bytes of head and body that an entry may have.
    pub fn most(&self) -> usize {
        self.max_object.max(BLOCK) - OVERHEAD
    }
}

/// What is kept under a key.
#[derive(Debug)]
pub struct Entry<M> {
    key: Box<[u8]>,
    /// What it is: whatever its user keeps of it.
    pub meta: M,
    /// The body, whole. It may be that of an earlier entry ([`Store::renew`]).
    pub body: Arc<Vec<u8>>,
    /// Lines of hints, complete fields of a head; empty if there are none.
    pub hints: Box<[u8]>,
    /// Good until then, in seconds of the clock that its user has.
    pub expires: u64,
    /// Bytes of head and body, with [`OVERHEAD`].
    size: usize,
}

impl<M> Entry<M> {
    /// What it is kept under.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Bytes of head and body, with [`OVERHEAD`].
    pub fn size(&self) -> usize {
        self.size
    }
}

/// Blocks for so many bytes.
fn blocks(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK).max(1)
}
