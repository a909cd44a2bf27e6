//! A client connection, or a stream of one that carries many.

use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use base::slab::Key;
use link::transport::Transport;
use model::Conn;
use model::conn::ConnError;
use model::proxy::leave;
use model::term::Cause;
use model::txn::{Decisions, SharedLine};
use mux::Receipt;
use program::Proxy;
use rt::{Buf, Timer};
use tls::Ahead;
use wire::head::Head;

use crate::Worker;
use crate::admission;
use crate::sessions::Session;
use crate::traced;
use crate::worker::with_worker;
use model::trace::{self, level};

/// A client connection. Dropping it ends the connection and gives back what it counted.
pub struct Client {
    /// The worker it lives on.
    pub worker: Rc<Worker>,
    /// Its facts, also seen from outside.
    pub session: Rc<Session>,
    /// Its socket, perhaps with TLS on it.
    pub socket: Transport,
    /// Bytes received and not consumed; none while there are none.
    pub buf: Option<Buf>,
    /// Deadline of what is being waited for.
    pub timer: Timer,
    /// It is a stream of a multiplexed connection, which is counted elsewhere.
    pub part: Option<Box<Part>>,
    /// Where it stands among the sessions of its worker.
    pub key: Option<Key>,
    /// The frontend, as an index of the program of the worker.
    pub front: u32,
    /// The listener, as an index of the frontend.
    pub listener: u32,
}

impl Client {
    /// A stream of a multiplexed connection, as a client of its own that shares its facts.
    pub fn of_stream(seat: Seat, session: Rc<Session>, socket: Transport, part: Part) -> Client {
        let (timer, part) = (Timer::new(), Some(Box::new(part)));
        let Seat { worker, front, listener } = seat;
        Client { worker, session, socket, buf: None, timer, part, key: None, front, listener }
    }

    /// Where the next request is served; `None` where the connection has to stay, for its frontend or its
    /// listener is no more, or is such no more as it came by.
    pub fn next_seat(&self) -> Option<Seat> {
        if !self.worker.is_superseded() {
            return Some(Seat { worker: self.worker.clone(), front: self.front, listener: self.listener });
        }
        let worker = with_worker(Rc::clone)?;
        let was = self.frontend();
        let front = worker.shared.front_of(&was.state)?;
        let now = worker.shared.program.configured(front);
        let came = was.binds.get(self.listener as usize)?;
        let listener = now.binds.iter().position(|bind| Arc::ptr_eq(&bind.state, &came.state))?;
        let bind = now.binds.get(listener)?;
        let same = now.mode == was.mode && bind.tls.is_some() == came.tls.is_some() && !now.disabled;
        let listener = u32::try_from(listener).ok()?;
        same.then_some(Seat { worker, front, listener })
    }

    /// Moves to the configuration that runs, between two requests; whether it could. One that can't leaves as
    /// soon as it may.
    #[cold]
    pub fn follow(&mut self) -> bool {
        let Some(seat) = self.next_seat() else {
            self.session.leaves.set(true);
            return false;
        };
        if let Some(own) = self.session.own.borrow_mut().as_mut() {
            own.follow(&self.worker.farm);
        }
        self.session.backend.set(None);
        self.session.server.set(None);
        self.take(seat);
        true
    }

    fn take(&mut self, seat: Seat) {
        let Seat { worker, front, listener } = seat;
        seat_session(&self.session, &worker, front, listener);
        (self.worker, self.front, self.listener) = (worker, front, listener);
    }

    /// The connection that a stream belongs to; `None` where the connection is its own, or gone.
    pub fn lead(&self) -> Option<Rc<Client>> {
        self.part.as_ref()?.lead.upgrade()
    }

    /// Whether the client's time is over: nothing was heard of it or taken by it for `limit`, after which the
    /// timer was set. What a stream of HTTP/2 holds back until windows open counts when it goes on.
    pub fn is_overdue(&mut self, cx: &mut Context<'_>, limit: Option<Duration>) -> bool {
        if self.timer.poll_expired(cx).is_pending() {
            return false;
        }
        let moved = self.part.as_ref().and_then(|part| part.receipt.moved());
        match moved.zip(limit).map(|(moved, limit)| moved + limit) {
            Some(deadline) if deadline > rt::now() => {
                self.timer.set(Some(deadline));
                self.timer.poll_expired(cx).is_ready()
            }
            _ => true,
        }
    }

