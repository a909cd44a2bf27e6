//! What only the system knows at start: addresses of host names, numbers of users and groups.

use std::net::{IpAddr, ToSocketAddrs};

/// The address of a host name by the system's resolver; IPv4 before IPv6.
pub(crate) fn host(name: &str) -> Option<IpAddr> {
    let found: Vec<IpAddr> = (name, 0).to_socket_addrs().ok()?.map(|a| a.ip()).collect();
    found.iter().find(|ip| ip.is_ipv4()).or(found.first()).copied()
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
    let text = std::fs::read(file).ok()?;
    String::from_utf8_lossy(&text).lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}
