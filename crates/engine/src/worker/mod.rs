//! What one worker owns: idle server connections, recycled memory, its log sinks.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bumpalo::Bump;
use farm::{Above, FarmWorker};
use model::world::profiling;
use model::{Peer, Txn};
use program::Program;

use crate::applets::{Applet, AppletDoor, Applets, Entry};
use crate::captured::Captured;
use crate::change::Change;
use crate::profile::Profile;
use crate::sessions::Sessions;
use crate::sinks::Sinks;

pub mod service;
mod shared;

pub use shared::{Exposed, ExposedSocket, Reloaded, Reloader, Shared};

/// Bad messages that a worker keeps.
const MOST_BAD: usize = 8;
/// Transactions kept for reuse.
const SPARE_TXNS: usize = 256;

thread_local! {
    static WORKER: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// One worker's share of a configuration. Connections hold it by `Rc`.
pub struct Worker {
    /// Index of the worker.
    pub index: usize,
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// The program, for those who remember which one their indices belong to.
    pub program: Rc<Arc<Program>>,
    /// Its share of the servers and backends.
    pub farm: Rc<FarmWorker>,
    /// Where log lines go.
    pub sinks: Sinks,
    /// Standard error, where changes of servers are told on it.
    pub console: Option<rt::FdWriter>,
    arena: Cell<Option<Box<Bump>>>,
    #[expect(clippy::vec_box, reason = "streams take the boxes themselves: a transaction is never moved")]
    txns: RefCell<Vec<Box<Txn>>>,
    scratch: Cell<Vec<u8>>,
    /// Since when the call at hand runs, where calls are measured.
    pub call_began: Cell<Option<std::time::Instant>>,
    /// Client connections of this worker, so that they can be listed and ended.
    pub sessions: Rc<Sessions>,
    /// Connections of this worker that no stream serves.
    pub applets: Rc<Applets>,
    /// Raised when the process stops.
    pub stop: Rc<Change>,
    /// When that was.
    pub stopped: Rc<Cell<Option<rt::Mono>>>,
    /// What calls took since they are measured.
    pub profiled: Rc<Cell<Profile>>,
    /// A connection ended: a listener that rests may go on.
    pub freed: Rc<Change>,
    /// Connections that are over for everyone but their clients.
    pub lingering: Rc<Cell<u32>>,
    /// The last message of each side that could not be parsed (`show errors`).
    pub errors: Rc<RefCell<VecDeque<Captured>>>,
    /// Another configuration runs.
    superseded: Cell<bool>,
    /// What became of the listeners then.
    moves: RefCell<Option<(std::rc::Weak<Worker>, Arc<Moves>)>>,
    /// What goes on as long as this configuration runs.
    tasks: RefCell<Vec<rt::TaskId>>,
}

/// What becomes of listening sockets when another configuration takes the place of one.
#[derive(Debug, Default)]
pub struct Moves {
    /// Those of frontends that stay: frontend and listener, before and now.
    pub frontends: HashMap<(u32, u32), (u32, u32)>,
    /// Those of the runtime API, by their place in the list.
    pub cli: HashMap<usize, usize>,
    /// Those of `log-forward` sections for streams: section and `bind` line, before and now.
    pub streams: HashMap<(usize, usize), (usize, usize)>,
    /// Those of `log-forward` sections for datagrams.
    pub datagrams: HashMap<(usize, usize), (usize, usize)>,
}

/// A transaction while a stream has it: the stream gives it back when it is dropped.
pub struct Lent(Option<Box<Txn>>);

impl Lent {
    /// For as long as the stream lives.
    pub fn new(txn: Box<Txn>) -> Lent {
        Lent(Some(txn))
    }

    /// The stream is being dropped and looks at it no more.
    pub fn end(&mut self) -> Option<Box<Txn>> {
        self.0.take()
    }
}

impl Deref for Lent {
    type Target = Txn;

    #[inline]
    fn deref(&self) -> &Txn {
        match &self.0 {
            Some(txn) => txn,
            None => unreachable!("it ends with its stream"),
        }
    }
}

impl DerefMut for Lent {
    #[inline]
    fn deref_mut(&mut self) -> &mut Txn {
        match &mut self.0 {
            Some(txn) => txn,
            None => unreachable!("it ends with its stream"),
        }
    }
}

impl Worker {
    /// The worker of this thread. `above` is what its share of the farm tells what happened.
    pub fn new(index: usize, shared: Arc<Shared>, above: Box<dyn Above>) -> Rc<Worker> {
        base::fleet::remember();
        model::trace::enter(index);
        let sinks = Sinks::new(index, &shared.farm, &shared.outlets, &shared.rings);
        let farm = FarmWorker::new(index, shared.farm.clone(), above);
        let measured = shared.program.world.process.profiling.load(Relaxed) == profiling::ON;
        rt::measure_waits(measured);
        let stderr = std::io::stderr();
        let console = shared.console.then(|| rt::FdWriter::new(stderr.as_fd()).ok()).flatten();
        Rc::new(Worker {
            index,
            program: Rc::new(shared.program.clone()),
            shared,
            farm,
            sinks,
            console,
            arena: Cell::new(Some(Box::default())),
            txns: RefCell::default(),
            scratch: Cell::default(),
            call_began: Cell::new(None),
            profiled: Rc::new(Cell::new(Profile::begun(measured))),
            sessions: Default::default(),
            applets: Rc::default(),
            stop: Default::default(),
            stopped: Rc::default(),
            freed: Default::default(),
            lingering: Rc::default(),
            errors: Rc::default(),
            superseded: Cell::new(false),
            moves: RefCell::default(),
            tasks: RefCell::default(),
        })
    }

    /// The worker of this thread under the configuration that takes the place of its own.
    pub fn succeed(&self, shared: Arc<Shared>, above: Box<dyn Above>) -> Rc<Worker> {
        let sinks = Sinks::new(self.index, &shared.farm, &shared.outlets, &shared.rings);
        let farm = self.farm.succeed(shared.farm.clone(), above);
        let stderr = std::io::stderr();
        Rc::new(Worker {
            index: self.index,
            program: Rc::new(shared.program.clone()),
            console: shared.console.then(|| rt::FdWriter::new(stderr.as_fd()).ok()).flatten(),
            shared,
            farm,
            sinks,
            arena: Cell::new(Some(Box::default())),
            txns: RefCell::new(self.txns.take()),
            scratch: Cell::default(),
            call_began: Cell::new(None),
            profiled: self.profiled.clone(),
            sessions: self.sessions.clone(),
            applets: self.applets.clone(),
            stop: self.stop.clone(),
            stopped: self.stopped.clone(),
            freed: self.freed.clone(),
            lingering: self.lingering.clone(),
            errors: self.errors.clone(),
            superseded: Cell::new(false),
            moves: RefCell::default(),
            tasks: RefCell::default(),
        })
    }

    /// The worker under the configuration that runs.
    pub fn current(self: &Rc<Worker>) -> Rc<Worker> {
        let other = if self.superseded.get() { with_worker(Rc::clone) } else { None };
        other.unwrap_or_else(|| self.clone())
    }

    /// Whether another configuration runs.
    #[inline]
    pub fn is_superseded(&self) -> bool {
        self.superseded.get()
    }

    /// Another configuration runs from here on: what this one does by itself ends.
    pub fn supersede(&self, next: &Rc<Worker>, moves: Arc<Moves>) {
        self.superseded.set(true);
        *self.moves.borrow_mut() = Some((Rc::downgrade(next), moves));
        for task in self.tasks.take() {
            rt::cancel(task);
        }
    }

    /// What became of the listeners when another configuration took the place of this one.
    pub fn moves(&self) -> Option<Arc<Moves>> {
        Some(self.moves.borrow().as_ref()?.1.clone())
    }

    /// The worker under the configuration that took the place of this one, as long as anybody knows it.
    pub fn next(&self) -> Option<Rc<Worker>> {
        self.moves.borrow().as_ref()?.0.upgrade()
    }

    /// Notes tasks that end with this configuration.
    pub fn keep_tasks(&self, tasks: Vec<rt::TaskId>) {
        self.tasks.borrow_mut().extend(tasks);
    }

    /// Begins something that goes on as long as this configuration runs.
    pub fn keep(&self, work: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().push(rt::spawn(work));
    }

    /// Runs `f` with memory for computed values, which is emptied afterwards.
    pub fn with_arena<R>(&self, f: impl FnOnce(&Bump) -> R) -> R {
        // Taken out for the time being: a nested use gets one of its own.
        let mut arena = self.arena.take().unwrap_or_default();
        let r = f(&arena);
        arena.reset();
        self.arena.set(Some(arena));
        r
    }

    /// Runs `f` with an empty byte buffer that keeps its memory.
    pub fn with_scratch<R>(&self, f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut scratch = self.scratch.take();
        scratch.clear();
        let r = f(&mut scratch);
        self.scratch.set(scratch);
        r
    }

    /// Keeps a bad message in place of the oldest one.
    pub fn keep_bad(&self, captured: Captured) {
        let mut kept = self.errors.borrow_mut();
        if kept.len() >= MOST_BAD {
            kept.pop_front();
        }
        kept.push_back(captured);
    }

    /// Transactions that wait for their next use, and the memory of the arena of rules.
    pub fn spare(&self) -> (usize, usize) {
        let arena = self.arena.take();
        let bytes = arena.as_ref().map_or(0, |arena| arena.allocated_bytes());
        self.arena.set(arena);
        (self.txns.borrow().len(), bytes)
    }

    /// An empty transaction.
    pub fn take_txn(&self) -> Box<Txn> {
        self.txns.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a transaction back.
    pub fn give_txn(&self, mut txn: Box<Txn>) {
        let mut spare = self.txns.borrow_mut();
        if spare.len() < SPARE_TXNS && !self.superseded.get() {
            txn.reset();
            spare.push(txn);
        }
    }
}

/// Makes a worker that of this thread: jobs from other threads reach it from now on.
pub fn enter(worker: &Rc<Worker>) {
    WORKER.set(Some(worker.clone()));
}

/// Has this thread be no worker any more.
pub fn leave() {
    WORKER.set(None);
}

/// Runs `f` with the worker of this thread, if it is one. Jobs from other threads reach it so.
pub fn with_worker<R>(f: impl FnOnce(&Rc<Worker>) -> R) -> Option<R> {
    WORKER.with_borrow(|w| w.as_ref().map(f))
}

/// Enters the connection that the task at hand serves, for as long as what is returned lives; see
/// [`crate::applets`]. `None` outside of a worker.
pub fn enter_applet(door: AppletDoor, source: Peer, local: Peer) -> Option<Entry> {
    with_worker(|worker| {
        let (serial, task) = (worker.farm.next_serial(), rt::current_task());
        let (accepted, date) = (rt::now(), rt::wall());
        worker.applets.enter(Applet { serial, door, source, local, task, accepted, date })
    })
    .flatten()
}

/// Runs `job` on every worker, on this one at once.
pub fn on_all(worker: &Rc<Worker>, job: impl Fn(&Rc<Worker>) + Clone + Send + 'static) {
    for index in 0..worker.shared.program.world.workers {
        if index == worker.index {
            job(worker);
        } else {
            let job = job.clone();
            let there = move || {
                let _ = with_worker(|w| job(w));
            };
            rt::send_to(index, Box::new(there));
        }
    }
}
