//! HTTP: one exchange of a request and its response, whatever version carries it.
//!
//! [`exchange`] goes from the head of the request to the end of the response; [`rules`] runs rules and
//! fulfils what they wait for, `answer` makes local answers, `failed` says what becomes of an exchange that
//! failed.

mod answer;
mod awaiting;
pub mod cacheable;
mod cached;
pub(crate) mod captures;
mod cgi;
mod copy;
pub mod early;
pub mod exchange;
mod failed;
mod forward;
mod forwarded;
mod headers;
mod replaced;
mod request;
mod response;
mod retry;
mod rules;
mod served;
pub(crate) mod wait;

pub use exchange::run_upgraded;
pub use forward::splices;
pub use request::{forget, peek};
pub use rules::denied;

use link::pump::Half;

/// What the client still owes of a request that is answered. It comes from the heap because it is rare and
/// the task of an idle connection small.
pub type Owed = Option<Box<Rest>>;

/// The rest of a request.
pub struct Rest {
    /// What has yet to come.
    pub half: Half,
    /// The client has the whole of an answer that it can tell the end of: also where the connection closes,
    /// that is behind the rest.
    pub awaited: bool,
    /// The backend whose service has answered: who leaves before the end of his request then has given up
    /// what was done for him (`cli_abrt`).
    pub served: Option<std::sync::Arc<model::Proxy>>,
}

/// What becomes of the client connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another request may follow.
    KeepAlive,
    /// It is closed.
    Close,
    /// What came is the preface of HTTP/2: it goes on as such.
    Http2,
}
