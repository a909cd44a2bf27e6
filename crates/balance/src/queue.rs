//! Requests that wait for a server.
//!
//! A request waits in the queue of a server when something binds it there (a cookie, a hash), else in the
//! queue of its backend, where whichever server has room first takes it. Both are ordered by priority class,
//! then by the time of arrival shifted by the priority offset, then by arrival (configuration manual, actions
//! `set-priority-class` and `set-priority-offset`). A server with room looks at the heads of both and takes
//! the one that comes first; its own on a tie.
//!
//! Waiting is off the straight path, so a queue is an ordered map behind a lock. Its length is an atomic
//! beside it: a request that finds room and nobody waiting takes no lock, and neither does the end of a
//! request.
//!
//! # No lost turn
//!
//! [`Gate`] counts what a server serves. A request that must wait first joins the queue, *then* calls
//! [`Gate::next`]; one that ends first leaves, *then* calls [`Gate::next`]. Whichever comes second sees the
//! other, so a free place and a waiting request never miss each other.

use crate::sync::{AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering, after_write};
use std::collections::BTreeMap;

/// The bounds of a priority class.
pub const CLASS_MAX: i32 = 2047;

/// The bounds of a priority offset, in milliseconds.
pub const OFFSET_MAX: i32 = 524_287;

/// How urgent a request is; lower comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Priority {
    /// The class, -2047 to 2047; what is beyond counts as the bound.
    pub class: i32,
    /// Milliseconds added to the time of arrival, -524287 to 524287; what is beyond counts as the bound.
    pub offset: i32,
}

/// Where a request stands in its queue: the order of service, and the handle to leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    class: i32,
    time_ms: i64,
    arrival: u64,
}

impl Place {
    // What two queues can be compared by: arrivals are counted per queue.
    fn rank(&self) -> (i32, i64) {
        (self.class, self.time_ms)
    }
}

/// A queue is full; here is the ticket back.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// Tickets of waiting requests in order of service. What a ticket is (a waker, a slot of a task) is the
/// caller's.
#[derive(Debug)]
pub struct Queue<T> {
    length: AtomicUsize,
    waiting: Mutex<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    tickets: BTreeMap<Place, T>,
    arrivals: u64,
    /// Tickets that were taken out for a server, ever.
    taken: u64,
}

impl<T> Waiting<T> {
    fn pop(&mut self) -> Option<(Place, T)> {
        let first = self.tickets.pop_first();
        self.taken += u64::from(first.is_some());
        first
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue::new()
    }
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new() -> Queue<T> {
        let waiting = Waiting { tickets: BTreeMap::new(), arrivals: 0, taken: 0 };
        Queue { length: AtomicUsize::new(0), waiting: Mutex::new(waiting) }
    }

    /// The number of waiting requests; takes no lock.
    pub fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    /// Whether nobody waits; takes no lock.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Joins the queue at `now_ms`. `limit` is the most that may wait (`maxqueue`); 0 for no limit of its
    /// own, in which case the caller's limit on requests bounds the queue.
    pub fn push(&self, priority: Priority, now_ms: u64, limit: usize, ticket: T) -> Result<Place, Full<T>> {
        let mut waiting = self.lock();
        if limit > 0 && waiting.tickets.len() >= limit {
            return Err(Full(ticket));
        }
        waiting.arrivals += 1;
        let place = Place {
            class: priority.class.clamp(-CLASS_MAX, CLASS_MAX),
            time_ms: (now_ms as i64).saturating_add(priority.offset.clamp(-OFFSET_MAX, OFFSET_MAX).into()),
            arrival: waiting.arrivals,
        };
        waiting.tickets.insert(place, ticket);
        self.publish(&waiting);
        Ok(place)
    }

    /// Leaves the queue. None when the request isn't there any more: it was given a server.
    pub fn cancel(&self, place: Place) -> Option<T> {
        let mut waiting = self.lock();
        let ticket = waiting.tickets.remove(&place);
        self.publish(&waiting);
        ticket
    }

    /// How many requests were ever taken out for a server: the difference between two looks tells how many
    /// were served in between.
    pub fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Takes the first out.
    pub fn pop(&self) -> Option<T> {
        let mut waiting = self.lock();
        let first = waiting.pop();
        self.publish(&waiting);
        first.map(|(_, ticket)| ticket)
    }

    /// Takes everybody out, first come first (a server went down: its queue is redistributed).
    pub fn drain(&self) -> Vec<T> {
        let mut waiting = self.lock();
        let tickets = std::mem::take(&mut waiting.tickets);
        self.publish(&waiting);
        tickets.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn publish(&self, waiting: &Waiting<T>) {
        self.length.store(waiting.tickets.len(), Ordering::SeqCst);
        after_write();
    }
}

/// The next ticket for a server: of its own queue or of the backend's, whichever ranks first; its own on a
/// tie.
pub fn first_of<T>(own: &Queue<T>, shared: Option<&Queue<T>>) -> Option<T> {
    let Some(shared) = shared.filter(|queue| !queue.is_empty()) else {
        return if own.is_empty() { None } else { own.pop() };
    };
    if own.is_empty() {
        return shared.pop();
    }
    // Always in this order: nobody holds a backend's queue while waiting for a server's.
    let mut mine = own.lock();
    let mut theirs = shared.lock();
    let rank = |waiting: &Waiting<T>| waiting.tickets.first_key_value().map(|(place, _)| place.rank());
    let shared_first = match (rank(&mine), rank(&theirs)) {
        (Some(mine), Some(theirs)) => theirs < mine,
        (mine, _) => mine.is_none(),
    };
    let (queue, waiting) = if shared_first { (shared, &mut theirs) } else { (own, &mut mine) };
    let first = waiting.pop();
    queue.publish(waiting);
    first.map(|(_, ticket)| ticket)
}

/// The places of a server: how many requests it serves now, of those it may.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Gate {
    served: AtomicU32,
}

impl Gate {
    /// Nobody served.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// The requests served now.
    pub fn served(&self) -> u32 {
        self.served.load(Ordering::SeqCst)
    }

    /// Takes a place if fewer than `limit` are taken (0: no limit) and nobody waits before us in `own`.
    pub fn enter<T>(&self, limit: u32, own: &Queue<T>) -> bool {
        own.is_empty() && self.take_place(limit)
    }

    /// Takes a place whatever the limit: persistence may go over it, and so do health of a soft stop and
    /// retries on a connection that is reused.
    pub fn force(&self) {
        self.served.fetch_add(1, Ordering::SeqCst);
    }

    /// Gives a place back. Call [`Gate::next`] afterwards.
    pub fn leave(&self) {
        let before = self.served.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a place was given back twice");
        after_write();
    }

    /// The next waiting request, with a place taken for it; none when there is no place or nobody waits.
    /// `shared` is the queue of the backend, if this server may serve from it (it takes part in balancing).
    /// Call until it gives none: after [`Gate::leave`], after joining a queue, and when the limit grew.
    pub fn next<T>(&self, limit: u32, own: &Queue<T>, shared: Option<&Queue<T>>) -> Option<T> {
        let waits = || !own.is_empty() || shared.is_some_and(|queue| !queue.is_empty());
        while waits() {
            if !self.take_place(limit) {
                return None;
            }
            if let Some(ticket) = first_of(own, shared) {
                return Some(ticket);
            }
            self.leave(); // somebody else took it; whoever joined meanwhile is seen by the loop
        }
        None
    }

    fn take_place(&self, limit: u32) -> bool {
        let more = |served: u32| (limit == 0 || served < limit).then_some(served + 1);
        self.served.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
