//! Starting and stopping: sockets are opened before threads exist, then each worker accepts on them.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use farm::FarmWorker;
use model::term::Cause;
use model::world::profiling;
use program::Bind;
use rt::Listener;

use crate::applets::AppletKind;
use crate::worker::{Moves, with_worker};
use crate::{Shared, Worker, listener, worker};

mod above;

/// A listening socket and whose it is.
#[derive(Clone)]
pub struct Opened {
    /// Proxy, as an index of the program.
    pub proxy: u32,
    /// Bind line, as an index of the proxy.
    pub bind: u32,
    /// The socket.
    pub listener: Listener,
}

/// Opens all listening sockets of a program. Those that can't be opened are named with their reason.
pub fn open_all(
    shared: &Shared,
    mut open: impl FnMut(&Bind, u32) -> io::Result<Listener>,
) -> (Vec<Opened>, Vec<(u32, u32, io::Error)>) {
    let (mut opened, mut failed) = (Vec::new(), Vec::new());
    for (p, proxy) in shared.program.proxies.numbered() {
        if proxy.disabled || !proxy.is_frontend {
            continue;
        }
        for (b, bind) in (0u32..).zip(&proxy.binds) {
            match open(bind, listener::backlog(&proxy, bind)) {
                Ok(listener) => opened.push(Opened { proxy: p, bind: b, listener }),
                Err(e) => failed.push((p, b, e)),
            }
        }
    }
    (opened, failed)
}

/// Makes this thread a worker: accepts on its share of the sockets. Called inside the runtime.
pub fn start_worker(index: usize, shared: Arc<Shared>, opened: Vec<Opened>) -> Rc<Worker> {
    let worker = Worker::new(index, shared, Box::new(above::ToWorker));
    begin(&worker, opened);
    worker
}

/// Begins what a configuration does on this worker.
fn begin(worker: &Rc<Worker>, opened: Vec<Opened>) {
    for o in opened {
        let bind = &worker.shared.program.configured(o.proxy).binds[o.bind as usize];
        if bind.threads.has(worker.index) {
            rt::spawn(listener::run(worker.clone(), o.proxy, o.bind, o.listener));
        }
    }
    worker.keep(sweeper(worker.clone()));
    worker.farm.start();
    crate::responder::start(worker);
    let tasks = crate::sinks::forward::start(worker.index, &worker.shared.program, &worker.shared.rings);
    worker.keep_tasks(tasks);
    worker::enter(worker);
}

/// Has another configuration take the place of the one that runs on this worker: requests under way go on,
/// whatever comes next is served by the new one. `opened` are its new sockets, `moves` says what becomes of
/// the others.
pub fn switch(shared: Arc<Shared>, opened: Vec<Opened>, moves: Arc<Moves>) -> Option<Rc<Worker>> {
    let old = with_worker(Rc::clone)?;
    let measured = shared.program.world.process.profiling.load(Relaxed) == profiling::ON;
    rt::measure_waits(measured);
    let new = old.succeed(shared, Box::new(above::ToWorker));
    old.farm.hand_over(&new.farm);
    old.supersede(&new, moves);
    begin(&new, opened);
    // Those who accept, and clients between two requests, look where they belong now.
    new.stop.raise();
    new.freed.raise();
    new.sessions.all().iter().for_each(|session| session.look());
    new.applets.wake(AppletKind::Syslog);
    // Who accepts goes from each configuration to the next one: none may be gone before all have looked,
    // though two follow each other at once.
    rt::spawn(async move {
        for _ in 0..2 {
            rt::yield_now().await;
        }
        drop(old);
    });
    Some(new)
}

/// How many expired entries of a stick table a sweep takes from each shard at most.
const SWEPT: usize = 4096;

/// Looks through what this worker keeps once a second, for ever; through the connections that rest more
/// often where a `pool-purge-delay` is shorter.
async fn sweeper(worker: Rc<Worker>) {
    let program = worker.shared.program.clone();
    let second = Duration::from_secs(1);
    let mut tables = rt::now() + second;
    let mut next = tables;
    loop {
        rt::sleep_until(next).await;
        let now = rt::now();
        let due = worker.farm.pools.sweep(&program, now, worker.index == 0);
        if now >= tables {
            sweep_tables(&worker);
            tell_of_rings(&worker);
            tables = now + second;
        }
        // Not more often than a timer can tell apart.
        next = due.map_or(tables, |due| due.max(now + Duration::from_millis(10)).min(tables));
    }
}

/// Tells what happened to the files of rings: one worker does.
fn tell_of_rings(worker: &Worker) {
    if worker.index != 0 {
        return;
    }
    let shared = &worker.shared;
    for (settings, ring) in shared.program.rings.iter().zip(&shared.rings) {
        if let Some(trouble) = ring.trouble() {
            let text = format!("ring '{}' {trouble}.", settings.name);
            crate::lines::console(worker, "WARNING", &text);
            crate::lines::global_line(worker, program::log::level::WARNING, &text);
        }
    }
}

/// Frees the memory of expired entries: each worker cares for some of the tables.
fn sweep_tables(worker: &Worker) {
    let program = &worker.shared.program;
    let workers = program.world.workers.max(1);
    let stopping = program.world.process.stopping.load(Relaxed);
    for table in program.tables.iter().skip(worker.index).step_by(workers).filter(|_| !stopping) {
        table.sweep(rt::now().as_millis(), SWEPT);
    }
}

/// Stops accepting on this worker; connections go on until they are done.
pub fn soft_stop() {
    with_worker(|w| {
        w.stopped.set(Some(rt::now()));
        w.stop.raise();
        rt::spawn(crate::departure::send_away(w.clone()));
    });
}

/// Ends the requests and sessions of this worker, which say so in their log lines.
pub fn end_sessions() {
    with_worker(|w| w.sessions.kill(Cause::Killed, |s| s.streams.get() > 0));
}

/// Ends this worker's loop at once.
pub fn hard_stop() {
    FarmWorker::stop();
    worker::leave();
    rt::stop_worker();
}
