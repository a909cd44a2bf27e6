//! What is told of all proxies at once: SIGHUP's report, and that they paused, resumed or stopped.
//!
//! Each line goes to the logs of its proxy and, in the foreground, to standard error.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::lines;
use engine::{Shared, Worker, worker};
use model::proxy::FrontState;
use program::log::level::{NOTICE, WARNING};
use program::{Held, Proxy, Server};

/// A line about a proxy.
fn tell(worker: &Worker, proxy: u32, level: u8, text: &str) {
    lines::console(worker, "WARNING", text);
    lines::proxy_line(worker, proxy, level, text);
}

/// SIGHUP: the state of all proxies and servers.
pub fn report(shared: &Shared) {
    worker::with_worker(|worker| {
        lines::console(worker, "WARNING", "SIGHUP received, dumping servers states.");
        for (index, proxy) in living(shared) {
            let first = format!("SIGHUP received, dumping servers states for proxy {}.", proxy.name);
            lines::proxy_line(worker, index, NOTICE, &first);
            for server in proxy.present() {
                tell(worker, index, NOTICE, &server_line(&proxy, &server));
            }
            tell(worker, index, NOTICE, &proxy_line(&proxy));
        }
    });
}

/// Proxies that were not disabled, with their index.
fn living(shared: &Shared) -> impl Iterator<Item = (u32, Held<'_, Proxy>)> {
    shared.program.proxies.numbered().filter(|(_, p)| !p.disabled && !p.is_removed())
}

fn server_line(proxy: &Proxy, server: &Server) -> String {
    let state = &server.state;
    let queued = state.queued.load(Relaxed);
    let up = if state.is_up() { "UP" } else { "DOWN" };
    format!(
        "SIGHUP: Server {}/{} is {up}. Conn: {} act, {queued} pend, {} tot.",
        proxy.name,
        state.name,
        state.served.load(Relaxed),
        state.counters.sum(|c| &c.sessions)
    )
}

fn proxy_line(proxy: &Proxy) -> String {
    let usable = |backup: bool| {
        let some = proxy.servers.iter().filter(|s| s.backup == backup && s.state.is_usable());
        some.count()
    };
    let (active, backup) = (usable(false), usable(true));
    let what = match (proxy.present().count(), active, backup) {
        (0, ..) => "has no servers.".to_owned(),
        (_, 0, 0) => "has no server available !".to_owned(),
        (_, 0, _) => "is running on backup servers !".to_owned(),
        _ => format!("has {active} active servers and {backup} backup servers available."),
    };
    let (front, back) = (&proxy.state.front, &proxy.state.back);
    let unassigned = back.queued.load(Relaxed);
    let pending: u32 = unassigned + proxy.servers.iter().map(|s| s.state.queued.load(Relaxed)).sum::<u32>();
    format!(
        "SIGHUP: Proxy {} {what} Conn: act(FE+BE): {}+{}, {pending} pend ({unassigned} unass), tot(FE+BE): {}+{}.",
        proxy.name,
        front.current.load(Relaxed),
        back.current.load(Relaxed),
        front.counters.sum(|c| &c.sessions),
        back.counters.sum(|c| &c.sessions)
    )
}

/// SIGTTOU and SIGTTIN: frontends give up their ports, or take them back.
pub fn pause(shared: &Shared, pause: bool) {
    let (from, to, word) = match pause {
        true => (FrontState::Open, FrontState::Paused, "Paused"),
        false => (FrontState::Paused, FrontState::Open, "Resumed"),
    };
    for (index, proxy) in living(shared).filter(|(_, p)| p.is_frontend) {
        if proxy.state.front.state() != from {
            continue;
        }
        proxy.state.front.set_state(to);
        let noun = if proxy.is_backend { "proxy" } else { "frontend" };
        worker::with_worker(|w| tell(w, index, WARNING, &format!("{word} {noun} {}.", proxy.name)));
    }
    if !shared.program.global.cli.is_empty() {
        let paused = &shared.program.world.process.cli_paused;
        if paused.swap(pause, Relaxed) != pause {
            worker::with_worker(|w| lines::console(w, "WARNING", &format!("{word} frontend GLOBAL.")));
        }
    }
    worker::with_worker(|w| engine::worker::on_all(w, |w| w.stop.raise()));
}

/// A soft stop: frontends end, and all proxies are said to.
pub fn stopped(shared: &Shared) {
    let mut all: Vec<_> = living(shared).collect();
    all.sort_by_key(|(_, p)| p.binds.is_empty());
    for (index, proxy) in all {
        let front = proxy.state.front.counters.sum(|c| &c.connections);
        let back = proxy.state.back.counters.sum(|c| &c.sessions);
        let text = format!("Proxy {} stopped (cumulated conns: FE: {front}, BE: {back}).", proxy.name);
        worker::with_worker(|w| tell(w, index, WARNING, &text));
        if proxy.is_frontend {
            proxy.state.front.set_state(FrontState::Stopped);
        }
    }
}

/// A line about the process.
fn tell_all(word: &str, level: u8, text: &str) {
    worker::with_worker(|worker| {
        lines::console(worker, word, text);
        lines::global_line(worker, level, text);
    });
}

/// `grace`: a soft stop was asked for and does not begin yet.
pub fn grace_begins(grace: Duration) {
    tell_all("NOTICE", WARNING, &format!("Scheduling a soft-stop in {} ms.", grace.as_millis()));
}

/// `grace` is over.
pub fn grace_ends() {
    tell_all("NOTICE", NOTICE, "Grace period expired, proceeding with soft-stop now.");
}

/// `hard-stop-after`: connections that are still there are closed.
pub fn hard_stopped(shared: &Shared) {
    tell_all("WARNING", WARNING, "soft-stop running for too long, performing a hard-stop.");
    for (index, proxy) in living(shared) {
        let left = proxy.state.front.current.load(Relaxed);
        if left > 0 {
            let text = format!("Proxy {} hard-stopped ({left} remaining conns will be closed).", proxy.name);
            worker::with_worker(|w| tell(w, index, WARNING, &text));
        }
    }
}

/// SIGUSR2 asks a master process to reload; here nothing happens, which must not look like success.
pub fn no_reload() {
    worker::with_worker(|worker| {
        let text = "SIGUSR2 received, but this process has no master ('-W'): the configuration was not read again. To reload, start a new process with '-sf'.";
        lines::console(worker, "WARNING", text);
    });
}
