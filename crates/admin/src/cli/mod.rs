//! The runtime API: a line protocol on Unix and TCP sockets (management manual, 9.3).
//!
//! A connection gives one line of commands and is closed after the answers, unless it asked for a prompt or
//! the interactive mode. Each answer ends with an empty line, whatever it holds, so that a script finds its
//! end. A connection is a task of the worker that accepted it; commands that concern other workers ask them
//! ([`crate::gather`]).

pub mod anon;
pub mod call;
pub mod date;
mod follow;
mod handover;
pub mod line;
mod secure;
pub(crate) mod speak;
pub mod table;

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use engine::applets::{AppletDoor, AppletEnd, AppletKind};
use engine::worker::enter_applet;
use engine::{Worker, listener};
use link::header;
use link::transport::Transport;
use model::Peer;
use program::Bind;
use program::global::Tune;
use program::listener::{Level, Severity};
use rt::{Listener, Notify, Socket, Timer};

use call::Client;

/// How long accepting rests when the system has no descriptors left.
const REST: Duration = Duration::from_millis(100);

/// How long what comes before everything else may take (`accept-proxy`, a handshake).
const HEADER: Duration = Duration::from_secs(5);

/// Connections at a time unless `stats maxconn` says otherwise.
const MAX_CLIENTS: u32 = 10;

struct Door {
    clients: Cell<u32>,
    freed: Notify,
}

/// Counts a connection while it lasts.
struct Guest(Rc<Door>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.clients.set(self.0.clients.get().saturating_sub(1));
        self.0.freed.notify();
    }
}

