//! What servers say of the names of their hosts.

use std::net::IpAddr;

/// What a server line says about the addresses of its name.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// `resolve-prefer ipv4`.
    pub prefer_v4: bool,
    /// `resolve-net`: networks whose addresses come first, with the length of their prefix.
    pub nets: Vec<(IpAddr, u8)>,
    /// `resolve-opts allow-dup-ip`.
    pub allow_dup_ip: bool,
    /// `resolve-opts ignore-weight`.
    pub ignore_weight: bool,
}
