//! A place at a server: taking one, waiting for one, giving it back.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use balance::limit::Limits;
use balance::queue::{Place as Position, Priority, Queue};
use base::fleet::Held;
use program::Server;
use rt::Timer;

use crate::FarmWorker;
use crate::backend::Given;
use crate::{Backend, Slot, Stay, Ticket, Waiting, ramp};

/// A place at a server. Dropping it lets the next request in.
pub struct Place {
    worker: Rc<FarmWorker>,
    /// Backend, as an index of the program.
    pub backend: u32,
    /// Server, as an index of the backend.
    pub server: u32,
    _stay: Stay,
    /// An attempt at the server has begun: it counts among what the server serves.
    served: bool,
    /// The server has no more to do with it: it counts no longer, though the place is kept until the response
    /// is with the client.
    done: bool,
    /// The request uses a connection that no other shares.
    connected: bool,
}

impl Place {
    /// Counts a place that was just taken at the gate.
    fn taken(worker: &Rc<FarmWorker>, backend: u32, server: u32) -> Place {
        let shared = &worker.farm;
        shared.backend(backend).balancer.acquire(server as usize);
        let _stay = shared.stay(backend, Some(server));
        Place { _stay, worker: worker.clone(), backend, server, served: false, done: false, connected: false }
    }

    /// Counts an attempt at the server: one that the system refused at once, as it does where nobody listens
    /// on a Unix socket, is none.
    pub fn serve(&mut self) {
        let first = !std::mem::replace(&mut self.served, true) || std::mem::take(&mut self.done);
        let config = self.config();
        if first {
            config.state.enter();
        }
        config.state.rate.add(rt::now().as_millis());
        config.state.touch(rt::wall());
        config.state.counters.of(self.worker.index).sessions.inc();
    }

    /// The server's side of the request is over, whatever is still to be done for the client.
    pub fn finish(&mut self) {
        if self.served && !std::mem::replace(&mut self.done, true) {
            self.config().state.leave();
        }
    }

    /// Whether an attempt at the server has begun.
    pub fn is_served(&self) -> bool {
        self.served
    }

    /// Counts a connection of the server as used until the place is given back, or [`Place::disconnect`].
    pub fn connect(&mut self) {
        if !std::mem::replace(&mut self.connected, true) {
            self.config().state.conns.begin();
        }
    }

    /// The connection is not used any more.
    pub fn disconnect(&mut self) {
        if std::mem::take(&mut self.connected) {
            self.config().state.conns.end();
        }
    }

    /// The server's configuration.
    pub fn config(&self) -> Held<'_, Server> {
        self.worker.farm.program.server(self.backend, self.server)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.disconnect();
        self.finish();
        let shared = &self.worker.farm;
        let backend = &*shared.backend(self.backend);
        backend.balancer.release(self.server as usize);
        backend.slots[self.server as usize].gate.leave();
        admit_next(&self.worker, self.backend, self.server);
    }
}

/// How many requests a server may serve now; 0: no limit.
pub fn limit(worker: &FarmWorker, backend: u32, server: u32) -> u32 {
    let proxy = &*worker.farm.program.proxy(backend);
    // What was deleted while somebody was on the way to it takes nobody.
    let Some(config) = proxy.servers.get(server as usize) else { return 1 };
    let maxconn = config.state.maxconn.load(Relaxed);
    if maxconn == 0 || (config.minconn == 0 && config.slowstart.is_none()) {
        return maxconn;
    }
    let limits = Limits { maxconn, minconn: config.minconn, maxqueue: config.maxqueue };
    limits.now(proxy.state.back.current.load(Relaxed), proxy.fullconn, ramp(&config, rt::now()))
}

/// Whether a server has no place, so that the balancing looks for another. What `minconn` gives it as the
/// load grows is for those who wait already, be it for this server or for any.
pub fn is_full(worker: &FarmWorker, backend: u32, server: usize) -> bool {
    let Ok(index) = u32::try_from(server) else { return true };
    let limit = limit(worker, backend, index);
    let backend = worker.farm.backend(backend);
    let slot = &backend.slots[server];
    limit > 0 && (slot.gate.served() >= limit || !slot.queue.is_empty() || !backend.queue.is_empty())
}

