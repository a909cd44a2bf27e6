//! Deadlines.
//!
//! A proxy sets a deadline at each read and each write and nearly none expires, so setting one must cost
//! nothing. The deadline of a [`Timer`] is a field; the wheel holds, for each timer, a *promise to look* at
//! some tick no later than the deadline. Moving the deadline further away (the usual case) is a store: when
//! the promised tick comes, the wheel sees that the deadline is later and promises again. Only moving it
//! before the promised tick touches the lists.
//!
//! Expiry is decided by the clock, not by the wheel: a timer is expired when `now() >= deadline`. The wheel
//! only sees to it that the task is polled then, at most one tick (1 ms) late.
//!
//! The wheel has six levels of 64 slots (a level's slot spans 64 slots of the level below) and a bit per
//! slot: finding the next tick to look at takes six tests, not a search.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use base::time::Mono;

use crate::clock::now;
use crate::waker::TaskId;
use crate::worker;

const LEVELS: usize = 6;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The furthest promise; deadlines beyond it are looked at again when it passes (2 years).
const MAX_TICKS: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;
const TICK_NANOS: u64 = 1_000_000;
const NONE: u32 = u32::MAX;

struct Entry {
    /// What the owner asked for; `Mono::FAR` is "never".
    deadline: Mono,
    task: TaskId,
    /// The tick of the promise, if linked.
    tick: u64,
    /// Which list: level * SLOTS + slot; NONE if not linked. In a vacant entry `next` is the next vacant one.
    list: u32,
    prev: u32,
    next: u32,
}

/// The timers of a worker.
pub(crate) struct Wheel {
    entries: Vec<Entry>,
    vacant: u32,
    len: usize,
    heads: [u32; LEVELS * SLOTS],
    occupied: [u64; LEVELS],
    /// The last tick that was looked at.
    tick: u64,
}

impl Wheel {
    pub(crate) fn new(now: Mono) -> Wheel {
        let (heads, occupied) = ([NONE; LEVELS * SLOTS], [0; LEVELS]);
        let tick = now.as_nanos() / TICK_NANOS;
        Wheel { entries: Vec::new(), vacant: NONE, len: 0, heads, occupied, tick }
    }

    /// Timers that exist, set or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn insert(&mut self) -> u32 {
        let entry =
            Entry { deadline: Mono::FAR, task: TaskId::NONE, tick: 0, list: NONE, prev: NONE, next: NONE };
        self.len += 1;
        let key = self.vacant;
        if let Some(vacant) = self.entries.get_mut(key as usize) {
            self.vacant = vacant.next;
            *vacant = entry;
            return key;
        }
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    fn remove(&mut self, key: u32) {
        self.unlink(key);
        let vacant = self.vacant;
        let entry = &mut self.entries[key as usize];
        (entry.next, entry.task) = (vacant, TaskId::NONE);
        self.vacant = key;
        self.len -= 1;
    }

    #[inline]
    fn set(&mut self, key: u32, deadline: Mono) {
        let entry = &mut self.entries[key as usize];
        entry.deadline = deadline;
        if deadline == Mono::FAR || (entry.list != NONE && entry.tick <= tick_of(deadline)) {
            return;
        }
        self.unlink(key);
        self.link(key);
    }

    /// Promises to look at the entry's deadline.
    fn link(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        // Never the present tick, whose slot is not looked at again.
        let tick = tick_of(entry.deadline).clamp(self.tick + 1, self.tick + MAX_TICKS);
        let level = ((63 - ((tick ^ self.tick) | 1).leading_zeros()) / SLOT_BITS).min(LEVELS as u32 - 1);
        let slot = (tick >> (level * SLOT_BITS)) as usize % SLOTS;
        let list = level as usize * SLOTS + slot;
        let head = self.heads[list];
        (entry.tick, entry.list, entry.prev, entry.next) = (tick, list as u32, NONE, head);
        if let Some(next) = self.entries.get_mut(head as usize) {
            next.prev = key;
        }
        self.heads[list] = key;
        self.occupied[level as usize] |= 1 << slot;
    }

