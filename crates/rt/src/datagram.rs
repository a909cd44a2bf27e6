//! Datagram sockets (UDP, Unix) and plain descriptors, for logs and DNS.
//!
//! Sending never waits: a log line that the system does not take at once is the caller's to count as dropped.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::addr::Addr;
use crate::datagram_row::{self, DatagramRow};
use crate::driver::{self, Handle, Interest};
use crate::source::{Side, ready as bit};
use crate::worker;

/// A datagram socket of this worker.
#[derive(Debug)]
pub struct Datagram {
    handle: Handle,
    /// Made when somebody first waits: a socket that only sends is never registered.
    source: Cell<Option<u32>>,
    /// Several workers wait for it.
    shared: bool,
    here: PhantomData<*const ()>,
}

impl Datagram {
    /// A socket bound to `addr`.
    ///
    /// # Errors
    /// EADDRINUSE, EMFILE, ...
    pub fn bind(addr: &Addr) -> io::Result<Datagram> {
        driver::datagram(addr, true).map(Datagram::of)
    }

    /// Takes over a socket that other workers receive from, too: a datagram wakes one of them.
    pub(crate) fn shared(fd: OwnedFd) -> Datagram {
        Datagram { handle: fd.into(), source: Cell::new(None), shared: true, here: PhantomData }
    }

    /// A socket of the family of `to`, bound to nothing, for [`Datagram::try_send_to`].
    ///
    /// # Errors
    /// EMFILE, ...
    pub fn unbound(to: &Addr) -> io::Result<Datagram> {
        driver::datagram(to, false).map(Datagram::of)
    }

    /// A socket that sends to `peer` and receives only from it.
    ///
    /// # Errors
    /// For a Unix path, ENOENT or ECONNREFUSED if nobody has it; EMFILE, ...
    pub fn connect(peer: &Addr) -> io::Result<Datagram> {
        let socket = Datagram::unbound(peer)?;
        driver::connect_datagram(&socket.handle, peer)?;
        Ok(socket)
    }

    /// Takes over a datagram socket, which must be non-blocking.
    pub fn from_fd(fd: OwnedFd) -> Datagram {
        Datagram::of(fd.into())
    }