    /// Has the stream of HTTP/2 reset, should the client not have taken all of its response.
    pub fn give_up(&self) {
        if let Some(part) = &self.part {
            part.receipt.give_up();
        }
    }

    /// Looks whether the TLS handshake is over by now, for those who ask whether early data are safe.
    #[inline]
    pub fn look_early(&self) {
        if self.conn().early.get() {
            let lead = self.lead();
            self.conn().early.set(lead.as_deref().unwrap_or(self).socket.is_early());
        }
    }

    /// Facts of the connection.
    pub fn conn(&self) -> &Conn {
        &self.session.conn
    }

    /// The frontend.
    pub fn frontend(&self) -> &Proxy {
        self.worker.shared.program.configured(self.front)
    }

    /// Whether the frontend was shut down by an operator (`shutdown frontend`): its clients are asked to
    /// leave. A process that stops has a time of its own for that, see [`crate::departure::is_sent_away`].
    pub fn is_frontend_stopped(&self) -> bool {
        self.session.leaves.get()
            || self.worker.stopped.get().is_none()
                && self.frontend().state.front.state() == model::proxy::FrontState::Stopped
    }

    /// Lets the runtime API see the request line, if it is logged. A stream of HTTP/2 is not seen.
    pub fn show_line(&self, line: &SharedLine) {
        if self.part.is_none() && !self.frontend().log.targets.is_empty() {
            *self.session.line.borrow_mut() = line.clone();
        }
    }

    /// Whether received bytes wait to be looked at.
    pub fn has_input(&self) -> bool {
        self.buf.as_ref().is_some_and(|b| !b.is_empty())
    }

    /// Whether a client of TCP has closed its side, or broke off, without having said a word: there is
    /// nothing that a server could be told. What others have said waits for a server whatever becomes of
    /// them.
    pub fn ended_silently(&self, cx: &mut Context<'_>) -> bool {
        !self.has_input() && matches!(self.socket.poll_look(cx), Poll::Ready(Ahead::End | Ahead::Broken))
    }

    /// `silent-drop`: has the connection end without telling the peer.
    pub fn vanish(&mut self, rst_ttl: Option<u8>) {
        let lead = self.lead();
        let socket = &lead.as_deref().unwrap_or(self).socket;
        let vanished = socket.raw().vanish(rst_ttl).is_ok();
        if lead.is_some() {
            // A Unix socket can't; its other streams go on.
            if !vanished {
                return;
            }
            self.session.end(Cause::Local);
        }
        socket.mute();
        self.session.vanished.set(true);
    }

    /// Ends the connection of a client of HTTP/2 together with its stream at hand.
    pub fn expel(&self) {
        if let Some(part) = &self.part {
            part.receipt.expel();
        }
    }

    /// Marks the packets to the client as rules decided (`set-fc-mark`, `set-fc-tos`), and gives the task at
    /// hand its place among others (`set-nice`). Where the privilege lacks packets go unmarked.
    pub fn mark(&self, decisions: &mut Decisions) {
        if decisions.fc_mark.is_none() && decisions.fc_tos.is_none() && decisions.nice.is_none() {
            return;
        }
        if let Some(nice) = decisions.nice {
            rt::renice(nice);
        }
        let lead = self.lead();
        let socket = lead.as_deref().unwrap_or(self).socket.raw();
        if let Some(mark) = decisions.fc_mark.take() {
            let _ = socket.set_mark(mark);
        }
        if let Some(tos) = decisions.fc_tos.take() {
            let _ = socket.set_tos(tos);
        }
    }

    /// Receives more into the buffer until the deadline. `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// `TimedOut` when the deadline passed, `OutOfMemory` when the buffer is full, else the connection's.
    pub async fn receive(&mut self) -> io::Result<usize> {
        self.receive_within(usize::MAX).await
    }

    /// The same, but no more than makes the buffer hold `most` bytes: then it is full.
    ///
    /// # Errors
    /// As there.
    pub async fn receive_within(&mut self, most: usize) -> io::Result<usize> {
        poll_fn(|cx| {
            if self.session.kill.get().is_some() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if let Some(received) = self.try_receive(most) {
                return Poll::Ready(received);
            }
            let _ = self.socket.poll_readable(cx);
            self.timer.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
        })
        .await
    }

