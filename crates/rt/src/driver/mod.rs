//! The contract between the runtime and what it runs on.
//!
//! Two drivers fulfil it: `epoll`, the Linux kernel, and `sim`, a simulated world. Everything above speaks in
//! terms of this page. A driver has
//!
//! - *handles*: owned descriptors of streams, listeners, datagram sockets and pipes. A handle of the kernel
//!   is its file descriptor; one of a simulated world is a number from [`SIM_BASE`] up, which no descriptor
//!   reaches. So which driver an operation goes to is one comparison with a constant, always with the same
//!   outcome in a process that serves traffic, and nothing above is generic over it;
//! - *operations* on handles, which never block: they fail with `WouldBlock` where the kernel would say
//!   EAGAIN;
//! - *registration*: a handle is made known once under a token, and from then on `poll` reports changes of
//!   readiness for that token, edge-triggered (listeners: level-triggered, one waiting worker woken for
//!   each). A report may be needless; a missing one is a bug. A read that returned less than was asked for,
//!   or a write that took less than was offered, is followed by a report when there is more to read or room
//!   to write. At registration the state is reported as if it had just come about;
//! - `poll`, which returns reports, waiting for at most the given time when there are none. In a simulated
//!   world this is where time passes.

pub(crate) mod epoll;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use epoll::Epoll;

use crate::addr::Addr;
use crate::buf::Buf;
use crate::datagram;
use crate::datagram_row::{self, DatagramRow};
use crate::listen::{self, ListenOptions};
use crate::local;
use crate::sim::{self, ops};
use crate::sockopt::{self, ConnectOptions};

/// Handles from here up belong to a simulated world. (The kernel's limit on descriptors, `fs.nr_open`, can't
/// be set this high.)
pub(crate) const SIM_BASE: RawFd = 0x7000_0000;

/// An owned descriptor of either driver, closed on drop.
#[derive(Debug)]
pub(crate) struct Handle(RawFd);

impl Handle {
    /// The kernel descriptor; an error for one of a simulated world, where socket options do not exist.
    #[inline]
    pub(crate) fn os(&self) -> io::Result<BorrowedFd<'_>> {
        self.kernel().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    }

    /// The kernel descriptor, if it is one.
    #[inline]
    pub(crate) fn kernel(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: below SIM_BASE the number is an open descriptor that this handle owns, so it outlives the
        // borrow.
        (!self.is_sim()).then(|| unsafe { BorrowedFd::borrow_raw(self.0) })
    }

    /// Takes a kernel descriptor by its number.
    ///
    /// # Safety
    /// The descriptor is open, and nobody else uses or closes it from now on.
    // SAFETY: nothing unsafe happens here; what callers promise is what `Drop` relies on.
    pub(crate) unsafe fn from_number(number: RawFd) -> Handle {
        Handle(number)
    }

    #[inline]
    pub(crate) fn is_sim(&self) -> bool {
        self.0 >= SIM_BASE
    }

    /// An end of a stream inside the worker, see [`local`].
    #[inline]
    pub(crate) fn is_local(&self) -> bool {
        self.0 >= local::BASE
    }

    /// One of a simulated world, for operations that local streams have not got.
    fn simulated(&self) -> io::Result<RawFd> {
        if self.is_local() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(self.0) }
    }

    pub(crate) fn number(&self) -> RawFd {
        self.0
    }

    /// Gives up the kernel descriptor.
    pub(crate) fn into_os(self) -> io::Result<OwnedFd> {
        self.os()?;
        let fd = self.0;
        std::mem::forget(self);
        // SAFETY: this handle owned the descriptor and has been forgotten.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Handle {
        debug_assert!(fd.as_raw_fd() < SIM_BASE);
        Handle(fd.into_raw_fd())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_local() {
            local::close(self.0);
        } else if self.is_sim() {
            ops::close(self.0);
        } else {
            // SAFETY: this handle owns the descriptor, and is being dropped.
            drop(unsafe { OwnedFd::from_raw_fd(self.0) });
        }
    }
}

/// What a handle is registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Both directions and hang-ups, edge-triggered.
    Stream,
    /// Reading only, edge-triggered.
    Read,
    /// Incoming connections, level-triggered, possibly shared with other workers.
    Listener,
}

/// A change of readiness: bits of [`crate::source::ready`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) token: u64,
    pub(crate) ready: u8,
}

/// The driver of a worker.
pub(crate) enum Driver {
    Epoll(Epoll),
    /// The simulated network of the thread.
    Sim,
}