    /// Gives up the socket, for another worker or to keep it across a chroot.
    ///
    /// # Errors
    /// In a simulated world, `Unsupported`.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.handle.os()?.try_clone_to_owned()
    }

    fn of(handle: Handle) -> Datagram {
        Datagram { handle, source: Cell::new(None), shared: false, here: PhantomData }
    }

    /// Sends to the peer it is connected to.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room now; ECONNREFUSED if an earlier one reached nobody; EMSGSIZE.
    pub fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        driver::send_datagram(&self.handle, data, None)
    }

    /// Sends to `to`.
    ///
    /// # Errors
    /// As [`Datagram::try_send`].
    pub fn try_send_to(&self, data: &[u8], to: &Addr) -> io::Result<usize> {
        driver::send_datagram(&self.handle, data, Some(to))
    }

    /// Sends pieces to the peer it is connected to, each as a datagram, at most [`ROW`](crate::ROW) of them;
    /// how many went.
    ///
    /// # Errors
    /// As [`Datagram::try_send`], if the first could not be sent.
    pub fn try_send_row<'d>(&self, mut pieces: impl Iterator<Item = &'d [u8]>) -> io::Result<usize> {
        if !self.handle.is_sim() {
            return datagram_row::send(self.handle.os()?, pieces);
        }
        let Some(first) = pieces.next() else { return Ok(0) };
        self.try_send(first)?;
        Ok(1 + pieces.take(datagram_row::ROW - 1).take_while(|piece| self.try_send(piece).is_ok()).count())
    }

    /// Receives what waits, as much as the row has room for, each cut to the size of a buffer. While nothing
    /// comes the row holds no buffer.
    ///
    /// # Errors
    /// ECONNREFUSED if an earlier datagram reached nobody.
    pub fn poll_recv_row(&self, cx: &mut Context<'_>, row: &mut DatagramRow) -> Poll<io::Result<()>> {
        let source = self.registered()?;
        let drained = || worker::with(|w| w.sources.borrow_mut().clear(source, bit::READ));
        if worker::with(|w| w.sources.borrow().ready(source)) & bit::READ != 0 {
            match driver::recv_datagram_row(&self.handle, row) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => drained(),
                Ok(()) if !row.is_full() => {
                    // The queue was empty at the end of that call: what came since is reported anew.
                    drained();
                    return Poll::Ready(Ok(()));
                }
                result => return Poll::Ready(result),
            }
        }
        row.rest();
        let task = worker::task_of(cx);
        worker::with(|w| w.sources.borrow_mut().wait(source, Side::Reader, task));
        Poll::Pending
    }

    /// Receives a datagram, cut to the size of `buf`, and its sender if that has an address.
    ///
    /// # Errors
    /// ECONNREFUSED if an earlier datagram reached nobody.
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<(usize, Option<Addr>)>> {
        let source = self.registered()?;
        if worker::with(|w| w.sources.borrow().ready(source)) & bit::READ != 0 {
            match driver::recv_datagram(&self.handle, buf) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    worker::with(|w| w.sources.borrow_mut().clear(source, bit::READ));
                }
                result => return Poll::Ready(result),
            }
        }
        let task = worker::task_of(cx);
        worker::with(|w| w.sources.borrow_mut().wait(source, Side::Reader, task));
        Poll::Pending
    }

    /// Receives a datagram. See [`Datagram::poll_recv`].
    ///
    /// # Errors
    /// As [`Datagram::poll_recv`].
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<(usize, Option<Addr>)> {
        poll_fn(|cx| self.poll_recv(cx, buf)).await
    }

    fn registered(&self) -> io::Result<u32> {
        if let Some(source) = self.source.get() {
            return Ok(source);
        }
        worker::with(|w| {
            let (source, token) = w.sources.borrow_mut().insert(self.handle.number(), bit::READ);
            self.source.set(Some(source));
            let interest = if self.shared { Interest::Listener } else { Interest::Read };
            w.driver.register(&self.handle, token, interest)?;
            Ok(source)
        })
    }

    /// Is not told of datagrams until somebody wants to receive again.
    pub(crate) fn rest(&self) {
        let Some(source) = self.source.take() else { return };
        let _ = worker::try_with(|w| {
            let token = w.sources.borrow().token(source);
            w.sources.borrow_mut().remove(source);
            // Others may hold the socket open, so closing it would not end the registration.
            self.shared.then(|| w.driver.deregister(&self.handle, token))
        });
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// If the kernel can't say.
    pub fn local_addr(&self) -> io::Result<Addr> {
        driver::local_addr(&self.handle)
    }

    /// The descriptor; an error in a simulated world.
    ///
    /// # Errors
    /// In a simulated world, `Unsupported`.
    pub fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        self.handle.os()
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        self.rest();
    }
}

/// A datagram socket of the kernel's.
pub(crate) fn open(addr: &Addr, bind: bool) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(addr.family(), SocketType::DGRAM, flags, None)?;
    if bind {
        rustix::net::bind(&fd, &addr.to_os()?)?;
    }
    Ok(fd)
}

pub(crate) fn send(fd: BorrowedFd<'_>, data: &[u8], to: Option<&Addr>) -> io::Result<usize> {
    Ok(match to {
        Some(to) => rustix::net::sendto(fd, data, SendFlags::NOSIGNAL, &to.to_os()?)?,
        None => rustix::net::send(fd, data, SendFlags::NOSIGNAL)?,
    })
}

pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<(usize, Option<Addr>)> {
    let (n, _, from) = rustix::net::recvfrom(fd, buf, RecvFlags::empty())?;
    Ok((n, from.as_ref().and_then(Addr::from_os)))
}

/// A descriptor to write log lines to: standard output, a pipe, a terminal, a file. Usable from any thread.
#[derive(Debug)]
pub struct FdWriter(OwnedFd);

impl FdWriter {
    /// A writer that never blocks on the same file as `fd`. Pipes and terminals are opened again where
    /// possible, since making `fd` itself non-blocking would do so for all processes that share it.
    ///
    /// # Errors
    /// EBADF, EMFILE.
    pub fn new(fd: BorrowedFd<'_>) -> io::Result<FdWriter> {
        use std::os::fd::AsRawFd;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        let own = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
        if kind == FileType::RegularFile {
            return Ok(FdWriter(own));
        }
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        if let Ok(again) = rustix::fs::open(path, flags, Mode::empty()) {
            return Ok(FdWriter(again));
        }
        rustix::io::ioctl_fionbio(&own, true)?;
        Ok(FdWriter(own))
    }

    /// Writes what the system takes now.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing; EPIPE if the reader is gone.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.0, data)?)
    }

    /// As [`FdWriter::try_write`], for several pieces.
    ///
    /// # Errors
    /// As [`FdWriter::try_write`].
    pub fn try_write_vectored(&self, data: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(&self.0, data)?)
    }
}

impl AsFd for FdWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
