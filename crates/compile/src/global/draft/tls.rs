//! What `global` says of TLS.

use std::time::Duration;

use syntax::Span;
use tls::files::Extra;
use tls::sessions::Limits;
use tls::store::{Issuers, ServerSpec};
use tls::words::{Verify, Words};

/// What `global` says of TLS.
#[derive(Clone, Debug)]
pub(crate) struct TlsGlobal {
    pub ca_base: Option<Box<str>>,
    pub crt_base: Option<Box<str>>,
    pub key_base: Option<Box<str>>,
    /// `issuers-chain-path`: chains by file.
    pub issuers: Issuers,
    /// `ssl-load-extra-files`, `ssl-load-extra-del-ext`.
    pub extra: Extra,
    /// `ocsp-update.mode on`.
    pub ocsp_update: bool,
    pub bind: Words,
    pub server: Words,
    /// `ssl-server-verify`.
    pub server_verify: Verify,
    /// `tune.ssl.cachesize`.
    pub cache: usize,
    /// `tune.ssl.ssl-ctx-cache-size`.
    pub forged: usize,
    /// `httpclient.ssl.ca-file`.
    pub client_authorities: Option<Box<str>>,
    /// `httpclient.resolvers.id`.
    pub client_resolvers: Option<Box<str>>,
    /// `httpclient.resolvers.disabled`.
    pub client_unresolved: bool,
    /// `ssl-propquery`.
    pub property_query: Option<Box<str>>,
    /// `httpclient.ssl.verify`.
    pub client_verify: Verify,
    /// `ssl-passphrase-cmd`.
    pub phrase_command: Vec<Box<str>>,
    /// `ocsp-update.*`.
    pub ocsp: program::global::Ocsp,
    /// `tune.ssl.lifetime`.
    pub lifetime: Duration,
    /// `tune.ssl.capture-buffer-size`.
    pub captures: Option<usize>,
    /// `tune.ssl.keylog`.
    pub keylog: bool,
    /// `ssl-skip-self-issued-ca`.
    pub skip_root: bool,
    /// What `ssl-default-*` lines said up to each of them: a line below follows those above it.
    pub history: Vec<(Span, Words, Words)>,
    /// `maxsslconn`, 0: none.
    pub most: u32,
    /// `maxsslrate`, 0: none.
    pub most_rate: u32,
}

impl Default for TlsGlobal {
    fn default() -> TlsGlobal {
        TlsGlobal {
            ca_base: None,
            crt_base: None,
            key_base: None,
            issuers: Vec::new(),
            extra: Extra::default(),
            ocsp_update: false,
            bind: Words::default(),
            server: Words::default(),
            server_verify: Verify::Required,
            cache: 20_000,
            forged: 1000,
            client_authorities: None,
            client_resolvers: None,
            client_unresolved: false,
            property_query: None,
            client_verify: Verify::Required,
            phrase_command: Vec::new(),
            ocsp: Default::default(),
            lifetime: Duration::from_secs(300),
            captures: None,
            keylog: false,
            skip_root: false,
            history: Vec::new(),
            most: 0,
            most_rate: 0,
        }
    }
}

impl TlsGlobal {
    /// Remembers the defaults as they stand at this line.
    pub fn note(&mut self, at: Span) {
        self.history.push((at, self.bind.clone(), self.server.clone()));
    }

    /// What becomes of sessions that may be resumed.
    pub fn sessions(&self) -> Limits {
        Limits { cache: self.cache, lifetime: self.lifetime }
    }

    /// The file with the authorities that calls of the process's own believe, if they look: that of the
    /// system unless it is named. `ca-base` does not hold for it.
    pub fn client_file(&self) -> Option<Box<str>> {
        if self.client_verify == Verify::None {
            return None;
        }
        let path = self.client_authorities.as_deref().unwrap_or("@system-ca");
        let absolute = || Some(std::path::absolute(path).ok()?.to_str()?.into());
        let is_plain = self.ca_base.is_none() || path.is_empty() || path.starts_with(['/', '@']);
        if is_plain { Some(path.into()) } else { absolute().or(Some(path.into())) }
    }

    /// How calls of the process's own speak TLS.
    pub fn client(&self) -> ServerSpec {
        let alpn = Some(vec![b"h2".to_vec(), b"http/1.1".to_vec()]);
        let words = Words { ca_file: self.client_file(), alpn, ..Words::default() };
        ServerSpec {
            words: words.or(&self.server),
            verify: self.client_verify,
            crt: None,
            host: None,
            no_reuse: false,
        }
    }

    /// The defaults of a `bind` line.
    pub fn bind_at(&self, at: Span) -> Words {
        self.before(at).map(|(_, bind, _)| bind.clone()).unwrap_or_default()
    }

    /// The defaults of a `server` line.
    pub fn server_at(&self, at: Span) -> Words {
        self.before(at).map(|(_, _, server)| server.clone()).unwrap_or_default()
    }

    fn before(&self, at: Span) -> Option<&(Span, Words, Words)> {
        self.history.iter().rev().find(|(span, ..)| *span < at)
    }
}
