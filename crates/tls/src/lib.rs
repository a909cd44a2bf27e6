//! Floor 2: TLS on both sides of the proxy, on rustls with AWS-LC.
//!
//! [`store`] holds the certificates and the lists of a configuration, [`files`] loads them, [`server`] and
//! [`client`] turn the words of `bind` and `server` lines into what a [`handshake`] needs, [`verify`] judges
//! the other side's certificate, and [`stream`] carries data afterwards. Nothing here knows proxies, or does
//! I/O but through a [`stream::Wire`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Name of the library below rustls, as predicates of the configuration ask for it.
pub const LIBRARY: &str = "AWS-LC 1.0";

/// The version of OpenSSL that AWS-LC's headers claim to be compatible with.
pub const OPENSSL: &str = "1.1.1";

/// Number of AWS-LC's programming interface.
pub const AWSLC_API: u64 = 37;

mod ahead;
mod chain;
mod ciphers;
pub mod client;
pub mod dummy;
mod early;
pub mod faults;
pub mod figures;
pub mod files;
pub mod forge;
pub mod fuzzing;
pub mod handshake;
pub mod hello;
mod host;
pub mod locked;
pub mod names;
pub mod ocsp;
mod p521;
mod pem;
mod print;
mod record;
mod revoked;
mod room;
mod schemes;
pub mod secrets;
pub mod server;
pub mod sessions;
mod sizes;
pub mod staple;
pub mod store;
pub mod stream;
pub mod suites;
pub mod text;
pub mod tickets;
mod turn;
pub mod verify;
mod wire;
pub mod words;

pub use client::Connector;
pub use handshake::{Facts, Failure, Handshake, Step};
pub use server::Acceptor;
pub use store::Store;
pub use stream::{Ahead, Stream, Wire};

#[cfg(test)]
mod tests;
