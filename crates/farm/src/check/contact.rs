//! One connection of a check: what is to be sent, what was received, how it ended.
//!
//! A check that is over closes its connection with a reset, so that neither side keeps a dead connection
//! around; `linger` asks for an orderly close. A buffer is taken only when there is something to put into it.

use std::io;
use std::rc::Rc;

use link::handshake::{self, Refused, Shaken};
use link::timed;
pub use link::timed::Trouble;
use link::transport::Transport;
use mux::{Call, Owner, h2};
use program::proto::Proto;
use rt::{Addr, Buf, ConnectOptions, Socket, Timer};
use tls::Handshake;

use crate::At;
use crate::FarmWorker;
use crate::pool::Home;

/// A connection of a check.
pub struct Contact {
    socket: Transport,
    /// The stream that it is, where HTTP/2 is spoken.
    call: Option<Call>,
    linger: bool,
    out: Vec<u8>,
    input: Option<Buf>,
    /// The peer's end: in order, or with an error.
    ended: Option<io::Result<()>>,
}

impl Contact {
    /// Connects until the timer expires.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(
        addr: &Addr,
        options: &ConnectOptions,
        linger: bool,
        timer: &mut Timer,
    ) -> Result<Contact, Trouble> {
        let socket = timed::connect(addr, options, timer).await?;
        Ok(Contact { socket, call: None, linger, out: Vec::new(), input: None, ended: None })
    }

    /// A connection that stands already.
    pub fn resume(socket: Transport) -> Contact {
        Contact { socket, call: None, linger: false, out: Vec::new(), input: None, ended: None }
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
        worker: &FarmWorker,
        handshake: Handshake,
        timer: &mut Timer,
        count: impl FnOnce(&Shaken),
    ) -> Result<(), Refused> {
        let sizes = crate::secure::sizes(&worker.farm.program.global.tune);
        let shaken = handshake::connect(sizes, self.socket.raw(), handshake, timer, |_| false).await;
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

    /// Speaks HTTP/2 or FastCGI from here on; what is sent and received stays in the form of HTTP/1.
    pub fn multiplex(&mut self, worker: &Rc<FarmWorker>, at: At, proto: Proto) {
        let Ok((near, far)) = Socket::local() else { return };
        let socket = std::mem::replace(&mut self.socket, near.into());
        let program = &worker.farm.program;
        let proxy = program.proxy(at.proxy);
        let owner = Owner {
            backend: Some(proxy.state.clone()),
            fcgi: proto == Proto::Fcgi,
            pool: Box::new(Home::of(worker, at)),
            ..Owner::alone(worker.index, proxy.timeouts.server)
        };
        let tune = &program.global.tune;
        let mux = match (proto, &proxy.fcgi) {
            (Proto::Fcgi, Some(fcgi)) => {
                let (most, held) = (tune.bufsize, tune.most_read());
                let setup = mux::fcgi::Setup { app: fcgi.app.clone(), most, held, errors: None };
                mux::fcgi::start(socket, setup, owner, None, 0)
            }
            // Without an application there is nothing to ask for.
            (Proto::Fcgi, None) => return,
            _ => h2::start(socket, h2::server_limits(tune, true), owner, None, 0),
        };
        let call = Call::with(mux, far);
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
        let outcome = timed::send(&self.socket, &self.out, timer).await;
        self.out.clear();
        outcome
    }

    /// Waits for more to be received, or for the end.
    ///
    /// # Errors
    /// The deadline only: how a connection ended is [`Contact::end`].
    pub async fn more(&mut self, timer: &mut Timer) -> Result<(), Trouble> {
        if self.ended.is_some() {
            return Ok(());
        }
        match timed::receive(&self.socket, &mut self.input, timer).await {
            Ok(0) => self.ended = Some(Ok(())),
            Ok(_) => {}
            Err(Trouble::Io(e)) => self.ended = Some(Err(e)),
            Err(late) => return Err(late),
        }
        Ok(())
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

impl Drop for Contact {
    fn drop(&mut self) {
        if !self.linger {
            // If it fails, the connection is closed in the ordinary way.
            let _ = self.socket.raw().set_linger0();
        }
    }
}

/// How an error of the system is told (manual, table of `fc_err` and `bc_err`).
pub fn describe(e: &io::Error) -> String {
    if e.kind() == io::ErrorKind::InvalidData {
        // That is what encrypted connections call it.
        return "SSL fatal error".to_owned();
    }
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
