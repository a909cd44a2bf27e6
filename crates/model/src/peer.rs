//! The address of the other side, as rules and logs see it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Peer {
    /// Not known (yet), or of a family that has no printable address.
    #[default]
    Unknown,
    /// IPv4 or IPv6 with a port.
    Inet(SocketAddr),
    /// A Unix socket; logs show `unix:ID` with the listener's id.
    Unix,
}

impl Peer {
    /// The IP address, if the family has one.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Peer::Inet(a) => Some(a.ip()),
            _ => None,
        }
    }

    /// The port, if the family has one.
    pub fn port(self) -> Option<u16> {
        match self {
            Peer::Inet(a) => Some(a.port()),
            _ => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Unknown => f.write_str("-"),
            // Without brackets, in either family.
            Peer::Inet(a) => write!(f, "{}:{}", a.ip(), a.port()),
            Peer::Unix => f.write_str("unix"),
        }
    }
}
