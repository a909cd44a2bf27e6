//! Idle connections to servers, kept for the next request (manual, `http-reuse`).
//!
//! Each worker keeps its own ([`rest`] says which is used first). A connection that waits here belongs to no
//! task: the driver notes when its server closes it, and the next who wants it, or the sweep that runs every
//! second, lets it go.
//!
//! With several workers (and `tune.idle-pool.shared`) connections wait at a quay, where another worker that
//! has none takes them without asking. What a quay has no room for, and encrypted connections, whose state
//! can't be shared, have to be asked for.

use std::cell::{Cell, RefCell};
use std::os::fd::AsRawFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use base::grow::Grow;
use link::transport::Transport;
use model::Server;
use model::server_conns::{Seat, is_safe};
use mux::Mux;
use program::Program;
use rt::{Mono, Quay};

use crate::{At, FarmWorker};

mod find;
mod home;
mod identity;
mod opening;
mod place;
mod rest;
mod share;

pub use find::{idle, idle_for_check};
pub use home::Home;
pub use identity::{Fit, Traits};
pub use opening::Opening;
pub use rest::Order;
use rest::{Rest, Resting};
pub use share::{Quays, close_one, take_over};

/// What makes two connections to one server different: source address, PROXY header, destination, name. Two
/// that are equal may stand in for each other.
pub type Identity = u64;

/// A connection at rest.
pub struct Idle {
    /// Its socket.
    pub socket: Transport,
    /// See [`Identity`].
    pub identity: Identity,
    /// Requests it has served.
    pub requests: u32,
    /// What it holds of a server with `strict-maxconn`.
    pub seat: Option<Seat>,
}

/// The idle connections of one worker to one server.
#[derive(Default)]
struct Pool {
    idle: RefCell<Rest>,
    /// Connections that carry many streams, idle or not.
    muxes: RefCell<Vec<Rc<Mux>>>,
    /// Those that only one client uses, and keeps.
    private: RefCell<Vec<Weak<Mux>>>,
    /// Those that will, and are being opened.
    openings: RefCell<Vec<Rc<Opening>>>,
    /// Whether the last connection spoke HTTP/2.
    spoke_h2: Cell<bool>,
    /// When the next part of what nobody needs is let go, while there is anything.
    purge: Cell<Option<Mono>>,
}

/// The idle connections of one worker.
#[derive(Default)]
pub struct Pools {
    /// By proxy and server, as indices of the program.
    servers: Grow<Grow<Pool>>,
    count: Cell<usize>,
    /// Descriptors: with so many in use no connection is put to rest, and with so many one at rest goes for
    /// each new one.
    low: Cell<u64>,
    high: u64,
    /// Another configuration runs, and what comes to rest goes to its pools.
    closed: Cell<bool>,
}

impl Pools {
    /// Empty pools for all servers.
    pub fn new(program: &Program) -> Pools {
        let of_proxy =
            |p: &program::Proxy| (0..p.servers.bound()).map(|_| Pool::default()).collect::<Grow<_>>();
        let part = |percent: u32| program.global.ulimit_n.saturating_mul(percent.into()) / 100;
        Pools {
            servers: program.proxies.iter().map(|p| of_proxy(&p)).collect(),
            count: Cell::new(0),
            low: Cell::new(part(program.global.tune.pool_low_fd)),
            high: part(program.global.tune.pool_high_fd),
            closed: Cell::new(false),
        }
    }

    fn pool(&self, proxy: u32, server: u32) -> Option<&RefCell<Rest>> {
        Some(&self.of(proxy, server)?.idle)
    }

    fn of(&self, proxy: u32, server: u32) -> Option<&Pool> {
        // Backends are added while the worker runs, too.
        while self.servers.len() <= proxy as usize {
            self.servers.push(Grow::default()).ok()?;
        }
        let pools = self.servers.get(proxy as usize)?;
        // Servers are added while the worker runs.
        while pools.len() <= server as usize {
            pools.push(Pool::default()).ok()?;
        }
        pools.get(server as usize)
    }

