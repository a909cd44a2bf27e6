//! A connection to a server that carries streams, whatever protocol they are in.
//!
//! It stands in the pool of its server from the first request on, in use or not, and whoever may use it takes
//! a stream of it. It belongs to its task, which ends when the server closes it or when it is told to; so an
//! idle one needs nobody to look whether it still stands.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use link::transport::Transport;
use model::conn::{ConnError, Multiplex};
use model::proxy::H2Counters;
use model::server::admin;
use model::server_conns::{Seat, ServerConns, is_safe};
use rt::{Buf, Socket, TaskId};
use wire::head::Head;
use wire::http1::{self, Parsed, parse_request};

use crate::fate::Fate;
use crate::trailers::Trailers;

/// A request for a connection.
pub struct Order {
    /// Its user's other end.
    pub link: Socket,
    /// Its head; none if that comes through the link.
    pub head: Option<Head>,
    /// The scheme where the head names none.
    pub scheme: &'static [u8],
    /// What becomes of it.
    pub fate: Rc<Fate>,
    /// What was read of a head that comes through the link.
    pub read: Option<Buf>,
    /// What follows a body whose length is declared.
    pub trailers: Option<Rc<Trailers>>,
    /// Its parameters, encoded, where FastCGI is spoken; made of the head alone where there are none.
    pub params: Option<Vec<u8>>,
}

/// Whose connection it is.
pub struct Owner {
    /// The worker that it lives on, by number.
    pub worker: usize,
    /// The backend that it counts for, if it does for any.
    pub backend: Option<Arc<model::Proxy>>,
    /// `timeout server` of the backend: how long a stream without a user may do nothing.
    pub patience: Option<Duration>,
    /// The server, unless it is only looked at (checks).
    pub server: Option<Arc<model::Server>>,
    /// `pool-low-conn` of the server.
    pub low: u32,
    /// What the connection may stand in for.
    pub identity: u64,
    /// How often its server had been moved before: see [`Server::moves`](model::Server::moves).
    pub moves: u64,
    /// Requests that it may serve in all.
    pub most: u32,
    /// `idle-ping`.
    pub ping: Option<Duration>,
    /// Nobody else finds it while it serves its one stream: between two it is put to rest in the pool, with
    /// the requests that it has served, where other workers find it, too.
    pub returns: Option<u32>,
    /// FastCGI is spoken.
    pub fcgi: bool,
    /// One client alone may use it.
    pub private: bool,
    /// Where it rests.
    pub pool: Box<dyn Pool>,
}

/// A connection that carries one stream at a time, between two of them.
pub struct Resting {
    /// Its socket.
    pub socket: Transport,
    /// See [`Owner::identity`].
    pub identity: u64,
    /// Requests that it has served.
    pub requests: u32,
    /// What it holds of a server with `strict-maxconn`.
    pub seat: Option<Seat>,
}

/// Where a connection to a server rests; it keeps the configuration of that server as long as it stands.
pub trait Pool {
    /// Puts a connection to rest that carries one stream at a time: whoever takes it speaks on it anew.
    fn rest(&self, resting: Resting) {
        drop(resting);
    }

    /// Whether another connection rests there.
    fn has_another(&self, than: &Mux) -> bool;
}

/// Nothing rests here.
struct Nowhere;

impl Pool for Nowhere {
    fn has_another(&self, _: &Mux) -> bool {
        false
    }
}

impl Owner {
    /// That of a connection which serves one request and counts for nobody.
    pub fn alone(worker: usize, patience: Option<Duration>) -> Owner {
        Owner {
            worker,
            backend: None,
            patience,
            server: None,
            low: 0,
            identity: 0,
            moves: 0,
            most: 1,
            ping: None,
            returns: None,
            fcgi: false,
            private: false,
            pool: Box::new(Nowhere),
        }
    }
}

