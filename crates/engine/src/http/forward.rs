//! The response's body down, and what is left of the request's up; tunnels.

use std::future::poll_fn;
use std::task::{Context, Poll};

use lang::env::Side;
use link::pump::{Break, End, Framing, Half, Outer};
use link::transport::Transport;
use model::term::{Cause, Phase};
use mux::Call;
use program::Proxy;
use rt::Buf;
use wire::http1::Body;

use super::failed::{killed, part_orderly};
use super::{Next, response};
use crate::duplex::{Duplex, EndPolicy, Way, drive};
use crate::stream::Stream;
use crate::{connect, losses};

/// Counts what lies in the server's buffer: it was received, and no pump counts it.
pub(super) fn count_came(stream: &mut Stream<'_>) {
    let there = stream.upstream.as_ref().and_then(|up| up.buf.as_ref()).map_or(0, Buf::len);
    stream.txn.down.wire_in += there as u64;
}

/// Sends the staged response head and the body behind it, and what remains of the request's body.
pub async fn body(stream: &mut Stream<'_>) -> Next {
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    let front = worker.shared.program.configured(stream.client.front);
    count_came(stream);
    let framing = Framing::of(stream.http.response_body, back.options.unsafe_response);
    let mut down = Half::new(framing);
    if stream.frontend().options.drop_response_trailers {
        down.drop_trailers();
    }
    pass_trailers(stream);
    down.multiplexed = super::response::has_no_chunks(stream);
    // A rule may have turned the client's HEAD into a GET: the client still gets no body.
    let head = stream.txn.line.method() == b"HEAD" && stream.txn.req.method() != b"HEAD";
    // So may one have made a response of it that has none.
    down.discard = head || response::is_bodiless(stream.txn.res.status());
    down.prompt = is_prompt(front, back);
    down.splice = !down.discard && splices(stream, front, back, false);
    if !stream.upload.is_filtered()
        && !stream.upload.is_received()
        && let Some(chain) = crate::filter::late(stream, Side::Request)
    {
        stream.upload.pass_through(chain, Outer::Chunked);
    }
    if let Some((chain, outer)) = stream.down_chain.take().filter(|_| !down.discard) {
        down.pass_through(chain, outer);
        let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
        if let Some(trailers) = call.and_then(|call| call.trailers()) {
            down.follow(trailers);
        }
    }
    down.closes = is_last(stream, &down);
    crate::filter::headers(stream, Side::Response);
    let outcome = exchange(stream, &mut down, front, back, false).await;
    count_down(stream, &mut down);
    finish_body(stream, &down, outcome)
}

/// Whether a response is the last that its client gets, as nothing of the request is on its way any more.
fn is_last(stream: &Stream<'_>, down: &Half) -> bool {
    let received = stream.http.body_received && stream.to_server.is_none();
    let plain = stream.client.part.is_none() && stream.client.socket.is_plain();
    received && plain && !stream.http.next_keeps && !down.discard && !down.is_filtered()
}

/// Lets the trailers of a response whose length is declared go from a server of HTTP/2 to a client of HTTP/2:
/// they go beside the body.
fn pass_trailers(stream: &Stream<'_>) {
    let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
    if let (Some(part), Some(call)) = (&stream.client.part, call)
        && matches!(stream.http.response_body, Body::Length(_))
        && !stream.frontend().options.drop_response_trailers
    {
        *part.receipt.response_trailers.borrow_mut() = call.trailers();
    }
}

/// Counts what the pump moved of the response.
fn count_down(stream: &mut Stream<'_>, down: &mut Half) {
    let counts = &mut stream.txn.down;
    counts.wire_in += down.received;
    counts.wire_out += down.sent;
    counts.sent += down.counted_sent();
    if let Some(up) = stream.upstream.as_mut() {
        counts.received += down.counted(&mut up.buf) + up.call.as_ref().map_or(0, Call::take_extra);
    }
    crate::finish::count_spliced(stream, down);
}

/// Whether nothing may be held back for company: pipes do that, too.
pub fn is_prompt(front: &Proxy, back: &Proxy) -> bool {
    front.options.http_no_delay || back.options.http_no_delay
}

