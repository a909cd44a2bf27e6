//! Where to listen and where to connect.

use std::net::SocketAddr;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// TCP on an IP address and port.
    Tcp(SocketAddr),
    /// A Unix socket in the file system.
    Unix(Box<[u8]>),
    /// `abns@`: abstract, padded to the full length of the field.
    Abns(Box<[u8]>),
    /// `abnsz@`: abstract, exact length.
    Abnsz(Box<[u8]>),
    /// `fd@`: a listening socket that was inherited.
    Fd(i32),
    /// `sockpair@`: one end of a socket pair over which connected sockets are passed.
    SockPair(i32),
}

/// Source address of connections to servers (`source`).
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Address and port to bind; port 0: any. `None`: whatever the kernel chooses.
    pub addr: Option<SocketAddr>,
    /// A range of ports to use instead of the address's own.
    pub ports: Option<(u16, u16)>,
    /// `usesrc`: pretend to come from somewhere else.
    pub usesrc: Option<UseSource>,
    /// `interface`.
    pub interface: Option<Box<str>>,
}

/// `usesrc`: which foreign address a connection pretends to come from.
#[derive(Clone, Debug)]
pub enum UseSource {
    /// A fixed one.
    Addr(SocketAddr),
    /// `client`: the client's address and port.
    Client,
    /// `clientip`: the client's address, any port.
    ClientIp,
    /// `hdr_ip(name,occ)`: from a header.
    Header(Box<[u8]>, i32),
}
