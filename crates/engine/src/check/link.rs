//! One connection of a check: what is to be sent, what was received, how it ended.
//!
//! A check that is over closes its connection with a reset, so that neither side keeps a dead connection around;
//! `linger` asks for an orderly close. A buffer is taken only when there is something to put into it.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use rt::{Addr, Buf, ConnectOptions, Socket, Timer};
use tls::Handshake;

use crate::Worker;
use crate::h2::{self, Call};
use crate::secure::{self, Refused, Shaken};
use crate::state::At;
use crate::transport::Transport;

/// Why nothing more comes of a connection.
#[derive(Debug)]
pub enum Trouble {
    /// The deadline passed.
    TimedOut,
    /// The system says no.
    Io(io::Error),
}

/// A connection of a check.
pub struct Link {
    socket: Transport,
    /// The stream that it is, where HTTP/2 is spoken.
    call: Option<Call>,
    linger: bool,
    out: Vec<u8>,
    input: Option<Buf>,
    /// The peer's end: in order, or with an error.
    ended: Option<io::Result<()>>,
}

impl Link {
    /// Connects until the timer expires.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(
        addr: &Addr,
        options: &ConnectOptions,
        linger: bool,
        timer: &mut Timer,
    ) -> Result<Link, Trouble> {
        let socket = Socket::connect(addr, options).map_err(Trouble::Io)?;
        poll_fn(|cx| {
            if let Poll::Ready(r) = socket.poll_connected(cx) {
                return Poll::Ready(r.map_err(Trouble::Io));
            }
            timer.poll_expired(cx).map(|()| Err(Trouble::TimedOut))
        })
        .await?;
        let socket = socket.into();
        Ok(Link { socket, call: None, linger, out: Vec::new(), input: None, ended: None })
    }

    /// A connection that stands already.
    pub fn resume(socket: Transport) -> Link {
        Link { socket, call: None, linger: false, out: Vec::new(), input: None, ended: None }
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        self.socket.raw()
    }

    /// Whether TLS is spoken.
    pub fn is_secure(&self) -> bool {
        !self.socket.is_plain()
    }

    /// Speaks TLS from here on.
    ///
    /// # Errors
    /// Why that could not be agreed on.
    pub async fn secure(
        &mut self,
        worker: &Worker,
        handshake: Handshake,
        timer: &mut Timer,
        count: impl FnOnce(&Shaken),
    ) -> Result<(), Refused> {
        let shaken = secure::server(worker, self.socket.raw(), handshake, timer, |_| false).await;
        count(&shaken);
        let (stream, facts) = shaken?;
        self.socket.secure(*stream, Some(facts));
        Ok(())
    }

    /// Whether HTTP/2 is spoken.
    pub fn speaks_h2(&self) -> bool {
        self.call.is_some()
    }

    /// Whether HTTP/2 was agreed on.
    pub fn agreed_h2(&self) -> bool {
        self.socket.facts().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"))
    }

    /// Speaks HTTP/2 from here on; what is sent and received stays in the form of HTTP/1.
    pub fn multiplex(&mut self, worker: &Rc<Worker>, At { proxy: backend, server }: At) {
        let Ok((near, far)) = Socket::local() else { return };
        let socket = std::mem::replace(&mut self.socket, near.into());
        let owner = h2::Owner {
            shared: worker.shared.clone(),
            worker: worker.index,
            backend,
            stay: worker.shared.stay(backend, Some(server)),
            server: None,
            index: server,
            identity: 0,
            moves: 0,
            most: 1,
            ping: None,
        };
        let limits = h2::server_limits(&worker.shared.program, true);
        let call = Call::with(h2::start(socket, limits, owner, None, 0), far);
        // HAProxy's checks say so in the clear, too.
        call.submit(None, b"https", None);
        self.call = Some(call);
    }

    /// Where to append what is to be sent. What was received before belongs to an earlier question.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.input = None;
        &mut self.out
    }

    /// Sends what waits to be sent.
    ///
    /// # Errors
    /// The connection's, or the deadline.
    pub async fn flush(&mut self, timer: &mut Timer) -> Result<(), Trouble> {
        let mut sent = 0;
        let Link { socket, out, .. } = self;
        let sending = poll_fn(|cx| {
            while let Some(rest) = out.get(sent..).filter(|r| !r.is_empty()) {
                match socket.poll_send(cx, rest, false) {
                    Poll::Ready(Ok(n)) => sent += n,
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(Trouble::Io(e))),
                    Poll::Pending => return timer.poll_expired(cx).map(|()| Err(Trouble::TimedOut)),
                }
            }
            Poll::Ready(Ok(()))
        });
        let outcome = sending.await;
        self.out.clear();
        outcome
    }

    /// Waits for more to be received, or for the end.
    ///
    /// # Errors
    /// The deadline only: how a connection ended is [`Link::end`].
    pub async fn more(&mut self, timer: &mut Timer) -> Result<(), Trouble> {
        let Link { socket, input, ended, .. } = self;
        poll_fn(|cx| {
            if ended.is_some() {
                return Poll::Ready(Ok(()));
            }
            if input.is_none() && socket.poll_readable(cx).is_pending() {
                return timer.poll_expired(cx).map(|()| Err(Trouble::TimedOut));
            }
            let buf = input.get_or_insert_with(Buf::new);
            match socket.poll_recv(cx, buf.spare_mut()) {
                Poll::Ready(Ok(0)) => *ended = Some(Ok(())),
                Poll::Ready(Ok(n)) => buf.advance(n),
                Poll::Ready(Err(e)) => *ended = Some(Err(e)),
                Poll::Pending => {
                    if buf.is_empty() {
                        *input = None;
                    }
                    return timer.poll_expired(cx).map(|()| Err(Trouble::TimedOut));
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// What was received since the last question.
    pub fn data(&self) -> &[u8] {
        self.input.as_ref().map(Buf::filled).unwrap_or_default()
    }

    /// Whether no more can come: the peer ended, or the buffer is full.
    pub fn is_over(&self) -> bool {
        self.ended.is_some() || self.input.as_ref().is_some_and(Buf::is_full)
    }

    /// Whether the peer ended in order: nothing is missing.
    pub fn has_ended(&self) -> bool {
        matches!(self.ended, Some(Ok(())))
    }

    /// How the peer ended, if it did so with an error.
    pub fn error(&self) -> Option<&io::Error> {
        self.ended.as_ref()?.as_ref().err()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.linger {
            // If it fails, the connection is closed in the ordinary way.
            let _ = self.socket.raw().set_linger0();
        }
    }
}

/// How an error of the system is told (manual, table of `fc_err` and `bc_err`).
pub fn describe(e: &io::Error) -> String {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let name = match e.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED returned by OS",
        io::ErrorKind::ConnectionReset => "ECONNRESET returned by OS",
        io::ErrorKind::BrokenPipe => "EPIPE returned by OS",
        io::ErrorKind::OutOfMemory => "ENOMEM returned by OS",
        _ => "General socket error",
    };
    format!("{name} ({text})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_as_the_manual_names_them() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(describe(&refused), "ECONNREFUSED returned by OS (Connection refused)");
        let unreachable = io::Error::from_raw_os_error(101);
        assert_eq!(describe(&unreachable), "General socket error (Network is unreachable)");
    }
}
