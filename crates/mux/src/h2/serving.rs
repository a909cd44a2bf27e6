//! The task of a connection to a server.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use link::transport::Transport;
use model::conn::{ConnError, Multiplex};
use model::server_conns::Seat;
use rt::{Buf, Mono, Timer};
use wire::h2::{Code, Connection, Event, Limits, Outline, Received, Role};
use wire::head::Head;
use wire::http1;

use crate::h2::frames::Frames;
use crate::h2::pulse::{Lost, Pulse};
use crate::h2::roster::Roster;
use crate::h2::route::{Asked, Route, RouteState};
use crate::h2::tally;
use crate::h2::traced;
use crate::outbox::Outbox;
use crate::server::{Mux, Order, Owner};
use model::trace::{h2, level};

/// Turns before other tasks get theirs.
const TURNS: u32 = 16;
/// How often what a peer cost is half forgiven.
const CALM: Duration = Duration::from_secs(1);

/// Begins to speak HTTP/2 on a connection to a server. A first stream is reserved for `session`; `seat` is
/// what it holds of a server with `strict-maxconn`, as long as it stands.
pub fn start(socket: Transport, limits: Limits, owner: Owner, seat: Option<Seat>, session: u64) -> Rc<Mux> {
    let plain = socket.is_plain();
    let mux = Mux::new(socket, owner, session, limits.streams);
    let mut serving = Serving::new(mux.clone(), limits, plain, seat, mux.ping());
    mux.counters(|c| {
        c.open_connections.inc();
        c.connections.inc();
    });
    mux.serve(move |cx| serving.turns(cx));
    mux
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
    /// What heads of uploads that were just opened wait for.
    opening: Opening,
}

/// Whether what waits to be sent has the head of an upload whose user has yet to learn that its stream is
/// open: the first of the body goes along with it then, for one system call and one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    No,
    Just,
    /// The user had its turn. Others may have been opened meanwhile: nobody waits for them.
    Told,
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
        traced::connection(None, h2::END, level::STATE, "connection is over");
        if self.peer != ServerSide::Gone {
            self.leave();
        }
        self.refuse_orders();
        self.mux.leave();
        self.mux.counters(|c| {
            c.open_connections.dec();
            (0..self.routes.len()).for_each(|_| c.open_streams.dec());
        });
    }
}

impl Serving {
    /// The task of a connection that stands.
    fn new(mux: Rc<Mux>, limits: Limits, plain: bool, seat: Option<Seat>, ping: Option<Duration>) -> Serving {
        traced::connection(None, h2::NEW, level::USER, "new connection of HTTP/2");
        let mut out = Outbox::new(plain);
        let connection = Connection::new(Role::Client, limits, &mut out.bytes);
        Serving {
            mux,
            seat,
            pulse: Pulse::new(ping),
            connection,
            out,
            buf: None,
            unread: false,
            paused: false,
            waiting: Vec::new(),
            routes: Roster::new(),
            peer: ServerSide::Open,
            tails: None,
            opening: Opening::No,
            head: Head::response(),
            calmed: rt::now(),
        }
    }

    /// Turns until there is nothing to do; ready when the connection is at its end.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            if self.peer == ServerSide::Gone {
                return self.hand_out(cx);
            }
            let Ok(mut moved) = self.receive(cx) else {
                let _ = self.out.send(cx, self.mux.socket(), true);
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
            if self.opening == Opening::Just {
                self.opening = Opening::Told;
                break;
            }
            self.opening = Opening::No;
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
                        let _ = self.out.send(cx, self.mux.socket(), true);
                        self.leave();
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Sends what waits; whether something changed. When that fails the server may have closed because it had
    /// said all it had to say: that is read to its end before the connection is given up.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self.peer {
            ServerSide::Open => match self.out.send(cx, self.mux.socket(), self.connection.is_empty()) {
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
        self.mux.socket().close();
        let _ = self.mux.socket().shutdown_write();
        self.out.discard();
        self.buf = None;
    }

    /// After the end of the connection: gives users what came for them before; ready when all have it or have
    /// left.
    fn hand_out(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.refuse_orders();
        for place in self.routes.circle() {
            let Some(route) = self.routes.get(place) else { continue };
            let mut frames = Frames { stream: route.stream, connection: &mut self.connection };
            route.down.push(cx, &route.link, &mut frames, &mut self.out.bytes);
            if route.down.is_empty() || route.link.poll_broken(cx).is_ready() {
                self.drop_route(place);
            }
        }
        self.out.discard();
        if self.routes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// No stream was opened for these requests, nor will be.
    fn refuse_orders(&mut self) {
        self.mux.take_orders().into_iter().for_each(|order| order.fate.refuse());
        self.waiting.drain(..).for_each(|order| order.fate.refuse());
    }

    fn drop_route(&mut self, place: usize) {
        if let Some(mut route) = self.routes.remove(place) {
            let mut frames = Frames { stream: route.stream, connection: &mut self.connection };
            route.down.abandon(&mut frames, &mut self.out.bytes);
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
        let socket = self.mux.socket();
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
        let spared = crate::glitches::spares(self.connection.spared_below());
        self.connection.spare(spared);
        loop {
            let received = self.connection.receive(buf.filled(), &mut self.head, &mut self.out.bytes);
            let Ok(Received { consumed, event }) = received else { return Err(()) };
            let Some(event) = event else {
                buf.consume(consumed);
                break;
            };
            traced::frame(None, &event);
            match event {
                Event::Head { stream, end, .. } => {
                    if let Some(route) = self.routes.find(stream) {
                        route.head(&mut self.head, end);
                    }
                }
                Event::Data { stream, bytes, end, lone } => match self.routes.find(stream) {
                    Some(route) => {
                        route.data(bytes, end, lone);
                        let mut frames = Frames { stream, connection: &mut self.connection };
                        route.down.push(cx, &route.link, &mut frames, &mut self.out.bytes);
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
        let more = self.mux.has_orders();
        self.waiting.append(&mut self.mux.take_orders());
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

    /// Whether a stream can be opened now. How many the server takes, and what extended CONNECT means to it,
    /// is known when its settings came: until then there is one stream, for a second one might be refused
    /// after all of its body was sent.
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
        if !end && self.opening == Opening::No {
            self.opening = Opening::Just;
        }
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

    /// Nobody but the connection waits for streams whose users are gone, so it gives them up when nothing
    /// moves for too long; whether it did.
    fn watch_tails(&mut self, cx: &mut Context<'_>, tails: usize, moved: bool) -> bool {
        if tails == 0 {
            self.tails = None;
            return false;
        }
        let limit = self.mux.patience();
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
        mux.set_limit(remote.min(if own == 0 { u32::MAX } else { own }));
        mux.glitches.set(self.connection.glitches());
        mux.multiplex.set(Multiplex { streams: self.routes.len() as u32, limit: own });
        if self.connection.is_ending() {
            mux.retire();
        }
        let connection = &mut self.connection;
        mux.counters(|counters| tally::count(connection, counters));
    }
}
