//! Floor 5: the way of a request.
//!
//! ```text
//! listener -> session (tcp-request connection, PROXY, tcp-request session) -> tcp | h1
//!   -> stream: read request -> rules of the frontend -> choose backend -> its rules -> choose server
//!   -> server connection (idle pool | connect, PROXY) -> pump both ways -> response rules
//!   -> finish: log line, counters, keep-alive or close
//! ```
//!
//! The modules stand in that order below. Everything of one connection happens on one worker, as one
//! task; the code of a request is `async fn`s that read from top to bottom.
#![forbid(unsafe_code)]

pub mod aside;
pub mod process_vars;
pub mod run;
pub mod shared;
pub mod worker;

pub mod admission;
pub mod listener;
pub mod secure;
pub mod session;
pub mod sessions;

mod silence;
pub mod stream;

pub mod tcp;
pub mod transport;

pub mod h1;
pub mod h2;

pub mod choose;
pub mod connect;
pub mod persist;
pub mod pool;
pub mod proxy_header;
pub mod pump;
pub mod queue;
mod socks;
pub mod stick;

pub mod check;
pub mod farm;
pub mod responder;
pub mod state;

pub mod captured;
pub mod errors;
mod filter;
pub mod finish;
pub mod live;
pub mod log;
mod losses;
pub mod net;
pub mod service;

pub use shared::Shared;
pub use worker::Worker;
