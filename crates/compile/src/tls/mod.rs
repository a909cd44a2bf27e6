//! TLS words of `bind` and `server` lines and of certificate lists, and what becomes of them.
//!
//! [`words`] understands single settings, the same for all places; [`stores`] and [`list`] fill the store of the `tls` crate,
//! [`load`] and [`server`] have it build what handshakes run. Messages are HAProxy's.

pub(crate) mod global;
pub(crate) mod http_client;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod ocsp;
pub(crate) mod server;
pub(crate) mod stores;
pub(crate) mod words;

pub(crate) use global::TlsGlobal;
pub(crate) use server::ServerTlsDraft;
pub(crate) use words::{Verify, Words};

use syntax::Span;

/// How a `bind` line names certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `crt`: a file or a folder.
    File,
    /// `default-crt`.
    Default,
    /// `crt-list`.
    List,
}

/// One certificate word of a `bind` line.
#[derive(Clone, Debug)]
pub(crate) struct CertDraft {
    pub source: Source,
    pub path: Box<str>,
    pub span: Span,
}

/// TLS on a `bind` line.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsDraft {
    /// `ssl`.
    pub on: bool,
    pub words: Words,
    pub certs: Vec<CertDraft>,
    /// `generate-certificates`.
    pub generate: bool,
    /// `ca-sign-file`.
    pub sign: Option<Box<str>>,
    /// `ca-sign-pass`.
    pub sign_pass: Option<Box<str>>,
    /// `tls-ticket-keys`.
    pub ticket_keys: Option<Box<str>>,
}
