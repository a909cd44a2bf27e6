//! Whole worlds around the engine: a configuration as text, clients and servers as small scripts, one seed.
//!
//! The engine runs as it does in production, on [`rt::sim`] instead of the kernel: every delay, short read,
//! reset and refusal comes from the seed, time is virtual, and what is not a function of the seed is a
//! defect. A test is a *scene*: it says what an operator would see (the status a client got, the termination
//! state in the log, the counters, and that nothing is left over), and [`explore`] plays it over many seeds
//! and climates:
//!
//! - `WORLDS_SEEDS=n`: so many seeds for each scene (default: a few).
//! - `WORLDS_SEED=n`: only that one, to replay a failure; with `WORLDS_VERBOSE=1` each event of the network
//!   is printed.
//!
//! A seed decides the climate, too: those of a scene take turns. In [`Climate::Quiet`] everything is as fast
//! and whole as on a good local network, so times can be asserted. [`Climate::Choppy`] loses nothing but cuts
//! and delays everything: whatever the outcome is in a quiet world, it must be the same there. In
//! [`Climate::Hostile`] anything breaks at any time: then only what must always hold is asserted (no byte is
//! wrong, everything ends, nothing leaks).
#![forbid(unsafe_code)]

mod explore;
mod log;
mod message;
mod origin;
mod pair;
mod peer;
mod setup;
mod stage;
mod task;

pub use explore::{ALL, CALM, Climate, QUIET, explore, explore_with, play, seeds};
pub use log::{Line, TCP_FORMAT};
pub use message::{End, Message, chunked, content, get, label, post, post_chunked, response};
pub use origin::Answer;
pub use pair::explore_pairs;
pub use peer::Peer;
pub use setup::{Setup, addr, judge};
pub use stage::{LOG, Stage};
pub use task::{Job, all, spawn, within};
