//! What a connection of a client brings, and to whom.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use link::transport::Transport;
use model::Conn;
use model::proxy::H2Counters;
use program::global::H2Log;
use rt::Socket;
use wire::head::Head;

use crate::trailers::Trailers;

/// A request that came on a connection.
pub struct Arrival {
    /// Its head.
    pub head: Head,
    /// It is none, and deserves this status; 0: no answer but a log line.
    pub refused: Option<u16>,
    /// The number of its stream.
    pub id: u32,
    /// Where its body comes from, and its response goes to, both in the form of HTTP/1.
    pub link: Socket,
    /// What becomes of the stream on the connection.
    pub receipt: Rc<Receipt>,
}

/// Who stands behind a connection of a client: the connection belongs to it, it serves what arrives, and it
/// knows when the connection is to end.
pub trait Host {
    /// The connection.
    fn socket(&self) -> &Transport;

    /// Its facts.
    fn conn(&self) -> &Conn;

    /// Where to count.
    fn counters(&self) -> &H2Counters;

    /// A request has come: it is served from here on.
    fn arrive(&mut self, arrival: Arrival);

    /// Nothing is under way: the host may change what it serves with; what the connection may do then.
    fn renew(&mut self) -> Option<Settings>;

    /// The connection has no stream, but had one, or it has some.
    fn rests(&self, idle: bool);

    /// Somebody wants the connection to end at once.
    fn is_killed(&self) -> bool;

    /// The client is to be asked to leave when it can.
    fn is_stopped(&self) -> bool;

    /// The client is to be told to leave.
    fn is_sent_away(&self) -> bool;

    /// What the client did was odd, so many times more.
    fn glitches(&self, more: u32);

    /// What began a stream was no request.
    fn malformed(&self);
}

/// What a connection of a client may do, and for how long.
pub struct Settings {
    /// Which errors of the client are logged: each arrives as a request that is none.
    pub log_errors: H2Log,
    /// Whether a client that leaves without a word is logged (`option dontlognull`, `http-ignore-probes`).
    pub log_silent: bool,
    /// `idle-ping`.
    pub ping: Option<Duration>,
    /// How long the client may take nothing, or say nothing.
    pub client: Option<Duration>,
    /// How long the first request may take to come.
    pub request: Option<Duration>,
    /// How long the next one may.
    pub keep_alive: Option<Duration>,
}

/// What the task of a connection and that of one of its streams tell each other, beside the bytes.
#[derive(Default)]
pub struct Receipt {
    /// The task of the stream has the request.
    pub begun: Cell<bool>,
    /// The code with which the client reset the stream.
    pub reset: Cell<Option<u32>>,
    /// What came as trailers of the request were none.
    pub malformed: Cell<bool>,
    /// Bytes that count for the body of the request though none came: one for an end behind all else.
    pub extra: Cell<u64>,
    /// What follows the body of the request, where its length is declared.
    pub request_trailers: RefCell<Option<Rc<Trailers>>>,
    /// The same of the response, where trailers may follow it.
    pub response_trailers: RefCell<Option<Rc<Trailers>>>,
    /// The whole response is in frames: no window holds it back any more.
    pub(crate) taken: Cell<bool>,
    /// When a part of the response last went into frames.
    pub(crate) moved: Cell<Option<rt::Mono>>,
    /// The task of the stream has given up waiting for windows: the stream is reset.
    pub(crate) given_up: Cell<bool>,
    /// A rule rejected the request: the connection that it came on ends with it.
    pub(crate) expelled: Cell<bool>,
    /// A rule made a HEAD of the request: its response has no body, whatever the client asked with.
    pub(crate) headed: Cell<bool>,
    /// The task of the stream, while it waits for the response to be taken.
    waiting: RefCell<Option<Waker>>,
}

impl Receipt {
    /// Whether the connection has taken the whole response; `cx` is woken when it has.
    pub fn is_taken(&self, cx: &Context<'_>) -> bool {
        if !self.taken.get() {
            *self.waiting.borrow_mut() = Some(cx.waker().clone());
        }
        self.taken.get()
    }

    /// When a part of the response last went into frames.
    pub fn moved(&self) -> Option<rt::Mono> {
        self.moved.get()
    }

    /// Has the stream reset as soon as its task is gone.
    pub fn give_up(&self) {
        self.given_up.set(true);
    }

    /// Has the connection end as soon as the task of the stream is gone.
    pub fn expel(&self) {
        self.expelled.set(true);
    }

    /// Says that the response to come has no body.
    pub fn head_only(&self) {
        self.headed.set(true);
    }

    /// Notes that the whole response is in frames.
    pub(crate) fn take(&self) {
        if !self.taken.replace(true)
            && let Some(waiting) = self.waiting.borrow_mut().take()
        {
            waiting.wake();
        }
    }
}
