//! `clear counters`. Figures of protocols (TLS, HTTP/1, HTTP/2) go with the maxima, as HAProxy's modules do, but for what is open.

use std::sync::atomic::Ordering::Relaxed;

use base::rate::PeakRate;
use model::counter::{Counter, Sharded};
use model::proxy::{Back, Front, Listener};
use model::{Proxy, Server};
use program::listener::Level;

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
    let process = &program.world.process;
    let tls = [&process.ssl_rate, &process.ssl_front_keys, &process.ssl_back_keys];
    for rate in [&process.conn_rate, &process.sess_rate].into_iter().chain(tls) {
        rate.reset_peak();
    }
    Ok(Reply::Done)
}

fn zero<T>(counters: &Sharded<T>, which: &[fn(&T) -> &Counter]) {
    for copy in counters.iter() {
        for figure in which {
            figure(copy).set(0);
        }
    }
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
    for copy in front.counters.iter() {
        copy.tls.clear();
        copy.h1.clear(all);
        copy.h2.clear(all);
    }
    zero(&front.counters, &[|c| &c.wire_in, |c| &c.wire_out, |c| &c.spliced_in, |c| &c.spliced_out]);
    if !all {
        return;
    }
    zero(
        &front.counters,
        &[
            |c| &c.connections,
            |c| &c.sessions,
            |c| &c.upgraded,
            |c| &c.denied_req,
            |c| &c.denied_resp,
            |c| &c.req_errors,
            |c| &c.denied_conn,
            |c| &c.denied_sess,
            |c| &c.requests,
            |c| &c.intercepted,
            |c| &c.failed_rewrites,
            |c| &c.internal_errors,
        ],
    );
    for copy in front.counters.iter() {
        copy.bytes.clear();
        copy.ends.clear();
        copy.h2_requests.set(0);
        copy.h3_requests.set(0);
        copy.other_requests.set(0);
        copy.responses.iter().for_each(|c| c.set(0));
    }
}

fn clear_back(back: &Back, all: bool) {
    back.current_max.store(0, Relaxed);
    back.queued_max.store(0, Relaxed);
    reset(&[&back.session_rate], all);
    for copy in back.counters.iter() {
        copy.max_times.iter().for_each(|c| c.set(0));
        copy.tls.clear();
        copy.h1.clear(all);
        copy.h2.clear(all);
    }
    zero(&back.counters, &[|c| &c.wire_in, |c| &c.wire_out, |c| &c.spliced_in, |c| &c.spliced_out]);
    if !all {
        return;
    }
    zero(
        &back.counters,
        &[
            |c| &c.sessions,
            |c| &c.chosen,
            |c| &c.denied_req,
            |c| &c.denied_resp,
            |c| &c.conn_errors,
            |c| &c.resp_errors,
            |c| &c.retries,
            |c| &c.redispatches,
            |c| &c.client_aborts,
            |c| &c.server_aborts,
            |c| &c.connects,
            |c| &c.reuses,
            |c| &c.requests,
            |c| &c.failed_rewrites,
            |c| &c.internal_errors,
        ],
    );
    for copy in back.counters.iter() {
        copy.bytes.clear();
        copy.responses.iter().for_each(|c| c.set(0));
    }
    back.went_down.store(0, Relaxed);
    back.last_session.store(0, Relaxed);
}

fn clear_listener(listener: &Listener, all: bool) {
    listener.current_max.store(0, Relaxed);
    listener.counters.iter().for_each(|copy| copy.tls.clear());
    if all {
        listener.counters.iter().for_each(|copy| copy.bytes.clear());
        zero(
            &listener.counters,
            &[
                |c| &c.connections,
                |c| &c.sessions,
                |c| &c.req_errors,
                |c| &c.denied_req,
                |c| &c.denied_resp,
                |c| &c.denied_conn,
                |c| &c.denied_sess,
                |c| &c.failed_rewrites,
                |c| &c.internal_errors,
            ],
        );
    }
}

fn clear_server(server: &Server, all: bool) {
    server.served_max.store(0, Relaxed);
    server.queued_max.store(0, Relaxed);
    reset(&[&server.rate], all);
    for copy in server.counters.iter() {
        copy.max_times.iter().for_each(|c| c.set(0));
        copy.tls.clear();
    }
    if !all {
        return;
    }
    zero(
        &server.counters,
        &[
            |c| &c.sessions,
            |c| &c.chosen,
            |c| &c.denied_resp,
            |c| &c.conn_errors,
            |c| &c.resp_errors,
            |c| &c.retries,
            |c| &c.redispatches,
            |c| &c.client_aborts,
            |c| &c.server_aborts,
            |c| &c.connects,
            |c| &c.reuses,
            |c| &c.failed_rewrites,
            |c| &c.internal_errors,
            |c| &c.requests,
            |c| &c.observe_failures,
        ],
    );
    for copy in server.counters.iter() {
        copy.bytes.clear();
        copy.responses.iter().for_each(|c| c.set(0));
    }
    server.failed_checks.store(0, Relaxed);
    server.went_down.store(0, Relaxed);
    server.last_session.store(0, Relaxed);
}
