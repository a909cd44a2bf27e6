//! Answers made here: errors, `return`, `redirect`, services.

use std::borrow::Cow;

use lang::Reply;
use lang::action::Payload;
use lang::cond::Outcome;
use lang::env::{Env, Side};
use lang::filter::Moment;
use lang::logfmt::Use;
use model::term::{Cause, Phase};
use program::Proxy;
use program::proxy::ErrorAnswer;
use wire::head::Known;
use wire::http1::{Body, Limits, Parsed, Scanner, parse_response};
use wire::method::Version;

use super::exchange::Step;
use super::served::{self, deliver, pieces};
use super::{Next, captures, headers, response, wait};
use crate::errors;
use crate::filters::Whose;
use crate::stream::Stream;
use model::trace;

/// Answers with the proxy's error message for a status. The connection is kept where the request is over.
pub async fn refuse(stream: &mut Stream<'_>, status: u16) -> Next {
    send(stream, Reply { keep_alive: true, ..Reply::error(status) }).await
}

/// `monitor-uri`: answers for the health of this very proxy, without a log line.
pub async fn monitor(stream: &mut Stream<'_>, proxy: &Proxy) -> Option<Next> {
    if !proxy.is_monitored(stream.txn.req.target()) {
        return None;
    }
    let fails =
        proxy.monitor_fail.iter().any(|c| stream.evaluate(Side::Request, |env| c.holds(env)) == Outcome::Yes);
    stream.end(Cause::Local, Phase::Request);
    proxy.state.front.counters.of(stream.worker.index).intercepted.inc();
    // Rules that log see an answer to no request; whether it has a body is still to be read from the line.
    if stream.txn.line.method() != b"HEAD" {
        stream.txn.line.clear();
    }
    let next = refuse(stream, if fails { 503 } else { 200 }).await;
    stream.txn.decisions.log_level = Some(crate::lines::SILENT);
    Some(next)
}

/// Holds the client for `timeout tarpit`, then answers. `timeout connect` takes its place only in proxies
/// that connect: a frontend without the one answers at once.
pub async fn tarpit(stream: &mut Stream<'_>, reply: Reply) -> Next {
    let proxy = stream.backend();
    let t = &proxy.timeouts;
    let limit = stream.txn.overrides.tarpit.or(t.tarpit).or(t.connect.filter(|_| proxy.is_backend));
    // The time in the pit is logged as one in a queue. That of the request is known where its body was waited
    // for before the rules.
    let held = stream.txn.times.request;
    if !stream.http.buffered {
        stream.txn.times.request = None;
    }
    // Nor is a client that owes a part of its request held for longer than it may be silent.
    let end = rt::now() + limit.unwrap_or_default();
    let mut timer = rt::Timer::at(crate::silence::end(stream).map_or(end, |silence| silence.min(end)));
    let socket = &stream.client.socket;
    let session = &stream.client.session;
    let closed = std::future::poll_fn(|cx| {
        if socket.poll_hangup(cx).is_ready() || session.kill.get().is_some() {
            return std::task::Poll::Ready(true);
        }
        timer.poll_expired(cx).map(|()| false)
    })
    .await;
    stream.http.dismissed = true;
    if closed && super::failed::was_killed(stream) {
        return Next::Close;
    }
    stream.txn.times.queued = held.map(|_| rt::now());
    if closed && (stream.client.socket.is_broken() || wait::left(stream).await) {
        // Nobody is there to be answered: no rules see an answer either.
        stream.txn.status = reply.status;
        return Next::Close;
    }
    send(stream, reply).await
}

/// `redir` of a server: the client is sent there.
pub async fn server_redirect(stream: &mut Stream<'_>, server: u32) -> Next {
    let mut location = stream.backend().server(server).redir.as_deref().unwrap_or_default().to_vec();
    location.extend_from_slice(wire::uri::path_and_query(stream.txn.req.target()));
    let mut reply = Reply { keep_alive: true, ..Reply::error(302) };
    reply.payload = Payload::Empty;
    reply.computed = vec![
        ("cache-control", b"no-cache".to_vec()),
        ("content-length", b"0".to_vec()),
        ("location", location),
    ];
    stream.end(Cause::Local, Phase::Connect);
    send(stream, reply).await
}

