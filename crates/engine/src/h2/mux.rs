//! A connection to a server.
//!
//! It stands in the pool of its server from the first request on, in use or not, and whoever may use it takes a stream
//! of it. It belongs to its task, which ends when the server closes it or when it is told to; so an idle one needs
//! nobody to look whether it still stands.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use model::conn::{ConnError, Multiplex};
use model::proxy::H2Counters;
use model::server::admin;
use model::server_conns::Seat;
use rt::{Buf, Mono, Socket, TaskId, Timer};
use wire::h2::{Code, Connection, Event, Limits, Outline, Received, Role};
use wire::head::Head;
use wire::http1::{self, Parsed, parse_request};

use super::call::{Call, Fate};
use super::outbox::Outbox;
use super::pulse::{Lost, Pulse};
use super::roster::Roster;
use super::route::{Asked, Route, RouteState};
use super::tally;
use super::trailers::Trailers;
use crate::pool::Identity;
use crate::shared::Shared;
use crate::transport::Transport;

/// Turns before other tasks get theirs.
const TURNS: u32 = 16;
/// How often what a peer cost is half forgiven.
const CALM: Duration = Duration::from_secs(1);

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
}

/// Whose connection it is.
pub struct Owner {
    pub shared: Arc<Shared>,
    /// The worker that it lives on, by number.
    pub worker: usize,
    /// The backend, as an index of the program.
    pub backend: u32,
    /// Keeps both.
    pub stay: crate::shared::Stay,
    /// The server, unless it is only looked at (checks).
    pub server: Option<Arc<model::Server>>,
    /// Where the server stands in its backend.
    pub index: u32,
    pub identity: Identity,
    /// How often its server had been moved before: see [`Server::moves`](model::Server::moves).
    pub moves: u64,
    /// Requests that it may serve in all.
    pub most: u32,
    /// `idle-ping`.
    pub ping: Option<Duration>,
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
    requests: Cell<u32>,
    /// The client connection that its requests come from while it is in use (`http-reuse safe`).
    session: Cell<u64>,
    pub multiplex: Cell<Multiplex>,
    /// Violations and oddities so far.
    pub glitches: Cell<u32>,
    /// What broke it.
    pub error: Cell<ConnError>,
}

/// Begins to speak HTTP/2 on a connection to a server. A first stream is reserved for `session`; `seat` is what it holds of a server
/// with `strict-maxconn`, as long as it stands.
pub fn start(socket: Transport, limits: Limits, owner: Owner, seat: Option<Seat>, session: u64) -> Rc<Mux> {
    let mut out = Outbox::new(socket.is_plain());
    let limit = limits.streams;
    let connection = Connection::new(Role::Client, limits, &mut out.bytes);
    let pulse = Pulse::new(owner.ping);
    let mux = Rc::new(Mux {
        owner,
        socket,
        inbox: RefCell::default(),
        task: Cell::new(None),
        streams: Cell::new(1),
        limit: Cell::new(if limit == 0 { u32::MAX } else { limit }),
        closing: Cell::new(false),
        requests: Cell::new(1),
        session: Cell::new(session),
        multiplex: Cell::new(Multiplex { limit, ..Multiplex::default() }),
        glitches: Cell::new(0),
        error: Cell::default(),
    });
    let mut serving = Serving {
        mux: mux.clone(),
        seat,
        pulse,
        connection,
        out,
        buf: None,
        unread: false,
        paused: false,
        waiting: Vec::new(),
        routes: Roster::new(),
        peer: ServerSide::Open,
        tails: None,
        head: Head::response(),
        calmed: rt::now(),
    };
    mux.counters(|c| {
        c.open_connections.inc();
        c.connections.inc();
    });
    if let Some(server) = &mux.owner.server {
        server.conns.begin();
    }
    mux.task.set(Some(rt::spawn(std::future::poll_fn(move |cx| serving.turns(cx)))));
    mux
}

impl Mux {
    /// The connection itself.
    pub fn socket(&self) -> &Transport {
        &self.socket
    }