    /// A connection of many streams that takes another one, if `may_use` likes it; of those at rest the one
    /// that was used longest ago, as in HAProxy.
    pub fn mux(
        &self,
        proxy: u32,
        server: u32,
        identity: Identity,
        may_use: impl Fn(&Mux) -> bool,
    ) -> Option<Rc<Mux>> {
        let mut muxes = self.of(proxy, server)?.muxes.borrow_mut();
        muxes.retain(|mux| !mux.is_closing());
        let fits = |mux: &Rc<Mux>| mux.identity() == identity && mux.has_room() && may_use(mux);
        let at = muxes.iter().position(fits)?;
        let mux = muxes.get(at)?.clone();
        if mux.is_idle() {
            muxes.get_mut(at..)?.rotate_left(1);
        }
        Some(mux)
    }

    /// Whether this worker has another connection of many streams, whomever it fits, as in HAProxy.
    pub fn has_another(&self, proxy: u32, server: u32, mux: &Mux) -> bool {
        let others = |other: &Rc<Mux>| !std::ptr::eq(&raw const **other, mux) && !other.is_closing();
        self.of(proxy, server).is_some_and(|pool| pool.muxes.borrow().iter().any(others))
    }

    /// Lets others use a connection of many streams.
    pub fn share(&self, proxy: u32, server: u32, mux: Rc<Mux>, config: &program::Server) {
        if self.closed.get() {
            if let Some((heir, at)) = FarmWorker::heir(config) {
                heir.pools.share(at.proxy, at.server, mux, config);
            }
            return;
        }
        if let Some(pool) = self.of(proxy, server) {
            pool.muxes.borrow_mut().push(mux);
        }
    }

    /// Remembers a connection of many streams that one client keeps for itself, until the server goes down.
    pub fn note_private(&self, proxy: u32, server: u32, mux: &Rc<Mux>, config: &program::Server) {
        if self.closed.get() {
            if let Some((heir, at)) = FarmWorker::heir(config) {
                heir.pools.note_private(at.proxy, at.server, mux, config);
            }
            return;
        }
        if let Some(pool) = self.of(proxy, server) {
            let mut private = pool.private.borrow_mut();
            private.retain(|mux| mux.strong_count() > 0);
            private.push(Rc::downgrade(mux));
        }
    }

    /// The connections of many streams that are being opened.
    pub fn openings(&self, proxy: u32, server: u32) -> Option<&RefCell<Vec<Rc<Opening>>>> {
        Some(&self.of(proxy, server)?.openings)
    }

    /// Notes whether a server that was asked spoke HTTP/2.
    pub fn note_h2(&self, proxy: u32, server: u32, h2: bool) {
        if let Some(pool) = self.of(proxy, server) {
            pool.spoke_h2.set(h2);
        }
    }

    /// Whether a server spoke HTTP/2 when it was last asked.
    pub fn spoke_h2(&self, proxy: u32, server: u32) -> bool {
        self.of(proxy, server).is_some_and(|pool| pool.spoke_h2.get())
    }

