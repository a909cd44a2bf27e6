//! Messages that come over streams (RFC 6587), perhaps with TLS.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use farm::secure;
use link::timed;
use link::{handshake, header, transport::Transport};
use model::Peer;
use model::proxy::FrontState;
use program::forward::Forward;
use rt::{Acceptor, Buf, Listener, Socket, Timer};
use tls::Handshake;

use super::{Carrier, REST, Share, arrived, followed};
use crate::applets::{AppletDoor, AppletEnd, AppletKind};
use crate::worker::{Worker, enter_applet};

/// Room for one more connection, which is counted.
struct Room {
    worker: Rc<Worker>,
    section: usize,
    line: usize,
    /// Where it is counted, whatever becomes of the configuration.
    state: Arc<model::Proxy>,
    listener: Arc<model::proxy::Listener>,
}

impl Room {
    /// `None`: there is none.
    fn enter(worker: &Rc<Worker>, section: usize, line: usize) -> Option<Room> {
        let program = &worker.shared.program;
        let forward = program.forwards.get(section)?;
        let bind = forward.binds.get(line)?;
        let or_none = |limit: u32| if limit == 0 { u32::MAX } else { limit };
        let process = &program.world.process;
        let counts = [
            (&bind.state.current, or_none(bind.maxconn)),
            (&forward.state.front.current, forward.state.front.maxconn.load(Relaxed)),
            (&process.connections, or_none(process.maxconn.load(Relaxed))),
        ];
        for (at, (count, limit)) in counts.iter().enumerate() {
            let more = |n: u32| (n < *limit).then_some(n + 1);
            if count.fetch_update(Relaxed, Relaxed, more).is_err() {
                give_back(counts.iter().take(at).map(|(count, _)| *count));
                return None;
            }
        }
        let (state, listener) = (forward.state.clone(), bind.state.clone());
        Some(Room { worker: worker.clone(), section, line, state, listener })
    }

    /// Goes along to the configuration that runs; whether the listener is in it.
    fn follow(&mut self) -> bool {
        while self.worker.is_superseded() {
            let Some(next) = followed(&self.worker, self.section, self.line, Carrier::Streams) else {
                return false;
            };
            (self.worker, self.section, self.line) = next;
        }
        true
    }

    fn forward(&self) -> Option<&Forward> {
        self.worker.shared.program.forwards.get(self.section)
    }
}

fn give_back<'c>(counts: impl Iterator<Item = &'c AtomicU32>) {
    counts.for_each(|count| {
        count.fetch_sub(1, Relaxed);
    });
}

impl Drop for Room {
    fn drop(&mut self) {
        let process = &self.worker.shared.program.world.process;
        let counts = [&self.listener.current, &self.state.front.current, &process.connections];
        give_back(counts.into_iter());
        self.worker.freed.raise();
    }
}

/// A task that accepts: a process that stops softly waits for its end.
struct Accepting(Rc<Worker>);

impl Accepting {
    fn begin(worker: &Rc<Worker>) -> Accepting {
        worker.shared.program.world.process.accepting.fetch_add(1, Relaxed);
        Accepting(worker.clone())
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.shared.program.world.process.accepting.fetch_sub(1, Relaxed);
    }
}

/// Accepts connections until the process stops, or the section is shut down or gone.
pub(super) async fn accept(worker: Rc<Worker>, section: usize, line: usize, listener: Listener) {
    let share = Share::begin(&worker, section, line, Carrier::Streams);
    let (Ok(acceptor), Some(mut share)) = (listener.attach(), share) else { return };
    drop(listener);
    let _accepting = Accepting::begin(&worker);
    drop(worker);
    while share.follow() && !share.is_over() {
        admit(&share, &acceptor).await;
    }
}

/// Accepts as long as the configuration at hand runs.
async fn admit(share: &Share, acceptor: &Acceptor) {
    let worker = &share.worker;
    let Some(forward) = share.forward() else { return };
    let Some(bind) = forward.binds.get(share.line) else { return };
    let backlog = forward.backlog_of(bind);
    let process = &worker.shared.program.world.process;
    while !share.is_over() && !worker.is_superseded() {
        if share.state() == FrontState::Paused || acceptor.is_suspended() {
            share.pause(&bind.address, || acceptor.suspend(), || acceptor.restore(backlog)).await;
            continue;
        }
        // Whoever is accepted has a place already; while nobody comes the place is others'.
        let next = poll_fn(|cx| {
            if worker.stop.poll_changed(cx) && share.is_called() {
                return Poll::Ready(Next::Called);
            }
            let Some(room) = Room::enter(worker, share.section, share.line) else {
                return Poll::Ready(Next::Full);
            };
            match acceptor.poll_accept(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok((socket, from))) => Poll::Ready(Next::Came(room, socket, from)),
                Poll::Ready(Err(_)) => Poll::Ready(Next::Failed),
            }
        });
        match next.await {
            Next::Called => {}
            Next::Came(room, socket, from) => {
                process.counters.of(worker.index).connections.inc();
                process.conn_rate.add(rt::now().as_millis());
                let counters = forward.state.front.counters.of(worker.index);
                counters.connections.inc();
                counters.sessions.inc();
                let peer = link::address::peer(from.as_ref());
                rt::spawn(serve(room, socket, peer));
            }
            Next::Full => {
                let _ = acceptor.pause();
                wait_for_room(worker, share).await;
                let _ = acceptor.resume();
            }
            Next::Failed => rt::sleep(REST).await,
        }
    }
}

