//! The tasks of a worker: a slab of futures and a queue of those to poll.
//!
//! A task is a future and nothing else: no header, no reference count, no lock. Its id names its slot and the
//! slot's generation, so a wake-up for a task that ended finds another generation and does nothing. A slot
//! remembers whether it is queued, so a task that is woken a hundred times is polled once.
//!
//! A task that has had its share gives way: it is queued again only after the driver has been asked for
//! events, so that none of those who have long work to do keeps newcomers waiting for more than one share of
//! each.
//!
//! Plain tasks have their turn in the order in which they were woken; those with a nice value stand in
//! [`Ranks`].
//!
//! The future is taken out of its slot while it is polled, so tasks may spawn, wake and cancel one another,
//! and themselves, from within a poll. Only when asked to it notes when a task was woken, for who wants to
//! know how long it waited for its turn. No borrow of the slab is held while foreign code (poll, drop) runs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::ranks::Ranks;
use crate::recycle::{RecycledFuture, boxed};
use crate::waker::{MAX_TASKS, Tag, TaskId};

type Task = RecycledFuture<'static, ()>;

struct Slot {
    /// `None` in a vacant slot and while the task is being polled.
    future: Option<Task>,
    generation: u32,
    occupied: bool,
    queued: bool,
    /// 0 for a plain task.
    nice: i16,
    next_vacant: u32,
}

const _: () = assert!(size_of::<Slot>() == 32, "two slots fill a cache line");

const NO_SLOT: u32 = u32::MAX;

struct Slab {
    slots: Vec<Slot>,
    vacant: u32,
    len: usize,
    queue: VecDeque<TaskId>,
    /// Queued tasks that are not plain.
    ranks: Ranks,
    /// Those that gave way until the next turn.
    deferred: Vec<TaskId>,
    /// Waits are measured.
    measured: bool,
    /// When the task of each slot was woken, if that is measured.
    woken: Vec<Option<Instant>>,
}

pub(crate) struct Executor {
    slab: RefCell<Slab>,
    current: Cell<TaskId>,
    polls: Cell<u64>,
    /// Since when the task at hand had waited for its turn.
    woken: Cell<Option<Instant>>,
}

impl Slab {
    /// The slot of a task that is alive.
    #[inline]
    fn get(&mut self, task: TaskId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(task.slot() as usize)?;
        (slot.occupied && slot.generation == task.generation()).then_some(slot)
    }

    fn insert(&mut self, tag: Tag, future: Task) -> TaskId {
        let index = self.vacant;
        self.len += 1;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.vacant = slot.next_vacant;
            (slot.future, slot.occupied, slot.queued) = (Some(future), true, false);
            slot.nice = 0;
            return TaskId::new(tag, index, slot.generation);
        }
        let index = self.slots.len() as u32;
        assert!(index < MAX_TASKS, "more than {MAX_TASKS} tasks on one worker");
        let slot = Slot {
            future: Some(future),
            generation: 0,
            occupied: true,
            queued: false,
            nice: 0,
            next_vacant: NO_SLOT,
        };
        self.slots.push(slot);
        TaskId::new(tag, index, 0)
    }

    /// Frees the slot of a task and returns its future, unless that is being polled.
    fn remove(&mut self, task: TaskId) -> Option<Task> {
        let vacant = self.vacant;
        let slot = self.get(task)?;
        slot.generation = (slot.generation + 1) & TaskId::generation_mask();
        (slot.occupied, slot.queued, slot.next_vacant) = (false, false, vacant);
        let future = slot.future.take();
        self.vacant = task.slot();
        self.len -= 1;
        future
    }

    #[inline]
    fn wake(&mut self, task: TaskId) {
        if let Some(slot) = self.get(task)
            && !slot.queued
        {
            slot.queued = true;
            match slot.nice {
                0 => self.queue.push_back(task),
                nice => self.ranks.push(task, nice, self.queue.len()),
            }
            if self.measured {
                self.stamp(task);
            }
        }
    }

    #[cold]
    fn stamp(&mut self, task: TaskId) {
        self.woken.resize(self.slots.len(), None);
        if let Some(at) = self.woken.get_mut(task.slot() as usize) {
            *at = Some(Instant::now());
        }
    }

    /// The next task to poll, with its future.
    #[inline]
    fn next(&mut self) -> Option<(TaskId, Task)> {
        loop {
            let task = if self.ranks.is_empty() { self.queue.pop_front() } else { self.next_ranked() }?;
            if let Some(slot) = self.get(task) {
                slot.queued = false;
                if let Some(future) = slot.future.take() {
                    return Some((task, future));
                }
            }
        }
    }

    #[cold]
    fn next_ranked(&mut self) -> Option<TaskId> {
        self.ranks.pop(!self.queue.is_empty()).or_else(|| self.queue.pop_front())
    }

    /// Puts the future of a task back after a poll; returns it if the task was cancelled meanwhile.
    #[inline]
    fn put_back(&mut self, task: TaskId, future: Task) -> Option<Task> {
        match self.get(task) {
            Some(slot) => {
                slot.future = Some(future);
                None
            }
            None => Some(future),
        }
    }
}

