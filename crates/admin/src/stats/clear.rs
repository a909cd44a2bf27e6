//! Figures begin anew. Those of protocols (TLS, HTTP/1, HTTP/2) go with the maxima, as HAProxy's modules do,
//! but for what is open.

use std::sync::atomic::Ordering::Relaxed;

use base::rate::PeakRate;
use model::proxy::{Back, Front, Listener};
use model::{Proxy, Server};

use super::row::{Kind, Row};

fn reset(rates: &[&PeakRate], all: bool) {
    for rate in rates {
        rate.reset_peak();
        if all {
            rate.rate().clear();
        }
    }
}

/// All figures of an object are zero.
pub fn clear_row(row: &Row<'_>) {
    let state = &row.proxy.state;
    match (row.kind, row.server, row.bind) {
        (Kind::Frontend, ..) => clear_front(&state.front, true),
        (Kind::Backend, ..) => clear_back(&state.back, true),
        (_, Some(server), _) => clear_server(&server.state, true),
        (_, _, Some((_, bind))) => clear_listener(&bind.state, true),
        _ => {}
    }
}

/// A proxy begins anew: its maxima, with `all` the others, too.
pub fn clear_proxy(proxy: &Proxy, all: bool) {
    clear_front(&proxy.front, all);
    clear_back(&proxy.back, all);
}

fn clear_front(front: &Front, all: bool) {
    front.current_max.store(0, Relaxed);
    reset(&[&front.session_rate, &front.conn_rate, &front.request_rate], all);
    front.counters.iter().for_each(|copy| copy.clear(all));
}

fn clear_back(back: &Back, all: bool) {
    back.current_max.store(0, Relaxed);
    back.queued_max.store(0, Relaxed);
    reset(&[&back.session_rate], all);
    back.counters.iter().for_each(|copy| copy.clear(all));
    if !all {
        return;
    }
    back.times.clear();
    back.went_down.store(0, Relaxed);
    back.last_session.store(0, Relaxed);
}

/// A listener.
pub fn clear_listener(listener: &Listener, all: bool) {
    listener.current_max.store(0, Relaxed);
    listener.counters.iter().for_each(|copy| copy.clear(all));
}

/// A server.
pub fn clear_server(server: &Server, all: bool) {
    server.served_max.store(0, Relaxed);
    server.queued_max.store(0, Relaxed);
    reset(&[&server.rate], all);
    server.counters.iter().for_each(|copy| copy.clear(all));
    if !all {
        return;
    }
    server.times.clear();
    server.failed_checks.store(0, Relaxed);
    server.went_down.store(0, Relaxed);
    server.last_session.store(0, Relaxed);
}
