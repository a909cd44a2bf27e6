//! `_getsocks`: the listening sockets go to another process that asks for them, so that it can accept from
//! them before this one stops to. [`wire::handover`] says what is spoken.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::Poll;
use std::time::Duration;

use engine::Worker;
use rt::{Socket, Timer};
use wire::handover::{self, AT_ONCE, Label};

use super::call::Client;

/// How long the other process may take to say that it has what was sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers `_getsocks`. Where nothing may be handed over (`expose-fd`) the answer is an empty line, which
/// the other process can't take for a number.
pub async fn answer(worker: &Worker, socket: &Socket, client: &Client) {
    if !client.exposes {
        let _ = socket.send_all(b"\n").await;
        return;
    }
    let exposed = worker.shared.exposed.iter();
    let sockets: Vec<(OwnedFd, Label)> = exposed
        .filter_map(|e| {
            let interface = e.interface.as_deref().unwrap_or_default().as_bytes().to_vec();
            let namespace = e.namespace.map(|n| n.name().as_bytes().to_vec()).unwrap_or_default();
            Some((e.socket.hand_over()?, Label { namespace, interface }))
        })
        .collect();
    if socket.send_all(&handover::number(sockets.len())).await.is_err() {
        return;
    }
    let (mut fds, mut labels): (Vec<_>, Vec<_>) = sockets.into_iter().unzip();
    while !fds.is_empty() {
        let rest = fds.split_off(fds.len().min(AT_ONCE));
        let rest_labels = labels.split_off(fds.len());
        let mut told = Vec::new();
        labels.iter().for_each(|label| label.put(&mut told));
        let Ok(sent) = socket.send_fds(&told, &fds).await else { return };
        let left = told.get(sent..).unwrap_or_default();
        if socket.send_all(left).await.is_err() || !is_acknowledged(socket).await {
            return;
        }
        (fds, labels) = (rest, rest_labels);
    }
}

/// Waits for the four bytes by which the other process says that it has them.
async fn is_acknowledged(socket: &Socket) -> bool {
    let mut timer = Timer::new();
    timer.set_after(Some(PATIENCE));
    let (mut word, mut got) = ([0u8; 4], 0);
    while let Some(room) = word.get_mut(got..).filter(|room| !room.is_empty()) {
        let n = poll_fn(|cx| match socket.poll_recv(cx, room) {
            Poll::Ready(n) => Poll::Ready(n.unwrap_or(0)),
            Poll::Pending => timer.poll_expired(cx).map(|()| 0),
        });
        match n.await {
            0 => return false,
            n => got += n,
        }
    }
    true
}