impl Executor {
    pub(crate) fn new() -> Executor {
        let slab = Slab {
            slots: Vec::new(),
            vacant: NO_SLOT,
            len: 0,
            queue: VecDeque::new(),
            ranks: Ranks::default(),
            deferred: Vec::new(),
            measured: false,
            woken: Vec::new(),
        };
        Executor {
            slab: RefCell::new(slab),
            current: Cell::new(TaskId::NONE),
            polls: Cell::new(0),
            woken: Cell::new(None),
        }
    }

    /// Adds a task and queues it for its first poll.
    pub(crate) fn spawn(&self, tag: Tag, future: impl Future<Output = ()> + 'static) -> TaskId {
        let future = boxed(future);
        let mut slab = self.slab.borrow_mut();
        let task = slab.insert(tag, future);
        slab.wake(task);
        task
    }

    /// Drops a task. True if it was alive.
    pub(crate) fn cancel(&self, task: TaskId) -> bool {
        let mut slab = self.slab.borrow_mut();
        if slab.get(task).is_none() {
            return false;
        }
        let future = slab.remove(task);
        std::mem::drop(slab);
        std::mem::drop(future);
        true
    }

    #[inline]
    pub(crate) fn wake(&self, task: TaskId) {
        self.slab.borrow_mut().wake(task);
    }

    /// Gives a task this nice value from its next wake-up on.
    pub(crate) fn set_nice(&self, task: TaskId, nice: i16) {
        if let Some(slot) = self.slab.borrow_mut().get(task) {
            slot.nice = nice;
        }
    }

    /// The nice value of a task; 0 for one that is gone.
    pub(crate) fn nice(&self, task: TaskId) -> i16 {
        self.slab.borrow_mut().get(task).map_or(0, |slot| slot.nice)
    }

    pub(crate) fn is_alive(&self, task: TaskId) -> bool {
        self.slab.borrow_mut().get(task).is_some()
    }

    /// The task that is being polled.
    pub(crate) fn current(&self) -> TaskId {
        self.current.get()
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.borrow().len
    }

    /// Tasks that wait to be polled, those that ended meanwhile among them.
    pub(crate) fn queued(&self) -> usize {
        let slab = self.slab.borrow();
        slab.queue.len() + slab.ranks.len()
    }

    /// Polls since the start.
    pub(crate) fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// From now on notes when tasks are woken, or no more.
    pub(crate) fn measure_waits(&self, on: bool) {
        self.slab.borrow_mut().measured = on;
    }

    /// When the task at hand was woken; told once for each poll, and only if it is measured.
    pub(crate) fn take_woken(&self) -> Option<Instant> {
        self.woken.take()
    }

    /// Has a task polled again in the next turn, behind those whose events are reported until then.
    pub(crate) fn defer(&self, task: TaskId) {
        self.slab.borrow_mut().deferred.push(task);
    }

    /// A new turn begins: queues those that gave way.
    pub(crate) fn resume(&self) {
        let slab = &mut *self.slab.borrow_mut();
        for at in 0..slab.deferred.len() {
            slab.wake(slab.deferred[at]);
        }
        slab.deferred.clear();
    }

    /// Whether no task waits to be polled.
    pub(crate) fn is_idle(&self) -> bool {
        let slab = self.slab.borrow();
        slab.queue.is_empty() && slab.ranks.is_empty() && slab.deferred.is_empty()
    }

    /// Polls queued tasks, at most `budget` times. Returns the number of polls.
    pub(crate) fn run(&self, budget: usize) -> usize {
        let mut polls = 0;
        while polls < budget {
            let mut slab = self.slab.borrow_mut();
            let Some((task, future)) = slab.next() else { break };
            if slab.measured {
                self.woken.set(slab.woken.get_mut(task.slot() as usize).and_then(Option::take));
            }
            std::mem::drop(slab);
            polls += 1;
            self.poll(task, future);
        }
        self.polls.set(self.polls.get() + polls as u64);
        polls
    }

    #[inline]
    fn poll(&self, task: TaskId, mut future: Task) {
        let waker = std::mem::ManuallyDrop::new(task.waker());
        self.current.set(task);
        let result = future.as_mut().poll(&mut Context::from_waker(&waker));
        self.current.set(TaskId::NONE);
        let dropped = match result {
            Poll::Pending => self.slab.borrow_mut().put_back(task, future),
            Poll::Ready(()) => {
                self.slab.borrow_mut().remove(task);
                Some(future)
            }
        };
        std::mem::drop(dropped);
    }

    /// Drops all tasks, also those that are spawned by the drop of others.
    pub(crate) fn clear(&self) {
        for _ in 0..1000 {
            let mut slab = self.slab.borrow_mut();
            let futures: Vec<Task> = slab.slots.iter_mut().filter_map(|s| s.future.take()).collect();
            for slot in &mut slab.slots {
                slot.occupied = false;
            }
            (slab.len, slab.vacant) = (0, NO_SLOT);
            slab.queue.clear();
            slab.ranks.clear();
            std::mem::drop(slab);
            if futures.is_empty() {
                break;
            }
            std::mem::drop(futures);
        }
    }
}
