//! Services: what answers a request inside the process (statistics, later Prometheus and Lua).

use std::sync::Arc;

use model::Txn;

use crate::Worker;

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
}

/// A service.
pub trait Service: Send + Sync {
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
