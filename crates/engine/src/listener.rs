//! Accepting connections: one task for each listening socket on each worker.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use model::Peer;
use model::proxy::{Front, FrontState};
use model::world::Process;
use program::address::Listen;
use program::{Bind, Proxy};
use rt::{Acceptor, ListenOptions, Listener};

use crate::admission::Admission;
use crate::{Worker, session};

/// How long accepting rests when descriptors or memory ran out, or a limit is reached and no one says when it
/// isn't.
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
        namespace: bind.namespace,
        v6only: bind.v6only,
        mptcp: bind.mptcp,
        // Linux takes no smaller one once a connection stands, which is what one below zero asks for.
        mss: bind.mss.and_then(|m| u16::try_from(m).ok()),
        defer_accept: bind.defer_accept.then_some(Duration::from_secs(1)),
        fastopen: bind.tfo.then_some(backlog),
        user_timeout: bind.tcp_ut,
        md5sig: bind.md5sig.as_deref().map(|k| k.as_bytes().to_vec()),
        save_syn: (bind.save_syn > 0).then_some(bind.save_syn),
        mode: bind.unix.mode,
        uid: bind.unix.uid,
        gid: bind.unix.gid,
        ..ListenOptions::default()
    }
}

/// Accepts the connections of one listener on this worker until the process stops or its frontend is shut
/// down.
pub async fn run(worker: Rc<Worker>, frontend: u32, index: u32, listener: Listener) {
    let Ok(acceptor) = listener.attach() else { return };
    // From here on only acceptors hold the socket, so that it is closed when the last worker has left it.
    drop(listener);
    let mut accepting = Accepting::begin(&worker, frontend);
    if let Some(bind) = worker.shared.program.configured(frontend).binds.get(index as usize) {
        bind.state.socket.store(acceptor.number(), Relaxed);
    }
    let mut door = Door { worker, frontend, index, acceptor, row: Cell::new(0) };
    loop {
        // First of all: a frontend that is gone is stopped, and its socket may be another's now.
        if door.worker.is_superseded() {
            if !door.follow() {
                break;
            }
            accepting = Accepting::begin(&door.worker, door.frontend);
        }
        if door.is_closed() {
            break;
        }
        if door.state() == FrontState::Paused || door.acceptor.is_suspended() {
            door.pause().await;
        } else if !door.serve().await {
            door.rest().await;
        }
    }
    door.drain().await;
    drop(accepting);
}

/// Counts the tasks that accept, in all and for a frontend: a process that stops softly waits for their end,
/// and so does whoever shuts a frontend down.
struct Accepting(Rc<Worker>, u32);

impl Accepting {
    fn begin(worker: &Rc<Worker>, frontend: u32) -> Accepting {
        worker.shared.program.world.process.accepting.fetch_add(1, Relaxed);
        worker.shared.program.configured(frontend).state.front.holding.fetch_add(1, Relaxed);
        Accepting(worker.clone(), frontend)
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        let program = &self.0.shared.program;
        program.world.process.accepting.fetch_sub(1, Relaxed);
        program.configured(self.1).state.front.holding.fetch_sub(1, Relaxed);
    }
}

fn is_exhausted(e: &io::Error) -> bool {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM
    matches!(e.raw_os_error(), Some(24 | 23 | 105 | 12))
}

/// How long a listening socket is kept after new connections go to another process: so long may a client take
/// that was answered before.
const LINGER: Duration = Duration::from_millis(300);

/// How long connections are accepted at most after a soft stop, if the queue is never empty: where another
/// process listens that is a busy machine, and nothing may be lost; where none does they would come without
/// end.
const QUEUE_YIELDED: Duration = Duration::from_secs(5);
const QUEUE_ALONE: Duration = Duration::from_millis(100);

/// One worker's share in a listener.
struct Door {
    worker: Rc<Worker>,
    frontend: u32,
    index: u32,
    acceptor: Acceptor,
    /// Connections accepted since others had their turn.
    row: Cell<u32>,
}

/// Whether a client's port is one of those that only privileged programs use, and these are to be rejected
/// (`harden.reject-privileged-ports.tcp`).
pub fn is_unwanted(worker: &Worker, src: Peer) -> bool {
    worker.shared.program.global.reject_privileged_ports && src.port().is_some_and(|port| port < 1024)
}

/// What came of looking for a connection.
enum Next {
    /// One was accepted: its session begins, unless it is not wanted.
    Taken,
    /// The connection was gone before it was accepted, or something else failed that passes.
    Failed,
    /// There is one, and no room for it.
    Full,
    /// Out of descriptors or memory.
    Exhausted(io::Error),
}