/// Whether a direction may be spliced: asked for by an option, or a message so long that pipes are cheaper
/// than copies.
pub fn splices(stream: &Stream<'_>, front: &Proxy, back: &Proxy, request: bool) -> bool {
    if stream.worker.shared.program.global.disabled.splice || is_prompt(front, back) {
        return false;
    }
    let asked = |p: &Proxy| {
        p.options.splice_auto || if request { p.options.splice_request } else { p.options.splice_response }
    };
    let body = if request { stream.http.request_body } else { stream.http.response_body };
    asked(front) || asked(back) || matches!(body, Body::Length(n) if n >= WORTH_SPLICING)
}

/// Bodies from this length on go through pipes unasked.
const WORTH_SPLICING: u64 = 256 * 1024;

/// How the exchange of bodies ended.
enum Outcome {
    Done,
    Client(Cause),
    Server(Cause),
    Malformed,
    Killed(Cause),
}

fn finish_body(stream: &mut Stream<'_>, down: &Half, outcome: Outcome) -> Next {
    match outcome {
        Outcome::Done => {
            stream.http.answered = true;
            let clean = stream.upstream.as_ref().is_some_and(|u| u.buf.as_ref().is_none_or(Buf::is_empty));
            if stream.http.server_keeps && stream.http.body_received && clean && !down.eof {
                connect::park(stream);
            }
            if let Some(up) = stream.upstream.take_if(|up| up.call.is_none() && up.seat.is_none()) {
                stream.part(Some(up.socket));
            }
            stream.leave_connection();
            // The client may still owe a part of its request: that is read before the next.
            if stream.http.next_keeps { Next::KeepAlive } else { Next::Close }
        }
        Outcome::Client(cause) => {
            stream.client.give_up();
            if is_wanting(stream, down) {
                losses::failure(stream);
            }
            losses::client_abort(stream);
            stream.end(cause, if stream.http.last { Phase::Last } else { Phase::Data });
            Next::Close
        }
        Outcome::Server(cause) => {
            stream.client.socket.mute();
            if cause == Cause::ServerAbort {
                losses::broken(stream);
            }
            if is_wanting(stream, down) {
                losses::failure(stream);
                losses::failure(stream);
            }
            losses::server_abort(stream);
            stream.note_streams();
            let malformed =
                stream.upstream.as_ref().and_then(|up| up.call.as_ref()).is_some_and(Call::was_malformed);
            if malformed {
                // Trailers that are none: the message is to blame, which counts beside the stream that ended
                // with it.
                losses::response_failure(stream);
            }
            stream.end(if malformed { Cause::Proxy } else { cause }, Phase::Data);
            Next::Close
        }
        Outcome::Malformed => {
            part_orderly(stream);
            stream.client.socket.mute();
            losses::response_failure(stream);
            if is_wanting(stream, down) {
                losses::failure(stream);
            }
            stream.end(Cause::Proxy, Phase::Data);
            Next::Close
        }
        Outcome::Killed(cause) => {
            killed(stream, cause);
            Next::Close
        }
    }
}

/// Whether a response breaks off that says where it ends, and whose request is through: that is a failure for
/// stick tables, by the count of HAProxy one when its client leaves and two when its server does.
fn is_wanting(stream: &Stream<'_>, down: &Half) -> bool {
    let sent = stream.http.body_received && stream.to_server.is_none();
    let multiplexed = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    sent && (multiplexed || !matches!(down.framing, Framing::Close))
}

/// Moves both directions until the response is through.
async fn exchange(
    stream: &mut Stream<'_>,
    down: &mut Half,
    front: &Proxy,
    back: &Proxy,
    tunnel: bool,
) -> Outcome {
    let tunnel_limit = stream.txn.overrides.tunnel.or(back.timeouts.tunnel).filter(|_| tunnel);
    let client_limit = tunnel_limit.or(stream.client_limit());
    let server_limit = tunnel_limit.or(stream.server_limit());
    stream.client.timer.set_after(client_limit);
    stream.server_timer.set_after(server_limit);
    let up_done = !tunnel && stream.http.body_received && stream.to_server.is_none();
    let mut duplex = Duplex { down, up_done, down_done: false, limits: (client_limit, server_limit) };
    let mut policy = Bodies { front, back, tunnel, left: false };
    let outcome = drive(stream, &mut duplex, &mut policy, (front, back)).await;
    if duplex.down_done && !tunnel {
        // Only the request was still on its way: the client's last bytes.
        stream.http.last = true;
    }
    outcome
}

