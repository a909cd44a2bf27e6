//! Servers that use the store: their own certificate, and whom they believe.

use std::sync::{Arc, PoisonError};

use super::certs::{Beside, clash};
use super::{Inner, Store, Trouble};
use crate::client::{Connector, Rules};
use crate::files::{Identity, Sources};
use crate::verify::Trust;
use crate::words::{Verify, Words};

/// A `server ... ssl` line.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Its settings with those of `global`.
    pub words: Words,
    /// `verify required`, be it unasked.
    pub verify: Verify,
    /// `crt`.
    pub crt: Option<Box<str>>,
    /// `verifyhost`.
    pub host: Option<Box<str>>,
    /// `no-ssl-reuse`.
    pub no_reuse: bool,
}

/// A server that uses the store.
#[derive(Debug)]
pub(super) struct ServerUse {
    pub spec: ServerSpec,
    pub connector: Arc<Connector>,
}

impl Store {
    /// Builds what speaking TLS to a server takes. The server follows changes from now on. Also tells what of
    /// its settings has no effect.
    ///
    /// # Errors
    /// What is wrong.
    pub fn server(&self, mut spec: ServerSpec) -> Result<(Arc<Connector>, Vec<String>), Trouble> {
        let inner = &mut *self.lock();
        let key = inner.trust_key(&spec.words);
        inner.read_trust(&key)?;
        let trust = match spec.verify {
            Verify::None => None,
            _ => Some(inner.trust(&key)?.ok_or(Trouble::Nobody)?),
        };
        let mut identity = None;
        if let Some(name) = &spec.crt {
            let path = inner.full(name);
            let place = clash(&path);
            let found = match inner.certs.contains_key(&path) {
                true if inner.sealed => Ok(()),
                true => inner.agree(&path, &Sources::plain(&path), &place),
                false => inner.one(&Sources::plain(&path), Beside::Told),
            };
            found?;
            identity = Some(inner.identity(&path)?);
            inner.note_use(&path);
            spec.crt = Some(path);
        }
        let rules = inner.server_rules(&spec, identity, trust);
        let (connector, ignored) = Connector::new(&rules).map_err(Trouble::Unusable)?;
        connector.set_nature(inner.nature_of(&spec, &key));
        let connector = Arc::new(connector);
        inner.servers.push(ServerUse { spec, connector: connector.clone() });
        Ok((connector, ignored))
    }

    /// How calls of the process's own speak TLS. It is built when the first one asks for it, and follows
    /// changes like a server; `None`: that can't be, as its authorities are not there.
    pub fn client(&self, spec: &ServerSpec) -> Option<Arc<Connector>> {
        let mut built = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if built.is_none() {
            *built = self.server(spec.clone()).ok().map(|(connector, _)| connector);
        }
        built.clone()
    }

    /// Reads whom a server without TLS would believe, so that a file that is not there is told.
    ///
    /// # Errors
    /// What can't be read.
    pub fn read_for_server(&self, words: &Words) -> Result<(), Trouble> {
        let inner = &mut *self.lock();
        inner.read_trust(&inner.trust_key(words))
    }

    /// A server was deleted: what it used may be free now.
    pub fn forget_server(&self, connector: &Arc<Connector>) {
        self.lock().servers.retain(|s| !Arc::ptr_eq(&s.connector, connector));
    }
}

impl Inner {
    pub(super) fn server_rules(
        &self,
        spec: &ServerSpec,
        identity: Option<Arc<Identity>>,
        servers: Option<Arc<Trust>>,
    ) -> Rules {
        Rules {
            policy: spec.words.policy.clone(),
            alpn: spec.words.alpn.clone().unwrap_or_default(),
            servers,
            host: spec.host.clone(),
            identity,
            no_reuse: spec.no_reuse,
            ktls: spec.words.ktls.unwrap_or(false),
            no_tickets: spec.words.no_tickets.unwrap_or(false),
            early_data: spec.words.early_data,
            keylog: self.ground.keylog,
        }
    }
}