/// Sends fields ahead of the response, in one of their own (`early-hint`).
pub async fn hint(stream: &mut Stream<'_>, fields: &[u8]) {
    // Who left within the request is told nothing more.
    if stream.txn.req.version() >= Version::HTTP_11 && !stream.http.client_left {
        stream.txn.hinted = true;
        let bytes = [b"HTTP/1.1 103 Early Hints\r\n", fields, b"\r\n"].concat();
        if stream.client.socket.send_all(&bytes).await.is_ok() {
            stream.txn.down.wire_out += bytes.len() as u64;
        }
    }
}

/// Lets a service answer.
pub async fn service(stream: &mut Stream<'_>, name: &str, proxy: u32) -> Next {
    let worker = stream.worker.clone();
    if stream.txn.mirror.is_copy {
        return Next::Close;
    }
    let Some(service) = worker.shared.service(name) else {
        stream.end(Cause::Internal, Phase::Request);
        return refuse(stream, 503).await;
    };
    stream.txn.by_service = Some(service.name());
    if service.wants_body(&request_for(stream, &worker, proxy, &[])) {
        let config = &*worker.shared.program.proxy(proxy);
        if let Err(status) = wait::buffer_request(stream, config).await {
            return refuse(stream, status).await;
        }
    }
    stream.end(Cause::Local, Phase::Request);
    if stream.http.client_left {
        super::rules::intercepted(stream);
        service_refused(stream);
        let times = &mut stream.txn.times;
        (times.request, times.queued, times.connected) = (None, None, None);
        return Next::Close;
    }
    // A service is reached at once, as a server would be.
    let (now, times) = (Some(rt::now()), &mut stream.txn.times);
    (times.queued, times.connected) = (now, now);
    crate::log::step(stream, model::Origin::Connect);
    stream.txn.times.response = now;
    super::rules::intercepted(stream);
    if let Step::Done(next) = super::rules::filters(stream, Moment::RequestHead, Whose::All).await {
        return next;
    }
    // A service is sent the request as a server would be.
    stream.txn.up.sent += headers::without(stream.txn.req.counted_len(), stream.http.request_added);
    let body = body_for(stream);
    let answer = service.answer(&request_for(stream, &worker, proxy, &body));
    if let Some(realm) = answer.challenge {
        return challenge(stream, realm).await;
    }
    if answer.refused {
        return refuse(stream, answer.status).await;
    }
    wait::invite_in_place(stream).await;
    let res = &mut stream.txn.res;
    res.clear();
    let _ = res.set_status(answer.status, None);
    for (name, value) in &answer.headers {
        let _ = res.append(name.as_bytes(), value);
    }
    stream.txn.status = answer.status;
    // To rules its answer is of the version that was asked in, whatever it goes out as.
    stream.txn.replaced = Some(stream.txn.req.version()).filter(|version| *version < Version::HTTP_11);
    captures::response(stream);
    captures::response_cookie(stream);
    crate::debug::answered(stream);
    let (body, rest) = (answer.body, answer.rest);
    let said = Said { body, keep: true, chunked: true, rest, filtered: true, challenge: false };
    finish(stream, said).await
}

/// What a service is to answer.
fn request_for<'r>(
    stream: &'r Stream<'_>,
    worker: &'r crate::Worker,
    proxy: u32,
    body: &'r [u8],
) -> crate::worker::service::Request<'r> {
    let whole = crate::body::fits(stream);
    crate::worker::service::Request {
        txn: &stream.txn,
        conn: stream.client.conn(),
        body,
        whole,
        proxy,
        worker,
    }
}

