//! The connections to one server: how many are in use, how many rest, and how many are worth keeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::Server;

/// Counts of one server's connections, over all workers. One that carries many streams is in use while any of
/// them is.
#[derive(Debug, Default)]
pub struct ServerConns {
    used: AtomicU32,
    /// Most in use since the last [`ServerConns::fade`].
    used_max: AtomicU32,
    need: AtomicU32,
    idle: AtomicU32,
    safe: AtomicU32,
    /// Connections that hold a [`Seat`].
    seats: AtomicU32,
    /// At rest, each with the one client that may use it.
    private: AtomicU32,
}

/// One of the connections that a server with `strict-maxconn` may have, used or at rest; free again when it
/// is dropped.
pub struct Seat(Arc<Server>);

impl Seat {
    /// A seat, if the server has fewer connections than its `maxconn` of the moment, or none.
    pub fn take(server: &Arc<Server>) -> Option<Seat> {
        let most = server.maxconn.load(Relaxed);
        let more = |seats: u32| (most == 0 || seats < most).then_some(seats.saturating_add(1));
        server.conns.seats.fetch_update(Relaxed, Relaxed, more).ok().map(|_| Seat(server.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.conns.seats.fetch_sub(1, Relaxed);
    }
}

/// Counts a connection of HTTP/1 at rest that one client alone may use, until it is dropped.
pub struct Private(Arc<Server>);

impl Private {
    /// Counts one more.
    pub fn rest(server: &Arc<Server>) -> Private {
        server.conns.rest_private();
        Private(server.clone())
    }

    /// Whether it is one to this server.
    pub fn is_of(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.0, server)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.0.conns.leave_private();
    }
}

/// Whether a connection that has served so many requests was used again before: its server is expected to
/// keep it, so `aggressive` takes it for first requests.
#[inline]
pub fn is_safe(requests: u32) -> bool {
    requests > 1
}

impl ServerConns {
    /// In use by requests (`used_conn_cur`).
    pub fn used(&self) -> u32 {
        self.used.load(Relaxed)
    }

    /// Most in use of late.
    pub fn used_max(&self) -> u32 {
        self.used_max.load(Relaxed)
    }

    /// The estimate of how many are needed at once (`need_conn_est`).
    pub fn need(&self) -> u32 {
        self.need.load(Relaxed)
    }

    /// At rest in pools (`srv_icur`).
    #[inline]
    pub fn idle(&self) -> u32 {
        self.idle.load(Relaxed)
    }

    /// Those at rest that were used once only (`idle_conn_cur`), and those that were used again before
    /// (`safe_conn_cur`).
    pub fn idle_and_safe(&self) -> (u32, u32) {
        let (idle, safe) = (self.idle(), self.safe.load(Relaxed));
        (idle.saturating_sub(safe), safe.min(idle))
    }

    /// At rest with the one client that may use them (`priv_idle_cur`).
    pub fn private(&self) -> u32 {
        self.private.load(Relaxed)
    }

    /// One begins to be used.
    #[inline]
    pub fn begin(&self) {
        let used = self.used.fetch_add(1, Relaxed) + 1;
        if used > self.used_max.load(Relaxed) {
            self.used_max.fetch_max(used, Relaxed);
            self.need.fetch_max(used, Relaxed);
        }
    }

    /// One is no longer used.
    #[inline]
    pub fn end(&self) {
        self.used.fetch_sub(1, Relaxed);
    }

    /// One that is not used comes to rest; `safe`: it was used again before.
    #[inline]
    pub fn rest(&self, safe: bool) {
        self.idle.fetch_add(1, Relaxed);
        self.safe.fetch_add(safe.into(), Relaxed);
    }

    /// One no longer rests: it is going to be used or closed.
    #[inline]
    pub fn leave(&self, safe: bool) {
        self.idle.fetch_sub(1, Relaxed);
        self.safe.fetch_sub(safe.into(), Relaxed);
    }

    /// One that one client alone may use comes to rest.
    pub fn rest_private(&self) {
        self.private.fetch_add(1, Relaxed);
    }

    /// Such a one no longer rests.
    pub fn leave_private(&self) {
        self.private.fetch_sub(1, Relaxed);
    }

    /// How many of those that rest exceed the estimate.
    pub fn excess(&self) -> u32 {
        (self.idle() + self.used()).saturating_sub(self.need())
    }

    /// Whether one that is no longer used need not rest: there are as many others as are needed, and `low`
    /// beyond (`pool-low-conn`).
    pub fn are_enough(&self, low: u32) -> bool {
        self.idle() + self.used() >= self.need().saturating_add(low)
    }

    /// Lets the estimate fade towards what was needed since the last time; called once in each
    /// `pool-purge-delay`.
    pub fn fade(&self) {
        let used_max = self.used_max.swap(self.used(), Relaxed);
        self.need.store((self.need() + used_max) / 2, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_what_was_used_and_fades() {
        let conns = ServerConns::default();
        (0..16).for_each(|_| conns.begin());
        (0..16).for_each(|_| (conns.end(), conns.rest(false)).1);
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push((conns.need(), conns.excess()));
            conns.fade();
        }
        assert_eq!(seen, [(16, 0), (16, 0), (8, 8), (4, 12), (2, 14), (1, 15)]);
        conns.leave(false);
        conns.begin();
        assert_eq!((conns.used(), conns.used_max(), conns.need(), conns.idle()), (1, 1, 1, 15));
    }
}
