//! What a `bind ... ssl` line does with a client (manual, section 5.1).

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SignatureAlgorithm, SignatureScheme, SupportedCipherSuite};

use crate::files::{Identity, Kind};
use crate::forge::Forge;
use crate::hello::Hello;
use crate::names::Names;
use crate::schemes;
use crate::secrets;
use crate::sessions::Sessions;
use crate::staple::Always;
use crate::suites::Policy;
use crate::verify::{Ignored, OfClients, Trust};

/// A certificate with the rules under which it is shown.
#[derive(Debug)]
pub struct Entry {
    /// The certificate.
    pub identity: Arc<Identity>,
    /// What rustls makes of it.
    pub config: Arc<ServerConfig>,
    /// Who judges certificates of clients.
    pub(crate) clients: Option<Arc<Trust>>,
    silent: OnceLock<Arc<ServerConfig>>,
    /// Signs, with what the rules allow.
    pub(crate) key: Arc<CertifiedKey>,
    /// `ktls`.
    pub(crate) ktls: bool,
}

impl Entry {
    pub(crate) fn new(
        identity: Arc<Identity>,
        (config, key): (ServerConfig, Arc<CertifiedKey>),
        clients: Option<Arc<Trust>>,
        ktls: bool,
    ) -> Entry {
        Entry { identity, config: Arc::new(config), clients, silent: OnceLock::new(), key, ktls }
    }

    /// The kind of its key, if the client verifies signatures of such keys and there is a suite of both for
    /// it. That no version is one of both makes no other entry fit better: then the handshake fails.
    pub(crate) fn suits(&self, hello: &Hello<'_>) -> Option<Kind> {
        let (algorithm, verifies) = match self.identity.kind {
            Kind::Ecdsa => (SignatureAlgorithm::ECDSA, hello.verifies_ecdsa()),
            Kind::Rsa => (SignatureAlgorithm::RSA, hello.verifies_rsa()),
            Kind::Other => return Some(Kind::Other),
        };
        let common = |suite: &SupportedCipherSuite| {
            suite.usable_for_signature_algorithm(algorithm)
                && (suite.tls13().is_none() || hello.offers_tls13())
                && hello.offers_suite(u16::from(suite.suite()))
        };
        let suites = &self.config.crypto_provider().cipher_suites;
        let version = |suite: &SupportedCipherSuite| match suite.tls13() {
            Some(_) => hello.offers_tls13(),
            None => hello.offers_tls12(),
        };
        let fits = suites.iter().any(common) || !suites.iter().any(version);
        (verifies && fits).then_some(self.identity.kind)
    }

    /// Whether its key makes a signature that the client verifies.
    pub(crate) fn signs_for(&self, hello: &Hello<'_>) -> bool {
        let Some(schemes) = hello.schemes() else { return true };
        let schemes: Vec<SignatureScheme> = schemes.map(SignatureScheme::from).collect();
        self.key.key.choose_scheme(&schemes).is_some()
    }

    /// The same without ALPN, for clients that offer nothing known here: rustls refuses them, HAProxy goes on
    /// as if they had offered nothing.
    pub(crate) fn silent(&self) -> &Arc<ServerConfig> {
        self.silent.get_or_init(|| {
            let mut silent = (*self.config).clone();
            silent.alpn_protocols.clear();
            Arc::new(silent)
        })
    }

    /// Whether TLS 1.3 may be agreed on.
    pub(crate) fn speaks_tls13(&self) -> bool {
        self.config.crypto_provider().cipher_suites.iter().any(|s| s.tls13().is_some())
    }
}

/// Rules of a handshake.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Versions, ciphers, curves.
    pub policy: Policy,
    /// Protocols for ALPN, in order.
    pub alpn: Vec<Vec<u8>>,
    /// `verify optional` or `required`: whom to believe.
    pub clients: Option<Arc<Trust>>,
    /// `verify required`.
    pub required: bool,
    /// `crt-ignore-err`, `ca-ignore-err`.
    pub ignored: [Ignored; 2],
    /// `no-ca-names`.
    pub no_ca_names: bool,
    /// `no-tls-tickets`.
    pub no_tickets: bool,
    /// `prefer-client-ciphers`.
    pub client_order: bool,
    /// `allow-0rtt`: most bytes of early data, 0: none.
    pub early_data: u32,
    /// `ktls`.
    pub ktls: bool,
    /// `tune.ssl.keylog`.
    pub keylog: bool,
}