/// What there is of the request's body, without its framing.
fn body_for<'r>(stream: &'r Stream<'_>) -> Cow<'r, [u8]> {
    let bytes = stream.client.buf.as_ref().map(rt::Buf::filled).unwrap_or_default();
    match stream.http.request_body {
        Body::None => Cow::Borrowed(&[]),
        Body::Length(n) => {
            Cow::Borrowed(bytes.get(..usize::try_from(n).unwrap_or(usize::MAX)).unwrap_or(bytes))
        }
        Body::Chunked => {
            let mut body = Vec::new();
            // A fault in the framing leaves it incomplete.
            let _ = Scanner::new(true).data(bytes, |piece| body.extend_from_slice(piece));
            Cow::Owned(body)
        }
        Body::UntilClose => Cow::Borrowed(bytes),
    }
}

/// A service wants a user name and a password.
async fn challenge(stream: &mut Stream<'_>, realm: String) -> Next {
    let reply = Reply::challenge(&realm, stream.txn.for_proxy);
    stream.txn.by_service = None;
    let whole = crate::body::is_taken(stream);
    let next = send(stream, reply).await;
    service_refused(stream);
    if whole { next } else { Next::Close }
}

/// Notes that a request for a service was answered in its place. HAProxy then takes the service for a server
/// whose client left: its log says 400, its counters speak of two aborts.
pub fn service_refused(stream: &mut Stream<'_>) {
    let (now, times) = (Some(rt::now()), &mut stream.txn.times);
    times.queued = times.queued.or(now);
    times.connected = times.connected.or(now);
    times.response = None;
    stream.txn.by_service.get_or_insert(crate::worker::service::STATISTICS);
    stream.txn.status = 400;
    stream.backend().state.back.counters.of(stream.worker.index).client_aborts.add(2);
}

/// Sends an answer made of a [`Reply`]. Whoever asks later, the log line say, finds no response but its
/// status as logged.
pub async fn send(stream: &mut Stream<'_>, reply: Reply) -> Next {
    if stream.txn.mirror.is_copy {
        // Nobody is there to be answered.
        stream.txn.status = reply.status;
        return Next::Close;
    }
    let next = make(stream, reply).await;
    stream.txn.has_res = false;
    stream.txn.replaced = Some(stream.txn.req.version());
    next
}

async fn make(stream: &mut Stream<'_>, reply: Reply) -> Next {
    let txn = &mut *stream.txn;
    let of_response = txn.has_res.then(|| txn.res.version());
    if txn.has_res {
        txn.status = reply.status;
    }
    txn.replaced = of_response.or(Some(txn.req.version()));
    txn.res.clear();
    let mut body = Vec::new();
    let keep = reply.keep_alive;
    match body_of(stream, &reply, &mut body) {
        // A file for the status asks for a name and a password all the same.
        Made::Message => {
            for (name, value) in &reply.computed {
                stream.txn.res.remove_all(*name);
                let _ = stream.txn.res.append(name.as_bytes(), value);
            }
        }
        Made::BuiltIn => {
            head_of(stream, &reply, &body);
            let _ = stream.txn.res.set_status(reply.status, Some(errors::reason(reply.status).as_bytes()));
        }
        Made::Silence => {
            stream.txn.status = reply.status;
            return Next::Close;
        }
        Made::Parts => head_of(stream, &reply, &body),
    }
    // What takes the place of a response has its version for the rules behind, as in HAProxy.
    stream.txn.replaced = of_response;
    let made = stream.txn.res.status();
    // An error is logged and counted as that error, whatever status its file or its redirect has.
    let is_error = matches!(reply.payload, Payload::ErrorFile | Payload::Message(_));
    let logged = if is_error { reply.status } else { made };
    stream.txn.status = logged;
    let challenge = is_challenge(&reply);
    finish(stream, Said { body, keep, chunked: false, rest: None, filtered: false, challenge }).await
}

enum Made {
    /// Head and body stand already.
    Message,
    /// The body stands, the head is to be made.
    Parts,
    /// The same for a built-in message.
    BuiltIn,
    /// An empty error file: close without a word.
    Silence,
}

