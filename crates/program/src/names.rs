//! How names of hosts are kept fresh: `resolvers` sections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A `resolvers` section.
#[derive(Clone, Debug)]
pub struct Resolvers {
    /// Its name.
    pub name: Box<str>,
    /// Its name servers in order.
    pub servers: Vec<NameServer>,
    /// `accepted_payload_size`.
    pub payload: u16,
    /// `resolve_retries`: how often a name is asked for before it counts as failed.
    pub tries: u32,
    /// `timeout resolve`: the time between two resolutions of a name.
    pub resolve: Duration,
    /// `timeout retry`: the time until a question is asked again.
    pub retry: Duration,
    /// `hold`.
    pub hold: Hold,
}

impl Resolvers {
    /// Name servers that were there before go on counting.
    pub fn keep(&mut self, before: &[Resolvers]) {
        let Some(known) = before.iter().find(|section| section.name == self.name) else { return };
        for server in &mut self.servers {
            let is_it = |known: &&NameServer| known.name == server.name && known.addr == server.addr;
            if let Some(known) = known.servers.iter().find(is_it) {
                server.state = known.state.clone();
            }
        }
    }
}

/// A `nameserver`.
#[derive(Clone, Debug)]
pub struct NameServer {
    /// Its name.
    pub name: Box<str>,
    /// Where it is.
    pub addr: SocketAddr,
    /// It is spoken to over TCP.
    pub stream: bool,
    /// `maxconn`, for TCP; 0: no limit of its own.
    pub maxconn: u32,
    /// How connections to it are made, for TCP.
    pub way: Arc<Way>,
    /// What is counted of it.
    pub state: Arc<model::names::NameServer>,
}

/// How connections to a name server are made.
#[derive(Clone, Default)]
pub struct Way {
    /// TLS.
    pub tls: Option<crate::server::ServerTls>,
    /// What else its line says.
    pub plain: crate::server::Plain,
    /// `source`.
    pub source: Option<crate::address::Source>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way").field("tls", &self.tls.is_some()).field("source", &self.source).finish()
    }
}

/// How long what was known of a name holds while its servers say something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// `nx`.
    pub nx: Duration,
    /// `refused`.
    pub refused: Duration,
    /// `timeout`.
    pub timeout: Duration,
    /// `other`.
    pub other: Duration,
    /// `valid`: an answer that rules asked for.
    pub valid: Duration,
    /// `obsolete`: a record that answers leave out.
    pub obsolete: Duration,
}

impl Default for Hold {
    fn default() -> Hold {
        let long = Duration::from_secs(30);
        Hold {
            nx: long,
            refused: long,
            timeout: long,
            other: long,
            valid: Duration::from_secs(10),
            obsolete: Duration::ZERO,
        }
    }
}

/// Which addresses are asked for (`dns-accept-family`, `-4`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// IPv4, and IPv6 where it leads anywhere.
    #[default]
    Auto,
    /// Both.
    Both,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}
