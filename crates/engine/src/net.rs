//! From the configuration's addresses and options to the runtime's.

use program::address::Listen;
use program::options::KeepAlive;
use rt::{Addr, Keepalive};

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
