//! Connections to and from peers until their handshake is over.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use farm::secure::sizes;
use link::timed;
use link::{handshake, header, transport::Transport};
use program::peers::{Other, Way};
use rt::{Addr, ConnectOptions, Listener, Notify, Socket, Timer};
use tls::Handshake;
use wire::peers::hello::{self, Status};

use crate::hub::Hub;
use crate::session;

/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a peer that can't be reached is left alone.
const PAUSE: Duration = Duration::from_secs(1);
/// Connections at a time whose handshake is not over.
const MOST_STRANGERS: u32 = 64;

/// Accepts peers until the process stops.
pub(crate) async fn open(hub: Rc<Hub>, listener: Listener) {
    let Ok(acceptor) = listener.attach() else { return };
    drop(listener);
    let worker = hub.worker.clone();
    let guests = Rc::<Guests>::default();
    // Those beyond wait in the kernel's queue.
    let most = hub.section().bind.maxconn;
    loop {
        let stopping = || worker.shared.program.world.process.stopping.load(Relaxed);
        let is_full = || most > 0 && guests.all.get() >= most;
        let next = poll_fn(|cx| {
            if worker.stop.poll_changed(cx) && stopping() {
                return Poll::Ready(None);
            }
            while is_full() {
                std::task::ready!(guests.left.poll_notified(cx));
            }
            acceptor.poll_accept(cx).map(Some)
        });
        match next.await {
            None => break,
            Some(Ok((socket, _))) if guests.strangers.get() < MOST_STRANGERS => {
                let guest = Guest::enter(&guests);
                rt::spawn(admit(hub.clone(), socket, guest));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) => rt::sleep(Duration::from_millis(100)).await,
        }
    }
    // The process that takes this one's place accepts from here on.
    drop(acceptor);
    hub.leave();
}

/// Those who have connected here.
#[derive(Default)]
struct Guests {
    /// All of them.
    all: Cell<u32>,
    /// Those whose handshake is not over.
    strangers: Cell<u32>,
    /// One has left.
    left: Notify,
}

/// Counts a connection for as long as it is there, as a stranger until it is known.
struct Guest {
    guests: Rc<Guests>,
    is_known: bool,
}

impl Guest {
    fn enter(guests: &Rc<Guests>) -> Guest {
        guests.all.set(guests.all.get() + 1);
        guests.strangers.set(guests.strangers.get() + 1);
        Guest { guests: guests.clone(), is_known: false }
    }

