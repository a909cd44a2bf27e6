//! A server while its words are read.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use program::address::Source;
use program::server::{Observe, Plain, ProxyV2Options};
use syntax::Span;
use syntax::addr::{Host, Ports};

use super::Draft;
use super::place::{Deferred, Named};
use super::tls::ServerTlsDraft;
use crate::mux::Mux;

/// How `init-addr` finds an address, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InitAddr {
    Last,
    Libc,
    None,
    Ip(std::net::IpAddr),
}

/// Where a server is.
#[derive(Clone, Debug, Default)]
pub(crate) enum Where {
    #[default]
    Nowhere,
    Inet {
        host: Host,
        ports: Ports,
    },
    Unix(model::server::Target),
}

impl Where {
    /// Whether a port stands there.
    pub(crate) fn has_port(&self) -> bool {
        matches!(self, Where::Inet { ports, .. } if !matches!(ports, Ports::Missing | Ports::Offset(_)))
    }
}

/// `send-proxy` and its variants. Each word has a switch of its own, whatever their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProxyDraft {
    /// `send-proxy`
    pub v1: bool,
    /// `send-proxy-v2` and what is more of it.
    pub v2: bool,
    pub options: ProxyV2Options,
    pub tlvs: Vec<(u8, Deferred)>,
}

impl ProxyDraft {
    /// The version that is sent: 2 wherever it is asked for.
    pub(crate) fn version(&self) -> Option<u8> {
        if self.v2 { Some(2) } else { self.v1.then_some(1) }
    }
}

/// Nothing of it needs other sections, so the draft is the thing itself.
pub(crate) type SourceDraft = Source;

/// Settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerDraft {
    /// What goes to the program as it is; setters name its fields as the draft's.
    pub plain: Plain,
    pub name: Box<str>,
    /// Lines of logs go to it by datagrams.
    pub datagrams: bool,
    /// `log-proto octet-count`: the length stands before each line; otherwise a line feed behind it.
    pub octet_count: bool,
    /// `log-bufsize`: the ring of lines that wait for this server; `None`: as large as a buffer.
    pub log_bufsize: Option<usize>,
    /// A `default-server` line stood before it.
    pub defaulted: bool,
    pub span: Span,
    /// Position of its line.
    pub place: Where,
    pub id: Option<u32>,
    /// `id` stands on the line.
    pub forced_id: bool,
    pub guid: Option<Box<str>>,
    pub backup: bool,
    pub disabled: bool,
    pub cookie: Option<Box<[u8]>>,
    pub weight: u32,
    pub maxconn: u32,
    pub minconn: u32,
    pub check: bool,
    /// `healthcheck`: a section's check instead of the backend's.
    pub healthcheck: Option<Box<str>>,
    pub inter: Duration,
    pub fastinter: Option<Duration>,
    pub downinter: Option<Duration>,
    pub rise: u32,
    pub fall: u32,
    pub check_addr: Option<std::net::SocketAddr>,
    pub check_port: Option<u16>,
    pub check_send_proxy: bool,
    pub check_via_socks4: bool,
    pub check_reuse_pool: bool,
    pub check_pool_conn_name: Option<Box<str>>,
    pub agent: bool,
    pub agent_inter: Option<Duration>,
    pub agent_addr: Option<std::net::IpAddr>,
    pub agent_port: Option<u16>,
    pub agent_send: Box<[u8]>,
    pub track: Option<Named>,
    pub observe: Option<Observe>,
    pub source: Option<SourceDraft>,
    pub send_proxy: ProxyDraft,
    pub pool_conn_name: Option<Deferred>,
    /// `proto`, checked against the proxy's mode later.
    pub proto: Option<Mux>,
    /// `check-proto`, checked against the kind of check later.
    pub check_proto: Option<Mux>,
    pub init_addr: Vec<InitAddr>,
    /// `resolvers`.
    pub resolvers: Option<Named>,
    pub init_state: InitState,
    pub tls: ServerTlsDraft,
    /// The first of a template, whose prefix names it in messages.
    pub template: Option<Box<str>>,
    /// One of a template, but not the first: what is wrong with its words was said.
    pub is_copy: bool,
    /// The words that made it what it is, but for its very own.
    pub words: Vec<Box<str>>,
}

/// `init-state`: the state before the first check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InitState {
    FullyUp,
    #[default]
    Unsaid,
    Up,
    Down,
    FullyDown,
}

impl Deref for ServerDraft {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        &self.plain
    }
}

impl DerefMut for ServerDraft {
    fn deref_mut(&mut self) -> &mut Plain {
        &mut self.plain
    }
}

impl Default for ServerDraft {
    fn default() -> ServerDraft {
        ServerDraft {
            plain: Plain::default(),
            name: "".into(),
            datagrams: false,
            octet_count: false,
            log_bufsize: None,
            defaulted: false,
            span: Span::default(),
            place: Where::Nowhere,
            id: None,
            forced_id: false,
            guid: None,
            backup: false,
            disabled: false,
            cookie: None,
            weight: 1,
            maxconn: 0,
            minconn: 0,
            check: false,
            healthcheck: None,
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            rise: 2,
            fall: 3,
            check_addr: None,
            check_port: None,
            check_send_proxy: false,
            check_via_socks4: false,
            check_reuse_pool: false,
            check_pool_conn_name: None,
            agent: false,
            agent_inter: None,
            agent_addr: None,
            agent_port: None,
            agent_send: Box::default(),
            track: None,
            observe: None,
            source: None,
            send_proxy: ProxyDraft::default(),
            pool_conn_name: None,
            proto: None,
            check_proto: None,
            init_addr: Vec::new(),
            resolvers: None,
            init_state: InitState::Unsaid,
            tls: ServerTlsDraft::default(),
            template: None,
            is_copy: false,
            words: Vec::new(),
        }
    }
}

impl ServerDraft {
    /// The name of the SRV records that it is one of: what begins like one is one where resolvers look it up.
    pub(crate) fn service(&self) -> Option<&str> {
        match &self.place {
            Where::Inet { host: Host::Name(name, _), .. } if self.resolvers.is_some() => {
                Some(name.as_str()).filter(|name| name.starts_with('_'))
            }
            _ => None,
        }
    }

    /// How messages name a server of a backend: the first of a template stands for its line.
    pub(crate) fn label(&self, p: &Draft) -> String {
        match &self.template {
            Some(prefix) => format!("'server-template {}/{prefix}'", p.name),
            None => format!("'server {}/{}'", p.name, self.name),
        }
    }
}
