//! A copy served: the way of a request from the choice of its backend on, to the end of the response, which
//! nobody wants.

use std::future::poll_fn;
use std::task::Poll;

use lang::filter::Moment;
use link::pump::{Framing, Half};
use rt::Buf;

use super::super::exchange::{Step, bind, is_tunnel};
use super::super::{awaiting, cgi, early, forward, headers, request, retry, rules};
use crate::choose::{NoServer, Wish};
use crate::client::Client;
use crate::connect::{self, Failed};
use crate::filters::Whose;
use crate::stream::Stream;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// A server answered.
    Sent,
    /// There was none.
    NoServer,
    /// None had a place in time.
    Queue,
    /// Anything else.
    Failed,
}

/// Sends the request of a client, which is a copy, to a backend.
pub(super) async fn run(client: &mut Client, backend: u32) -> Fate {
    let mut stream = Stream::new(client);
    // No line in the log tells of it: its backend's counters do.
    (stream.txn.mirror.is_copy, stream.txn.silent) = (true, true);
    stream.set_backend(backend);
    let fate = serve(&mut stream, backend).await;
    crate::finish::copy(&mut stream);
    fate
}

async fn serve(stream: &mut Stream<'_>, backend: u32) -> Fate {
    if !matches!(request::read(stream).await, request::Read::Request) {
        return Fate::Failed;
    }
    crate::filter::sent_to(stream, backend);
    if matches!(rules::filters(stream, Moment::Rules, Whose::Back).await, Step::Done(_))
        || matches!(rules::backend(stream).await, Step::Done(_))
        || stream.service.is_some()
    {
        return Fate::Failed;
    }
    // It is for a server, whatever a cache has.
    stream.txn.caching.hit = None;
    let mut wish = Wish { fixed: bind(stream), ..Wish::default() };
    if matches!(cgi::finish_head(stream).await, Step::Done(_)) {
        return Fate::Failed;
    }
    loop {
        if let Some(fate) = attempt(stream, &mut wish).await {
            return fate;
        }
    }
}

/// One attempt at a server; `None`: there is to be another.
async fn attempt(stream: &mut Stream<'_>, wish: &mut Wish) -> Option<Fate> {
    if let Err(failed) = connect::reach(stream, wish).await {
        return Some(match failed {
            Failed::NoServer(NoServer::None) => Fate::NoServer,
            Failed::NoServer(NoServer::Refused(_)) => Fate::Queue,
            _ => Fate::Failed,
        });
    }
    if matches!(rules::filters(stream, Moment::Connected, Whose::All).await, Step::Done(_)) {
        return Some(Fate::Failed);
    }
    crate::filter::prepare_request(stream);
    if headers::send_request(stream).is_err() {
        return Some(Fate::Failed);
    }
    match awaiting::until_response(stream).await {
        awaiting::Wait::Response => {}
        awaiting::Wait::Retry if early::settle(stream).await.is_ok() => {
            return (!retry::prepare_retry(stream, wish).await).then_some(Fate::Failed);
        }
        _ => return Some(Fate::Failed),
    }
    stream.txn.status = stream.txn.res.status();
    crate::finish::count_response(stream, stream.txn.status);
    stream.server_is_done();
    if stream.txn.status != 101 && !is_tunnel(stream) {
        rest(stream).await;
    }
    stream.leave_connection();
    Some(Fate::Sent)
}

/// Reads the response to its end, so that its connection may serve others.
async fn rest(stream: &mut Stream<'_>) {
    forward::count_came(stream);
    let relax = stream.backend().options.unsafe_response;
    let mut down = Half::new(Framing::of(stream.http.response_body, relax));
    down.multiplexed = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    let limit = stream.server_limit();
    stream.server_timer.set_after(limit);
    let whole = poll_fn(|cx| {
        let Some(up) = &mut stream.upstream else { return Poll::Ready(false) };
        if let Poll::Ready(end) = down.poll_discard(cx, &up.socket, &mut up.buf) {
            return Poll::Ready(end.is_ok());
        }
        if std::mem::take(&mut down.moved) {
            stream.server_timer.set_after(limit);
        }
        stream.server_timer.poll_expired(cx).map(|()| false)
    })
    .await;
    let counts = &mut stream.txn.down;
    counts.wire_in += down.received;
    if let Some(up) = stream.upstream.as_mut() {
        counts.received += down.counted(&mut up.buf);
    }
    let clean = stream.upstream.as_ref().is_some_and(|u| u.buf.as_ref().is_none_or(Buf::is_empty));
    if whole && stream.http.server_keeps && stream.http.body_received && clean && !down.eof {
        connect::park(stream);
    }
}
