//! Signals as a stream.
//!
//! The signals that mean something to a proxy are blocked in all threads ([`block_signals`], before the first
//! thread is started) and read from a descriptor by one task, so there are no handlers and nothing is
//! interrupted.

use std::future::poll_fn;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::task::{Context, Poll};

use crate::driver::{Handle, Interest};
use crate::source::{Side, ready as bit};
use crate::worker;

/// A signal that means something to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGUSR1: soft stop.
    Usr1,
    /// SIGUSR2: reload.
    Usr2,
    /// SIGHUP: reload, or show the state.
    Hup,
    /// SIGTERM: stop.
    Term,
    /// SIGINT: stop.
    Int,
    /// SIGQUIT: show the memory pools.
    Quit,
    /// SIGTTOU: pause listeners.
    Ttou,
    /// SIGTTIN: resume listeners.
    Ttin,
    /// SIGCHLD: a child ended.
    Chld,
}

const ALL: [(Signal, i32); 9] = [
    (Signal::Usr1, libc::SIGUSR1),
    (Signal::Usr2, libc::SIGUSR2),
    (Signal::Hup, libc::SIGHUP),
    (Signal::Term, libc::SIGTERM),
    (Signal::Int, libc::SIGINT),
    (Signal::Quit, libc::SIGQUIT),
    (Signal::Ttou, libc::SIGTTOU),
    (Signal::Ttin, libc::SIGTTIN),
    (Signal::Chld, libc::SIGCHLD),
];

impl Signal {
    /// Its number.
    pub fn number(self) -> i32 {
        ALL.iter().find(|(s, _)| *s == self).map_or(0, |(_, n)| *n)
    }
}

/// All of [`Signal`] as the kernel's set.
fn set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain integers; sigemptyset makes it a valid set, and the numbers added are valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for (_, number) in ALL {
            libc::sigaddset(&mut set, number);
        }
        set
    }
}

fn change_mask(how: i32) -> io::Result<()> {
    // SAFETY: the set is valid, and the old one isn't asked for.
    match unsafe { libc::pthread_sigmask(how, &set(), std::ptr::null_mut()) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Blocks all of [`Signal`] in this thread and those it starts, and ignores SIGPIPE. Those that whoever
/// started the process had it ignore (a shell does so with SIGINT for what runs behind it) mean what they
/// always mean.
///
/// # Errors
/// None in practice.
pub fn block_signals() -> io::Result<()> {
    // SAFETY: SIG_IGN and SIG_DFL are valid dispositions, and so are the numbers.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        for (_, number) in ALL {
            libc::signal(number, libc::SIG_DFL);
        }
    }
    change_mask(libc::SIG_BLOCK)
}

/// Undoes [`block_signals`], for a program about to be started.
///
/// # Errors
/// None in practice.
pub fn unblock_signals() -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    change_mask(libc::SIG_UNBLOCK)
}

/// The stream of signals sent to this process.
#[derive(Debug)]
pub struct Signals {
    handle: Handle,
    source: u32,
}

impl Signals {
    /// Opens the stream on this worker. One per process is enough: each signal is seen once.
    ///
    /// # Errors
    /// EMFILE.
    pub fn open() -> io::Result<Signals> {
        // SAFETY: the set is valid; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let handle = Handle::from(unsafe { OwnedFd::from_raw_fd(fd) });
        worker::with(|w| {
            let (source, token) = w.sources.borrow_mut().insert(handle.number(), bit::READ);
            let signals = Signals { handle, source };
            w.driver.register(&signals.handle, token, Interest::Read)?;
            Ok(signals)
        })
    }

    /// Ready with the next signal.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        while worker::with(|w| w.sources.borrow().ready(self.source)) & bit::READ != 0 {
            // struct signalfd_siginfo: 128 bytes, the number first.
            let mut info = [0u8; 128];
            let read = self.handle.os().and_then(|fd| Ok(rustix::io::read(fd, &mut info)?));
            if !matches!(read, Ok(128)) {
                worker::with(|w| w.sources.borrow_mut().clear(self.source, bit::READ));
                break;
            }
            let number = i32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
            if let Some((signal, _)) = ALL.iter().find(|(_, n)| *n == number) {
                return Poll::Ready(*signal);
            }
        }
        let task = worker::task_of(cx);
        worker::with(|w| w.sources.borrow_mut().wait(self.source, Side::Reader, task));
        Poll::Pending
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Signal {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        worker::try_with(|w| w.sources.borrow_mut().remove(self.source));
    }
}
