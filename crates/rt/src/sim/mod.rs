//! Whole worlds from one seed.
//!
//! A [`World`] runs a future, and everything it spawns, on a worker whose driver is a simulated network.
//! Clients, proxy and servers are tasks that use the same [`Socket`](crate::Socket),
//! [`Listener`](crate::Listener) and [`Timer`](crate::Timer) as on Linux. Time is virtual: when no task can
//! go on, it jumps to the next arrival or deadline, so an hour of timeouts takes microseconds. Every delay
//! and fault is drawn from the seed, so a world that fails, fails again:
//!
//! ```
//! use rt::sim::{Faults, World};
//! let report = World::new(42, Faults::choppy().into()).run(async {
//!     rt::sleep(std::time::Duration::from_secs(3600)).await;
//!     rt::now()
//! });
//! assert_eq!(report.unwrap().elapsed.as_secs(), 3600);
//! ```
//!
//! A world is one thread with one worker; what several threads do to one atomic is out of its reach. What it
//! runs must draw from [`random`](crate::random) and [`now`](crate::now) only; note that iterating over a std
//! `HashMap` with its default hasher is a draw of its own.

mod datagram;
mod net;
pub(crate) mod ops;
mod options;
mod stream;

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::time::Mono;

use crate::addr::Addr;
use crate::driver::Driver;
use crate::inbox::Inbox;
use crate::worker::{Entered, Pulse, Room, Shared, Worker};
use crate::{buf, clock};

pub(crate) use net::is_active;
pub use options::{Faults, Options};

/// A world that has not begun.
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    options: Options,
}

/// What a world came to.
#[derive(Clone, Debug)]
pub struct Report<T> {
    /// What the future returned.
    pub value: T,
    /// A digest of everything that happened on the network, and when: equal for equal seeds.
    pub trace: u64,
    /// Polls of tasks.
    pub steps: u64,
    /// Events of the network.
    pub events: u64,
    /// Virtual time that passed.
    pub elapsed: Duration,
    /// What was still held when the future returned.
    pub left: Holdings,
    /// What was still held after all tasks had been dropped: leaks.
    pub lost: Holdings,
}

/// Things that tasks hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Tasks.
    pub tasks: usize,
    /// Sockets and listeners, also connections that wait to be accepted.
    pub sockets: usize,
    /// Timers.
    pub timers: usize,
    /// Buffers.
    pub buffers: usize,
}

/// Why a world did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All tasks wait, nothing is on its way and no timer is set.
    Deadlock,
    /// More polls than `max_steps`.
    Steps,
    /// More virtual time than `max_time`.
    Time,
}

/// A world that did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Replays it.
    pub seed: u64,
    /// Why.
    pub reason: Reason,
    /// Virtual time that passed.
    pub elapsed: Duration,
    /// What was held.
    pub left: Holdings,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, reason, elapsed, left } = self;
        write!(f, "seed {seed}: {reason:?} after {elapsed:?} of virtual time, holding {left:?}")
    }
}

impl std::error::Error for Failure {}

impl World {
    /// The world of that seed.
    pub fn new(seed: u64, options: Options) -> World {
        World { seed, options }
    }

    /// Runs the world until `future` returns.
    ///
    /// # Errors
    /// If it can't return: see [`Reason`]. Panics of tasks pass through.
    pub fn run<T: 'static>(self, future: impl Future<Output = T> + 'static) -> Result<Report<T>, Failure> {
        let stage = Stage::set(self);
        let value = Rc::new(RefCell::new(None));
        let slot = value.clone();
        stage.worker.spawn(async move {
            let result = future.await;
            *slot.borrow_mut() = Some(result);
        });
        let mut room = Room::default();
        loop {
            stage.worker.turn(&mut room);
            if let Some(value) = value.take() {
                return Ok(stage.end(value));
            }
            if let Some(reason) = stage.overdue() {
                return Err(stage.fail(reason));
            }
            stage.worker.poll(&mut room);
        }
    }
}

/// A world under way: the network and the worker are those of this thread until it is dropped.
struct Stage {
    seed: u64,
    options: Options,
    start: Mono,
    buffers: usize,
    outer_random: u64,
    worker: Rc<Worker>,
    entered: Option<Entered>,
}

impl Stage {
    fn set(world: World) -> Stage {
        let World { seed, options } = world;
        let net = net::Net::new(seed, options.clone());
        let start = net.now;
        let outer = net::install(Some(net));
        assert!(outer.is_none(), "a world within a world");
        let outer_random = clock::seed_random(clock::mix(seed ^ 0x5eed) | 1);
        clock::set_virtual(start, options.epoch_micros);
        let shared = Shared { inboxes: vec![Arc::new(Inbox::new(None))], pulses: vec![Pulse::default()] };
        let worker = Worker::new(0, Arc::new(shared), Driver::Sim, start);
        let entered = Some(Entered::new(worker.clone()));
        let buffers = buf::buf_stats().used;
        Stage { seed, options, start, buffers, outer_random, worker, entered }
    }

    fn overdue(&self) -> Option<Reason> {
        if net::try_with(|net| net.deadlock) == Some(true) {
            return Some(Reason::Deadlock);
        }
        if self.worker.executor.polls() > self.options.max_steps
            || self.worker.turns() > self.options.max_steps
        {
            return Some(Reason::Steps);
        }
        (self.elapsed() > self.options.max_time).then_some(Reason::Time)
    }

    fn elapsed(&self) -> Duration {
        clock::now().since(self.start)
    }

    fn holdings(&self) -> Holdings {
        Holdings {
            tasks: self.worker.executor.len(),
            sockets: net::try_with(|net| net.counts.open).unwrap_or(0),
            timers: self.worker.timers.borrow().len(),
            buffers: buf::buf_stats().used.saturating_sub(self.buffers),
        }
    }

    fn fail(self, reason: Reason) -> Failure {
        Failure { seed: self.seed, reason, elapsed: self.elapsed(), left: self.holdings() }
    }

    fn end<T>(self, value: T) -> Report<T> {
        let (left, elapsed, steps) = (self.holdings(), self.elapsed(), self.worker.executor.polls());
        self.worker.executor.clear();
        let lost = self.holdings();
        let (trace, events) = net::try_with(|net| (net.trace, net.counts.events)).unwrap_or_default();
        Report { value, trace, steps, events, elapsed, left, lost }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the world of seed {}, {:?} after its beginning", self.seed, self.elapsed());
        }
        // The worker first: its tasks close their sockets.
        self.entered = None;
        net::install(None);
        clock::seed_random(self.outer_random);
    }
}

/// Changes the network from now on: the links to `to`, or those without a rule of their own. For connections
/// that exist, nothing changes. Panics outside of a world.
pub fn set_faults(to: Option<&Addr>, faults: Faults) {
    net::try_with(|net| match to {
        Some(addr) => net.options.links.push((addr.clone(), faults)),
        None => net.options.faults = faults,
    })
    .expect("outside of a simulated world");
}

/// Adds a fact to the trace of the world, so that runs which differ in it have different traces.
pub fn note(fact: u64) {
    net::try_with(|net| net.note(fact));
}
