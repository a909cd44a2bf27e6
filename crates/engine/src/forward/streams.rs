//! Messages that come over streams (RFC 6587), perhaps with TLS.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use farm::secure;
use link::timed;
use link::{handshake, header, transport::Transport};
use model::Peer;
use model::proxy::FrontState;
use program::forward::Forward;
use rt::{Buf, Listener, Socket, Timer};
use tls::Handshake;

use super::{REST, Share, arrived};
use crate::applets::{AppletDoor, AppletEnd, AppletKind};
use crate::worker::{Worker, enter_applet};

/// Room for one more connection, which is counted.
struct Room {
    worker: Rc<Worker>,
    section: usize,
    line: usize,
}

impl Room {
    /// `None`: there is none.
    fn enter(worker: &Rc<Worker>, section: usize, line: usize) -> Option<Room> {
        let program = &worker.shared.program;
        let counts = counts(worker, section, line)?;
        let maxconn = program.world.process.maxconn.load(Relaxed);
        let whole = if maxconn == 0 { u32::MAX } else { maxconn };
        for (at, (count, limit)) in counts.iter().enumerate() {
            let limit = (*limit).min(if at == 2 { whole } else { u32::MAX });
            let more = |n: u32| (n < limit).then_some(n + 1);
            if count.fetch_update(Relaxed, Relaxed, more).is_err() {
                give_back(counts.iter().take(at));
                return None;
            }
        }
        Some(Room { worker: worker.clone(), section, line })
    }
}

/// Connections of a listener, of its section and of the process, with the limits of each.
fn counts(worker: &Worker, section: usize, line: usize) -> Option<[(&AtomicU32, u32); 3]> {
    let program = &worker.shared.program;
    let forward = program.forwards.get(section)?;
    let bind = forward.binds.get(line)?;
    let own = if bind.maxconn == 0 { u32::MAX } else { bind.maxconn };
    let front = &forward.state.front;
    let limit = front.maxconn.load(Relaxed);
    Some([
        (&bind.state.current, own),
        (&front.current, limit),
        (&program.world.process.connections, u32::MAX),
    ])
}

fn give_back<'c>(counts: impl Iterator<Item = &'c (&'c AtomicU32, u32)>) {
    counts.for_each(|(count, _)| {
        count.fetch_sub(1, Relaxed);
    });
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(counts) = counts(&self.worker, self.section, self.line) {
            give_back(counts.iter());
        }
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

/// Accepts connections until the process stops or the section is shut down.
pub(super) async fn accept(worker: Rc<Worker>, section: usize, line: usize, listener: Listener) {
    let (Ok(acceptor), Some(share)) = (listener.attach(), Share::begin(&worker, section)) else { return };
    drop(listener);
    let program = worker.shared.program.clone();
    let Some(forward) = program.forwards.get(section) else { return };
    let Some(bind) = forward.binds.get(line) else { return };
    let backlog = forward.backlog_of(bind);
    let _accepting = Accepting::begin(&worker);
    let process = &worker.shared.program.world.process;
    while !share.is_over() {
        if share.state() == FrontState::Paused || acceptor.is_suspended() {
            share.pause(&bind.address, || acceptor.suspend(), || acceptor.restore(backlog)).await;
            continue;
        }
        // Whoever is accepted has a place already; while nobody comes the place is others'.
        let next = poll_fn(|cx| {
            if worker.stop.poll_changed(cx) && (share.is_over() || share.state() == FrontState::Paused) {
                return Poll::Ready(Next::Called);
            }
            let Some(room) = Room::enter(&worker, section, line) else { return Poll::Ready(Next::Full) };
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
                forward.state.front.counters.of(worker.index).sessions.inc();
                let peer = link::address::peer(from.as_ref());
                rt::spawn(serve(room, socket, peer));
            }
            Next::Full => {
                let _ = acceptor.pause();
                wait_for_room(&worker, &share).await;
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
    /// The section is disabled or ends.
    Called,
}

/// Waits until somebody leaves on this worker, for others a while, or for the end of the process.
async fn wait_for_room(worker: &Worker, share: &Share) {
    let seen = worker.freed.count();
    let mut timer = Timer::at(rt::now() + REST);
    poll_fn(|cx| {
        let over = worker.stop.poll_changed(cx) && (share.is_over() || share.state() == FrontState::Paused);
        if over || worker.freed.poll_raised_since(seen, cx) {
            return Poll::Ready(());
        }
        timer.poll_expired(cx)
    })
    .await;
}

async fn serve(room: Room, socket: Socket, peer: Peer) {
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
    listen(&worker, forward, &transport, (&input, sender.as_deref()), &mut timer).await;
}

/// Takes messages until the sender ends, is silent for too long, or sends what is no message. `begun` has
/// come already.
async fn listen(
    worker: &Worker,
    forward: &Forward,
    transport: &Transport,
    (begun, sender): (&[u8], Option<&str>),
    timer: &mut Timer,
) {
    let Some(taken) = take(worker, forward, begun, sender) else { return };
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
        match timed::receive(transport, &mut input, timer).await {
            Ok(1..) => timer.set_after(forward.timeout),
            _ => return,
        }
        // A sender that is faster than this worker must not keep it for itself.
        rt::yield_now().await;
        let Some(buf) = &mut input else { continue };
        let Some(taken) = take(worker, forward, buf.filled(), sender) else { return };
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

/// Passes on the messages that are whole, and says how many bytes they were; `None`: what follows is no
/// message.
fn take(worker: &Worker, forward: &Forward, bytes: &[u8], sender: Option<&str>) -> Option<usize> {
    let taken = take_each(worker, forward, bytes, sender);
    worker.sinks.flush();
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
