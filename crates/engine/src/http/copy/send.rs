//! A copy on its way: a client inside the worker, whose request is known whole.

use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use rt::{Socket, Timer};
use wire::head::{Head, Known};

use super::Order;
use super::run::{self, Fate};
use crate::client::{Client, Part, Seat};
use crate::sessions::Session;

/// How long a copy may take in all, whatever the timeouts of its backend say: it holds a place among those
/// under way.
const LONGEST: Duration = Duration::from_secs(60);
/// The nice value of its task: others come first.
const NICE: i16 = 512;

/// Sends a copy, whose body is this; with `framed` also an empty one is told.
pub(super) fn send(mut order: Order, body: Vec<u8>, framed: bool) {
    let head = &mut order.copied.head;
    frame(head, body.len(), framed);
    let head = std::mem::take(head);
    let task = rt::spawn(async move {
        let fate = rt::boxed(serve(&order, head, body)).await;
        order.count(match fate {
            Fate::Sent => |c| &c.sent,
            Fate::NoServer => |c| &c.no_server,
            Fate::Queue => |c| &c.queue,
            Fate::Failed => |c| &c.failed,
        });
    });
    rt::set_nice(task, NICE);
}

/// Says of the body what holds for the copy: its length is known, and nobody asks whether it is wanted.
fn frame(head: &mut Head, length: usize, framed: bool) {
    head.remove_all(Known::TransferEncoding);
    head.remove_all(Known::ContentLength);
    head.remove_all(Known::Expect);
    head.remove_all(Known::Trailer);
    if framed {
        let mut digits = [0; base::text::INT_MAX];
        // The limit of a head leaves room for rewrites.
        let _ = head.append(b"content-length", base::text::int(length as u64, &mut digits));
    }
}

/// Serves it; what became of it.
async fn serve(order: &Order, head: Head, body: Vec<u8>) -> Fate {
    let Ok((near, far)) = Socket::local() else { return Fate::Failed };
    let (front, listener) = order.seat;
    let seat = Seat { worker: order.worker.clone(), front, listener };
    // The facts of the original's client, for a connection of its own: what the copy does must not be seen
    // there.
    let conn = order.session.conn.copy(order.worker.farm.next_serial());
    let session = Session::new(conn, &order.worker.program);
    let part = Part { head: Some(head), refused: None, lead: Weak::new(), id: 1, receipt: Rc::default() };
    let mut client = Client::of_stream(seat, Rc::new(session), near.into(), part);
    let mut work = std::pin::pin!(run::run(&mut client, order.copied.backend));
    let mut timer = Timer::new();
    timer.set_after(Some(LONGEST));
    let mut left = &body[..];
    poll_fn(|cx| {
        feed(&far, cx, &mut left);
        match work.as_mut().poll(cx) {
            Poll::Ready(fate) => Poll::Ready(fate),
            Poll::Pending => timer.poll_expired(cx).map(|()| Fate::Failed),
        }
    })
    .await
}

/// Brings the body, and takes what is said to a client: interim responses.
fn feed(far: &Socket, cx: &mut Context<'_>, left: &mut &[u8]) {
    while !left.is_empty() {
        match far.poll_send(cx, left, false) {
            Poll::Ready(Ok(sent)) => *left = left.get(sent..).unwrap_or_default(),
            Poll::Ready(Err(_)) => *left = &[],
            Poll::Pending => break,
        }
    }
    let mut sink = [0; 1024];
    while let Poll::Ready(Ok(1..)) = far.poll_recv(cx, &mut sink) {}
}
