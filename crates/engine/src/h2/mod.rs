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
//! | `delivery`, `pickup` | the two directions between frames and the user of a stream |
//! | `outbox`, `limits`, `tally` | what waits to be sent; what `tune.h2` says; what is counted |

mod call;
mod delivery;
mod front;
mod limits;
mod line;
mod mux;
mod outbox;
mod pickup;
mod route;
mod tally;

use std::cell::Cell;
use std::rc::{Rc, Weak};

use wire::head::Head;

pub use call::{Call, websocket_accept, websocket_key};
pub use front::{Preface, preface, serve};
pub use limits::back as server_limits;
pub use mux::{Mux, Owner, start};

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
    /// The code with which the client reset the stream.
    pub reset: Rc<Cell<Option<u32>>>,
}

/// Notes what is known of the two streams that a transaction uses.
pub fn note(stream: &mut Stream<'_>) {
    if let Some(part) = &stream.client.part {
        stream.txn.client_stream = model::txn::StreamOf { id: Some(part.id), reset: part.reset.get() };
    }
    if let Some(call) = stream.upstream.as_ref().and_then(|up| up.call.as_ref()) {
        call.note(&mut stream.txn.server_conn);
    }
}
