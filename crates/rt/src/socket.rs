//! Stream sockets: TCP and Unix.
//!
//! An operation is tried only when its ready bit is set, and otherwise waits for the driver's report. The
//! bits are kept exact enough to save the calls that would only say EAGAIN: a read that returns less than it
//! could has emptied the socket, a write that takes less than it was offered has filled it, so the bit is
//! cleared without asking again (unless the peer has closed, when the end of the stream is still to be read).
//! After accept and connect the write bit is set: the first request is sent without waiting for a report. So
//! a request costs one read and one write.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use crate::addr::Addr;
use crate::buf::Buf;
use crate::driver::{self, Handle, Interest};
use crate::sockopt::ConnectOptions;
use crate::source::{Side, ready as bit};
use crate::worker;

/// A stream socket that belongs to the worker on which it was made. Dropping it closes the connection.
#[derive(Debug)]
pub struct Socket {
    handle: Handle,
    source: u32,
    here: PhantomData<*const ()>,
}

/// A stream socket that belongs to no worker: what is left of an idle connection while it changes hands.
#[derive(Debug)]
pub struct Detached(Handle);

impl Socket {
    /// Begins to connect. Await the outcome with [`Socket::poll_connected`], or just send.
    ///
    /// # Errors
    /// What the kernel says at once: no descriptors (EMFILE, ENFILE), no ports (EADDRNOTAVAIL), no route, a
    /// Unix socket that nobody listens on (ECONNREFUSED), an option that is not permitted.
    pub fn connect(addr: &Addr, options: &ConnectOptions) -> io::Result<Socket> {
        let handle = driver::connect(addr, options)?;
        // A Unix socket is connected at once. Were that learnt by a report, one that says as well that the
        // other end has closed would pass for a failure.
        let connected = if addr.is_unix() && !handle.is_sim() { bit::CONNECTED } else { 0 };
        Socket::register(handle, bit::WRITE | connected)
    }

    /// Connects to whoever listens at the other end of a Unix socket (`sockpair@`): makes a pair and sends
    /// one end of it there.
    ///
    /// # Errors
    /// EMFILE; what sending says; `WouldBlock` if the other side is slow to take connections.
    pub fn connect_sockpair(line: BorrowedFd<'_>) -> io::Result<Socket> {
        let (ours, theirs) = driver::pair()?;
        crate::sys::send_fds(line, &[0], &[theirs.os()?])?;
        Socket::established(ours)
    }

