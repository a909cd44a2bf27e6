//! Host names, resolved by the system (blocking: for start-up only).

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

/// The addresses of a host, in the system's order of preference, each once.
///
/// # Errors
/// If the name is unknown or the resolver can't be reached.
pub fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    for address in (host, 0).to_socket_addrs()? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}
