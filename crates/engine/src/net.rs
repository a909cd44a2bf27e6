//! From the configuration's addresses and options to the runtime's.

use std::net::SocketAddr;

use model::Peer;
use model::server::{Target, UnixKind};
use program::address::Listen;
use program::options::KeepAlive;
use rt::{Addr, Keepalive};

/// A runtime address as rules and logs see it.
pub fn peer(addr: Option<&Addr>) -> Peer {
    match addr {
        Some(Addr::Inet(a)) => Peer::Inet(plain(*a)),
        Some(_) | None => Peer::Unix,
    }
}

/// An IPv4 address in IPv6 clothing, as sockets that serve both report it, becomes a plain one.
pub fn plain(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V6(a) => match a.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), a.port()),
            None => addr,
        },
        SocketAddr::V4(_) => addr,
    }
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

/// Where to listen; `None` for inherited descriptors.
pub fn listen(address: &Listen) -> Option<Addr> {
    Some(match address {
        Listen::Tcp(a) => Addr::Inet(*a),
        Listen::Unix(path) => Addr::Unix(path.to_vec()),
        Listen::Abns(name) => Addr::Abstract { name: name.to_vec(), padded: true },
        Listen::Abnsz(name) => Addr::Abstract { name: name.to_vec(), padded: false },
        Listen::Fd(_) | Listen::SockPair(_) => return None,
    })
}

/// TCP keep-alive probes.
pub fn keepalive(k: KeepAlive) -> Keepalive {
    let secs = |s: u32| (s > 0).then(|| std::time::Duration::from_secs(s.into()));
    Keepalive { count: (k.count > 0).then_some(k.count), idle: secs(k.idle), interval: secs(k.interval) }
}
