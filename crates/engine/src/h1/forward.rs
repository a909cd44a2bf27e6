//! From the staged request head to the end of the response: the request's body up, the response down.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use lang::env::Side;
use model::Txn;
use model::conn::ConnError;
use model::term::{Cause, Phase};
use program::Proxy;
use rt::Buf;
use wire::head::{Head, Kind, Known};
use wire::http1::{Body, Limits, ParseError, Parsed, parse_response, response_body, upgrades, violation};
use wire::method::Version;

use super::exchange::Step;
use super::{Next, early, headers, replaced, response, wait};
use crate::captured::{self, Captured, Named};
use crate::check::{self, Seen};
use crate::choose::Wish;
use crate::connect;
use crate::h2::Call;
use crate::pump::{Break, End, Framing, Half};
use crate::stream::Stream;
use crate::transport::{Early, Transport};

/// How waiting for a response ended.
pub enum Wait {
    /// Its head is there.
    Response,
    /// The attempt failed in a way that `retry-on` names.
    Retry,
    /// It failed: answer with this status, or close without a word.
    Failed(Option<u16>),
    /// A rule ended it.
    Over(Next),
}

/// What happened while the head was awaited.
enum Event {
    Head,
    Interim,
    Bad(ParseError),
    /// A 101 that answers no request to switch protocols.
    UnaskedUpgrade,
    ServerClosed,
    ServerTimeout,
    /// The client stopped in the middle of its request: it left, or its time is over.
    ClientStopped(Cause),
    /// The connection to the client broke while it waited for the response.
    ClientBroke,
    /// The client closed while it waited for the response.
    ClientLeft,
    BadBody,
    Killed(Cause),
}

/// Sends the request and waits for the head of the final response.
pub async fn until_response(stream: &mut Stream<'_>) -> Wait {
    stream.txn.res.clear();
    stream.txn.res.set_limit(stream.worker.shared.program.global.tune.bufsize);
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    let server_limit = stream.txn.overrides.server.or(back.timeouts.server);
    let client_limit = stream.txn.overrides.client.or(stream.frontend().timeouts.client);
    stream.server_timer.set_after(server_limit);
    stream.client.timer.set_after(client_limit);
    let multiplexed = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    let early = stream.upstream.as_ref().is_some_and(|up| up.early_end() == Some(Early::Open));
    if (back.retry_on.needs_request() || multiplexed || early) && stream.upload.sent == 0 {
        stream.upload.kept.get_or_insert_default();
    }
    if stream.upload.filters.is_none() {
        stream.upload.filters = crate::filter::chain(stream, Side::Request);
    }
    count_early(stream);
    crate::filter::headers(stream, Side::Request);
    stream.upload.splice = splices(stream, stream.frontend(), back, true) && stream.upload.kept.is_none();
    let mut write_failed = false;
    let stopped = match contact(stream, back, &mut write_failed, client_limit, server_limit).await {
        Ok(stopped) => stopped,
        Err(next) => return Wait::Over(next),
    };
    if let Some(event) = stopped {
        return failed(stream, back, event);
    }
    loop {
        let event = poll_fn(|cx| {
            if let Some(event) = upload(stream, cx, &mut write_failed, client_limit, server_limit) {
                return Poll::Ready(event);
            }
            if let Poll::Ready(event) = download_head(stream, cx, back, server_limit) {
                return Poll::Ready(event);
            }
            match watch_client(stream, cx, back) {
                Some(event) => Poll::Ready(event),
                None => expired(stream, cx),
            }
        })
        .await;
        match event {
            Event::Head => {
                response::note(stream);
                count_head(stream, false);
                return on_head(stream, back);
            }
            Event::Interim => {
                count_head(stream, true);
                crate::finish::count_response(stream, stream.txn.res.status());
                if !pass_interim(stream).await {
                    return Wait::Failed(None);
                }
            }
            other => return failed(stream, back, other),
        }
    }
}

