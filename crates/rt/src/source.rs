//! The readiness of descriptors, and who waits for it.
//!
//! A descriptor is registered with the driver once, edge-triggered, for everything. The driver reports
//! *changes*; this table keeps the resulting state as a few bits per descriptor, plus the tasks that wait to
//! read and to write. So a read that would block costs no system call: the bit says so. A report carries the
//! slot and its generation; what comes late, for a descriptor closed in the same batch, finds another
//! generation.

use std::os::fd::RawFd;

use crate::waker::TaskId;

/// Bits of readiness.
pub(crate) mod ready {
    /// A read is worth trying.
    pub(crate) const READ: u8 = 1;
    /// A write is worth trying.
    pub(crate) const WRITE: u8 = 2;
    /// The peer closed its sending side.
    pub(crate) const READ_CLOSED: u8 = 4;
    /// Both directions are closed.
    pub(crate) const HANGUP: u8 = 8;
    /// An error is pending on the descriptor.
    pub(crate) const ERROR: u8 = 16;
    /// The connection is established.
    pub(crate) const CONNECTED: u8 = 32;
    /// Not a report but a wish: whoever drops the handle while the peer is still there resets the connection.
    pub(crate) const RESET_ON_CLOSE: u8 = 64;
    /// Any sign that the peer is leaving.
    pub(crate) const CLOSED: u8 = READ_CLOSED | HANGUP | ERROR;
}

#[derive(Debug)]
struct Slot {
    /// The handle's number, for who asks what this worker has open; [`VACANT`] in a vacant slot.
    number: RawFd,
    reader: TaskId,
    writer: TaskId,
    generation: u32,
    ready: u8,
    /// Large reads since the last write, or [`PROMPT`].
    large: u8,
    next_vacant: u32,
}

/// Bytes of a large read.
const LARGE: usize = 16 * 1024;
/// So many large reads in a row are a bulk transfer.
const BULK: u8 = 4;
/// The kernel was told to acknowledge promptly.
const PROMPT: u8 = u8::MAX;

const NO_SLOT: u32 = u32::MAX;
const VACANT: RawFd = -1;

/// A descriptor that a worker watches, as of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its number.
    pub number: RawFd,
    /// A read is worth trying: the kernel has not said otherwise yet.
    pub readable: bool,
    /// The same of writing.
    pub writable: bool,
    /// The peer has closed its side, or all of it is closed.
    pub hung_up: bool,
    /// An error is pending.
    pub failed: bool,
    /// The task that waits to read.
    pub reader: Option<TaskId>,
    /// The task that waits to write.
    pub writer: Option<TaskId>,
}

/// Which of the two waiting places of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Reader,
    Writer,
}

/// The sources of a worker.
#[derive(Debug)]
pub(crate) struct Sources {
    slots: Vec<Slot>,
    vacant: u32,
    len: usize,
}