    /// How many connections rest here in all.
    pub fn len(&self) -> usize {
        let muxes = |pool: &Pool| {
            let all = pool.muxes.borrow();
            all.iter().filter(|mux| mux.is_idle() && !mux.is_closing()).count()
        };
        let of_servers = self.servers.iter().flat_map(|pools| pools.iter());
        self.count.get() + of_servers.map(muxes).sum::<usize>()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a connection that is still alive.
    pub fn take(
        &self,
        proxy: u32,
        server: u32,
        identity: Identity,
        order: Order,
        state: &Server,
    ) -> Option<Idle> {
        let mut pool = self.pool(proxy, server)?.borrow_mut();
        while let Some(resting) = pool.next(identity, order) {
            let fits = resting.identity == identity;
            // Whatever one that does not fit has to say belongs to no request.
            let idle = self.leave(resting, state);
            if fits && let Some(idle) = idle.filter(Idle::is_quiet) {
                return Some(idle);
            }
        }
        None
    }

    /// A connection ends its rest; `None` if another worker has taken it.
    fn leave(&self, resting: Resting, state: &Server) -> Option<Idle> {
        self.count.set(self.count.get() - 1);
        let Resting { place, identity, requests, seat, .. } = resting;
        let socket = place.leave()?;
        state.conns.leave(is_safe(requests));
        Some(Idle { socket, identity, requests, seat })
    }

    /// Makes room for a new connection to a server when descriptors become few: the oldest at rest goes, of
    /// this server or, where it has none, of any.
    pub fn make_room(&self, at: At, fresh: &Transport, state: &Server, program: &Program) {
        if in_use(fresh) < self.high || self.close_one(at, state) || self.count.get() == 0 {
            return;
        }
        for (proxy, of) in program.proxies.numbered() {
            for (server, config) in of.servers.numbered() {
                if self.close_one(At { proxy, server }, &config.state) {
                    return;
                }
            }
        }
    }

    /// Closes a connection that rests, the oldest one; whether there was any.
    pub fn close_one(&self, At { proxy, server }: At, state: &Server) -> bool {
        let Some(pool) = self.of(proxy, server) else { return false };
        let mut idle = pool.idle.borrow_mut();
        if std::iter::from_fn(|| idle.oldest()).any(|oldest| self.leave(oldest, state).is_some()) {
            return true;
        }
        let muxes = pool.muxes.borrow();
        let resting = muxes.iter().find(|mux| mux.is_idle() && !mux.is_closing());
        resting.map(|mux| mux.retire()).is_some()
    }

    /// Puts a connection to rest, unless the server has enough of them (`limit`, negative: no limit), keeps
    /// none (`pool-purge-delay 0`), or descriptors are few. `quay` is where other workers find it. What is
    /// not kept comes back, for its user to close.
    pub fn give(
        &self,
        proxy: u32,
        server: u32,
        idle: Idle,
        config: &program::Server,
        quay: Option<&Arc<Quay>>,
    ) -> Option<Idle> {
        let (limit, state) = (config.pool_max_conn, &*config.state);
        let Some(pool) = self.pool(proxy, server) else { return Some(idle) };
        // One that was deleted meanwhile was told off all connections already.
        if config.pool_purge_delay.is_zero() || state.is_removed() {
            return Some(idle);
        }
        if in_use(&idle.socket) >= self.low.get() {
            return self.pass_on(idle, config, quay);
        }
        let conns = &state.conns;
        let over = || conns.are_enough(config.pool_low_conn);
        if idle.socket.is_hung_up() {
            return Some(idle);
        }
        let full = || u32::try_from(limit).is_ok_and(|l| conns.idle() >= l);
        if over() || full() {
            let mut pool = pool.borrow_mut();
            // Those that rest count until somebody notices that their server has closed them.
            self.clear(&mut pool, state);
            // As in HAProxy those that rest stay, whomever they fit. Those of other workers can't be looked
            // at: a worker that has none may keep one.
            if full() || (!pool.is_empty() && over()) {
                return Some(idle);
            }
        }
        let mut pool = pool.borrow_mut();
        if quay.is_some_and(|q| q.is_full()) {
            // Perhaps with those that others have taken.
            self.clear(&mut pool, state);
        }
        conns.rest(is_safe(idle.requests));
        pool.push(Resting::new(idle, quay));
        self.count.set(self.count.get() + 1);
        None
    }

    /// No connection rests here: descriptors are few, or another configuration runs, whose pools take it.
    #[cold]
    fn pass_on(&self, idle: Idle, config: &program::Server, quay: Option<&Arc<Quay>>) -> Option<Idle> {
        if !self.closed.get() {
            return Some(idle);
        }
        let Some((heir, at)) = FarmWorker::heir(config) else { return Some(idle) };
        let Some(now) = heir.farm.program.find_server(at.proxy, at.server) else { return Some(idle) };
        heir.pools.give(at.proxy, at.server, idle, &now, quay)
    }

    /// Whether nothing is known of a server and its connections.
    pub(crate) fn is_unused(&self, at: At) -> bool {
        let known = self.servers.get(at.proxy as usize).and_then(|pools| pools.get(at.server as usize));
        known.is_none_or(|pool| {
            let none = pool.idle.borrow().is_empty() && pool.muxes.borrow().is_empty();
            none && pool.private.borrow().is_empty() && !pool.spoke_h2.get()
        })
    }

    /// Hands the connections to a server over to the pools of the configuration that takes the place of this
    /// one, where the server is at `to`.
    pub(crate) fn hand_over(&self, at: At, next: &Pools, to: At) {
        let known = self.servers.get(at.proxy as usize).and_then(|pools| pools.get(at.server as usize));
        let Some(old) = known else { return };
        let Some(new) = next.of(to.proxy, to.server) else { return };
        let idle = old.idle.take();
        next.count.set(next.count.get() + idle.len());
        self.count.set(self.count.get() - idle.len());
        *new.idle.borrow_mut() = idle;
        *new.muxes.borrow_mut() = old.muxes.take();
        *new.private.borrow_mut() = old.private.take();
        new.spoke_h2.set(old.spoke_h2.get());
        new.purge.set(old.purge.get());
    }

    /// From now on all that would come to rest here does so where this worker keeps connections now.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.low.set(0);
    }