impl Driver {
    pub(crate) fn register(&self, handle: &Handle, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            _ if handle.is_local() => local::register(handle.0, token),
            Driver::Epoll(epoll) => epoll.register(handle.os()?.as_fd(), token, interest),
            Driver::Sim => ops::register(handle.0, token, interest),
        }
    }

    /// Ends the registration of a handle that stays open. Closing a handle ends it too.
    pub(crate) fn deregister(&self, handle: &Handle, token: u64) -> io::Result<()> {
        match self {
            Driver::Epoll(epoll) => epoll.deregister(handle.os()?),
            Driver::Sim if handle.is_local() => Err(io::ErrorKind::Unsupported.into()),
            Driver::Sim => {
                ops::deregister(handle.0, Some(token));
                Ok(())
            }
        }
    }

    /// The epoll instance, for other threads; `None` in a simulated world.
    pub(crate) fn epoll(&self) -> Option<std::sync::Arc<OwnedFd>> {
        match self {
            Driver::Epoll(epoll) => Some(epoll.shared()),
            Driver::Sim => None,
        }
    }

    /// Appends reports; waits for at most `wait` (`None`: as long as it takes) if there are none.
    pub(crate) fn poll(&self, wait: Option<Duration>, reports: &mut Vec<Report>) {
        match self {
            Driver::Epoll(epoll) => epoll.poll(wait, reports),
            Driver::Sim => ops::poll(wait, reports),
        }
    }
}

#[inline]
pub(crate) fn recv(handle: &Handle, buf: &mut [u8], peek: bool) -> io::Result<usize> {
    if handle.is_sim() {
        return match handle.is_local() {
            true => local::recv(handle.0, buf, peek),
            false => ops::recv(handle.0, buf, peek),
        };
    }
    epoll::recv(handle.os()?, buf, peek)
}

#[inline]
pub(crate) fn send(handle: &Handle, data: &[u8], more: bool) -> io::Result<usize> {
    if handle.is_sim() {
        return send_virtual(handle, data);
    }
    epoll::send(handle.os()?, data, more)
}