/// The bodies of an exchange, or a tunnel: the end of the response is the end of both, but for what is left
/// of the request, and a tunnel ends with its second side.
struct Bodies<'p> {
    front: &'p Proxy,
    back: &'p Proxy,
    tunnel: bool,
    /// The client has left, and so does the server's side.
    left: bool,
}

impl EndPolicy for Bodies<'_> {
    type Over = Outcome;

    const FIRST: Way = Way::Down;

    fn killed(&mut self, cause: Cause) -> Outcome {
        Outcome::Killed(cause)
    }

    fn cut_off(&mut self) -> Outcome {
        Outcome::Done
    }

    fn came(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        way: Way,
        end: Result<End, Break>,
    ) -> Option<Outcome> {
        match way {
            Way::Up => self.sent(duplex, stream, end),
            Way::Down => self.answered(duplex, stream, end),
        }
    }

    fn look(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Outcome> {
        let client = &*stream.client;
        if self.tunnel {
            if duplex.up_done && duplex.down_done {
                return Some(Outcome::Done);
            }
            // A stream that was reset, or whose connection is gone: a half-closed one would stand.
            let stands =
                duplex.down_done || client.part.is_none() || client.socket.poll_broken(cx).is_pending();
            return (!stands).then_some(Outcome::Client(Cause::ClientAbort));
        }
        // The stream of a client of HTTP/2 is over with the head of a response that has no body to show.
        let over = duplex.down.discard && client.part.is_some();
        if duplex.up_done && !self.left && !over && leaves(&client.socket, self.back, cx) {
            if client.socket.is_broken() || !matches!(duplex.down.framing, Framing::Close) {
                return Some(Outcome::Client(Cause::ClientAbort));
            }
            // Whatever ends with its connection may be ended from both sides.
            self.left = true;
            if let Some(up) = &stream.upstream {
                let _ = up.socket.shutdown_write();
            }
        }
        None
    }

    fn late(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Outcome> {
        // The clock of the side that is being waited for.
        let (down, up_blocked) = (&*duplex.down, stream.upload.blocked);
        let waits_client = down.blocked || self.tunnel || !duplex.up_done && !up_blocked;
        let waits_server = !down.blocked && !duplex.down_done || up_blocked && !duplex.up_done || self.tunnel;
        if waits_client && stream.client.is_overdue(cx, duplex.limits.0) {
            return Some(Outcome::Client(Cause::ClientTimeout));
        }
        (waits_server && stream.server_timer.poll_expired(cx).is_ready())
            .then_some(Outcome::Server(Cause::ServerTimeout))
    }
}

impl Bodies<'_> {
    /// The response is through, or broke off.
    fn answered(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        end: Result<End, Break>,
    ) -> Option<Outcome> {
        let client = &mut *stream.client;
        match end {
            Ok(End::Complete) if !self.tunnel && !duplex.up_done => {
                // The response is through before the request: what is left of that still goes its way.
                duplex.down_done = true;
                client.timer.set_after(duplex.limits.0);
                None
            }
            Ok(_) if !self.tunnel => Some(Outcome::Done),
            Ok(End::Closed | End::Complete) => {
                duplex.down_done = true;
                // With `option nolinger` a client that has closed its side is reset.
                if !(self.front.options.nolinger && duplex.up_done) {
                    let _ = client.socket.shutdown_write();
                }
                client.timer.set_after(self.front.timeouts.client_fin.or(duplex.limits.0));
                None
            }
            Err(Break::Write(_)) => Some(Outcome::Client(Cause::ClientAbort)),
            Err(Break::Read(_) | Break::Truncated) => Some(Outcome::Server(Cause::ServerAbort)),
            Err(Break::Malformed) => Some(Outcome::Malformed),
            Err(Break::Filtered) => Some(Outcome::Killed(Cause::Internal)),
        }
    }

    /// The request is through, or broke off.
    fn sent(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        end: Result<End, Break>,
    ) -> Option<Outcome> {
        match end {
            Ok(End::Complete) => {
                duplex.up_done = true;
                stream.http.body_received = true;
                duplex.down_done.then_some(Outcome::Done)
            }
            Ok(End::Closed) => {
                duplex.up_done = true;
                stream.http.body_received = true;
                if self.tunnel && self.back.options.nolinger {
                    // Not even its answer is waited for, as with TCP.
                    return Some(Outcome::Done);
                }
                if let Some(up) = &stream.upstream {
                    let _ = up.socket.shutdown_write();
                }
                stream.server_timer.set_after(self.back.timeouts.server_fin.or(duplex.limits.1));
                None
            }
            // The server takes no more; its response may still be on its way.
            Err(Break::Write(_)) => {
                duplex.up_done = true;
                stream.http.server_keeps = false;
                if !duplex.down_done {
                    return None;
                }
                stream.end(Cause::ServerAbort, Phase::Last);
                Some(Outcome::Done)
            }
            Err(Break::Filtered) => Some(Outcome::Killed(Cause::Internal)),
            Err(_) => Some(Outcome::Client(Cause::ClientAbort)),
        }
    }
}

