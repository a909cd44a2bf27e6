//! Signals, and how a process ends: at once, or when the last connection is done.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::Duration;

use engine::{Shared, run};
use rt::Peers;
use rt::sys::{Signal, Signals};

use crate::{say, state};

/// How often the end of a soft stop is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Obeys signals on this worker until the process ends.
pub async fn obey(shared: Arc<Shared>, peers: Peers) {
    let Ok(mut signals) = Signals::open() else { return };
    loop {
        let signal = signals.next().await;
        // It may be another one by now.
        let shared = engine::worker::with_worker(|w| w.shared.clone()).unwrap_or_else(|| shared.clone());
        match signal {
            signal @ (Signal::Term | Signal::Int) => {
                ASKED.store(signal.number(), Relaxed);
                admin::shm::leave(&shared, false);
                return now(&peers);
            }
            Signal::Usr1 => {
                rt::spawn(softly(shared.clone(), peers.clone()));
            }
            Signal::Ttou => state::pause(&shared, true),
            Signal::Ttin => state::pause(&shared, false),
            Signal::Hup => state::report(&shared),
            // Buffers that nobody uses go back to the system.
            Signal::Quit => trim(&peers),
            Signal::Usr2 if shared.program.global.master.in_place => reload(&shared),
            Signal::Usr2 => state::no_reload(),
            Signal::Chld => {}
        }
    }
}

/// `reload in-place` without a master: SIGUSR2 is for this process.
fn reload(shared: &Shared) {
    if let Some(reloader) = &shared.reloader {
        let tell = |came: engine::worker::Reloaded| {
            say::error(&came.text);
            match came.success {
                true => say::notice("The configuration was adopted in place."),
                false => say::warning("Reload in place failed: nothing has changed."),
            }
        };
        reloader.reload(false, Box::new(tell));
    }
}

/// The signal that ended the process at once; 0: none.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// The master is gone, and nobody would reload or stop this process any more: it ends at once.
pub fn orphaned(peers: &Peers) {
    say::warning("The master process is gone: this worker ends.");
    FAILED.store(true, Relaxed);
    now(peers);
}

/// The process ends because something failed.
static FAILED: AtomicBool = AtomicBool::new(false);

fn trim(peers: &Peers) {
    for worker in 0..peers.count() {
        peers.send_to(worker, Box::new(rt::trim_bufs));
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
    if let Some(grace) = global.grace {
        if process.in_grace.swap(true, Relaxed) {
            return;
        }
        // Old connections and new ones are served as before until the grace is over.
        state::grace_begins(grace);
        rt::sleep(grace).await;
        state::grace_ends();
    }
    if process.stopping.swap(true, Relaxed) {
        return;
    }
    // Whoever comes after this process needs the processor more, and knows at once what was counted here.
    rt::set_sleepless(false);
    admin::shm::refresh(&shared);
    state::stopped(&shared);
    for worker in 0..peers.count() {
        peers.send_to(worker, Box::new(run::soft_stop));
    }
    let deadline = global.hard_stop_after.map(|d| rt::now() + d);
    let busy = || process.connections.load(Relaxed) > 0 || process.accepting.load(Relaxed) > 0;
    while busy() && deadline.is_none_or(|d| rt::now() < d) {
        rt::sleep(LOOK).await;
    }
    if busy() {
        state::hard_stopped(&shared);
    }
    admin::shm::leave(&shared, true);
    now(&peers);
}

/// How the process ends once its workers have: by the signal that asked for it, so that whoever waits for it
/// sees what HAProxy would have shown.
pub fn leave() -> ExitCode {
    let number = ASKED.load(Relaxed);
    if number != 0 {
        let _ = rt::sys::unblock_signals();
        let _ = rt::sys::kill(std::process::id().cast_signed(), number);
    }
    if FAILED.load(Relaxed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
