//! Floor 7: servers and backends alive: their state and its changes, who waits for them, connections at rest,
//! checks.
//!
//! The farm is told what it needs by value, and knows neither streams nor rules nor how a log line is formed.
//! What it has to say to those above goes through [`Above`].
#![forbid(unsafe_code)]

mod backend;
pub mod check;
pub mod cookies;
pub mod dial;
pub mod dynamic;
pub mod names;
pub mod pool;
pub mod queue;
pub mod secure;
pub mod state;
mod succession;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::fleet::{Fleet, Held, Pin};
use lang::Env;
use model::mail::Letter;
use model::server::{Op, admin};
use model::term::Cause;
use model::{Conn, Txn};
use program::{Program, Proxy, Server};
use rt::Mono;

pub use backend::{Backend, Slot, Ticket, Waiting, ramp};

/// A server, by indices of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Backend.
    pub proxy: u32,
    /// Server in it.
    pub server: u32,
}

/// The servers and backends of one configuration, alive.
pub struct Farm {
    /// The configuration.
    pub program: Arc<Program>,
    /// For each proxy of the program, how its servers are chosen.
    pub backends: Fleet<Arc<Backend>>,
    /// How many configurations ran in this process before this one.
    pub epoch: u32,
    /// When the process started.
    started: Mono,
    /// Servers by their live state, once somebody asked.
    places: std::sync::OnceLock<std::collections::HashMap<usize, At>>,
}

/// See [`Farm::stay`]. Holds nothing where all that is remembered stands in the configuration.
#[derive(Default)]
pub struct Stay {
    _backend: Pin<Arc<Backend>>,
    _server: Pin<Server>,
    _proxy: Pin<Proxy>,
}

impl Farm {
    /// The farm of a program, which is about to run.
    pub fn new(program: Arc<Program>, started: Mono) -> Farm {
        begin(&program, started);
        inherit(&program, started);
        let backends = program.proxies.iter().map(|p| Arc::new(Backend::new(&p, started))).collect();
        Farm { program, backends, epoch: 0, started, places: Default::default() }
    }

    /// How the servers of a proxy are chosen, by its index.
    #[inline]
    pub fn backend(&self, proxy: u32) -> Held<'_, Arc<Backend>> {
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

    /// Follows a change of a server's state, weight or address in its backend. How often a server has
    /// got the cookie of another by it.
    pub fn refresh(&self, proxy: u32, now: Mono) -> usize {
        let proxy = (&*self.program.proxy(proxy), &*self.backend(proxy));
        proxy.1.refresh(proxy.0, now)
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

/// What a check knows when it evaluates something.
pub struct Seen<'s> {
    /// The connection that it stands for.
    pub conn: &'s Conn,
    /// The exchange.
    pub txn: &'s Txn,
    /// What the server has said.
    pub answer: &'s [u8],
    /// The connection to the server, once there is one.
    pub socket: Option<&'s rt::Socket>,
}

/// Those above the farm: whom it tells what happened, and who ends what is theirs.
pub trait Above {
    /// A line about a proxy, in its logs.
    fn line(&self, proxy: u32, level: u8, text: &str);

    /// A line on standard error, where there is one to read it.
    fn console(&self, word: &str, text: &str);

    /// A mail about a server, which is to be sent to each mailer that it names.
    fn mail(&self, letter: Letter);

    /// Ends the sessions of this worker whose backend is `proxy`, and whose server `of` names.
    fn end_sessions(&self, cause: Cause, proxy: u32, of: &dyn Fn(u32) -> bool);

    /// Closes what clients of this worker keep to themselves of connections to a server: it went down or
    /// changed its address.
    fn let_go(&self, server: &Arc<model::Server>);

    /// What an expression makes without a client and without a stream.
    fn constant(&self, expr: &lang::Expr) -> Option<Box<[u8]>>;

    /// Evaluates something for a check.
    fn evaluate(&self, seen: Seen<'_>, f: &mut dyn FnMut(&Env<'_>));
}

/// One worker's share of the farm.
pub struct FarmWorker {
    /// Index of the worker.
    pub index: usize,
    /// What it shares with the others.
    pub farm: Arc<Farm>,
    /// Idle connections to servers.
    pub pools: pool::Pools,
    /// Checks that run on this worker.
    pub checks: check::Running,
    /// Names that are kept fresh, on the worker that does it.
    pub names: names::Names,
    above: Box<dyn Above>,
    serial: Rc<Cell<u64>>,
    /// Another configuration runs.
    superseded: Cell<bool>,
    /// What goes on as long as this configuration runs.
    tasks: RefCell<Vec<rt::TaskId>>,
}

thread_local! {
    static WORKER: RefCell<Option<Rc<FarmWorker>>> = const { RefCell::new(None) };
}

impl FarmWorker {
    /// The share of the worker of this thread.
    pub fn new(index: usize, farm: Arc<Farm>, above: Box<dyn Above>) -> Rc<FarmWorker> {
        let pools = pool::Pools::new(&farm.program);
        let checks = check::Running::default();
        let names = names::Names::default();
        let serial = Rc::default();
        let (superseded, tasks) = (Cell::new(false), RefCell::default());
        Rc::new(FarmWorker { index, farm, pools, checks, names, above, serial, superseded, tasks })
    }

    /// Begins the checks that are this worker's. From here on jobs from other threads find it.
    pub fn start(self: &Rc<FarmWorker>) {
        check::start(self);
        WORKER.set(Some(self.clone()));
        names::start(self);
        self.resume();
    }

    /// Ends that.
    pub fn stop() {
        WORKER.set(None);
    }

    /// A number that no other connection of the process has.
    pub fn next_serial(&self) -> u64 {
        let n = self.serial.get();
        self.serial.set(n + 1);
        n * self.farm.program.world.workers as u64 + self.index as u64
    }
}

/// Runs `f` with the share of the worker of this thread, if it is one.
fn with_worker<R>(f: impl FnOnce(&Rc<FarmWorker>) -> R) -> Option<R> {
    WORKER.with_borrow(|w| w.as_ref().map(f))
}

/// Runs `job` on every worker, on this one at once.
fn on_all(worker: &Rc<FarmWorker>, job: impl Fn(&Rc<FarmWorker>) + Clone + Send + 'static) {
    for index in 0..worker.farm.program.world.workers {
        if index == worker.index {
            job(worker);
        } else {
            on(index, worker.farm.epoch, job.clone());
        }
    }
}

/// Runs `job` on another worker, unless that has another configuration by then, which the job knows nothing
/// of. A worker that has yet to take over this one's does so first.
fn on(index: usize, epoch: u32, job: impl FnOnce(&Rc<FarmWorker>) + Send + 'static) {
    let there = move || {
        let here = with_worker(|w| w.farm.epoch);
        match here.map(|here| here.cmp(&epoch)) {
            Some(std::cmp::Ordering::Equal) => drop(with_worker(job)),
            Some(std::cmp::Ordering::Less) => on(index, epoch, job),
            Some(std::cmp::Ordering::Greater) | None => {}
        }
    };
    rt::send_to(index, Box::new(there));
}