    fn unlink(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        let (list, prev, next) = (entry.list, entry.prev, entry.next);
        if list == NONE {
            return;
        }
        entry.list = NONE;
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = prev;
        }
        match self.entries.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.heads[list as usize] = next,
        }
        if self.heads[list as usize] == NONE {
            self.occupied[list as usize / SLOTS] &= !(1 << (list as usize % SLOTS));
        }
    }

    /// The tick of the earliest slot that holds something, and that slot's list. It may be early, never late.
    fn next_slot(&self) -> Option<(u64, usize)> {
        for level in 0..LEVELS {
            let bits = self.occupied[level];
            if bits == 0 {
                continue;
            }
            let shift = level as u32 * SLOT_BITS;
            let here = (self.tick >> shift) as u32 % SLOTS as u32;
            // Distance in slots from the present one; a slot at distance 0 on an upper level is a full turn
            // away.
            let distance = (bits.rotate_right((here + 1) % 64).trailing_zeros() + 1) as u64;
            let slot = (u64::from(here) + distance) as usize % SLOTS;
            let start = ((self.tick >> shift) + distance) << shift;
            return Some((start, level * SLOTS + slot));
        }
        None
    }

    /// When the wheel must be advanced next.
    pub(crate) fn next(&self) -> Option<Mono> {
        self.next_slot().map(|(tick, _)| Mono::from_nanos(tick.saturating_mul(TICK_NANOS)))
    }

    /// Looks at everything that was promised up to `now`; `expired` gets the tasks whose deadline has passed.
    pub(crate) fn advance(&mut self, now: Mono, expired: &mut Vec<TaskId>) {
        let target = now.as_nanos() / TICK_NANOS;
        while let Some((tick, list)) = self.next_slot() {
            if tick > target {
                break;
            }
            self.tick = tick;
            self.look_at(list, now, expired);
        }
        self.tick = self.tick.max(target);
    }

    fn look_at(&mut self, list: usize, now: Mono, expired: &mut Vec<TaskId>) {
        let mut key = std::mem::replace(&mut self.heads[list], NONE);
        self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        while let Some(entry) = self.entries.get_mut(key as usize) {
            let this = std::mem::replace(&mut key, entry.next);
            entry.list = NONE;
            if entry.deadline <= now {
                if entry.task != TaskId::NONE {
                    expired.push(entry.task);
                }
            } else if entry.deadline != Mono::FAR {
                self.link(this);
            }
        }
    }
}

/// The first tick at which `deadline` has passed.
fn tick_of(deadline: Mono) -> u64 {
    deadline.as_nanos().div_ceil(TICK_NANOS)
}

/// A deadline of the task that polls it. It belongs to the worker on which it was made.
#[derive(Debug)]
pub struct Timer {
    key: u32,
    deadline: Mono,
    /// The task that the wheel wakes, as last told.
    task: TaskId,
    here: std::marker::PhantomData<*const ()>,
}

impl Timer {
    /// A timer that isn't set.
    pub fn new() -> Timer {
        Timer { key: NONE, deadline: Mono::FAR, task: TaskId::NONE, here: std::marker::PhantomData }
    }

    /// A timer set to `deadline`.
    pub fn at(deadline: Mono) -> Timer {
        let mut timer = Timer::new();
        timer.set(Some(deadline));
        timer
    }

    /// Sets, moves or (`None`) clears the deadline.
    #[inline]
    pub fn set(&mut self, deadline: Option<Mono>) {
        self.deadline = deadline.unwrap_or(Mono::FAR);
        if self.key == NONE && deadline.is_none() {
            return;
        }
        with_wheel(|wheel| {
            if self.key == NONE {
                self.key = wheel.insert();
            }
            wheel.set(self.key, self.deadline);
        });
    }

    /// Sets the deadline to `timeout` from now, or clears it.
    pub fn set_after(&mut self, timeout: Option<Duration>) {
        self.set(timeout.map(|t| now() + t));
    }

    /// The deadline, if set.
    pub fn deadline(&self) -> Option<Mono> {
        (self.deadline != Mono::FAR).then_some(self.deadline)
    }

    /// Whether the deadline has passed.
    #[inline]
    pub fn is_expired(&self) -> bool {
        self.deadline <= now()
    }

    /// Ready once the deadline has passed (and then until it is moved); else the task is polled again at that
    /// time.
    #[inline]
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_expired() {
            return Poll::Ready(());
        }
        let task = worker::task_of(cx);
        if task != self.task {
            self.task = task;
            with_wheel(|wheel| {
                if self.key == NONE {
                    self.key = wheel.insert();
                }
                wheel.entries[self.key as usize].task = task;
            });
        }
        Poll::Pending
    }

    /// Waits for the deadline; for ever if it isn't set.
    pub async fn expired(&mut self) {
        poll_fn(|cx| self.poll_expired(cx)).await;
    }
}

impl Default for Timer {
    fn default() -> Timer {
        Timer::new()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.key != NONE {
            worker::try_with(|w| w.timers.borrow_mut().remove(self.key));
        }
    }
}

#[inline]
fn with_wheel<R>(f: impl FnOnce(&mut Wheel) -> R) -> R {
    worker::with(|w| {
        let wheel: &RefCell<Wheel> = &w.timers;
        f(&mut wheel.borrow_mut())
    })
}

/// Waits until `deadline`.
pub async fn sleep_until(deadline: Mono) {
    Timer::at(deadline).expired().await;
}

/// Waits for `duration`.
pub async fn sleep(duration: Duration) {
    sleep_until(now() + duration).await;
}

#[cfg(test)]
#[path = "timer_tests.rs"]
mod tests;
