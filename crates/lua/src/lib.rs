//! Floor 9: scripts in Lua 5.4, as the API manual of HAProxy describes them.
//!
//! Files are run while the configuration is read ([`load`]); what they register becomes entries of the registry
//! that rules are compiled with, services of the engine, and commands of the runtime API. Each call of a script
//! is a coroutine ([`run`]) that yields what it waits for: the future that waits is the engine's to poll and to
//! drop, so a script waits no longer than its stream lives.
//!
//! Functions that scripts call are plain functions in tables ([`state`]), which a prelude of Lua makes classes
//! of. What they look at (a transaction, a connection) stands in a scoped slot of the thread while a script
//! runs ([`host`]): Lua itself never holds anything of a transaction.
#![forbid(unsafe_code)]

mod action;
pub mod applet;
mod book;
mod client;
mod core;
mod events;
mod host;
mod http;
pub mod load;
pub mod objects;
mod pattern_sets;
mod proxies;
mod register;
mod run;
mod samples;
mod servers;
mod settings;
mod sockets;
mod state;
mod tables;
mod told;
mod txn;
mod value;
mod wait;

pub use load::{Scripts, is_wanted, load};
