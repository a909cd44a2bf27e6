//! `log-forward` sections: messages of syslog that come in and go on.

use std::sync::Arc;
use std::time::Duration;

use base::threads::ThreadSet;
use wire::syslog::Framing;

use crate::address::Listen;
use crate::listener::Bind;
use crate::log::Logging;

/// `option host`: which host a message names when it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostRule {
    /// `replace`: always the sender's address.
    Replace,
    /// `fill`: the sender's address where the message names none.
    #[default]
    Fill,
    /// `keep`: what the message names.
    Keep,
    /// `append`: what the message names, and the sender's address behind it.
    Append,
}

/// A section.
pub struct Forward {
    /// Name.
    pub name: Box<str>,
    /// What it does now: its limit and its connections.
    pub state: Arc<model::Proxy>,
    /// `bind`.
    pub binds: Vec<Bind>,
    /// `dgram-bind`.
    pub datagrams: Vec<Dgram>,
    /// `log`.
    pub log: Logging,
    /// `maxconn`.
    pub maxconn: u32,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `timeout client`.
    pub timeout: Option<Duration>,
    /// `option assume-rfc6587-ntf`.
    pub framing: Framing,
    /// `option dont-parse-log`.
    pub unread: bool,
    /// `option host`.
    pub host: HostRule,
}

impl Forward {
    /// How many connections may wait to be accepted from a line.
    pub fn backlog_of(&self, bind: &Bind) -> u32 {
        bind.backlog.or(self.backlog).unwrap_or(self.maxconn.clamp(128, 4096))
    }
}

/// A socket that datagrams come to.
pub struct Dgram {
    /// Where: an IP address, or a Unix socket.
    pub address: Listen,
    /// `interface`.
    pub interface: Option<Box<str>>,
    /// `namespace`.
    pub namespace: Option<base::netns::Namespace>,
    /// `transparent`.
    pub transparent: bool,
    /// `v4v6`, `v6only`.
    pub v6only: Option<bool>,
    /// Threads that read it.
    pub threads: ThreadSet,
    /// File and line.
    pub place: (Box<str>, u32),
}
