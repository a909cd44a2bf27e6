//! Live state by identity.
//!
//! A configuration that takes over from another finds its proxies and servers here by name and
//! goes on counting where the old one stopped. It is consulted when a configuration is assembled,
//! changed when one is adopted ([`crate::Adoption`]), and by the runtime API, never on the path of a request.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::RwLock;
use stick::Table;

use crate::cached::Cache;
use crate::counter::{Counter, Sharded};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::vars::ProcVars;

/// Figures of the process, one copy a worker (`show info`).
#[derive(Debug, Default)]
pub struct ProcessCounters {
    /// Connections accepted (`CumConns`).
    pub connections: Counter,
    /// Requests (`CumReq`).
    pub requests: Counter,
    /// Streams that exist now (`CurrStreams`).
    pub open_streams: Counter,
    /// Bytes sent to clients (`TotalBytesOut`).
    pub bytes_out: Counter,
    /// Of these, by splicing (`TotalSplicedBytesOut`).
    pub spliced_bytes_out: Counter,
    /// Log lines that could not be delivered (`DroppedLogs`).
    pub dropped_logs: Counter,
    /// Messages received by `log-forward` sections (`CumRecvLogs`).
    pub received_logs: Counter,
    /// Failed resolutions (`FailedResolutions`).
    pub failed_resolutions: Counter,
}

/// What the whole process counts.
#[derive(Debug)]
pub struct Process {
    /// Connections now (`CurrConns`).
    pub connections: AtomicU32,
    /// The sockets of the runtime API accept nobody (SIGTTOU).
    pub cli_paused: std::sync::atomic::AtomicBool,
    /// Counts how often servers were added after others had been deleted, twice: it is odd between the two.
    pub revisions: AtomicU32,
    /// Streams so far: requests and TCP sessions (`%rt`).
    pub streams: AtomicU64,
    /// Limit (`Maxconn`).
    pub maxconn: AtomicU32,
    /// Streams that clients' connections were offered.
    pub offers: crate::offers::Offers,
    /// Connections in the last second.
    pub conn_rate: base::rate::PeakRate,
    /// Tasks of workers that accept connections.
    pub accepting: AtomicU32,
    /// Sessions that were admitted and are not counted in `sess_rate` yet.
    pub pending: AtomicU32,
    /// Held by whoever compares a rate with its limit and then counts.
    pub admission: std::sync::Mutex<()>,
    /// Sessions in the last second.
    pub sess_rate: base::rate::PeakRate,
    /// Global `maxconnrate`, 0: none.
    pub conn_rate_limit: AtomicU32,
    /// Global `maxsessrate`, 0: none.
    pub sess_rate_limit: AtomicU32,
    /// Key of anonymised dumps, 0: none (`anonkey`).
    pub anon_key: AtomicU32,
    /// Whether calls of streams are measured, see [`profiling`].
    pub profiling: AtomicU8,
    /// New TLS connections of clients a second, 0: no limit (`maxsslrate`).
    pub ssl_rate_limit: AtomicU32,
    /// TLS connections at once, 0: no limit (`maxsslconn`).
    pub ssl_limit: AtomicU32,
    /// TLS connections of clients in the last second.
    pub ssl_rate: base::rate::PeakRate,
    /// Full handshakes with clients in the last second.
    pub ssl_front_keys: base::rate::PeakRate,
    /// Full handshakes with servers in the last second.
    pub ssl_back_keys: base::rate::PeakRate,
    /// Bytes a second that may be compressed, 0: no limit.
    pub comp_rate_limit: AtomicU32,
    /// What the configuration says of all this.
    pub configured: parking_lot::Mutex<Option<ProcessTerms>>,
    /// How often a configuration was adopted in place.
    pub adoptions: AtomicU32,
    /// Not accepting any more (soft stop).
    pub stopping: std::sync::atomic::AtomicBool,
    /// The descriptor over which the master sends connections, in a worker.
    pub master_line: std::sync::OnceLock<i32>,
    /// Told to stop, but going on as before until `grace` is over.
    pub in_grace: std::sync::atomic::AtomicBool,
    /// Figures of the path of requests.
    pub counters: Sharded<ProcessCounters>,
}

/// Values of [`Process::profiling`].
pub mod profiling {
    /// Nothing is measured.
    pub const OFF: u8 = 0;
    /// HAProxy measures when it gets slow; here nothing is measured.
    pub const AUTO: u8 = 1;
    /// Calls are measured.
    pub const ON: u8 = 2;
}

impl Process {
    /// It was told to stop, whether `grace` is over or not: what `stopping` says.
    pub fn is_to_stop(&self) -> bool {
        self.stopping.load(Relaxed) || self.in_grace.load(Relaxed)
    }

    /// A server was deleted: those that come after it are of the next revision.
    pub fn note_deletion(&self) {
        // Changes of servers are made one at a time.
        let count = self.revisions.load(Relaxed);
        self.revisions.store(count | 1, Relaxed);
    }

    /// The revision of a server that is added now (`srid`).
    pub fn next_revision(&self) -> u32 {
        let count = self.revisions.load(Relaxed);
        let even = count.wrapping_add(count & 1);
        self.revisions.store(even, Relaxed);
        even / 2
    }
}

/// What becomes of the figures of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Of compression.
    pub compression: crate::compression::Terms,
    /// `profiling.tasks`.
    pub profiling: u8,
}

