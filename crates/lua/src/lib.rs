//! Floor 9: scripts in Lua 5.4, as the API manual of HAProxy describes them.
//!
//! Files are run while the configuration is read ([`load`]); what they register becomes entries of the
//! registry that rules are compiled with, services of the engine, and commands of the runtime API. Each call
//! of a script is a coroutine (`run`) that yields what it waits for: the future that waits is the engine's to
//! poll and to drop, so a script waits no longer than its stream lives.
//!
//! Functions that scripts call are plain functions in tables (`load`), which a prelude of Lua makes classes
//! of. What they look at (a transaction, a connection) stands in a scoped slot of the thread while a script
//! runs (`host`): Lua itself never holds anything of a transaction.
#![forbid(unsafe_code)]

mod action;
mod applet;
mod book;
mod came;
mod certs;
mod changes;
mod client;
mod clock;
mod core;
mod counts;
mod ending;
mod events;
mod failure;
mod filter;
mod flowing;
mod fulfil;
#[cfg(fuzzing)]
pub mod fuzzing;
mod here;
mod host;
mod hot;
mod http;
mod io;
mod load;
mod message;
pub mod objects;
mod pattern_sets;
mod proxies;
mod register;
mod run;
mod samples;
mod scripts;
mod servers;
mod settings;
mod shown;
mod sockets;
mod start;
mod state;
mod tables;
mod tasks;
mod text;
mod told;
mod txn;
mod value;
mod wait;

pub use load::{Loaded, load};
pub use start::succeed;
