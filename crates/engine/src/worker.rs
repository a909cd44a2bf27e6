//! What one worker owns: idle server connections, recycled memory, its log sinks.

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bumpalo::Bump;
use model::Txn;
use model::world::profiling;

use crate::log::Sinks;
use crate::pool::Pools;
use crate::sessions::Profile;
use crate::shared::Shared;

/// Transactions kept for reuse.
const SPARE_TXNS: usize = 256;

/// One worker's share of a configuration. Connections hold it by `Rc`.
pub struct Worker {
    /// Index of the worker.
    pub index: usize,
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// Idle connections to servers.
    pub pools: Pools,
    /// Where log lines go.
    pub sinks: Sinks,
    /// Standard error, where changes of servers are told on it.
    pub console: Option<rt::FdWriter>,
    arena: Cell<Option<Box<Bump>>>,
    #[expect(clippy::vec_box, reason = "streams take the boxes themselves: a transaction is never moved")]
    txns: RefCell<Vec<Box<Txn>>>,
    scratch: Cell<Vec<u8>>,
    serial: Cell<u64>,
    /// Since when the call at hand runs, where calls are measured.
    pub call_began: Cell<Option<std::time::Instant>>,
    /// Checks that run on this worker.
    pub checks: crate::check::Running,
    /// Client connections of this worker, so that they can be listed and ended.
    pub sessions: crate::sessions::Sessions,
    /// Raised when the process stops.
    pub stop: crate::listener::Change,
    /// When that was.
    pub stopped: Cell<Option<rt::Mono>>,
    /// What calls took since they are measured.
    pub profiled: Cell<Profile>,
    /// A connection ended: a listener that rests may go on.
    pub freed: crate::listener::Change,
    /// Connections that are over for everyone but their clients.
    pub lingering: Cell<u32>,
    /// The last message of each side that could not be parsed (`show errors`).
    pub errors: RefCell<std::collections::VecDeque<crate::captured::Captured>>,
}

impl Worker {
    /// The worker of this thread.
    pub fn new(index: usize, shared: Arc<Shared>) -> Rc<Worker> {
        base::fleet::remember();
        let sinks = Sinks::new(&shared);
        let pools = Pools::new(&shared.program);
        let measured = shared.program.world.process.profiling.load(Relaxed) == profiling::ON;
        rt::measure_waits(measured);
        let stderr = std::io::stderr();
        let console = shared.console.then(|| rt::FdWriter::new(stderr.as_fd()).ok()).flatten();
        Rc::new(Worker {
            index,
            shared,
            pools,
            sinks,
            console,
            arena: Cell::new(Some(Box::default())),
            txns: RefCell::default(),
            scratch: Cell::default(),
            serial: Cell::new(0),
            call_began: Cell::new(None),
            profiled: Cell::new(Profile::begun(measured)),
            checks: Default::default(),
            sessions: Default::default(),
            stop: Default::default(),
            stopped: Cell::default(),
            freed: Default::default(),
            lingering: Cell::new(0),
            errors: RefCell::default(),
        })
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

    /// An empty transaction.
    pub fn take_txn(&self) -> Box<Txn> {
        self.txns.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a transaction back.
    pub fn give_txn(&self, mut txn: Box<Txn>) {
        let mut spare = self.txns.borrow_mut();
        if spare.len() < SPARE_TXNS {
            txn.reset();
            spare.push(txn);
        }
    }

    /// A number that no other connection of the process has.
    pub fn next_serial(&self) -> u64 {
        let n = self.serial.get();
        self.serial.set(n + 1);
        n * self.shared.program.world.workers as u64 + self.index as u64
    }
}