    /// The handshake is over.
    fn is_welcome(&mut self) {
        if !std::mem::replace(&mut self.is_known, true) {
            self.guests.strangers.set(self.guests.strangers.get().saturating_sub(1));
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_welcome();
        self.guests.all.set(self.guests.all.get().saturating_sub(1));
        self.guests.left.notify();
    }
}

async fn admit(hub: Rc<Hub>, socket: Socket, mut guest: Guest) {
    let bind = &hub.section().bind;
    rt::renice(bind.nice);
    let mut timer = Timer::new();
    timer.set_after(Some(PATIENCE));
    let mut transport = Transport::from(socket);
    let mut input = Vec::new();
    let headers = (bind.accept_proxy, bind.accept_cip);
    if header::pass(&transport, headers, &mut input, &mut timer).await.is_err() {
        return;
    }
    if let Some(acceptor) = &bind.tls {
        let begun = Handshake::accept(acceptor.clone(), &std::mem::take(&mut input));
        let tune = sizes(&hub.program.global.tune);
        let shaken = handshake::accept(tune, transport.raw(), begun, &mut timer, || false).await;
        let Ok((stream, _)) = shaken else { return };
        transport.secure(*stream, None);
    }
    let answer = loop {
        match hello::parse(&input) {
            Ok(None) => {}
            Ok(Some((hello, bytes))) => break recognise(&hub, hello).map(|at| (at, bytes)),
            Err(status) => break Err(status),
        }
        if timed::more(&transport, &mut input, &mut timer).await.is_err() {
            return;
        }
    };
    let status = answer.err().unwrap_or(Status::Succeeded);
    let sent = timed::send(&transport, &status.line(), &mut timer).await;
    guest.is_welcome();
    if let (Ok((at, bytes)), Ok(())) = (answer, sent) {
        input.drain(..bytes.min(input.len()));
        session::run(&hub, at, transport, input).await;
    }
}

/// Which peer says hello.
fn recognise(hub: &Hub, hello: hello::Hello<'_>) -> Result<usize, Status> {
    if hello.remote != hub.section().local.as_bytes() {
        return Err(Status::Remote);
    }
    let known = |name: &str| name.as_bytes() == hello.local;
    let slot = hub.slots.iter().find(|s| known(&s.view.name)).ok_or(Status::Local)?;
    if slot.is_local() && slot.established.get() {
        return Err(Status::TryAgain);
    }
    if slot.established.get() {
        slot.view.collisions.fetch_add(1, Relaxed);
    }
    Ok(slot.at)
}

/// Connects to a peer whenever there is no session with it.
pub(crate) async fn knock(hub: Rc<Hub>, at: usize) {
    let slot = &hub.slots[at];
    let Some(other) = hub.section().others.get(at) else { return };
    let Some(addr) = link::address::target(&other.target) else { return };
    while !hub.leaving.get() {
        if slot.established.get() {
            slot.free.notified().await;
            // Both sides may have closed what the other opened: they shall not do so again.
            let pause = Duration::from_millis(50 + rt::random() % 2000);
            pause_until(&hub, at, pause).await;
            continue;
        }
        let before = slot.generation.get();
        match visit(&hub, at, &addr, &other.way).await {
            Ok((transport, input)) if slot.generation.get() == before && !hub.leaving.get() => {
                session::run(&hub, at, transport, input).await;
                let pause = Duration::from_millis(50 + rt::random() % 2000);
                pause_until(&hub, at, pause).await;
            }
            // Somebody else was faster.
            Ok(_) => {}
            Err(why) => {
                *slot.view.last_status.lock() = why;
                pause_until(&hub, at, PAUSE).await;
            }
        }
    }
}

async fn pause_until(hub: &Hub, at: usize, pause: Duration) {
    let until = rt::now() + pause;
    hub.slots[at].view.reconnect.store(until.as_millis(), Relaxed);
    let mut timer = Timer::at(until);
    let free = &hub.slots[at].free;
    // Only the end of the process cuts it short.
    poll_fn(|cx| match free.poll_notified(cx) {
        Poll::Ready(()) if hub.leaving.get() => Poll::Ready(()),
        _ => timer.poll_expired(cx),
    })
    .await;
}

/// How a connection to a peer is made.
fn options(other: &Other) -> ConnectOptions {
    let source = other.source.as_ref();
    ConnectOptions {
        source: source.and_then(|s| s.addr).map(Addr::Inet),
        interface: source.and_then(|s| s.interface.as_deref()).map(str::to_owned),
        mptcp: other.mptcp,
        md5sig: other.md5sig.as_deref().map(|key| key.as_bytes().to_vec()),
        namespace: other.namespace,
        ..ConnectOptions::default()
    }
}

/// Connects to a peer and says hello; with what came behind its answer.
pub(crate) async fn visit(
    hub: &Hub,
    at: usize,
    addr: &Addr,
    way: &Way,
) -> Result<(Transport, Vec<u8>), &'static str> {
    let mut timer = Timer::new();
    timer.set_after(Some(PATIENCE));
    let other = hub.section().others.get(at);
    let first = way.socks4.map(Addr::Inet);
    if first.is_some() && !link::socks::leads_to(addr) {
        return Err("CONN");
    }
    let options = other.map_or_else(Default::default, options);
    let connected = timed::connect(first.as_ref().unwrap_or(addr), &options, &mut timer).await;
    let mut transport = connected.map_err(|_| "CONN")?;
    if first.is_some() {
        link::socks::connect(transport.raw(), addr, &mut timer, |_| false).await.map_err(|_| "CONN")?;
    }
    if let Some(tls) = &way.tls {
        let name = tls.sni.as_ref().and_then(|sni| engine::process_vars::constant(&hub.program, sni));
        let begun = Handshake::connect(&tls.connector, name.as_deref(), None).map_err(|_| "CONN")?;
        let tune = sizes(&hub.program.global.tune);
        let shaken = handshake::connect(tune, transport.raw(), begun, &mut timer, |_| false).await;
        let (stream, facts) = shaken.map_err(|_| "CONN")?;
        transport.secure(*stream, Some(facts));
    }
    let local = &hub.section().local;
    let text = hello::compose(&hub.slots[at].view.name, local, std::process::id());
    timed::send(&transport, &text, &mut timer).await.map_err(|_| "CONN")?;
    let mut input = Vec::new();
    loop {
        match hello::status(&input) {
            Ok(Some((200, bytes))) => {
                input.drain(..bytes.min(input.len()));
                return Ok((transport, input));
            }
            Ok(Some((code, _))) => return Err(word(code)),
            Ok(None) => {}
            Err(_) => return Err("PROTO"),
        }
        timed::more(&transport, &mut input, &mut timer).await.map_err(|_| "CONN")?;
    }
}

/// How `show peers` names a status.
fn word(code: u16) -> &'static str {
    match code {
        300 => "TRY AGAIN",
        501 => "PROTO",
        502 => "VERSION",
        503 => "LNAME",
        504 => "RNAME",
        _ => "UNKNOWN",
    }
}
