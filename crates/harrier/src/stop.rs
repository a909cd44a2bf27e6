//! Signals, and how a process ends: at once, or when the last connection is done.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::{Shared, run};
use model::proxy::FrontState;
use rt::Peers;
use rt::sys::{Signal, Signals};

/// How often the end of a soft stop is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Obeys signals on this worker until the process ends.
pub async fn obey(shared: Arc<Shared>, peers: Peers) {
    let Ok(mut signals) = Signals::open() else { return };
    loop {
        match signals.next().await {
            Signal::Term | Signal::Int => return now(&peers),
            Signal::Usr1 => {
                rt::spawn(softly(shared.clone(), peers.clone()));
            }
            Signal::Ttou => pause(&shared, FrontState::Open, FrontState::Paused),
            Signal::Ttin => pause(&shared, FrontState::Paused, FrontState::Open),
            Signal::Hup => show_state(&shared),
            Signal::Usr2 | Signal::Quit | Signal::Chld => {}
        }
    }
}

fn now(peers: &Peers) {
    for worker in 0..peers.count() {
        peers.send_to(worker, Box::new(run::hard_stop));
    }
}

/// Stops accepting, waits for the last connection or `hard-stop-after`, then ends.
async fn softly(shared: Arc<Shared>, peers: Peers) {
    let global = &shared.program.global;
    let process = &shared.program.world.process;
    if process.stopping.swap(true, Relaxed) {
        return;
    }
    if let Some(grace) = global.grace {
        // Old connections and new ones are served as before until the grace is over.
        process.stopping.store(false, Relaxed);
        rt::sleep(grace).await;
        process.stopping.store(true, Relaxed);
    }
    announce(&shared);
    for worker in 0..peers.count() {
        peers.send_to(worker, Box::new(run::soft_stop));
    }
    let deadline = global.hard_stop_after.map(|d| rt::now() + d);
    while process.connections.load(Relaxed) > 0 && deadline.is_none_or(|d| rt::now() < d) {
        rt::sleep(LOOK).await;
    }
    now(&peers);
}

fn announce(shared: &Shared) {
    let pid = std::process::id();
    for proxy in shared.program.proxies.iter().filter(|p| !p.disabled) {
        let fe = proxy.state.front.counters.sum(|c| &c.sessions);
        let be = proxy.state.back.counters.sum(|c| &c.sessions);
        let text = format!("Proxy {} stopped (cumulated conns: FE: {fe}, BE: {be}).", proxy.name);
        eprintln!("[WARNING]  ({pid}) : {text}");
        if proxy.is_frontend {
            proxy.state.front.set_state(FrontState::Stopped);
        }
    }
}

fn pause(shared: &Shared, from: FrontState, to: FrontState) {
    for proxy in shared.program.proxies.iter().filter(|p| p.is_frontend && !p.disabled) {
        if proxy.state.front.state() == from {
            proxy.state.front.set_state(to);
        }
    }
}

/// SIGHUP: the state of all proxies and servers goes to the logs.
fn show_state(shared: &Shared) {
    run::with_worker(|worker| {
        for (i, proxy) in (0u32..).zip(&shared.program.proxies) {
            let text = if proxy.is_backend && !proxy.servers.is_empty() {
                let up = proxy.servers.iter().filter(|s| s.state.is_up()).count();
                format!("SIGHUP: Proxy {} has {} active servers of {}.", proxy.name, up, proxy.servers.len())
            } else {
                format!("SIGHUP: Proxy {} is {:?}.", proxy.name, proxy.state.front.state())
            };
            engine::log::proxy_line(worker, i, engine::log::NOTICE, &text);
        }
    });
}
