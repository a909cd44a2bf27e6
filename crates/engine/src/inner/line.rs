//! A stream of bytes to somewhere, plain or over TLS.

use std::time::Duration;

use link::handshake::{self, Refused};
use link::timed::{self, Moved, Trouble};
use link::transport::Transport;
use rt::{Addr, Buf, ConnectOptions, Mono, Timer};
use tls::{Connector, Handshake};

use super::Fault;
use crate::Worker;

/// Where a line leads, and how.
pub struct To<'a> {
    /// The address.
    pub addr: &'a Addr,
    /// Source address, mark and the like.
    pub options: ConnectOptions,
    /// TLS, if it is spoken.
    pub tls: Option<Tls<'a>>,
}

/// TLS of a line.
pub struct Tls<'a> {
    /// The rules of the handshake.
    pub connector: &'a Connector,
    /// The name to send and to check.
    pub name: &'a [u8],
    /// The protocols to offer in place of the configured ones.
    pub alpn: Option<Vec<Vec<u8>>>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Connecting, with TLS.
    pub connect: Duration,
    /// Nothing moves after that.
    pub silence: Duration,
    /// All that comes after connecting.
    pub whole: Option<Duration>,
}

/// The time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

/// How a peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It closed.
    Closed,
    /// The connection broke.
    Broken,
}

/// A connection with a buffer for what comes, which there is only while something is in it.
pub struct Line {
    socket: Transport,
    input: Option<Buf>,
    /// How the peer has ended, if it has.
    end: Option<End>,
    timer: Timer,
    silence: Duration,
    /// When all is to be over.
    until: Option<Mono>,
    received: usize,
}

impl Line {
    /// Connects, and shakes hands where TLS is to be spoken.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(worker: &Worker, to: &To<'_>, patience: Patience) -> Result<Line, Fault> {
        let mut timer = Timer::new();
        timer.set_after(Some(patience.connect));
        let connected = timed::connect(to.addr, &to.options, &mut timer).await;
        let mut socket = connected.map_err(|why| match why {
            Trouble::TimedOut => Fault::ConnectTimeout,
            Trouble::Io(_) => Fault::Refused,
        })?;
        if let Some(tls) = &to.tls {
            secure(worker, &mut socket, tls, &mut timer).await.map_err(|why| match why {
                Refused::TimedOut => Fault::ConnectTimeout,
                Refused::Failed(number, ..) => Fault::Insecure(number),
            })?;
        }
        let until = patience.whole.map(|whole| rt::now() + whole);
        let silence = patience.silence;
        Ok(Line { socket, input: None, end: None, timer, silence, until, received: 0 })
    }

    /// Whether HTTP/2 was agreed on.
    pub fn agreed_h2(&self) -> bool {
        self.socket.facts().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"))
    }

    /// Puts another connection in the place of this one, which is given back.
    pub(super) fn replace(&mut self, socket: Transport) -> Transport {
        std::mem::replace(&mut self.socket, socket)
    }

    fn arm(&mut self) {
        let silence = rt::now() + self.silence;
        self.timer.set(Some(self.until.map_or(silence, |until| until.min(silence))));
    }

    /// Sends all of `data`; whether the connection took it.
    ///
    /// # Errors
    /// The time is over.
    pub async fn send(&mut self, data: &[u8]) -> Result<bool, TimedOut> {
        self.arm();
        match timed::send(&self.socket, data, &mut self.timer).await {
            Ok(()) => Ok(true),
            Err(Trouble::Io(_)) => Ok(false),
            Err(Trouble::TimedOut) => Err(TimedOut),
        }
    }

    /// Sends some of `data`, or receives what comes before there is room for it. How many bytes were sent;
    /// `None`: the connection takes no more.
    ///
    /// # Errors
    /// The time is over.
    pub(super) async fn push(&mut self, data: &[u8]) -> Result<Option<usize>, TimedOut> {
        self.arm();
        let Line { socket, input, timer, .. } = self;
        match timed::exchange(socket, data, input, timer).await {
            Ok(Moved::Sent(n)) => return Ok(Some(n)),
            Ok(Moved::Received(n)) if n > 0 => {
                self.received += n;
                return Ok(Some(0));
            }
            Ok(Moved::Received(_)) => self.end = Some(End::Closed),
            Err(Trouble::Io(_)) => {}
            Err(Trouble::TimedOut) => return Err(TimedOut),
        }
        Ok(None)
    }

    /// Waits until more has come; `false`: nothing more comes, or there is no room for it.
    ///
    /// # Errors
    /// The time is over.
    pub async fn more(&mut self) -> Result<bool, TimedOut> {
        if let Some(buf) = &mut self.input {
            buf.compact();
        }
        if self.end.is_some() || self.input.as_ref().is_some_and(Buf::is_full) {
            return Ok(false);
        }
        self.arm();
        match timed::receive(&self.socket, &mut self.input, &mut self.timer).await {
            Ok(n) if n > 0 => {
                self.received += n;
                Ok(true)
            }
            Err(Trouble::TimedOut) => Err(TimedOut),
            ended => {
                self.end = Some(if ended.is_ok() { End::Closed } else { End::Broken });
                Ok(false)
            }
        }
    }

    /// Says how long the peer may be silent from now on.
    pub fn set_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// The local address, where the connection has one.
    pub fn local_addr(&self) -> Option<std::net::SocketAddr> {
        self.socket.raw().local_addr().ok()?.as_inet()
    }

    /// What has come and was not consumed.
    pub fn data(&self) -> &[u8] {
        self.input.as_ref().map(Buf::filled).unwrap_or_default()
    }

    /// Lets go of the first bytes of it.
    pub fn consume(&mut self, bytes: usize) {
        if let Some(buf) = &mut self.input {
            buf.consume(bytes.min(buf.len()));
        }
        if self.data().is_empty() {
            self.input = None;
        }
    }

    /// How the peer has ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Bytes that have come in all.
    pub fn received(&self) -> usize {
        self.received
    }
}

/// TLS on a new connection.
async fn secure(
    worker: &Worker,
    socket: &mut Transport,
    tls: &Tls<'_>,
    timer: &mut Timer,
) -> Result<(), Refused> {
    farm::secure::full(&worker.farm)?;
    let failed = |_| Refused::Failed(handshake::number::HANDSHAKE, String::new(), Default::default());
    let handshake = Handshake::connect(tls.connector, Some(tls.name), tls.alpn.clone()).map_err(failed)?;
    let sizes = farm::secure::sizes(&worker.shared.program.global.tune);
    let (stream, facts) = handshake::connect(sizes, socket.raw(), handshake, timer, |_| false).await?;
    socket.secure(*stream, Some(facts));
    Ok(())
}
