//! Copies of requests for another backend (`http-request mirror`): what a rule leaves with its transaction,
//! what the process holds of them, and what is counted.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use wire::head::Head;

use crate::counter::Counter;

/// A copy that a rule asked for.
#[derive(Debug)]
pub struct Copied {
    /// The backend that it is for, as an index of the program.
    pub backend: u32,
    /// The head as the rule found it.
    pub head: Head,
    /// Most bytes of body that go along; a request with more is not copied.
    pub most: u64,
}

/// What a transaction has to do with copies.
#[derive(Debug, Default)]
pub struct Mirroring {
    /// Copies that rules asked for, until the rules have run.
    pub copies: Vec<Copied>,
    /// It is a copy itself.
    pub is_copy: bool,
}

/// What became of copies, for the backend that they were for.
#[derive(Debug, Default)]
pub struct MirrorCounters {
    /// A server answered.
    pub sent: Counter,
    /// There was no server to be had.
    pub no_server: Counter,
    /// No server had a place in time, or the queue was full.
    pub queue: Counter,
    /// Too many copies, or too many bytes of them, were under way.
    pub full: Counter,
    /// The body was longer than the rule allows.
    pub too_long: Counter,
    /// The body did not come whole: its client broke off, or the request was answered before.
    pub incomplete: Counter,
    /// The client asked for a tunnel, or for another protocol.
    pub tunnel: Counter,
    /// The server could not be reached, did not answer in time or not as it should, or a rule of the backend
    /// refused the copy.
    pub failed: Counter,
}

impl MirrorCounters {
    /// All of them with their names, in the order in which they are shown.
    pub fn all(&self) -> [(&'static str, &Counter); 8] {
        [
            ("sent", &self.sent),
            ("no_server", &self.no_server),
            ("queue", &self.queue),
            ("full", &self.full),
            ("too_long", &self.too_long),
            ("incomplete", &self.incomplete),
            ("tunnel", &self.tunnel),
            ("failed", &self.failed),
        ]
    }

    /// Back to zero.
    pub fn clear(&self) {
        self.all().into_iter().for_each(|(_, counter)| counter.set(0));
    }
}

/// Most copies that are under way for a backend.
pub const MOST: u32 = 1000;
/// Most bytes that the process holds for copies of requests.
pub const MOST_BYTES: usize = 32 << 20;

/// What the copies under way hold; they give it back when they are dropped.
#[derive(Debug, Default)]
pub struct Held {
    /// Bytes of heads and bodies.
    bytes: AtomicUsize,
}

impl Held {
    /// Takes so many bytes more, if there is room.
    pub fn take(&self, bytes: usize) -> bool {
        let taken = self.bytes.fetch_add(bytes, Relaxed);
        let fits = taken.saturating_add(bytes) <= MOST_BYTES;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    /// Gives bytes back.
    pub fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

/// Enters a copy among those under way for a backend, if there are not too many.
pub fn enter(under_way: &AtomicU32) -> bool {
    let enters = under_way.fetch_add(1, Relaxed) < MOST;
    if !enters {
        under_way.fetch_sub(1, Relaxed);
    }
    enters
}
