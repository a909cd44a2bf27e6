//! Buffers of one fixed size, from a pool of the thread.
//!
//! Every connection that has data in flight holds one or two buffers, an idle one none; so they come and go
//! at each request, and a pool makes that a pop and a push. The pool follows need: it remembers how many of
//! its buffers lay unused since the last look and then gives half of them back to the system.
//!
//! A buffer's memory is zeroed once, when it is allocated, so the room to read into is an ordinary slice.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::recycle;

/// The size until [`set_bufsize`] says otherwise, as HAProxy's `tune.bufsize`.
pub const DEFAULT_BUFSIZE: usize = 16384;

static SIZE: AtomicUsize = AtomicUsize::new(DEFAULT_BUFSIZE);
/// The most buffers that a pool keeps; 0 keeps none.
static KEEP: AtomicUsize = AtomicUsize::new(1024);
/// So many idle buffers are not worth a wake-up to free them.
const SETTLED: usize = 16;
/// So many freed bytes are worth the search for whole pages that they leave: where more will follow, and
/// where nothing will.
#[cfg(target_env = "gnu")]
const WORTH_A_SEARCH: [usize; 2] = [1 << 20, 256 << 10];
/// Takings between two looks at the idle part of the pool.
const TRIM_EVERY: u32 = 4096;

struct Pool {
    idle: RefCell<Vec<Box<[u8]>>>,
    /// The fewest buffers that were idle since the last trim.
    lowest: Cell<usize>,
    takings: Cell<u32>,
    used: Cell<usize>,
    allocated: Cell<u64>,
    /// Bytes freed since the allocator was last told to give pages back.
    freed: Cell<usize>,
}

impl Pool {
    /// Frees half of the buffers that lay idle since the last time.
    fn trim(&self, idle: &mut Vec<Box<[u8]>>) {
        let freed = self.lowest.get().min(idle.len()) / 2;
        idle.truncate(idle.len() - freed);
        self.takings.set(0);
        self.lowest.set(idle.len());
        self.freed.set(self.freed.get() + freed * bufsize());
    }
}

thread_local! {
    static POOL: Pool = const { Pool {
        idle: RefCell::new(Vec::new()),
        lowest: Cell::new(0),
        takings: Cell::new(0),
        used: Cell::new(0),
        allocated: Cell::new(0),
        freed: Cell::new(0),
    } };
}

/// Sets the size of all buffers of the process. Once, at start: buffers of another size are not recycled.
pub fn set_bufsize(bytes: usize) {
    SIZE.store(bytes.max(64), Ordering::Relaxed);
}

/// The size of a buffer, in bytes.
pub fn bufsize() -> usize {
    SIZE.load(Ordering::Relaxed)
}

/// Sets how many unused buffers each thread keeps at most.
pub fn set_pool_limit(buffers: usize) {
    KEEP.store(buffers, Ordering::Relaxed);
}

/// The buffers of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufStats {
    /// In use.
    pub used: usize,
    /// In the pool.
    pub idle: usize,
    /// Allocated since the start.
    pub allocated: u64,
}

/// The buffers of this thread. (A buffer that changes threads is counted out where it is dropped.)
pub fn buf_stats() -> BufStats {
    POOL.with(|p| BufStats { used: p.used.get(), idle: p.idle.borrow().len(), allocated: p.allocated.get() })
}

fn take() -> Box<[u8]> {
    let size = bufsize();
    POOL.with(|p| {
        p.used.set(p.used.get() + 1);
        p.takings.set(p.takings.get() + 1);
        let mut idle = p.idle.borrow_mut();
        if p.takings.get() >= TRIM_EVERY {
            p.trim(&mut idle);
        }
        let memory = idle.pop();
        p.lowest.set(p.lowest.get().min(idle.len()));
        match memory {
            Some(memory) if memory.len() == size => memory,
            _ => {
                p.allocated.set(p.allocated.get() + 1);
                vec![0; size].into_boxed_slice()
            }
        }
    })
}

fn give(memory: Box<[u8]>) {
    // After the end of the thread's pool the memory is simply freed.
    let _ = POOL.try_with(|p| {
        p.used.set(p.used.get().saturating_sub(1));
        let mut idle = p.idle.borrow_mut();
        if memory.len() == bufsize() && idle.len() < KEEP.load(Ordering::Relaxed) {
            idle.push(memory);
        }
    });
}

/// The worker has nothing to do: frees half of what lay idle since the last call. True if it should be called
/// again, in a while.
pub(crate) fn settle() -> bool {
    POOL.with(|p| {
        let mut idle = p.idle.borrow_mut();
        p.trim(&mut idle);
        p.freed.set(p.freed.get() + recycle::trim());
        let settled = idle.len() <= SETTLED;
        #[cfg(target_env = "gnu")]
        if p.freed.get() >= WORTH_A_SEARCH[usize::from(settled)] {
            p.freed.set(0);
            // SAFETY: no memory of ours is involved. The allocator keeps freed blocks of this size to itself,
            // and gives whole pages back to the system only when told to.
            unsafe { libc::malloc_trim(0) };
        }
        !settled
    })
}

