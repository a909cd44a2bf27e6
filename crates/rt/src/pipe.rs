//! Pipes, through which bytes go from socket to socket without being copied (splice).
//!
//! Making a pipe takes two descriptors and a system call, so empty ones are kept for the next transfer. In a
//! simulated world a pipe is a queue of bytes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use crate::driver;
use crate::pace;
use crate::sim;
use crate::socket::Socket;
use crate::source::Side;

/// Empty pipes that a thread keeps.
const KEEP: usize = 64;
/// Bytes of a simulated pipe.
const SIM_SIZE: usize = 65536;

static SIZE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Pipes of all threads that hold or await bytes, and empty ones that are kept.
static USED: AtomicUsize = AtomicUsize::new(0);
static FREE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static IDLE: RefCell<Vec<Ends>> = const { RefCell::new(Vec::new()) };
}

/// Sets the size of pipes made from now on, in bytes; 0 is the system's default (64 KiB).
pub fn set_pipe_size(bytes: usize) {
    SIZE.store(bytes, Ordering::Relaxed);
}

/// Limits how many pipes the process has open; what goes beyond is told as `EMFILE`.
pub fn set_pipe_limit(pipes: usize) {
    LIMIT.store(pipes, Ordering::Relaxed);
}

/// The pipes of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeStats {
    /// In use.
    pub used: usize,
    /// Kept for the next transfer.
    pub free: usize,
}

/// How many pipes the process has.
pub fn pipe_stats() -> PipeStats {
    PipeStats { used: USED.load(Ordering::Relaxed), free: FREE.load(Ordering::Relaxed) }
}

/// Pipes in use that this thread made, simulated ones included. (A pipe stays on its thread.)
pub fn pipes_held() -> usize {
    HELD.get()
}

#[derive(Debug)]
struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

#[derive(Debug)]
enum Kind {
    Kernel(Ends),
    Simulated(VecDeque<u8>),
}

/// A pipe between two sockets. Dropping it drops what is in it.
#[derive(Debug)]
pub struct Pipe {
    /// `None` only while being dropped.
    kind: Option<Kind>,
    len: usize,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Errors
    /// EMFILE, also beyond the limit of [`set_pipe_limit`], ENFILE: copy through buffers instead.
    pub fn new() -> io::Result<Pipe> {
        if sim::is_active() {
            HELD.set(HELD.get() + 1);
            return Ok(Pipe { kind: Some(Kind::Simulated(VecDeque::new())), len: 0 });
        }
        let ends = match IDLE.with_borrow_mut(Vec::pop) {
            Some(ends) => {
                FREE.fetch_sub(1, Ordering::Relaxed);
                ends
            }
            None => Ends::new()?,
        };
        USED.fetch_add(1, Ordering::Relaxed);
        HELD.set(HELD.get() + 1);
        Ok(Pipe { kind: Some(Kind::Kernel(ends)), len: 0 })
    }

    /// Bytes in the pipe.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Moves at most `max` bytes from the socket into the pipe; ready with 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's; `WouldBlock` if the pipe may be full: empty it first.
    pub fn poll_splice_in(
        &mut self,
        cx: &mut Context<'_>,
        from: &Socket,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        let (kind, holds) = (&mut self.kind, self.len);
        if holds > 0 && !from.is_readable() {
            return Poll::Ready(Err(io::ErrorKind::WouldBlock.into()));
        }
        let mut full = false;
        let poll = from.poll_io(cx, Side::Reader, |handle| match kind {
            Some(Kind::Kernel(ends)) => {
                match splice(handle.os()?, None, &ends.write, None, max, flags(false)) {
                    // The pipe may be what is full: nothing is known of the socket.
                    Err(rustix::io::Errno::AGAIN) if holds > 0 => {
                        full = true;
                        Ok(0)
                    }
                    result => Ok(result?),
                }
            }
            Some(Kind::Simulated(bytes)) => {
                let mut room = vec![0; max.min(SIM_SIZE.saturating_sub(bytes.len()))];
                let n = driver::recv(handle, &mut room, false)?;
                bytes.extend(&room[..n]);
                Ok(n)
            }
            None => Ok(0),
        });
        if full {
            return Poll::Ready(Err(io::ErrorKind::WouldBlock.into()));
        }
        if let Poll::Ready(Ok(n)) = poll {
            self.len += n;
            from.took(n);
            pace::moved(n);
        }
        poll
    }

    /// Moves bytes from the pipe, which must not be empty, into the socket. `more` as for a send.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_splice_out(
        &mut self,
        cx: &mut Context<'_>,
        to: &Socket,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let (kind, len) = (&mut self.kind, self.len);
        let poll = to.poll_io(cx, Side::Writer, |handle| match kind {
            Some(Kind::Kernel(ends)) => Ok(splice(&ends.read, None, handle.os()?, None, len, flags(more))?),
            Some(Kind::Simulated(bytes)) => {
                let n = driver::send(handle, bytes.make_contiguous(), more)?;
                bytes.drain(..n);
                Ok(n)
            }
            None => Ok(0),
        });
        if let Poll::Ready(Ok(n)) = poll {
            self.len -= n.min(self.len);
        }
        poll
    }
}

impl Ends {
    fn new() -> io::Result<Ends> {
        let PipeStats { used, free } = pipe_stats();
        if used + free >= LIMIT.load(Ordering::Relaxed) {
            return Err(rustix::io::Errno::MFILE.into());
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let size = SIZE.load(Ordering::Relaxed);
        if size > 0 {
            // Beyond the user's limit the default size has to do.
            let _ = rustix::pipe::fcntl_setpipe_size(&write, size);
        }
        Ok(Ends { read, write })
    }
}

fn flags(more: bool) -> SpliceFlags {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    if more { flags | SpliceFlags::MORE } else { flags }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| held.set(held.get().wrapping_sub(1)));
        let Some(Kind::Kernel(ends)) = self.kind.take() else { return };
        USED.fetch_sub(1, Ordering::Relaxed);
        // What still holds bytes of one connection must not serve another.
        if self.len > 0 {
            return;
        }
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() < KEEP {
                idle.push(ends);
                FREE.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}
