//! What all workers share of one configuration: the program, and the balancing state of its backends.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use balance::queue::{Gate, Queue};
use balance::{Algorithm, Balancer, ServerView, Settings};
use base::fleet::{Fleet, Held, Pin};
use base::grow::Grow;
use model::server::{Op, Target, admin};
use program::proxy::{Balance, Proxy};
use program::{Program, Server};
use rt::{Mono, RemoteNotify};

/// One configuration, ready to run.
pub struct Shared {
    /// The configuration.
    pub program: Arc<Program>,
    /// Log lines tell the local address of server connections.
    pub logs_source: bool,
    /// For each proxy of the program, how its servers are chosen.
    pub backends: Fleet<Backend>,
    /// Held by whoever changes the state of a server, see [`crate::state`].
    pub changes: std::sync::Mutex<()>,
    /// Services that `use-service` and the statistics reach, by name.
    pub services: Vec<(Arc<str>, Arc<dyn crate::service::Service>)>,
    /// Changes of servers are also told on standard error: the process runs in the foreground.
    pub console: bool,
    /// Log sinks that were opened before the process went into its chroot.
    pub outlets: crate::log::Outlets,
    /// Rings of log lines, by index of the program.
    pub rings: Vec<Arc<crate::log::Ring>>,
    /// When the process started.
    pub started: Mono,
    /// The same, as a date.
    pub started_at: rt::Wall,
}

/// See [`Shared::stay`]. Holds nothing where all that is remembered stands in the configuration.
#[derive(Default)]
pub struct Stay {
    _backend: Pin<Backend>,
    _server: Pin<Server>,
    _proxy: Pin<Proxy>,
}

/// How the servers of one backend are chosen and waited for.
pub struct Backend {
    /// The algorithm and its schedule.
    pub balancer: Balancer,
    /// For each server, its places and its queue. A slot outlives its server: the next one of its index takes it over, empty.
    pub slots: Grow<Slot>,
    /// Requests that any server may take.
    pub queue: Queue<Ticket>,
}

/// A server's places and who waits for one.
#[derive(Default)]
pub struct Slot {
    /// Places.
    pub gate: Gate,
    /// Requests bound to this server.
    pub queue: Queue<Ticket>,
    /// Traffic found errors: the next check shall come soon.
    pub hurry: RemoteNotify,
    /// Idle connections that any worker may take.
    pub quays: crate::pool::Quays,
}

/// A request that waits: whoever gives it a place notes the server and wakes it.
pub type Ticket = Arc<Waiting>;

/// See [`Ticket`].
#[derive(Default)]
pub struct Waiting {
    /// Index of the server that gave a place, plus one; 0: none yet.
    pub server: std::sync::atomic::AtomicU32,
    /// Wakes the request.
    pub notify: RemoteNotify,
}

impl Shared {
    /// Prepares a program to run.
    pub fn new(program: Arc<Program>, started: Mono, started_at: rt::Wall) -> Shared {
        begin(&program, started);
        inherit(&program, started);
        crate::process_vars::set(&program);
        let backends = program.proxies.iter().map(|p| Backend::new(&p, started)).collect();
        let logs_source = crate::log::mentions(&program, &["bc_src", "bi", "bp"]);
        Shared {
            rings: crate::log::rings(&program),
            outlets: Default::default(),
            logs_source,
            program,
            backends,
            changes: Default::default(),
            services: Vec::new(),
            console: false,
            started,
            started_at,
        }
    }

    /// A service by name.
    pub fn service(&self, name: &str) -> Option<&Arc<dyn crate::service::Service>> {
        self.services.iter().find(|(n, _)| &**n == name).map(|(_, s)| s)
    }

    /// How the servers of a proxy are chosen, by its index.
    #[inline]
    pub fn backend(&self, proxy: u32) -> Held<'_, Backend> {
        self.backends.get(proxy as usize).expect("an index of this program")
    }

    /// Keeps a backend, and a server of it, for somebody who remembers their indices.
    pub fn stay(&self, proxy: u32, server: Option<u32>) -> Stay {
        let held = self.program.proxy(proxy);
        Stay {
            _backend: self.backends.get(proxy as usize).and_then(|b| b.pin()),
            _server: server.and_then(|s| held.servers.get(s as usize)?.pin()),
            _proxy: held.pin(),
        }
    }

    /// Keeps a backend that was only just found by its name; `None` if it is being deleted.
    pub fn try_stay(&self, proxy: u32) -> Option<Stay> {
        let held = self.program.proxies.get(proxy as usize)?;
        let backend = self.backends.get(proxy as usize)?;
        Some(Stay { _backend: backend.pin(), _server: None, _proxy: held.pin() })
    }

    /// Follows a change of a server's state, weight or address in its backend.
    pub fn refresh(&self, proxy: u32, now: Mono) {
        let proxy = (&*self.program.proxy(proxy), &*self.backend(proxy));
        proxy.1.refresh(proxy.0, now);
    }
}

