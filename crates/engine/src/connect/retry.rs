//! Attempts that failed: whether there is another, where it goes, and what is counted.

use std::future::poll_fn;
use std::task::{Context, Poll};

use model::conn::ConnError;
use program::proxy::Proxy;
use rt::Timer;

use super::{Attempt, Failed, has_left};
use crate::body;
use crate::choose::{NoServer, Wish, count_redispatch};
use crate::silence;
use crate::stream::Stream;

/// Decides where the next attempt goes: elsewhere, where [`count_choice`] counts it, or to the same server
/// after a rest.
pub(super) async fn retry(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    (server, failure): (u32, Attempt),
    retries: u32,
    wish: &mut Wish,
) -> Result<(), Attempt> {
    stream.txn.retries += 1;
    if leaves(stream, proxy, retries, wish) {
        leave(stream, server, wish);
        return Ok(());
    }
    // Where there is nobody else the choice comes to the same server, after the rest.
    let chosen = proxy.chooses_anew(stream.txn.retries, retries.saturating_sub(stream.txn.retries));
    if !chosen {
        count_again(stream, proxy, server);
    }
    // A server that let the time pass has had its rest. One that the system does not let us reach needs none.
    let rested = match failure {
        Attempt::TimedOut | Attempt::Unreachable => Ok(()),
        _ => {
            // The connection that failed is gone, and with it what went wrong and where it led.
            let facts = &mut stream.txn.server_conn;
            (facts.error, facts.begun) = (ConnError::NONE, false);
            (facts.dst, facts.src) = Default::default();
            stream.txn.server_secured = None;
            // Who rests keeps the place, but is no session of the server meanwhile.
            if let Some(place) = &mut stream.place {
                place.finish();
            }
            pause(stream, proxy).await
        }
    };
    if chosen && rested.is_ok() {
        count_again(stream, proxy, server);
        stream.txn.times.queued = Some(rt::now());
    }
    rested
}

/// Rests before the same server is tried again, unless the client leaves meanwhile.
pub(super) async fn pause(stream: &Stream<'_>, proxy: &Proxy) -> Result<(), Attempt> {
    let mut timer = Timer::new();
    timer.set_after(Some(proxy.timeouts.turn_around()));
    let mut why = Attempt::Left;
    let rested = poll_fn(|cx| match gives_up(stream, proxy, cx) {
        true => Poll::Ready(Err(why)),
        false => {
            why = Attempt::Aborted;
            timer.poll_expired(cx).map(Ok)
        }
    })
    .await;
    // Who only closes behind a whole request has broken nothing off, nor has a client of TCP; the end of a
    // Unix socket is no reset.
    let socket = &stream.client.socket;
    let broken = socket.is_broken() && (socket.raw().is_local() || socket.raw().is_reset());
    if rested.is_err()
        && stream.txn.has_req
        && !silence::is_over(stream)
        && (broken || !body::is_whole(stream))
    {
        crate::losses::client_abort(stream);
    }
    rested
}

/// Whether nobody waits for the next attempt any more. What a client of TCP has said is told to a server,
/// whatever becomes of it.
fn gives_up(stream: &Stream<'_>, proxy: &Proxy, cx: &mut Context<'_>) -> bool {
    let client = &stream.client;
    let killed = client.session.kill.get().is_some();
    killed
        || silence::is_over(stream)
        || (stream.txn.has_req || !client.has_input()) && has_left(stream, proxy, cx)
}

/// Counts a retry for `retry-on` and decides where the next attempt goes.
pub fn count_l7_retry(stream: &mut Stream<'_>, server: Option<u32>, wish: &mut Wish) {
    let worker = stream.worker.clone();
    let proxy = &*worker.shared.program.proxy(stream.backend_index());
    let Some(server) = server else { return };
    let retries = stream.txn.overrides.retries.unwrap_or(proxy.retries);
    stream.txn.retries += 1;
    count_again(stream, proxy, server);
    if leaves(stream, proxy, retries, wish) {
        leave(stream, server, wish);
    } else {
        // The same server again: that is a retry of the connection, too.
        count_again(stream, proxy, server);
    }
}

/// Counts a retry at the same server.
fn count_again(stream: &Stream<'_>, proxy: &Proxy, server: u32) {
    let worker = stream.worker.index;
    proxy.state.back.counters.of(worker).retries.inc();
    proxy.server(server).state.counters.of(worker).retries.inc();
}

/// Whether the retry that begins chooses a server anew. A request that nothing binds to its server and that
/// is balanced by load does so at each retry, any other when the interval of `option redispatch` says so.
fn leaves(stream: &Stream<'_>, proxy: &Proxy, retries: u32, wish: &Wish) -> bool {
    let left = retries.saturating_sub(stream.txn.retries);
    let backend = &*stream.worker.shared.farm.backend(stream.backend_index());
    proxy.leaves(stream.txn.retries, left, wish.fixed.is_some()) && backend.balancer.usable() > 1
}

/// The next attempt chooses a server, another one if the algorithm allows.
fn leave(stream: &mut Stream<'_>, server: u32, wish: &mut Wish) {
    wish.fixed = None;
    wish.avoid = Some(server);
    stream.place = None;
}

/// Counts what came of a choice after [`leave`]: a redispatch, or a retry where the hash leads to the same
/// server again.
pub(super) fn count_choice(stream: &mut Stream<'_>, proxy: &Proxy, wish: &mut Wish) {
    let Some(left) = wish.avoid.take() else { return };
    if stream.place.as_ref().is_some_and(|place| place.server == left) {
        return count_again(stream, proxy, left);
    }
    count_redispatch(stream, proxy, left);
}

/// Counts a request for which no server was found; one that its client gave up is no failure of ours.
pub(super) fn count_unassigned(stream: &Stream<'_>, proxy: &Proxy, assigned: &Result<(), Failed>) {
    use farm::queue::Refused;
    if let Err(Failed::NoServer(why)) = assigned
        && *why != NoServer::Refused(Refused::Aborted)
    {
        proxy.state.back.counters.of(stream.worker.index).conn_errors.inc();
        // It was a failure of the server whose queue it was in.
        if let Some(server) = stream.txn.server.and_then(|s| proxy.servers.get(s as usize)) {
            server.state.counters.of(stream.worker.index).conn_errors.inc();
        }
    }
}

/// Counts a request whose server could not be reached after all: its handshake failed with the request on its
/// way.
pub fn count_lost(stream: &Stream<'_>, proxy: &Proxy) {
    if let Some(server) = stream.txn.server {
        count_failure(stream, proxy, server);
    }
}

/// Counts a request whose server could not be reached, however often that was tried.
pub(super) fn count_failure(stream: &Stream<'_>, proxy: &Proxy, server: u32) {
    let worker = stream.worker.index;
    proxy.state.back.counters.of(worker).conn_errors.inc();
    proxy.server(server).state.counters.of(worker).conn_errors.inc();
}
