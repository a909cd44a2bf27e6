//! The task of a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use lang::fcgi::App;
use link::transport::Transport;
use model::conn::{ConnError, Multiplex};
use model::server_conns::Seat;
use model::trace::{fcgi, level};
use rt::{Buf, Timer};
use wire::fcgi::{Event, Reader, Received, Status, Values, write};
use wire::head::Head;
use wire::http1::{Body, request_body};

use super::params::{Facts, params};
use super::route::{Most, Route};
use super::traced;
use crate::outbox::Outbox;
use crate::server::{Mux, Order, Owner};

/// Turns before other tasks get theirs.
const TURNS: u32 = 16;
/// Most bytes of errors that are told at once.
const ERRORS: usize = 16_000;

/// Is told what an application says of errors.
pub type Errors = Box<dyn Fn(&[u8])>;

/// What a connection needs to know of its application.
pub struct Setup {
    /// The application.
    pub app: Arc<App>,
    /// Most bytes of the head of a response.
    pub most: usize,
    /// Most bytes of a response that wait for its end, so that its length is known.
    pub held: usize,
    /// Who is told what the application says of errors.
    pub errors: Option<Errors>,
}

/// Begins to speak FastCGI on a connection to a server. A first stream is reserved for `session`; `seat` is
/// what it holds of a server with `strict-maxconn`, as long as it stands.
pub fn start(socket: Transport, setup: Setup, owner: Owner, seat: Option<Seat>, session: u64) -> Rc<Mux> {
    traced::connection(fcgi::NEW, level::USER, "new connection of FastCGI");
    let (plain, asks) = (socket.is_plain(), setup.app.get_values);
    let limit = setup.app.most;
    // Until the application has told its limits there is one stream.
    let mux = Mux::new(socket, owner, session, if asks { 1 } else { limit });
    let mut out = Outbox::new(plain);
    if asks {
        write::get_values(&mut out.bytes);
    }
    let mut serving = Serving {
        mux: mux.clone(),
        setup,
        seat,
        reader: Reader::default(),
        out,
        buf: None,
        awaits_values: asks,
        limit,
        waiting: Vec::new(),
        routes: BTreeMap::new(),
        tails: BTreeSet::new(),
        patience: None,
        head: Head::response(),
        errors: Vec::new(),
        gone: false,
    };
    mux.serve(move |cx| serving.turns(cx));
    mux
}

/// The task's side of a connection.
struct Serving {
    mux: Rc<Mux>,
    setup: Setup,
    seat: Option<Seat>,
    reader: Reader,
    out: Outbox,
    /// Bytes received and not understood.
    buf: Option<Buf>,
    /// The application has yet to tell its limits.
    awaits_values: bool,
    /// Requests at a time.
    limit: u32,
    /// Requests that have not begun.
    waiting: Vec<Order>,
    /// Those under way, by number.
    routes: BTreeMap<u16, Route>,
    /// Numbers of requests without users: the application has yet to say that they are over.
    tails: BTreeSet<u16>,
    /// Until when they may go on while nobody else is there.
    patience: Option<Timer>,
    /// Where heads are read into.
    head: Head,
    /// What came of an error.
    errors: Vec<u8>,
    /// The connection is closed; what came before still goes to its users.
    gone: bool,
}

impl Drop for Serving {
    fn drop(&mut self) {
        traced::connection(fcgi::END, level::STATE, "connection is over");
        self.leave();
        self.refuse();
        self.mux.leave();
    }
}

/// The connection has come to its end.
struct Ended;

