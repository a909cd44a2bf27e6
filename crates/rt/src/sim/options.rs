//! How hostile a simulated network is.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::addr::Addr;

/// What may go wrong on a link, and how fast it is. A chance is a probability from 0.0 to 1.0, drawn from the
/// world's seed at each occasion.
#[derive(Clone, Debug)]
pub struct Faults {
    /// The time that a segment travels.
    pub delay: RangeInclusive<Duration>,
    /// The bytes that may be under way or unread in one direction: what a send buffer and a receive window
    /// hold.
    pub window: usize,
    /// The chance that a read returns less than there is.
    pub short_read: f64,
    /// The chance that a write takes less than there is room for.
    pub short_write: f64,
    /// The chance that what was sent at once arrives in two parts.
    pub split: f64,
    /// The chance, at each write, that the connection breaks instead (both ends see ECONNRESET).
    pub reset: f64,
    /// The chance, at each write, that the sender's direction ends after it (the reader sees the end of the
    /// stream, the sender EPIPE).
    pub half_close: f64,
    /// The chance that a segment is late by `stall_time`, and all behind it.
    pub stall: f64,
    /// See `stall`.
    pub stall_time: Duration,
    /// The chance that a connection is refused.
    pub refuse: f64,
    /// The chance that nobody answers to a connection.
    pub black_hole: f64,
    /// The chance that a connect, an accept or a datagram socket fails with EMFILE.
    pub no_descriptors: f64,
    /// The chance that a datagram is lost.
    pub loss: f64,
}

impl Default for Faults {
    /// A quiet and fast network.
    fn default() -> Faults {
        Faults {
            delay: Duration::from_micros(20)..=Duration::from_micros(200),
            window: 256 << 10,
            short_read: 0.0,
            short_write: 0.0,
            split: 0.0,
            reset: 0.0,
            half_close: 0.0,
            stall: 0.0,
            stall_time: Duration::from_millis(500),
            refuse: 0.0,
            black_hole: 0.0,
            no_descriptors: 0.0,
            loss: 0.0,
        }
    }
}

impl Faults {
    /// A network that loses nothing, but delivers everything in odd pieces at odd times through tiny buffers.
    pub fn choppy() -> Faults {
        Faults {
            delay: Duration::from_micros(1)..=Duration::from_millis(20),
            window: 1500,
            short_read: 0.5,
            short_write: 0.5,
            split: 0.5,
            stall: 0.01,
            ..Faults::default()
        }
    }

    /// A network where all of it happens.
    pub fn hostile() -> Faults {
        Faults {
            reset: 0.01,
            half_close: 0.005,
            refuse: 0.05,
            black_hole: 0.02,
            no_descriptors: 0.02,
            loss: 0.05,
            ..Faults::choppy()
        }
    }
}

/// A simulated world.
#[derive(Clone, Debug)]
pub struct Options {
    /// The links for which `links` has nothing.
    pub faults: Faults,
    /// The links to certain listeners.
    pub links: Vec<(Addr, Faults)>,
    /// Descriptors that may be open at once; beyond, connect and accept fail with EMFILE.
    pub max_descriptors: usize,
    /// Polls of tasks after which the world is given up.
    pub max_steps: u64,
    /// Virtual time after which the world is given up.
    pub max_time: Duration,
    /// The date at which the world begins, in microseconds since the Unix epoch (not 0).
    pub epoch_micros: u64,
    /// Prints each event of the network to standard error.
    pub verbose: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            faults: Faults::default(),
            links: Vec::new(),
            max_descriptors: 1 << 20,
            max_steps: 1_000_000,
            max_time: Duration::from_secs(24 * 3600),
            epoch_micros: 1_700_000_000_000_000,
            verbose: false,
        }
    }
}

impl From<Faults> for Options {
    fn from(faults: Faults) -> Options {
        Options { faults, ..Options::default() }
    }
}
