//! A worker: one thread with its own executor, timers, descriptors and inbox, and the loop that turns them.
//!
//! A turn: read the clock, take the inbox, expire timers, poll tasks, then poll the driver. Tasks that become
//! runnable while others run are polled in the same turn, up to a limit, so that a chain of tasks costs one
//! `epoll_wait` and not one per link; the limit sees to it that descriptors and timers are looked at under
//! any load.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::task::Context;
use std::time::Duration;

use base::time::Mono;

use crate::driver::epoll::Epoll;
use crate::driver::{Driver, Interest, Report};
use crate::executor::Executor;
use crate::inbox::{self, Inbox, Job, Message};
use crate::pace::{self, Pace};
use crate::source::Sources;
use crate::timer::Wheel;
use crate::waker::{Tag, TaskId};
use crate::{buf, clock};

/// Polls of tasks in one turn.
const BUDGET: usize = 512;
/// How often unused memory is given back.
const SETTLE_EVERY: Duration = Duration::from_secs(1);
/// The token of the inbox's bell: no source has it, since slots don't reach it.
const BELL: u64 = u64::MAX;

/// What the workers of a runtime share.
pub(crate) struct Shared {
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) pulses: Vec<Pulse>,
}

/// The heartbeat of a worker: turns of its loop times two, odd while it waits in the driver; and its thread.
/// On its own cache line.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Pulse(AtomicU64, AtomicI32);

impl Pulse {
    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The worker's thread, as the kernel numbers it; 0 before it runs.
    pub(crate) fn thread(&self) -> i32 {
        self.1.load(Ordering::Relaxed)
    }
}

/// What woke a worker, and how its turns went.
#[derive(Default)]
pub(crate) struct Tally {
    /// Words from other threads.
    pub(crate) messages: Cell<u64>,
    /// Timers that were over.
    pub(crate) expired: Cell<u64>,
    /// Changes of descriptors.
    pub(crate) reports: Cell<u64>,
    /// Turns in which the driver reported any.
    pub(crate) reported: Cell<u64>,
    /// Turns in which no task ran.
    pub(crate) empty: Cell<u64>,
    /// Turns that were over before all tasks had run.
    pub(crate) full: Cell<u64>,
    /// Turns before which the worker did not sleep, since there was work.
    pub(crate) awake: Cell<u64>,
}

/// Adds to a figure of a [`Tally`].
#[inline]
fn count(figure: &Cell<u64>, n: usize) {
    figure.set(figure.get() + n as u64);
}

pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) tag: Tag,
    pub(crate) executor: Executor,
    pub(crate) timers: RefCell<Wheel>,
    pub(crate) sources: RefCell<Sources>,
    pub(crate) driver: Driver,
    pub(crate) shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    stopping: Cell<bool>,
    turns: Cell<u64>,
    pub(crate) tally: Tally,
    pace: Pace,
    next_settle: Cell<Mono>,
    /// Whether there is more to give back.
    unsettled: Cell<bool>,
}

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// Calls `f` with the worker of this thread. Panics outside of a worker: there is nothing to run on.
#[inline]
#[track_caller]
pub(crate) fn with<R>(f: impl FnOnce(&Worker) -> R) -> R {
    try_with(f).expect("outside of a worker")
}

/// Calls `f` with the worker of this thread, if it is one.
#[inline]
pub(crate) fn try_with<R>(f: impl FnOnce(&Worker) -> R) -> Option<R> {
    let worker = CURRENT.get();
    // SAFETY: CURRENT is null or points to the worker that `Entered` keeps alive on this thread; `Entered`
    // resets it before the worker is dropped.
    unsafe { worker.as_ref() }.map(f)
}

/// Wakes a task of this thread's worker; false if it belongs elsewhere.
#[inline]
pub(crate) fn wake_here(task: TaskId) -> bool {
    try_with(|w| {
        let here = w.tag == task.tag();
        if here {
            w.executor.wake(task);
        }
        here
    })
    .unwrap_or(false)
}

/// The task to wake for a context: the one behind its waker. A waker of a foreign combinator can't be kept as
/// an integer; the whole task is woken then, which is right for combinators that poll all their children.
#[inline]
pub(crate) fn task_of(cx: &Context<'_>) -> TaskId {
    TaskId::of(cx.waker()).unwrap_or_else(|| with(|w| w.executor.current()))
}

/// Makes a worker the current one of this thread while it exists; at its end, drops the worker's tasks.
pub(crate) struct Entered {
    worker: Rc<Worker>,
    outer: *const Worker,
}

impl Entered {
    pub(crate) fn new(worker: Rc<Worker>) -> Entered {
        let outer = CURRENT.replace(Rc::as_ptr(&worker));
        Entered { worker, outer }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Tasks still see their worker while they are dropped.
        self.worker.executor.clear();
        self.worker.leave();
        CURRENT.set(self.outer);
        clock::leave();
    }
}

impl Worker {
    /// A worker on the kernel. `shared.inboxes[index]` is its inbox.
    pub(crate) fn on_kernel(index: usize, shared: Arc<Shared>) -> io::Result<Rc<Worker>> {
        let driver = Epoll::new()?;
        if let Some(bell) = shared.inboxes[index].bell() {
            driver.register(bell, BELL, Interest::Read)?;
        }
        clock::refresh();
        shared.pulses[index].1.store(crate::sys::thread_number(), Ordering::Relaxed);
        Ok(Worker::new(index, shared, Driver::Epoll(driver), clock::now()))
    }