/// A connection.
pub struct Mux {
    owner: Owner,
    socket: Transport,
    inbox: RefCell<Vec<Order>>,
    task: Cell<Option<TaskId>>,
    /// Streams that are reserved or used.
    streams: Cell<u32>,
    limit: Cell<u32>,
    /// It takes no new request.
    closing: Cell<bool>,
    /// Its stream is over in order: it may go to the pool.
    returning: Cell<bool>,
    requests: Cell<u32>,
    /// The client connection that its requests come from while it is in use (`http-reuse safe`).
    session: Cell<u64>,
    pub multiplex: Cell<Multiplex>,
    /// Violations and oddities so far.
    pub glitches: Cell<u32>,
    /// What broke it.
    pub error: Cell<ConnError>,
}

impl Mux {
    /// A connection that stands, with its first stream reserved for `session`. It carries `limit` streams at
    /// a time, 0: any number.
    pub(crate) fn new(socket: Transport, owner: Owner, session: u64, limit: u32) -> Rc<Mux> {
        let served = owner.returns.unwrap_or(0).saturating_add(1);
        Rc::new(Mux {
            owner,
            socket,
            inbox: RefCell::default(),
            task: Cell::new(None),
            streams: Cell::new(1),
            limit: Cell::new(if limit == 0 { u32::MAX } else { limit }),
            closing: Cell::new(false),
            returning: Cell::new(false),
            requests: Cell::new(served),
            session: Cell::new(session),
            multiplex: Cell::new(Multiplex { limit, ..Multiplex::default() }),
            glitches: Cell::new(0),
            error: Cell::default(),
        })
    }

