//! What a configuration makes of live state once it is adopted.
//!
//! Compiling changes nothing alive, so that a configuration which is refused leaves no trace in a process
//! that runs. It looks up what exists, constructs what is new where nobody sees it, and notes here what
//! shall become of both.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::time::Mono;
use stick::Table;

use crate::account::Limits;
use crate::cached::Cache;
use crate::proxy::{Configured, Listener};
pub use crate::world::ProcessTerms;
use crate::world::World;
use crate::{Proxy, Server};

/// All that becomes of live state.
#[derive(Debug, Default)]
pub struct Adoption {
    /// The proxies of the configuration in order.
    pub proxies: Vec<ProxyTerms>,
    /// Their servers.
    pub servers: Vec<ServerTerms>,
    /// `log-forward` sections that were there before and have another limit of connections now.
    pub limits: Vec<(Arc<Proxy>, u32)>,
    /// Stick tables: those that exist are kept, others take the place of those of the same name.
    pub tables: Vec<Arc<Table>>,
    /// Caches, all of them.
    pub caches: Vec<Arc<Cache>>,
    /// Figures of the process.
    pub process: Option<ProcessTerms>,
    /// Limits of the memory of variables.
    pub variables: Option<Limits>,
    /// Proxies of the configuration before that are in this one no more.
    pub gone: Vec<Arc<Proxy>>,
}

/// What becomes of a proxy.
#[derive(Debug)]
pub struct ProxyTerms {
    /// The proxy, which may be new.
    pub state: Arc<Proxy>,
    /// Its servers in the order of the configuration.
    pub servers: Vec<Arc<Server>>,
    /// The listeners in the order of their `bind` lines.
    pub listeners: Vec<Arc<Listener>>,
    /// What may change at run time.
    pub configured: Configured,
    /// `option allbackups`.
    pub all_backups: bool,
    /// Rules name it, so that it can't be deleted.
    pub referenced: bool,
    /// Rules copy requests for it.
    pub mirror: bool,
}

/// What becomes of a server.
#[derive(Debug)]
pub struct ServerTerms {
    /// The server, which may be new.
    pub state: Arc<Server>,
    /// What may change at run time.
    pub configured: crate::server::Configured,
    /// `backup`.
    pub backup: bool,
    /// Rules name it, so that it can't be deleted.
    pub referenced: bool,
}

impl Adoption {
    /// Makes it so, `now`. Gives the proxies that are gone: their frontends are to be stopped when nobody
    /// accepts for them any more.
    pub fn apply(self, world: &World, now: Mono) -> Vec<Arc<Proxy>> {
        self.gone.iter().for_each(|proxy| world.forget(&proxy.name));
        for terms in self.proxies {
            world.join(&terms.state);
            terms.apply();
        }
        for terms in self.servers {
            terms.apply(now);
        }
        for (section, maxconn) in self.limits {
            section.front.maxconn.store(maxconn, Relaxed);
        }
        world.let_go(|name| self.tables.iter().any(|table| *table.settings().name == *name));
        for table in self.tables {
            world.hold(table);
        }
        world.keep_caches(&self.caches);
        if let Some(terms) = self.process {
            terms.apply(&world.process);
        }
        if let Some(limits) = self.variables {
            world.vars.limit(limits);
        }
        self.gone
    }
}

impl ProxyTerms {
    fn apply(self) {
        let Proxy { enabled, configured, front, back, .. } = &*self.state;
        let new = self.configured;
        let was = configured.lock().replace(new.clone());
        let was = was.as_ref();
        if was.map(|was| was.enabled) != Some(new.enabled) {
            enabled.store(new.enabled, Relaxed);
        }
        if was.map(|was| was.maxconn) != Some(new.maxconn) {
            front.maxconn.store(new.maxconn, Relaxed);
        }
        if was.map(|was| (was.dynamic_cookies, &was.cookie_key))
            != Some((new.dynamic_cookies, &new.cookie_key))
        {
            back.dynamic_cookies.store(new.dynamic_cookies, Relaxed);
            *back.cookie_key.lock() = new.cookie_key;
        }
        if was.map(|was| was.unpublished) != Some(new.unpublished) {
            back.unpublished.store(new.unpublished, Relaxed);
        }
        *front.listeners.write() = self.listeners;
        *back.servers.write() = self.servers;
        back.all_backups.store(self.all_backups, Relaxed);
        back.referenced.store(self.referenced, Relaxed);
        back.is_mirror.store(self.mirror, Relaxed);
    }
}

impl ServerTerms {
    fn apply(self, now: Mono) {
        self.state.configure(self.configured, now);
        self.state.backup.store(self.backup, Relaxed);
        self.state.referenced.store(self.referenced, Relaxed);
    }
}
