//! Floor 6: seeing and steering a running process.
//!
//! Two doors lead in: the runtime API ([`cli`], a line protocol on `stats socket`s) and the statistics page
//! ([`stats::page`], an HTTP service). Behind them stand the same two tables: the commands, and the statistics,
//! each of which is defined once and shown as CSV, typed lines, JSON or HTML.
//!
//! Figures are read from `model` as they stand; what only its own worker may touch (connections, bad
//! messages) is fetched by jobs sent to each worker ([`gather`]).
#![forbid(unsafe_code)]

pub mod cli;
mod command;
pub mod dump;
pub mod gather;
pub mod info;
pub mod product;
mod server_state;
pub mod stats;

#[cfg(test)]
mod tests;
