//! Resource limits.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Open descriptors.
    Descriptors,
    /// The size of a core dump, in bytes.
    Core,
    /// Address space, in bytes.
    Memory,
    /// The data segment, in bytes.
    Data,
}

impl Limit {
    fn resource(self) -> Resource {
        match self {
            Limit::Descriptors => Resource::Nofile,
            Limit::Core => Resource::Core,
            Limit::Memory => Resource::As,
            Limit::Data => Resource::Data,
        }
    }

    /// The present limit and the highest that may be set without privilege; `None` is unlimited.
    pub fn get(self) -> (Option<u64>, Option<u64>) {
        let limit = getrlimit(self.resource());
        (limit.current, limit.maximum)
    }

    /// Sets the present limit, and raises the highest one if need be.
    ///
    /// # Errors
    /// EPERM if that takes a privilege.
    pub fn set(self, value: Option<u64>) -> io::Result<()> {
        let maximum = getrlimit(self.resource()).maximum;
        let maximum = match (value, maximum) {
            (Some(value), Some(maximum)) => Some(value.max(maximum)),
            _ => None,
        };
        Ok(setrlimit(self.resource(), Rlimit { current: value, maximum })?)
    }
}

/// Whether an address belongs to this machine: whether a socket can be bound to it.
pub fn is_local(ip: std::net::IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}
