//! What the commands do, by family.

pub mod anon;
pub mod basic;
pub mod cookies;
pub mod counters;
pub mod debug;
pub mod errors;
pub mod events;
pub mod farm;
pub mod fds;
pub mod frontend;
pub mod inside;
pub mod limits;
pub mod patterns;
pub mod process;
pub mod profiling;
pub mod server;
pub mod servers;
pub mod sessions;
pub mod set_server;
pub mod stat;
pub mod tables;
pub mod ticket_keys;
pub mod tls;
pub mod vars;
pub mod wait;
pub mod weight;
