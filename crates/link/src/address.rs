//! Addresses as rules and states know them, and as the runtime does.

use std::net::SocketAddr;

use model::Peer;
use model::server::{Target, UnixKind};
use rt::Addr;

/// A runtime address as rules and logs see it. An IPv4 client of a socket that serves IPv6 as well stays
/// `::ffff:IPV4`, as the system tells it: rules compare it with either family, fields and lines show it so.
pub fn peer(addr: Option<&Addr>) -> Peer {
    match addr {
        Some(Addr::Inet(a)) => Peer::Inet(*a),
        Some(_) | None => Peer::Unix,
    }
}

/// An address to connect from: one of an IPv4 client, however its socket told it, is of use with IPv4 servers
/// only.
pub fn plain(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

/// Where to connect to; `None` when the server has no address.
pub fn target(target: &Target) -> Option<Addr> {
    Some(match target {
        Target::None => return None,
        Target::Inet(a) => Addr::Inet(*a),
        Target::Unix { path, kind } => match kind {
            UnixKind::Path => Addr::Unix(path.to_vec()),
            UnixKind::Abns => Addr::Abstract { name: path.to_vec(), padded: true },
            UnixKind::Abnsz => Addr::Abstract { name: path.to_vec(), padded: false },
        },
    })
}
