//! One question to an agent: a server is chosen, a connection to it found or opened, and the answer awaited.
//!
//! As in HAProxy a question is a stream of the agent's backend in its own right: it is balanced, takes a
//! place at its server or waits for one, is tried again where no connection comes about, and is counted. What
//! waits belongs to the stream that asks: dropped at any point it leaves its place and is forgotten by its
//! connection.

use std::any::Any;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use balance::Method;
use balance::queue::Priority;
use engine::Worker;
use engine::tcp::question::{self, Question};
use farm::check;
use farm::queue::{self, Place, Refused, Wait};
use lang::action::Waiting;
use model::txn::Traffic;
use program::proxy::{Balance, Proxy};
use rt::{Mono, Timer};
use wire::spop::Status;

use crate::agent::Agent;
use crate::line::pool;
use crate::line::{Ended, Fault};
use crate::reason;

/// The payload of an ACK frame, or why there is none.
pub type Outcome = Result<Vec<u8>, u32>;

/// Begins to ask.
pub fn begin(worker: Rc<dyn Any>, agent: Arc<Agent>, payload: Vec<u8>) -> Waiting {
    Box::pin(async move {
        let outcome: Outcome = match worker.downcast::<Worker>() {
            // What it holds is large, and the memory is used again by the next one.
            Ok(worker) => rt::boxed(in_time(&worker, &agent, payload)).await,
            Err(_) => Err(reason::UNKNOWN),
        };
        Box::new(outcome) as Box<dyn Any>
    })
}

/// `timeout processing` is for all of it.
async fn in_time(worker: &Rc<Worker>, agent: &Arc<Agent>, payload: Vec<u8>) -> Outcome {
    let mut timer = Timer::new();
    timer.set_after(agent.timeout);
    let mut asking = std::pin::pin!(ask(worker, agent, payload));
    poll_fn(|cx| match asking.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(outcome),
        Poll::Pending => timer.poll_expired(cx).map(|()| Err(reason::TIMEOUT)),
    })
    .await
}

/// A stream at the backend, as its statistics have it.
struct Entered<'e>(&'e model::Proxy);