    /// A connected pair of Unix sockets.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn pair() -> io::Result<(Socket, Socket)> {
        let (a, b) = driver::pair()?;
        Ok((Socket::established(a)?, Socket::established(b)?))
    }

    /// A stream inside this worker: two ends connected by memory, without descriptors. What concerns a socket
    /// of the kernel (options, addresses, splicing) is `Unsupported`, and neither end can leave the worker.
    ///
    /// # Errors
    /// None so far.
    pub fn local() -> io::Result<(Socket, Socket)> {
        let (a, b) = driver::local_pair();
        Ok((Socket::established(a)?, Socket::established(b)?))
    }

    /// Whether this is an end of a stream inside the worker.
    pub fn is_local(&self) -> bool {
        self.handle.is_local()
    }

    /// Takes the next buffer that waits at an end of a stream inside the worker, without copying it: `None`
    /// if that has to be awaited, `Ok(None)` at the end of the stream.
    pub fn try_take(&self) -> Option<io::Result<Option<Buf>>> {
        if self.ready() & bit::READ == 0 {
            return None;
        }
        match driver::take(&self.handle) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.clear(bit::READ);
                None
            }
            result => Some(result),
        }
    }

    /// Hands the buffer, which must not be empty, to the other end of a stream inside the worker; returns its
    /// length. Until that has been possible the buffer stays where it is.
    ///
    /// # Errors
    /// BrokenPipe if the other end is closed; `Unsupported` for other kinds of sockets.
    pub fn poll_give(&self, cx: &mut Context<'_>, buf: &mut Option<Buf>) -> Poll<io::Result<usize>> {
        self.poll_io(cx, Side::Writer, |handle| driver::give(handle, buf))
    }

    /// Sends bytes (at least one) and descriptors over a Unix socket; returns how many bytes went, with which
    /// all descriptors did.
    ///
    /// # Errors
    /// Those of the socket; `InvalidInput` for more than [`crate::sys::MAX_FDS`] descriptors.
    pub async fn send_fds(&self, data: &[u8], fds: &[OwnedFd]) -> io::Result<usize> {
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        let send = |handle: &Handle| crate::sys::send_fds(handle.os()?, data, &fds);
        poll_fn(|cx| self.poll_io(cx, Side::Writer, send)).await
    }

    /// Takes over a connected descriptor, which must be non-blocking.
    ///
    /// # Errors
    /// When the kernel refuses to register it.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Socket> {
        Socket::established(fd.into())
    }

    /// A connected handle becomes a socket of this worker.
    pub(crate) fn established(handle: Handle) -> io::Result<Socket> {
        Socket::register(handle, bit::WRITE | bit::CONNECTED)
    }

    fn register(handle: Handle, ready: u8) -> io::Result<Socket> {
        worker::with(|w| {
            let (source, token) = w.sources.borrow_mut().insert(handle.number(), ready);
            let socket = Socket { handle, source, here: PhantomData };
            w.driver.register(&socket.handle, token, Interest::Stream)?;
            Ok(socket)
        })
    }

    #[inline]
    fn ready(&self) -> u8 {
        worker::with(|w| w.sources.borrow().ready(self.source))
    }

    #[inline]
    pub(crate) fn clear(&self, bits: u8) {
        worker::with(|w| w.sources.borrow_mut().clear(self.source, bits));
    }

    #[inline]
    fn wait<T>(&self, cx: &Context<'_>, side: Side) -> Poll<T> {
        let task = worker::task_of(cx);
        worker::with(|w| w.sources.borrow_mut().wait(self.source, side, task));
        Poll::Pending
    }

    /// Reads if there may be something to read: `None` if that has to be awaited. 0 is the end of the stream.
    #[inline]
    pub fn try_recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let ready = self.ready();
        if ready & bit::READ == 0 {
            return None;
        }
        match driver::recv(&self.handle, buf, false) {
            Ok(n) => {
                self.took(n);
                if n < buf.len() && ready & bit::CLOSED == 0 {
                    self.emptied();
                }
                Some(Ok(n))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.emptied();
                None
            }
            Err(e) => Some(Err(e)),
        }
    }

    /// So many bytes were read.
    #[inline]
    pub(crate) fn took(&self, bytes: usize) {
        worker::with(|w| w.sources.borrow_mut().took(self.source, bytes));
    }

    /// There is no more to read.
    #[inline]
    fn emptied(&self) {
        if worker::with(|w| w.sources.borrow_mut().emptied(self.source)) {
            // Not every kind of socket knows it; then nothing waits for it either.
            let _ = self.set_quickack(true);
        }
    }

    /// Reads up to `buf.len()` bytes, which must not be 0. Ready with 0 at the end of the stream.
    ///
    /// # Errors
    /// The connection's (ECONNRESET, ETIMEDOUT, ...); for a connection that could not be made, its reason.
    #[inline]
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.try_recv(buf) {
            Some(result) => Poll::Ready(result),
            None => self.wait(cx, Side::Reader),
        }
    }

    /// Looks at what [`Socket::poll_recv`] would read, without taking it. Ready only with at least `at_least`
    /// bytes, or all that is left at the end of the stream, or when `buf` is full.
    ///
    /// # Errors
    /// As [`Socket::poll_recv`].
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        at_least: usize,
    ) -> Poll<io::Result<usize>> {
        let ready = self.ready();
        if ready & bit::READ == 0 {
            return self.wait(cx, Side::Reader);
        }
        match driver::recv(&self.handle, buf, true) {
            Ok(n) if n >= at_least.min(buf.len()) || ready & bit::CLOSED != 0 => Poll::Ready(Ok(n)),
            // More bytes are reported as a change, and the bit must survive for the read of those that are
            // here.
            Ok(_) => self.wait(cx, Side::Reader),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.clear(bit::READ);
                self.wait(cx, Side::Reader)
            }
            Err(e) => Poll::Ready(Err(e)),
        }
    }

    /// Writes if there may be room: `None` if that has to be awaited. `more` says that more follows at once,
    /// so that the kernel may wait for it to fill a segment (MSG_MORE).
    #[inline]
    pub fn try_send(&self, data: &[u8], more: bool) -> Option<io::Result<usize>> {
        if self.ready() & bit::WRITE == 0 {
            return None;
        }
        self.sent(driver::send(&self.handle, data, more), data.len())
    }

    /// As [`Socket::try_send`], for several pieces.
    #[inline]
    pub fn try_send_vectored(&self, data: &[IoSlice<'_>], more: bool) -> Option<io::Result<usize>> {
        if self.ready() & bit::WRITE == 0 {
            return None;
        }
        let length = data.iter().map(|s| s.len()).sum();
        self.sent(driver::send_vectored(&self.handle, data, more), length)
    }

    #[inline]
    pub(crate) fn sent(&self, result: io::Result<usize>, length: usize) -> Option<io::Result<usize>> {
        match result {
            Ok(n) => {
                worker::with(|w| {
                    let mut sources = w.sources.borrow_mut();
                    sources.spoke(self.source);
                    if n < length {
                        sources.clear(self.source, bit::WRITE);
                    }
                });
                Some(Ok(n))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.clear(bit::WRITE);
                None
            }
            Err(e) => Some(Err(e)),
        }
    }

    /// Writes some of `data`; returns how many bytes. On a socket that is still connecting, waits for that.
    ///
    /// # Errors
    /// The connection's (EPIPE, ECONNRESET, ...); for a connection that could not be made, its reason.
    #[inline]
    pub fn poll_send(&self, cx: &mut Context<'_>, data: &[u8], more: bool) -> Poll<io::Result<usize>> {
        match self.try_send(data, more) {
            Some(result) => Poll::Ready(result),
            None => self.wait(cx, Side::Writer),
        }
    }

    /// As [`Socket::poll_send`], for several pieces in one call.
    ///
    /// # Errors
    /// As [`Socket::poll_send`].
    #[inline]
    pub fn poll_send_vectored(
        &self,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        match self.try_send_vectored(data, more) {
            Some(result) => Poll::Ready(result),
            None => self.wait(cx, Side::Writer),
        }
    }

    /// Ready when the connection is established or has failed.
    ///
    /// # Errors
    /// Why it failed (ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ...).
    pub fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = self.ready();
        if ready & (bit::ERROR | bit::HANGUP) != 0 && ready & bit::CONNECTED == 0 {
            let error = driver::take_error(&self.handle)?;
            return Poll::Ready(Err(error.unwrap_or_else(|| io::ErrorKind::NotConnected.into())));
        }
        if ready & bit::CONNECTED != 0 { Poll::Ready(Ok(())) } else { self.wait(cx, Side::Writer) }
    }

    /// Ready when a read is worth trying: data, end of stream or error. Reads nothing.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_readable() { Poll::Ready(()) } else { self.wait(cx, Side::Reader) }
    }

    /// Ready when a write is worth trying: room, or an error. Writes nothing.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_writable() { Poll::Ready(()) } else { self.wait(cx, Side::Writer) }
    }

    /// Ready when the peer has closed its side or the connection broke, whatever remains to be read. It takes
    /// the reader's waiting place: don't await both this and a read from different tasks.
    pub fn poll_hangup(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_hung_up() { Poll::Ready(()) } else { self.wait(cx, Side::Reader) }
    }

    /// Whether a read is worth trying, as of the last report.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.ready() & bit::READ != 0
    }

    /// Whether a write is worth trying, as of the last report.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.ready() & bit::WRITE != 0
    }

    /// Whether the peer has closed its side or the connection broke, as of the last report.
    #[inline]
    pub fn is_hung_up(&self) -> bool {
        self.ready() & bit::CLOSED != 0
    }

    /// Whether the connection is gone in both directions, as of the last report.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.ready() & (bit::ERROR | bit::HANGUP) != 0
    }

    /// Whether the connection broke by an error, as of the last report: a peer of a Unix socket that closes
    /// makes none.
    pub fn is_reset(&self) -> bool {
        self.ready() & bit::ERROR != 0
    }

    /// Ready when the connection is gone in both directions: reset, or closed by the peer and here. It takes
    /// the reader's waiting place, as [`Socket::poll_hangup`] does.
    pub fn poll_broken(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ready() & (bit::ERROR | bit::HANGUP) != 0 {
            Poll::Ready(())
        } else {
            self.wait(cx, Side::Reader)
        }
    }

    /// Ready when the connection broke by an error, see [`Socket::is_reset`]. It takes the reader's waiting
    /// place.
    pub fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_reset() { Poll::Ready(()) } else { self.wait(cx, Side::Reader) }
    }

    /// Says that a read should be tried without waiting for a report: after an accept that waited for data.
    pub fn assume_readable(&self) {
        worker::with(|w| w.sources.borrow_mut().add(self.source, bit::READ));
    }

    /// Closes the sending direction; the peer reads the end of the stream after what was sent.
    ///
    /// # Errors
    /// ENOTCONN if the connection is gone.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.clear(bit::RESET_ON_CLOSE);
        driver::shutdown_write(&self.handle)
    }

    /// From now on, dropping the socket resets the connection, unless its peer has closed or broken it by
    /// then, or [`Socket::shutdown_write`] was called. For outgoing connections that this side is the first
    /// to close: their port does not wait for minutes (TIME_WAIT) and the peer has nothing left to answer.
    /// While the peer has not acknowledged all that was sent, the close is an orderly one, so that nothing is
    /// lost. Detaching forgets it.
    pub fn reset_on_close(&self) {
        worker::with(|w| w.sources.borrow_mut().add(self.source, bit::RESET_ON_CLOSE));
    }

    /// The pending error of the connection, which is thereby cleared.
    ///
    /// # Errors
    /// If the kernel can't say.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        driver::take_error(&self.handle)
    }

    /// Reads up to `buf.len()` bytes. See [`Socket::poll_recv`].
    ///
    /// # Errors
    /// As [`Socket::poll_recv`].
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_recv(cx, buf)).await
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// As [`Socket::poll_send`]; WriteZero if the kernel takes nothing.
    pub async fn send_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let n = poll_fn(|cx| self.poll_send(cx, data, false)).await?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            data = &data[n..];
        }
        Ok(())
    }

    /// Waits until the connection is established.
    ///
    /// # Errors
    /// As [`Socket::poll_connected`].
    pub async fn connected(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_connected(cx)).await
    }

    /// Ends the connection's life on this worker. It may be attached to any worker; unread data stays in the
    /// socket.
    ///
    /// # Errors
    /// If the kernel refuses to end the registration; the connection is then closed.
    pub fn detach(self) -> io::Result<Detached> {
        worker::with(|w| {
            let token = w.sources.borrow().token(self.source);
            w.driver.deregister(&self.handle, token)?;
            w.sources.borrow_mut().remove(self.source);
            io::Result::Ok(())
        })?;
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again, so the handle is moved out of it once.
        Ok(Detached(unsafe { std::ptr::read(&this.handle) }))
    }

    /// Gives the socket up without closing its descriptor, which belongs to another worker by now.
    pub(crate) fn forget(self) {
        worker::try_with(|w| w.sources.borrow_mut().remove(self.source));
        std::mem::forget(self);
    }

    /// The descriptor, for a call that this type lacks; an error in a simulated world.
    ///
    /// # Errors
    /// In a simulated world, `Unsupported`.
    pub fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        self.handle.os()
    }

    /// The number of the descriptor, for `show fd` and the like.
    pub fn number(&self) -> RawFd {
        self.handle.number()
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Awaits readiness and then tries, for operations that are neither a read nor a write (splice).
    pub(crate) fn poll_io(
        &self,
        cx: &Context<'_>,
        side: Side,
        mut operation: impl FnMut(&Handle) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let wanted = if side == Side::Reader { bit::READ } else { bit::WRITE };
        if self.ready() & wanted == 0 {
            return self.wait(cx, side);
        }
        match operation(&self.handle) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                match side {
                    Side::Reader => self.emptied(),
                    Side::Writer => self.clear(bit::WRITE),
                }
                self.wait(cx, side)
            }
            result => Poll::Ready(result),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        worker::try_with(|w| {
            let mut sources = w.sources.borrow_mut();
            let resets =
                sources.ready(self.source) & (bit::RESET_ON_CLOSE | bit::CLOSED) == bit::RESET_ON_CLOSE;
            // A server that answers early may have yet to take the request's last bytes: a reset would
            // destroy them.
            if resets && driver::unacknowledged(&self.handle).unwrap_or(0) == 0 {
                // Without it the close is an orderly one, which is as good.
                let _ = driver::set_linger0(&self.handle);
            }
            sources.remove(self.source);
        });
    }
}

impl Detached {
    pub(crate) fn of(handle: Handle) -> Detached {
        Detached(handle)
    }

    /// Makes the connection one of the calling worker's.
    ///
    /// # Errors
    /// If the kernel refuses to register it; the connection is then closed.
    pub fn attach(self) -> io::Result<Socket> {
        Socket::established(self.0)
    }

    /// The number of the descriptor.
    pub fn number(&self) -> RawFd {
        self.0.number()
    }

    /// Gives up the descriptor, to hand it to another process.
    ///
    /// # Errors
    /// In a simulated world, `Unsupported`.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.0.into_os()
    }

    /// Whether the peer has sent something or closed, as far as one look can tell. An idle connection for
    /// which this is true isn't worth taking over.
    pub fn is_disturbed(&self) -> bool {
        let mut byte = [0u8];
        !matches!(driver::recv(&self.0, &mut byte, true), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsRawFd for Detached {
    fn as_raw_fd(&self) -> RawFd {
        self.0.number()
    }
}
