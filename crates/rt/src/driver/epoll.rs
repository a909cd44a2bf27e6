//! The Linux kernel as driver: one epoll instance per worker, plain non-blocking system calls.
//!
//! Sockets are registered once, edge-triggered, for both directions: no `epoll_ctl` on the way of a request.
//! Shared listeners are level-triggered with EPOLLEXCLUSIVE, so that a connection wakes one worker, and is
//! seen by another if that one does not take it.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType,
};
use rustix::time::Timespec;

use crate::addr::Addr;
use crate::driver::{Handle, Interest, Report};
use crate::source::ready;

/// Events taken per call, as many as HAProxy's default `tune.maxpollevents`.
static BATCH: AtomicUsize = AtomicUsize::new(200);

/// Sets how many events of the system a worker takes at once; counts for workers that start later.
pub fn set_events_at_once(events: usize) {
    BATCH.store(events.clamp(1, 1_000_000), Ordering::Relaxed);
}

/// Workers ask for events again and again instead of waiting for them.
static SLEEPLESS: AtomicBool = AtomicBool::new(false);

/// Sets whether workers keep their processors busy while they have nothing to do (`busy-polling`).
pub fn set_sleepless(on: bool) {
    SLEEPLESS.store(on, Ordering::Relaxed);
}

pub(crate) struct Epoll {
    /// Other workers end registrations of sockets that they take over.
    fd: Arc<OwnedFd>,
    events: RefCell<Vec<epoll::Event>>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Epoll {
            fd: Arc::new(fd),
            events: RefCell::new(Vec::with_capacity(BATCH.load(Ordering::Relaxed))),
        })
    }

    pub(crate) fn shared(&self) -> Arc<OwnedFd> {
        self.fd.clone()
    }

    pub(crate) fn register(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let flags = match interest {
            Interest::Stream => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
            Interest::Read => EventFlags::IN | EventFlags::ET,
            Interest::Listener => EventFlags::IN | EventFlags::EXCLUSIVE,
        };
        Ok(epoll::add(&*self.fd, fd, EventData::new_u64(token), flags)?)
    }

    pub(crate) fn deregister(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&*self.fd, fd)?)
    }

    pub(crate) fn poll(&self, wait: Option<Duration>, reports: &mut Vec<Report>) {
        let mut events = self.events.borrow_mut();
        events.clear();
        let wait = if SLEEPLESS.load(Ordering::Relaxed) { Some(Duration::ZERO) } else { wait };
        let timeout = wait.map(whole_millis);
        // The only errors are EINTR, which is no event, and those of wrong arguments.
        if epoll::wait(&*self.fd, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()).is_err() {
            return;
        }
        reports.extend(events.iter().map(|e| Report { token: e.data.u64(), ready: ready_of(e.flags) }));
    }
}

/// A wait rounded up to the milliseconds that epoll counts in, at most a day.
fn whole_millis(wait: Duration) -> Timespec {
    let millis = wait.as_nanos().div_ceil(1_000_000).min(86_400_000) as i64;
    Timespec { tv_sec: millis / 1000, tv_nsec: (millis % 1000) * 1_000_000 }
}

#[inline]
fn ready_of(flags: EventFlags) -> u8 {
    const PAIRS: [(EventFlags, u8); 5] = [
        (EventFlags::IN, ready::READ),
        (EventFlags::OUT, ready::WRITE),
        (EventFlags::RDHUP, ready::READ_CLOSED),
        (EventFlags::HUP, ready::HANGUP),
        (EventFlags::ERR, ready::ERROR),
    ];
    PAIRS.iter().fold(0, |bits, &(flag, bit)| if flags.contains(flag) { bits | bit } else { bits })
}

#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], peek: bool) -> io::Result<usize> {
    let flags = if peek { RecvFlags::PEEK } else { RecvFlags::empty() };
    loop {
        match rustix::net::recv(fd, &mut *buf, flags) {
            Ok((n, _)) => return Ok(n),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

#[inline]
fn send_flags(more: bool) -> SendFlags {
    if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL }
}

#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, data: &[u8], more: bool) -> io::Result<usize> {
    loop {
        match rustix::net::send(fd, data, send_flags(more)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Up to so many bytes it costs less to put pieces together than to have the kernel read a list of them.
const SHORT: usize = 1024;

#[inline]
pub(crate) fn send_vectored(fd: BorrowedFd<'_>, data: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
    let len: usize = data.iter().map(|piece| piece.len()).sum();
    let mut short = [0; SHORT];
    if let Some(whole) = short.get_mut(..len) {
        let mut rest = &mut *whole;
        for piece in data {
            let (here, behind) = rest.split_at_mut(piece.len());
            here.copy_from_slice(piece);
            rest = behind;
        }
        return send(fd, whole, more);
    }
    loop {
        match rustix::net::sendmsg(fd, data, &mut SendAncillaryBuffer::default(), send_flags(more)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

pub(crate) fn shutdown_write(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Write)?)
}

pub(crate) fn take_error(fd: BorrowedFd<'_>) -> io::Result<Option<io::Error>> {
    socket2::SockRef::from(&fd).take_error()
}

pub(crate) fn pair() -> io::Result<(Handle, Handle)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (a, b) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok((a.into(), b.into()))
}

pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<(Handle, Option<Addr>)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        match rustix::net::acceptfrom_with(fd, flags) {
            // A connection that is gone already: the next one.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            Err(e) => return Err(e.into()),
            Ok((fd, addr)) => return Ok((fd.into(), addr.as_ref().and_then(Addr::from_os))),
        }
    }
}
