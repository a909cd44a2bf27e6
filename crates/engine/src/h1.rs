//! HTTP/1 towards the client: one request after the other on a connection.
//!
//! The task of a connection is small while it waits for a request: everything a request needs lives in
//! a future in recycled memory that is made when the first byte has come.

use std::future::poll_fn;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use crate::client::Client;
use crate::departure::is_sent_away;
use crate::http::exchange;
use crate::http::{Next, Owed, Rest};
use crate::traced;
use model::trace::{self, level};

/// Serves the requests of a connection until it ends. `first` is what came of its first request, when that
/// was served elsewhere, and whether the client still owes some of it. The answer is whether the connection
/// goes on as HTTP/2.
pub async fn serve(client: &mut Client, mut first: Option<(Next, Owed)>) -> bool {
    client.conn().http_major.set(1);
    client.speaks_h1();
    traced::session(&client.session, &trace::H1, trace::h1::NEW, level::STATE, "new connection");
    loop {
        let (next, owed) = match first.take() {
            Some(served) => served,
            None if !is_there(client) && !idle(client).await => {
                say_end(client);
                return false;
            }
            None => rt::boxed(exchange::run(client)).await,
        };
        // In recycled memory, so that the task of an idle connection stays small.
        if next == Next::Close {
            let mut owes = owed.is_some();
            // What the pump has seen of a request that is given up it has counted.
            let counted = owed.as_ref().is_some_and(|rest| rest.half.begun && !rest.awaited);
            if let Some(rest) = owed.filter(|rest| rest.awaited) {
                rt::boxed(drain(client, rest)).await;
                owes = false;
            }
            if !counted {
                client.count_unread(client.unread());
            }
            client.spoke_h1();
            rt::boxed(close(client, owes, true)).await;
            return false;
        }
        if next == Next::Http2 {
            client.spoke_h1();
            return true;
        }
        if let Some(rest) = owed
            && !rt::boxed(drain(client, rest)).await
        {
            say_end(client);
            return false;
        }
        if client.buf.as_ref().is_some_and(rt::Buf::is_empty) {
            client.buf = None;
        }
    }
}

/// A connection that is over for everyone but its client: it is not counted among the others any more. Only
/// so many at once, so that clients that hold on can't have more descriptors used than `maxconn` allows for;
/// and none while the process stops, which would end before they do.
struct Lingers(std::rc::Rc<crate::Worker>);

impl Lingers {
    const MOST: u32 = 256;

    fn new(client: &Client) -> Option<Lingers> {
        let worker = &client.worker;
        if worker.lingering.get() >= Lingers::MOST
            || worker.shared.program.world.process.stopping.load(Relaxed)
        {
            return None;
        }
        worker.lingering.set(worker.lingering.get() + 1);
        client.leave();
        Some(Lingers(worker.clone()))
    }
}

impl Drop for Lingers {
    fn drop(&mut self) {
        self.0.lingering.set(self.0.lingering.get() - 1);
    }
}

/// Reads the rest of a request that was answered before it was whole, so that the next may follow, or the
/// client finds its answer in peace; whether it came.
async fn drain(client: &mut Client, mut rest: Box<Rest>) -> bool {
    let limit = client.frontend().timeouts.client;
    client.timer.set_after(limit);
    // What the pump has seen of the message it has counted.
    let there = if rest.half.begun { 0 } else { client.unread() };
    let before = rest.half.received;
    let worker = client.worker.index;
    let Client { socket, timer, session, buf, .. } = &mut *client;
    let drained = poll_fn(|cx| {
        if session.kill.get().is_some() {
            return Poll::Ready(false);
        }
        if let Poll::Ready(result) = rest.half.poll_discard(cx, socket, buf) {
            if result.is_err()
                && let Some(backend) = &rest.served
            {
                backend.back.counters.of(worker).client_aborts.inc();
            }
            return Poll::Ready(result.is_ok());
        }
        if std::mem::take(&mut rest.half.moved) {
            timer.set_after(limit);
        }
        timer.poll_expired(cx).map(|()| false)
    });
    let came = drained.await;
    let received = there + (rest.half.received - before);
    client.count_unread(received.saturating_sub(client.unread()));
    came
}

