//! How the servers of a backend are chosen and waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use balance::queue::{Gate, Queue};
use balance::{Algorithm, Balancer, ServerView, Settings};
use base::grow::Grow;
use model::server::{Op, Target};
use program::Server;
use program::proxy::{Balance, Mode, Proxy};
use rt::{Mono, RemoteNotify};

use super::pool::Quays;

/// How the servers of one backend are chosen and waited for.
pub struct Backend {
    /// The algorithm and its schedule.
    pub balancer: Balancer,
    /// For each server, its places and its queue. A slot outlives its server: the next one of its index takes
    /// it over, empty.
    pub slots: Grow<Arc<Slot>>,
    /// Requests that any server may take.
    pub queue: Arc<Queue<Ticket>>,
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
    pub quays: Quays,
}

/// A request that waits: whoever gives it a place notes the server and wakes it.
pub type Ticket = Arc<Waiting>;

/// A place that was given. Who gave it may know the server by another index than who waits: requests of
/// configurations that follow each other wait in one queue.
pub struct Given {
    /// Where the place is.
    pub slot: Arc<Slot>,
    /// The index of the server for who gave it.
    pub server: u32,
}

/// See [`Ticket`].
#[derive(Default)]
pub struct Waiting {
    /// The place, once there is one.
    pub given: std::sync::OnceLock<Given>,
    /// Wakes the request.
    pub notify: RemoteNotify,
}

fn settings(proxy: &Proxy) -> Settings {
    let algorithm = match &proxy.balance {
        Balance::RoundRobin => Algorithm::RoundRobin,
        Balance::StaticRr => Algorithm::StaticRr,
        Balance::LeastConn => Algorithm::LeastConn,
        Balance::First => Algorithm::First,
        // Lines are no load that could be compared.
        Balance::Random(_) if proxy.mode == Mode::Log => Algorithm::Random { draws: 1 },
        Balance::Random(draws) => Algorithm::Random { draws: *draws },
        Balance::Sticky => Algorithm::Sticky,
        Balance::Source
        | Balance::Uri(_)
        | Balance::UrlParam(_)
        | Balance::Header { .. }
        | Balance::RdpCookie(_)
        | Balance::Hash(_)
        | Balance::LogHash(_) => Algorithm::Hash(proxy.hash),
    };
    Settings { algorithm, allbackups: proxy.options.allbackups, balance_factor: proxy.hash_balance_factor }
}

impl Backend {
    /// Takes the place of another: servers that stay keep their places, and whoever waits goes on waiting.
    pub(crate) fn succeed(proxy: &Proxy, now: Mono, before: &Arc<Backend>, was: &Proxy) -> Arc<Backend> {
        let settings = settings(proxy);
        let known =
            |state: &Arc<model::Server>| was.servers.numbered().find(|(_, s)| Arc::ptr_eq(&s.state, state));
        let same = proxy.servers.bound() == was.servers.bound()
            && proxy
                .servers
                .iter()
                .zip(was.servers.iter())
                .all(|(now, was)| Arc::ptr_eq(&now.state, &was.state));
        if same && *before.balancer.settings() == settings {
            before.refresh(proxy, now);
            return before.clone();
        }
        let slot = |server: &Server| {
            let (at, _) = known(&server.state)?;
            before.slots.get(at as usize).cloned()
        };
        let backend = Backend {
            balancer: Balancer::new(settings),
            slots: proxy.servers.iter().map(|s| slot(&s).unwrap_or_default()).collect(),
            queue: before.queue.clone(),
        };
        backend.refresh(proxy, now);
        Arc::new(backend)
    }

    pub(crate) fn new(proxy: &Proxy, now: Mono) -> Backend {
        let backend = Backend {
            balancer: Balancer::new(settings(proxy)),
            slots: (0..proxy.servers.bound()).map(|_| Arc::default()).collect(),
            queue: Arc::new(Queue::new()),
        };
        let downs = proxy.state.back.went_down.load(Relaxed);
        backend.refresh(proxy, now);
        // A backend that its configuration gives no server did not lose it.
        if !proxy.servers.iter().any(|server| begins_usable(&server)) {
            proxy.state.back.went_down.store(downs, Relaxed);
        }
        backend
    }

    /// Publishes a schedule that fits the servers' state. How often a server has got the cookie of another.
    pub fn refresh(&self, proxy: &Proxy, now: Mono) -> usize {
        let equal = super::cookies::renew(proxy, false);
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
        equal
    }
}

/// Whether a server serves as far as its own line says: what it tracks, resolvers and a file of server states
/// take it out later, and the last one that goes is a loss of the backend.
fn begins_usable(server: &Server) -> bool {
    let said = server.state.configured.lock();
    !said.disabled && !said.initially_down && said.weight > 0
}

/// How far a server's slow start has come: elapsed and whole time in ms; `None` when it is over.
pub fn ramp(server: &Server, now: Mono) -> Option<(u64, u64)> {
    let whole = u64::try_from(server.slowstart?.as_millis()).ok()?;
    if server.state.op() != Op::Starting {
        return None;
    }
    Some((server.state.unchanged_ms(now, Mono::ZERO), whole))
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
