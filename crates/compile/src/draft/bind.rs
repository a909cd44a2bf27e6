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
    pub settings: Bind,
    /// TLS on it.
    pub tls: TlsDraft,
    pub id: Option<u32>,
    pub name: Option<Box<str>>,
    pub guid_prefix: Option<Box<str>>,
    pub span: Span,
    /// `thread` as written is checked once the number of threads is known.
    pub threads: Vec<(u32, u32)>,
    /// The groups of threads that `thread` names.
    pub groups: Vec<u32>,
    /// `proto`, checked against the proxy's mode later.
    pub proto: Option<Mux>,
}

impl BindDraft {
    /// The unique name of its listener at this position.
    pub fn guid(&self, position: usize) -> Option<String> {
        self.guid_prefix.as_ref().map(|prefix| format!("{prefix}-{position}"))
    }
}