/// `tcp-response content` without an inspection delay is about what the server has said by the time that it is reached,
/// which is nothing. The head of the request is on its way by then. What stopped the request meanwhile is told once.
///
/// # Errors
/// A rule ended the exchange.
async fn contact(
    stream: &mut Stream<'_>,
    back: &Proxy,
    write_failed: &mut bool,
    client_limit: Option<Duration>,
    server_limit: Option<Duration>,
) -> Result<Option<Event>, Next> {
    let rules = &back.rules.tcp_response;
    if rules.is_empty()
        || back.timeouts.inspect_response.is_some()
        || std::mem::replace(&mut stream.http.contacted, true)
    {
        return Ok(None);
    }
    let stopped = poll_fn(|cx| {
        if let Some(event) = upload(stream, cx, write_failed, client_limit, server_limit) {
            return Poll::Ready(Some(event));
        }
        if *write_failed || stream.to_server.is_none() {
            return Poll::Ready(None);
        }
        expired(stream, cx).map(Some)
    })
    .await;
    match super::rules::run(stream, rules, Side::Response, None).await {
        Step::Go => Ok(stopped),
        Step::Done(next) => Err(next),
    }
}

/// Counts the head of a response.
fn count_head(stream: &mut Stream<'_>, interim: bool) {
    let (size, added) = replaced::head_size(stream, interim);
    stream.http.response_added = added;
    stream.txn.down.received += size;
}

/// Counts what came of the request's body before the pump took over: with the head, or while rules waited for it.
fn count_early(stream: &mut Stream<'_>) {
    if std::mem::replace(&mut stream.upload.begun, true) {
        return;
    }
    let there = stream.client.buf.as_ref().map_or(0, Buf::len) as u64;
    stream.upload.received += match stream.upload.framing {
        Framing::Length(length) => length.min(there),
        Framing::Chunked(_) | Framing::Close => there,
    };
}

/// Moves the request's body; an event only if the request can't go on.
fn upload(
    stream: &mut Stream<'_>,
    cx: &mut Context<'_>,
    write_failed: &mut bool,
    client_limit: Option<Duration>,
    server_limit: Option<Duration>,
) -> Option<Event> {
    if let Some(cause) = stream.client.session.kill.get() {
        return Some(Event::Killed(cause));
    }
    let up = stream.upstream.as_ref()?;
    if *write_failed
        || (stream.to_server.is_none() && stream.upload.is_received() && stream.http.body_received)
    {
        return None;
    }
    let half = &mut stream.upload;
    if stream.to_server.is_none() && up.call.as_ref().is_some_and(|call| call.poll_opened(cx).is_pending()) {
        // Nobody can take the body yet; it is the server that the client waits for.
        half.blocked = true;
        return None;
    }
    let client = &mut *stream.client;
    let moved = half.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket);
    if half.moved {
        half.moved = false;
        client.timer.set_after(client_limit);
        stream.server_timer.set_after(server_limit);
    }
    match moved {
        Poll::Pending => None,
        Poll::Ready(Ok(_)) => {
            stream.http.body_received = true;
            None
        }
        // The server stopped reading; it may still have an answer.
        Poll::Ready(Err(Break::Write(_))) => {
            *write_failed = true;
            stream.http.server_keeps = false;
            None
        }
        Poll::Ready(Err(Break::Read(_) | Break::Truncated)) => Some(Event::ClientStopped(Cause::ClientAbort)),
        Poll::Ready(Err(Break::Malformed)) => Some(Event::BadBody),
    }
}

