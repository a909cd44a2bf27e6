//! Where lines of the log go. A sink takes a line at once or the line is dropped and counted: nothing ever
//! waits for a log server.

pub mod forward;
mod frame;
mod gather;
mod outlets;
mod relay;
mod ring;
mod ring_file;
mod send;
mod spread;
pub mod traced;

use program::Program;

pub use frame::local_stamp;
pub use outlets::{Outlets, connect, rings, rings_after};
pub use relay::Relayed;
pub use ring::{Bell, Ring};
pub use send::{Body, Event, Sinks};

/// Whether any format of a log line has one of these words in it.
pub fn mentions(program: &Program, words: &[&str]) -> bool {
    let logs = program.proxies.beginning().iter().map(|p| &p.log);
    let own = logs.flat_map(|l| [&l.format, &l.structured, &l.error_format]).flatten().map(|f| &*f.text);
    let steps = program.log_profiles.iter().flat_map(|p| p.steps.iter().chain([&p.any])).flatten();
    let profiles = steps.flat_map(|s| [&s.format, &s.structured]).flatten().map(|f| &*f.text);
    own.chain(profiles).any(|text| words.iter().any(|w| text.contains(w)))
}
