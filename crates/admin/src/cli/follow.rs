//! Long answers on their way to a client of the runtime API, never held as a whole: the lines of a ring
//! (`show events`) and the entries of a set of patterns (`show map`) or a stick table (`show table`).

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use base::foreign;
use engine::sinks::Ring;
use rt::Socket;

use super::call::Lines;

/// Bytes that are put together for one send.
const CHUNK: usize = 16384;

/// Steps without a send after which others get their turn: a step may have nothing to say.
const STEPS: u32 = 256;

/// Appends the lines from a position on to `out`. With a socket, sends them there instead and goes on with
/// new lines until the client says anything or is gone; what it says is discarded.
pub async fn events(
    ring: &Arc<Ring>,
    mut position: u64,
    nul: bool,
    socket: Option<&Socket>,
    out: &mut String,
) {
    let Some(socket) = socket else {
        take(ring, &mut position, nul, usize::MAX, out);
        return;
    };
    let bell = ring.bell();
    loop {
        take(ring, &mut position, nul, CHUNK, out);
        if !out.is_empty() {
            if socket.send_all(&foreign::bytes(out)).await.is_err() {
                return;
            }
            out.clear();
            continue;
        }
        let mut ignored = [0; 256];
        let spoken = poll_fn(|cx| match socket.poll_recv(cx, &mut ignored) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending => bell.notify.poll_notified(cx).map(|()| false),
        });
        if spoken.await {
            return;
        }
    }
}

fn take(ring: &Ring, position: &mut u64, nul: bool, most: usize, out: &mut String) {
    let end = if nul { '\0' } else { '\n' };
    ring.read(position, |line| {
        out.push_str(&foreign::text(line));
        out.push(end);
        out.len() < most
    });
}

/// Appends lines to `out`, or with a socket sends them there, a chunk at a time, between which others get
/// their turn. Whether the client is still there.
pub async fn lines(mut lines: Box<dyn Lines>, socket: Option<&Socket>, out: &mut String) -> bool {
    let mut steps = 0u32;
    while lines.append(out) {
        steps = steps.wrapping_add(1);
        if let Some(socket) = socket.filter(|_| out.len() >= CHUNK) {
            if socket.send_all(&foreign::bytes(out)).await.is_err() {
                return false;
            }
            out.clear();
        } else if !steps.is_multiple_of(STEPS) {
            continue;
        }
        rt::yield_now().await;
    }
    true
}
