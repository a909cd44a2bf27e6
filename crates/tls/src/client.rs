//! What a `server ... ssl` line does (manual, section 5.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use rustls::ClientConfig;
use rustls::client::{ClientSessionMemoryCache, ClientSessionStore, Resumption};
use rustls_pki_types::{DnsName, ServerName};

use crate::files::Identity;
use crate::schemes;
use crate::secrets;
use crate::suites::Policy;
use crate::verify::{OfServers, Trust, nameless};

/// Sessions kept for each server, by name.
const SESSIONS: usize = 64;

/// Rules of a handshake with a server.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Versions, ciphers, curves.
    pub policy: Policy,
    /// Protocols for ALPN, in order.
    pub alpn: Vec<Vec<u8>>,
    /// `verify required`: whom to believe.
    pub servers: Option<Arc<Trust>>,
    /// `verifyhost`.
    pub host: Option<Box<str>>,
    /// `crt`.
    pub identity: Option<Arc<Identity>>,
    /// `no-ssl-reuse`.
    pub no_reuse: bool,
    /// `no-tls-tickets`.
    pub no_tickets: bool,
    /// `allow-0rtt`.
    pub early_data: bool,
    /// `ktls`.
    pub ktls: bool,
    /// `tune.ssl.keylog`.
    pub keylog: bool,
}

/// How a server is spoken to. It may change while it is used: a handshake takes what is at hand, without a
/// lock.
#[derive(Debug)]
pub struct Connector(ArcSwap<Pair>, AtomicU64);

/// The same rules with and without a name to send.
#[derive(Debug)]
struct Pair {
    named: Arc<ClientConfig>,
    nameless: Arc<ClientConfig>,
    /// The same with early data, where it is allowed. They share sessions.
    early: Option<(Arc<ClientConfig>, Arc<ClientConfig>)>,
    /// Who judges certificates of the server.
    verifier: Arc<OfServers>,
    /// Sessions to resume, where they are kept.
    sessions: Option<Arc<ClientSessionMemoryCache>>,
    /// `ktls`.
    ktls: bool,
    /// The highest version that is spoken.
    highest: &'static str,
}

impl Connector {
    /// Also returns what of the rules has no effect.
    ///
    /// # Errors
    /// When the rules leave nothing.
    pub fn new(rules: &Rules) -> Result<(Connector, Vec<String>), String> {
        let (pair, ignored) = Pair::new(rules)?;
        Ok((Connector(ArcSwap::from_pointee(pair), AtomicU64::new(0)), ignored))
    }

    /// What takes the place of the rules at hand once it is [published](Connector::publish).
    ///
    /// # Errors
    /// When the rules leave nothing.
    pub(crate) fn prepare(rules: &Rules) -> Result<Prepared, String> {
        Pair::new(rules).map(|(pair, _)| Prepared(Arc::new(pair)))
    }

    /// From now on handshakes follow these rules.
    pub(crate) fn publish(&self, prepared: Prepared) {
        self.0.store(prepared.0);
    }

    /// What tells what was agreed on at the start from what others agree on: two whose numbers are equal have
    /// the same settings, and files of the same content.
    pub fn nature(&self) -> u64 {
        self.1.load(Relaxed)
    }

    pub(crate) fn set_nature(&self, nature: u64) {
        self.1.store(nature, Relaxed);
    }

    /// Drops the sessions that are kept for a name: a handshake with the server failed, which may be because
    /// it does not want them.
    pub fn forget(&self, name: Option<&[u8]>) {
        let (_, name) = self.pick(name, false);
        if let Some(sessions) = &self.0.load().sessions {
            sessions.remove_tls12_session(&name);
            while sessions.take_tls13_ticket(&name).is_some() {}
        }
    }

    /// The highest version that is spoken.
    pub fn highest(&self) -> &'static str {
        self.0.load().highest
    }

    /// Whether the kernel may make the records of its connections.
    pub(crate) fn uses_kernel(&self) -> bool {
        self.0.load().ktls
    }

    /// The configuration for a connection's name. Without one, or where TLS has no way to say it, nothing is
    /// sent; whoever verifies servers does so all the same.
    pub(crate) fn pick(&self, name: Option<&[u8]>, early: bool) -> (Arc<ClientConfig>, ServerName<'static>) {
        let pair = self.0.load();
        let (named, unnamed) = match &pair.early {
            Some((named, nameless)) if early => (named, nameless),
            _ => (&pair.named, &pair.nameless),
        };
        let Some(name) = name.filter(|n| !n.is_empty()) else { return (unnamed.clone(), nameless()) };
        let text = std::str::from_utf8(name).ok();
        match text.and_then(|t| DnsName::try_from(t.to_owned()).ok()) {
            Some(name) => (named.clone(), ServerName::DnsName(name)),
            None if pair.verifier.verifies() => (pair.for_unsent(name), nameless()),
            None => (unnamed.clone(), nameless()),
        }
    }
}

/// Rules that are ready to take effect.
pub(crate) struct Prepared(Arc<Pair>);

impl Pair {
    fn new(rules: &Rules) -> Result<(Pair, Vec<String>), String> {
        let agreed = rules.policy.resolve_for_server()?;
        let newest = agreed.versions.iter().any(|v| v.version == rustls::ProtocolVersion::TLSv1_3);
        let highest = if newest { "TLSv1.3" } else { "TLSv1.2" };
        let verifier =
            OfServers::new(rules.servers.clone(), rules.host.clone(), agreed.server_schemes.clone());
        let verifier = Arc::new(verifier);
        let builder = ClientConfig::builder_with_provider(agreed.provider)
            .with_protocol_versions(&agreed.versions)
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone());
        let mut config = match &rules.identity {
            Some(identity) => {
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                    schemes::limited(&identity.key, agreed.client_schemes.as_ref()),
                )))
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols.clone_from(&rules.alpn);
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(secrets::Log { all: rules.keylog });
        let sessions = (!rules.no_reuse).then(|| Arc::new(ClientSessionMemoryCache::new(SESSIONS)));
        config.resumption = match &sessions {
            None => Resumption::disabled(),
            Some(sessions) => Resumption::store(sessions.clone()),
        };
        if rules.no_tickets {
            config.resumption =
                config.resumption.tls12_resumption(rustls::client::Tls12Resumption::SessionIdOnly);
        }
        let mut without = config.clone();
        without.enable_sni = false;
        let early = |config: &ClientConfig| {
            let mut config = config.clone();
            config.enable_early_data = true;
            Arc::new(config)
        };
        let early = rules.early_data.then(|| (early(&config), early(&without)));
        let (named, nameless) = (Arc::new(config), Arc::new(without));
        Ok((Pair { named, nameless, early, verifier, sessions, ktls: rules.ktls, highest }, agreed.ignored))
    }

    /// For one connection whose name can't be sent. Sessions are kept by the name that was sent, so one that
    /// began under another name, or none, must not spare this one its verification: it resumes none.
    fn for_unsent(&self, name: &[u8]) -> Arc<ClientConfig> {
        let mut config = (*self.nameless).clone();
        config.dangerous().set_certificate_verifier(Arc::new(self.verifier.of(name)));
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}