/// Fills the body; for complete messages the head, too.
fn body_of(stream: &mut Stream<'_>, reply: &Reply, body: &mut Vec<u8>) -> Made {
    match &reply.payload {
        Payload::Empty => Made::Parts,
        Payload::Bytes(b) => {
            body.extend_from_slice(b);
            Made::Parts
        }
        Payload::Format(f) => {
            told(stream, |env| f.append(env, Use::Value, body));
            Made::Parts
        }
        Payload::Message(m) => message(stream, m, body),
        Payload::ErrorFile => match configured(stream, reply.status) {
            Some(ErrorAnswer::Message(m)) => message(stream, &m, body),
            // What was no request has no stream that such an answer could be made for.
            Some(ErrorAnswer::Reply(r)) if stream.txn.has_req => {
                let made = body_of(stream, &r, body);
                if matches!(made, Made::Parts | Made::BuiltIn) {
                    head_of(stream, &r, body);
                    return Made::Message;
                }
                made
            }
            _ => {
                body.extend_from_slice(errors::page(reply.status).as_bytes());
                let res = &mut stream.txn.res;
                append_length(res, body.len());
                let _ = res.append(b"cache-control", b"no-cache");
                if errors::closes(reply.status) {
                    let _ = res.append(b"connection", b"close");
                }
                let _ = res.append(b"content-type", b"text/html");
                Made::BuiltIn
            }
        },
    }
}

/// The answer that the backend, else the frontend, has for a status.
fn configured(stream: &Stream<'_>, status: u16) -> Option<ErrorAnswer> {
    let of = |p: &Proxy| p.errors.by_status.get(&status).cloned();
    of(&stream.backend()).or_else(|| of(stream.frontend()))
}

/// Evaluates what an answer tells. Of a request that was held in the tarpit, or went to its server, nothing
/// is left to be told, nor of the response in whose place the answer goes.
fn told(stream: &mut Stream<'_>, tell: impl FnOnce(&Env<'_>)) {
    let (has_req, has_res, side) = (stream.txn.has_req, stream.txn.has_res, side(stream));
    stream.txn.has_req &= !stream.http.dismissed && !has_res;
    stream.txn.has_res = false;
    stream.evaluate(side, tell);
    (stream.txn.has_req, stream.txn.has_res) = (has_req, has_res);
}

fn side(stream: &Stream<'_>) -> Side {
    if stream.txn.has_res { Side::Response } else { Side::Request }
}

/// A complete message as read from a file.
fn message(stream: &mut Stream<'_>, message: &[u8], body: &mut Vec<u8>) -> Made {
    if message.is_empty() {
        return Made::Silence;
    }
    let limits = Limits::of(message.len(), usize::MAX);
    match parse_response(message, &mut stream.txn.res, &limits, true) {
        Ok(Parsed::Complete { consumed }) => {
            body.extend_from_slice(&message[consumed..]);
            let mut length = Vec::new();
            lang::sample::append_int(&mut length, i64::try_from(body.len()).unwrap_or(i64::MAX));
            if stream.txn.res.first("content-length").is_some_and(|l| l != length) {
                stream.txn.res.remove_all("content-length");
            }
        }
        // Files are checked when they are loaded; without an end of its head, all of it is head.
        _ => stream.txn.res.clear(),
    }
    Made::Message
}

fn append_length(res: &mut wire::head::Head, length: usize) {
    let mut n = Vec::new();
    lang::sample::append_int(&mut n, i64::try_from(length).unwrap_or(i64::MAX));
    let _ = res.append(b"content-length", &n);
}

