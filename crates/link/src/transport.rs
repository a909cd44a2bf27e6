//! A connection as everything above it sees it: a socket, perhaps with TLS on it.
//!
//! Plain connections pay one test of a pointer for each operation. What has to do with the socket itself
//! (options, addresses, state of TCP) goes to [`Transport::raw`]; data goes through here and nowhere else.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use model::secured::Secured;
use rt::{Detached, Socket};
use tls::{Ahead, Stream};

/// A connection.
pub struct Transport {
    socket: Socket,
    tls: Option<Box<Secure>>,
}

/// What TLS adds.
struct Secure {
    stream: RefCell<Stream>,
    /// What it found, on a connection to a server.
    facts: OnceCell<Arc<Secured>>,
    /// Where data flow before the handshake is over.
    beginning: Option<Box<Beginning>>,
    /// The end of data is told by a [drain](drain).
    draining: Cell<bool>,
}

/// A connection whose handshake was not over when data began to flow.
#[derive(Default)]
struct Beginning {
    /// It leads to a server.
    outbound: bool,
    /// Who waits for the end of the handshake while somebody else reads.
    watchers: RefCell<Vec<Waker>>,
}

impl Secure {
    fn new(stream: Stream, facts: OnceCell<Arc<Secured>>, beginning: Option<Box<Beginning>>) -> Secure {
        Secure { stream: RefCell::new(stream), facts, beginning, draining: Cell::new(false) }
    }

    /// Does something that may end the handshake.
    fn begin<R>(&self, f: impl FnOnce(&mut Stream) -> R) -> R {
        let mut stream = self.stream.borrow_mut();
        let done = f(&mut stream);
        if let Some(beginning) = self.beginning.as_ref().filter(|_| !stream.is_early()) {
            if let Some(facts) = stream.take_facts().filter(|_| beginning.outbound) {
                let _ = self.facts.set(Arc::new(crate::handshake::secured(*facts)));
            }
            beginning.watchers.take().into_iter().for_each(Waker::wake);
        }
        done
    }

    fn is_early(&self) -> bool {
        self.beginning.is_some() && self.stream.borrow().is_early()
    }
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Transport {
        Transport { socket, tls: None }
    }
}

/// How early data to a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// The handshake is not over.
    Open,
    /// The server took them, if there were any.
    Taken,
    /// The server did not take them: they are lost.
    Refused,
    /// The handshake failed.
    Failed,
}

/// A connection that belongs to no worker, on its way from one to another.
pub struct Parted {
    socket: Detached,
    tls: Option<Box<Secure>>,
}

impl Transport {
    /// The socket itself. Data must not be read from it or written to it.
    #[inline]
    pub fn raw(&self) -> &Socket {
        &self.socket
    }

    /// Whether bytes go over the wire as they are.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Whether data may be read from the socket as they are, by the kernel, at the moment. One inside the
    /// worker has nothing that the kernel knows.
    pub fn gives_plain(&self) -> bool {
        !self.socket.is_local() && self.tls.as_ref().is_none_or(|t| t.stream.borrow().gives_plain())
    }

    /// The same of data that are written; [`Transport::passed`] is told of them.
    pub fn takes_plain(&self) -> bool {
        !self.socket.is_local() && self.tls.as_ref().is_none_or(|t| t.stream.borrow().takes_plain())
    }

    /// So many bytes were written to the socket as they are.
    pub fn passed(&self, bytes: usize) {
        if let Some(tls) = &self.tls {
            tls.stream.borrow_mut().passed(bytes);
        }
    }

