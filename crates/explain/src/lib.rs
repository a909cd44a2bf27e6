//! `harrier explain`: what a configuration does with a described request, and why, without any traffic.
//!
//! The rules that run here are the very ones that traffic runs: the same compiled conditions and actions, on
//! a request that the same parser has read. Only two things are ours: somebody watches each condition while
//! it is evaluated, and what an action would have to wait for is taken to have happened. Where the answer
//! depends on traffic (counters, load, connections that exist already) the configuration is taken as it is
//! right after its start.
#![forbid(unsafe_code)]

mod ask;
mod changes;
mod door;
mod json;
mod outside;
mod report;
mod seen;
mod server;
mod text;
mod walk;

pub use ask::USAGE;
pub use ask::{Ask, Wrong};
pub use report::{Change, Report, Row, Section};
pub use seen::Seen;
pub use text::Style;

use program::Program;

/// Walks a request through a configuration.
///
/// # Errors
/// The request is not one, or there is no telling which frontend would get it: a sentence for the user.
pub fn explain(program: &Program, ask: &Ask) -> Result<Report, String> {
    walk::walk(program, ask)
}

#[cfg(test)]
mod tests;
