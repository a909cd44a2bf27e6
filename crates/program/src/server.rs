//! `server` lines.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use balance::HashKey;
use base::netns::Namespace;

use crate::address::Source;
use crate::check::{Agent, Check};
use crate::proto::Proto;

/// What `send-proxy` and its variants send.
#[derive(Clone, Default)]
pub struct SendProxy {
    /// Version 1 or 2.
    pub version: u8,
    /// `proxy-v2-options`.
    pub options: ProxyV2Options,
    /// `set-proxy-v2-tlv-fmt`: type and value.
    pub tlvs: Vec<(u8, Arc<lang::LogFormat>)>,
}

/// `proxy-v2-options`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyV2Options {
    /// `crc32c`.
    pub crc32c: bool,
    /// `unique-id`.
    pub unique_id: bool,
    /// `authority`.
    pub authority: bool,
    /// `ssl`: facts of the client's TLS.
    pub ssl: bool,
    /// `cert-cn`: among them the common name of its certificate.
    pub cert_cn: bool,
    /// `cert-key`: and kind and size of the key of our certificate.
    pub cert_key: bool,
    /// `cert-sig`: and how that is signed.
    pub cert_sig: bool,
    /// `ssl-cipher`: and the cipher suite.
    pub cipher: bool,
}

/// `on-error`: what `observe` does when the error limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// `fastinter`.
    FastInter,
    /// `fail-check` (the default).
    #[default]
    FailCheck,
    /// `sudden-death`.
    SuddenDeath,
    /// `mark-down`.
    MarkDown,
}

/// Addresses and ports of checks as a server line gives them, for `show servers state`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probed {
    /// `addr`.
    pub check_addr: Option<std::net::IpAddr>,
    /// `port`.
    pub check_port: Option<u16>,
    /// `agent-addr`, or `addr`.
    pub agent_addr: Option<std::net::IpAddr>,
    /// `agent-port`, or `port`.
    pub agent_port: Option<u16>,
}

/// `observe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// `layer4`.
    Layer4,
    /// `layer7`.
    Layer7,
}

/// `ws`: how WebSockets reach a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ws {
    /// As everything else, but by HTTP/1.1 where ALPN could agree on that.
    #[default]
    Auto,
    /// HTTP/1.1.
    H1,
    /// HTTP/2 (RFC 8441).
    H2,
}

/// Words of server lines, for servers that are made like it at run time. Servers with the same ones share
/// them.
pub type Settings = Arc<[Box<str>]>;

/// Settings of a `server` line that reach the engine as they are read. A keyword sets a field here (the table
/// of `compile`), whoever needs it reads the field of [`Server`]: there is no third place.
#[derive(Clone, Debug)]
pub struct Plain {
    /// `maxqueue`, 0: no limit.
    pub maxqueue: u32,
    /// `slowstart`.
    pub slowstart: Option<Duration>,
    /// `error-limit`.
    pub error_limit: u32,
    /// `on-error`.
    pub on_error: OnError,
    /// `on-marked-down shutdown-sessions`.
    pub down_kills: bool,
    /// `on-marked-up shutdown-backup-sessions`.
    pub up_kills_backups: bool,
    /// `redir`: prefix of a 302 answer instead of a connection.
    pub redir: Option<Box<[u8]>>,
    /// `non-stick`.
    pub non_stick: bool,
    /// `tcp-ut`.
    pub tcp_ut: Option<Duration>,
    /// `socks4`: the proxy that connections go through.
    pub socks4: Option<std::net::SocketAddr>,
    /// `namespace`.
    pub namespace: ServerNamespace,
    /// Connections speak MPTCP, as the address asks.
    pub mptcp: bool,
    /// Whether those of checks do; `None`: as the server's, unless they have a port of their own.
    pub check_mptcp: Option<bool>,
    /// `tcp-md5sig`.
    pub md5sig: Option<Box<str>>,
    /// `tfo`.
    pub tfo: bool,
    /// `cc`.
    pub congestion: Option<Box<str>>,
    /// `pool-max-conn`: -1 no limit.
    pub pool_max_conn: i32,
    /// `pool-low-conn`.
    pub pool_low_conn: u32,
    /// `pool-purge-delay`.
    pub pool_purge_delay: Duration,
    /// `max-reuse`: -1 no limit.
    pub max_reuse: i32,
    /// The group of keys that a peer is told of (`shard`); 0: all.
    pub shard: u32,
    /// `strict-maxconn`.
    pub strict_maxconn: bool,
    /// `idle-ping`.
    pub idle_ping: Option<Duration>,
    /// `hash-key`.
    pub hash_key: HashKey,
    /// `ws`.
    pub ws: Ws,
    /// `resolve-prefer`, `resolve-net`, `resolve-opts`.
    pub naming: crate::naming::Naming,
}