    /// What it may stand in for.
    pub fn identity(&self) -> Identity {
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

    /// Takes a stream for a client connection.
    pub fn reserve(self: &Rc<Mux>, session: u64) -> Option<(Call, Socket)> {
        if self.is_idle()
            && let Some(server) = &self.owner.server
        {
            server.conns.leave(self.is_safe());
            server.conns.begin();
        }
        self.streams.set(self.streams.get() + 1);
        self.requests.set(self.requests.get() + 1);
        self.session.set(session);
        Call::new(self.clone())
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
        let surplus = self.is_surplus();
        if let Some(server) = server.filter(|_| !self.closing.get()) {
            server.conns.rest(self.is_safe());
        }
        if surplus || self.requests.get() >= self.owner.most {
            self.retire();
        }
        self.wake();
    }

    fn is_safe(&self) -> bool {
        crate::pool::is_safe(self.requests.get())
    }

    /// Whether it need not rest: its server is not used any more, or enough connections rest, and one of them fits the same
    /// requests.
    fn is_surplus(&self) -> bool {
        let Owner { shared, backend, server, index, .. } = &self.owner;
        let Some(state) = server else { return false };
        let low = || shared.program.server(*backend, *index).pool_low_conn;
        // Whoever was on the way when the server was put into maintenance, or moved, made a connection that nobody flushed.
        state.admin() & admin::MAINT != 0
            || state.moves() != self.owner.moves
            || state.conns.are_enough(low())
                && crate::run::with_worker(|w| w.pools.has_another(*backend, *index, self)) == Some(true)
    }

    /// It takes no more requests, and ends with the last one.
    pub fn retire(&self) {
        if self.closing.replace(true) {
            return;
        }
        if self.is_idle()
            && let Some(server) = &self.owner.server
        {
            server.conns.leave(self.is_safe());
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

    fn counters(&self, count: impl FnOnce(&H2Counters)) {
        let proxy = self.owner.shared.program.proxy(self.owner.backend);
        count(&proxy.state.back.counters.of(self.owner.worker).h2);
    }
}

/// The task's side of it.
struct Serving {
    mux: Rc<Mux>,
    seat: Option<Seat>,
    pulse: Pulse,
    connection: Connection,
    out: Outbox,
    /// Bytes received and not understood.
    buf: Option<Buf>,
    /// There is more to understand in it.
    unread: bool,
    /// Enough came for this turn.
    paused: bool,
    /// Requests that have no stream yet.
    waiting: Vec<Order>,
    /// Streams, and those that are over but for what their users have yet to take.
    routes: Roster<Route>,
    /// Where heads are read into.
    head: Head,
    calmed: Mono,
    peer: ServerSide,
    /// Until when streams without users may go on.
    tails: Option<Timer>,
}

/// How much of the connection is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerSide {
    Open,
    /// Nothing can be sent any more; what the server sent before may still be read.
    Deaf,
    /// It is closed. What came before still goes to its users.
    Gone,
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.peer != ServerSide::Gone {
            self.leave();
        }
        self.mux.task.set(None);
        self.refuse_orders();
        self.mux.counters(|c| {
            c.open_connections.dec();
            (0..self.routes.len()).for_each(|_| c.open_streams.dec());
        });
    }
}

impl Serving {
    /// Turns until there is nothing to do; ready when the connection is at its end.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            if self.peer == ServerSide::Gone {
                return self.hand_out(cx);
            }
            let Ok(mut moved) = self.receive(cx) else {
                let _ = self.out.send(cx, &self.mux.socket, true);
                self.note();
                self.leave();
                continue;
            };
            moved |= self.move_routes(cx);
            moved |= self.take_orders(cx);
            self.note();
            let over = self.mux.is_closing() && self.mux.is_idle() && self.connection.is_empty();
            if over {
                self.connection.shutdown(&mut self.out.bytes);
            }
            moved |= self.send(cx);
            if over && self.out.is_empty() && self.routes.is_empty() {
                return Poll::Ready(());
            }
            if std::mem::take(&mut self.paused) {
                break;
            }
            if !moved {
                match self.pulse.poll(cx, &mut self.connection, &mut self.out.bytes) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(Lost)) => {
                        self.connection.close(Code::NO_ERROR, &mut self.out.bytes);
                        let _ = self.out.send(cx, &self.mux.socket, true);
                        self.leave();
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Sends what waits; whether something changed. When that fails the server may have closed because it had said all it had to
    /// say: that is read to its end before the connection is given up.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self.peer {
            ServerSide::Open => match self.out.send(cx, &self.mux.socket, self.connection.is_empty()) {
                Ok(sent) => sent,
                Err(()) => {
                    self.peer = ServerSide::Deaf;
                    self.out.discard();
                    self.mux.retire();
                    true
                }
            },
            ServerSide::Deaf | ServerSide::Gone => {
                self.out.discard();
                false
            }
        }
    }

    /// The connection is gone.
    fn leave(&mut self) {
        self.peer = ServerSide::Gone;
        self.mux.retire();
        self.seat = None;
        self.mux.socket.close();
        let _ = self.mux.socket.shutdown_write();
        self.out.discard();
        self.buf = None;
    }

    /// After the end of the connection: gives users what came for them before; ready when all have it or have left.
    fn hand_out(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.refuse_orders();
        for place in self.routes.circle() {
            let Some(route) = self.routes.get(place) else { continue };
            route.down.push(cx, &route.link, route.stream, &mut self.connection, &mut self.out.bytes);
            if route.down.is_empty() || route.link.poll_broken(cx).is_ready() {
                self.drop_route(place);
            }
        }
        self.out.discard();
        if self.routes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// No stream was opened for these requests, nor will be.
    fn refuse_orders(&mut self) {
        self.mux.inbox.borrow_mut().drain(..).for_each(|order| order.fate.refuse());
        self.waiting.drain(..).for_each(|order| order.fate.refuse());
    }

    fn drop_route(&mut self, place: usize) {
        if let Some(mut route) = self.routes.remove(place) {
            route.down.abandon(route.stream, &mut self.connection, &mut self.out.bytes);
            self.mux.counters(|c| c.open_streams.dec());
        }
    }

    /// Takes in what the server sent; whether there was something. An error is the end of the connection.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, ()> {
        if self.out.is_full() {
            return Ok(false);
        }
        if self.unread {
            return self.frames(cx).map(|()| true);
        }
        let socket = &self.mux.socket;
        if socket.poll_readable(cx).is_pending() {
            return Ok(false);
        }
        let buf = self.buf.get_or_insert_default();
        buf.compact();
        match socket.poll_recv(cx, buf.spare_mut()) {
            Poll::Ready(Ok(0)) => return Err(()),
            Poll::Ready(Err(e)) => {
                self.mux.error.set(ConnError::of_system(&e));
                return Err(());
            }
            Poll::Ready(Ok(n)) => buf.advance(n),
            Poll::Pending => {
                self.buf = self.buf.take().filter(|buf| !buf.is_empty());
                return Ok(false);
            }
        }
        self.pulse.heard();
        self.frames(cx).map(|()| true)
    }

    /// Understands what lies in the buffer.
    fn frames(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        let there = self.buf.take().or_else(|| self.unread.then(Buf::default));
        let Some(mut buf) = there else { return Ok(()) };
        self.unread = false;
        let now = rt::now();
        if now.since(self.calmed) >= CALM {
            self.calmed = now;
            self.connection.calm_down();
        }
        self.connection.begin_turn();
        loop {
            let received = self.connection.receive(buf.filled(), &mut self.head, &mut self.out.bytes);
            let Ok(Received { consumed, event }) = received else { return Err(()) };
            let Some(event) = event else {
                buf.consume(consumed);
                break;
            };
            match event {
                Event::Head { stream, end, .. } => {
                    if let Some(route) = self.routes.find(stream) {
                        route.head(&mut self.head, end);
                    }
                }
                Event::Data { stream, bytes, end, lone } => match self.routes.find(stream) {
                    Some(route) => {
                        route.data(bytes, end, lone);
                        route.down.push(cx, &route.link, stream, &mut self.connection, &mut self.out.bytes);
                    }
                    None => self.connection.release(stream, bytes.len(), &mut self.out.bytes),
                },
                Event::Trailers { stream } => {
                    if let Some(route) = self.routes.find(stream) {
                        route.down.trailers(&self.head);
                    }
                }
                Event::Reset { stream, code, by_peer, malformed } => {
                    let route = self.routes.find(stream);
                    if let Some(route) = route.as_ref().filter(|_| by_peer) {
                        route.fate.reset.set(Some(code.0));
                        route.fate.refused.set(code == Code::REFUSED_STREAM);
                    } else if let Some(route) = route {
                        route.fate.malformed.set(malformed);
                    }
                }
                Event::GoAway { .. } => self.wound_up(),
                Event::Pause => self.paused = true,
                Event::Malformed { .. } | Event::Window { .. } => {}
            }
            buf.consume(consumed);
            if self.paused || self.out.is_full() {
                self.unread = true;
                break;
            }
        }
        self.buf = Some(buf).filter(|buf| !buf.is_empty());
        Ok(())
    }

    /// The server takes no more streams, and did not process some.
    fn wound_up(&mut self) {
        self.mux.retire();
        while let Some(stream) = self.connection.refused() {
            if let Some(route) = self.routes.find(stream) {
                route.fate.refuse();
            }
        }
    }

    /// Opens streams for requests that came; whether there were any.
    fn take_orders(&mut self, cx: &mut Context<'_>) -> bool {
        let more = !self.mux.inbox.borrow().is_empty();
        self.waiting.append(&mut self.mux.inbox.borrow_mut());
        let mut at = 0;
        let mut moved = more;
        while let Some(order) = self.waiting.get_mut(at) {
            if self.connection.is_ending() {
                self.waiting.remove(at).fate.refuse();
                moved = true;
                continue;
            }
            if order.link.poll_broken(cx).is_ready() || order.read(cx).is_err() {
                self.waiting.remove(at);
                continue;
            }
            match order.head.as_ref().map(Asked::of) {
                Some(asked) if self.may_open(&asked) => {
                    let order = self.waiting.remove(at);
                    self.open(order, asked);
                    moved = true;
                }
                _ => at += 1,
            }
        }
        moved
    }

    /// Whether a stream can be opened now. How many the server takes, and what extended CONNECT means to it, is known when its
    /// settings came: until then there is one stream, for a second one might be refused after all of its body was sent.
    fn may_open(&self, asked: &Asked) -> bool {
        let first = self.connection.is_empty() && asked.protocol().is_none();
        self.connection.can_open() && (first || self.connection.is_greeted())
    }

    fn open(&mut self, order: Order, asked: Asked) {
        let Some(head) = order.head else { return };
        let possible = self.connection.remote().extended_connect && !asked.has_body;
        if asked.protocol().is_some() && !possible {
            // Its user sees that nothing comes of it, and the server that something was meant to.
            if self.connection.is_empty() {
                self.connection.open_none(&mut self.out.bytes);
                self.mux.counters(|c| c.streams.inc());
                self.mux.retire();
            }
            return;
        }
        let outline = Outline { scheme: order.scheme, protocol: asked.protocol() };
        let end = asked.body == http1::Body::None;
        let Ok(stream) = self.connection.open(&head, outline, end, &mut self.out.bytes) else {
            return order.fate.refuse();
        };
        order.fate.opened(self.connection.id(stream));
        self.mux.counters(|c| {
            c.open_streams.inc();
            c.streams.inc();
        });
        let route = Route::new(stream, order.link, order.fate, asked, order.read, order.trailers);
        self.routes.insert(stream, route);
    }

    /// Moves what the streams have; whether there was something.
    fn move_routes(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut moved, mut full, mut tails) = (false, None, 0);
        for place in self.routes.circle() {
            let Some(route) = self.routes.get(place) else { continue };
            let out = &mut self.out;
            if out.is_full() {
                full.get_or_insert(place);
            }
            moved |= route.turn(cx, &mut self.connection, out);
            match route.state(cx, &mut self.connection, &mut out.bytes) {
                RouteState::Used => {}
                RouteState::Tail => tails += 1,
                RouteState::Over => {
                    self.drop_route(place);
                    moved = true;
                }
            }
        }
        if let Some(place) = full {
            self.routes.begin_with(place);
        }
        moved | self.watch_tails(cx, tails, moved)
    }

    /// Nobody but the connection waits for streams whose users are gone, so it gives them up when nothing moves for too
    /// long; whether it did.
    fn watch_tails(&mut self, cx: &mut Context<'_>, tails: usize, moved: bool) -> bool {
        if tails == 0 {
            self.tails = None;
            return false;
        }
        let owner = &self.mux.owner;
        let limit = owner.shared.program.proxy(owner.backend).timeouts.server;
        let timer = self.tails.get_or_insert_with(|| {
            let mut timer = Timer::new();
            timer.set_after(limit);
            timer
        });
        if moved {
            timer.set_after(limit);
        }
        if timer.poll_expired(cx).is_pending() {
            return false;
        }
        self.tails = None;
        for place in self.routes.circle() {
            let Some(route) = self.routes.get(place) else { continue };
            let out = &mut self.out.bytes;
            if route.state(cx, &mut self.connection, out) == RouteState::Tail {
                self.connection.reset(route.stream, Code::CANCEL, out);
                self.drop_route(place);
            }
        }
        true
    }

    /// Lets others see what happened.
    fn note(&mut self) {
        let mux = &self.mux;
        let remote = self.connection.remote().streams;
        let own = self.mux.multiplex.get().limit;
        mux.limit.set(remote.min(if own == 0 { u32::MAX } else { own }));
        mux.glitches.set(self.connection.glitches());
        mux.multiplex.set(Multiplex { streams: self.routes.len() as u32, limit: own });
        if self.connection.is_ending() {
            mux.retire();
        }
        let connection = &mut self.connection;
        mux.counters(|counters| tally::count(connection, counters));
    }
}

impl Order {
    /// Reads a head that comes through the link. An error: nothing comes of it.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
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
