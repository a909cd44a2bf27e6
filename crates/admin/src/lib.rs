//! Floor 9: seeing and steering a running process.
//!
//! Three doors lead in: the runtime API ([`cli`], a line protocol on `stats socket`s), the statistics page
//! ([`stats::page`], an HTTP service) and the metrics of Prometheus ([`promex`], another one). Behind them
//! stand the same two tables: the commands, and the statistics, each of which is defined once and shown as
//! CSV, typed lines, JSON, HTML or metrics.
//!
//! Figures are read from `model` as they stand; what only its own worker may touch (connections, bad
//! messages) is fetched by jobs sent to each worker ([`gather`]).
#![forbid(unsafe_code)]

pub mod cli;
mod command;
pub mod dump;
pub mod fuzzing;
pub mod gather;
pub mod info;
pub mod machine;
pub mod preload;
pub mod product;
pub mod promex;
mod server_state;
pub mod stats;

pub use command::process::listen_name;
pub use stats::shm;

#[cfg(test)]
mod tests;
