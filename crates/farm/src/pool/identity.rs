//! What makes connections to one server differ, and which requests one may serve.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use rt::Addr;

use super::Identity;

/// Which requests a connection may serve.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// What other connections it may stand in for.
    pub identity: Identity,
    /// Other clients may use it.
    pub shareable: bool,
    /// How often its server had been moved when it was sought: see [`model::Server::moves`].
    pub moves: u64,
}

/// What tells connections to one server apart.
#[derive(Hash)]
pub struct Traits<'a> {
    pub addr: &'a Addr,
    /// How often its server had been moved before.
    pub moves: u64,
    /// Where it comes from, and whether that is a foreign address; `None` if nothing says so.
    pub source: Option<(Option<SocketAddr>, bool)>,
    pub mark: Option<u32>,
    pub tos: Option<u8>,
    /// What `pool-conn-name` says, else the name that was sent to the server.
    pub name: Option<&'a [u8]>,
    /// The PROXY header that it began with.
    pub header: Option<&'a [u8]>,
    /// The network namespace, where clients choose it.
    pub namespace: Option<base::netns::Namespace>,
}

impl Traits<'_> {
    /// Never 0, which stands for a connection without traits.
    pub fn identity(&self) -> Identity {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish().max(1)
    }
}
