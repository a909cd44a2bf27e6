//! TLS of a `bind` or `server` line while it is read.

use syntax::Span;
use tls::words::Words;

use super::place::Deferred;

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

/// TLS on a `server` line.
#[derive(Clone, Debug)]
pub(crate) struct ServerTlsDraft {
    /// `ssl`.
    pub on: bool,
    /// `no-ssl` was said last.
    pub refused: bool,
    /// `ssl` was said, even if `no-ssl` followed: it may be switched on later.
    pub able: bool,
    pub words: Words,
    pub crt: Option<Box<str>>,
    pub host: Option<Box<str>>,
    pub sni: Option<Deferred>,
    pub auto: bool,
    pub no_reuse: bool,
    /// `npn`.
    pub npn: bool,
    /// `check-ssl` or `no-check-ssl`, if one of them was said.
    pub check: Option<bool>,
    pub check_sni: Option<Box<str>>,
    /// `check-sni-auto`.
    pub check_auto: bool,
    pub check_alpn: Option<Vec<Vec<u8>>>,
}

impl Default for ServerTlsDraft {
    fn default() -> ServerTlsDraft {
        ServerTlsDraft {
            on: false,
            refused: false,
            able: false,
            words: Words::default(),
            crt: None,
            host: None,
            sni: None,
            auto: true,
            no_reuse: false,
            npn: false,
            check: None,
            check_sni: None,
            check_auto: true,
            check_alpn: None,
        }
    }
}
