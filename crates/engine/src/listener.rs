//! Accepting connections: one task for each listening socket on each worker.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use model::proxy::FrontState;
use program::Bind;
use rt::{Acceptor, Addr, ListenOptions, Listener, Socket};

use crate::{Worker, session};

/// How long accepting rests when descriptors or memory ran out, or a limit is reached and no one says when it isn't.
const REST: Duration = Duration::from_millis(100);

/// Opens the socket of a `bind` line.
///
/// # Errors
/// What the system says.
pub fn open(bind: &Bind, backlog: u32) -> io::Result<Listener> {
    match crate::net::listen(&bind.address) {
        Some(addr) => Listener::bind(&addr, &options(bind, backlog)),
        None => Err(io::Error::new(io::ErrorKind::Unsupported, "inherited sockets are opened by the binary")),
    }
}

/// What the socket of a `bind` line is opened with.
pub fn options(bind: &Bind, backlog: u32) -> ListenOptions {
    ListenOptions {
        backlog,
        transparent: bind.transparent,
        interface: bind.interface.as_deref().map(str::to_owned),
        v6only: bind.v6only,
        mss: bind.mss.and_then(|m| u16::try_from(m.unsigned_abs()).ok()),
        defer_accept: bind.defer_accept.then_some(Duration::from_secs(1)),
        fastopen: bind.tfo.then_some(backlog),
        user_timeout: bind.tcp_ut,
        md5sig: bind.md5sig.as_deref().map(|k| k.as_bytes().to_vec()),
        congestion: bind.congestion.as_deref().map(str::to_owned),
        mode: bind.unix.mode,
        uid: bind.unix.uid,
        gid: bind.unix.gid,
        ..ListenOptions::default()
    }
}

/// Accepts the connections of one listener on this worker until the process stops or its frontend is shut down.
pub async fn run(worker: Rc<Worker>, frontend: u32, index: u32, listener: Listener) {
    let Ok(acceptor) = listener.attach() else { return };
    let program = worker.shared.program.clone();
    let state = || program.proxy(frontend).state.front.state();
    let gone = || program.world.process.stopping.load(Relaxed) || state() == FrontState::Stopped;
    while !gone() {
        if state() == FrontState::Paused {
            pause(&worker, frontend, index, &acceptor, gone).await;
            continue;
        }
        if !has_room(&worker, frontend, index) {
            rest(&worker, &acceptor).await;
            continue;
        }
        let next = poll_fn(|cx| {
            if worker.stop.poll_changed(cx) && gone() {
                return Poll::Ready(None);
            }
            if state() == FrontState::Paused {
                // Disabled while this task waited.
                return Poll::Ready(Some(Err(io::ErrorKind::WouldBlock.into())));
            }
            acceptor.poll_accept(cx).map(Some)
        });
        match next.await {
            None => break,
            Some(Ok((socket, peer))) => admit(&worker, frontend, index, socket, peer.as_ref()),
            Some(Err(e)) if is_exhausted(&e) => {
                crate::log::proxy_line(
                    &worker,
                    frontend,
                    crate::log::ALERT,
                    &format!("accept: {e}; resting"),
                );
                rest(&worker, &acceptor).await;
            }
            // The connection was gone before it was accepted.
            Some(Err(_)) => {}
        }
    }
    if state() == FrontState::Stopped {
        let _ = listener.shutdown();
    }
}

fn is_exhausted(e: &io::Error) -> bool {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM
    matches!(e.raw_os_error(), Some(24 | 23 | 105 | 12))
}

/// A disabled frontend gives up its ports, so that another process may have them, until it is enabled again. Each worker
/// does so for itself: doing it twice changes nothing, and who gave a port up takes it back.
async fn pause(worker: &Worker, frontend: u32, index: u32, acceptor: &Acceptor, gone: impl Fn() -> bool) {
    let proxy = worker.shared.program.proxy(frontend);
    let listener = acceptor.listener();
    let _ = acceptor.pause();
    let _ = listener.suspend();
    while proxy.state.front.state() == FrontState::Paused && !gone() {
        rt::sleep(REST).await;
    }
    let backlog = crate::run::backlog(proxy, &proxy.binds[index as usize]);
    if let Err(e) = listener.restore(backlog) {
        let text = format!("cannot listen again: {e}");
        crate::log::proxy_line(worker, frontend, crate::log::ALERT, &text);
    }
    let _ = acceptor.resume();
}

async fn rest(worker: &Worker, acceptor: &Acceptor) {
    let _ = acceptor.pause();
    let mut timer = rt::Timer::at(rt::now() + REST);
    poll_fn(|cx| match worker.freed.poll_notified(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => timer.poll_expired(cx),
    })
    .await;
    let _ = acceptor.resume();
}

/// Whether the limits of process, frontend and listener allow one more connection now.
fn has_room(worker: &Worker, frontend: u32, index: u32) -> bool {
    let program = &worker.shared.program;
    let proxy = program.proxy(frontend);
    let process = &program.world.process;
    let front = &proxy.state.front;
    let bind = &proxy.binds[index as usize];
    let under = |current: u32, limit: u32| limit == 0 || current < limit;
    let now = rt::now().as_millis();
    front.state() == FrontState::Open
        && under(process.connections.load(Relaxed), process.maxconn.load(Relaxed))
        && under(front.current.load(Relaxed), front.maxconn.load(Relaxed))
        && under(bind.state.current.load(Relaxed), bind.maxconn)
        && (proxy.rate_limit == 0 || front.session_rate.read(now) < u64::from(proxy.rate_limit))
        && rate_allows(&process.conn_rate, process.conn_rate_limit.load(Relaxed), now)
        && rate_allows(&process.sess_rate, process.sess_rate_limit.load(Relaxed), now)
        && (bind.tls.is_none() || crate::secure::admits(process, now))
}

fn rate_allows(rate: &base::rate::PeakRate, limit: u32, now_ms: u64) -> bool {
    limit == 0 || rate.read(now_ms) < u64::from(limit)
}

fn admit(worker: &Rc<Worker>, frontend: u32, index: u32, socket: Socket, peer: Option<&Addr>) {
    let src = crate::net::peer(peer);
    session::start(worker.clone(), frontend, index, socket, src);
}

/// A flag that several tasks of a worker watch: the process is stopping, or a limit changed.
#[derive(Default)]
pub struct Change {
    raised: Cell<u32>,
    watchers: std::cell::RefCell<Vec<rt::TaskId>>,
}

impl Change {
    /// Wakes all watchers.
    pub fn raise(&self) {
        self.raised.set(self.raised.get() + 1);
        for task in self.watchers.take() {
            task.wake();
        }
    }

    /// Whether it was ever raised.
    pub fn is_raised(&self) -> bool {
        self.raised.get() > 0
    }

    /// Watches from the task at hand; whether it was ever raised.
    pub fn poll_changed(&self, cx: &mut std::task::Context<'_>) -> bool {
        if let Some(task) = rt::TaskId::of(cx.waker()) {
            let mut watchers = self.watchers.borrow_mut();
            if !watchers.contains(&task) {
                watchers.push(task);
            }
        }
        self.raised.get() > 0
    }
}