impl<'e> Entered<'e> {
    fn begin(proxy: &'e Proxy, worker: usize) -> Entered<'e> {
        let back = &proxy.state.back;
        let now = back.current.fetch_add(1, Relaxed) + 1;
        back.current_max.fetch_max(now, Relaxed);
        back.session_rate.add(rt::now().as_millis());
        back.counters.of(worker).sessions.inc();
        back.last_session.store(rt::wall().as_secs(), Relaxed);
        Entered(&proxy.state)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.back.current.fetch_sub(1, Relaxed);
    }
}

/// How far the tries have come.
#[derive(Default)]
struct Tries {
    retries: u32,
    /// The server tried last, where another one is wanted.
    avoid: Option<u32>,
    /// The server to be tried again, or that rules bind to.
    again: Option<u32>,
    /// That one may be tried as long as rules say so, whatever the algorithm thinks of it.
    bound: bool,
    /// What the algorithm looks up.
    key: Option<u32>,
    /// What rules said of waiting in a queue.
    priority: Priority,
    queue: Option<Duration>,
}

/// The agent can't be reached, or rules forbid it.
const FAILED: u32 = reason::SPOP + Status::Io.code();

async fn ask(worker: &Rc<Worker>, agent: &Arc<Agent>, payload: Vec<u8>) -> Outcome {
    let program = &worker.shared.program;
    let proxy = &*program.proxy(agent.backend);
    if question::is_ruled(proxy) {
        return rt::boxed(ruled(worker, agent, proxy, payload)).await;
    }
    let _stay = worker.shared.farm.stay(agent.backend, None);
    let _entered = Entered::begin(proxy, worker.index);
    let length = payload.len();
    let (answer, place) = tried(worker, agent, proxy, payload, &mut Tries::default()).await?;
    count_bytes(worker.index, proxy, &place.config(), length, answer.len().max(1));
    Ok(answer)
}

/// Asks where rules have a say.
async fn ruled(worker: &Rc<Worker>, agent: &Arc<Agent>, proxy: &Proxy, payload: Vec<u8>) -> Outcome {
    let (mut client, far) = question::client(worker, agent.backend).ok_or(FAILED)?;
    let mut question = Question::begin((&mut client, far), agent.backend, &payload);
    if !question.may_go().await {
        return Err(FAILED);
    }
    let again = question.server();
    let (priority, queue) = question.patience();
    let (bound, key) = (again.is_some(), question.key());
    let mut tries = Tries { again, bound, key, priority, queue, ..Tries::default() };
    let length = payload.len();
    let (answer, place) = tried(worker, agent, proxy, payload, &mut tries).await?;
    let server = place.server;
    let goes = question.may_return(server, place, &answer).await;
    let down = if goes { answer.len().max(1) } else { 0 };
    count_bytes(worker.index, proxy, &proxy.server(server), length, down);
    if goes { Ok(answer) } else { Err(FAILED) }
}

/// Asks one agent after the other, as the backend allows; its answer, and where it came from.
async fn tried(
    worker: &Rc<Worker>,
    agent: &Arc<Agent>,
    proxy: &Proxy,
    mut payload: Vec<u8>,
    tries: &mut Tries,
) -> Result<(Vec<u8>, Place), u32> {
    let begun = rt::now();
    loop {
        let Some(mut place) = assign(worker, agent.backend, proxy, tries).await else {
            proxy.state.back.counters.of(worker.index).conn_errors.inc();
            return Err(FAILED);
        };
        let queued = rt::now();
        let line = pool::line(worker, agent, proxy, place.server);
        // An attempt that the system refuses at once is none.
        let sure = line.is_under_way();
        if sure {
            place.serve();
        }
        let asked = line.ask(payload);
        // A time that is not over before all of it is needs no timer of its own.
        let patience = proxy.timeouts.server.filter(|time| agent.timeout.is_none_or(|all| *time < all));
        let ended = answered(&asked, patience).await;
        if !sure && !matches!(ended, Some(Ended::Unreached(Fault::Unreachable | Fault::Resource, _))) {
            place.serve();
        }
        if !matches!(ended, Some(Ended::Elsewhere(_) | Ended::Unreached(..))) {
            count_times(worker.index, proxy, &place, (begun, queued, asked.sent()));
        }
        match ended {
            None => return Err(FAILED),
            Some(Ended::Answer(answer)) => return Ok((answer, place)),
            Some(Ended::Failed(code)) => {
                count_left(worker.index, proxy, &place);
                return Err(reason::SPOP + code);
            }
            Some(Ended::TooBig) => return Err(reason::TOO_BIG),
            Some(Ended::Elsewhere(back)) => {
                payload = back;
                tries.again = Some(place.server);
            }
            Some(Ended::Unreached(fault, back)) => {
                payload = back;
                check::observe(&worker.farm, agent.backend, place.server, check::Seen::ConnectFailed);
                if !goes_on(worker, agent.backend, proxy, (place, fault), tries).await {
                    return Err(FAILED);
                }
            }
        }
    }
}

/// Waits for what a connection has to say of a question, as long as `timeout server` allows.
async fn answered(asked: &crate::line::Asking, patience: Option<Duration>) -> Option<Ended> {
    let mut timer = Timer::new();
    timer.set_after(patience);
    poll_fn(|cx| match asked.poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
    })
    .await
}

/// Counts what a question took, as that of a stream of TCP: in the queue, to connect, and in all.
fn count_times(
    worker: usize,
    proxy: &Proxy,
    place: &Place,
    (begun, queued, sent): (Mono, Mono, Option<Mono>),
) {
    let millis = |from: Mono, to: Mono| u32::try_from(to.millis_since(from)).unwrap_or(u32::MAX);
    let connect = sent.map_or(0, |sent| millis(queued, sent));
    let times = [millis(begun, queued), connect, 0, millis(begun, rt::now())];
    let (back, server) = (&proxy.state.back, &place.config().state);
    server.times.add(times);
    back.times.add(times);
    let (back, server) = (back.counters.of(worker), server.counters.of(worker));
    for (at, time) in times.iter().enumerate() {
        for longest in [back.max_times.get(at), server.max_times.get(at)].into_iter().flatten() {
            longest.max(u64::from(*time));
        }
    }
}

/// Counts an agent that left a question without an answer, as a server that left a stream.
fn count_left(worker: usize, proxy: &Proxy, place: &Place) {
    let (back, own) = (proxy.state.back.counters.of(worker), place.config().state.clone());
    let server = own.counters.of(worker);
    back.resp_errors.inc();
    back.server_aborts.inc();
    server.resp_errors.inc();
    server.server_aborts.inc();
}

