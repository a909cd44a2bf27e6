//! A connection of a client.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::slab::Key;
use model::conn::ConnError;
use model::proxy::H2Counters;
use program::global::H2Log;
use rt::{Buf, Mono, Socket, Timer};
use wire::h2::{Code, Connection, Event, Fatal, Limits, PREFACE, Received, Role};
use wire::head::{Head, Known};
use wire::http1::Body;
use wire::method::Method;

use super::frames::Frames;
use super::line::Line;
use super::pulse::{Lost, Pulse};
use super::roster::Roster;
use super::{Arrival, Host, Receipt, Settings, tally, traced};
use crate::outbox::Outbox;
use model::trace::{h2, level};

/// Turns before other tasks get theirs.
const TURNS: u32 = 16;
/// The last stream that a GOAWAY names which comes before the one that counts (RFC 9113 section 6.8).
const ANNOUNCED: u32 = 0x7fff_ffff;
/// How often what a peer cost is half forgiven.
const CALM: Duration = Duration::from_secs(1);

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    Http2,
    /// They may become it.
    Maybe,
    Other,
}

/// Looks at the first bytes of a connection.
pub fn preface(bytes: &[u8]) -> Preface {
    match PREFACE.get(..bytes.len().min(PREFACE.len())) {
        Some(part) if bytes.starts_with(part) && part.len() == PREFACE.len() => Preface::Http2,
        Some(part) if bytes == part => Preface::Maybe,
        _ => Preface::Other,
    }
}

/// Serves a connection of a client until it ends. `limits` is what this side allows, `buf` what came before;
/// the timer is the connection's.
pub async fn serve<H: Host>(
    host: &mut H,
    limits: Limits,
    settings: Settings,
    buf: Option<Buf>,
    timer: Timer,
) {
    traced::connection(Some(host.conn()), h2::NEW, level::USER, "new connection of HTTP/2");
    let mut out = Outbox::new(host.socket().is_plain());
    let connection = Connection::new(Role::Server, limits, &mut out.bytes);
    let buf = buf.filter(|buf| !buf.is_empty());
    let mut serving = Serving {
        pulse: Pulse::new(settings.ping),
        host,
        settings,
        timer,
        rested: None,
        connection,
        out,
        lines: Roster::new(),
        head: Head::request(),
        state: State::Open,
        paused: false,
        gave_up: false,
        glitches: 0,
        calmed: rt::now(),
        unread: buf.is_some(),
        has_said: buf.is_some(),
        buf,
    };
    let counters = serving.host.counters();
    counters.open_connections.inc();
    counters.connections.inc();
    serving.arm();
    poll_fn(|cx| serving.turns(cx)).await;
    serving.drop_lines();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The client has closed its sending side. Its whole requests are served; then the connection is closed.
    HalfClosed,
    /// The client sends no more requests on it. Those it sent are served; then the connection is closed.
    Leaving,
    /// What is to be sent is sent, then the connection is closed.
    Closing,
}

/// A connection that is being served.
struct Serving<'h, H: Host> {
    host: &'h mut H,
    settings: Settings,
    timer: Timer,
    /// Since when there is no stream.
    rested: Option<Mono>,
    pulse: Pulse,
    connection: Connection,
    out: Outbox,
    /// Bytes received and not understood.
    buf: Option<Buf>,
    /// The client has said anything at all.
    has_said: bool,
    /// There is more to understand in it: enough had come for a turn.
    unread: bool,
    /// Streams, and those that are over but for what their tasks have yet to take.
    lines: Roster<Line>,
    /// Where heads are read into.
    head: Head,
    state: State,
    /// Enough came for this turn, or what else came is to be seen before the next.
    paused: bool,
    /// A stream was reset because its client took nothing of the response for too long.
    gave_up: bool,
    /// Glitches that were told of.
    glitches: u32,
    /// When what the peer cost was last forgiven.
    calmed: Mono,
}

impl<H: Host> Drop for Serving<'_, H> {
    fn drop(&mut self) {
        traced::connection(Some(self.host.conn()), h2::END, level::STATE, "connection is over");
        self.counters(|c| {
            c.open_connections.dec();
            (0..self.lines.len()).for_each(|_| c.open_streams.dec());
        });
    }
}

