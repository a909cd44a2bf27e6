//! Memory for records on their way, from a pool of the thread.
//!
//! A record may be longer than `tune.bufsize`, so these buffers are not the runtime's: each holds a whole
//! record and the beginning of the next. A connection owns one only while part of a record is in it; at rest
//! it owns none.

use std::cell::RefCell;

/// The largest plaintext of a record (RFC 8446 section 5.1).
pub const MAX_PLAIN: usize = 16384;
/// What encryption may add to a record (RFC 8446 section 5.2).
pub const MAX_EXTRA: usize = 256;
/// Type, version and length in front of each record.
pub const HEADER: usize = 5;
/// Size of a buffer: a whole record, and room for a small one behind it.
const SIZE: usize = HEADER + MAX_PLAIN + MAX_EXTRA + 4096;
/// Unused buffers that a thread keeps.
const KEEP: usize = 256;

thread_local! {
    static IDLE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer: filled between `start` and `end`, room behind.
pub struct Room {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for Room {
    fn default() -> Room {
        let memory = IDLE.with(|idle| idle.borrow_mut().pop());
        Room { memory: memory.unwrap_or_else(|| vec![0; SIZE].into_boxed_slice()), start: 0, end: 0 }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        // After the end of the thread's pool the memory is simply freed.
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() < KEEP && memory.len() == SIZE {
                idle.push(memory);
            }
        });
    }
}

impl Room {
    /// What is in it.
    pub fn filled(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// What is in it, to be decrypted in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The room behind what is in it. Follow with [`Room::advance`].
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.end..]
    }

    /// Bytes that fit behind what is in it.
    pub fn spare(&self) -> usize {
        self.memory.len() - self.end
    }

    /// Adds the first `n` bytes of the room.
    pub fn advance(&mut self, n: usize) {
        self.end = (self.end + n).min(self.memory.len());
    }

    /// Drops the first `n` bytes.
    pub fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// How much fits in all.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Makes it as large as `size`; whether it is larger than before. A large one does not go to the pool.
    pub fn grow(&mut self, size: usize) -> bool {
        self.compact();
        if size <= self.memory.len() {
            return false;
        }
        let mut memory = vec![0; size].into_boxed_slice();
        memory[..self.end].copy_from_slice(&self.memory[..self.end]);
        self.memory = memory;
        true
    }

    /// Moves what is in it to the front.
    pub fn compact(&mut self) {
        if self.start > 0 {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// Appends as much as fits; returns how much that is.
    pub fn push(&mut self, data: &[u8]) -> usize {
        let n = data.len().min(self.spare());
        self.spare_mut()[..n].copy_from_slice(&data[..n]);
        self.end += n;
        n
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Room({}..{})", self.start, self.end)
    }
}