/// What an accepting task meets next.
enum Next {
    Came(Room, Socket, Option<rt::Addr>),
    Failed,
    /// There is no place for one more.
    Full,
    /// The section is disabled or ends, or another configuration runs.
    Called,
}

/// Waits until somebody leaves on this worker, for others a while, or for the end of the process.
async fn wait_for_room(worker: &Worker, share: &Share) {
    let seen = worker.freed.count();
    let mut timer = Timer::at(rt::now() + REST);
    poll_fn(|cx| {
        let over = worker.stop.poll_changed(cx) && share.is_called();
        if over || worker.freed.poll_raised_since(seen, cx) {
            return Poll::Ready(());
        }
        timer.poll_expired(cx)
    })
    .await;
}

async fn serve(mut room: Room, socket: Socket, peer: Peer) {
    let worker = room.worker.clone();
    let program = worker.shared.program.clone();
    let Some(forward) = program.forwards.get(room.section) else { return };
    let Some(bind) = forward.binds.get(room.line) else { return };
    let door = AppletDoor {
        kind: AppletKind::Syslog,
        section: (&*forward.name).into(),
        id: forward.state.id,
        mode: "syslog",
        listener: Some(bind.state.clone()),
        end: AppletEnd::Drop,
    };
    let local = link::address::peer(socket.local_addr().ok().as_ref());
    let _entry = enter_applet(door, peer, local);
    let mut timer = Timer::new();
    timer.set_after(forward.timeout);
    let mut transport = Transport::from(socket);
    // Whom such a header names is of no interest: as in HAProxy the sender is who connected.
    let (mut input, headers) = (Vec::new(), (bind.accept_proxy, bind.accept_cip));
    if header::pass(&transport, headers, &mut input, &mut timer).await.is_err() {
        return;
    }
    if let Some(acceptor) = &bind.tls {
        let begun = Handshake::accept(acceptor.clone(), &std::mem::take(&mut input));
        let tune = secure::sizes(&program.global.tune);
        let shaken = handshake::accept(tune, transport.raw(), begun, &mut timer, || false).await;
        let Ok((stream, _)) = shaken else { return };
        transport.secure(*stream, None);
    }
    let sender = match peer {
        Peer::Inet(addr) => Some(addr.ip().to_canonical().to_string()),
        _ => None,
    };
    drop((program, worker));
    listen(&mut room, &transport, (&input, sender.as_deref()), &mut timer).await;
}

/// Takes messages until the sender ends, is silent for too long, or sends what is no message. `begun` has
/// come already.
async fn listen(
    room: &mut Room,
    transport: &Transport,
    (begun, sender): (&[u8], Option<&str>),
    timer: &mut Timer,
) {
    let Some(taken) = take(room, begun, sender) else { return };
    let mut input = match begun.get(taken..).unwrap_or_default() {
        [] => None,
        rest => {
            let mut buf = Buf::new();
            if buf.push(rest) < rest.len() {
                // A message that fits no buffer.
                return;
            }
            Some(buf)
        }
    };
    loop {
        // Where the section is gone a message that has begun is the last one.
        let gone = !room.follow();
        if gone && input.is_none() {
            return;
        }
        let watched = (!gone).then_some(&*room.worker);
        match more(watched, transport, &mut input, timer).await {
            More::Came => timer.set_after(room.forward().and_then(|forward| forward.timeout)),
            More::Superseded => continue,
            More::Over => return,
        }
        // A sender that is faster than this worker must not keep it for itself.
        rt::yield_now().await;
        let Some(buf) = &mut input else { continue };
        let Some(taken) = take(room, buf.filled(), sender) else { return };
        buf.consume(taken);
        if buf.is_empty() {
            input = None;
            continue;
        }
        buf.compact();
        if buf.is_full() {
            // A message that fits no buffer.
            return;
        }
    }
}

/// What comes next on a connection.
enum More {
    Came,
    /// Another configuration runs than that of the worker that is watched.
    Superseded,
    Over,
}

async fn more(
    watched: Option<&Worker>,
    transport: &Transport,
    input: &mut Option<Buf>,
    timer: &mut Timer,
) -> More {
    let mut received = pin!(timed::receive(transport, input, timer));
    poll_fn(|cx| match received.as_mut().poll(cx) {
        Poll::Ready(Ok(1..)) => Poll::Ready(More::Came),
        Poll::Ready(_) => Poll::Ready(More::Over),
        Poll::Pending if watched.is_some_and(Worker::is_superseded) => Poll::Ready(More::Superseded),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Passes on the messages that are whole, and says how many bytes they were; `None`: what follows is no
/// message.
fn take(room: &Room, bytes: &[u8], sender: Option<&str>) -> Option<usize> {
    let taken = take_each(&room.worker, room.forward()?, bytes, sender);
    room.worker.sinks.flush();
    taken
}

fn take_each(worker: &Worker, forward: &Forward, bytes: &[u8], sender: Option<&str>) -> Option<usize> {
    let mut at = 0;
    loop {
        match forward.framing.next(bytes.get(at..).unwrap_or_default()) {
            Ok(Some((message, taken))) => {
                if !message.is_empty() {
                    arrived(worker, forward, message, sender);
                }
                at += taken;
            }
            Ok(None) => return Some(at),
            Err(wire::syslog::Senseless) => return None,
        }
    }
}
