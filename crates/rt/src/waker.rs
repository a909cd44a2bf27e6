//! Wakers that are integers.
//!
//! A `Waker` usually owns a reference-counted pointer to its task: each clone is an atomic increment, and the
//! task's memory lives as long as the last forgotten clone. Here the waker's data word *is* the name of the
//! task: the tag of its worker (slot in the registry of inboxes and the epoch of that slot), its slot in the
//! worker's slab and the slot's generation. It is never dereferenced, so it may be cloned, dropped, kept too
//! long or used on any thread for nothing: the name of a task that is gone matches nobody.

use std::fmt;
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::{inbox, worker};

const SLOT_BITS: u32 = 23;
const GENERATION_BITS: u32 = 23;
const _: () = assert!(usize::BITS == 64, "a task id fills a 64-bit pointer");

/// Slots of a worker's slab: at most this many tasks at once.
pub(crate) const MAX_TASKS: u32 = 1 << SLOT_BITS;

/// The name of a task, unique as long as anybody may remember it (a slot's generation wraps after 8 million
/// reuses, and then the worst is one needless poll). Any thread may hold it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u64);

impl TaskId {
    /// No task. (Worker tags start at 1.)
    pub(crate) const NONE: TaskId = TaskId(0);

    pub(crate) fn new(tag: Tag, slot: u32, generation: u32) -> TaskId {
        let generation = u64::from(generation & Self::generation_mask());
        TaskId(u64::from(tag.0) << (SLOT_BITS + GENERATION_BITS) | generation << SLOT_BITS | u64::from(slot))
    }

    pub(crate) const fn generation_mask() -> u32 {
        (1 << GENERATION_BITS) - 1
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag((self.0 >> (SLOT_BITS + GENERATION_BITS)) as u32)
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        (self.0 as u32) & (MAX_TASKS - 1)
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> SLOT_BITS) as u32 & Self::generation_mask()
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> TaskId {
        TaskId(bits)
    }

    /// The task behind a waker. `None` if the waker is not one of this runtime's (a combinator made its own).
    #[inline]
    pub fn of(waker: &Waker) -> Option<TaskId> {
        std::ptr::eq(waker.vtable(), &VTABLE).then(|| TaskId(waker.data() as u64))
    }

    /// The waker of this task.
    #[inline]
    pub fn waker(self) -> Waker {
        // SAFETY: the vtable's functions take the data word as an integer and keep no resource, so every rule
        // of RawWaker (thread safety, clone and drop balance) holds for any value.
        unsafe { Waker::from_raw(raw(self)) }
    }

    /// Has the task polled again. On its own worker that is a push on the run queue, elsewhere a message to
    /// the worker's inbox; nothing happens if the task or the worker is gone.
    #[inline]
    pub fn wake(self) {
        if !worker::wake_here(self) {
            inbox::wake_elsewhere(self);
        }
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({}:{}.{})", self.tag().0, self.slot(), self.generation())
    }
}

/// The name of a worker among all that this process ever had: registry slot (10 bits) and its epoch (8 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u32);

impl Tag {
    /// Registry slots, hence workers alive at once.
    pub(crate) const MAX_SLOTS: usize = 1 << 10;

    pub(crate) fn new(slot: usize, epoch: u8) -> Tag {
        Tag(u32::from(epoch) << 10 | (slot & (Self::MAX_SLOTS - 1)) as u32)
    }

    pub(crate) fn slot(self) -> usize {
        self.0 as usize & (Self::MAX_SLOTS - 1)
    }

    pub(crate) fn epoch(self) -> u8 {
        (self.0 >> 10) as u8
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, drop);

#[inline]
fn raw(task: TaskId) -> RawWaker {
    RawWaker::new(std::ptr::without_provenance(task.0 as usize), &VTABLE)
}

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &VTABLE)
}

fn wake(data: *const ()) {
    TaskId(data as u64).wake();
}

fn drop(_: *const ()) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_trip_through_a_waker() {
        let id = TaskId::new(Tag::new(1023, 255), MAX_TASKS - 1, TaskId::generation_mask());
        assert_eq!(TaskId::of(&id.waker().clone()), Some(id));
        assert_eq!((id.slot(), id.generation()), (MAX_TASKS - 1, TaskId::generation_mask()));
        assert_eq!((id.tag().slot(), id.tag().epoch()), (1023, 255));
        assert_eq!(TaskId::of(Waker::noop()), None);
    }
}
