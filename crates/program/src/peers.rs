//! `peers` sections: with whom entries of stick tables are exchanged.

use std::sync::Arc;

use model::server::Target;
use stick::Table;

use crate::address::Source;
use crate::listener::Bind;

/// A section.
pub struct Section {
    /// Its name.
    pub name: Box<str>,
    /// The name of this process among the peers.
    pub local: Box<str>,
    /// Where other peers connect to.
    pub bind: Bind,
    /// Where this process listens, for the one that it was before a reload; `None`: nobody can connect there.
    pub address: Target,
    /// The others.
    pub others: Vec<Other>,
    /// How a process that takes this one's place is spoken to.
    pub own_way: Way,
    /// Among how many groups of peers keys are divided (`shards`); 0: they are not.
    pub groups: u32,
    /// What is exchanged.
    pub tables: Vec<Shared>,
    /// What it does now.
    pub state: Arc<model::peers::Section>,
}

/// Another peer.
pub struct Other {
    /// Its name.
    pub name: Box<str>,
    /// Where it is.
    pub target: Target,
    /// How it is spoken to.
    pub way: Way,
    /// The group of keys that it is told of (`shard`); 0: all.
    pub group: u32,
    /// Where connections to it come from (`source`).
    pub source: Option<Source>,
    /// It is reached by MPTCP.
    pub mptcp: bool,
    /// `tcp-md5sig`.
    pub md5sig: Option<Box<str>>,
    /// `namespace`.
    pub namespace: Option<base::netns::Namespace>,
}

/// How a peer is spoken to.
#[derive(Clone, Default)]
pub struct Way {
    /// With TLS.
    pub tls: Option<Tls>,
    /// `socks4`: through a proxy there.
    pub socks4: Option<std::net::SocketAddr>,
}

/// TLS towards a peer.
#[derive(Clone)]
pub struct Tls {
    /// The rules of the handshake.
    pub connector: Arc<tls::Connector>,
    /// `sni`: the name to send and to check. What needs a connection of a client makes none.
    pub sni: Option<Arc<lang::Expr>>,
}

/// A table and the name that it has between peers.
pub struct Shared {
    /// The table.
    pub table: Arc<Table>,
    /// Its name there: those of the section itself begin with a slash.
    pub name: Box<str>,
    /// The table that what peers tell is written to, too (`write-to`).
    pub write_to: Option<Arc<Table>>,
}