/// Frees this thread's unused buffers.
pub fn trim_bufs() {
    POOL.with(|p| {
        p.idle.borrow_mut().clear();
        p.lowest.set(0);
    });
}

/// A buffer: bytes to consume between `start` and `end`, room to fill behind them.
pub struct Buf {
    memory: Box<[u8]>,
    start: u32,
    end: u32,
}

impl Buf {
    /// An empty buffer from the pool.
    pub fn new() -> Buf {
        Buf { memory: take(), start: 0, end: 0 }
    }

    /// Its size: filled part, room and consumed part.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// What is in it.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        &self.memory[self.start as usize..self.end as usize]
    }

    /// What is in it, to be changed in place.
    #[inline]
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start as usize..self.end as usize]
    }

    /// How many bytes are in it.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How many bytes fit behind the filled part.
    #[inline]
    pub fn spare(&self) -> usize {
        self.memory.len() - self.end as usize
    }

    /// Whether there is room neither behind nor before the filled part.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.memory.len()
    }

    /// The room behind the filled part (its content means nothing). Follow with [`Buf::advance`].
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.end as usize..]
    }

    /// As much of the room behind the filled part as keeps that within `most` bytes.
    #[inline]
    pub fn spare_within(&mut self, most: usize) -> &mut [u8] {
        let room = self.spare().min(most.saturating_sub(self.len()));
        &mut self.spare_mut()[..room]
    }

    /// Adds the first `n` bytes of the room to the filled part. Panics if there are fewer.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.spare());
        self.end += n as u32;
    }

    /// Drops the first `n` bytes of the filled part. Panics if there are fewer.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.len());
        self.start += n as u32;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Drops the bytes of the filled part behind the first `n`.
    pub fn truncate(&mut self, n: usize) {
        self.end = self.end.min(self.start + n.min(self.capacity()) as u32);
    }

    /// Gives it more room, up to `bytes` in all. Memory of another size than the pool's goes back to the
    /// system with it.
    pub fn grow(&mut self, bytes: usize) {
        if bytes <= self.memory.len() {
            return;
        }
        let mut memory = vec![0; bytes].into_boxed_slice();
        let len = self.len();
        memory[..len].copy_from_slice(self.filled());
        (self.start, self.end) = (0, len as u32);
        self.memory = memory;
    }

    /// Moves the filled part to the front, so that all room lies behind it.
    pub fn compact(&mut self) {
        if self.start > 0 {
            self.memory.copy_within(self.start as usize..self.end as usize, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// Empties it.
    #[inline]
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Appends as much of `data` as there is room for; returns how much that is.
    #[inline]
    pub fn push(&mut self, data: &[u8]) -> usize {
        let n = data.len().min(self.spare());
        self.spare_mut()[..n].copy_from_slice(&data[..n]);
        self.end += n as u32;
        n
    }
}

impl Default for Buf {
    fn default() -> Buf {
        Buf::new()
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.memory));
    }
}

impl std::fmt::Debug for Buf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf({}..{} of {})", self.start, self.end, self.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_and_out_in_order() {
        let mut buf = Buf::new();
        assert_eq!(buf.push(b"hello world"), 11);
        buf.consume(6);
        assert_eq!(buf.filled(), b"world");
        buf.compact();
        assert_eq!((buf.filled(), buf.spare()), (&b"world"[..], DEFAULT_BUFSIZE - 5));
        buf.consume(5);
        assert_eq!(buf.spare(), DEFAULT_BUFSIZE);
        buf.push(&[1; DEFAULT_BUFSIZE]);
        assert!(buf.is_full());
        assert_eq!(buf.push(b"x"), 0);
    }

    #[test]
    fn the_pool_gives_back_what_stays_unused() {
        let before = buf_stats();
        drop((0..500).map(|_| Buf::new()).collect::<Vec<_>>());
        assert_eq!(buf_stats().idle, 500);
        for _ in 0..TRIM_EVERY * 12 {
            drop(Buf::new());
        }
        assert!(buf_stats().idle < 10, "{:?}", buf_stats());
        assert_eq!(buf_stats().used, before.used);
        assert_eq!(buf_stats().allocated, before.allocated + 500, "the steady state allocates nothing");
    }

    #[test]
    fn an_idle_worker_ends_with_a_small_pool() {
        drop((0..1000).map(|_| Buf::new()).collect::<Vec<_>>());
        let calls = (0..100).take_while(|_| settle()).count();
        assert!(calls < 10, "{calls}");
        assert!(buf_stats().idle <= SETTLED);
    }

    #[test]
    fn the_pool_is_bounded() {
        drop((0..1500).map(|_| Buf::new()).collect::<Vec<_>>());
        assert_eq!(buf_stats().idle, 1024);
        trim_bufs();
        assert_eq!(buf_stats().idle, 0);
    }
}
