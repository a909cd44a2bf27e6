//! Whether the peer of an idle connection is there (manual, `idle-ping`).
//!
//! When a connection had no stream, and nothing came, for as long as the configuration says, the peer is sent
//! a ping. If it leaves that unanswered for as long again, it is gone.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use rt::Timer;
use wire::h2::Connection;

/// Asks the peer of one connection.
pub(super) struct Pulse {
    delay: Option<Duration>,
    /// When the peer is asked next, or given up.
    timer: Option<Timer>,
}

/// The peer has not answered.
pub(super) struct Lost;

impl Pulse {
    /// Without a delay the peer is never asked.
    pub(super) fn new(delay: Option<Duration>) -> Pulse {
        Pulse { delay, timer: None }
    }

    /// Something came from the peer.
    pub(super) fn heard(&mut self) {
        self.timer = None;
    }

    /// Ready when the peer was asked, or is lost. To be polled when the connection has nothing to do.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        out: &mut Vec<u8>,
    ) -> Poll<Result<(), Lost>> {
        let Some(delay) = self.delay.filter(|_| connection.is_empty()) else {
            self.timer = None;
            return Poll::Pending;
        };
        ready!(self.timer.get_or_insert_with(|| Timer::at(rt::now() + delay)).poll_expired(cx));
        self.timer = None;
        Poll::Ready(if connection.ask(out) { Ok(()) } else { Err(Lost) })
    }
}