    /// Lets go of connections that ended or that other workers have taken.
    fn clear(&self, pool: &mut Rest, state: &Server) {
        pool.extract(|r| !r.place.is_quiet(), |r| drop(self.leave(r, state)));
    }

    /// Forgets all connections to a server: it went down or changed its address.
    pub fn flush(&self, proxy: u32, server: u32, state: &Server) {
        let Some(pool) = self.of(proxy, server) else { return };
        pool.idle.take().extract(|_| true, |r| drop(self.leave(r, state)));
        pool.muxes.take().iter().for_each(|mux| mux.retire());
        pool.private.take().iter().filter_map(Weak::upgrade).for_each(|mux| mux.retire());
    }

    /// A server was deleted: what is remembered of it goes, for its index may be another's next.
    pub fn forget(&self, proxy: u32, server: u32, state: &Server) {
        self.flush(proxy, server, state);
        if let Some(pool) = self.of(proxy, server) {
            pool.spoke_h2.set(false);
            pool.purge.set(None);
        }
    }

    /// Lets go of connections that their server closed and, once in each `pool-purge-delay`, of half of those
    /// that nobody is expected to need; `fades`: this is the worker that then lets the estimates of the need
    /// fade. Says when the next one has something to let go of, if it is soon.
    pub fn sweep(&self, program: &Program, now: Mono, fades: bool) -> Option<Mono> {
        let mut next: Option<Mono> = None;
        for (at, proxy) in program.proxies.numbered() {
            for (server_at, server) in proxy.servers.numbered() {
                let Some(pool) = self.of(at, server_at) else { continue };
                let conns = &server.state.conns;
                self.clear(&mut pool.idle.borrow_mut(), &server.state);
                pool.muxes.borrow_mut().retain(|mux| !mux.is_closing());
                if conns.need() == 0 && conns.idle() == 0 {
                    pool.purge.set(None);
                    continue;
                }
                let due = pool.purge.get().filter(|due| now >= *due).is_some();
                if due || pool.purge.get().is_none() {
                    pool.purge.set(Some(now + server.pool_purge_delay));
                }
                next = next.into_iter().chain(pool.purge.get()).min();
                if !due {
                    continue;
                }
                self.purge(pool, &server.state);
                if fades {
                    conns.fade();
                }
            }
        }
        next
    }

    /// Closes this worker's part of half of the connections that rest beyond the need, and one more: the
    /// oldest.
    fn purge(&self, pool: &Pool, state: &Server) {
        let (mut idle, muxes) = (pool.idle.borrow_mut(), pool.muxes.borrow());
        let resting = || muxes.iter().filter(|mux| mux.is_idle());
        let (own, all) = (idle.len() + resting().count(), state.conns.idle().max(1) as usize);
        let excess = state.conns.excess() as usize;
        if excess == 0 {
            return;
        }
        let part = (excess * own / all).div_ceil(2) + 1;
        let of_h1 = part.min(idle.len());
        std::iter::from_fn(|| idle.oldest()).take(of_h1).for_each(|r| drop(self.leave(r, state)));
        resting().take(part - of_h1).for_each(|mux| mux.retire());
    }
}

/// How many descriptors are in use, at least: the kernel gives out the lowest number that is free.
fn in_use(fresh: &Transport) -> u64 {
    // Simulated sockets have no number that means anything.
    fresh.raw().fd().map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or(0))
}

impl Idle {
    /// A connection that may rest.
    pub fn new(socket: Transport, identity: Identity, requests: u32, seat: Option<Seat>) -> Idle {
        Idle { socket, identity, requests, seat }
    }

    /// Whether the connection stands and its server has said nothing since: what it says now belongs to no
    /// request.
    pub fn is_quiet(&self) -> bool {
        is_quiet(&self.socket)
    }
}

fn is_quiet(socket: &Transport) -> bool {
    // The last read may have left the socket marked readable though it was empty: one look tells.
    !socket.is_hung_up() && (!socket.is_readable() || socket.try_recv(&mut [0]).is_none())
}