/// Serves the runtime API on a socket until the process stops or a configuration runs that does not have it.
/// `index` is that of its line.
pub async fn serve(mut worker: Rc<Worker>, listener: Listener, mut index: usize) {
    let Ok(acceptor) = listener.attach() else { return };
    let world = worker.shared.program.world.clone();
    let limit = |worker: &Worker| match worker.shared.program.global.cli_maxconn {
        0 => MAX_CLIENTS,
        n => n,
    };
    let door = Rc::new(Door { clients: Cell::new(0), freed: Notify::new() });
    loop {
        while worker.is_superseded() {
            let moved = worker.moves().and_then(|moves| moves.cli.get(&index).copied());
            let (Some(to), Some(next)) = (moved, worker.next()) else { return };
            (worker, index) = (next, to);
        }
        if door.clients.get() >= limit(&worker) {
            // Also woken when another configuration runs: whoever misses one finds no way to the next.
            poll_fn(|cx| match worker.stop.poll_changed(cx) && worker.is_superseded() {
                true => Poll::Ready(()),
                false => door.freed.poll_notified(cx),
            })
            .await;
            continue;
        }
        let process = &world.process;
        let stopping = || process.stopping.load(Relaxed);
        let paused = || process.cli_paused.load(Relaxed) && !stopping();
        if paused() {
            let _ = acceptor.pause();
            poll_fn(|cx| {
                let _ = worker.stop.poll_changed(cx);
                if paused() && !worker.is_superseded() { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            let _ = acceptor.resume();
        }
        let next = poll_fn(|cx| {
            let changed = worker.stop.poll_changed(cx);
            if changed && stopping() {
                return Poll::Ready(None);
            }
            if changed && (paused() || worker.is_superseded()) {
                return Poll::Ready(Some(Err(io::ErrorKind::Interrupted.into())));
            }
            acceptor.poll_accept(cx).map(Some)
        });
        match next.await {
            None => return,
            Some(Ok((socket, peer))) => {
                let wanted = !listener::is_unwanted(&worker, link::address::peer(peer.as_ref()));
                if let Some(bind) = worker.shared.program.global.cli.get(index).filter(|_| wanted) {
                    admit(&worker, &door, bind, socket, link::address::peer(peer.as_ref()));
                }
            }
            Some(Err(e)) if is_transient(&e) => {}
            Some(Err(_)) => rt::sleep(REST).await,
        }
    }
}

fn is_transient(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

fn admit(worker: &Rc<Worker>, door: &Rc<Door>, bind: &Bind, socket: Socket, peer: Peer) {
    door.clients.set(door.clients.get() + 1);
    let guest = Guest(door.clone());
    let client = client_of(worker, bind);
    let (worker, bind) = (worker.clone(), bind.clone());
    rt::spawn(async move {
        let entry = enter_applet(place(Some(bind.state.clone())), peer, local(&socket));
        if let Some((socket, input)) = begin(socket, &bind, &worker.shared.program.global.tune).await {
            speak::converse(worker, socket, client, input).await;
        }
        drop((guest, entry));
    });
}

/// Where the runtime API is entered.
fn place(listener: Option<Arc<model::proxy::Listener>>) -> AppletDoor {
    let (kind, section) = (AppletKind::Cli, "GLOBAL".into());
    AppletDoor { kind, section, id: 0, mode: "tcp", listener, end: AppletEnd::Drop }
}

/// This end of a connection.
fn local(socket: &Socket) -> Peer {
    link::address::peer(socket.local_addr().ok().as_ref())
}

/// A connection that has brought what it has to begin with (a header, a TLS handshake), and what came behind
/// that. Behind TLS it is the plain end of it. `None`: something was missing.
pub async fn begin(socket: Socket, bind: &Bind, tune: &Tune) -> Option<(Socket, Vec<u8>)> {
    let mut input = Vec::new();
    let headers = (bind.accept_proxy, bind.accept_cip);
    if !bind.accept_proxy && bind.accept_cip.is_none() && bind.tls.is_none() {
        return Some((socket, input));
    }
    let transport = Transport::from(socket);
    let mut timer = Timer::new();
    timer.set_after(Some(HEADER));
    header::pass(&transport, headers, &mut input, &mut timer).await.ok()?;
    if let Some(acceptor) = &bind.tls {
        let sizes = farm::secure::sizes(tune);
        let plain = secure::accept(transport, acceptor, sizes, &input, &mut timer).await?;
        return Some((plain, Vec::new()));
    }
    Some((transport.into_plain().ok()?, input))
}

fn client_of(worker: &Worker, bind: &Bind) -> Client {
    let timeout = worker.shared.program.global.cli_timeout.or(Some(Duration::from_secs(10)));
    // Descriptors don't pass through TLS.
    let exposes = bind.expose_sockets && bind.tls.is_none();
    Client { exposes, ..Client::new(bind.level, bind.severity, timeout) }
}

/// Serves the runtime API on the line to the master process, also while this process leaves. `gone` is called
/// when the master is no more.
pub async fn serve_master(worker: Rc<Worker>, line: Listener, gone: impl FnOnce()) {
    let Ok(acceptor) = line.attach() else { return gone() };
    loop {
        match acceptor.accept().await {
            Ok((socket, _)) => {
                let client = Client {
                    exposes: true,
                    is_master: true,
                    ..Client::new(Level::Admin, Severity::None, None)
                };
                let worker = worker.current();
                rt::spawn(async move {
                    let entry = enter_applet(place(None), Peer::Unix, Peer::Unix);
                    speak::converse(worker, socket, client, Vec::new()).await;
                    drop(entry);
                });
            }
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return gone(),
            Err(e) if is_transient(&e) => {}
            Err(_) => rt::sleep(REST).await,
        }
    }
}

/// Runs one command for somebody who has no connection to this process, and returns its answer.
pub async fn run(
    worker: &Rc<Worker>,
    client: &mut Client,
    words: Vec<String>,
    payload: Option<&str>,
) -> String {
    let line = line::Line { commands: vec![words], payload_end: None };
    let mut out = String::new();
    speak::answer_line(worker, None, client, &line, payload, &mut out).await;
    out
}

/// Runs one command at once, with all rights, for whoever can't wait: one that would have to wait for other
/// workers gives what it has by then, which is nothing. `show info` tells of this worker what it would ask
/// others for (tasks, their queue, buffers).
pub fn run_at_once(worker: &Rc<Worker>, words: Vec<String>) -> String {
    if words == ["show", "info"] {
        return crate::command::process::info_of(worker);
    }
    let mut client = Client::new(Level::Admin, Severity::None, None);
    let mut work = std::pin::pin!(run(worker, &mut client, words, None));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match work.as_mut().poll(&mut cx) {
        Poll::Ready(text) => text,
        Poll::Pending => String::new(),
    }
}