impl ProcessTerms {
    /// What differs from before holds, also where the runtime API had changed it.
    pub(crate) fn apply(self, process: &Process) {
        let was = process.configured.lock().replace(self.clone());
        let was = was.as_ref();
        let set = |of: fn(&ProcessTerms) -> u32, to: &AtomicU32| {
            if was.map(of) != Some(of(&self)) {
                to.store(of(&self), Relaxed);
            }
        };
        set(|t| t.maxconn, &process.maxconn);
        set(|t| t.conn_rate, &process.conn_rate_limit);
        set(|t| t.sess_rate, &process.sess_rate_limit);
        set(|t| t.ssl, &process.ssl_limit);
        set(|t| t.ssl_rate, &process.ssl_rate_limit);
        set(|t| t.anon_key, &process.anon_key);
        set(|t| t.compression.rate, &process.comp_rate_limit);
        self.compression.apply();
        if was.map(|was| was.profiling) != Some(self.profiling) {
            process.profiling.store(self.profiling, Relaxed);
        }
    }
}

/// All live state of the process.
#[derive(Debug)]
pub struct World {
    /// Number of workers: how many copies sharded counters have.
    pub workers: usize,
    /// The process itself.
    pub process: Process,
    /// Variables of scope `proc`.
    pub vars: ProcVars,
    /// What the configuration said last of some of them, by slot.
    pub set_vars: parking_lot::Mutex<HashMap<u16, crate::vars::Owned>>,
    /// Those who want to be told of what happens to servers.
    pub events: crate::events::Subscribers,
    /// Mails about servers that wait to be sent.
    pub mails: crate::mail::Outbox,
    /// What copies of requests hold.
    pub mirrored: crate::mirror::Held,
    /// Held by whoever changes the state of a server, whichever configuration he knows it from.
    pub changes: std::sync::Mutex<()>,
    proxies: RwLock<HashMap<Box<str>, Arc<Proxy>>>,
    tables: RwLock<HashMap<Box<str>, Arc<Table>>>,
    caches: RwLock<HashMap<Box<str>, Arc<Cache>>>,
}

impl World {
    /// An empty world for `workers` threads.
    pub fn new(workers: usize) -> World {
        World {
            workers,
            process: Process {
                connections: AtomicU32::new(0),
                cli_paused: Default::default(),
                revisions: AtomicU32::new(0),
                streams: AtomicU64::new(0),
                maxconn: AtomicU32::new(0),
                offers: Default::default(),
                conn_rate: Default::default(),
                accepting: AtomicU32::new(0),
                pending: AtomicU32::new(0),
                admission: Default::default(),
                sess_rate: Default::default(),
                conn_rate_limit: AtomicU32::new(0),
                sess_rate_limit: AtomicU32::new(0),
                anon_key: AtomicU32::new(0),
                profiling: AtomicU8::new(profiling::AUTO),
                ssl_rate_limit: AtomicU32::new(0),
                ssl_limit: AtomicU32::new(0),
                ssl_rate: Default::default(),
                ssl_front_keys: Default::default(),
                ssl_back_keys: Default::default(),
                comp_rate_limit: AtomicU32::new(0),
                configured: Default::default(),
                adoptions: AtomicU32::new(0),
                stopping: Default::default(),
                master_line: Default::default(),
                in_grace: Default::default(),
                counters: Sharded::new(workers),
            },
            vars: ProcVars::default(),
            set_vars: Default::default(),
            events: Default::default(),
            mails: Default::default(),
            mirrored: Default::default(),
            changes: Default::default(),
            proxies: RwLock::default(),
            tables: RwLock::default(),
            caches: RwLock::default(),
        }
    }

    /// A proxy is one of the process from now on.
    pub fn join(&self, proxy: &Arc<Proxy>) {
        self.proxies.write().insert((*proxy.name).into(), proxy.clone());
    }

    /// Forgets a proxy that was deleted, or is in no configuration any more: another may have its name.
    pub fn forget(&self, name: &str) {
        self.proxies.write().remove(name);
    }

    /// The proxy of this name, if it exists.
    pub fn find_proxy(&self, name: &str) -> Option<Arc<Proxy>> {
        self.proxies.read().get(name).cloned()
    }

    /// The stick table of these settings: the one that exists under its name if nothing else was said of it,
    /// else a new one that nobody knows yet.
    pub fn table(&self, settings: stick::Settings) -> Arc<Table> {
        if let Some(known) = self.tables.read().get(&settings.name).filter(|t| *t.settings() == settings) {
            return known.clone();
        }
        // Keys come from clients: which of them share a place must not be known outside.
        let seed = RandomState::new().hash_one(&settings.name);
        Arc::new(Table::new(settings, seed))
    }

    /// Forgets the stick tables that `stays` does not name.
    pub fn let_go(&self, stays: impl Fn(&str) -> bool) {
        self.tables.write().retain(|name, _| stays(name));
    }

    /// A stick table is one of the process from now on.
    pub fn hold(&self, table: Arc<Table>) {
        self.tables.write().insert(table.settings().name.clone(), table);
    }

    /// The cache of these settings: the one that exists under its name if nothing else was said of it, else a
    /// new one that nobody knows yet.
    pub fn cache(&self, settings: cache::Settings) -> Arc<Cache> {
        let known = self.caches.read().get(&settings.name).cloned();
        known.filter(|cache| *cache.settings() == settings).unwrap_or_else(|| Arc::new(Cache::new(settings)))
    }

    /// These are the caches of the process from now on, and no others.
    pub fn keep_caches(&self, caches: &[Arc<Cache>]) {
        let named = |cache: &Arc<Cache>| (cache.settings().name.clone(), cache.clone());
        *self.caches.write() = caches.iter().map(named).collect();
    }

    /// A server of a proxy, made by `make` and appended when it is new.
    pub fn server(proxy: &Proxy, name: &str, make: impl FnOnce() -> Server) -> Arc<Server> {
        let mut list = proxy.back.servers.write();
        if let Some(s) = list.iter().find(|s| &*s.name == name) {
            return s.clone();
        }
        let s = Arc::new(make());
        list.push(s.clone());
        s
    }
}
