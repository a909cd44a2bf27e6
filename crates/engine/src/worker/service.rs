//! Services: what answers a request inside the process (statistics, Prometheus, later Lua).

use std::fmt::Debug;
use std::sync::Arc;
use std::task::{Context, Poll};

use model::Txn;

use super::Worker;

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
}

/// Services by name, as assembled by the binary.
pub type Services = Vec<(Arc<str>, Arc<dyn Service>)>;