/// The network namespace of connections to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerNamespace {
    /// That of the process.
    #[default]
    Default,
    /// This one.
    Named(Namespace),
    /// That of the client (`namespace *`).
    Client,
}

impl ServerNamespace {
    /// The one of connections that are made for no client.
    pub fn without_client(self) -> Option<Namespace> {
        match self {
            ServerNamespace::Named(namespace) => Some(namespace),
            ServerNamespace::Default | ServerNamespace::Client => None,
        }
    }
}

impl Default for Plain {
    fn default() -> Plain {
        Plain {
            maxqueue: 0,
            slowstart: None,
            error_limit: 10,
            on_error: OnError::FailCheck,
            down_kills: false,
            up_kills_backups: false,
            redir: None,
            non_stick: false,
            tcp_ut: None,
            socks4: None,
            mptcp: false,
            check_mptcp: None,
            md5sig: None,
            tfo: false,
            congestion: None,
            pool_max_conn: -1,
            pool_low_conn: 0,
            pool_purge_delay: Duration::from_secs(5),
            max_reuse: -1,
            strict_maxconn: false,
            namespace: ServerNamespace::Default,
            shard: 0,
            idle_ping: None,
            hash_key: HashKey::Id,
            ws: Ws::Auto,
            naming: Default::default(),
        }
    }
}

/// One server.
#[derive(Clone)]
pub struct Server {
    /// What its line says and nothing changes on the way; the server gives it as its own.
    pub plain: Plain,
    /// Name, that of its live state.
    pub name: base::name::Name,
    /// Live state: id, address, weight, health, counters.
    pub state: Arc<model::Server>,
    /// The address part is `0.0.0.0`, `::` or `*`: the client's destination address is used.
    pub transparent: bool,
    /// `backup`.
    pub backup: bool,
    /// `cookie`.
    pub cookie: Option<Box<[u8]>>,
    /// `maxconn`, 0: none.
    pub maxconn: u32,
    /// `minconn`, 0: none.
    pub minconn: u32,
    /// `check`.
    pub check: Option<Check>,
    /// `agent-check`.
    pub agent: Option<Agent>,
    /// Where checks would go, with or without any.
    pub probed: Probed,
    /// `track`: proxy and server, as indices of the program.
    pub track: Option<(u32, u32)>,
    /// `observe`.
    pub observe: Option<Observe>,
    /// `source`.
    pub source: Option<Source>,
    /// `send-proxy`.
    pub send_proxy: Option<SendProxy>,
    /// `pool-conn-name`: part of an idle connection's identity.
    pub pool_conn_name: Option<Arc<lang::Expr>>,
    /// `init-addr` decided; the host name behind it, if any.
    pub fqdn: Option<Box<str>>,
    /// `resolvers`: the section that keeps its name fresh, by index.
    pub resolvers: Option<u32>,
    /// The name of the SRV records that it is one of.
    pub service: Option<Box<str>>,
    /// `id` was given in the configuration.
    pub forced_id: bool,
    /// The words of its line, and of what that took from, but for those that make it this one and no other.
    pub settings: Settings,
    /// The words with which it was added at run time, its address first; `None`: it stands in the
    /// configuration.
    pub added: Option<Arc<[String]>>,
    /// `ssl`, be it switched off now: see [`Server::tls`].
    pub tls: Option<ServerTls>,
    /// `proto`: what is spoken without negotiation.
    pub proto: Proto,
    /// In a backend of logs the sink that takes its lines, by index of the program.
    pub log_sink: Option<usize>,
}

impl Deref for Server {
    type Target = Plain;

    #[inline]
    fn deref(&self) -> &Plain {
        &self.plain
    }
}

impl Server {
    /// Whether an agent is asked now: the line names one, and nobody has disabled it.
    pub fn asks_agent(&self) -> bool {
        self.agent.is_some() && self.state.agent_enabled.load(Relaxed)
    }

    /// TLS towards it, unless it is switched off.
    pub fn tls(&self) -> Option<&ServerTls> {
        self.tls.as_ref().filter(|_| !self.state.plain.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// TLS towards a server.
#[derive(Clone)]
pub struct ServerTls {
    /// Rules of the handshake.
    pub connector: Arc<tls::Connector>,
    /// `alpn`: what is offered.
    pub alpn: Arc<[Vec<u8>]>,
    /// `npn`: the protocol is known with the handshake only, though nothing is offered.
    pub npn: bool,
    /// `sni`.
    pub sni: Option<Arc<lang::Expr>>,
    /// `allow-0rtt`.
    pub early: bool,
    /// `sni-auto`: without `sni`, the host of the request.
    pub auto: bool,
}
