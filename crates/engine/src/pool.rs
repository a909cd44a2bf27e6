//! Idle connections to servers, kept for the next request (manual, `http-reuse`).
//!
//! Each worker keeps its own, last in first out, so that the warmest is used and the others can grow old. A
//! connection that waits here belongs to no task: the driver notes when its server closes it, and the
//! next who wants it, or the sweep that runs every second, lets it go.

use std::cell::{Cell, RefCell};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::grow::Grow;
use model::Server;
use program::Program;
use rt::{Mono, RemoteNotify};

use crate::transport::{Parted, Transport};

/// What makes two connections to one server different: source address, PROXY header, destination, name. Two that
/// are equal may stand in for each other.
pub type Identity = u64;

/// A connection at rest.
pub struct Idle {
    /// Its socket.
    pub socket: Transport,
    /// See [`Identity`].
    pub identity: Identity,
    /// Requests it has served.
    pub requests: u32,
    /// It has served requests of more than one client connection, or one that was safely reused: servers are
    /// expected to keep such connections, so `aggressive` takes them for first requests.
    pub safe: bool,
    since: Mono,
}

/// The idle connections of one worker to one server.
#[derive(Default)]
struct Pool {
    idle: RefCell<Vec<Idle>>,
    /// When the next part of what grew old is let go.
    purge: Cell<Mono>,
}

/// The idle connections of one worker.
#[derive(Default)]
pub struct Pools {
    /// By proxy and server, as indices of the program.
    servers: Vec<Grow<Pool>>,
    count: Cell<usize>,
    /// Descriptors: with so many in use no connection is put to rest, and with so many one at rest goes for each new one.
    low: u64,
    high: u64,
}

impl Pools {
    /// Empty pools for all servers.
    pub fn new(program: &Program) -> Pools {
        let of_proxy = |p: &program::Proxy| p.servers.iter().map(|_| Pool::default()).collect();
        let part = |percent: u32| program.global.ulimit_n.saturating_mul(percent.into()) / 100;
        Pools {
            servers: program.proxies.iter().map(of_proxy).collect(),
            count: Cell::new(0),
            low: part(program.global.tune.pool_low_fd),
            high: part(program.global.tune.pool_high_fd),
        }
    }

    fn pool(&self, proxy: u32, server: u32) -> Option<&RefCell<Vec<Idle>>> {
        let pools = self.servers.get(proxy as usize)?;
        // Servers are added while the worker runs.
        while pools.len() <= server as usize {
            pools.push(Pool::default()).ok()?;
        }
        Some(&pools.get(server as usize)?.idle)
    }

    /// How many connections rest here in all.
    pub fn len(&self) -> usize {
        self.count.get()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a connection that is still alive. `safe_only` leaves those that never served a second client.
    pub fn take(
        &self,
        proxy: u32,
        server: u32,
        identity: Identity,
        safe_only: bool,
        state: &Server,
    ) -> Option<Idle> {
        let mut pool = self.pool(proxy, server)?.borrow_mut();
        let mut i = pool.len();
        while i > 0 {
            i -= 1;
            let idle = &pool[i];
            if !idle.is_quiet() {
                // Whatever it has to say belongs to no request.
                pool.remove(i);
                self.less(state);
            } else if idle.identity == identity && (idle.safe || !safe_only) {
                let idle = pool.remove(i);
                self.less(state);
                return Some(idle);
            }
        }
        None
    }

    /// Makes room for a new connection to a server when descriptors become few: the oldest at rest goes.
    pub fn make_room(&self, proxy: u32, server: u32, fresh: &Transport, state: &Server) {
        if in_use(fresh) < self.high {
            return;
        }
        let Some(pool) = self.pool(proxy, server) else { return };
        let mut pool = pool.borrow_mut();
        if !pool.is_empty() {
            pool.remove(0);
            self.less(state);
        }
    }

    /// Puts a connection to rest, unless the server has enough of them (`limit`, negative: no limit), keeps none
    /// (`pool-purge-delay 0`), or descriptors are few.
    pub fn give(&self, proxy: u32, server: u32, mut idle: Idle, config: &program::Server) {
        let (limit, state) = (config.pool_max_conn, &*config.state);
        let Some(pool) = self.pool(proxy, server) else { return };
        if config.pool_purge_delay.is_zero() || in_use(&idle.socket) >= self.low {
            return;
        }
        let rests = state.idle.load(Relaxed);
        // The request that gives it back still counts as served.
        let over = || state.idle.load(Relaxed) + state.served.load(Relaxed) > state.need.load(Relaxed);
        let mut enough = over();
        if enough {
            // Those that rest count until somebody notices that their server has closed them, and those of other
            // workers can't be looked at: a worker that has none may always keep one.
            let mut pool = pool.borrow_mut();
            let before = pool.len();
            pool.retain(Idle::is_quiet);
            (pool.len()..before).for_each(|_| self.less(state));
            enough = !pool.is_empty() && over();
        }
        let full = enough || u32::try_from(limit).is_ok_and(|l| rests >= l);
        if full || idle.socket.is_hung_up() {
            return;
        }
        idle.since = rt::now();
        pool.borrow_mut().push(idle);
        self.count.set(self.count.get() + 1);
        state.idle.fetch_add(1, Relaxed);
    }

    /// Forgets all connections to a server: it went down or changed its address.
    pub fn flush(&self, proxy: u32, server: u32, state: &Server) {
        let Some(pool) = self.pool(proxy, server) else { return };
        for _ in pool.take() {
            self.less(state);
        }
    }

    /// Lets go of connections that their server closed and, once in each `pool-purge-delay`, of half of those that were
    /// not used for so long.
    fn sweep(&self, program: &Program, now: Mono) {
        for (proxy, pools) in program.proxies.iter().zip(&self.servers) {
            for (server, Pool { idle, purge }) in proxy.servers.iter().zip(pools) {
                let mut pool = idle.borrow_mut();
                if pool.is_empty() {
                    continue;
                }
                let before = pool.len();
                pool.retain(Idle::is_quiet);
                let old = |i: &&Idle| now.since(i.since) >= server.pool_purge_delay;
                // The oldest stand first.
                let aged = pool.iter().take_while(old).count();
                if aged > 0 && now >= purge.get() {
                    pool.drain(..aged.div_ceil(2));
                    purge.set(now + server.pool_purge_delay);
                }
                for _ in pool.len()..before {
                    self.less(&server.state);
                }
            }
        }
    }

    fn less(&self, state: &Server) {
        self.count.set(self.count.get() - 1);
        state.idle.fetch_sub(1, Relaxed);
    }
}

/// How many descriptors are in use, at least: the kernel gives out the lowest number that is free.
fn in_use(fresh: &Transport) -> u64 {
    // Simulated sockets have no number that means anything.
    fresh.raw().fd().map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or(0))
}