impl<H: Host> Serving<'_, H> {
    fn counters(&self, count: impl FnOnce(&H2Counters)) {
        count(self.host.counters());
    }

    /// Turns until there is nothing to do; ready when the connection is at its end.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            let mut moved = self.receive(cx);
            moved |= self.move_lines(cx);
            self.wind_up();
            self.note();
            let idle = self.connection.is_empty();
            match self.out.send(cx, self.host.socket(), idle) {
                Err(()) => return Poll::Ready(()),
                Ok(true) => {
                    if idle && self.gave_up && self.timer.poll_expired(cx).is_ready() {
                        // The reset of a stream whose client took nothing for too long is no reason to wait
                        // once more.
                        self.connection.close(Code::NO_ERROR, &mut self.out.bytes);
                    }
                    self.arm();
                    moved = true;
                }
                Ok(false) => {}
            }
            let over = match self.state {
                State::Open => self.connection.is_over(),
                State::HalfClosed | State::Leaving => self.lines.is_empty() || self.connection.is_over(),
                State::Closing => true,
            };
            if over && self.out.is_empty() {
                return Poll::Ready(());
            }
            if std::mem::take(&mut self.paused) {
                break;
            }
            if !moved {
                match self.pulse.poll(cx, &mut self.connection, &mut self.out.bytes) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(Lost)) => return self.give_up(cx),
                    Poll::Pending => return self.expired(cx),
                }
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Takes in what the peer sent; whether there was something.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        if self.state == State::HalfClosed {
            let broken = self.host.socket().poll_broken(cx).is_ready();
            if broken {
                self.state = State::Closing;
            }
            return broken;
        }
        if self.state == State::Closing || self.out.is_full() || self.has_too_many() {
            return false;
        }
        if self.unread {
            self.frames(cx);
            return true;
        }
        let socket = self.host.socket();
        if socket.poll_readable(cx).is_pending() {
            return false;
        }
        let buf = self.buf.get_or_insert_default();
        buf.compact();
        match socket.poll_recv(cx, buf.spare_mut()) {
            Poll::Ready(Ok(0)) => {
                self.buf = self.buf.take().filter(|buf| !buf.is_empty());
                // Who came right before is looked at first.
                self.paused = self.has_newcomers();
                if !self.paused {
                    self.half_close();
                }
                return true;
            }
            Poll::Ready(Err(e)) => {
                self.host.conn().error.set(ConnError::of_system(&e));
                // Who breaks off before the first frame is logged like one who closes.
                if self.connection.peer_closed() {
                    self.log_stillborn();
                }
                self.state = State::Closing;
                return true;
            }
            Poll::Ready(Ok(n)) => {
                buf.advance(n);
                self.has_said = true;
            }
            Poll::Pending => {
                self.buf = self.buf.take().filter(|buf| !buf.is_empty());
                return false;
            }
        }
        self.pulse.heard();
        self.frames(cx);
        self.arm();
        true
    }

    /// The client has closed its sending side. Requests that are not whole never will be; for the others it
    /// is to their tasks whether a client counts as gone then (`option abortonclose`).
    fn half_close(&mut self) {
        self.state = State::HalfClosed;
        if self.connection.peer_closed() {
            self.state = State::Closing;
            return self.log_stillborn();
        }
        for place in self.lines.circle() {
            let Some(line) = self.lines.get(place) else { continue };
            let stream = line.stream;
            if self.connection.is_receiving(stream) {
                self.connection.reset(stream, Code::REFUSED_STREAM, &mut self.out.bytes);
                self.forget(stream, None);
            } else {
                line.up.end();
            }
        }
    }

    /// Whether the task of some stream has yet to take its request.
    fn has_newcomers(&mut self) -> bool {
        self.lines.circle().any(|place| self.lines.get(place).is_some_and(|line| !line.receipt.begun.get()))
    }

    /// Whether more streams are served than the client may have at a time: those that are over on the wire,
    /// whose tasks have yet to take what came, count as well. Nothing is read until there are fewer.
    fn has_too_many(&self) -> bool {
        let limit = self.host.conn().multiplex.get().limit;
        limit > 0 && self.lines.len() > limit as usize
    }

    /// Understands what lies in the buffer.
    fn frames(&mut self, cx: &mut Context<'_>) {
        let there = self.buf.take().or_else(|| self.unread.then(Buf::default));
        let Some(mut buf) = there else { return };
        self.unread = false;
        self.forgive();
        self.connection.begin_turn();
        let spared = crate::glitches::spares(self.connection.spared_below());
        self.connection.spare(spared);
        loop {
            let received = self.connection.receive(buf.filled(), &mut self.head, &mut self.out.bytes);
            let Received { consumed, event } = match received {
                Ok(received) => received,
                Err(fatal) => return self.fail(fatal),
            };
            let Some(event) = event else {
                buf.consume(consumed);
                break;
            };
            traced::frame(Some(self.host.conn()), &event);
            match event {
                Event::Head { stream, end, refused, extended } => self.open(stream, end, refused, extended),
                Event::Data { stream, bytes, end, lone } => {
                    if let Some(line) = self.lines.find(stream) {
                        line.data(bytes, end, lone);
                        line.upload(cx, &mut self.connection, &mut self.out.bytes);
                    } else {
                        self.connection.release(stream, bytes.len(), &mut self.out.bytes);
                    }
                }
                Event::Trailers { stream } => {
                    if let Some(line) = self.lines.find(stream) {
                        line.up.trailers(&self.head);
                    }
                }
                Event::Reset { stream, code, by_peer, malformed } => {
                    let line = self.lines.find(stream);
                    let unserved = line.as_ref().is_some_and(|line| !line.receipt.begun.get());
                    line.into_iter().for_each(|line| line.receipt.malformed.set(malformed));
                    if malformed {
                        self.log_error(H2Log::Stream);
                    }
                    self.forget(stream, by_peer.then_some(code));
                    if by_peer
                        && unserved
                        && let Err(fatal) = self.connection.taken_back(&mut self.out.bytes)
                    {
                        return self.fail(fatal);
                    }
                }
                Event::Malformed { .. } => {
                    self.host.malformed();
                    self.log_error(H2Log::Stream);
                }
                Event::Pause => self.paused = true,
                // One that names a stream that cannot be only announces the end.
                Event::GoAway { last, .. } if last < ANNOUNCED && self.state == State::Open => {
                    self.state = State::Leaving;
                }
                Event::Window { .. } | Event::GoAway { .. } => {}
            }
            buf.consume(consumed);
            if self.paused || self.out.is_full() || self.has_too_many() {
                self.unread = true;
                break;
            }
        }
        self.buf = Some(buf).filter(|buf| !buf.is_empty());
    }

    /// The connection is at its end because of what the client did.
    fn fail(&mut self, fatal: Fatal) {
        let (conn, events) = (Some(self.host.conn()), h2::PROTOCOL | h2::ERR);
        traced::connection(conn, events, level::ERROR, "the client breaks the protocol");
        self.state = State::Closing;
        if fatal.logged {
            self.log_error(H2Log::Connection);
        }
        self.drop_lines();
    }

    fn forgive(&mut self) {
        let now = rt::now();
        if now.since(self.calmed) >= CALM {
            self.calmed = now;
            self.connection.calm_down();
        }
    }

    /// A request has come: makes a task of it.
    fn open(&mut self, stream: Key, end: bool, refused: Option<u16>, extended: bool) {
        let Ok((link, far)) = Socket::local() else {
            return self.connection.reset(stream, Code::REFUSED_STREAM, &mut self.out.bytes);
        };
        let mut head = std::mem::take(&mut self.head);
        let method = head.method_id();
        let tunnel = extended || method == Method::Connect;
        let body = match refused {
            _ if end => Body::None,
            Some(_) => Body::None,
            None if tunnel => Body::UntilClose,
            None if head.has(Known::ContentLength) => wire::http1::request_body(&head),
            None => {
                let _ = head.append(b"transfer-encoding", b"chunked");
                Body::Chunked
            }
        };
        self.rested = None;
        let receipt = Rc::<Receipt>::default();
        let id = self.connection.id(stream).unwrap_or(0);
        self.host.arrive(Arrival { head, refused, id, link: far, receipt: receipt.clone() });
        self.counters(|c| {
            c.open_streams.inc();
            c.streams.inc();
        });
        self.lines.insert(stream, Line::new(stream, link, method, extended, body, receipt));
        self.note();
    }

    /// Writes the line of a client that has left before its first frame, unless it has said nothing at all
    /// and such are not logged.
    fn log_stillborn(&mut self) {
        if self.settings.log_silent || self.has_said {
            self.log_error(H2Log::Connection);
        }
    }

    /// Writes the log line of an error of the peer, if such are wanted: that of a request that was none.
    fn log_error(&mut self, level: H2Log) {
        if self.settings.log_errors < level {
            return;
        }
        if let Ok((_, link)) = Socket::local() {
            let (head, receipt) = (Head::request(), Rc::default());
            self.host.arrive(Arrival { head, refused: Some(0), id: 0, link, receipt });
        }
    }

    fn forget(&mut self, stream: Key, code: Option<Code>) {
        if let Some(mut line) = self.lines.take(stream) {
            let connection = &mut self.connection;
            line.up.abandon(&mut Frames { stream, connection }, &mut self.out.bytes);
            line.receipt.reset.set(code.map(|code| code.0));
            self.counters(|c| c.open_streams.dec());
        }
    }

    /// The connection is at its end, and with it all streams.
    fn drop_lines(&mut self) {
        self.counters(|c| (0..self.lines.len()).for_each(|_| c.open_streams.dec()));
        self.lines.clear();
    }

    /// Moves what the streams have; whether there was something.
    fn move_lines(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut moved, mut full) = (false, None);
        for place in self.lines.circle() {
            let Some(line) = self.lines.get(place) else { continue };
            let out = &mut self.out;
            moved |= line.upload(cx, &mut self.connection, &mut out.bytes);
            if out.is_full() {
                full.get_or_insert(place);
            } else {
                moved |= line.download(cx, &mut self.connection, &mut self.head, out);
            }
            if line.expels() {
                self.connection.expel(&mut out.bytes);
                self.state = State::Closing;
                return true;
            }
            if line.hears_again(&self.connection) {
                self.paused = true;
                continue;
            }
            let stuck = self.state == State::HalfClosed && line.waits_for_window(&self.connection);
            if stuck {
                self.connection.reset(line.stream, Code::CANCEL, &mut out.bytes);
            }
            if stuck || line.is_over(&mut self.connection, &mut out.bytes) {
                let connection = &mut self.connection;
                line.up.abandon(&mut Frames { stream: line.stream, connection }, &mut out.bytes);
                self.gave_up |= line.is_given_up();
                self.lines.remove(place);
                self.counters(|c| c.open_streams.dec());
                moved = true;
            }
        }
        if let Some(place) = full {
            self.lines.begin_with(place);
        }
        moved
    }

    /// Lets rules and statistics see what happened.
    fn note(&mut self) {
        let conn = self.host.conn();
        let mut multiplex = conn.multiplex.get();
        let more = self.connection.glitches().saturating_sub(self.glitches);
        self.glitches += more;
        multiplex.streams = self.lines.len() as u32;
        conn.multiplex.set(multiplex);
        conn.glitches.set(conn.glitches.get().saturating_add(more));
        if more > 0 {
            self.host.glitches(more);
        }
        tally::count(&mut self.connection, self.host.counters());
    }

    /// Sets the deadline of the connection: it counts while there is no stream, or while nothing can be sent.
    /// What the client says without opening a stream gives it no more time for that than it had.
    fn arm(&mut self) {
        let (idle, now) = (self.connection.is_empty(), rt::now());
        let rested = *self.rested.get_or_insert(now);
        self.rested = self.rested.filter(|_| idle);
        let request = match self.connection.opened() {
            _ if !idle => None,
            0 => self.settings.request,
            _ => self.settings.keep_alive.or(self.settings.request),
        };
        self.host.rests(idle && self.connection.opened() > 0);
        self.gave_up = false;
        let by_request = request.map(|limit| rested + limit);
        self.timer.set(by_request.or(self.settings.client.map(|limit| now + limit)));
    }

    /// The process or the frontend stops, or somebody wants the connection to end.
    fn wind_up(&mut self) {
        if self.lines.is_empty()
            && let Some(settings) = self.host.renew()
        {
            self.settings = settings;
        }
        let out = &mut self.out.bytes;
        if self.host.is_killed() && self.state != State::Closing {
            self.connection.finish(out);
            self.state = State::Closing;
        }
        if !self.connection.is_empty() && self.host.is_stopped() {
            self.connection.hint(out);
        }
        if self.host.is_sent_away() {
            // A request that is on its way is served: the end comes when the client has acknowledged the
            // announcement.
            self.connection.shutdown(out);
        }
    }

    fn expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.poll_expired(cx).is_pending() {
            return Poll::Pending;
        }
        // Streams that are served have deadlines of their own; what is left of others waits for a window.
        // When the last task goes without a word more for the client, nobody waits for that client any
        // longer.
        let served = self.lines.iter_mut().any(|line| line.poll_left(cx).is_pending());
        if served && self.out.is_empty() {
            return Poll::Pending;
        }
        self.give_up(cx)
    }

    /// Nothing more is expected of the client.
    fn give_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.close(Code::NO_ERROR, &mut self.out.bytes);
        let _ = self.out.send(cx, self.host.socket(), true);
        Poll::Ready(())
    }
}
