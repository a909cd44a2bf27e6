//! The TLS files of a configuration and who uses them: one store that the configuration fills and the runtime
//! API changes (manual, sections 5.1 and 12.7; management manual, the `ssl` commands).
//!
//! Certificates, CA files, revocation lists and certificate lists are kept under their names, with what each
//! `bind` line and each server makes of them. A change is prepared as a whole: all that depends on it is
//! built first, and only when nothing failed it is published, by swapping a pointer in each [`Acceptor`] and
//! [`Connector`]. Handshakes never look here and take no lock; those under way finish with what they began
//! with. The lock of the store is for the configuration and for commands only.
//!
//! Once the configuration is complete the store is [sealed](Store::seal): from then on nothing is read from a
//! disk, for the process may sit in a chroot and must not block.
//!
//! Messages are HAProxy's, without the line at fault, which is for the caller to name.

mod before;
mod binds;
mod certs;
mod jwt;
mod lists;
mod replay;
mod responses;
mod servers;
mod show;
#[cfg(test)]
mod tests;
mod transactions;
mod trust_changes;
mod trusts;
mod updates;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rustls_pki_types::CertificateDer;

use crate::files::{Extra, Parts};
use crate::locked::Phrases;
use crate::verify::Trust;
use crate::words::{Verify, Words};

pub use binds::{BindSpec, Label, Show};
pub use jwt::JwtKey;
pub use lists::{ListLine, Lookup, NotAdded};
pub use responses::{Known, Question};
pub use servers::ServerSpec;
pub use show::SniFilter;
pub use trust_changes::Kind;
pub use updates::{Came, Pace, Update};