impl Serving {
    /// Turns until there is nothing to do; ready when the connection is at its end.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            if self.gone {
                return self.hand_out(cx);
            }
            let Ok(mut moved) = self.receive(cx) else {
                self.leave();
                continue;
            };
            if !moved {
                self.routes.values_mut().for_each(|route| route.settle(false));
            }
            moved |= self.move_routes(cx);
            moved |= self.take_orders(cx);
            self.note();
            match self.out.send(cx, self.mux.socket(), self.routes.is_empty()) {
                Ok(sent) => moved |= sent,
                // The server has closed; what it said before is read to its end.
                Err(()) => {
                    self.out.discard();
                    self.mux.spoil();
                }
            }
            let over = self.mux.is_closing() && self.mux.is_idle() && self.routes.is_empty();
            if over && self.out.is_empty() && !self.waits_for_tails(cx) {
                self.rest();
                return Poll::Ready(());
            }
            if !moved {
                return Poll::Pending;
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Whether the connection stays open for requests that nobody waits for any more, so that the application
    /// is not cut off while it ends them.
    fn waits_for_tails(&mut self, cx: &mut Context<'_>) -> bool {
        if self.tails.is_empty() || self.limit == 1 && !self.mux.is_returning() {
            return false;
        }
        let limit = self.mux.patience();
        let timer = self.patience.get_or_insert_with(|| {
            let mut timer = Timer::new();
            timer.set_after(limit);
            timer
        });
        timer.poll_expired(cx).is_pending()
    }

    /// A connection on which all is said goes to the pool, where that is wanted.
    fn rest(&mut self) {
        let quiet = self.tails.is_empty() && self.buf.is_none() && self.reader.is_between();
        if quiet && self.mux.is_returning() && !self.mux.socket().is_hung_up() {
            self.gone = true;
            self.mux.put_to_rest(self.seat.take());
        }
    }

    /// The connection is gone.
    fn leave(&mut self) {
        if std::mem::replace(&mut self.gone, true) {
            return;
        }
        self.mux.retire();
        self.seat = None;
        self.mux.socket().close();
        let _ = self.mux.socket().shutdown_write();
        self.out.discard();
        self.buf = None;
        self.routes.values_mut().for_each(Route::break_off);
        self.tell_errors();
    }

    /// After the end of the connection: gives users what came for them before; ready when all have it or have
    /// left.
    fn hand_out(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.refuse();
        let out = &mut self.out;
        self.routes.retain(|_, route| {
            route.push(cx, out);
            route.drain(cx, out);
            !route.is_through() && !route.is_left(cx)
        });
        self.out.discard();
        if self.routes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// No request began for these orders, nor will one.
    fn refuse(&mut self) {
        self.mux.take_orders().into_iter().for_each(|order| order.fate.refuse());
        self.waiting.drain(..).for_each(|order| order.fate.refuse());
    }

    /// Takes in what the server sent; whether there was something.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        if self.out.is_full() || self.routes.values().any(Route::is_behind) {
            return Ok(false);
        }
        let socket = self.mux.socket();
        if socket.poll_readable(cx).is_pending() {
            return Ok(false);
        }
        let buf = self.buf.get_or_insert_default();
        buf.compact();
        match socket.poll_recv(cx, buf.spare_mut()) {
            Poll::Ready(Ok(0)) => return Err(Ended),
            Poll::Ready(Err(e)) => {
                self.mux.error.set(ConnError::of_system(&e));
                return Err(Ended);
            }
            Poll::Ready(Ok(n)) => buf.advance(n),
            Poll::Pending => {
                self.buf = self.buf.take().filter(|buf| !buf.is_empty());
                return Ok(false);
            }
        }
        self.records().map(|()| true)
    }

    /// Understands what lies in the buffer.
    fn records(&mut self) -> Result<(), Ended> {
        let Some(mut buf) = self.buf.take() else { return Ok(()) };
        let outcome = loop {
            let Ok(Received { consumed, event }) = self.reader.receive(buf.filled()) else {
                traced::connection(fcgi::ERR, level::ERROR, "what the server sent is not FastCGI");
                break Err(Ended);
            };
            let Some(event) = event else {
                buf.consume(consumed);
                break Ok(());
            };
            traced::record(&event);
            match event {
                Event::Stdout { id, bytes } => {
                    if let Some(route) = self.routes.get_mut(&id) {
                        match bytes.is_empty() {
                            true => route.end(),
                            false => route.stdout(bytes, &mut self.head),
                        }
                    }
                }
                Event::Stderr { bytes, last, .. } => {
                    if self.setup.errors.is_some() {
                        self.errors.extend_from_slice(bytes);
                        if last || self.errors.len() >= ERRORS {
                            self.tell_errors();
                        }
                    }
                }
                Event::End { id, status, .. } => self.ended(id, status),
                Event::Values(values) => self.told(values),
                Event::Unknown(_) => {}
            }
            buf.consume(consumed);
        };
        self.buf = Some(buf).filter(|buf| !buf.is_empty());
        outcome
    }

    fn tell_errors(&mut self) {
        let errors = std::mem::take(&mut self.errors);
        if let Some(tell) = self.setup.errors.as_ref().filter(|_| !errors.is_empty()) {
            tell(&errors);
        }
    }

    /// A request is over.
    fn ended(&mut self, id: u16, status: Status) {
        self.tails.remove(&id);
        if let Some(route) = self.routes.get_mut(&id) {
            route.end();
            route.over = true;
        }
        if status == Status::CannotMultiplex {
            self.limit = 1;
        }
    }

    /// The application has told its limits.
    fn told(&mut self, values: Values) {
        // Unasked it tells nothing of interest.
        if !std::mem::take(&mut self.awaits_values) {
            return;
        }
        self.limit = match values.mpxs_conns {
            Some(false) => 1,
            _ => values.max_reqs.filter(|most| *most > 0).unwrap_or(self.limit),
        };
        if values.mpxs_conns.is_none() && !self.setup.app.mpxs_conns {
            self.limit = 1;
        }
    }

    /// Begins requests that came; whether there were any.
    fn take_orders(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.mux.has_orders();
        self.waiting.append(&mut self.mux.take_orders());
        let mut at = 0;
        while let Some(order) = self.waiting.get_mut(at) {
            if order.link.poll_broken(cx).is_ready() || order.read(cx).is_err() {
                self.waiting.remove(at);
                continue;
            }
            let busy = self.routes.len() + self.tails.len();
            let room = !self.awaits_values && busy < self.limit as usize;
            if order.head.is_none() || !room {
                at += 1;
                continue;
            }
            let order = self.waiting.remove(at);
            self.begin(order);
            moved = true;
        }
        moved
    }

    fn begin(&mut self, order: Order) {
        let Some(head) = order.head else { return };
        let app = &self.setup.app;
        let made = order.params.or_else(|| params(app, &head, &Facts::default(), &Vec::new()));
        let free = |id: &u16| !self.routes.contains_key(id) && !self.tails.contains(id);
        let (Some(made), Some(id)) = (made, (1..=u16::MAX).find(free)) else {
            // Its user sees that nothing comes of it.
            return;
        };
        traced::connection(fcgi::STREAM_NEW, level::USER, "sending request");
        let out = &mut self.out.bytes;
        write::begin(out, id, app.keep_conn);
        write::params(out, id, &made);
        if request_body(&head) == Body::None {
            write::stdin(out, id, &[]);
        }
        order.fate.opened(Some(id.into()));
        if !app.keep_conn {
            self.mux.spoil();
        }
        let most = Most { head: self.setup.most, held: self.setup.held };
        let route = Route::new(id, (order.link, order.fate), &head, order.read, most);
        self.routes.insert(id, route);
    }

    /// Moves what the requests have; whether there was something.
    fn move_routes(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut moved, mut aborted) = (false, false);
        let (out, tails) = (&mut self.out, &mut self.tails);
        self.routes.retain(|id, route| {
            moved |= route.turn(cx, out);
            let left = route.is_left(cx);
            if !left && !route.is_through() {
                return true;
            }
            if !route.over {
                tails.insert(*id);
                if !route.is_complete() {
                    traced::connection(fcgi::TX_ABORT, level::PROTO, "sending ABORT_REQUEST");
                    write::abort(&mut out.bytes, *id);
                    aborted = true;
                }
            }
            moved = true;
            false
        });
        if aborted && (self.limit == 1 || self.tails.len() >= self.limit as usize) {
            // The application may go on with it for long.
            self.mux.spoil();
        }
        moved
    }

    /// Lets others see what happened.
    fn note(&mut self) {
        let limit = if self.awaits_values { 1 } else { self.limit };
        self.mux.set_limit(limit.saturating_sub(u32::try_from(self.tails.len()).unwrap_or(u32::MAX)));
        let streams = u32::try_from(self.routes.len()).unwrap_or(u32::MAX);
        self.mux.multiplex.set(Multiplex { streams, limit });
    }
}