/// Waits until a client of HTTP/2 has opened its windows for the whole of an answer that is given: it is sent
/// then, and not when the stream inside the worker has room for it.
pub async fn until_taken(stream: &mut Stream<'_>) {
    let Some(part) = stream.client.part.as_ref().filter(|_| stream.http.answered) else { return };
    let receipt = part.receipt.clone();
    let limit = stream.client_limit();
    let client = &mut *stream.client;
    // What ends with its connection ends here.
    let _ = client.socket.shutdown_write();
    client.timer.set_after(limit);
    let cause = poll_fn(|cx| {
        if receipt.is_taken(cx) {
            return Poll::Ready(None);
        }
        if let Some(cause) = client.session.kill.get() {
            return Poll::Ready(Some(cause));
        }
        if client.socket.poll_broken(cx).is_ready() {
            return Poll::Ready(Some(Cause::ClientAbort));
        }
        if client.is_overdue(cx, limit) {
            return Poll::Ready(Some(Cause::ClientTimeout));
        }
        Poll::Pending
    })
    .await;
    if let Some(cause) = cause {
        receipt.give_up();
        // The time for an answer that came of no server is nobody's loss.
        let answered = stream.txn.times.response.is_some();
        if stream.place.is_some() && (answered || cause == Cause::ClientAbort) {
            losses::client_abort(stream);
        }
        stream.end(cause, Phase::Last);
    }
}

/// Whether a client that has sent its request is gone: its connection broke, or it closed its side and that
/// counts.
fn leaves(socket: &Transport, back: &Proxy, cx: &mut Context<'_>) -> bool {
    socket.poll_broken(cx).is_ready() || (back.options.abortonclose && socket.has_ended(cx))
}

/// After 101 or a 2xx to CONNECT: bytes both ways until both sides are done.
pub async fn tunnel(stream: &mut Stream<'_>) -> Next {
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    let front = worker.shared.program.configured(stream.client.front);
    stream.http.server_keeps = false;
    if let super::exchange::Step::Done(next) = response::tunnel(stream).await {
        return next;
    }
    super::exchange::tell(stream);
    if !response::opens_tunnel(stream) {
        return body(stream).await;
    }
    let mut down = Half::new(Framing::Close);
    down.splice = splices(stream, front, back, false);
    if let Some(chain) = crate::filter::late(stream, Side::Response) {
        down.pass_through(chain, Outer::Plain);
    }
    stream.upload = stream.upload.tunnel();
    stream.upload.splice = splices(stream, front, back, true);
    count_came(stream);
    let outcome = exchange(stream, &mut down, front, back, true).await;
    count_down(stream, &mut down);
    finish_body(stream, &down, outcome);
    Next::Close
}
