//! What a configuration makes of live state once it is adopted.
//!
//! Compiling changes nothing alive, so that a configuration which is refused leaves no trace in a process
//! that runs. It looks up what exists, constructs what is new where nobody sees it, and notes here what
//! shall become of both.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use stick::Table;

use crate::account::Limits;
use crate::proxy::Listener;
use crate::world::World;
use crate::{Proxy, Server};

/// All that becomes of live state.
#[derive(Debug, Default)]
pub struct Adoption {
    /// The proxies of the configuration in order.
    pub proxies: Vec<ProxyTerms>,
    /// Their servers.
    pub servers: Vec<ServerTerms>,
    /// Stick tables: those that exist are kept, others take the place of those of the same name.
    pub tables: Vec<Arc<Table>>,
    /// Figures of the process.
    pub process: Option<ProcessTerms>,
    /// Limits of the memory of variables.
    pub variables: Option<Limits>,
}

/// What becomes of a proxy.
#[derive(Debug)]
pub struct ProxyTerms {
    /// The proxy, which may be new.
    pub state: Arc<Proxy>,
    /// Servers that are new to it.
    pub servers: Vec<Arc<Server>>,
    /// The listeners in the order of their `bind` lines.
    pub listeners: Vec<Arc<Listener>>,
    /// Whether it is not `disabled`.
    pub enabled: bool,
    /// `maxconn` of a frontend.
    pub maxconn: u32,
    /// Whether `dynamic` cookies are made.
    pub dynamic_cookies: bool,
    /// `dynamic-cookie-key`.
    pub cookie_key: Box<[u8]>,
    /// `option allbackups`.
    pub all_backups: bool,
    /// `be-unpublished`; what was unpublished at run time stays so.
    pub unpublished: bool,
    /// Rules name it, so that it can't be deleted.
    pub referenced: bool,
}

/// What becomes of a server.
#[derive(Debug)]
pub struct ServerTerms {
    /// The server, which may be new.
    pub state: Arc<Server>,
    /// It is not spoken to by TLS.
    pub plain: bool,
    /// TLS was refused (`no-ssl`).
    pub refuses_tls: bool,
    /// `backup`.
    pub backup: bool,
    /// Rules name it, so that it can't be deleted.
    pub referenced: bool,
}

/// What becomes of the figures of the process.
#[derive(Debug)]
pub struct ProcessTerms {
    /// `maxconn`.
    pub maxconn: u32,
    /// `maxconnrate`.
    pub conn_rate: u32,
    /// `maxsessrate`.
    pub sess_rate: u32,
    /// `maxsslconn`.
    pub ssl: u32,
    /// `maxsslrate`.
    pub ssl_rate: u32,
    /// `anonkey`.
    pub anon_key: u32,
    /// `profiling.tasks`.
    pub profiling: u8,
}

impl Adoption {
    /// Makes it so.
    pub fn apply(self, world: &World) {
        for terms in self.proxies {
            world.join(&terms.state);
            terms.apply();
        }
        for terms in self.servers {
            terms.apply();
        }
        for table in self.tables {
            world.hold(table);
        }
        if let Some(terms) = self.process {
            terms.apply(world);
        }
        if let Some(limits) = self.variables {
            world.vars.limit(limits);
        }
    }
}

impl ProxyTerms {
    fn apply(self) {
        let Proxy { enabled, front, back, .. } = &*self.state;
        enabled.store(self.enabled, Relaxed);
        front.maxconn.store(self.maxconn, Relaxed);
        *front.listeners.write() = self.listeners;
        back.servers.write().extend(self.servers);
        back.dynamic_cookies.store(self.dynamic_cookies, Relaxed);
        *back.cookie_key.lock() = self.cookie_key;
        back.all_backups.store(self.all_backups, Relaxed);
        back.unpublished.fetch_or(self.unpublished, Relaxed);
        back.referenced.fetch_or(self.referenced, Relaxed);
    }
}

impl ServerTerms {
    fn apply(self) {
        self.state.plain.store(self.plain, Relaxed);
        self.state.refuses_tls.store(self.refuses_tls, Relaxed);
        self.state.backup.store(self.backup, Relaxed);
        self.state.referenced.fetch_or(self.referenced, Relaxed);
    }
}

impl ProcessTerms {
    fn apply(self, world: &World) {
        let process = &world.process;
        process.maxconn.store(self.maxconn, Relaxed);
        process.conn_rate_limit.store(self.conn_rate, Relaxed);
        process.sess_rate_limit.store(self.sess_rate, Relaxed);
        process.ssl_limit.store(self.ssl, Relaxed);
        process.ssl_rate_limit.store(self.ssl_rate, Relaxed);
        process.anon_key.store(self.anon_key, Relaxed);
        process.profiling.store(self.profiling, Relaxed);
    }
}