/// Whether bytes of a request are there, which is served by the configuration that runs now.
fn is_there(client: &mut Client) -> bool {
    if client.worker.is_superseded() && !client.session.leaves.get() {
        client.follow();
    }
    client.has_input()
}

/// Waits for the first byte of a request; whether there is one to read. When another configuration runs by
/// then the connection goes along.
async fn idle(client: &mut Client) -> bool {
    let first = client.conn().requests.get() == 0;
    let timeouts = &client.frontend().timeouts;
    let limit = if first {
        timeouts.http_request.into_iter().chain(timeouts.client).min()
    } else {
        timeouts.http_keep_alive.or(timeouts.http_request).or(timeouts.client)
    };
    client.timer.set_after(limit);
    // A connection that never said a word is a failed request when its time is over; the request itself says
    // so.
    client.session.idle.set(!first);
    // The last read may have ended exactly where nothing more had come (the end of an upload): whether there
    // is more only another one tells.
    let mut uncertain = !first;
    poll_fn(|cx| {
        if client.worker.is_superseded() && !client.session.leaves.get() {
            client.follow();
        }
        if client.session.kill.get().is_some() || (!first && is_to_leave(client)) {
            return Poll::Ready(false);
        }
        if std::mem::take(&mut uncertain) && matches!(client.try_receive(usize::MAX), Some(Ok(1..))) {
            return Poll::Ready(true);
        }
        if client.socket.poll_readable(cx).is_ready() {
            return Poll::Ready(true);
        }
        client.timer.poll_expired(cx).map(|()| first)
    })
    .await
}

/// Whether a client between two requests has to go. With `option idle-close-on-response` the next answer says
/// that the connection ends.
fn is_to_leave(client: &Client) -> bool {
    let goes = client.session.leaves.get() || is_sent_away(&client.worker, &client.session);
    goes && !client.frontend().options.idle_close_on_response
}

/// Lets the handshake of a client that was answered before come to its end: its last message would find the
/// connection closed, and the client no session to resume.
async fn finish_handshake(client: &Client) {
    if !client.socket.is_early() {
        return;
    }
    let mut timer = rt::Timer::at(rt::now() + std::time::Duration::from_secs(1));
    poll_fn(|cx| match client.socket.poll_handshake(cx) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => timer.poll_expired(cx),
    })
    .await;
}

/// With `option nolinger` a client learns that this is the end, unless it has closed its side: the reset that
/// follows is to free the kernel's memory.
pub(crate) fn say_end(client: &Client) {
    let left = || matches!(client.socket.try_recv(&mut [0]), Some(Ok(0)));
    if client.frontend().options.nolinger && !left() {
        let _ = client.socket.shutdown_write();
    }
}

/// Closes so that the client can still read what was sent: unread input would turn the close into a reset,
/// and so would what is yet to come of a request that was answered early. While streams of HTTP/2 have yet to
/// be logged (`alone` is false) their connection counts as one that is there.
pub async fn close(client: &Client, owes: bool, alone: bool) {
    if client.session.vanished.get() {
        return;
    }
    finish_handshake(client).await;
    let mut sink = [0u8; 4096];
    if client.socket.is_hung_up() {
        // What it said last, be it only that a TLS session is over, is taken in.
        for _ in 0..16 {
            if !client.socket.try_recv(&mut sink).is_some_and(|read| read.is_ok_and(|n| n > 0)) {
                break;
            }
        }
        return;
    }
    let comes = owes || client.has_input() || client.socket.is_readable();
    if !comes {
        return say_end(client);
    }
    if client.socket.shutdown_write().is_err() {
        return;
    }
    if alone {
        // Its own connections to servers have nobody left whom they could serve.
        client.session.own.take();
    }
    let _lingers = alone.then(|| Lingers::new(client)).flatten();
    let mut timer = rt::Timer::at(rt::now() + std::time::Duration::from_secs(1));
    let mut left = 256 * 1024usize;
    poll_fn(|cx| {
        loop {
            match client.socket.poll_recv(cx, &mut sink) {
                Poll::Ready(Ok(n)) if n > 0 && n <= left => left -= n,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return timer.poll_expired(cx),
            }
        }
    })
    .await;
}