/// Makes an entry; also what of its rules has no effect.
///
/// # Errors
/// When the rules leave nothing, or don't suit the certificate.
pub fn entry(
    identity: Arc<Identity>,
    rules: &Rules,
    sessions: &Sessions,
) -> Result<(Entry, Vec<String>), String> {
    let mut agreed = rules.policy.resolve()?;
    let verifier: Arc<dyn ClientCertVerifier> = match &rules.clients {
        Some(trust) => Arc::new(OfClients::new(
            trust.clone(),
            rules.required,
            rules.ignored,
            !rules.no_ca_names,
            agreed.client_schemes.clone(),
        )),
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let builder = ServerConfig::builder_with_provider(agreed.provider)
        .with_protocol_versions(&agreed.versions)
        .map_err(|e| e.to_string())?;
    let key = schemes::limited(&identity.key, agreed.server_schemes.as_ref());
    let shown = Always::new(key.clone(), identity.staple.clone());
    let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(shown));
    config.alpn_protocols.clone_from(&rules.alpn);
    config.ignore_client_order = !rules.client_order;
    config.session_storage = sessions.cache.clone();
    config.send_tls13_tickets = 2;
    let early_data = rules.early_data > 0 && sessions.cache.can_cache();
    if early_data && sessions.has_given_keys() {
        agreed.ignored.push("tls-ticket-keys (beside allow-0rtt)".to_owned());
    } else if rules.early_data > 0 && !early_data {
        agreed.ignored.push("allow-0rtt (without a cache of sessions)".to_owned());
    }
    if let Some(tickets) = sessions.tickets.clone().filter(|_| !rules.no_tickets && !early_data) {
        config.ticketer = tickets;
    }
    if early_data {
        // Whoever sends the same early data again finds the session taken.
        config.max_early_data_size = rules.early_data;
        config.send_half_rtt_data = true;
    }
    config.key_log = Arc::new(secrets::Log { all: rules.keylog });
    config.enable_secret_extraction = true;
    Ok((Entry::new(identity, (config, key), rules.clients.clone(), rules.ktls), agreed.ignored))
}

/// All of a bind line. What it shows may change while it is used: a handshake takes the table at hand,
/// without a lock, and goes on with what it took.
#[derive(Debug)]
pub struct Acceptor {
    table: ArcSwap<Table>,
    strict: bool,
    captures: usize,
    forge: Option<Forge>,
}

/// The certificates of a bind line and the names that they are for.
#[derive(Debug, Default)]
pub struct Table {
    entries: Vec<Arc<Entry>>,
    names: Names,
}

impl Table {
    /// Adds an entry for the names of its certificate, or for those of its filters. The first of all is a
    /// default.
    pub fn add(&mut self, entry: Arc<Entry>, filters: &[Box<str>], default: bool) {
        let index = self.entries.len() as u32;
        match filters {
            [] => entry.identity.names().iter().for_each(|n| self.names.add(n, index)),
            list => list.iter().for_each(|f| self.names.add(f, index)),
        }
        if default || index == 0 {
            self.names.add_default(index);
        }
        self.entries.push(entry);
    }
}

impl Acceptor {
    /// With `strict-sni`, and so many bytes of each ClientHello kept for fetches.
    pub fn new(strict: bool, captures: usize) -> Acceptor {
        Acceptor { table: ArcSwap::default(), strict, captures, forge: None }
    }

    /// From now on names without a certificate get one that is made for them.
    pub fn set_forge(&mut self, forge: Forge) {
        self.forge = Some(forge);
    }

    /// From now on handshakes find this.
    pub fn publish(&self, table: Table) {
        self.table.store(Arc::new(table));
    }

    /// Whether it has no certificate.
    pub fn is_empty(&self) -> bool {
        self.table.load().entries.is_empty()
    }

    /// `strict-sni`.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Bytes of each ClientHello to keep.
    pub fn captures(&self) -> usize {
        self.captures
    }

    /// The entry for a client. What has sent no hello (`is_hello` is false) is told what is wrong with it
    /// whatever `strict-sni` says.
    pub fn choose(&self, hello: &Hello<'_>, is_hello: bool) -> Option<Arc<Entry>> {
        let table = self.table.load();
        if let Some(forge) = &self.forge
            && let Some(name) = hello.server_name().filter(|_| !table.names.knows(hello))
            && let Some(base) = table.entries.first()
            && let Some(made) = forge.entry(name, base)
        {
            return Some(made);
        }
        let strict = self.strict && is_hello;
        let index = table.names.choose(hello, |i| table.entries.get(i as usize)?.suits(hello), strict)?;
        table.entries.get(index as usize).cloned()
    }
}