#[inline]
pub(crate) fn send_vectored(handle: &Handle, data: &[io::IoSlice<'_>], more: bool) -> io::Result<usize> {
    if handle.is_sim() {
        return send_pieces(handle, data);
    }
    epoll::send_vectored(handle.os()?, data, more)
}

/// Sends several pieces as one write.
fn send_pieces(handle: &Handle, data: &[io::IoSlice<'_>]) -> io::Result<usize> {
    let whole: Vec<u8> = data.iter().flat_map(|piece| piece.iter().copied()).collect();
    send_virtual(handle, &whole)
}

fn send_virtual(handle: &Handle, data: &[u8]) -> io::Result<usize> {
    if handle.is_local() { local::send(handle.0, data) } else { ops::send(handle.0, data) }
}

/// See [`local::take`].
pub(crate) fn take(handle: &Handle) -> io::Result<Option<Buf>> {
    if handle.is_local() { local::take(handle.0) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// See [`local::give`].
pub(crate) fn give(handle: &Handle, buf: &mut Option<Buf>) -> io::Result<usize> {
    if handle.is_local() { local::give(handle.0, buf) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Two ends of a stream inside the worker.
pub(crate) fn local_pair() -> (Handle, Handle) {
    let (a, b) = local::pair();
    (Handle(a), Handle(b))
}

/// Two sockets connected to each other.
pub(crate) fn pair() -> io::Result<(Handle, Handle)> {
    if sim::is_active() {
        return ops::pair().map(|(a, b)| (Handle(a), Handle(b)));
    }
    epoll::pair()
}

/// Closes the sending direction.
pub(crate) fn shutdown_write(handle: &Handle) -> io::Result<()> {
    if handle.is_sim() {
        return match handle.is_local() {
            true => local::shutdown_write(handle.0),
            false => ops::shutdown_write(handle.0),
        };
    }
    epoll::shutdown_write(handle.os()?)
}

/// The pending error of a socket, which is cleared.
pub(crate) fn take_error(handle: &Handle) -> io::Result<Option<io::Error>> {
    if handle.is_sim() {
        return ops::take_error(handle.simulated()?);
    }
    epoll::take_error(handle.os()?)
}

/// Begins a connection.
pub(crate) fn connect(addr: &Addr, options: &ConnectOptions) -> io::Result<Handle> {
    if sim::is_active() {
        return ops::connect(addr, options.source.as_ref()).map(Handle);
    }
    sockopt::connect(addr, options).map(Handle::from)
}

/// Takes a connection from a listener, with the peer's address if there is one.
pub(crate) fn accept(handle: &Handle) -> io::Result<(Handle, Option<Addr>)> {
    if handle.is_sim() {
        return ops::accept(handle.0).map(|(number, addr)| (Handle(number), Some(addr)));
    }
    epoll::accept(handle.os()?)
}

/// Takes a connection that comes as a descriptor in a message. The end of the stream of messages is an error.
pub(crate) fn accept_passed(handle: &Handle) -> io::Result<(Handle, Option<Addr>)> {
    let (mut byte, mut fds) = ([0u8], Vec::new());
    if crate::sys::recv_fds(handle.os()?, &mut byte, &mut fds)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let fd = fds.pop().ok_or(io::ErrorKind::InvalidData)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok((fd.into(), None))
}

pub(crate) fn local_addr(handle: &Handle) -> io::Result<Addr> {
    if handle.is_sim() {
        return ops::local_addr(handle.simulated()?);
    }
    sockopt::addr_of(Some(rustix::net::getsockname(handle.os()?)?))
}

pub(crate) fn peer_addr(handle: &Handle) -> io::Result<Addr> {
    if handle.is_sim() {
        return ops::peer_addr(handle.simulated()?);
    }
    sockopt::addr_of(rustix::net::getpeername(handle.os()?)?)
}

/// Has the close send a reset.
pub(crate) fn set_linger0(handle: &Handle) -> io::Result<()> {
    if handle.is_sim() {
        return ops::set_linger0(handle.simulated()?);
    }
    sockopt::set_linger0(handle.os()?)
}

/// Bytes that were sent and have not reached the peer's kernel yet.
pub(crate) fn unacknowledged(handle: &Handle) -> io::Result<usize> {
    if handle.is_sim() {
        return ops::unacknowledged(handle.simulated()?);
    }
    sockopt::unacknowledged(handle.os()?)
}

/// Has the close say nothing.
pub(crate) fn vanish(handle: &Handle, hops: Option<u8>) -> io::Result<()> {
    if handle.is_sim() {
        return ops::vanish(handle.simulated()?);
    }
    sockopt::vanish(handle.os()?, hops)
}

/// Binds and listens.
pub(crate) fn listen(addr: &Addr, options: &ListenOptions) -> io::Result<Handle> {
    if sim::is_active() {
        return ops::listen(addr, options.backlog, options.reuseport).map(Handle);
    }
    listen::listen(addr, options).map(Handle::from)
}

/// A datagram socket, bound to `addr` or only of its family.
pub(crate) fn datagram(addr: &Addr, bind: bool) -> io::Result<Handle> {
    if sim::is_active() {
        let unbound = Addr::Inet(([127, 0, 0, 1], 0).into());
        return ops::datagram_socket(if bind { addr } else { &unbound }).map(Handle);
    }
    datagram::open(addr, bind).map(Handle::from)
}

pub(crate) fn connect_datagram(handle: &Handle, peer: &Addr) -> io::Result<()> {
    if handle.is_sim() {
        return ops::connect_datagram(handle.0, peer);
    }
    Ok(rustix::net::connect(handle.os()?, &peer.to_os()?)?)
}

pub(crate) fn send_datagram(handle: &Handle, data: &[u8], to: Option<&Addr>) -> io::Result<usize> {
    if handle.is_sim() {
        return ops::send_datagram(handle.0, data, to);
    }
    datagram::send(handle.os()?, data, to)
}

/// Receives datagrams, as many as the row has room for.
pub(crate) fn recv_datagram_row(handle: &Handle, row: &mut DatagramRow) -> io::Result<()> {
    if handle.is_sim() {
        let one = |buf: &mut [u8]| ops::recv_datagram(handle.0, buf).map(|(n, from)| (n, from.as_inet()));
        return datagram_row::receive_each(row, one);
    }
    datagram_row::receive(handle.os()?, row)
}

pub(crate) fn recv_datagram(handle: &Handle, buf: &mut [u8]) -> io::Result<(usize, Option<Addr>)> {
    if handle.is_sim() {
        return ops::recv_datagram(handle.0, buf).map(|(n, from)| (n, Some(from)));
    }
    datagram::recv(handle.os()?, buf)
}
