//! What a configuration says of a server that may change while the process runs.

use crate::peer::Peer;

/// Where a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Target {
    /// No address is known (unresolved name).
    #[default]
    None,
    /// IP and port.
    Inet(std::net::SocketAddr),
    /// Path of a Unix socket, or an abstract name without its leading NUL byte.
    Unix {
        /// Path or name.
        path: Box<[u8]>,
        /// How the name is passed to the kernel.
        kind: UnixKind,
    },
}

/// Name spaces of Unix sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnixKind {
    /// In the file system.
    Path,
    /// `abns@`: abstract, padded with NUL bytes.
    Abns,
    /// `abnsz@`: abstract, exact length.
    Abnsz,
}

impl Target {
    /// The address as logs and rules show it.
    pub fn peer(&self) -> Peer {
        match self {
            Target::None => Peer::Unknown,
            Target::Inet(a) => Peer::Inet(*a),
            Target::Unix { .. } => Peer::Unix,
        }
    }
}

/// What the configuration says of what may change while the process runs. One that is adopted in place
/// changes only what it says otherwise than the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// Where the server is; `None` where resolvers tell.
    pub target: Target,
    /// The name of its host.
    pub fqdn: Option<Box<str>>,
    /// Its port.
    pub port: u32,
    /// The name leads nowhere.
    pub unresolved: bool,
    /// Its port is to be added to that which the client connected to.
    pub mapped: bool,
    /// `weight`.
    pub weight: u32,
    /// `maxconn`.
    pub maxconn: u32,
    /// `disabled`.
    pub disabled: bool,
    /// `check`.
    pub checked: bool,
    /// `agent-check`.
    pub agent: bool,
    /// `rise`.
    pub rise: i64,
    /// `fall`.
    pub fall: i64,
    /// Health at the start.
    pub initial_health: i64,
    /// Down at the start.
    pub initially_down: bool,
    /// `init-state up` and `fully-up`.
    pub initially_up: bool,
    /// It is not spoken to by TLS.
    pub plain: bool,
    /// TLS was refused (`no-ssl`).
    pub refuses_tls: bool,
}