fn download_head(
    stream: &mut Stream<'_>,
    cx: &mut Context<'_>,
    back: &Proxy,
    server_limit: Option<Duration>,
) -> Poll<Event> {
    let limits = super::request::limits(stream);
    let Some(up) = stream.upstream.as_mut() else { return Poll::Ready(Event::ServerClosed) };
    loop {
        if let Some(buf) = up.buf.as_mut().filter(|b| !b.is_empty()) {
            match parse_response(buf.filled(), &mut stream.txn.res, &limits, back.options.unsafe_response) {
                Ok(Parsed::Complete { consumed }) => {
                    if let Err(e) = limits.admit(&stream.txn.res) {
                        return Poll::Ready(Event::Bad(e));
                    }
                    let status = stream.txn.res.status();
                    if status == 101 && !(stream.http.body_received && switches(&stream.txn)) {
                        buf.consume(consumed);
                        stream.txn.down.wire_in += consumed as u64;
                        return Poll::Ready(Event::UnaskedUpgrade);
                    }
                    let interim = (100..200).contains(&status) && status != 101;
                    if interim && let Some(e) = broken_next(buf.filled().get(consumed..), &limits, back) {
                        return Poll::Ready(Event::Bad(e));
                    }
                    let body = response_body(&stream.txn.res, stream.txn.req.method_id());
                    if !interim
                        && let Err(e) =
                            wait::check_chunks(body, buf.filled(), consumed, back.options.unsafe_response)
                    {
                        return Poll::Ready(Event::Bad(e));
                    }
                    if back.options.unsafe_response
                        && let Some(e) = violation(buf.filled(), &limits, Kind::Response)
                    {
                        stream.txn.server_conn.glitches += 1;
                        let faulty =
                            faulty(&stream.worker, stream.client.conn(), &stream.txn, buf.filled(), &e);
                        captured::keep(&stream.worker, faulty);
                    }
                    buf.consume(consumed);
                    stream.txn.down.wire_in += consumed as u64;
                    return Poll::Ready(if interim { Event::Interim } else { Event::Head });
                }
                Ok(Parsed::Partial) => {}
                Err(e) => return Poll::Ready(Event::Bad(e)),
            }
        }
        if up.socket.poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let buf = up.buf.get_or_insert_default();
        if buf.spare() == 0 {
            buf.compact();
        }
        match up.socket.poll_recv(cx, buf.spare_mut()) {
            Poll::Pending => {
                if buf.is_empty() {
                    up.buf = None;
                }
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => return Poll::Ready(Event::ServerClosed),
            Poll::Ready(Err(e)) => {
                stream.txn.server_conn.error = ConnError::of_system(&e);
                return Poll::Ready(Event::ServerClosed);
            }
            Poll::Ready(Ok(n)) => {
                buf.advance(n);
                stream.server_timer.set_after(server_limit);
            }
        }
    }
}

/// What is wrong with the response that came together with an interim one: neither is passed on then.
fn broken_next(bytes: Option<&[u8]>, limits: &Limits, back: &Proxy) -> Option<ParseError> {
    let bytes = bytes.filter(|bytes| !bytes.is_empty())?;
    parse_response(bytes, &mut Head::default(), limits, back.options.unsafe_response).err()
}

/// Whether a 101 is what was asked for. The key that a client of HTTP/2 has none of has to be answered right.
fn switches(txn: &Txn) -> bool {
    let (req, res) = (&txn.req, &txn.res);
    let websocket = txn.client_stream.id.is_some() && req.has_token(Known::Upgrade, b"websocket");
    let own = if websocket { req.first(Known::SecWebsocketKey) } else { None };
    let answered = |key| res.first(Known::SecWebsocketAccept) == Some(&crate::h2::websocket_accept(key)[..]);
    upgrades(req) && upgrades(res) && own.is_none_or(answered)
}

/// A client whose connection breaks while it waits ends the request; one that only closes its sending side does so
/// with `abortonclose`, which can't tell it from one that is gone.
fn watch_client(stream: &Stream<'_>, cx: &mut Context<'_>, back: &Proxy) -> Option<Event> {
    if !stream.http.body_received {
        return None;
    }
    let socket = &stream.client.socket;
    if socket.poll_broken(cx).is_ready() {
        // A client behind a Unix socket that closes ends both directions at once, and has left like any other that closes.
        let closed = !socket.raw().is_local() && !socket.raw().is_reset();
        return Some(if closed && back.options.abortonclose {
            Event::ClientLeft
        } else {
            Event::ClientBroke
        });
    }
    // A stream of HTTP/2 ends its side of a tunnel without leaving, before the tunnel stands as well.
    let tunnel = stream.client.part.is_some() && stream.txn.req.method_id() == wire::method::Method::Connect;
    (socket.is_hung_up() && back.options.abortonclose && !tunnel).then_some(Event::ClientLeft)
}

fn expired(stream: &mut Stream<'_>, cx: &mut Context<'_>) -> Poll<Event> {
    // While the client has not sent everything its clock runs, afterwards the server's.
    if !stream.http.body_received && !stream.upload.blocked {
        return stream.client.timer.poll_expired(cx).map(|()| Event::ClientStopped(Cause::ClientTimeout));
    }
    stream.server_timer.poll_expired(cx).map(|()| Event::ServerTimeout)
}

/// Passes a 1xx response on.
async fn pass_interim(stream: &mut Stream<'_>) -> bool {
    let wanted = stream.txn.req.version() >= wire::method::Version::HTTP_11;
    if wanted {
        let worker = stream.worker.clone();
        let mut out = Vec::new();
        headers::write_response(stream, &mut out);
        drop(worker);
        if stream.client.socket.send_all(&out).await.is_err() {
            stream.end(Cause::ClientAbort, Phase::Headers);
            return false;
        }
        stream.txn.down.wire_out += out.len() as u64;
        let size = headers::without(headers::counted(&stream.txn.res), stream.http.response_added);
        stream.txn.down.sent += size;
    }
    stream.txn.res.clear();
    true
}

fn on_head(stream: &mut Stream<'_>, back: &Proxy) -> Wait {
    early::note_server(stream);
    let status = stream.txn.res.status();
    observe(stream, Seen::Response(status));
    if back.retry_on.statuses.contains(&status) && may_retry(stream, back) {
        return Wait::Retry;
    }
    if stream.txn.server_conn.http_major == 2 {
        stream.txn.res.set_version(Version::HTTP_2);
        crate::h2::note(stream);
    }
    stream.txn.has_res = true;
    stream.txn.times.response = Some(rt::now());
    Wait::Response
}

/// Tells the health checks what became of the request at its server.
fn observe(stream: &Stream<'_>, seen: Seen) {
    if let Some(place) = &stream.place {
        check::observe(&stream.worker, place.backend, place.server, seen);
    }
}

fn failed(stream: &mut Stream<'_>, back: &Proxy, event: Event) -> Wait {
    match &event {
        Event::ServerClosed => observe(stream, Seen::Broken),
        Event::ServerTimeout => observe(stream, Seen::Timeout),
        Event::Bad(_) | Event::UnaskedUpgrade => observe(stream, Seen::BadResponse),
        _ => {}
    }
    match &event {
        Event::UnaskedUpgrade => crate::finish::count_response(stream, stream.txn.res.status()),
        // The broken connection counts, and once more the request that is answered for it.
        Event::Bad(_) | Event::ServerClosed => count_broken(stream),
        _ => {}
    }
    let reset = !stream.txn.server_conn.error.is_none();
    match &event {
        Event::ServerClosed if !reset => stream.server_is_done(),
        Event::Bad(_) | Event::UnaskedUpgrade | Event::ServerTimeout | Event::ClientLeft => {
            stream.server_is_done();
        }
        _ => {}
    }
    let worker = stream.worker.index;
    let retry = &back.retry_on;
    let received = stream.upstream.as_ref().is_some_and(|u| u.buf.as_ref().is_some_and(|b| !b.is_empty()));
    match event {
        Event::Head | Event::Interim => Wait::Response,
        Event::ServerClosed => {
            count_came(stream);
            crate::h2::note(stream);
            if let Some(outcome) = lost_early(stream, back) {
                return outcome;
            }
            let refused =
                stream.upstream.as_ref().and_then(|u| u.call.as_ref()).is_some_and(Call::was_refused);
            if refused && retry.conn_failure && may_retry(stream, back) {
                return Wait::Retry;
            }
            let received = received
                || stream.upstream.as_ref().and_then(|u| u.call.as_ref()).is_some_and(Call::was_malformed);
            let wanted = if received { retry.junk_response } else { retry.empty_response };
            if wanted && may_retry(stream, back) {
                return Wait::Retry;
            }
            let reused = stream.upstream.as_ref().is_some_and(|u| u.reused);
            if reused && !received {
                // What was lost on a connection that had served others is the client's to try again.
                server_abort(stream, back);
                stream.txn.silent = true;
                return Wait::Failed(None);
            }
            count_response_error(stream);
            // A head that breaks off is a bad message; no word at all is the server's failure.
            stream.end(if received { Cause::Proxy } else { Cause::ServerAbort }, Phase::Headers);
            Wait::Failed(Some(502))
        }
        Event::Bad(e) => {
            part_orderly(stream);
            stream.txn.server_conn.glitches += 1;
            let bytes =
                stream.upstream.as_ref().and_then(|u| u.buf.as_ref()).map(Buf::filled).unwrap_or_default();
            let faulty = faulty(&stream.worker, stream.client.conn(), &stream.txn, bytes, &e);
            captured::keep(&stream.worker, faulty);
            // They came, be they no response.
            count_came(stream);
            if retry.junk_response && may_retry(stream, back) {
                return Wait::Retry;
            }
            count_response_error(stream);
            stream.end(Cause::Proxy, Phase::Headers);
            Wait::Failed(Some(502))
        }
        Event::UnaskedUpgrade => {
            count_unasked(stream);
            if retry.junk_response && may_retry(stream, back) {
                return Wait::Retry;
            }
            count_response_error(stream);
            stream.end(Cause::Proxy, Phase::Headers);
            Wait::Failed(Some(502))
        }
        Event::ServerTimeout => {
            if retry.response_timeout && may_retry(stream, back) {
                return Wait::Retry;
            }
            count_response_error(stream);
            stream.end(Cause::ServerTimeout, Phase::Headers);
            Wait::Failed(Some(504))
        }
        Event::ClientStopped(_) if stream.client.part.as_ref().is_some_and(|p| p.receipt.malformed.get()) => {
            client_abort(stream, back);
            super::request::count_front_error(stream);
            stream.end(Cause::Proxy, Phase::Headers);
            Wait::Failed(Some(400))
        }
        Event::ClientStopped(cause) => {
            client_abort(stream, back);
            stream.end(cause, Phase::Headers);
            stream.http.client_left = cause == Cause::ClientAbort;
            Wait::Failed(Some(400))
        }
        Event::ClientBroke => {
            // Once for its connection, once for the request that is given up.
            client_abort(stream, back);
            client_abort(stream, back);
            stream.end(Cause::ClientAbort, Phase::Data);
            Wait::Failed(Some(400))
        }
        Event::ClientLeft => {
            client_abort(stream, back);
            if stream.client.socket.is_broken() {
                // A client of a Unix socket ends its connection, too.
                client_abort(stream, back);
            }
            stream.end(Cause::ClientAbort, Phase::Headers);
            Wait::Failed(Some(400))
        }
        Event::BadBody => {
            stream.frontend().state.front.counters.of(worker).req_errors.inc();
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

/// Ends what is said to a server that broke the protocol: its connection is closed, not reset (but for `option nolinger`).
fn part_orderly(stream: &Stream<'_>) {
    if let Some(up) = stream.upstream.as_ref().filter(|up| up.call.is_none()) {
        // One that is gone needs no end.
        let _ = up.socket.shutdown_write();
    }
}

/// A 101 that nobody asked for counts in full, and so does what came behind it as the first bytes of a tunnel.
fn count_unasked(stream: &mut Stream<'_>) {
    let behind = stream.upstream.as_ref().and_then(|up| up.buf.as_ref()).map_or(0, Buf::len);
    let res = &mut stream.txn.res;
    res.remove_all(Known::ContentLength);
    res.remove_all(Known::TransferEncoding);
    headers::hide_connection(res, true);
    stream.txn.down.received += (res.counted_len() + behind) as u64;
    count_came(stream);
}

/// Counts what lies in the server's buffer: it was received, and no pump counts it.
fn count_came(stream: &mut Stream<'_>) {
    let there = stream.upstream.as_ref().and_then(|up| up.buf.as_ref()).map_or(0, Buf::len);
    stream.txn.down.wire_in += there as u64;
}

/// An operator or a change of the server's state ended it: HAProxy logs that as an error of its own, and says nothing to the client.
fn killed(stream: &mut Stream<'_>, cause: Cause) {
    stream.end(cause, Phase::Connect);
    stream.txn.status = 500;
}

/// The connection ended before its handshake did, though the request was on its way already. `None`: it was not so.
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
        Early::Refused => count_response_error(stream),
        _ => connect::count_lost(stream, back),
    }
    stream.end(Cause::ServerAbort, phase);
    Some(Wait::Failed(Some(status)))
}

/// Counts a response that was none.
pub fn count_response_error(stream: &Stream<'_>) {
    crate::stick::response_failure(stream);
    count_broken(stream);
}

/// Counts a server connection that broke in the middle of a response.
pub fn count_broken(stream: &Stream<'_>) {
    let worker = stream.worker.index;
    let back = stream.backend();
    back.state.back.counters.of(worker).resp_errors.inc();
    if let Some(p) = &stream.place {
        p.config().state.counters.of(worker).resp_errors.inc();
    }
}

fn server_abort(stream: &Stream<'_>, back: &Proxy) {
    let worker = stream.worker.index;
    back.state.back.counters.of(worker).server_aborts.inc();
    if let Some(p) = &stream.place {
        p.config().state.counters.of(worker).server_aborts.inc();
    }
}

fn client_abort(stream: &Stream<'_>, back: &Proxy) {
    let worker = stream.worker.index;
    back.state.back.counters.of(worker).client_aborts.inc();
    if let Some(p) = &stream.place {
        p.config().state.counters.of(worker).client_aborts.inc();
    }
}

/// A response with a fault, for `show errors`.
fn faulty(
    worker: &crate::Worker,
    conn: &model::Conn,
    txn: &model::Txn,
    bytes: &[u8],
    e: &ParseError,
) -> Captured {
    let program = &worker.shared.program;
    let server = txn.backend.zip(txn.server).and_then(|(b, s)| program.find_server(b, s));
    Captured {
        response: true,
        date: rt::wall(),
        frontend: Named::proxy(program.configured(conn.frontend)),
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

/// Whether the request can be sent once more.
fn may_retry(stream: &Stream<'_>, back: &Proxy) -> bool {
    let retries = stream.txn.overrides.retries.unwrap_or(back.retries);
    let waiting = stream.client.buf.as_ref().map_or(0, Buf::len);
    let fits = stream.upload.kept.as_ref().is_some_and(|k| k.len() + waiting <= rt::bufsize());
    fits && stream.txn.retries < retries && !stream.txn.decisions.no_l7_retry
}

/// Gets ready for another attempt after `retry-on` applied.
pub async fn prepare_retry(stream: &mut Stream<'_>, wish: &mut Wish) -> bool {
    let server = stream.txn.server;
    stream.leave_connection();
    stream.to_server = None;
    rewind(stream);
    stream.txn.res.clear();
    stream.txn.has_res = false;
    // What the last answer said of its connection and its body says nothing of the next.
    (stream.http.server_keeps, stream.http.response_body) = (false, Body::None);
    // Counted is the attempt that brings the answer.
    (stream.txn.up.sent, stream.txn.down.received) = (0, 0);
    connect::count_l7_retry(stream, server, wish);
    true
}

/// Puts what was sent of the request's body back before the rest of it.
fn rewind(stream: &mut Stream<'_>) {
    let kept = stream.upload.kept.take().unwrap_or_default();
    let body = stream.http.request_body;
    let relax = stream.frontend().options.unsafe_request;
    stream.upload = stream.upload.rewound(Framing::of(body, relax), kept.len());
    stream.http.body_received = matches!(body, Body::None);
    if kept.is_empty() {
        return;
    }
    let mut whole = Buf::new();
    whole.push(&kept);
    if let Some(rest) = &stream.client.buf {
        whole.push(rest.filled());
    }
    stream.client.buf = Some(whole);
}

/// Sends the staged response head and the body behind it, and what remains of the request's body.
pub async fn body(stream: &mut Stream<'_>) -> Next {
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    let front = worker.shared.program.configured(stream.client.conn().frontend);
    count_came(stream);
    let framing = Framing::of(stream.http.response_body, back.options.unsafe_response);
    let mut down = Half::new(framing);
    if stream.frontend().options.drop_response_trailers {
        down.drop_trailers();
    }
    down.multiplexed = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    // A rule may have turned the client's HEAD into a GET: the client still gets no body.
    let head = stream.txn.line.method() == b"HEAD" && stream.txn.req.method() != b"HEAD";
    // So may one have made a response of it that has none.
    down.discard = head || response::is_bodiless(stream.txn.res.status());
    down.splice = !down.discard && splices(stream, front, back, false);
    if stream.upload.filters.is_none() && !stream.upload.is_received() {
        stream.upload.filters = crate::filter::chain(stream, Side::Request);
    }
    down.filters = crate::filter::chain(stream, Side::Response);
    crate::filter::headers(stream, Side::Response);
    let outcome = exchange(stream, &mut down, front, back, false).await;
    count_down(stream, &mut down);
    finish_body(stream, &down, outcome)
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

/// Whether a direction may be spliced: asked for by an option, or a message so long that pipes are cheaper than copies.
pub fn splices(stream: &Stream<'_>, front: &Proxy, back: &Proxy, request: bool) -> bool {
    // Streams of a multiplexed connection have no socket that pipes could serve.
    let local = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    if stream.worker.shared.program.global.disabled.splice || stream.client.socket.raw().is_local() || local {
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
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    match outcome {
        Outcome::Done => {
            stream.http.answered = true;
            let clean = stream.upstream.as_ref().is_some_and(|u| u.buf.as_ref().is_none_or(Buf::is_empty));
            if stream.http.server_keeps && stream.http.body_received && clean && !down.eof {
                connect::park(stream);
            }
            stream.leave_connection();
            // The client may still owe a part of its request: that is read before the next.
            if stream.http.next_keeps { Next::KeepAlive } else { Next::Close }
        }
        Outcome::Client(cause) => {
            stream.client.give_up();
            client_abort(stream, back);
            stream.end(cause, if stream.http.last { Phase::Last } else { Phase::Data });
            Next::Close
        }
        Outcome::Server(cause) => {
            stream.client.socket.mute();
            if cause == Cause::ServerAbort {
                count_broken(stream);
            }
            server_abort(stream, back);
            crate::h2::note(stream);
            let malformed =
                stream.upstream.as_ref().and_then(|up| up.call.as_ref()).is_some_and(Call::was_malformed);
            if malformed {
                // Trailers that are none: the message is to blame, which counts beside the stream that ended with it.
                count_response_error(stream);
            }
            stream.end(if malformed { Cause::Proxy } else { cause }, Phase::Data);
            Next::Close
        }
        Outcome::Malformed => {
            part_orderly(stream);
            stream.client.socket.mute();
            count_response_error(stream);
            stream.end(Cause::Proxy, Phase::Data);
            Next::Close
        }
        Outcome::Killed(cause) => {
            killed(stream, cause);
            Next::Close
        }
    }
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
    let client_limit = tunnel_limit.or(stream.txn.overrides.client.or(front.timeouts.client));
    let server_limit = tunnel_limit.or(stream.txn.overrides.server.or(back.timeouts.server));
    stream.client.timer.set_after(client_limit);
    stream.server_timer.set_after(server_limit);
    let mut up_done = !tunnel && stream.http.body_received && stream.to_server.is_none();
    let (mut down_done, mut left, mut moved) = (false, false, false);
    let outcome = poll_fn(|cx| {
        if let Some(cause) = stream.client.session.kill.get() {
            return Poll::Ready(Outcome::Killed(cause));
        }
        if front.options.contstats && std::mem::take(&mut moved) {
            crate::finish::count_meanwhile(stream, down);
        }
        let Some(up) = stream.upstream.as_mut() else { return Poll::Ready(Outcome::Done) };
        let client = &mut *stream.client;
        if !down_done {
            let r = down.poll(cx, &up.socket, &mut up.buf, &mut stream.to_client, &client.socket);
            match r {
                Poll::Ready(Ok(End::Complete)) if !tunnel && !up_done => {
                    // The response is through before the request: what is left of that still goes its way.
                    down_done = true;
                    client.timer.set_after(client_limit);
                }
                Poll::Ready(Ok(_)) if !tunnel => return Poll::Ready(Outcome::Done),
                Poll::Ready(Ok(End::Closed | End::Complete)) => {
                    down_done = true;
                    let _ = client.socket.shutdown_write();
                    let fin = front.timeouts.client_fin.or(client_limit);
                    client.timer.set_after(fin);
                }
                Poll::Ready(Err(Break::Write(_))) => return Poll::Ready(Outcome::Client(Cause::ClientAbort)),
                Poll::Ready(Err(Break::Read(_) | Break::Truncated)) => {
                    return Poll::Ready(Outcome::Server(Cause::ServerAbort));
                }
                Poll::Ready(Err(Break::Malformed)) => return Poll::Ready(Outcome::Malformed),
                Poll::Pending => {}
            }
        }
        if !up_done {
            let half = &mut stream.upload;
            match half.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket) {
                Poll::Ready(Ok(End::Complete)) => {
                    up_done = true;
                    stream.http.body_received = true;
                    if down_done {
                        return Poll::Ready(Outcome::Done);
                    }
                }
                Poll::Ready(Ok(End::Closed)) => {
                    up_done = true;
                    stream.http.body_received = true;
                    let _ = up.socket.shutdown_write();
                    stream.server_timer.set_after(back.timeouts.server_fin.or(server_limit));
                }
                // The server takes no more; its response may still be on its way.
                Poll::Ready(Err(Break::Write(_))) => {
                    up_done = true;
                    stream.http.server_keeps = false;
                    if down_done {
                        stream.end(Cause::ServerAbort, Phase::Last);
                        return Poll::Ready(Outcome::Done);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Outcome::Client(Cause::ClientAbort)),
                Poll::Pending => {}
            }
        }
        if tunnel && up_done && down_done {
            return Poll::Ready(Outcome::Done);
        }
        if tunnel && !down_done && client.part.is_some() && client.socket.poll_broken(cx).is_ready() {
            // The stream was reset, or its connection is gone: a half-closed one would stand.
            return Poll::Ready(Outcome::Client(Cause::ClientAbort));
        }
        if up_done && !tunnel && !left && leaves(&client.socket, back, cx) {
            if !client.socket.is_broken() && matches!(down.framing, Framing::Close) {
                // Whatever ends with its connection may be ended from both sides.
                left = true;
                let _ = up.socket.shutdown_write();
            } else {
                return Poll::Ready(Outcome::Client(Cause::ClientAbort));
            }
        }
        let moved_down = std::mem::take(&mut down.moved);
        let moved_up = std::mem::take(&mut stream.upload.moved);
        // `option independent-streams`: what a side is sent says nothing of its own silence.
        if moved_up || moved_down && (!front.options.independent_streams || down.blocked) {
            client.timer.set_after(client_limit);
        }
        if moved_down || moved_up && (!back.options.independent_streams || stream.upload.blocked) {
            stream.server_timer.set_after(server_limit);
        }
        moved |= moved_up || moved_down;
        // The clock of the side that is being waited for.
        let waits_client = down.blocked || tunnel || !up_done && !stream.upload.blocked;
        let waits_server = !down.blocked && !down_done || stream.upload.blocked && !up_done || tunnel;
        if waits_client && client.is_overdue(cx, client_limit) {
            return Poll::Ready(Outcome::Client(Cause::ClientTimeout));
        }
        if waits_server && stream.server_timer.poll_expired(cx).is_ready() {
            return Poll::Ready(Outcome::Server(Cause::ServerTimeout));
        }
        Poll::Pending
    })
    .await;
    if down_done && !tunnel {
        // Only the request was still on its way: the client's last bytes.
        stream.http.last = true;
    }
    outcome
}

/// Waits until a client of HTTP/2 has opened its windows for the whole of an answer that is given: it is sent then, and not
/// when the stream inside the worker has room for it.
pub async fn until_taken(stream: &mut Stream<'_>) {
    let Some(part) = stream.client.part.as_ref().filter(|_| stream.http.answered) else { return };
    let receipt = part.receipt.clone();
    let limit = stream.txn.overrides.client.or(stream.frontend().timeouts.client);
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
        if stream.place.is_some() {
            let worker = stream.worker.clone();
            client_abort(stream, &worker.shared.program.proxy(stream.backend_index()));
        }
        stream.end(cause, Phase::Last);
    }
}

/// Whether a client that has sent its request is gone: its connection broke, or it closed its side and that counts.
fn leaves(socket: &Transport, back: &Proxy, cx: &mut Context<'_>) -> bool {
    socket.poll_broken(cx).is_ready() || (back.options.abortonclose && socket.is_hung_up())
}

/// After 101 or a 2xx to CONNECT: bytes both ways until both sides are done.
pub async fn tunnel(stream: &mut Stream<'_>) -> Next {
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    let front = worker.shared.program.configured(stream.client.conn().frontend);
    stream.http.server_keeps = false;
    if let super::exchange::Step::Done(next) = response::tunnel(stream).await {
        return next;
    }
    super::exchange::tell(stream);
    let mut down = Half::new(Framing::Close);
    down.splice = splices(stream, front, back, false);
    down.filters = crate::filter::chain(stream, Side::Response);
    stream.upload = stream.upload.tunnel();
    stream.upload.splice = splices(stream, front, back, true);
    count_came(stream);
    let outcome = exchange(stream, &mut down, front, back, true).await;
    count_down(stream, &mut down);
    finish_body(stream, &down, outcome);
    Next::Close
}