/// The states that servers are read with begin now: nobody knew them before.
fn begin(program: &Program, now: Mono) {
    for server in program.proxies.beginning().iter().flat_map(|p| p.servers.beginning()) {
        let _ = server.state.last_change.compare_exchange(0, now.as_millis(), Relaxed, Relaxed);
    }
}

/// Servers that track others begin in their state.
fn inherit(program: &Program, now: Mono) {
    let servers = || program.proxies.beginning().iter().flat_map(|p| p.servers.beginning());
    // A chain is done after as many rounds as it has links.
    for _ in 0..servers().filter(|s| s.track.is_some()).count() {
        let mut changed = false;
        for server in servers() {
            let Some((proxy, tracked)) = server.track else { continue };
            let tracked = &program.server(proxy, tracked).state;
            let bit = |any: u32, bit: u32| if tracked.admin() & any != 0 { bit } else { 0 };
            let bits = bit(admin::MAINT, admin::IMAINT) | bit(admin::DRAIN, admin::IDRAIN);
            changed |= server.state.change_admin(bits, 0, now) & bits != bits;
            if tracked.op() == Op::Stopped && server.state.op() != Op::Stopped {
                let before = server.state.went_down.load(Relaxed);
                server.state.set_op(Op::Stopped, now);
                server.state.went_down.store(before, Relaxed);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

fn settings(proxy: &Proxy) -> Settings {
    let algorithm = match &proxy.balance {
        Balance::RoundRobin => Algorithm::RoundRobin,
        Balance::StaticRr => Algorithm::StaticRr,
        Balance::LeastConn => Algorithm::LeastConn,
        Balance::First => Algorithm::First,
        Balance::Random(draws) => Algorithm::Random { draws: *draws },
        Balance::Sticky => Algorithm::Sticky,
        Balance::Source
        | Balance::Uri(_)
        | Balance::UrlParam(_)
        | Balance::Header { .. }
        | Balance::RdpCookie(_)
        | Balance::Hash(_) => Algorithm::Hash(proxy.hash),
    };
    Settings { algorithm, allbackups: proxy.options.allbackups, balance_factor: proxy.hash_balance_factor }
}

impl Backend {
    pub(crate) fn new(proxy: &Proxy, now: Mono) -> Backend {
        let backend = Backend {
            balancer: Balancer::new(settings(proxy)),
            slots: (0..proxy.servers.bound()).map(|_| Slot::default()).collect(),
            queue: Queue::new(),
        };
        let downs = proxy.state.back.went_down.load(Relaxed);
        backend.refresh(proxy, now);
        // A backend that begins without a server did not lose it.
        proxy.state.back.went_down.store(downs, Relaxed);
        backend
    }

    /// Publishes a schedule that fits the servers' state.
    pub fn refresh(&self, proxy: &Proxy, now: Mono) {
        crate::persist::renew(proxy);
        // Nobody is where a server was deleted.
        let mut views =
            vec![ServerView { usable: false, weight: 0, ..ServerView::new(0) }; proxy.servers.bound()];
        for (at, server) in proxy.servers.numbered() {
            if let Some(place) = views.get_mut(at as usize) {
                *place = view(&server, now);
            }
        }
        self.balancer.rebuild(&views);
        let up = self.balancer.usable() > 0;
        let back = &proxy.state.back;
        if back.up.swap(up, Relaxed) != up {
            let since = back.last_change.swap(now.as_millis(), Relaxed);
            if up {
                back.down_ms.fetch_add(now.as_millis().saturating_sub(since), Relaxed);
            } else {
                back.went_down.fetch_add(1, Relaxed);
            }
        }
    }
}

/// How far a server's slow start has come: elapsed and whole time in ms; `None` when it is over.
pub fn ramp(server: &Server, now: Mono) -> Option<(u64, u64)> {
    let whole = u64::try_from(server.slowstart?.as_millis()).ok()?;
    if server.state.op() != Op::Starting {
        return None;
    }
    let since = server.state.last_change.load(Relaxed);
    Some((now.as_millis().saturating_sub(since), whole))
}

fn view(server: &Server, now: Mono) -> ServerView {
    let state = &server.state;
    let weight = state.weight.load(Relaxed);
    let (ip, port) = match &**state.target.load() {
        Target::Inet(a) => (Some(a.ip()), a.port()),
        _ => (None, 0),
    };
    let guid = state.guid.as_deref().map(str::as_bytes);
    ServerView {
        weight,
        eweight: balance::effective_weight(weight, ramp(server, now)),
        usable: state.is_usable(),
        backup: server.backup,
        seed: server.hash_key.seed(state.id, ip, port, guid),
        ..ServerView::new(state.id)
    }
}