impl Door {
    fn proxy(&self) -> &Proxy {
        self.worker.shared.program.configured(self.frontend)
    }

    fn bind(&self) -> &Bind {
        &self.proxy().binds[self.index as usize]
    }

    fn state(&self) -> FrontState {
        self.proxy().state.front.state()
    }

    fn process(&self) -> &Process {
        &self.worker.shared.program.world.process
    }

    /// Whether there is something else to do than to accept.
    fn is_called(&self) -> bool {
        self.is_closed() || self.state() == FrontState::Paused || self.worker.is_superseded()
    }

    /// Goes along to the configuration that runs; whether the listener is in it.
    fn follow(&mut self) -> bool {
        while self.worker.is_superseded() {
            let moved =
                self.worker.moves().and_then(|m| m.frontends.get(&(self.frontend, self.index)).copied());
            let (Some((frontend, index)), Some(next)) = (moved, self.worker.next()) else { return false };
            (self.worker, self.frontend, self.index) = (next, frontend, index);
        }
        true
    }

    fn is_closed(&self) -> bool {
        self.process().stopping.load(Relaxed) || self.state() == FrontState::Stopped
    }

    /// Accepts connections until the frontend is stopped or disabled, or there is no room for more: then
    /// false.
    async fn serve(&self) -> bool {
        let next = poll_fn(|cx| {
            let changed = self.worker.stop.poll_changed(cx);
            // Stopped or disabled while this task waited.
            if changed && self.is_called() {
                return Poll::Ready(None);
            }
            self.poll_next(cx).map(Some)
        });
        match next.await {
            Some(Next::Exhausted(e)) => {
                self.alert(&format!("accept: {e}; resting"));
                false
            }
            Some(Next::Full) => false,
            Some(Next::Taken) => {
                // Others get their turn after so many in a row (`tune.maxaccept`).
                let most = self.worker.shared.program.global.tune.maxaccept;
                self.row.set(self.row.get() + 1);
                if most > 0 && self.row.get() >= most {
                    self.row.set(0);
                    rt::yield_now().await;
                }
                true
            }
            Some(Next::Failed) | None => true,
        }
    }

    /// Takes a connection from the kernel, if there is room for it, and begins its session. It is counted
    /// before it is accepted, so that no other worker takes its place meanwhile.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            ready!(self.acceptor.poll_ready(cx));
            let Some(admission) = Admission::enter(self.proxy(), self.bind(), self.process()) else {
                return Poll::Ready(Next::Full);
            };
            match self.acceptor.try_accept() {
                Ok(Some((socket, peer))) => {
                    let src = link::address::peer(peer.as_ref());
                    if is_unwanted(&self.worker, src) {
                        return Poll::Ready(Next::Taken);
                    }
                    let pending = admission.confirm();
                    session::start(self.worker.clone(), (self.frontend, self.index), pending, socket, src);
                    return Poll::Ready(Next::Taken);
                }
                Ok(None) => {}
                Err(e) if is_exhausted(&e) => return Poll::Ready(Next::Exhausted(e)),
                Err(_) => return Poll::Ready(Next::Failed),
            }
        }
    }

    /// Accepts nothing until room may have come.
    async fn rest(&self) {
        let _ = self.acceptor.pause();
        let mut timer = rt::Timer::at(rt::now() + REST);
        let seen = self.worker.freed.count();
        poll_fn(|cx| {
            let changed = self.worker.stop.poll_changed(cx);
            if changed && self.is_called() || self.worker.freed.poll_raised_since(seen, cx) {
                return Poll::Ready(());
            }
            timer.poll_expired(cx)
        })
        .await;
        let _ = self.acceptor.resume();
    }

    /// A disabled frontend gives up its ports, so that another process may have them, until it is enabled
    /// again.
    async fn pause(&self) {
        let proxy = self.proxy();
        let ports = Ports {
            worker: &self.worker,
            front: &proxy.state.front,
            is_over: &|| self.is_closed(),
            tell: &|trouble| match trouble {
                Trouble::Kept(e) => self.alert(&format!("cannot pause: {e}")),
                Trouble::Busy(e) => self.tell_busy(e),
            },
        };
        let restore = || self.acceptor.restore(backlog(proxy, self.bind()));
        ports.give_up(|| self.acceptor.suspend(), restore).await;
    }

    /// Takes the connections that wait already when the process stops, so that closing the socket resets none
    /// of them. Where another process listens on the same port the kernel is told to leave new ones to it
    /// first, and in the end to let none begin here: reloads that follow one another quickly change the order
    /// by which the kernel knows the others.
    async fn drain(self) {
        let yielded = self.acceptor.listener().yield_to_others();
        let _ = self.acceptor.resume();
        self.empty_queue(yielded).await;
        if yielded && self.acceptor.listener().refuse_new().is_ok() {
            self.empty_queue(true).await;
        }
    }

    /// Accepts what comes until nothing has come for a while, or waits no longer where no other process
    /// listens.
    async fn empty_queue(&self, yielded: bool) {
        let until = rt::now() + if yielded { QUEUE_YIELDED } else { QUEUE_ALONE };
        let mut timer = rt::Timer::at(rt::now() + LINGER);
        loop {
            let seen = self.worker.freed.count();
            let next = poll_fn(|cx| match self.poll_next(cx) {
                Poll::Ready(next) => Poll::Ready(Some(next)),
                Poll::Pending if yielded => timer.poll_expired(cx).map(|()| None),
                Poll::Pending => Poll::Ready(None),
            });
            match next.await {
                Some(Next::Taken | Next::Failed) => {}
                Some(Next::Full) => {
                    let _ = self.acceptor.pause();
                    let mut pause = rt::Timer::at(rt::now() + REST);
                    let freed = poll_fn(|cx| match self.worker.freed.poll_raised_since(seen, cx) {
                        true => Poll::Ready(()),
                        false => pause.poll_expired(cx),
                    });
                    freed.await;
                    let _ = self.acceptor.resume();
                }
                Some(Next::Exhausted(_)) | None => return,
            }
            if rt::now() >= until {
                return;
            }
        }
    }

    fn tell_busy(&self, e: &io::Error) {
        let text = busy(&self.bind().address, &self.proxy().name, e);
        crate::lines::console(&self.worker, "WARNING", &text);
        crate::lines::proxy_line(&self.worker, self.frontend, program::log::level::WARNING, &text);
    }

    fn alert(&self, text: &str) {
        crate::lines::proxy_line(&self.worker, self.frontend, program::log::level::ALERT, text);
    }
}

