//! A connection to a server.
//!
//! It stands in the pool of its server from the first request on, in use or not, and whoever may use it takes a stream
//! of it. It belongs to its task, which ends when the server closes it or when it is told to; so an idle one needs
//! nobody to look whether it still stands.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use base::slab::Key;
use model::conn::Multiplex;
use model::proxy::H2Counters;
use rt::{Buf, Mono, Socket, TaskId};
use wire::h2::{Code, Connection, Event, Limits, Outline, Received, Role};
use wire::head::Head;
use wire::http1::{self, Parsed, parse_request};

use super::call::{Call, Fate};
use super::outbox::Outbox;
use super::route::{Asked, Route};
use super::tally;
use crate::pool::Identity;
use crate::shared::Shared;
use crate::transport::Transport;

/// Turns before other tasks get theirs.
const TURNS: u32 = 16;
/// How often what a peer cost is half forgiven.
const CALM: std::time::Duration = std::time::Duration::from_secs(1);

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
}

/// Whose connection it is.
pub struct Owner {
    pub shared: Arc<Shared>,
    /// The worker that it lives on, by number.
    pub worker: usize,
    /// The backend, as an index of the program.
    pub backend: u32,
    /// The server, unless it is only looked at (checks).
    pub server: Option<Arc<model::Server>>,
    pub identity: Identity,
    /// Requests that it may serve in all.
    pub most: u32,
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
    /// It has served more than one client connection.
    pub safe: Cell<bool>,
    /// Since when it is idle.
    pub since: Cell<Mono>,
    pub multiplex: Cell<Multiplex>,
    /// Violations and oddities so far.
    pub glitches: Cell<u32>,
}

/// Begins to speak HTTP/2 on a connection to a server. A first stream is reserved for `session`.
pub fn start(socket: Transport, limits: Limits, owner: Owner, session: u64) -> Rc<Mux> {
    let mut out = Outbox::new(socket.is_plain());
    let limit = limits.streams;
    let connection = Connection::new(Role::Client, limits, &mut out.bytes);
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
        safe: Cell::new(false),
        since: Cell::new(rt::now()),
        multiplex: Cell::new(Multiplex { limit, ..Multiplex::default() }),
        glitches: Cell::new(0),
    });
    let mut serving = Serving {
        mux: mux.clone(),
        connection,
        out,
        buf: None,
        unread: false,
        paused: false,
        waiting: Vec::new(),
        routes: Vec::new(),
        first: 0,
        open: 0,
        head: Head::response(),
        calmed: rt::now(),
    };
    mux.counters(|c| {
        c.open_connections.inc();
        c.connections.inc();
    });
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
            server.idle.fetch_sub(1, Relaxed);
        }
        self.streams.set(self.streams.get() + 1);
        self.requests.set(self.requests.get() + 1);
        if self.session.replace(session) != session {
            self.safe.set(true);
        }
        Call::new(self.clone())
    }

    /// A stream was given back.
    pub fn give_back(&self) {
        let left = self.streams.get().saturating_sub(1);
        self.streams.set(left);
        if left > 0 {
            return;
        }
        self.since.set(rt::now());
        if let Some(server) = self.owner.server.as_ref().filter(|_| !self.closing.get()) {
            server.idle.fetch_add(1, Relaxed);
        }
        if self.requests.get() >= self.owner.most {
            self.retire();
        }
        self.wake();
    }

    /// It takes no more requests, and ends with the last one.
    pub fn retire(&self) {
        if self.closing.replace(true) {
            return;
        }
        if self.is_idle()
            && let Some(server) = &self.owner.server
        {
            server.idle.fetch_sub(1, Relaxed);
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
        let back = &self.owner.shared.program.proxy(self.owner.backend).state.back;
        count(&back.counters.of(self.owner.worker).h2);
    }
}

/// The task's side of it.
struct Serving {
    mux: Rc<Mux>,
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
    /// Streams by the slots of their keys.
    routes: Vec<Option<Route>>,
    /// The slot that the next turn begins with.
    first: usize,
    /// Streams among them.
    open: u32,
    /// Where heads are read into.
    head: Head,
    calmed: Mono,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.mux.retire();
        self.mux.task.set(None);
        self.mux.inbox.borrow_mut().drain(..).for_each(|order| order.fate.refused.set(true));
        self.waiting.drain(..).for_each(|order| order.fate.refused.set(true));
        self.mux.counters(|c| {
            c.open_connections.dec();
            (0..self.open).for_each(|_| c.open_streams.dec());
        });
        self.mux.socket.close();
        let _ = self.mux.socket.shutdown_write();
    }
}

