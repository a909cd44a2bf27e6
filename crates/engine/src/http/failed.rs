//! An attempt that brought no response: what of it counts, whether it is made again, what the client is told.

use farm::check::{self, Seen};
use link::transport::Early;
use model::term::{Cause, Phase};
use mux::Call;
use program::Proxy;
use rt::Buf;
use wire::head::Known;
use wire::http1::ParseError;
use wire::method::Method;

use super::awaiting::{Event, Wait};
use super::forward::count_came;
use super::retry::{is_kept, may_retry};
use super::{early, headers};
use crate::captured::{self, Captured, Named};
use crate::stream::Stream;
use crate::{connect, losses};

/// Tells the health checks what became of the request at its server.
pub(super) fn observe(stream: &Stream<'_>, seen: Seen) {
    if let Some(place) = &stream.place {
        check::observe(&stream.worker.farm, place.backend, place.server, seen);
    }
}

/// What becomes of an attempt that brought no response.
pub(super) fn failed(stream: &mut Stream<'_>, back: &Proxy, event: Event) -> Wait {
    blame(stream, &event);
    use Event::{BadBody, Head, Interim, Killed, UnaskedUpgrade};
    if !matches!(&event, Head | Interim | BadBody | UnaskedUpgrade | Killed(_)) {
        // Rules on the answer that is made now find the server without it. With a 101 that nobody asked for
        // its response was there.
        stream.server_is_done();
    }
    match event {
        Event::Head | Event::Interim => Wait::Response,
        Event::ServerClosed => server_closed(stream, back),
        Event::Bad(e) => bad(stream, back, &e),
        Event::UnaskedUpgrade => {
            count_unasked(stream);
            junk(stream, back)
        }
        Event::ServerTimeout => {
            if back.retry_on.response_timeout && may_retry(stream, back) {
                return Wait::Retry;
            }
            losses::response_failure(stream);
            stream.end(Cause::ServerTimeout, Phase::Headers);
            Wait::Failed(Some(504))
        }
        Event::ClientStopped(cause) => client_stopped(stream, cause),
        Event::ClientBroke => {
            // Once for its connection, once for the request that is given up.
            losses::client_abort(stream);
            losses::client_abort(stream);
            stream.end(Cause::ClientAbort, Phase::Data);
            Wait::Failed(Some(400))
        }
        Event::ClientLeft => {
            losses::client_abort(stream);
            let filtered = back.filtered || stream.frontend().filtered;
            if stream.client.socket.is_broken() && !filtered {
                // A client of a Unix socket ends its connection, too, which filters keep from the counters.
                losses::client_abort(stream);
            }
            stream.end(Cause::ClientAbort, Phase::Headers);
            Wait::Failed(Some(400))
        }
        Event::BadBody => {
            super::request::capture_body(stream);
            if let Some((front, _)) = stream.front_counters() {
                front.req_errors.inc();
            }
            stream.end(Cause::Proxy, Phase::Headers);
            stream.txn.status = 400;
            Wait::Failed(None)
        }
        Event::Killed(cause) => {
            killed(stream, cause);
            Wait::Failed(None)
        }
    }
}

/// Tells the checks and the counters what of it was the server's fault.
fn blame(stream: &Stream<'_>, event: &Event) {
    match event {
        Event::ServerClosed => observe(stream, Seen::Broken),
        Event::ServerTimeout => observe(stream, Seen::Timeout),
        Event::Bad(_) | Event::UnaskedUpgrade => observe(stream, Seen::BadResponse),
        _ => {}
    }
    match event {
        Event::UnaskedUpgrade => crate::finish::count_response(stream, stream.txn.res.status()),
        // The broken connection counts, and once more the request that is answered for it.
        Event::Bad(_) => losses::broken(stream),
        Event::ServerClosed if !is_junk_of_script(stream) => losses::broken(stream),
        _ => {}
    }
}

/// Whether an application of FastCGI has answered with what is no response: that breaks no connection.
fn is_junk_of_script(stream: &Stream<'_>) -> bool {
    let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
    call.is_some_and(|call| call.speaks_fcgi() && call.was_malformed())
}

/// The server closed its connection, or broke it off, before the head of a response was there.
fn server_closed(stream: &mut Stream<'_>, back: &Proxy) -> Wait {
    let retry = &back.retry_on;
    let came = stream.upstream.as_ref().is_some_and(|u| u.buf.as_ref().is_some_and(|b| !b.is_empty()));
    count_came(stream);
    stream.note_streams();
    if let Some(outcome) = lost_early(stream, back) {
        return outcome;
    }
    let call = stream.upstream.as_ref().and_then(|u| u.call.as_ref());
    let (refused, malformed) = (call.is_some_and(Call::was_refused), call.is_some_and(Call::was_malformed));
    if refused && retry.conn_failure && may_retry(stream, back) {
        return Wait::Retry;
    }
    let received = came || malformed;
    let wanted = if received { retry.junk_response } else { retry.empty_response };
    if wanted && may_retry(stream, back) {
        return Wait::Retry;
    }
    let reused = stream.upstream.as_ref().is_some_and(|u| u.reused);
    // Nobody else tries a copy again; one that changes nothing may come twice.
    let safe = matches!(stream.txn.req.method_id(), Method::Get | Method::Head | Method::Options);
    if stream.txn.mirror.is_copy && safe && reused && !received && may_retry(stream, back) {
        return Wait::Retry;
    }
    if reused && !received && !(retry.empty_response && is_kept(stream)) {
        // What was lost on a connection that had served others is the client's to try again, unless that was
        // to be done here, and was in vain.
        losses::server_abort(stream);
        stream.txn.silent = true;
        return Wait::Failed(None);
    }
    losses::response_failure(stream);
    // A head that breaks off is a bad message; no word at all is the server's failure.
    stream.end(if received { Cause::Proxy } else { Cause::ServerAbort }, Phase::Headers);
    Wait::Failed(Some(502))
}

