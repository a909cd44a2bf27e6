//! Whether one more connection may come in: the limits of the process, of its frontend and of its listener.
//!
//! A limit is exact with any number of workers, because a connection is counted in the same step that
//! compares the count with the limit, before it is accepted. Rates can't be compared and counted in one step,
//! so where one is limited that happens under a lock. A session is counted in its rate only when the rules of
//! its connection have let it pass; until then it is pending, so that a burst of connections, which are all
//! accepted before the first of them is looked at, stays within the limit.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{MutexGuard, PoisonError};

use model::world::Process;
use program::{Bind, Proxy};

/// Room for one more connection, which is counted. Dropped, it is given back.
pub struct Admission<'a> {
    /// The counts and their maxima.
    counts: [(&'a AtomicU32, Option<&'a AtomicU32>); 3],
    proxy: &'a Proxy,
    bind: &'a Bind,
    process: &'a Process,
    /// Held where a rate is limited.
    turn: Option<MutexGuard<'a, ()>>,
    confirmed: bool,
}

impl<'a> Admission<'a> {
    /// Counts one more connection; `None` if there is no room for it.
    pub fn enter(proxy: &'a Proxy, bind: &'a Bind, process: &'a Process) -> Option<Admission<'a>> {
        let (front, listener) = (&proxy.state.front, &bind.state);
        let limited = proxy.rate_limit > 0
            || process.conn_rate_limit.load(Relaxed) > 0
            || process.sess_rate_limit.load(Relaxed) > 0;
        let turn = limited.then(|| process.admission.lock().unwrap_or_else(PoisonError::into_inner));
        if (limited || bind.tls.is_some()) && !rates_allow(proxy, bind, process) {
            return None;
        }
        // A frontend always has a limit: zero, which only a command sets, lets nobody in.
        let some = |limit: u32| if limit == 0 { u32::MAX } else { limit };
        let limits = [some(bind.maxconn), front.maxconn.load(Relaxed), some(process.maxconn.load(Relaxed))];
        // The narrowest first: who is turned away there was never counted elsewhere, and no maximum tells of
        // him.
        let counts = [
            (&listener.current, Some(&listener.current_max)),
            (&front.current, Some(&front.current_max)),
            (&process.connections, None),
        ];
        let full = |(limit, (count, _)): (&u32, &(&AtomicU32, _))| count.load(Relaxed) >= *limit;
        if limits.iter().zip(&counts).any(full) {
            if is_full(proxy) {
                listener.waits.store(true, Relaxed);
            }
            return None;
        }
        for (at, limit) in limits.into_iter().enumerate() {
            let more = |n: u32| (n < limit).then_some(n + 1);
            if counts[at].0.fetch_update(Relaxed, Relaxed, more).is_err() {
                counts[..at].iter().for_each(|(count, _)| give_back(count));
                return None;
            }
        }
        Some(Admission { counts, proxy, bind, process, turn, confirmed: false })
    }

    /// The connection is there. Whether its session is pending, see [`settle`].
    pub fn confirm(mut self) -> bool {
        self.confirmed = true;
        for (count, max) in self.counts {
            let now = count.load(Relaxed);
            if let Some(max) = max.filter(|max| now > max.load(Relaxed)) {
                max.fetch_max(now, Relaxed);
            }
        }
        self.note_room();
        let now = rt::now().as_millis();
        self.process.conn_rate.add(now);
        self.proxy.state.front.conn_rate.add(now);
        let pending = self.turn.is_some();
        if pending {
            self.proxy.state.front.pending.fetch_add(1, Relaxed);
            self.process.pending.fetch_add(1, Relaxed);
        }
        pending
    }

    /// Which listener waits: that of the connection that took the last room, and no other, as there was some.
    fn note_room(&self) {
        let mine = &self.bind.state;
        if is_full(self.proxy) {
            self.proxy.binds.iter().for_each(|b| b.state.waits.store(false, Relaxed));
            mine.waits.store(true, Relaxed);
        } else if mine.waits.load(Relaxed) {
            mine.waits.store(false, Relaxed);
        }
    }
}

/// Whether a frontend has no room for one more.
fn is_full(proxy: &Proxy) -> bool {
    let front = &proxy.state.front;
    front.current.load(Relaxed) >= front.maxconn.load(Relaxed)
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.confirmed {
            self.counts.iter().for_each(|(count, _)| give_back(count));
        }
    }
}

fn give_back(count: &AtomicU32) {
    count.fetch_sub(1, Relaxed);
}

fn rates_allow(proxy: &Proxy, bind: &Bind, process: &Process) -> bool {
    let now = rt::now().as_millis();
    let under = |rate: &base::rate::PeakRate, pending: u32, limit: u32| {
        limit == 0 || rate.read(now) + u64::from(pending) < u64::from(limit)
    };
    let front = &proxy.state.front;
    under(&front.session_rate, front.pending.load(Relaxed), proxy.rate_limit)
        && under(&process.conn_rate, 0, process.conn_rate_limit.load(Relaxed))
        && under(&process.sess_rate, process.pending.load(Relaxed), process.sess_rate_limit.load(Relaxed))
        && (bind.tls.is_none() || farm::secure::admits(process, now))
}

/// A pending session is counted, or will not be.
pub fn settle(proxy: &Proxy, process: &Process) {
    give_back(&proxy.state.front.pending);
    give_back(&process.pending);
}
