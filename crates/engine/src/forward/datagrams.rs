//! Messages that come by datagrams, one in each.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::Poll;

use model::proxy::FrontState;
use program::forward::Dgram;
use rt::{DatagramRow, ListenOptions, SharedDatagram};

use super::{REST, Share, arrived};
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

/// Receives until the process stops or the section is shut down.
pub(super) async fn receive(worker: Rc<Worker>, section: usize, line: usize, receiver: SharedDatagram) {
    let (Ok(socket), Some(share)) = (receiver.attach(), Share::begin(&worker, section)) else { return };
    let program = worker.shared.program.clone();
    let Some(forward) = program.forwards.get(section) else { return };
    let Some(dgram) = forward.datagrams.get(line) else { return };
    let (mut sender, mut row, mut taken) = (Sender::default(), DatagramRow::default(), 0);
    while !share.is_over() {
        if share.state() == FrontState::Paused {
            share.pause(&dgram.address, || socket.suspend(), || socket.restore()).await;
            continue;
        }
        let next = poll_fn(|cx| {
            let received = socket.poll_recv_row(cx, &mut row);
            if received.is_pending()
                && worker.stop.poll_changed(cx)
                && (share.is_over() || share.state() == FrontState::Paused)
            {
                return Poll::Ready(None);
            }
            received.map(Some)
        });
        match next.await {
            None => continue,
            Some(Ok(())) => {
                for (bytes, from) in row.iter() {
                    arrived(&worker, forward, bytes, sender.of(from));
                    taken += 1;
                }
                worker.sinks.flush();
            }
            // What lasts must not keep the worker busy.
            Some(Err(_)) => rt::sleep(REST).await,
        }
        if taken >= TURN {
            taken = 0;
            rt::yield_now().await;
        }
    }
}
