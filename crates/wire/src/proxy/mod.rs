//! The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt): a header in front of a connection
//! that says whose connection it really is.

mod build;
mod cip;
mod parse;
pub mod tlv;

pub use build::{V2Options, v1, v2};
pub use cip::parse as parse_cip;
pub use parse::parse;

use std::net::SocketAddr;

/// Longest version 1 header, its CRLF included.
pub const V1_MAX: usize = 107;
/// Longest version 2 header that is read: what the protocol asks receivers to take, and plenty of TLVs.
pub const V2_MAX: usize = 4096 + 16;
/// The first bytes of version 2.
pub const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source and destination, if they are of a family with addresses.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// `LOCAL` or `UNKNOWN`: the addresses of the connection itself count.
    pub local: bool,
    /// Source and destination are Unix sockets.
    pub unix: bool,
    /// TLVs of version 2, as they stand in the header.
    pub tlvs: Vec<u8>,
}

/// A header that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The first bytes are not those of a header.
    NotProxy,
    /// It goes on for longer than any header may.
    TooLong,
    /// A part of it is malformed.
    Malformed,
    /// Version 1 speaks of a protocol that is not TCP.
    Unhandled,
    /// The checksum TLV does not fit.
    Checksum,
}

/// How far parsing came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The header, and how many bytes it took.
    Complete(Header, usize),
}

#[cfg(test)]
mod tests;
