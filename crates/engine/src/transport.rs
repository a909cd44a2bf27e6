//! A connection as everything above it sees it: a socket, perhaps with TLS on it.
//!
//! Plain connections pay one test of a pointer for each operation. What has to do with the socket itself (options,
//! addresses, state of TCP) goes to [`Transport::raw`]; data goes through here and nowhere else.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};

use model::secured::Secured;
use rt::{Detached, Socket};
use tls::Stream;

/// A connection.
pub struct Transport {
    socket: Socket,
    tls: Option<Box<Secure>>,
}

/// What TLS adds.
struct Secure {
    stream: RefCell<Stream>,
    /// What it found, on a connection to a server.
    facts: Option<Arc<Secured>>,
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Transport {
        Transport { socket, tls: None }
    }
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

    /// From now on data is encrypted.
    pub fn secure(&mut self, stream: Stream, facts: Option<Arc<Secured>>) {
        self.tls = Some(Box::new(Secure { stream: RefCell::new(stream), facts }));
    }

    /// What TLS found, on a connection to a server.
    pub fn facts(&self) -> Option<&Arc<Secured>> {
        self.tls.as_ref()?.facts.as_ref()
    }

    /// Reads if there is something to read: `None` if that has to be awaited. 0 is the end of the stream.
    #[inline]
    pub fn try_recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        match &self.tls {
            None => self.socket.try_recv(buf),
            Some(tls) => tls.stream.borrow_mut().try_recv(&self.socket, buf),
        }
    }

    /// Reads up to `buf.len()` bytes. Ready with 0 at the end of the stream.
    ///
    /// # Errors
    /// The connection's; `InvalidData` when the peer broke the TLS protocol.
    #[inline]
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(tls) = &self.tls else { return self.socket.poll_recv(cx, buf) };
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
            Some(tls) => self.poll_sealed(cx, &tls.stream, data, &[], more),
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
            Some(tls) => self.poll_sealed(cx, &tls.stream, first, second, more),
        }
    }

    fn poll_sealed(
        &self,
        cx: &mut Context<'_>,
        tls: &RefCell<Stream>,
        first: &[u8],
        second: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(result) = tls.borrow_mut().try_send(&self.socket, first, second, more) {
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

    /// Ready when the peer has closed its side or the connection broke.
    pub fn poll_hangup(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_hangup(cx)
    }

    /// Ready when the connection is gone in both directions.
    pub fn poll_broken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_broken(cx)
    }

    /// Closes the sending direction; the peer reads the end of the stream after what was sent.
    ///
    /// # Errors
    /// ENOTCONN if the connection is gone.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.close();
        self.socket.shutdown_write()
    }

    /// Tells the peer that no more data comes, where the protocol has a word for it.
    pub fn close(&self) {
        if let Some(tls) = &self.tls {
            tls.stream.borrow_mut().close(&self.socket);
        }
    }

    /// The end will not be announced: what was sent is not all there was to send.
    pub fn mute(&self) {
        if let Some(tls) = &self.tls {
            tls.stream.borrow_mut().mute();
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

impl Parted {
    /// Makes it one of the calling worker's.
    ///
    /// # Errors
    /// As [`Detached::attach`].
    pub fn attach(self) -> io::Result<Transport> {
        Ok(Transport { socket: self.socket.attach()?, tls: self.tls })
    }
}