/// The head of an answer, in HAProxy's order: what rules add, the length, what the body is; of a redirect the
/// length first.
fn head_of(stream: &mut Stream<'_>, reply: &Reply, body: &[u8]) {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    told(stream, |env: &Env<'_>| {
        for (name, value) in reply.headers.iter() {
            let mut v = Vec::new();
            value.append(env, Use::Header, &mut v);
            // A field whose format came to nothing is left out.
            if !v.is_empty() {
                fields.push((name.to_vec(), v));
            }
        }
    });
    let res = &mut stream.txn.res;
    let _ = res.set_status(reply.status, None);
    let framed =
        res.first("content-length").is_some() || reply.computed.iter().any(|(n, _)| *n == "content-length");
    if !framed && !reply.computed.is_empty() {
        append_length(res, body.len());
    }
    for (name, value) in &reply.computed {
        let _ = res.append(name.as_bytes(), value);
    }
    for (name, value) in &fields {
        let _ = res.append(&**name, value);
    }
    if !framed && reply.computed.is_empty() {
        append_length(res, body.len());
    }
    if let Some(t) = &reply.content_type
        && !body.is_empty()
    {
        res.remove_all("content-type");
        let _ = res.append(b"content-type", t.as_bytes());
    }
}

/// Whether this asks for credentials (`auth`): the request lacked the right ones.
pub fn is_challenge(reply: &Reply) -> bool {
    reply.computed.iter().any(|(name, _)| matches!(*name, "www-authenticate" | "proxy-authenticate"))
}

/// What an answer brings besides its head.
struct Said {
    body: Vec<u8>,
    /// The connection may go on.
    keep: bool,
    /// It may go in chunks (what services write).
    chunked: bool,
    /// The filters of the stream see it as they see what servers answer.
    filtered: bool,
    /// It asks for credentials: the stream ends with it behind the last rules only.
    challenge: bool,
    /// What comes behind the body, made while it is sent.
    rest: Option<Box<dyn crate::worker::service::Pieces>>,
}

/// Frames an answer as its head says; whether that is all that the client gets, whether its length is known,
/// and whether it goes in chunks, which it may if `chunked` says so.
fn frame(stream: &mut Stream<'_>, chunked: bool, goes_on: bool) -> (bool, bool, bool) {
    stream.txn.has_res = true;
    let status = stream.txn.res.status();
    let bodiless = response::is_bodiless(status);
    // Whatever rules made of the method: who asked for a head alone gets no body, and nobody else goes
    // without one.
    let head_only = bodiless || (stream.txn.has_req && stream.txn.line.method() == b"HEAD");
    let txn = &mut *stream.txn;
    txn.res.remove_all("transfer-encoding");
    let framed = bodiless || txn.res.first("content-length").is_some();
    let new = txn.res.version() >= Version::HTTP_11 && txn.req.version() >= Version::HTTP_11;
    // Who asks for the head alone of what is made while it is sent is shown the framing.
    let chunked = chunked && !framed && (!head_only || goes_on) && txn.has_req && new;
    if chunked {
        let _ = txn.res.append(b"transfer-encoding", b"chunked");
    }
    (head_only, framed, chunked)
}

/// A rule that sets the status sets the logged one, too, even to what the message has already. `before` has
/// both as they were before the rules.
fn note_status(stream: &mut Stream<'_>, before: (u16, u16)) {
    if before != (stream.txn.status, stream.txn.res.status()) {
        stream.txn.status = stream.txn.res.status();
    }
}