/// What the server sent is no response.
fn bad(stream: &mut Stream<'_>, back: &Proxy, e: &ParseError) -> Wait {
    part_orderly(stream);
    stream.txn.server_conn.glitches += 1;
    let bytes = stream.upstream.as_ref().and_then(|u| u.buf.as_ref()).map(Buf::filled).unwrap_or_default();
    let faulty = faulty(&stream.worker, stream.client, &stream.txn, bytes, e);
    stream.worker.keep_bad(faulty);
    // They came, be they no response.
    count_came(stream);
    junk(stream, back)
}

/// The client stopped sending its request.
fn client_stopped(stream: &mut Stream<'_>, cause: Cause) -> Wait {
    losses::client_abort(stream);
    if stream.client.part.as_ref().is_some_and(|p| p.receipt.malformed.get()) {
        super::request::count_front_error(stream);
        stream.end(Cause::Proxy, Phase::Headers);
    } else {
        stream.end(cause, Phase::Headers);
        stream.http.client_left = cause == Cause::ClientAbort;
    }
    Wait::Failed(Some(400))
}

/// What the server said is no answer to the request.
fn junk(stream: &mut Stream<'_>, back: &Proxy) -> Wait {
    if back.retry_on.junk_response && may_retry(stream, back) {
        return Wait::Retry;
    }
    losses::response_failure(stream);
    stream.end(Cause::Proxy, Phase::Headers);
    Wait::Failed(Some(502))
}

/// Ends what is said to a server that broke the protocol: its connection is closed, not reset (but for
/// `option nolinger`).
pub(super) fn part_orderly(stream: &Stream<'_>) {
    if let Some(up) = stream.upstream.as_ref().filter(|up| up.call.is_none()) {
        // One that is gone needs no end.
        let _ = up.socket.shutdown_write();
    }
}

/// A 101 that nobody asked for counts in full, and so does what came behind it as the first bytes of a
/// tunnel.
fn count_unasked(stream: &mut Stream<'_>) {
    let behind = stream.upstream.as_ref().and_then(|up| up.buf.as_ref()).map_or(0, Buf::len);
    let res = &mut stream.txn.res;
    res.remove_all(Known::ContentLength);
    res.remove_all(Known::TransferEncoding);
    headers::hide_connection(res, true);
    stream.txn.down.received += (res.counted_len() + behind) as u64;
    count_came(stream);
}

/// An operator or a change of the server's state ended it: HAProxy logs that as an error of its own, and says
/// nothing to the client.
pub(super) fn killed(stream: &mut Stream<'_>, cause: Cause) {
    stream.end(cause, Phase::Connect);
    stream.txn.status = 500;
}

/// Whether that happened to a request that nobody serves yet: none of its times is known.
pub(super) fn was_killed(stream: &mut Stream<'_>) -> bool {
    let Some(cause) = stream.client.session.kill.get() else { return false };
    // What a rule was about to do with it is not what ended it.
    stream.txn.term = model::term::Term::default();
    killed(stream, cause);
    (stream.txn.times.request, stream.txn.times.queued) = (None, None);
    true
}

/// The connection ended before its handshake did, though the request was on its way already. `None`: it was
/// not so.
fn lost_early(stream: &mut Stream<'_>, back: &Proxy) -> Option<Wait> {
    let end = stream.upstream.as_ref()?.early_end()?;
    if matches!(end, Early::Taken | Early::Open) {
        return None;
    }
    early::note_server(stream);
    stream.http.refused_early = true;
    let (wanted, phase, status) = match end {
        Early::Refused => (back.retry_on.early_rejected, Phase::Headers, 425),
        // As one that could not be reached.
        _ => (back.retry_on.conn_failure, Phase::Connect, 503),
    };
    if wanted && may_retry(stream, back) {
        return Some(Wait::Retry);
    }
    match end {
        Early::Refused => losses::response_failure(stream),
        _ => connect::count_lost(stream, back),
    }
    stream.end(Cause::ServerAbort, phase);
    Some(Wait::Failed(Some(status)))
}

/// A response with a fault, for `show errors`.
pub(super) fn faulty(
    worker: &crate::Worker,
    client: &crate::client::Client,
    txn: &model::Txn,
    bytes: &[u8],
    e: &ParseError,
) -> Captured {
    let (program, conn) = (&worker.shared.program, client.conn());
    let server = txn.backend.zip(txn.server).and_then(|(b, s)| program.find_server(b, s));
    Captured {
        response: true,
        date: rt::wall(),
        frontend: Named::proxy(program.configured(client.front)),
        backend: txn.backend.map(|b| Named::proxy(&program.proxy(b))),
        server: server.map(|s| Named::server(&s)),
        src: conn.src.get(),
        session: conn.serial,
        position: e.position,
        state: e.state.as_str(),
        text: e.kind.as_str(),
        bytes: bytes[..bytes.len().min(captured::KEPT)].into(),
    }
}
