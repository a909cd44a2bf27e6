//! Services: what answers a request inside the process (statistics, Prometheus, Lua).
//!
//! A service answers a request at once ([`Service::answer`]), or it [streams](Service::streams): then it
//! takes the place of a server at the other end of a socket in memory, and all that is done with the answers
//! of servers is done with its own.

use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use model::Txn;
use model::vars::{Owned, VarRef};

use super::Worker;
use crate::sessions::Session;

/// What a service is given: the whole request, body included as far as it fits a buffer.
pub struct Request<'r> {
    /// The transaction with its request head.
    pub txn: &'r Txn,
    /// The client connection.
    pub conn: &'r model::Conn,
    /// The body, as much of it as there is.
    pub body: &'r [u8],
    /// Whether that is all of it.
    pub whole: bool,
    /// The proxy at which the service stands.
    pub proxy: u32,
    /// The worker at hand.
    pub worker: &'r Worker,
}

/// What a service answers.
#[derive(Debug, Default)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// The answer is a request for credentials of this realm; nothing else of it counts.
    pub challenge: Option<String>,
    /// Fields in order. Without a `content-length` the body goes in chunks.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// Body.
    pub body: Vec<u8>,
    /// The rest of the body, made while it is sent.
    pub rest: Option<Box<dyn Pieces>>,
    /// The request is refused: the proxy's error page of this status is all of the answer.
    pub refused: bool,
}

/// A body that is made piece by piece, so that a long one neither holds up the worker nor needs memory for
/// all of it.
pub trait Pieces: Debug {
    /// Appends the next piece, about as much as a buffer holds. `true`: there are more.
    fn poll_next(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<bool>;
}

/// What log lines call a service that says no name of its own.
pub const STATISTICS: &str = "<STATS>";

/// A service.
pub trait Service: Send + Sync {
    /// What log lines name in the place of a server.
    fn name(&self) -> &'static str {
        STATISTICS
    }

    /// Whether the body of a request, which is shown without it, must be there before it answers.
    fn wants_body(&self, request: &Request<'_>) -> bool {
        let _ = request;
        false
    }

    /// Answers.
    fn answer(&self, request: &Request<'_>) -> Answer;

    /// Whether it serves streams instead ([`Service::serve`]), and of which kind.
    fn streams(&self) -> Option<StreamKind> {
        None
    }

    /// Begins to serve a stream, in a task of its own.
    fn serve(&self, guest: Guest) {
        drop(guest);
    }
}

/// What a service that streams speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// HTTP/1, one request.
    Http,
    /// Bytes.
    Tcp,
}

/// A stream that a service serves.
pub struct Guest {
    /// The worker.
    pub worker: Rc<Worker>,
    /// The client connection.
    pub session: Rc<Session>,
    /// A copy of the transaction as it was when its service was chosen.
    pub txn: Box<Txn>,
    /// What becomes of its variables, to be kept with the transaction.
    pub changes: Changes,
    /// Where the client's bytes come from and the service's go to.
    pub socket: rt::Socket,
}

/// Variables that a service set, in order; `None`: it forgot one.
pub type Changes = Rc<RefCell<Vec<(VarRef, Option<Owned>)>>>;

/// A service that serves a stream.
pub struct Served {
    /// The service.
    pub service: Arc<dyn Service>,
    /// Variables that it set and that the transaction does not know yet.
    pub changes: Changes,
}

/// What comes of a talk: the socket, for whoever goes on with it.
pub type Talking = std::pin::Pin<Box<dyn Future<Output = rt::Socket>>>;

/// A command of the runtime API that an extension adds: it talks with its client as long as it likes.
pub trait Talk: Send + Sync {
    /// The words that name it.
    fn words(&self) -> &[String];

    /// Its line of help.
    fn usage(&self) -> &str;

    /// Begins to talk. `words` are those of the whole line, `input` has come behind it.
    fn talk(&self, worker: Rc<Worker>, words: Vec<String>, socket: rt::Socket, input: Vec<u8>) -> Talking;
}

/// Services by name, as assembled by the binary.
pub type Services = Vec<(Arc<str>, Arc<dyn Service>)>;
