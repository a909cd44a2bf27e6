//! Messages that come by datagrams, one in each.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::Poll;

use model::proxy::FrontState;
use program::forward::Dgram;
use rt::{DatagramRow, Inlet, ListenOptions, SharedDatagram};

use super::{Carrier, REST, Share, arrived};
use crate::worker::Worker;

/// As many messages are taken before others have their turn.
const TURN: u32 = 64;

/// Opens the socket of a `dgram-bind` line.
///
/// # Errors
/// What the system says.
pub fn open(dgram: &Dgram, options: ListenOptions) -> io::Result<SharedDatagram> {
    use program::address::Listen;
    let options = ListenOptions {
        transparent: dgram.transparent,
        interface: dgram.interface.as_deref().map(str::to_owned),
        namespace: dgram.namespace,
        v6only: dgram.v6only,
        ..options
    };
    if let Listen::Fd(fd) = dgram.address {
        return SharedDatagram::adopt(rt::sys::inherited(fd)?, options.recv_buffer);
    }
    let Some(addr) = crate::net::listen(&dgram.address) else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    SharedDatagram::bind(&addr, &options)
}

/// The text of the address that sent last: most messages come from the same one.
#[derive(Default)]
struct Sender {
    ip: Option<IpAddr>,
    text: String,
}

impl Sender {
    fn of(&mut self, from: Option<&SocketAddr>) -> Option<&str> {
        let ip = from?.ip().to_canonical();
        if self.ip != Some(ip) {
            self.ip = Some(ip);
            self.text = ip.to_string();
        }
        Some(&self.text)
    }
}

/// Receives until the process stops, or the section is shut down or gone.
pub(super) async fn receive(worker: Rc<Worker>, section: usize, line: usize, receiver: SharedDatagram) {
    let share = Share::begin(&worker, section, line, Carrier::Datagrams);
    let (Ok(socket), Some(mut share)) = (receiver.attach(), share) else { return };
    drop(worker);
    let (mut sender, mut row) = (Sender::default(), DatagramRow::default());
    while share.follow() {
        if share.is_over() {
            return;
        }
        hear(&share, &socket, &mut sender, &mut row).await;
    }
    // Nobody else reads what has come already.
    while let Poll::Ready(Ok(())) = poll_fn(|cx| Poll::Ready(socket.poll_recv_row(cx, &mut row))).await {
        pass_on(&share, &mut sender, &row);
    }
}

/// Receives as long as the configuration at hand runs.
async fn hear(share: &Share, socket: &Inlet, sender: &mut Sender, row: &mut DatagramRow) {
    let worker = &share.worker;
    let Some(dgram) = share.forward().and_then(|forward| forward.datagrams.get(share.line)) else { return };
    let mut taken = 0;
    while !share.is_over() && !worker.is_superseded() {
        if share.state() == FrontState::Paused || socket.is_suspended() {
            share.pause(&dgram.address, || socket.suspend(), || socket.restore()).await;
            continue;
        }
        let next = poll_fn(|cx| {
            let received = socket.poll_recv_row(cx, row);
            if received.is_pending() && worker.stop.poll_changed(cx) && share.is_called() {
                return Poll::Ready(None);
            }
            received.map(Some)
        });
        match next.await {
            None => continue,
            Some(Ok(())) => taken += pass_on(share, sender, row),
            // What lasts must not keep the worker busy.
            Some(Err(_)) => rt::sleep(REST).await,
        }
        if taken >= TURN {
            taken = 0;
            rt::yield_now().await;
        }
    }
}

/// Passes on what came together; how many messages it was.
fn pass_on(share: &Share, sender: &mut Sender, row: &DatagramRow) -> u32 {
    let Some(forward) = share.forward() else { return 0 };
    let mut taken = 0;
    for (bytes, from) in row.iter() {
        arrived(&share.worker, forward, bytes, sender.of(from));
        taken += 1;
    }
    share.worker.sinks.flush();
    taken
}