    /// Has a task serve the connection, which polls `turns` until that is ready.
    pub(crate) fn serve(&self, turns: impl FnMut(&mut Context<'_>) -> Poll<()> + 'static) {
        if let Some(server) = &self.owner.server {
            server.conns.begin();
        }
        self.task.set(Some(rt::spawn(std::future::poll_fn(turns))));
    }

    /// The task that serves it is over: orders that came are handed out one last time.
    pub(crate) fn leave(&self) -> Vec<Order> {
        self.task.set(None);
        self.take_orders()
    }

    /// The requests that came since the last call.
    pub(crate) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut *self.inbox.borrow_mut())
    }

    /// Whether some came.
    pub(crate) fn has_orders(&self) -> bool {
        !self.inbox.borrow().is_empty()
    }

    /// Streams that it carries at a time from here on.
    pub(crate) fn set_limit(&self, limit: u32) {
        self.limit.set(limit);
    }

    /// Whether it is to go to the pool, now that its stream is over.
    pub(crate) fn is_returning(&self) -> bool {
        self.returning.get()
    }

    /// It must not serve anybody else: what was said on it is not over.
    pub(crate) fn spoil(&self) {
        self.returning.set(false);
        self.retire();
    }

    /// Puts it to rest; whoever still knows it finds nothing.
    pub(crate) fn put_to_rest(self: &mut Rc<Mux>, seat: Option<Seat>) {
        let Ok((near, _)) = Socket::local() else { return };
        let Some(mux) = Rc::get_mut(self) else { return };
        let socket = std::mem::replace(&mut mux.socket, near.into());
        let (identity, requests) = (mux.owner.identity, mux.requests.get());
        mux.owner.pool.rest(Resting { socket, identity, requests, seat });
    }

    /// How long a stream without a user may do nothing.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.owner.patience
    }

    /// `idle-ping`.
    pub(crate) fn ping(&self) -> Option<Duration> {
        self.owner.ping
    }

    /// The connection itself.
    pub fn socket(&self) -> &Transport {
        &self.socket
    }

    /// What it may stand in for.
    pub fn identity(&self) -> u64 {
        self.owner.identity
    }

    /// Whether another request may be sent on it.
    pub fn has_room(&self) -> bool {
        !self.closing.get() && self.streams.get() < self.limit.get() && self.requests.get() < self.owner.most
    }

    /// Whether it takes no more requests.
    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Whether no stream uses it.
    pub fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    /// Whether a client connection may use it without sharing it with another.
    pub fn fits(&self, session: u64) -> bool {
        self.is_idle() || self.session.get() == session
    }

    /// Whether it is one of FastCGI.
    pub fn is_fcgi(&self) -> bool {
        self.owner.fcgi
    }

    /// Counts one more stream in use, for a client connection.
    pub(crate) fn occupy(&self, session: u64) {
        if self.is_idle()
            && let Some(server) = &self.owner.server
        {
            self.leave_rest(&server.conns);
            server.conns.begin();
        }
        self.streams.set(self.streams.get() + 1);
        self.requests.set(self.requests.get() + 1);
        self.session.set(session);
    }

    /// A stream was given back.
    pub fn give_back(&self) {
        let left = self.streams.get().saturating_sub(1);
        self.streams.set(left);
        if left > 0 {
            return;
        }
        let server = self.owner.server.as_ref();
        if let Some(server) = server {
            server.conns.end();
        }
        if self.owner.returns.is_some() {
            let again = !self.closing.replace(true) && self.requests.get() < self.owner.most;
            self.returning.set(again);
            return self.wake();
        }
        let surplus = self.is_surplus();
        if let Some(server) = server.filter(|_| !self.closing.get()) {
            self.come_to_rest(&server.conns);
        }
        if surplus || self.requests.get() >= self.owner.most {
            self.retire();
        }
        self.wake();
    }

    fn come_to_rest(&self, conns: &ServerConns) {
        match self.owner.private {
            true => conns.rest_private(),
            false => conns.rest(self.is_safe()),
        }
    }

    fn leave_rest(&self, conns: &ServerConns) {
        match self.owner.private {
            true => conns.leave_private(),
            false => conns.leave(self.is_safe()),
        }
    }

    /// Whether its server is expected to keep it: of HTTP/2 from the first request on.
    fn is_safe(&self) -> bool {
        !self.owner.fcgi || is_safe(self.requests.get())
    }

    /// Whether it need not rest: its server is not used any more, or enough connections rest.
    fn is_surplus(&self) -> bool {
        let Owner { server, low, pool, .. } = &self.owner;
        let Some(state) = server else { return false };
        // Whoever was on the way when the server was put into maintenance, or moved, made a connection that
        // nobody flushed.
        state.admin() & admin::MAINT != 0
            || state.moves() != self.owner.moves
            || state.conns.are_enough(*low) && pool.has_another(self)
    }

    /// It takes no more requests, and ends with the last one.
    pub fn retire(&self) {
        if self.closing.replace(true) {
            return;
        }
        if self.is_idle()
            && let Some(server) = &self.owner.server
        {
            self.leave_rest(&server.conns);
        }
        self.wake();
    }

    /// Hands a request to the task.
    pub fn order(&self, order: Order) {
        self.inbox.borrow_mut().push(order);
        self.wake();
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }

    /// Counts HTTP/2.
    pub(crate) fn counters(&self, count: impl FnOnce(&H2Counters)) {
        if let Some(backend) = &self.owner.backend {
            count(&backend.back.counters.of(self.owner.worker).h2);
        }
    }
}

impl Order {
    /// Reads a head that comes through the link. An error: nothing comes of it.
    pub(crate) fn read(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        if self.head.is_some() {
            return Ok(());
        }
        let buf = self.read.get_or_insert_default();
        while let Poll::Ready(read) = self.link.poll_recv(cx, buf.spare_mut()) {
            match read {
                Ok(n) if n > 0 => buf.advance(n),
                _ => return Err(()),
            }
            let mut head = Head::request();
            match parse_request(buf.filled(), &mut head, &http1::Limits::NONE, true) {
                Ok(Parsed::Complete { consumed }) => {
                    buf.consume(consumed);
                    self.head = Some(head);
                    return Ok(());
                }
                Ok(Parsed::Partial) => {}
                Err(_) => return Err(()),
            }
        }
        Ok(())
    }
}