/// Chains of authorities by the file that they came from.
pub type Issuers = Vec<(Box<str>, Vec<CertificateDer<'static>>)>;

/// What `global` says of TLS files.
#[derive(Debug)]
pub struct Ground {
    /// `crt-base`.
    pub crt_base: Option<Box<str>>,
    /// `key-base`.
    pub key_base: Option<Box<str>>,
    /// `ca-base`.
    pub ca_base: Option<Box<str>>,
    /// `ssl-load-extra-files`, `ssl-load-extra-del-ext`.
    pub extra: Extra,
    /// Chains that complete certificates (`issuers-chain-path`), by file.
    pub issuers: Issuers,
    /// `ssl-skip-self-issued-ca`.
    pub skip_root: bool,
    /// `ocsp-update.mode on`.
    pub ocsp_update: bool,
    /// What opens encrypted keys (`ssl-passphrase-cmd`).
    pub phrases: Arc<Phrases>,
    /// Most bytes of early data where a line allows them (`allow-0rtt`): what a buffer takes.
    pub early_data: u32,
    /// Buffers are too small for frames of HTTP/2: ALPN offers nothing unasked.
    pub small_buffers: bool,
    /// `tune.ssl.keylog`.
    pub keylog: bool,
    /// `expose-experimental-directives`.
    pub experimental: bool,
    /// `ssl-default-server-*`.
    pub server_words: Words,
    /// `ssl-server-verify`.
    pub server_verify: Verify,
}

impl Default for Ground {
    fn default() -> Ground {
        Ground {
            crt_base: None,
            key_base: None,
            ca_base: None,
            extra: Extra::default(),
            issuers: Vec::new(),
            skip_root: false,
            experimental: false,
            ocsp_update: false,
            phrases: Arc::default(),
            early_data: 15360,
            small_buffers: false,
            keylog: false,
            server_words: Words::default(),
            server_verify: Verify::Required,
        }
    }
}

/// Why something can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A file of certificates or a list is at fault.
    File(String),
    /// A file of authorities or revocations can't be read: the word that names it, its name, what the system
    /// says.
    Authority(&'static str, String, String),
    /// `verify` without anybody to believe.
    Nobody,
    /// Nothing is left that the library can do.
    Unusable(String),
}

impl From<String> for Trouble {
    fn from(text: String) -> Trouble {
        Trouble::File(text)
    }
}

/// All TLS files of a configuration. See the module.
#[derive(Debug, Default)]
pub struct Store {
    inner: Mutex<Inner>,
    /// Responses that are asked for.
    updates: Mutex<updates::Updates>,
    /// A task asks for them.
    asking: AtomicBool,
    /// What verifies and decrypts tokens, for rules to find without a lock.
    keys: ArcSwap<HashMap<Box<str>, Arc<JwtKey>>>,
    /// How calls of the process's own speak TLS, once one did.
    client: Mutex<Option<Arc<crate::Connector>>>,
}

/// What [`Store`] holds behind its lock.
#[derive(Debug, Default)]
struct Inner {
    ground: Ground,
    sealed: bool,
    certs: BTreeMap<Box<str>, certs::Cert>,
    files: BTreeMap<Box<str>, trusts::TrustFile>,
    trusts: HashMap<trusts::Key, Arc<Trust>>,
    lists: BTreeMap<Box<str>, lists::List>,
    binds: Vec<binds::BindUse>,
    servers: Vec<servers::ServerUse>,
    /// What can't be used of files that were loaded, to be told.
    warnings: Vec<String>,
    /// Numbers given to lines of lists.
    numbers: u64,
    before: before::Before,
    changing_cert: Option<(Box<str>, Parts)>,
    changing_ca: Option<(Box<str>, trusts::Authorities)>,
    changing_crl: Option<(Box<str>, trusts::Authorities)>,
}

impl Store {
    /// An empty store.
    pub fn new(ground: Ground) -> Store {
        Store { inner: Mutex::new(Inner { ground, ..Inner::default() }), ..Store::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settings of all servers, and whether these verify unasked.
    pub fn server_defaults(&self) -> (Words, Verify) {
        let inner = self.lock();
        (inner.ground.server_words.clone(), inner.ground.server_verify)
    }

    /// What can't be used of the files that were loaded since this was asked last.
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().warnings)
    }

    /// What opens encrypted keys.
    pub fn phrases(&self) -> Arc<Phrases> {
        self.lock().ground.phrases.clone()
    }

    /// A path under `ca-base`.
    pub fn under_ca_base(&self, path: &str) -> Box<str> {
        under(self.lock().ground.ca_base.as_deref(), path)
    }

    /// Whether any `bind` line or server asks for the kernel's TLS.
    pub fn wants_kernel(&self) -> bool {
        let inner = self.lock();
        let asked = |words: &Words| words.ktls == Some(true);
        inner.binds.iter().flat_map(|b| &b.rows).any(|r| asked(&r.words))
            || inner.servers.iter().any(|s| asked(&s.spec.words))
    }

    /// Where TLS is spoken at all, has the library gather entropy now: that takes a tenth of a second of a
    /// process once, in which the worker with the first handshake would do nothing else.
    pub fn gather_entropy(&self) {
        let is_used = {
            let inner = self.lock();
            !inner.binds.is_empty() || !inner.servers.is_empty()
        };
        if is_used {
            let _ = aws_lc_rs::rand::fill(&mut [0]);
        }
    }

    /// Whether experimental words may be used.
    pub fn is_experimental(&self) -> bool {
        self.lock().ground.experimental
    }

    /// Whether the configuration is complete.
    pub fn is_sealed(&self) -> bool {
        self.lock().sealed
    }

    /// The configuration is complete: no file is read any more.
    pub fn seal(&self) {
        let mut inner = self.lock();
        inner.sealed = true;
        inner.ground.phrases.forget();
        inner.forget_before();
        self.publish_jwt(&inner);
    }
}

/// A path under its base, unless it stands for itself.
fn under(base: Option<&str>, path: &str) -> Box<str> {
    match base {
        Some(base) if !path.starts_with(['/', '@']) => format!("{base}/{path}").into(),
        _ => path.into(),
    }
}