    /// Waits until data may be written to the socket as they are, which they could be before.
    ///
    /// # Errors
    /// The connection's; BrokenPipe if no more may be written.
    pub fn poll_plain(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = &self.tls else { return Poll::Ready(Ok(())) };
        loop {
            if let Some(result) = tls.stream.borrow_mut().try_refresh(&self.socket) {
                return Poll::Ready(result);
            }
            if self.socket.poll_writable(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// From now on data is encrypted.
    pub fn secure(&mut self, stream: Stream, facts: Option<Arc<Secured>>) {
        let beginning = stream.is_early().then(Box::default);
        let facts = facts.map_or_else(OnceCell::new, OnceCell::from);
        self.tls = Some(Box::new(Secure::new(stream, facts, beginning)));
    }

    /// The same for a server whose handshake is not over: what it finds is told later.
    pub fn secure_early(&mut self, stream: Stream) {
        let beginning = Some(Box::new(Beginning { outbound: true, ..Beginning::default() }));
        self.tls = Some(Box::new(Secure::new(stream, OnceCell::new(), beginning)));
    }

    /// Whether data flow though the handshake is not over.
    pub fn is_early(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_early())
    }

    /// How early data ended, on a connection to a server: `None` where there were none.
    pub fn early_end(&self) -> Option<Early> {
        let tls = self.tls.as_ref().filter(|tls| tls.beginning.is_some())?;
        let stream = tls.stream.borrow();
        Some(match () {
            () if stream.is_early() => Early::Open,
            () if stream.was_refused() => Early::Refused,
            () if stream.has_failed() => Early::Failed,
            () => Early::Taken,
        })
    }

    /// Ready when the handshake is over. It reads what comes, so nobody else may be waiting to read.
    ///
    /// # Errors
    /// The handshake failed.
    pub fn poll_handshake(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = &self.tls else { return Poll::Ready(Ok(())) };
        loop {
            if let Some(done) = tls.begin(|stream| stream.shake(&self.socket)) {
                return Poll::Ready(done);
            }
            if self.poll_wire(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Ready when the handshake is over, or has failed, while somebody else reads.
    pub fn watch_handshake(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.tls.as_ref().and_then(|tls| Some((tls.beginning.as_ref()?, tls.is_early()))) {
            Some((beginning, true)) => {
                let mut watchers = beginning.watchers.borrow_mut();
                if !watchers.iter().any(|w| w.will_wake(cx.waker())) {
                    watchers.push(cx.waker().clone());
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Ready when a handshake that data overtook may go on.
    fn poll_wire(&self, cx: &mut Context<'_>) -> Poll<()> {
        let waits = |stream: &Stream| stream.is_early() && stream.is_pending();
        let pending = self.tls.as_ref().is_some_and(|tls| waits(&tls.stream.borrow()));
        if pending { self.socket.poll_writable(cx) } else { self.socket.poll_readable(cx) }
    }

    /// As [`Transport::poll_recv`], while the handshake is not over.
    #[cold]
    fn poll_recv_early(&self, cx: &mut Context<'_>, tls: &Secure, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if let Some(done) = tls.begin(|stream| stream.try_recv(&self.socket, buf)) {
                return Poll::Ready(done);
            }
            if self.poll_wire(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// As [`Transport::poll_send`], while the handshake is not over: there may be no room before its end.
    #[cold]
    fn poll_send_early(
        &self,
        cx: &mut Context<'_>,
        tls: &Secure,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(done) = tls.begin(|stream| stream.try_send(&self.socket, first, second, false)) {
                return Poll::Ready(done);
            }
            if self.poll_wire(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// What TLS found, on a connection to a server.
    pub fn facts(&self) -> Option<&Arc<Secured>> {
        self.tls.as_ref()?.facts.get()
    }

    /// OpenSSL's number of what broke TLS, if something did.
    pub fn fault(&self) -> Option<u32> {
        let fault = self.tls.as_ref()?.stream.borrow().fault();
        (fault != 0).then_some(fault)
    }

    /// Reads if there is something to read: `None` if that has to be awaited. 0 is the end of the stream.
    #[inline]
    pub fn try_recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        match &self.tls {
            None => self.socket.try_recv(buf),
            Some(tls) => tls.begin(|stream| stream.try_recv(&self.socket, buf)),
        }
    }

    /// Reads up to `buf.len()` bytes. Ready with 0 at the end of the stream.
    ///
    /// # Errors
    /// The connection's; `InvalidData` when the peer broke the TLS protocol.
    #[inline]
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(tls) = &self.tls else { return self.socket.poll_recv(cx, buf) };
        if tls.is_early() {
            return self.poll_recv_early(cx, tls, buf);
        }
        loop {
            if let Some(result) = tls.stream.borrow_mut().try_recv(&self.socket, buf) {
                return Poll::Ready(result);
            }
            if self.socket.poll_readable(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Whether a read is worth trying.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.socket.is_readable() || self.tls.as_ref().is_some_and(|t| t.stream.borrow().is_ready())
    }

    /// Ready when a read is worth trying.
    #[inline]
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.is_readable() {
            true => Poll::Ready(()),
            false if self.is_early() => self.poll_wire(cx),
            false => self.socket.poll_readable(cx),
        }
    }

    /// Writes some of `data`; returns how many bytes. After `Pending` the same bytes must be offered again.
    ///
    /// # Errors
    /// The connection's.
    #[inline]
    pub fn poll_send(&self, cx: &mut Context<'_>, data: &[u8], more: bool) -> Poll<io::Result<usize>> {
        match &self.tls {
            None => self.socket.poll_send(cx, data, more),
            Some(tls) => self.poll_sealed(cx, tls, data, &[], more),
        }
    }

    /// As [`Transport::poll_send`], for two pieces.
    ///
    /// # Errors
    /// As [`Transport::poll_send`].
    #[inline]
    pub fn poll_send_pair(
        &self,
        cx: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        match &self.tls {
            None => self.socket.poll_send_vectored(cx, &[IoSlice::new(first), IoSlice::new(second)], more),
            Some(tls) => self.poll_sealed(cx, tls, first, second, more),
        }
    }

    fn poll_sealed(
        &self,
        cx: &mut Context<'_>,
        tls: &Secure,
        first: &[u8],
        second: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if tls.is_early() {
            return self.poll_send_early(cx, tls, first, second);
        }
        loop {
            if let Some(result) = tls.stream.borrow_mut().try_send(&self.socket, first, second, more) {
                return Poll::Ready(result);
            }
            if self.socket.poll_writable(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// As [`Transport::poll_send`]; WriteZero if nothing is taken.
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

    /// Whether the peer has closed its side or the connection broke, as of the last report.
    #[inline]
    pub fn is_hung_up(&self) -> bool {
        self.socket.is_hung_up()
    }

    /// Whether the connection is gone in both directions, as of the last report.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.socket.is_broken()
    }

    /// What the peer says next, if that is known. Nothing is taken, but behind TLS it is read ahead: ask for
    /// it where nobody else reads.
    pub fn poll_look(&self, cx: &mut Context<'_>) -> Poll<Ahead> {
        let Some(tls) = &self.tls else {
            return self.socket.poll_peek(cx, &mut [0], 1).map(|read| match read {
                Ok(0) => Ahead::End,
                Ok(_) => Ahead::Data,
                Err(_) => Ahead::Broken,
            });
        };
        if tls.is_early() {
            return Poll::Pending;
        }
        loop {
            match tls.stream.borrow_mut().look(&self.socket) {
                None => {}
                // Something, it seems, be it the end.
                Some(Ahead::Hidden) => return self.socket.poll_readable(cx).map(|()| Ahead::Data),
                Some(ahead) => return Poll::Ready(ahead),
            }
            if self.socket.poll_readable(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Whether the peer has closed its side: its half of the connection ended, or it said so within TLS.
    /// Whoever asks is woken when that changes.
    #[inline]
    pub fn has_ended(&self, cx: &mut Context<'_>) -> bool {
        let ends = |ahead| matches!(ahead, Poll::Ready(Ahead::End | Ahead::Broken));
        self.is_hung_up() || !self.is_plain() && ends(self.poll_look(cx))
    }

    /// Ready when the peer has closed its side or the connection broke.
    pub fn poll_hangup(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_hangup(cx)
    }

    /// Ready when the connection is gone in both directions.
    pub fn poll_broken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_broken(cx)
    }

    /// Ready when the connection broke by an error.
    pub fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_reset(cx)
    }

    /// Closes the sending direction; the peer reads the end of the stream after what was sent.
    ///
    /// # Errors
    /// ENOTCONN if the connection is gone.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.close();
        if self.tls.as_ref().is_some_and(|t| t.draining.get()) {
            return Ok(());
        }
        self.socket.shutdown_write()
    }

    /// Tells the peer that no more data comes, where the protocol has a word for it.
    pub fn close(&self) {
        let Some(tls) = &self.tls else { return };
        let mut stream = tls.stream.borrow_mut();
        if stream.must_drain(&self.socket) && drain(&self.socket) {
            tls.draining.set(true);
            stream.leave_close();
        } else {
            stream.close(&self.socket);
        }
    }

    /// The end will not be announced: what was sent is not all there was to send.
    pub fn mute(&self) {
        if let Some(tls) = &self.tls {
            tls.stream.borrow_mut().mute();
        }
    }

    /// It is over for everyone but its peer: it counts no more among the connections with TLS.
    pub fn leave(&self) {
        if let Some(tls) = &self.tls {
            tls.stream.borrow_mut().leave();
        }
    }

    /// The socket, if bytes go over it as they are.
    ///
    /// # Errors
    /// The connection, if it is encrypted.
    pub fn into_plain(self) -> Result<Socket, Transport> {
        match self.tls {
            None => Ok(self.socket),
            Some(_) => Err(self),
        }
    }

    /// Takes it off this worker.
    ///
    /// # Errors
    /// As [`Socket::detach`].
    pub fn detach(self) -> io::Result<Parted> {
        Ok(Parted { socket: self.socket.detach()?, tls: self.tls })
    }
}

/// How long a connection may take for what the kernel has sealed and not yet sent.
const DRAIN: Duration = Duration::from_secs(120);
/// Most connections of a worker that take their time.
const DRAINS: usize = 1024;

thread_local! {
    static DRAINING: Cell<usize> = const { Cell::new(0) };
}

/// One of the connections that take their time.
struct Draining;

impl Drop for Draining {
    fn drop(&mut self) {
        DRAINING.set(DRAINING.get().saturating_sub(1));
    }
}

/// Ends the sending direction of a connection whose records the kernel makes, once it has room. Ended at
/// once, records that are sealed and not yet sent would be lost with it. The socket itself may be dropped
/// meanwhile. Whether that was possible.
fn drain(socket: &Socket) -> bool {
    if DRAINING.get() >= DRAINS {
        return false;
    }
    let Ok(socket) = socket.duplicate() else { return false };
    DRAINING.set(DRAINING.get() + 1);
    let place = Draining;
    rt::spawn(async move {
        let _place = place;
        let mut timer = rt::Timer::at(rt::now() + DRAIN);
        let in_time = poll_fn(|cx| match socket.poll_room(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => timer.poll_expired(cx).map(|()| false),
        });
        if in_time.await {
            tls::stream::say_closed(&socket);
            let _ = socket.shutdown_write();
        }
    });
    true
}

impl Parted {
    /// Makes it one of the calling worker's.
    ///
    /// # Errors
    /// As [`Detached::attach`].
    pub fn attach(self) -> io::Result<Transport> {
        Ok(Transport { socket: self.socket.attach()?, tls: self.tls })
    }
}
