//! Starting and stopping: sockets are opened before threads exist, then each worker accepts on them.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use program::{Bind, Proxy};
use rt::Listener;

use crate::{Shared, Worker, listener, pool};

thread_local! {
    static WORKER: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

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
            match open(bind, backlog(&proxy, bind)) {
                Ok(listener) => opened.push(Opened { proxy: p, bind: b, listener }),
                Err(e) => failed.push((p, b, e)),
            }
        }
    }
    (opened, failed)
}

/// How many connections may wait to be accepted.
pub fn backlog(proxy: &Proxy, bind: &Bind) -> u32 {
    let maxconn = if bind.maxconn > 0 { bind.maxconn } else { proxy.state.front.maxconn.load(Relaxed) };
    bind.backlog.or(proxy.backlog).unwrap_or(maxconn.max(1024))
}

/// Makes this thread a worker: accepts on its share of the sockets. Called inside the runtime.
pub fn start_worker(index: usize, shared: Arc<Shared>, opened: Vec<Opened>) -> Rc<Worker> {
    let worker = Worker::new(index, shared);
    for o in opened {
        let bind = &worker.shared.program.configured(o.proxy).binds[o.bind as usize];
        if bind.threads == 0 || bind.threads & (1 << (index % 64)) != 0 {
            rt::spawn(listener::run(worker.clone(), o.proxy, o.bind, o.listener));
        }
    }
    rt::spawn(pool::sweeper(worker.clone()));
    crate::check::start(&worker);
    crate::responder::start(&worker);
    crate::log::forward::start(&worker);
    WORKER.set(Some(worker.clone()));
    worker
}

/// Runs `f` with the worker of this thread, if it is one. Jobs from other threads reach it so.
pub fn with_worker<R>(f: impl FnOnce(&Rc<Worker>) -> R) -> Option<R> {
    WORKER.with_borrow(|w| w.as_ref().map(f))
}

/// Stops accepting on this worker; connections go on until they are done.
pub fn soft_stop() {
    with_worker(|w| {
        w.stopped.set(Some(rt::now()));
        w.stop.raise();
        rt::spawn(crate::sessions::send_away(w.clone()));
    });
}

/// Ends this worker's loop at once.
pub fn hard_stop() {
    WORKER.set(None);
    rt::stop_worker();
}
