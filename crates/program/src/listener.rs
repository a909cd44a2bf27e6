//! `bind` lines.

use base::threads::ThreadSet;
use std::sync::Arc;
use std::time::Duration;

use base::netns::Namespace;

use crate::address::Listen;

/// Level of a runtime API connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Read-only, without anything sensitive.
    User,
    /// Read-only and harmless changes (the default).
    #[default]
    Operator,
    /// Everything.
    Admin,
}

/// One listening address of a `bind` line (a line with a range or several addresses gives several).
#[derive(Clone, Debug)]
pub struct Bind {
    /// Where.
    pub address: Listen,
    /// Live state: name, id, counters.
    pub state: Arc<model::proxy::Listener>,
    /// File and line, for messages.
    pub place: (Box<str>, u32),
    /// `accept-proxy`.
    pub accept_proxy: bool,
    /// `accept-netscaler-cip`: the magic number.
    pub accept_cip: Option<u32>,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `maxconn`, 0: none.
    pub maxconn: u32,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// `interface`.
    pub interface: Option<Box<str>>,
    /// `namespace`.
    pub namespace: Option<Namespace>,
    /// `transparent`.
    pub transparent: bool,
    /// `v6only`, `v4v6`: `Some(true)`, `Some(false)`.
    pub v6only: Option<bool>,
    /// `mss`: negative ones are relative to the advertised one.
    pub mss: Option<i32>,
    /// `tcp-ut`.
    pub tcp_ut: Option<Duration>,
    /// `tfo`.
    pub tfo: bool,
    /// The address asks for MPTCP.
    pub mptcp: bool,
    /// `tcp-md5sig`.
    pub md5sig: Option<Box<str>>,
    /// `tcp-ss`: 0 keeps no SYN, 1 from the IP header on, 2 with the link's.
    pub save_syn: u8,
    /// `cc`: congestion control.
    pub congestion: Option<Box<str>>,
    /// `mode`, `uid`/`user`, `gid`/`group` of a Unix socket.
    pub unix: UnixRights,
    /// `level` of a runtime API socket.
    pub level: Level,
    /// `expose-fd listeners` of a runtime API socket.
    pub expose_sockets: bool,
    /// `proto h2`: HTTP/2 from the first byte.
    pub h2: bool,
    /// `proto h1`: never HTTP/2.
    pub h1: bool,
    /// `proto none`: what comes here stays TCP.
    pub raw: bool,
    /// `severity-output`: `none`, `number`, `string`.
    pub severity: Severity,
    /// `thread`: the workers that accept here.
    pub threads: ThreadSet,
    /// `nice`.
    pub nice: i16,
    /// `idle-ping`.
    pub idle_ping: Option<Duration>,
    /// `ssl`: certificates and rules of the handshake.
    pub tls: Option<Arc<tls::Acceptor>>,
}

/// Rights of a Unix socket's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnixRights {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
}

/// How the runtime API marks the severity of its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// Not at all.
    #[default]
    None,
    /// `[3]:`.
    Number,
    /// `[err]:`.
    String,
}

impl Bind {
    /// A plain listener on an address.
    pub fn new(address: Listen, state: Arc<model::proxy::Listener>) -> Bind {
        Bind {
            address,
            state,
            place: ("".into(), 0),
            accept_proxy: false,
            accept_cip: None,
            backlog: None,
            maxconn: 0,
            defer_accept: false,
            interface: None,
            namespace: None,
            transparent: false,
            v6only: None,
            mss: None,
            tcp_ut: None,
            tfo: false,
            mptcp: false,
            md5sig: None,
            save_syn: 0,
            congestion: None,
            unix: UnixRights::default(),
            level: Level::default(),
            expose_sockets: false,
            h2: false,
            h1: false,
            raw: false,
            severity: Severity::default(),
            threads: ThreadSet::ALL,
            nice: 0,
            idle_ping: None,
            tls: None,
        }
    }
}