/// Frames the answer, applies the last rules, sends it. An answer whose fields say no length ends with its
/// connection, unless it may go in chunks and the client understands those.
async fn finish(stream: &mut Stream<'_>, said: Said) -> Next {
    let events = (trace::h1::TX_HEADERS, trace::h2::TX_HEADERS);
    crate::points::message(stream, false, events, trace::level::USER, "sending response of this program");
    let Said { mut body, keep, chunked, rest, filtered, challenge } = said;
    let before = (stream.txn.status, stream.txn.res.status());
    let (head_only, framed, chunked) = frame(stream, chunked, rest.is_some());
    if filtered && let Step::Done(next) = super::rules::filters(stream, Moment::Response, Whose::All).await {
        return next;
    }
    let head_said = headers::counted(&stream.txn.res);
    // Rules exist for streams, and what was no request has none.
    if stream.txn.has_req {
        stream.local_body = Some(body);
        let fine = after_response_rules(stream);
        body = stream.local_body.take().unwrap_or_default();
        if !fine {
            return rt::boxed(super::rules::failed_after(stream)).await;
        }
    }
    if challenge {
        stream.end(Cause::Local, Phase::Request);
    }
    let mut chain = None;
    if filtered && !head_only {
        chain = match served::filtered(stream, &mut body, rest.is_some()).await {
            Ok(chain) => chain,
            Err(next) => return next,
        };
    }
    let res = &mut stream.txn.res;
    let chunked = (chunked || chain.is_some() && res.has(Known::TransferEncoding)) && !response::unchunk(res);
    let (framed, switched) = (framed && !chunked, res.status() == 101);
    let head_only = head_only || response::is_bodiless(res.status());
    // The message and the rules may say that the connection ends with it, if it is one of HTTP/1.
    let ended = stream.client.part.is_none() && headers::ends(&stream.txn.res);
    // What is no request is refused in the very words of the message.
    if stream.txn.has_req && !switched {
        headers::forget_persistence(&mut stream.txn.res);
    }
    // What is still to come of the request is read and dropped.
    let kept = keep && !ended && !switched && (framed || chunked) && headers::may_keep_client(stream);
    let next = if kept { Next::KeepAlive } else { Next::Close };
    if stream.txn.has_req && !switched {
        headers::client_connection(stream, next);
    }
    note_status(stream, before);
    let rest = rest.filter(|_| !head_only);
    let out = served::write(stream, (!head_only).then_some(&*body), chunked, rest.is_none());
    // Who leaves before the end of a request is told nothing any more.
    if stream.http.client_left {
        served::note_unsaid_end(stream.client);
        return Next::Close;
    }
    count(stream, head_said, if head_only { 0 } else { body.len() } + usize::from(chunked), filtered);
    let mut sent = deliver(stream, &out).await;
    if let Some(rest) = rest
        && sent.is_ok()
    {
        sent = rt::boxed(pieces(stream, rest, chunked, chain)).await;
    }
    match sent {
        Ok(()) => {
            stream.txn.down.wire_out += out.len() as u64;
            stream.http.answered = true;
            stream.http.whole = stream.txn.has_req && !switched && (framed || chunked);
            next
        }
        Err(()) => {
            stream.client.give_up();
            Next::Close
        }
    }
}

/// Counts the bytes of an answer: its head as it is sent, and as a service said it in place of a server,
/// before the last rules (`head_said`), and those of its `body`. What was no request has no stream that they
/// could count for. What a service says (`served`) is to the log the response of a server.
fn count(stream: &mut Stream<'_>, head_said: usize, body: usize, served: bool) {
    // What a service said in vain has counted for what it said.
    let said = if stream.service.is_some() { 0 } else { head_said + body };
    let sent = headers::counted(&stream.txn.res) + body;
    add(&mut stream.txn, said as u64, sent as u64);
    if served {
        super::exchange::early_lines(stream);
    }
}

pub(super) fn add(txn: &mut model::Txn, said: u64, sent: u64) {
    if txn.has_req {
        txn.down.sent += sent;
    }
    // What is kept in a cache counted when it was found.
    if txn.by_service.is_some() && txn.caching.hit.is_none() {
        txn.down.received += said;
    }
}

/// Whether no rule failed.
fn after_response(stream: &mut Stream<'_>, proxy: &Proxy) -> bool {
    use lang::rules::{Position, Run};
    let set = &proxy.rules.http_after_response;
    set.is_empty()
        || !matches!(
            stream.run_rules(set, Side::Response, Position(0), true),
            Run::Decided(lang::action::Flow::Error, _)
        )
}

/// `http-after-response` of both proxies. When a rule fails, [`super::rules::failed_after`] is to answer; of
/// that answer its failures are passed over.
#[must_use]
pub fn after_response_rules(stream: &mut Stream<'_>) -> bool {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    stream.txn.respond();
    let mut fine = after_response(stream, &program.proxy(stream.backend_index()));
    if fine && stream.txn.backend.is_some_and(|b| b != stream.client.front) {
        fine = after_response(stream, program.configured(stream.client.front));
    }
    fine || std::mem::replace(&mut stream.http.after_failed, true)
}
