//! Attempts that failed: whether there is another, where it goes, and what is counted.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use program::proxy::Proxy;
use rt::Timer;

use super::{Attempt, Failed, has_left};
use crate::choose::{NoServer, Wish};
use crate::stream::Stream;

/// Time before the same server is tried again.
const TURN_AROUND: Duration = Duration::from_secs(1);

/// Counts a retry and decides where it goes.
pub(super) async fn retry(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    server: u32,
    retries: u32,
    wish: &mut Wish,
) -> Result<(), Attempt> {
    let worker = stream.worker.index;
    stream.txn.retries += 1;
    let (back, state) = (proxy.state.back.counters.of(worker), &proxy.servers[server as usize].state);
    let left = retries - stream.txn.retries;
    if redispatches(proxy.options.redispatch, stream.txn.retries, left) && others_exist(stream, server) {
        leave(stream, proxy, server, wish);
        return Ok(());
    }
    back.retries.inc();
    state.counters.of(worker).retries.inc();
    pause(stream, proxy).await?;
    // Each attempt is a session at its server.
    state.counters.of(worker).sessions.inc();
    Ok(())
}

/// Rests before the same server is tried again, unless the client leaves meanwhile.
pub(super) async fn pause(stream: &Stream<'_>, proxy: &Proxy) -> Result<(), Attempt> {
    let mut timer = Timer::new();
    timer.set_after(Some(proxy.timeouts.connect.map_or(TURN_AROUND, |t| t.min(TURN_AROUND))));
    poll_fn(|cx| match has_left(stream, proxy, cx) {
        true => Poll::Ready(Err(Attempt::Aborted)),
        false => timer.poll_expired(cx).map(Ok),
    })
    .await
}

/// Counts a retry for `retry-on` and lets the next attempt choose again.
pub fn count_l7_retry(stream: &mut Stream<'_>, server: Option<u32>, wish: &mut Wish) {
    let worker = stream.worker.clone();
    let proxy = worker.shared.program.proxy(stream.backend_index());
    let Some(server) = server else { return };
    let retries = stream.txn.overrides.retries.unwrap_or(proxy.retries);
    stream.txn.retries += 1;
    proxy.state.back.counters.of(worker.index).retries.inc();
    proxy.servers[server as usize].state.counters.of(worker.index).retries.inc();
    let left = retries.saturating_sub(stream.txn.retries);
    if redispatches(proxy.options.redispatch, stream.txn.retries, left) && others_exist(stream, server) {
        leave(stream, proxy, server, wish);
    } else {
        // The same server again: that is a retry of the connection, too, and a session.
        let state = &proxy.servers[server as usize].state;
        proxy.state.back.counters.of(worker.index).retries.inc();
        state.counters.of(worker.index).retries.inc();
        state.counters.of(worker.index).sessions.inc();
    }
}

/// The next attempt chooses among the other servers.
fn leave(stream: &mut Stream<'_>, proxy: &Proxy, server: u32, wish: &mut Wish) {
    let worker = stream.worker.index;
    stream.txn.redispatched = true;
    crate::persist::lost(stream);
    proxy.state.back.counters.of(worker).redispatches.inc();
    proxy.servers[server as usize].state.counters.of(worker).redispatches.inc();
    wish.fixed = None;
    wish.tried.push(server);
    stream.place = None;
}

fn others_exist(stream: &Stream<'_>, server: u32) -> bool {
    let backend = &stream.worker.shared.backends[stream.backend_index() as usize];
    backend.balancer.pick(None, |s| s == server as usize).is_some()
}

/// Whether the n-th retry, after which `left` remain, leaves its server (`option redispatch <interval>`).
fn redispatches(interval: i32, retry: u32, left: u32) -> bool {
    let n = interval.unsigned_abs();
    match interval {
        0 => false,
        i if i > 0 => retry.is_multiple_of(n),
        _ => left + 1 == n,
    }
}

/// Counts a request for which no server was found; one that its client gave up is no failure of ours.
pub(super) fn count_unassigned(stream: &Stream<'_>, proxy: &Proxy, assigned: &Result<(), Failed>) {
    use crate::queue::Refused;
    if let Err(Failed::NoServer(why)) = assigned
        && *why != NoServer::Refused(Refused::Aborted)
    {
        proxy.state.back.counters.of(stream.worker.index).conn_errors.inc();
    }
}

/// Counts a request whose server could not be reached after all: its handshake failed with the request on its way.
pub fn count_lost(stream: &Stream<'_>, proxy: &Proxy) {
    if let Some(server) = stream.txn.server {
        count_failure(stream, proxy, server);
    }
}

/// Counts a request whose server could not be reached, however often that was tried.
pub(super) fn count_failure(stream: &Stream<'_>, proxy: &Proxy, server: u32) {
    let worker = stream.worker.index;
    proxy.state.back.counters.of(worker).conn_errors.inc();
    proxy.servers[server as usize].state.counters.of(worker).conn_errors.inc();
}

#[cfg(test)]
mod tests {
    use super::redispatches;

    #[test]
    fn the_default_interval_leaves_the_server_on_the_last_retry_only() {
        assert_eq!([1, 2, 3].map(|n| redispatches(-1, n, 3 - n)), [false, false, true]);
        assert_eq!([1, 2, 3].map(|n| redispatches(-2, n, 3 - n)), [false, true, false]);
        assert_eq!([1, 2, 3].map(|n| redispatches(1, n, 3 - n)), [true, true, true]);
        assert_eq!([1, 2, 3].map(|n| redispatches(0, n, 3 - n)), [false, false, false]);
    }
}