impl Sources {
    pub(crate) fn new() -> Sources {
        Sources { slots: Vec::new(), vacant: NO_SLOT, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All that are descriptors of the kernel.
    pub(crate) fn watched(&self) -> Vec<Watched> {
        let task = |task: TaskId| (task != TaskId::NONE).then_some(task);
        let is_open = |s: &&Slot| s.number != VACANT && s.number < crate::driver::SIM_BASE;
        let view = |s: &Slot| Watched {
            number: s.number,
            readable: s.ready & ready::READ != 0,
            writable: s.ready & ready::WRITE != 0,
            hung_up: s.ready & (ready::READ_CLOSED | ready::HANGUP) != 0,
            failed: s.ready & ready::ERROR != 0,
            reader: task(s.reader),
            writer: task(s.writer),
        };
        self.slots.iter().filter(is_open).map(view).collect()
    }

    /// A new source for the handle of this number, with these bits set. Returns the slot and the token to
    /// register it under.
    pub(crate) fn insert(&mut self, number: RawFd, ready: u8) -> (u32, u64) {
        self.len += 1;
        let index = self.vacant;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.vacant = slot.next_vacant;
            (slot.number, slot.ready, slot.large) = (number, ready, 0);
            return (index, token(index, slot.generation));
        }
        let index = self.slots.len() as u32;
        let (reader, writer) = (TaskId::NONE, TaskId::NONE);
        self.slots.push(Slot {
            number,
            reader,
            writer,
            generation: 0,
            ready,
            large: 0,
            next_vacant: NO_SLOT,
        });
        (index, token(index, 0))
    }

    pub(crate) fn remove(&mut self, index: u32) {
        let vacant = self.vacant;
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.number = VACANT;
        (slot.reader, slot.writer, slot.next_vacant) = (TaskId::NONE, TaskId::NONE, vacant);
        self.vacant = index;
        self.len -= 1;
    }

    /// The token of a source, to register it again.
    pub(crate) fn token(&self, index: u32) -> u64 {
        token(index, self.slots[index as usize].generation)
    }

    #[inline]
    pub(crate) fn ready(&self, index: u32) -> u8 {
        self.slots[index as usize].ready
    }

    #[inline]
    pub(crate) fn clear(&mut self, index: u32, bits: u8) {
        self.slots[index as usize].ready &= !bits;
    }

    /// So many bytes were read.
    #[inline]
    pub(crate) fn took(&mut self, index: u32, bytes: usize) {
        if bytes >= LARGE {
            let large = &mut self.slots[index as usize].large;
            *large = (*large).max(large.saturating_add(1).min(BULK));
        }
    }

    /// Something was written: whatever comes next may be an answer to that.
    #[inline]
    pub(crate) fn spoke(&mut self, index: u32) {
        self.slots[index as usize].large = 0;
    }

    /// All there was has been read. Whether the kernel is to acknowledge at once from now on: in the middle
    /// of a bulk transfer the sender may have to wait for that, and the kernel, which takes the peer for one
    /// that answers what it reads, would hold it back for 40 ms. Said once for each transfer.
    #[inline]
    pub(crate) fn emptied(&mut self, index: u32) -> bool {
        let slot = &mut self.slots[index as usize];
        slot.ready &= !ready::READ;
        slot.large == BULK && {
            slot.large = PROMPT;
            true
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, index: u32, bits: u8) {
        self.slots[index as usize].ready |= bits;
    }

    /// Has `task` woken at the next report for that side.
    #[inline]
    pub(crate) fn wait(&mut self, index: u32, side: Side, task: TaskId) {
        let slot = &mut self.slots[index as usize];
        match side {
            Side::Reader => slot.reader = task,
            Side::Writer => slot.writer = task,
        }
    }

    /// Takes a report in; returns the tasks to wake, reader and writer (NONE if nobody waits).
    #[inline]
    pub(crate) fn report(&mut self, token: u64, mut bits: u8) -> (TaskId, TaskId) {
        let nobody = (TaskId::NONE, TaskId::NONE);
        let Some(slot) = self.slots.get_mut(token as u32 as usize) else { return nobody };
        if slot.generation != (token >> 32) as u32 {
            return nobody;
        }
        // What ends the connection is learnt by trying, in both directions.
        if bits & (ready::HANGUP | ready::ERROR) != 0 {
            bits |= ready::READ | ready::WRITE;
        } else if bits & ready::WRITE != 0 {
            bits |= ready::CONNECTED;
        }
        if bits & ready::READ_CLOSED != 0 {
            bits |= ready::READ;
        }
        slot.ready |= bits;
        let reader = bits & ready::READ != 0;
        let writer = bits & ready::WRITE != 0;
        (take_if(&mut slot.reader, reader), take_if(&mut slot.writer, writer))
    }
}

#[inline]
fn take_if(task: &mut TaskId, condition: bool) -> TaskId {
    if condition { std::mem::replace(task, TaskId::NONE) } else { TaskId::NONE }
}

fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_report_reaches_nobody() {
        let mut sources = Sources::new();
        let (index, old) = sources.insert(3, 0);
        sources.remove(index);
        let (again, new) = sources.insert(3, 0);
        assert_eq!(again, index);
        let task = TaskId::new(crate::waker::Tag::new(1, 1), 3, 4);
        sources.wait(index, Side::Reader, task);
        assert_eq!(sources.report(old, ready::READ).0, TaskId::NONE);
        assert_eq!(sources.ready(index), 0);
        assert_eq!(sources.report(new, ready::READ).0, task);
        assert_eq!(sources.report(new, ready::READ).0, TaskId::NONE, "woken once per wait");
    }

    #[test]
    fn a_bulk_transfer_is_acknowledged_promptly_once_until_something_is_written() {
        let mut sources = Sources::new();
        let (index, _) = sources.insert(3, ready::READ);
        let reads = |sources: &mut Sources, count: usize, bytes: usize| {
            (0..count).for_each(|_| sources.took(index, bytes));
            let told = sources.emptied(index);
            sources.add(index, ready::READ);
            told
        };
        assert!(!reads(&mut sources, 1000, LARGE - 1), "many small messages");
        assert!(!reads(&mut sources, usize::from(BULK) - 1, LARGE));
        assert!(reads(&mut sources, 1, LARGE), "bulk");
        assert!(!reads(&mut sources, 1000, LARGE), "told already");
        sources.spoke(index);
        assert!(!reads(&mut sources, 1, LARGE));
        assert!(reads(&mut sources, 1000, LARGE));
    }

    #[test]
    fn an_error_wakes_both_sides_and_is_no_connection() {
        let mut sources = Sources::new();
        let (index, token) = sources.insert(3, ready::WRITE);
        let task = TaskId::new(crate::waker::Tag::new(1, 1), 3, 4);
        sources.wait(index, Side::Reader, task);
        sources.wait(index, Side::Writer, task);
        assert_eq!(sources.report(token, ready::ERROR | ready::HANGUP | ready::WRITE), (task, task));
        assert_eq!(sources.ready(index) & ready::CONNECTED, 0);
    }
}
