//! What only the system knows at start: addresses of host names, numbers of users and groups.

use base::outside;
use std::net::IpAddr;

use model::server::{Target, UnixKind};
use syntax::addr::{Address, Family, Host, Ports, Transport};

/// The address of a host, looked up if it is a name; nothing for what is no Internet host.
pub(crate) fn ip(address: &Host) -> Option<IpAddr> {
    match address {
        Host::Ip(ip) => Some(*ip),
        Host::Name(name, Family::Any) => host(name),
        Host::Name(name, Family::V4) => all(name).into_iter().find(IpAddr::is_ipv4),
        Host::Name(name, Family::V6) => all(name).into_iter().find(IpAddr::is_ipv6),
        _ => None,
    }
}

/// The address of a host name by the system's resolver; IPv4 before IPv6.
pub(crate) fn host(name: &str) -> Option<IpAddr> {
    let found = all(name);
    found.iter().find(|ip| ip.is_ipv4()).or(found.first()).copied()
}

fn all(name: &str) -> Vec<IpAddr> {
    // A fuzzer's made-up names stay within its process.
    if cfg!(fuzzing) {
        return Vec::new();
    }
    outside::addresses(name)
}

/// The number of a user, from the system's table.
pub(crate) fn user(name: &str) -> Option<u32> {
    entry("/etc/passwd", name)
}

/// The number of a group, from the system's table.
pub(crate) fn group(name: &str) -> Option<u32> {
    entry("/etc/group", name)
}

/// Both tables have the name first and the number third.
fn entry(file: &str, name: &str) -> Option<u32> {
    let text = outside::read(file).ok()?;
    String::from_utf8_lossy(&text).lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// Where a stream server is, if its address is known now.
pub(crate) fn stream_target(address: &Address) -> Option<Target> {
    if address.transport != Transport::Stream {
        return None;
    }
    let unix =
        |path: &String, kind| Some(Target::Unix { path: path.clone().into_bytes().into_boxed_slice(), kind });
    match &address.host {
        Host::Unix(path) => unix(path, UnixKind::Path),
        Host::Abstract(name) => unix(name, UnixKind::Abns),
        Host::AbstractZero(name) => unix(name, UnixKind::Abnsz),
        host => {
            let port = match address.ports {
                Ports::One(port) if port > 0 => port,
                _ => 514,
            };
            ip(host).map(|ip| Target::Inet((ip, port).into()))
        }
    }
}
