//! The timers of section 8.4, computed from the points in time that the engine noted.
//!
//! A time that was not reached is -1. The first request of a connection counts from accept; later ones count
//! from the end of the request before, and have no handshake. While the transaction lasts, totals run up
//! to now.

use std::time::Duration;

use base::time::{Mono, Wall};

use crate::env::Env;

/// The timers of one transaction, in milliseconds.
pub(crate) struct Timers {
    times: model::txn::Times,
    /// Where this transaction starts.
    origin: Mono,
    accept_date: Wall,
    /// `None` where the client's time for it was over first.
    handshake: Option<Duration>,
    /// The end, or now.
    end: Mono,
    /// Without a first byte it is a session that came to no request.
    idles_not: bool,
    /// It is a session of TCP, whose stream begins with its connection.
    tcp: bool,
}

fn between(from: Option<Mono>, to: Option<Mono>) -> i64 {
    match (from, to) {
        (Some(from), Some(to)) => i64::try_from(to.millis_since(from)).unwrap_or(i64::MAX),
        _ => -1,
    }
}

impl Timers {
    pub(crate) fn of(env: &Env<'_>) -> Timers {
        let (conn, times) = (env.conn, env.txn.times);
        let end = times.ended.unwrap_or_else(|| env.live.now());
        let idles_not = env.txn.unread || conn.http_major.get() > 0;
        let tcp = !env.txn.has_req;
        match times.idle_from {
            Some(from) if !env.txn.first_request && from > conn.accepted => Timers {
                times,
                origin: from,
                accept_date: conn.accept_date + from.since(conn.accepted),
                handshake: Some(Duration::ZERO),
                end,
                idles_not,
                tcp,
            },
            _ => Timers {
                times,
                origin: conn.accepted,
                accept_date: conn.accept_date,
                handshake: conn.handshake_done.get().map(|done| done.since(conn.accepted)),
                end,
                idles_not,
                tcp,
            },
        }
    }

    /// When the connection was accepted, or ready for this request.
    pub(crate) fn accept_date(&self) -> Wall {
        self.accept_date
    }

    fn idle_from(&self) -> Mono {
        self.origin + self.handshake.unwrap_or_default()
    }

    /// `Th`.
    pub(crate) fn handshake(&self) -> i64 {
        self.handshake.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
    }

    /// `Ti`.
    pub(crate) fn idle(&self) -> i64 {
        // What never came was not waited for: its time is the active one.
        let begun = self.times.first_byte.or(self.idles_not.then(|| self.idle_from()));
        between(Some(self.idle_from()), begun)
    }

    /// `TR`.
    pub(crate) fn request(&self) -> i64 {
        between(self.times.first_byte, self.times.request)
    }

    /// `Tq`.
    pub(crate) fn client(&self) -> i64 {
        between(Some(self.origin), self.times.request)
    }

    /// `Tw`.
    pub(crate) fn queue(&self) -> i64 {
        let begun = if self.tcp { self.origin } else { self.idle_from() };
        between(Some(self.times.request.unwrap_or(begun)), self.times.queued)
    }

    /// `Tc`.
    pub(crate) fn connect(&self) -> i64 {
        between(self.times.queued, self.times.connected)
    }

    /// `Tr`.
    pub(crate) fn response(&self) -> i64 {
        between(self.times.connected, self.times.response)
    }

    /// `Td`.
    pub(crate) fn data(&self) -> i64 {
        let from = if self.times.request.is_some() { self.times.response } else { self.times.connected };
        between(from, Some(self.end))
    }

    /// `Tt`.
    pub(crate) fn total(&self) -> i64 {
        between(Some(self.origin), Some(self.end))
    }

    /// `Ta`.
    pub(crate) fn active(&self) -> i64 {
        between(Some(self.times.first_byte.unwrap_or_else(|| self.idle_from())), Some(self.end))
    }

    /// `Tu`.
    pub(crate) fn user(&self) -> i64 {
        self.total() - self.idle().max(0)
    }
}