    /// The same of what is there; `None` when that is nothing yet.
    pub fn try_receive(&mut self, most: usize) -> Option<io::Result<usize>> {
        if self.socket.is_readable() {
            let b = self.buf.get_or_insert_default();
            if b.spare() == 0 {
                b.compact();
            }
            if b.spare_within(most).is_empty() {
                return Some(Err(io::ErrorKind::OutOfMemory.into()));
            }
            if let Some(r) = self.socket.try_recv(b.spare_within(most)) {
                if r.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset) {
                    self.session.conn.error.set(ConnError::RESET);
                }
                if let Some(fault) = self.socket.fault() {
                    self.session.conn.break_off(fault);
                }
                return Some(r.inspect(|n| b.advance(*n)));
            }
        }
        if self.buf.as_ref().is_some_and(Buf::is_empty) {
            self.buf = None;
        }
        None
    }
}

impl Client {
    /// The session is counted in the rates of sessions from now on, or will not be.
    pub fn settle(&self) {
        if self.session.pending.replace(false) {
            admission::settle(self.frontend(), &self.worker.shared.program.world.process);
        }
    }
}

impl Client {
    /// Counts the connection among those of HTTP/1.
    pub fn speaks_h1(&self) {
        if !self.session.h1.replace(true) {
            let h1 = &self.frontend().state.front.counters.of(self.worker.index).h1;
            h1.connections.inc();
            h1.open_connections.inc();
        }
    }

    /// Bytes that came and that nobody has looked at.
    pub fn unread(&self) -> u64 {
        self.buf.as_ref().map_or(0, rt::Buf::len) as u64
    }

    /// Counts what came on a connection of HTTP/1 for nobody.
    pub fn count_unread(&self, bytes: u64) {
        self.frontend().state.front.counters.of(self.worker.index).wire_in.add(bytes);
    }

    /// It is none of them any more.
    pub fn spoke_h1(&self) {
        if self.session.h1.replace(false) {
            self.frontend().state.front.counters.of(self.worker.index).h1.open_connections.dec();
        }
    }

    /// Gives back what the connection held among the others: it is over for everyone but its socket.
    pub fn leave(&self) {
        if self.part.is_some() || self.session.left.replace(true) {
            return;
        }
        self.spoke_h1();
        self.socket.leave();
        if let Some(key) = self.key {
            self.worker.sessions.leave(key);
        }
        crate::tracking::connection_over(self.conn());
        let proxy = self.frontend();
        let bind = &proxy.binds[self.listener as usize];
        self.settle();
        leave(&proxy.state.front.current);
        leave(&bind.state.current);
        self.worker.shared.program.world.process.connections.fetch_sub(1, Relaxed);
        self.worker.freed.raise();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.part.is_none() {
            traced::session(
                &self.session,
                &trace::SESSION,
                trace::session::END,
                level::STATE,
                "session is over",
            );
            if self.session.h1.get() {
                let events = trace::h1::END;
                traced::session(&self.session, &trace::H1, events, level::STATE, "connection is over");
            }
            self.socket.close();
            self.leave();
        }
    }
}

/// Where requests of a connection are served.
pub struct Seat {
    /// The worker with its configuration.
    pub worker: Rc<Worker>,
    /// The frontend.
    pub front: u32,
    /// The listener.
    pub listener: u32,
}

/// Has a session show where it is.
pub fn seat_session(session: &Session, worker: &Worker, front: u32, listener: u32) {
    session.conn.frontend.set(front);
    session.conn.listener.set(listener);
    *session.program.borrow_mut() = worker.program.clone();
}

/// What makes a client of a stream.
pub struct Part {
    /// The head of the request, until it is read.
    pub head: Option<Head>,
    /// It is no request, and deserves this status; 0: no answer but a log line.
    pub refused: Option<u16>,
    /// The connection.
    pub lead: Weak<Client>,
    /// The number of the stream.
    pub id: u32,
    /// What becomes of the stream on the connection.
    pub receipt: Rc<Receipt>,
}
