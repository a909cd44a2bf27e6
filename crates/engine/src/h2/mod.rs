//! HTTP/2: one task owns a connection, each of its streams is served as a connection of its own.
//!
//! Towards clients the connection's task reads frames, and gives each request to a task that serves it exactly as one of
//! HTTP/1 is served ([`crate::h1`]): same rules, same choice, same logs. Towards servers whoever wants to send a request
//! gets a stream of a connection ([`Call`]) where it would have got a connection. In both cases what goes between the two
//! tasks goes through a stream inside the worker ([`rt::Socket::local`]): the head of a request is handed over as it
//! is, bodies and responses in the form of HTTP/1. So whatever can happen to a connection (it stalls, it breaks, it is
//! reset) happens to a stream in the same way, and no code above knows of two kinds.
//!
//! The task of a connection turns whenever its socket or one of the streams has something: first it takes in what
//! the peer sent, then it moves what the streams have, then all that came of it leaves in one write. It stops
//! reading, from the peer and from the streams, while more than [`outbox::HIGH`] bytes wait to be sent. Streams are looked at in a
//! circle that each turn enters where the last one ran out of room, so that none waits for ever.
//!
//! | file | holds |
//! |---|---|
//! | `front`, `line` | a connection of a client, one of its streams |
//! | `mux`, `call`, `route` | a connection to a server, one of its streams for its user and for the connection |
//! | `roster` | what belongs to the streams, for as long as somebody has something to take |
//! | `delivery`, `pickup` | the two directions between frames and the user of a stream |
//! | `outbox`, `limits`, `tally` | what waits to be sent; what `tune.h2` says; what is counted |
//! | `trailers` | what follows a body whose length is declared |
//! | `pulse` | whether the peer of an idle connection is there |

mod call;
mod delivery;
mod front;
mod limits;
mod line;
mod mux;
mod outbox;
mod pickup;
mod pulse;
mod roster;
mod route;
mod tally;
mod trailers;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};

use wire::head::Head;

pub use call::{Call, websocket_accept, websocket_key};
pub use front::{Preface, preface, serve};
pub use limits::back as server_limits;
pub use mux::{Mux, Owner, start};
pub use trailers::Trailers;

use crate::session::Client;
use crate::stream::Stream;

/// The request of a stream.
pub struct Arrival {
    /// Its head.
    pub head: Head,
    /// It is none, and deserves this status; 0: no answer but a log line.
    pub refused: Option<u16>,
}

/// What makes a client of a stream.
pub struct Part {
    /// The request, until it is read.
    pub arrival: Option<Arrival>,
    /// The connection.
    pub lead: Weak<Client>,
    /// The number of the stream.
    pub id: u32,
    /// What becomes of the stream on the connection.
    pub receipt: Rc<Receipt>,
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
    taken: Cell<bool>,
    /// When a part of the response last went into frames.
    moved: Cell<Option<rt::Mono>>,
    /// The task of the stream has given up waiting for windows: the stream is reset.
    given_up: Cell<bool>,
    /// A rule rejected the request: the connection that it came on ends with it.
    expelled: Cell<bool>,
    /// A rule made a HEAD of the request: its response has no body, whatever the client asked with.
    headed: Cell<bool>,
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
    fn take(&self) {
        if !self.taken.replace(true)
            && let Some(waiting) = self.waiting.borrow_mut().take()
        {
            waiting.wake();
        }
    }
}

/// Notes what is known of the two streams that a transaction uses.
pub fn note(stream: &mut Stream<'_>) {
    if let Some(part) = &stream.client.part {
        stream.txn.client_stream =
            model::txn::StreamOf { id: Some(part.id), reset: part.receipt.reset.get() };
    }
    if let Some(call) = stream.upstream.as_ref().and_then(|up| up.call.as_ref()) {
        call.note(&mut stream.txn.server_conn);
    }
}
