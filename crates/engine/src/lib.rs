//! Floor 8: the way of a request.
//!
//! ```text
//! listener -> session (tcp-request connection, PROXY, TLS, tcp-request session) -> tcp, h1 or a mux
//!   -> http: read request -> rules of the frontend -> choose backend -> its rules -> choose server
//!   -> server connection (idle pool | connect, PROXY, TLS) -> both ways -> response rules
//!   -> finish: log line, counters, keep-alive or close
//! ```
//!
//! Everything of one connection happens on one worker, as one task; the code of a request is `async fn`s that
//! read from top to bottom. The modules stand on floors, the lowest first below: a module names none that
//! stands behind its own paragraph.
#![forbid(unsafe_code)]

// What knows nothing of a worker.
pub mod aside;
pub mod captured;
mod change;
pub mod debug;
pub mod errors;
pub mod filters;
pub mod net;
mod own;
pub mod process_vars;
pub mod profile;
mod remembered;
mod room;
mod ruling;
pub mod sessions;
pub mod sinks;
pub mod traced;
mod tracking;

// A worker, what it shares with the others, and what looks at it.
pub mod applets;
pub mod worker;

mod calls;
pub mod departure;
pub mod inner;
pub mod lines;
pub mod live;
pub mod mail;
mod naming;
pub mod responder;

// A client connection, and one stream of it.
pub mod admission;
pub mod client;
pub mod points;
pub mod stream;

// What is decided, counted and told of a stream.
mod body;
mod filter;
pub mod finish;
pub mod forward;
pub mod log;
mod losses;
pub mod persist;
mod silence;
pub mod stick;

// A server for it, and both directions.
pub mod choose;
pub mod connect;
mod duplex;

// What serves a connection.
pub mod h1;
pub mod http;
pub mod listener;
pub mod run;
pub mod session;
pub mod tcp;

pub use worker::{Shared, Worker};