    pub(crate) fn new(index: usize, shared: Arc<Shared>, driver: Driver, now: Mono) -> Rc<Worker> {
        let inbox = shared.inboxes[index].clone();
        Rc::new(Worker {
            index,
            tag: inbox::register(&inbox),
            executor: Executor::new(),
            timers: RefCell::new(Wheel::new(now)),
            sources: RefCell::new(Sources::new()),
            driver,
            shared,
            inbox,
            stopping: Cell::new(false),
            turns: Cell::new(0),
            tally: Tally::default(),
            pace: Pace::default(),
            next_settle: Cell::new(now),
            unsettled: Cell::new(false),
        })
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) -> TaskId {
        self.executor.spawn(self.tag, future)
    }

    pub(crate) fn stop(&self) {
        self.stopping.set(true);
    }

    /// Its thread, as the kernel numbers it.
    pub(crate) fn thread(&self) -> i32 {
        self.shared.pulses.get(self.index).map_or(0, Pulse::thread)
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turns.get()
    }

    /// Turns until somebody calls [`Worker::stop`].
    pub(crate) fn run(&self) {
        let mut room = Room::default();
        while !self.stopping.get() {
            clock::refresh();
            self.turn(&mut room);
            self.poll(&mut room);
        }
    }

    /// Everything of a turn but the driver.
    pub(crate) fn turn(&self, room: &mut Room) {
        if !self.inbox.is_empty() {
            self.inbox.take(&mut room.messages);
            count(&self.tally.messages, room.messages.len());
            for message in room.messages.drain(..) {
                match message {
                    Message::Wake(task) => self.executor.wake(task),
                    Message::Run(job) => job(),
                }
            }
        }
        self.timers.borrow_mut().advance(clock::now(), &mut room.expired);
        count(&self.tally.expired, room.expired.len());
        for task in room.expired.drain(..) {
            task.wake();
        }
        self.executor.resume();
        match self.executor.run(BUDGET) {
            0 => count(&self.tally.empty, 1),
            BUDGET => count(&self.tally.full, 1),
            _ => {}
        }
    }

    /// Polls the driver, waiting only if there is nothing to do.
    pub(crate) fn poll(&self, room: &mut Room) {
        let busy = !self.executor.is_idle() || self.stopping.get() || !self.inbox.fall_asleep();
        let wait =
            if busy || self.gathered() { Some(Duration::ZERO) } else { self.settle(self.time_to_next()) };
        let pulse = &self.shared.pulses[self.index].0;
        let turns = self.turns.get() + 1;
        pulse.store(turns * 2 - 1, Ordering::Relaxed);
        self.driver.poll(wait, &mut room.reports);
        pulse.store(turns * 2, Ordering::Relaxed);
        self.turns.set(turns);
        count(&self.tally.reports, room.reports.len());
        count(&self.tally.reported, usize::from(!room.reports.is_empty()));
        count(&self.tally.awake, usize::from(busy));
        if !busy {
            self.inbox.wake_up();
        }
        self.dispatch(&mut room.reports);
    }

    /// Lets bulk data gather for a moment, if they flow fast; false if none do. (The simulated world has its
    /// own ideas of when data come.)
    fn gathered(&self) -> bool {
        let brisk = self.pace.is_brisk(clock::now()) && matches!(self.driver, Driver::Epoll(_));
        if brisk {
            pace::gather();
        }
        brisk
    }

    /// Before a sleep: memory that was not needed lately goes back to the system, in steps a second apart.
    /// (Not in a simulated world, where a step would be an event.)
    fn settle(&self, wait: Option<Duration>) -> Option<Duration> {
        let now = clock::now();
        if matches!(self.driver, Driver::Epoll(_)) && now >= self.next_settle.get() {
            self.unsettled.set(buf::settle());
            self.next_settle.set(now + SETTLE_EVERY);
        }
        if self.unsettled.get() { Some(wait.map_or(SETTLE_EVERY, |w| w.min(SETTLE_EVERY))) } else { wait }
    }

    fn time_to_next(&self) -> Option<Duration> {
        self.timers.borrow().next().map(|t| t.since(clock::now()))
    }

    /// Wakes whoever waited for what was reported.
    pub(crate) fn dispatch(&self, reports: &mut Vec<Report>) {
        let mut sources = self.sources.borrow_mut();
        for report in reports.drain(..) {
            if report.token == BELL {
                continue;
            }
            let (reader, writer) = sources.report(report.token, report.ready);
            if reader != TaskId::NONE {
                reader.wake();
            }
            if writer != TaskId::NONE && writer != reader {
                writer.wake();
            }
        }
    }

    /// Nobody can reach this worker any more; what is in its inbox is dropped.
    fn leave(&self) {
        inbox::unregister(self.tag);
        let mut rest = Vec::new();
        self.inbox.take(&mut rest);
    }

    pub(crate) fn post(&self, worker: usize, job: Job) -> bool {
        let inbox = self.shared.inboxes.get(worker);
        if let Some(inbox) = inbox {
            inbox.post(Message::Run(job));
        }
        inbox.is_some()
    }
}

/// Vectors that the loop uses again.
#[derive(Default)]
pub(crate) struct Room {
    messages: Vec<Message>,
    expired: Vec<TaskId>,
    pub(crate) reports: Vec<Report>,
}
