//! Floor 5: what carries bytes.
//!
//! A connection is a [`Transport`](transport::Transport): a socket, perhaps with TLS on it that perhaps the
//! kernel does. Before its first byte there may be a PROXY header ([`header`]), a SOCKS proxy ([`socks`]) and
//! a [`handshake`]; behind it the [`pump`] moves what comes. Nothing here knows workers, streams, proxies or
//! who is connected to whom; what is found out is given back, and whoever asked counts it and logs it.
#![forbid(unsafe_code)]

pub mod address;
pub mod chain;
pub mod handshake;
pub mod header;
pub mod pump;
pub mod socks;
pub mod timed;
pub mod transport;
