//! `clear counters`. Figures of protocols (TLS, HTTP/1, HTTP/2) go with the maxima, as HAProxy's modules do,
//! but for what is open.

use std::sync::atomic::Ordering::Relaxed;

use base::rate::PeakRate;
use model::proxy::{Back, Front, Listener};
use model::{Proxy, Server};
use program::listener::Level;

use super::activity;
use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::now(
    &["clear", "counters"],
    "[all|server <bk>/<srv> [force]]",
    "set maxima to zero, or all figures",
    Level::Operator,
    clear,
)];

/// `clear counters [all | server <backend>/<server> [force]]`. Only an admin may clear more than maxima.
pub fn clear(call: &mut Call<'_>) -> Outcome {
    let what = call.arg(0);
    let all = what == "all";
    if (all || what == "server") && call.client.level < Level::Admin {
        return Err("Permission denied".into());
    }
    if what == "server" {
        clear_server(&call.config(call.server_called(call.arg(1))?).state, true);
        return Ok(Reply::info("Server counters cleared."));
    }
    if all {
        activity::forget();
    }
    let program = &call.shared().program;
    for proxy in &program.proxies {
        clear_proxy(&proxy.state, all);
        for bind in &proxy.binds {
            clear_listener(&bind.state, all);
        }
        for server in proxy.present() {
            clear_server(&server.state, all);
        }
    }
    for server in program.resolvers.iter().flat_map(|r| &r.servers).filter(|_| all) {
        server.state.clear();
    }
    let process = &program.world.process;
    let tls = [&process.ssl_rate, &process.ssl_front_keys, &process.ssl_back_keys];
    for rate in [&process.conn_rate, &process.sess_rate].into_iter().chain(tls) {
        rate.reset_peak();
    }
    Ok(Reply::Done)
}

fn reset(rates: &[&PeakRate], all: bool) {
    for rate in rates {
        rate.reset_peak();
        if all {
            rate.rate().clear();
        }
    }
}

fn clear_proxy(proxy: &Proxy, all: bool) {
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
    back.went_down.store(0, Relaxed);
    back.last_session.store(0, Relaxed);
}

fn clear_listener(listener: &Listener, all: bool) {
    listener.current_max.store(0, Relaxed);
    listener.counters.iter().for_each(|copy| copy.clear(all));
}

fn clear_server(server: &Server, all: bool) {
    server.served_max.store(0, Relaxed);
    server.queued_max.store(0, Relaxed);
    reset(&[&server.rate], all);
    server.counters.iter().for_each(|copy| copy.clear(all));
    if !all {
        return;
    }
    server.failed_checks.store(0, Relaxed);
    server.went_down.store(0, Relaxed);
    server.last_session.store(0, Relaxed);
}