/// Whether a server with a limit has as many waiting requests as it may (`maxqueue`).
pub fn has_full_queue(worker: &FarmWorker, backend: u32, server: usize) -> bool {
    let Ok(index) = u32::try_from(server) else { return true };
    let Some(config) = worker.farm.program.find_server(backend, index) else { return true };
    let most = config.maxqueue;
    let waiting = worker.farm.backend(backend).slots[server].queue.len();
    most > 0 && limit(worker, backend, index) > 0 && waiting >= most as usize
}

/// Takes a place now, if there is one and nobody waits before us.
pub fn try_enter(worker: &Rc<FarmWorker>, backend: u32, server: u32) -> Option<Place> {
    // Nobody takes it away between here and there.
    let _held = worker.farm.program.find_server(backend, server)?;
    let slot = &worker.farm.backend(backend).slots[server as usize];
    slot.gate
        .enter(limit(worker, backend, server), &slot.queue)
        .then(|| Place::taken(worker, backend, server))
}

/// Takes a place whatever the limit.
pub fn force(worker: &Rc<FarmWorker>, backend: u32, server: u32) -> Place {
    worker.farm.backend(backend).slots[server as usize].gate.force();
    Place::taken(worker, backend, server)
}

/// Lets waiting requests in as long as a server has places.
pub fn admit_next(worker: &FarmWorker, backend: u32, server: u32) {
    let b = &*worker.farm.backend(backend);
    let slot = &b.slots[server as usize];
    if slot.queue.is_empty() && b.queue.is_empty() {
        return;
    }
    let shared = b.balancer.takes_part(server as usize).then_some(&*b.queue);
    while let Some(ticket) = slot.gate.next(limit(worker, backend, server), &slot.queue, shared) {
        let _ = ticket.given.set(Given { slot: slot.clone(), server });
        ticket.notify.notify();
    }
}

/// Why waiting ended without a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The queue is full (`maxqueue`).
    Full,
    /// `timeout queue`.
    TimedOut,
    /// The client went away, or the session was told to end.
    Aborted,
    /// The server that it waited for went down: choose again.
    Redistributed,
}

/// A waiting request; dropping it leaves the queue, and passes on a place that was given meanwhile.
struct Waiter<'w> {
    worker: &'w Rc<FarmWorker>,
    backend: u32,
    /// The queue's server; `None`: the backend's queue.
    server: Option<u32>,
    at: Position,
    ticket: Ticket,
    done: bool,
}

impl Waiter<'_> {
    fn with_queue<R>(&self, f: impl FnOnce(&Queue<Ticket>) -> R) -> R {
        f(queue_of(&self.worker.farm.backend(self.backend), self.server))
    }

    fn given(&self) -> Option<&Given> {
        self.ticket.given.get()
    }

    /// The server of a place that was given, as this request knows it; `None` if it knows no such server.
    fn server_of(&self, given: &Given) -> Option<u32> {
        let backend = self.worker.farm.backend(self.backend);
        let is_it = |slot: &Arc<Slot>| Arc::ptr_eq(slot, &given.slot);
        if backend.slots.get(given.server as usize).is_some_and(is_it) {
            return Some(given.server);
        }
        backend.slots.iter().position(is_it).and_then(|at| u32::try_from(at).ok())
    }
}

fn queue_of(backend: &Backend, server: Option<u32>) -> &Queue<Ticket> {
    match server {
        Some(s) => &backend.slots[s as usize].queue,
        None => &backend.queue,
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let (left, length) = self.with_queue(|q| (q.cancel(self.at).is_some(), q.len()));
        note_length(self.worker, self.backend, self.server, length);
        if self.done || left {
            return;
        }
        if let Some(given) = self.given() {
            given.slot.gate.leave();
            if let Some(server) = self.server_of(given) {
                admit_next(self.worker, self.backend, server);
            }
        }
    }
}

fn note_length(worker: &FarmWorker, backend: u32, server: Option<u32>, length: usize) {
    let n = u32::try_from(length).unwrap_or(u32::MAX);
    let proxy = &*worker.farm.program.proxy(backend);
    let note = |now: &AtomicU32, max: &AtomicU32| {
        now.store(n, Relaxed);
        max.fetch_max(n, Relaxed);
    };
    match server.map(|s| proxy.servers.get(s as usize)) {
        Some(Some(server)) => note(&server.state.queued, &server.state.queued_max),
        Some(None) => {}
        None => note(&proxy.state.back.queued, &proxy.state.back.queued_max),
    }
}

