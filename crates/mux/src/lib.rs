//! Floor 6: connections that carry streams.
//!
//! Towards clients a connection yields [`Arrival`]s to its [`Host`]; towards servers whoever wants to send a
//! request opens a call on it. What goes through a stream is in the form of HTTP/1 on both sides, so nobody
//! above knows of frames. Nothing here knows rules, logs or who serves a stream.
//!
//! What is the same whatever protocol is spoken stands beside the protocols: `server` and `call` are a
//! connection to a server and one of its streams for those who use them, `fate` is what becomes of it,
//! `delivery` and `pickup` move the two directions between a stream and its user through a `carrier`, which
//! the protocol provides, `outbox` holds what waits to be sent, `trailers` what follows a body whose length
//! is declared. A protocol towards servers is a `start` that gives such a connection to a task of its own.
#![forbid(unsafe_code)]

mod arrival;
mod call;
mod carrier;
mod delivery;
mod fate;
pub mod fcgi;
pub mod glitches;
pub mod h2;
mod outbox;
mod pickup;
mod server;
mod trailers;
pub mod websocket;

pub use arrival::{Arrival, Host, Receipt, Settings};
pub use call::Call;
pub use server::{Mux, Owner, Pool, Resting};
pub use trailers::Trailers;
