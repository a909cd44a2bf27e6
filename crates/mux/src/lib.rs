//! Floor 6: connections that carry streams.
//!
//! Towards clients a connection yields [`Arrival`]s to its [`Host`]; towards servers whoever wants to send a
//! request opens a call on it. What goes through a stream is in the form of HTTP/1 on both sides, so nobody
//! above knows of frames. Nothing here knows rules, logs or who serves a stream.
#![forbid(unsafe_code)]

mod arrival;
pub mod glitches;
pub mod h2;
mod trailers;
pub mod websocket;

pub use arrival::{Arrival, Host, Receipt, Settings};
pub use trailers::Trailers;
