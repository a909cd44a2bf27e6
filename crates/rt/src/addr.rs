//! Addresses of sockets: IPv4 and IPv6, Unix paths and Linux's abstract names.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};

/// Bytes of `sun_path` after the leading NUL of an abstract name.
const ABSTRACT_ROOM: usize = 107;

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Addr {
    /// IPv4 or IPv6 and a port.
    Inet(SocketAddr),
    /// The path of a Unix socket; at most 107 bytes. Empty for a socket without a name.
    Unix(Vec<u8>),
    /// A name in Linux's abstract namespace, without the leading NUL; at most 107 bytes.
    Abstract {
        /// The name, without padding.
        name: Vec<u8>,
        /// Whether the name is padded with NULs to the full length (`abns@`), or ends where it ends
        /// (`abnsz@`).
        padded: bool,
    },
}

impl Addr {
    /// The IP address and port, if it has them.
    pub fn as_inet(&self) -> Option<SocketAddr> {
        match self {
            Addr::Inet(addr) => Some(*addr),
            _ => None,
        }
    }

    /// Whether it is a Unix path or an abstract name.
    pub fn is_unix(&self) -> bool {
        !matches!(self, Addr::Inet(_))
    }

    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Addr::Inet(SocketAddr::V4(_)) => AddressFamily::INET,
            Addr::Inet(SocketAddr::V6(_)) => AddressFamily::INET6,
            Addr::Unix(_) | Addr::Abstract { .. } => AddressFamily::UNIX,
        }
    }

    /// The form the kernel takes. Fails for a name that is too long or a path with a NUL.
    pub(crate) fn to_os(&self) -> io::Result<SocketAddrAny> {
        Ok(match self {
            Addr::Inet(addr) => (*addr).into(),
            Addr::Unix(path) => SocketAddrUnix::new(path.as_slice())?.into(),
            Addr::Abstract { name, padded } => {
                let mut full = name.clone();
                if *padded && full.len() < ABSTRACT_ROOM {
                    full.resize(ABSTRACT_ROOM, 0);
                }
                SocketAddrUnix::new_abstract_name(&full)?.into()
            }
        })
    }

    /// From the kernel's form. `None` for families that are not ours.
    pub(crate) fn from_os(any: &SocketAddrAny) -> Option<Addr> {
        if let Ok(inet) = SocketAddr::try_from(any.clone()) {
            return Some(Addr::Inet(inet));
        }
        let unix = SocketAddrUnix::try_from(any.clone()).ok()?;
        if let Some(name) = unix.abstract_name() {
            let padded = name.len() == ABSTRACT_ROOM;
            let end =
                if padded { name.iter().rposition(|&b| b != 0).map_or(0, |p| p + 1) } else { name.len() };
            return Some(Addr::Abstract { name: name[..end].to_vec(), padded });
        }
        Some(Addr::Unix(unix.path().map(|p| p.to_bytes().to_vec()).unwrap_or_default()))
    }
}

impl From<SocketAddr> for Addr {
    fn from(addr: SocketAddr) -> Addr {
        Addr::Inet(addr)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Addr::Inet(addr) => addr.fmt(f),
            Addr::Unix(path) => write!(f, "unix@{}", path.escape_ascii()),
            Addr::Abstract { name, padded: true } => write!(f, "abns@{}", name.escape_ascii()),
            Addr::Abstract { name, padded: false } => write!(f, "abnsz@{}", name.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_the_kernels_form() {
        let addrs = [
            Addr::Inet("127.0.0.1:80".parse().unwrap()),
            Addr::Inet("[::1]:443".parse().unwrap()),
            Addr::Unix(b"/run/x.sock".to_vec()),
            Addr::Abstract { name: b"name".to_vec(), padded: true },
            Addr::Abstract { name: b"name".to_vec(), padded: false },
        ];
        for addr in addrs {
            assert_eq!(Addr::from_os(&addr.to_os().unwrap()), Some(addr));
        }
        assert!(Addr::Unix(vec![b'x'; 200]).to_os().is_err());
    }
}
