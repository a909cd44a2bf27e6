//! A `bind` line while it is read.

use program::address::Listen;
use program::listener::Bind;
use syntax::Span;

use super::tls::TlsDraft;
use crate::mux::Mux;

/// A `bind` line: its settings and all addresses it names.
#[derive(Clone)]
pub(crate) struct BindDraft {
    /// As written, for messages.
    pub text: Box<str>,
    pub addresses: Vec<Listen>,
    /// Those of them that ask for MPTCP.
    pub mptcp: Vec<Listen>,
    pub settings: Bind,
    /// TLS on it.
    pub tls: TlsDraft,
    pub id: Option<u32>,
    pub name: Option<Box<str>>,
    pub guid_prefix: Option<Box<str>>,
    pub span: Span,
    /// `thread` as written is checked once the number of threads is known.
    pub threads: Vec<ThreadRange>,
    /// The groups of threads that `thread` names.
    pub groups: Vec<u32>,
    /// `shards`.
    pub shards: Option<Shards>,
    /// The threads of each address, where the line is spread over shards.
    pub shares: Vec<base::threads::ThreadSet>,
    /// `proto`, checked against the proxy's mode later.
    pub proto: Option<Mux>,
}

/// How many sockets an address has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shards {
    /// So many, at most one for each thread.
    Count(u32),
    /// One for each group that has threads of the line.
    #[default]
    ByGroup,
    /// One for each thread.
    ByThread,
}

impl BindDraft {
    /// The unique name of its listener at this position.
    pub fn guid(&self, position: usize) -> Option<String> {
        self.guid_prefix.as_ref().map(|prefix| format!("{prefix}-{position}"))
    }
}

/// A part of `thread`: numbers from 1, of a group or of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadRange {
    pub group: Option<u32>,
    pub from: u32,
    pub to: u32,
}