/// Counts the messages of a question, with one byte for the kind of their frame, and what its answer said, as
/// in HAProxy.
fn count_bytes(worker: usize, proxy: &Proxy, server: &program::Server, sent: usize, received: usize) {
    let traffic = |n: usize| Traffic { received: n as u64, sent: n as u64, ..Traffic::default() };
    let (up, down) = (traffic(sent + 1), traffic(received));
    proxy.state.back.counters.of(worker).bytes.add(&up, &down);
    server.state.counters.of(worker).bytes.add(&up, &down);
}

/// Whether there is another try after one that did not reach its server, and where.
async fn goes_on(
    worker: &Rc<Worker>,
    backend: u32,
    proxy: &Proxy,
    (place, fault): (Place, Fault),
    tries: &mut Tries,
) -> bool {
    let server = place.server;
    let (back, own) = (proxy.state.back.counters.of(worker.index), place.config().state.clone());
    let own = own.counters.of(worker.index);
    if fault == Fault::Resource || tries.retries >= proxy.retries {
        back.conn_errors.inc();
        own.conn_errors.inc();
        return false;
    }
    tries.retries += 1;
    let left = proxy.retries.saturating_sub(tries.retries);
    if proxy.leaves(tries.retries, left, false) && worker.shared.farm.backend(backend).balancer.usable() > 1 {
        back.redispatches.inc();
        own.redispatches.inc();
        (tries.avoid, tries.again, tries.bound) = (Some(server), None, false);
        return true;
    }
    back.retries.inc();
    own.retries.inc();
    tries.again = Some(server);
    if fault == Fault::Refused {
        // The place is kept meanwhile.
        rt::sleep(proxy.timeouts.turn_around()).await;
    }
    drop(place);
    true
}

/// A place at a server; `None`: there is none to be had.
async fn assign(worker: &Rc<Worker>, index: u32, proxy: &Proxy, tries: &mut Tries) -> Option<Place> {
    let backend = &*worker.shared.farm.backend(index);
    let patience = Wait { priority: tries.priority, timeout: tries.queue, server: None };
    if let Some(server) = tries.again.take()
        && proxy.servers.get(server as usize).is_some_and(|s| tries.bound || s.state.is_usable())
    {
        match queue::try_enter(&worker.farm, index, server) {
            Some(place) => return Some(place),
            None => match wait(worker, index, proxy, Wait { server: Some(server), ..patience }).await {
                Err(Refused::Redistributed) => {}
                other => return other.ok(),
            },
        }
    }
    // Who has a key waits where it leads; in a map it does so though that server failed.
    let keyed = tries.key.is_some();
    let mapped = keyed && proxy.hash.method == Method::MapBased;
    let avoid = tries.avoid.filter(|_| !mapped);
    loop {
        let key =
            tries.key.or_else(|| matches!(proxy.balance, Balance::Random(_)).then(|| rt::random() as u32));
        let too_full = |s: usize| !keyed && queue::is_full(&worker.farm, index, s);
        let skip = |s: usize| avoid.is_some_and(|a| a as usize == s) || too_full(s);
        let found = backend.balancer.pick(key, skip).or_else(|| backend.balancer.pick(key, too_full));
        let waits = match found.and_then(|server| u32::try_from(server).ok()) {
            Some(server) => {
                let place = queue::try_enter(&worker.farm, index, server);
                if place.is_some() || keyed {
                    proxy.server(server).state.counters.of(worker.index).chosen.inc();
                    proxy.state.back.counters.of(worker.index).chosen.inc();
                }
                match place {
                    Some(place) => return Some(place),
                    None if keyed => Some(server),
                    None => continue,
                }
            }
            None if backend.balancer.usable() == 0 => return None,
            None => None,
        };
        match wait(worker, index, proxy, Wait { server: waits, ..patience }).await {
            Err(Refused::Redistributed) => {}
            other => return other.ok(),
        }
    }
}

async fn wait(worker: &Rc<Worker>, index: u32, proxy: &Proxy, mut wait: Wait) -> Result<Place, Refused> {
    wait.timeout = wait.timeout.or(proxy.timeouts.queue).or(proxy.timeouts.connect);
    queue::wait(&worker.farm, index, wait, &mut (0, 0), |_| false).await
}