/// What a request brings along when it waits.
pub struct Wait {
    /// Class and offset that rules gave it.
    pub priority: Priority,
    /// Longest time to wait.
    pub timeout: Option<std::time::Duration>,
    /// The queue's server; `None`: any server.
    pub server: Option<u32>,
}

/// Waits for a place. `gone` says, polled with the task at hand, whether waiting has become pointless. The
/// number of requests that were served from the queue meanwhile, itself included, is added to `positions`: of
/// servers, of the backend.
///
/// # Errors
/// Why there is none.
pub async fn wait(
    worker: &Rc<FarmWorker>,
    backend: u32,
    wait: Wait,
    positions: &mut (u32, u32),
    mut gone: impl FnMut(&mut std::task::Context<'_>) -> bool,
) -> Result<Place, Refused> {
    let shared = &worker.farm;
    let b = &*shared.backend(backend);
    // Whoever waits for a server keeps it.
    let (_stay, most) = match wait.server.map(|s| shared.program.find_server(backend, s)) {
        Some(Some(config)) => (shared.stay(backend, wait.server), config.maxqueue),
        Some(None) => return Err(Refused::Redistributed),
        None => (shared.stay(backend, None), 0),
    };
    let ticket: Ticket = Arc::new(Waiting::default());
    let queue = queue_of(b, wait.server);
    let at = queue
        .push(wait.priority, rt::now().as_millis(), most as usize, ticket.clone())
        .map_err(|_| Refused::Full)?;
    let mut waiter = Waiter { worker, backend, server: wait.server, at, ticket, done: false };
    note_length(worker, backend, wait.server, queue.len());
    let joined = queue.taken();
    // A place may have become free between the look and the queueing.
    match wait.server {
        Some(s) => admit_next(worker, backend, s),
        None => (0..b.slots.len() as u32).for_each(|s| admit_some(worker, b, backend, s)),
    }
    if wait.server.is_none() && b.balancer.usable() == 0 {
        // The last server went between the look and the queueing, and told only who waited by then.
        return Err(Refused::Redistributed);
    }
    let mut timer = Timer::new();
    timer.set_after(wait.timeout);
    let outcome = poll_fn(|cx| {
        // Who is told to end takes no place that somebody else who ends has just left.
        if gone(cx) {
            return Poll::Ready(Err(Refused::Aborted));
        }
        if waiter.given().is_some() {
            return Poll::Ready(Ok(()));
        }
        if waiter.ticket.notify.poll_notified(cx).is_ready() {
            return Poll::Ready(if waiter.given().is_some() { Ok(()) } else { Err(Refused::Redistributed) });
        }
        timer.poll_expired(cx).map(|()| Err(Refused::TimedOut))
    });
    let outcome = outcome.await;
    let served = queue.taken().saturating_sub(joined) + u64::from(waiter.given().is_none());
    let position = if wait.server.is_some() { &mut positions.0 } else { &mut positions.1 };
    *position = position.saturating_add(u32::try_from(served).unwrap_or(u32::MAX));
    outcome?;
    let given = waiter.given().ok_or(Refused::Redistributed)?;
    // It goes back where the server is not known.
    let server = waiter.server_of(given).ok_or(Refused::Redistributed)?;
    waiter.done = true;
    Ok(Place::taken(worker, backend, server))
}

fn admit_some(worker: &FarmWorker, backend: &Backend, index: u32, server: u32) {
    let slot: &Slot = &backend.slots[server as usize];
    if backend.balancer.takes_part(server as usize) && !slot_is_full(worker, slot, index, server) {
        admit_next(worker, index, server);
    }
}

fn slot_is_full(worker: &FarmWorker, slot: &Slot, backend: u32, server: u32) -> bool {
    let limit = limit(worker, backend, server);
    limit > 0 && slot.gate.served() >= limit
}

/// Sends everybody who waits for a server (`None`: for any) back to choose again: it went down. Returns how
/// many they were.
pub fn redistribute(worker: &FarmWorker, backend: u32, server: Option<u32>) -> usize {
    let waiting = queue_of(&worker.farm.backend(backend), server).drain();
    for ticket in &waiting {
        ticket.notify.notify();
    }
    waiting.len()
}
