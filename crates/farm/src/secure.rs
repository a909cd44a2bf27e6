//! What is counted of TLS, and how many connections may have it.

use std::sync::atomic::Ordering::Relaxed;

use link::handshake::{Refused, Shaken};
use model::world::Process;
use program::Proxy;
use program::global::Tune;
use tls::stream::Sizes;

use crate::FarmWorker;

/// How large records are (`tune.ssl.maxrecord` and its like).
pub fn sizes(tune: &Tune) -> Sizes {
    Sizes {
        first: tune.ssl_maxrecord,
        idle: tune.idletimer,
        hard: tune.ssl_hard_maxrecord,
        updates: tune.ssl_key_updates,
    }
}

/// Counts a handshake with a server. One that ran out of time was broken off and is no failed one, as in
/// HAProxy.
pub fn count(worker: &FarmWorker, proxy: &Proxy, server: &model::Server, shaken: &Shaken) {
    if !matches!(shaken, Err(Refused::TimedOut)) {
        count_server(worker, proxy, Some(server), shaken.as_ref().ok().map(|(_, facts)| facts.resumed));
    }
}

/// The same by whether a session was resumed, `None` if it failed.
pub fn count_server(
    worker: &FarmWorker,
    proxy: &Proxy,
    server: Option<&model::Server>,
    resumed: Option<bool>,
) {
    let back = &proxy.state.back.counters.of(worker.index).tls;
    let own = server.map(|server| &server.counters.of(worker.index).tls);
    for counters in [back].into_iter().chain(own) {
        match resumed {
            Some(resumed) => counters.done(resumed),
            None => counters.failed.inc(),
        }
    }
    if resumed == Some(false) {
        worker.farm.program.world.process.ssl_back_keys.add(rt::now().as_millis());
    }
}

/// Whether there may be one more connection with TLS (`maxsslconn`).
fn has_room(process: &Process) -> bool {
    let limit = process.ssl_limit.load(Relaxed);
    limit == 0 || tls::figures::read().open < limit
}

/// Whether a listener with TLS may accept one more (`maxsslconn`, `maxsslrate`).
pub fn admits(process: &Process, now_ms: u64) -> bool {
    let rate = process.ssl_rate_limit.load(Relaxed);
    has_room(process) && (rate == 0 || process.ssl_rate.read(now_ms) < u64::from(rate))
}

/// Whether there is room for one more connection with TLS.
///
/// # Errors
/// There is none.
pub fn full(worker: &FarmWorker) -> Result<(), Refused> {
    match has_room(&worker.farm.program.world.process) {
        true => Ok(()),
        false => Err(Refused::too_many()),
    }
}
