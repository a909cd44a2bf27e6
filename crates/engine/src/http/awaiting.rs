//! From the staged request head to the head of the response: the request's body goes up meanwhile.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use farm::check::Seen;
use lang::env::Side;
use link::pump::{Break, Framing};
use link::transport::Early;
use model::Txn;
use model::conn::ConnError;
use model::term::{Cause, Phase};
use program::Proxy;
use rt::Buf;
use tls::Ahead;
use wire::head::{Head, Kind, Known};
use wire::http1::{Limits, ParseError, Parsed, parse_response, response_body, upgrades, violation};
use wire::method::Version;

use super::exchange::Step;
use super::failed::{failed, faulty, observe};
use super::forward::{is_prompt, splices};
use super::retry::may_retry;
use super::{Next, early, headers, replaced, response, wait};
use crate::silence;
use crate::stream::Stream;

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
pub(super) enum Event {
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
    let server_limit = stream.server_limit();
    let client_limit = stream.client_limit();
    stream.server_timer.set_after(server_limit);
    // A client that owes a part of its request has been silent since it was last heard.
    stream.client.timer.set(silence::deadline(stream));
    let multiplexed = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    let early = stream.upstream.as_ref().is_some_and(|up| up.early_end() == Some(Early::Open));
    let copied = stream.txn.mirror.is_copy;
    if (back.retry_on.needs_request() || multiplexed || early || copied) && stream.upload.sent == 0 {
        stream.upload.kept.get_or_insert_default();
    }
    count_early(stream);
    crate::filter::headers(stream, Side::Request);
    stream.upload.prompt = is_prompt(stream.frontend(), back);
    stream.upload.splice = splices(stream, stream.frontend(), back, true) && stream.upload.kept.is_none();
    let mut write_failed = false;
    let stopped = match contact(stream, back, &mut write_failed, client_limit, server_limit).await {
        Ok(stopped) => stopped,
        Err(next) => return Wait::Over(next),
    };
    if let Some(event) = stopped {
        return failed(stream, back, event);
    }
    let mut end_passed = !stream.wants_tunnel();
    loop {
        let event = poll_fn(|cx| {
            if let Some(event) = upload(stream, cx, &mut write_failed, client_limit, server_limit) {
                return Poll::Ready(event);
            }
            end_passed = end_passed || pass_end(stream, cx);
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

/// `tcp-response content` without an inspection delay is about what the server has said by the time that it
/// is reached, which is nothing. The head of the request is on its way by then. What stopped the request
/// meanwhile is told once.
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

/// Counts what came of the request's body before the pump took over: with the head, or while rules waited for
/// it.
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
    let (received, held) = (half.received, half.blocked);
    let moved = half.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket);
    if half.moved {
        half.moved = false;
        stream.server_timer.set_after(server_limit);
        // What had come before goes on without a word of the client. One that was not read from could say
        // none.
        if held || half.received != received {
            stream.heard = rt::now();
            client.timer.set_after(client_limit);
        }
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
        Poll::Ready(Err(Break::Read(e))) => {
            // The report of it may come behind the read that takes it.
            if stream.client.part.is_none() && e.kind() == std::io::ErrorKind::ConnectionReset {
                stream.client.conn().error.set(model::conn::ConnError::RESET);
            }
            Some(Event::ClientStopped(Cause::ClientAbort))
        }
        Poll::Ready(Err(Break::Truncated)) => Some(Event::ClientStopped(Cause::ClientAbort)),
        Poll::Ready(Err(Break::Malformed)) => Some(Event::BadBody),
        Poll::Ready(Err(Break::Filtered)) => Some(Event::Killed(Cause::Internal)),
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
                        let faulty = faulty(&stream.worker, stream.client, &stream.txn, buf.filled(), &e);
                        stream.worker.keep_bad(faulty);
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
                stream.txn.server_conn.fault = up.socket.fault().unwrap_or(0);
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
    let answered = |key| res.first(Known::SecWebsocketAccept) == Some(&mux::websocket::accept(key)[..]);
    upgrades(req) && upgrades(res) && own.is_none_or(answered)
}

/// A client of CONNECT that has nothing to say, not even when the server agrees, has that told at once: there
/// are servers that wait for it.
fn pass_end(stream: &mut Stream<'_>, cx: &mut Context<'_>) -> bool {
    let client = &stream.client;
    if stream.to_server.is_some() || client.has_input() || !client.socket.has_ended(cx) {
        return false;
    }
    let (Poll::Ready(Ahead::End), Some(up)) = (client.socket.poll_look(cx), &stream.upstream) else {
        return false;
    };
    let _ = up.socket.shutdown_write();
    stream.http.server_keeps = false;
    true
}

/// A client whose connection breaks while it waits ends the request; one that only closes its sending side
/// does so with `abortonclose`, which can't tell it from one that is gone.
fn watch_client(stream: &Stream<'_>, cx: &mut Context<'_>, back: &Proxy) -> Option<Event> {
    if !stream.http.body_received {
        return None;
    }
    let socket = &stream.client.socket;
    let ended = back.options.abortonclose && !stream.wants_tunnel() && socket.has_ended(cx);
    if socket.fault().is_some() {
        return Some(Event::ClientBroke);
    }
    if socket.poll_broken(cx).is_ready() {
        // A client behind a Unix socket that closes ends both directions at once, and has left like any other
        // that closes.
        let closed = !socket.raw().is_local() && !socket.raw().is_reset();
        return Some(if closed && back.options.abortonclose {
            Event::ClientLeft
        } else {
            Event::ClientBroke
        });
    }
    ended.then_some(Event::ClientLeft)
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
    let wanted = stream.txn.req.version() >= Version::HTTP_11;
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
        // Where it is kept, the next attempt may go over the connection.
        replaced::count(stream).settle(stream);
        return Wait::Retry;
    }
    if stream.txn.server_conn.http_major == 2 {
        stream.txn.res.set_version(Version::HTTP_2);
    } else if stream.service.is_some() && stream.client.part.is_some() {
        // Services answer in the version of the request.
        stream.txn.res.set_version(Version::HTTP_2);
    }
    stream.note_streams();
    stream.txn.has_res = true;
    stream.txn.times.response = Some(rt::now());
    Wait::Response
}
