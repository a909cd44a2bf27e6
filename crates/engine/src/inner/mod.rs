//! Calls that the process makes on its own account, with no client connection behind them.
//!
//! [`address`] finds where a name leads, [`line`] is a stream of bytes to there, plain or over TLS, and
//! [`http`] an exchange of HTTP on it, whichever version the server agrees on. A call runs on the worker that
//! makes it and belongs to the task that makes it: dropped at any point it closes its connection, and what
//! is to be counted or logged of it is up to its user. Redirects are not followed.

pub mod address;
pub mod fetch;
pub mod http;
pub mod line;
pub mod place;

use std::time::Duration;

/// Why nothing, or nothing more, comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The system refused the connection, or nobody listens there.
    Refused,
    /// There was no connection in time, or no TLS on it.
    ConnectTimeout,
    /// TLS failed, by the number of the connection's error.
    Insecure(u8),
    /// The server closed, or refused the request, before anything of an answer came.
    Silent,
    /// The answer did not begin in time.
    Late,
    /// What came is no HTTP.
    Malformed,
    /// The answer, of which the head is known, breaks off.
    Cut,
    /// The answer, of which the head is known, does not go on.
    Stalled,
}

impl Fault {
    /// How long to wait before the call is tried again: where there was no connection a second, or less if
    /// connecting may not take so long; no time where one was closed without a word. `None` where the server
    /// may have acted on the request.
    pub fn pause(self, connect: Duration) -> Option<Duration> {
        match self {
            Fault::Refused | Fault::ConnectTimeout | Fault::Insecure(_) => {
                Some(connect.min(Duration::from_secs(1)))
            }
            Fault::Silent => Some(Duration::ZERO),
            Fault::Late | Fault::Malformed | Fault::Cut | Fault::Stalled => None,
        }
    }
}
