//! Idle connections that change workers (`tune.idle-pool.shared`).

use std::sync::{Arc, Mutex, OnceLock};

use link::transport::Parted;
use model::Server;
use model::server_conns::{Seat, is_safe};
use rt::{Claimed, Quay, RemoteNotify};

use super::place::noted;
use super::{Identity, Idle, Order, Pools};
use crate::{At, FarmWorker};

/// The quays of a server, by worker. Made when they are first needed.
#[derive(Default)]
pub struct Quays(OnceLock<Box<[Berths]>>);

type Berths = OnceLock<Option<Arc<Quay>>>;

impl Quays {
    /// The calling worker's; `None` if it is the only one, and in a simulated world.
    pub fn own(&self) -> Option<&Arc<Quay>> {
        let (count, index) = (rt::worker_count(), rt::worker_index()?);
        if count < 2 {
            return None;
        }
        let all = self.0.get_or_init(|| (0..count).map(|_| Berths::new()).collect());
        all.get(index)?.get_or_init(Quay::here).as_ref()
    }

    fn of(&self, worker: usize) -> Option<&Quay> {
        self.0.get()?.get(worker)?.get()?.as_deref()
    }
}

/// What the quays say.
enum Seen {
    Got(Idle),
    Nothing,
    /// Somebody may have one that is not to be seen.
    Ask,
}

/// Claims a connection of another worker. Whoever claims one also takes it out of the count of those that
/// rest.
fn look_around(quays: &Quays, state: &Server, index: usize, identity: Identity, order: Order) -> Seen {
    let count = rt::worker_count();
    let mut otherwise = Seen::Nothing;
    for step in 1..count {
        let Some(quay) = quays.of((index + step) % count) else { continue };
        let gone = |note| state.conns.leave(is_safe(noted(note)));
        match quay.claim(identity, |note| is_safe(noted(note)) || order != Order::Proven, gone) {
            Claimed::Socket(socket, note) => {
                let requests = noted(note);
                state.conns.leave(is_safe(requests));
                socket.reset_on_close();
                return Seen::Got(Idle::new(socket.into(), identity, requests, None));
            }
            Claimed::Full => otherwise = Seen::Ask,
            Claimed::Nothing => {}
        }
    }
    otherwise
}

/// An idle connection on its way from one worker to another.
struct Parcel {
    socket: Parted,
    identity: Identity,
    requests: u32,
    seat: Option<Seat>,
}

/// Where a worker that was asked puts its answer.
struct Letterbox<T> {
    answer: Mutex<Option<T>>,
    answered: RemoteNotify,
}

impl<T> Default for Letterbox<T> {
    fn default() -> Self {
        Letterbox { answer: Mutex::default(), answered: RemoteNotify::default() }
    }
}

/// How many other workers are asked before a new connection is opened.
const ASKED: usize = 3;

/// Takes an idle connection of another worker: from its quay, or by asking.
pub async fn take_over(worker: &FarmWorker, at: At, identity: Identity, order: Order) -> Option<Idle> {
    let backend = worker.farm.backend(at.proxy);
    let quays = &backend.slots.get(at.server as usize)?.quays;
    let server = worker.farm.program.find_server(at.proxy, at.server)?;
    // Connections that are more than a socket can't wait at a quay, and a simulated world has none.
    let hidden = server.tls.is_some() || server.strict_maxconn || quays.own().is_none();
    match look_around(quays, &server.state, worker.index, identity, order) {
        Seen::Got(idle) => Some(idle),
        Seen::Nothing if !hidden => None,
        _ => {
            let take = move |pools: &Pools, state: &Server| {
                pools.take(at.proxy, at.server, identity, order, state).and_then(Idle::pack)
            };
            ask(worker, ASKED, at, take).await.and_then(Parcel::unpack)
        }
    }
}

/// Closes a connection to a server that rests, here or at another worker.
pub async fn close_one(worker: &FarmWorker, at: At) {
    let here = worker.farm.program.find_server(at.proxy, at.server);
    if here.is_some_and(|server| worker.pools.close_one(at, &server.state)) {
        // One that belongs to a task is closed when that has had its turn.
        return rt::yield_now().await;
    }
    let close = move |pools: &Pools, state: &Server| pools.close_one(at, state).then_some(());
    let _ = ask(worker, usize::MAX, at, close).await;
}

/// Asks other workers, one after the other and `most` at most, until one finds what is looked for among its
/// connections.
async fn ask<T: Send + 'static>(
    worker: &FarmWorker,
    most: usize,
    at: At,
    look: impl Fn(&Pools, &Server) -> Option<T> + Copy + Send + 'static,
) -> Option<T> {
    let (index, epoch) = (worker.index, worker.farm.epoch);
    let count = rt::worker_count();
    for step in 1..count.min(most.saturating_add(1)) {
        let letterbox = Arc::new(Letterbox::default());
        let reply = letterbox.clone();
        let job = move || {
            let found = crate::with_worker(|w| {
                // Another configuration means another server by this index.
                let config =
                    (w.farm.epoch == epoch).then_some(&w.farm)?.program.find_server(at.proxy, at.server)?;
                look(&w.pools, &config.state)
            });
            *reply.answer.lock().unwrap_or_else(|p| p.into_inner()) = found.flatten();
            reply.answered.notify();
        };
        if !rt::send_to((index + step) % count, Box::new(job)) {
            continue;
        }
        letterbox.answered.notified().await;
        let found = letterbox.answer.lock().unwrap_or_else(|p| p.into_inner()).take();
        if found.is_some() {
            return found;
        }
    }
    None
}

impl Idle {
    fn pack(self) -> Option<Parcel> {
        let socket = self.socket.detach().ok()?;
        Some(Parcel { socket, identity: self.identity, requests: self.requests, seat: self.seat })
    }
}

impl Parcel {
    fn unpack(self) -> Option<Idle> {
        let socket = self.socket.attach().ok()?;
        socket.raw().reset_on_close();
        Some(Idle::new(socket, self.identity, self.requests, self.seat))
    }
}