impl Serving {
    /// Turns until there is nothing to do; ready when the connection is at its end.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            let mut moved = match self.receive(cx) {
                Ok(moved) => moved,
                Err(()) => {
                    let _ = self.out.send(cx, &self.mux.socket, true);
                    self.note();
                    self.deliver(cx);
                    return Poll::Ready(());
                }
            };
            moved |= self.move_routes(cx);
            moved |= self.take_orders(cx);
            self.note();
            let over = self.mux.is_closing() && self.mux.is_idle() && self.connection.is_empty();
            if over {
                self.connection.shutdown(&mut self.out.bytes);
            }
            match self.out.send(cx, &self.mux.socket, self.connection.is_empty()) {
                Err(()) => return Poll::Ready(()),
                Ok(sent) => moved |= sent,
            }
            if over && self.out.is_empty() {
                return Poll::Ready(());
            }
            if std::mem::take(&mut self.paused) {
                break;
            }
            if !moved {
                return Poll::Pending;
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// The connection is gone: what came before still reaches its users, as far as they have room.
    fn deliver(&mut self, cx: &mut Context<'_>) {
        for route in self.routes.iter_mut().flatten() {
            route.down.push(cx, &route.link, route.stream, &mut self.connection, &mut self.out.bytes);
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
            Poll::Ready(Ok(0) | Err(_)) => return Err(()),
            Poll::Ready(Ok(n)) => buf.advance(n),
            Poll::Pending => {
                self.buf = self.buf.take().filter(|buf| !buf.is_empty());
                return Ok(false);
            }
        }
        self.frames(cx).map(|()| true)
    }

    /// Understands what lies in the buffer.
    fn frames(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        let Some(mut buf) = self.buf.take() else { return Ok(()) };
        self.unread = false;
        let now = rt::now();
        if now.since(self.calmed) >= CALM {
            self.calmed = now;
            self.connection.calm_down();
        }
        self.connection.begin_turn();
        loop {
            let received = self.connection.receive(buf.filled(), &mut self.head, &mut self.out.bytes);
            let Received { consumed, event } = received.map_err(|_| ())?;
            let Some(event) = event else {
                buf.consume(consumed);
                break;
            };
            match event {
                Event::Head { stream, end, .. } => {
                    if let Some(route) = route(&mut self.routes, stream) {
                        route.head(&mut self.head, end);
                    }
                }
                Event::Data { stream, bytes, end } => match route(&mut self.routes, stream) {
                    Some(route) => {
                        route.down.data(bytes, end);
                        route.down.push(cx, &route.link, stream, &mut self.connection, &mut self.out.bytes);
                    }
                    None => self.connection.release(stream, bytes.len(), &mut self.out.bytes),
                },
                Event::Trailers { stream } => {
                    if let Some(route) = route(&mut self.routes, stream) {
                        route.down.trailers(&self.head);
                    }
                }
                Event::Reset { stream, code, by_peer } => {
                    if let Some(route) = route(&mut self.routes, stream).filter(|_| by_peer) {
                        route.fate.reset.set(Some(code.0));
                        route.fate.refused.set(code == Code::REFUSED_STREAM);
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
            if let Some(route) = route(&mut self.routes, stream) {
                route.fate.refused.set(true);
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
                self.waiting.remove(at).fate.refused.set(true);
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

    /// Whether a stream can be opened now. What extended CONNECT means to the server is known when its settings came.
    fn may_open(&self, asked: &Asked) -> bool {
        self.connection.can_open() && (asked.protocol().is_none() || self.connection.is_greeted())
    }

    fn open(&mut self, order: Order, asked: Asked) {
        let Some(head) = order.head else { return };
        let possible = self.connection.remote().extended_connect && !asked.has_body;
        if asked.protocol().is_some() && !possible {
            // Its user sees that nothing comes of it, and the server that something was meant to.
            if self.connection.is_empty() {
                self.connection.open_none(&mut self.out.bytes);
                self.mux.retire();
            }
            return;
        }
        let outline = Outline { scheme: order.scheme, protocol: asked.protocol() };
        let end = asked.body == http1::Body::None;
        let Ok(stream) = self.connection.open(&head, outline, end, &mut self.out.bytes) else {
            return order.fate.refused.set(true);
        };
        order.fate.id.set(self.connection.id(stream));
        self.open += 1;
        self.mux.counters(|c| {
            c.open_streams.inc();
            c.streams.inc();
        });
        let slot = stream.slot();
        if self.routes.len() <= slot {
            self.routes.resize_with(slot + 1, || None);
        }
        if let Some(place) = self.routes.get_mut(slot) {
            *place = Some(Route::new(stream, order.link, order.fate, asked, order.read));
        }
    }

    /// Moves what the streams have; whether there was something.
    fn move_routes(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut moved, count) = (false, self.routes.len());
        let first = if self.first < count { self.first } else { 0 };
        let mut full = None;
        for slot in (first..count).chain(0..first) {
            let Some(place) = self.routes.get_mut(slot) else { continue };
            let Some(route) = place else { continue };
            let out = &mut self.out;
            if out.is_full() {
                full.get_or_insert(slot);
            }
            moved |= route.turn(cx, &mut self.connection, out);
            if route.is_over(cx, &mut self.connection, &mut out.bytes) {
                route.down.abandon(route.stream, &mut self.connection, &mut out.bytes);
                *place = None;
                self.open = self.open.saturating_sub(1);
                self.mux.counters(|c| c.open_streams.dec());
                moved = true;
            }
        }
        self.first = full.unwrap_or(first);
        moved
    }

    /// Lets others see what happened.
    fn note(&mut self) {
        let mux = &self.mux;
        let remote = self.connection.remote().streams;
        let own = self.mux.multiplex.get().limit;
        mux.limit.set(remote.min(if own == 0 { u32::MAX } else { own }));
        mux.glitches.set(self.connection.glitches());
        mux.multiplex.set(Multiplex { streams: self.open, limit: own });
        if self.connection.is_ending() {
            mux.retire();
        }
        let connection = &mut self.connection;
        mux.counters(|counters| tally::count(connection, counters));
    }
}

fn route(routes: &mut [Option<Route>], stream: Key) -> Option<&mut Route> {
    routes.get_mut(stream.slot())?.as_mut().filter(|route| route.stream == stream)
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
            let limits = http1::Limits { head: usize::MAX, fields: usize::MAX };
            match parse_request(buf.filled(), &mut head, &limits, true) {
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