impl Idle {
    /// A connection that may rest.
    pub fn new(socket: Transport, identity: Identity, requests: u32, safe: bool) -> Idle {
        Idle { socket, identity, requests, safe, since: rt::now() }
    }
}

/// An idle connection on its way from one worker to another.
struct Parcel {
    socket: Parted,
    identity: Identity,
    requests: u32,
    safe: bool,
}

/// Where a worker that was asked puts its answer.
#[derive(Default)]
struct Letterbox {
    answer: Mutex<Option<Parcel>>,
    answered: RemoteNotify,
}

/// How many other workers are asked before a new connection is opened.
const ASKED: usize = 3;

/// Asks other workers for an idle connection (`tune.idle-pool.shared`).
pub async fn take_over(
    worker: &crate::Worker,
    proxy: u32,
    server: u32,
    identity: Identity,
    safe_only: bool,
) -> Option<Idle> {
    let count = rt::worker_count();
    for step in 1..count.min(ASKED + 1) {
        let other = (worker.index + step) % count;
        let letterbox = Arc::new(Letterbox::default());
        let reply = letterbox.clone();
        let job = move || {
            let found = crate::run::with_worker(|w| {
                let config = w.shared.program.proxy(proxy).servers.get(server as usize)?;
                w.pools.take(proxy, server, identity, safe_only, &config.state)
            });
            let parcel = found.flatten().and_then(Idle::pack);
            *reply.answer.lock().unwrap_or_else(|p| p.into_inner()) = parcel;
            reply.answered.notify();
        };
        if !rt::send_to(other, Box::new(job)) {
            continue;
        }
        letterbox.answered.notified().await;
        let parcel = letterbox.answer.lock().unwrap_or_else(|p| p.into_inner()).take();
        if let Some(idle) = parcel.and_then(Parcel::unpack) {
            return Some(idle);
        }
    }
    None
}

impl Idle {
    /// Whether the connection stands and its server has said nothing since: what it says now belongs to no request.
    pub fn is_quiet(&self) -> bool {
        if self.socket.is_hung_up() {
            return false;
        }
        // The last read may have left the socket marked readable though it was empty: one look tells.
        !self.socket.is_readable() || self.socket.try_recv(&mut [0]).is_none()
    }

    fn pack(self) -> Option<Parcel> {
        let socket = self.socket.detach().ok()?;
        Some(Parcel { socket, identity: self.identity, requests: self.requests, safe: self.safe })
    }
}

impl Parcel {
    fn unpack(self) -> Option<Idle> {
        let socket = self.socket.attach().ok()?;
        socket.raw().reset_on_close();
        Some(Idle::new(socket, self.identity, self.requests, self.safe))
    }
}

/// Sweeps a worker's pools once a second, for ever.
pub async fn sweeper(worker: Rc<crate::Worker>) {
    let program: Arc<Program> = worker.shared.program.clone();
    loop {
        rt::sleep(Duration::from_secs(1)).await;
        worker.pools.sweep(&program, rt::now());
        crate::stick::sweep(&worker);
        if worker.index == 0 {
            program.proxies.iter().flat_map(|p| &p.servers).for_each(|s| s.state.fade_need());
        }
    }
}