/// A port that can't be given up, or can't be had again.
pub(crate) enum Trouble<'e> {
    /// It is kept.
    Kept(&'e io::Error),
    /// Somebody has it.
    Busy(&'e io::Error),
}

/// A worker's share in the ports of a frontend, or of a section that is disabled and enabled like one.
pub(crate) struct Ports<'p> {
    pub worker: &'p Rc<Worker>,
    pub front: &'p Front,
    /// Nothing comes in any more.
    pub is_over: &'p dyn Fn() -> bool,
    pub tell: &'p dyn Fn(Trouble<'_>),
}

impl Ports<'_> {
    /// Gives the ports up until the frontend is enabled again, so that another process may have them.
    pub(crate) async fn give_up(
        &self,
        suspend: impl FnOnce() -> io::Result<()>,
        restore: impl FnOnce() -> io::Result<()>,
    ) {
        let Ports { worker, front, .. } = *self;
        let is_paused = || front.state() == FrontState::Paused;
        front.away.fetch_add(1, Relaxed);
        if let Err(e) = suspend() {
            (self.tell)(Trouble::Kept(&e));
        }
        front.holding.fetch_sub(1, Relaxed);
        poll_fn(|cx| {
            let _ = worker.stop.poll_changed(cx);
            let waits = is_paused() && !(self.is_over)() && !worker.is_superseded();
            if waits { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        front.holding.fetch_add(1, Relaxed);
        let ends = (self.is_over)() || is_paused();
        if !ends
            && let Err(e) = restore()
            && front.pause_again()
        {
            (self.tell)(Trouble::Busy(&e));
            // Those that have their ports give them up again.
            crate::worker::on_all(worker, |w| w.stop.raise());
        }
        front.away.fetch_sub(1, Relaxed);
    }
}

/// What is said of a frontend that can't have its port again.
pub(crate) fn busy(address: &Listen, name: &str, e: &io::Error) -> String {
    match (address, e.kind()) {
        (Listen::Tcp(addr), io::ErrorKind::AddrInUse) => {
            format!("Port {} busy while trying to enable frontend {name}.", addr.port())
        }
        _ => format!("Cannot enable frontend {name}: {e}."),
    }
}

/// How many connections may wait to be accepted.
pub fn backlog(proxy: &Proxy, bind: &Bind) -> u32 {
    let maxconn = if bind.maxconn > 0 { bind.maxconn } else { proxy.state.front.maxconn.load(Relaxed) };
    bind.backlog.or(proxy.backlog).unwrap_or(maxconn.max(1024))
}
