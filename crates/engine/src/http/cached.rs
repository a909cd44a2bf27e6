//! Answers out of a cache (`cache-use`, manual, section 6).
//!
//! What is kept answers in the place of a server: rules on responses and filters see it, those of the
//! proxies that the request has come to. Its body is never copied into the stream: it goes out from where it
//! lies, behind the head in one piece where it is short.

use std::sync::Arc;
use std::task::Poll;

use lang::env::Side;
use lang::filter::Moment;
use link::chain::{Chain, Source};
use link::pump::Outer;
use model::cached::{Cache, Entry};
use model::term::{Cause, Phase};
use rt::Buf;
use wire::caching::{self, Wanted, standard};
use wire::head::{Head, Known};
use wire::http1::Body;
use wire::method::{Method, Version};

use super::exchange::Step;
use super::{Next, answer, captures, exchange, headers, response, rules, served, wait};
use crate::filters::Whose;
use crate::stream::Stream;

/// What log lines name in the place of a server.
const SERVER: &str = "<CACHE>";

/// So much of a body goes into the buffer of its head; more goes out from where it lies.
const SHORT: usize = 4096;

/// Answers with what `cache-use` found.
pub async fn serve(stream: &mut Stream<'_>) -> Next {
    let hit = stream.txn.caching.hit.as_ref();
    let Some((entry, ranges)) = hit.map(|(cache, entry)| (entry.clone(), cache.settings().ranges)) else {
        return Next::Close;
    };
    stream.end(Cause::Local, Phase::Request);
    let (now, txn) = (Some(rt::now()), &mut *stream.txn);
    if txn.caching.asking.take().is_some() {
        // These conditions were ours, not the client's.
        standard::unask(&mut txn.req);
    }
    txn.by_service = Some(SERVER);
    let times = &mut txn.times;
    times.queued = times.queued.or(now);
    if times.connected.is_none() {
        times.connected = now;
        crate::log::step(stream, model::Origin::Connect);
    }
    let txn = &mut *stream.txn;
    txn.times.response = txn.times.response.or(now);
    if !txn.server_conn.begun {
        txn.up.sent += headers::without(txn.req.counted_len(), stream.http.request_added);
    }
    wait::invite_in_place(stream).await;
    rules::intercepted(stream);
    if let Step::Done(next) = rules::filters(stream, Moment::RequestHead, Whose::All).await {
        return next;
    }
    let mut given = compose(stream, &entry, ranges);
    stream.txn.respond();
    crate::tracking::response(&stream.worker.shared.program.global, stream.client.conn(), &stream.txn);
    if let Step::Done(next) = rules::filters(stream, Moment::Response, Whose::All).await {
        return next;
    }
    if let Step::Done(next) = rules::filters(stream, Moment::ResponseRules, Whose::All).await {
        return next;
    }
    if let Step::Done(next) = on_response(stream).await {
        return next;
    }
    captures::response_cookie(stream);
    if !answer::after_response_rules(stream) {
        return rt::boxed(rules::failed_after(stream)).await;
    }
    if let Step::Done(next) = rules::filters(stream, Moment::ResponseHead, Whose::All).await {
        return next;
    }
    let next = match stage(stream, &given) {
        Ok(next) => next,
        Err(()) => return answer::refuse(stream, 502).await,
    };
    exchange::tell(stream);
    given.head_only |= response::is_bodiless(stream.txn.res.status());
    match send(stream, &given).await {
        Ok(()) => {
            stream.http.answered = true;
            stream.http.whole = stream.http.response_body != Body::UntilClose;
            next
        }
        Err(()) => {
            stream.client.give_up();
            Next::Close
        }
    }
}

/// Answers with what is no longer good in place of an error, if `cache-use` found such a thing and it is not
/// too old by now: the error may have taken its time.
pub async fn instead(stream: &mut Stream<'_>) -> Option<Next> {
    let now = rt::wall().as_secs();
    let stale = stream.txn.caching.stale.take().filter(|(_, entry)| model::cached::stands_in(entry, now))?;
    Some(replace(stream, stale).await)
}

/// Answers with what is kept where its server says that it is good still, if `cache-use` has asked that.
pub async fn confirmed(stream: &mut Stream<'_>) -> Option<Next> {
    let (cache, entry) = stream.txn.caching.asking.as_ref().filter(|_| stream.txn.res.status() == 304)?;
    let renewed = model::cached::renew(cache, entry, &stream.txn.res, rt::wall().as_secs());
    let hit = (cache.clone(), renewed);
    // Who waits for it finds it.
    stream.txn.caching.fetch = None;
    crate::finish::count_response(stream, 304);
    Some(replace(stream, hit).await)
}

/// Answers with an entry in place of what has come of a server, or did not.
async fn replace(stream: &mut Stream<'_>, hit: (Arc<Cache>, Arc<Entry>)) -> Next {
    stream.txn.caching.hit = Some(hit);
    stream.txn.silent = false;
    if stream.upstream.is_some() {
        let spare = super::replaced::count(stream);
        spare.settle(stream);
    }
    stream.server_is_done();
    stream.leave_connection();
    stream.to_server = None;
    rt::boxed(serve(stream)).await
}

/// Whether a response of this status is an error that something else may be given for (RFC 5861 section 4).
pub fn is_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// What is given of an entry.
struct Given<'e> {
    body: &'e [u8],
    /// What stands behind it.
    trailers: &'e [u8],
    framing: Body,
    /// The head is all of it.
    head_only: bool,
}

impl Given<'_> {
    /// Bytes of the body and what stands behind it, as they count.
    fn size(&self) -> u64 {
        let chunked = self.framing == Body::Chunked;
        self.body.len() as u64 + u64::from(chunked) + wire::http1::counted_trailers(self.trailers)
    }
}

/// Makes the head of the answer. With `ranges` it may be a part of what is kept.
fn compose<'e>(stream: &mut Stream<'_>, entry: &'e Entry, ranges: bool) -> Given<'e> {
    let kept = &entry.meta;
    let most = stream.worker.shared.program.global.tune.bufsize;
    let txn = &mut *stream.txn;
    let same = kept.is_unchanged(&txn.req);
    let head_only = same || txn.first_method() == Method::Head;
    let mut given = Given { body: &entry.body, trailers: &kept.trailers, framing: kept.framing, head_only };
    let res = &mut txn.res;
    res.copy_from(&kept.head);
    res.set_limit(most);
    if res.version() >= Version::HTTP_11 {
        // Rules see it in the version that it is asked for in, whichever its server spoke.
        res.set_version(txn.req.version());
    }
    let age = kept.age(rt::wall().as_secs());
    let _ = res.append(b"age", base::text::int(age, &mut [0; base::text::INT_MAX]));
    if same {
        let _ = res.set_status(304, None);
    } else if ranges && !head_only {
        cut(&txn.req, res, &mut given);
    }
    // It came over HTTP/2.
    txn.decisions.framed = given.framing == Body::Chunked && !res.has(Known::TransferEncoding);
    txn.has_res = true;
    txn.status = res.status();
    txn.down.received += headers::counted(&txn.res) as u64 + if head_only { 0 } else { given.size() };
    stream.http.response_body = if head_only { Body::None } else { given.framing };
    stream.http.response_ended = true;
    given
}

/// Leaves of what is given the part that is asked for.
fn cut(req: &Head, res: &mut Head, given: &mut Given<'_>) {
    let length = given.body.len();
    let (status, part, says) = match caching::wanted(req, res, length) {
        Wanted::Whole => return,
        Wanted::Part(part) => {
            let says = format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1));
            (206, part, says)
        }
        Wanted::Beyond => (416, 0..0, format!("bytes */{length}")),
    };
    given.body = given.body.get(part).unwrap_or_default();
    given.trailers = &[];
    given.framing = Body::Length(given.body.len() as u64);
    let _ = res.set_status(status, None);
    res.remove_all(Known::TransferEncoding);
    res.remove_all("trailer");
    let room = &mut [0; base::text::INT_MAX];
    let _ = res.set(Known::ContentLength, base::text::int(given.body.len() as u64, room));
    let _ = res.set("content-range", says.as_bytes());
}

/// Rules on the response, of the backend before those of the frontend.
async fn on_response(stream: &mut Stream<'_>) -> Step {
    captures::response(stream);
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let back = program.proxy(stream.backend_index());
    if let Step::Done(next) = rules::run(stream, &back.rules.http_response, Side::Response, None).await {
        return Step::Done(next);
    }
    if stream.txn.backend.is_none_or(|back| back == stream.client.front) {
        return Step::Go;
    }
    let front = program.configured(stream.client.front);
    rules::run(stream, &front.rules.http_response, Side::Response, None).await
}

/// Gives the head its final form and stages its bytes; what becomes of the connection.
///
/// # Errors
/// The head is too long.
fn stage(stream: &mut Stream<'_>, given: &Given<'_>) -> Result<Next, ()> {
    let framing = given.framing;
    if framing == Body::Chunked && !given.head_only && !stream.txn.res.has(Known::TransferEncoding) {
        // It came over HTTP/2.
        let _ = stream.txn.res.append(b"transfer-encoding", b"chunked");
    }
    let bodiless = response::is_bodiless(stream.txn.res.status());
    let doubtful = framing == Body::Chunked && stream.txn.res.version() < Version::HTTP_11;
    let closes = framing == Body::UntilClose || crate::filter::prepare_response(stream);
    // What rules say of a connection is about one of HTTP/1.
    let ended = stream.client.part.is_none() && headers::ends(&stream.txn.res);
    let closes = (closes || doubtful) && !bodiless || ended;
    let keep = headers::may_keep_client(stream) && !closes;
    let next = if keep { Next::KeepAlive } else { Next::Close };
    stream.txn.status = stream.txn.res.status();
    if headers::send_response(stream, next).is_err() {
        (stream.to_client, stream.down_chain) = (None, None);
        stream.end(Cause::Proxy, Phase::Headers);
        return Err(());
    }
    if stream.txn.first_method() == Method::Head
        && let Some(part) = &stream.client.part
    {
        part.receipt.head_only();
    }
    Ok(next)
}

/// Sends the staged head and the body.
async fn send(stream: &mut Stream<'_>, given: &Given<'_>) -> Result<(), ()> {
    let mut head = stream.to_client.take().unwrap_or_default();
    if given.head_only {
        return piece(stream, head.filled(), &[], false).await;
    }
    stream.txn.down.sent += given.size();
    if let Some((chain, outer)) = stream.down_chain.take() {
        return rt::boxed(filtered(stream, given, head, *chain, outer)).await;
    }
    let body = given.body;
    if given.framing != Body::Chunked {
        if body.len() <= SHORT.min(head.spare()) {
            head.push(body);
            return piece(stream, head.filled(), &[], false).await;
        }
        return piece(stream, head.filled(), body, false).await;
    }
    let trailers = trailers(stream, given.trailers);
    let before: &mut [u8; 20] = &mut [0; 20];
    let before = chunk_line(body.len(), before);
    let behind: &[u8] = if body.is_empty() { b"0\r\n" } else { b"\r\n0\r\n" };
    let all = before.len() + body.len() + behind.len() + trailers.len();
    if all <= SHORT.min(head.spare()) {
        for part in [before, body, behind, trailers] {
            head.push(part);
        }
        return piece(stream, head.filled(), &[], false).await;
    }
    piece(stream, head.filled(), before, true).await?;
    piece(stream, body, behind, !trailers.is_empty()).await?;
    piece(stream, trailers, &[], false).await
}

/// The line before the one chunk of a body; none before no body.
fn chunk_line(length: usize, room: &mut [u8; 20]) -> &[u8] {
    use std::io::Write;
    if length == 0 {
        return &[];
    }
    let mut rest = &mut room[..];
    let _ = write!(rest, "{length:X}\r\n");
    let left = rest.len();
    room.get(..20 - left).unwrap_or_default()
}

/// What stands behind the last chunk.
fn trailers<'e>(stream: &Stream<'_>, kept: &'e [u8]) -> &'e [u8] {
    if kept.is_empty() || stream.frontend().options.drop_response_trailers { b"\r\n" } else { kept }
}

/// Sends a body through filters, piece by piece: between two of them the worker's other tasks have their
/// turn.
async fn filtered(
    stream: &mut Stream<'_>,
    given: &Given<'_>,
    mut head: Buf,
    mut chain: Chain,
    outer: Outer,
) -> Result<(), ()> {
    let most = stream.worker.shared.program.global.tune.bufsize;
    let (mut rest, mut out) = (given.body, Vec::new());
    loop {
        let (now, later) = rest.split_at(rest.len().min(most));
        rest = later;
        let over = rest.is_empty();
        let source = if over { Source::Over } else { Source::Open };
        let shown = match given.trailers {
            trailers if over && !trailers.is_empty() => chain.trailers(trailers),
            _ => Vec::new(),
        };
        let made = crate::filter::pass(&mut chain, now, source).await;
        out.clear();
        match outer {
            Outer::Plain => out.extend_from_slice(&made),
            Outer::Chunked => served::chunks(&made, most, &mut out),
        }
        if over && outer == Outer::Chunked {
            out.extend_from_slice(b"0\r\n");
            out.extend_from_slice(trailers(stream, &shown));
        }
        piece(stream, head.filled(), &out, !over).await?;
        head.clear();
        if over {
            return Ok(());
        }
        rt::yield_now().await;
    }
}

/// Sends two pieces, at most for the client timeout between two steps. `more`: others follow at once.
async fn piece(stream: &mut Stream<'_>, first: &[u8], second: &[u8], more: bool) -> Result<(), ()> {
    let limit = stream.client_limit();
    let client = &mut *stream.client;
    client.timer.set_after(limit);
    let (mut first, mut second) = (first, second);
    while !first.is_empty() || !second.is_empty() {
        let sent = std::future::poll_fn(|cx| {
            if let Some(cause) = client.session.kill.get() {
                return Poll::Ready(Err(cause));
            }
            let polled = match (first.is_empty(), second.is_empty()) {
                (true, _) => client.socket.poll_send(cx, second, more),
                (_, true) => client.socket.poll_send(cx, first, more),
                _ => client.socket.poll_send_pair(cx, first, second, more),
            };
            match polled {
                Poll::Ready(sent) => Poll::Ready(sent.map_err(|_| Cause::ClientAbort)),
                Poll::Pending if client.is_overdue(cx, limit) => Poll::Ready(Err(Cause::ClientTimeout)),
                Poll::Pending => Poll::Pending,
            }
        });
        match sent.await {
            Ok(n) => {
                let of_first = n.min(first.len());
                first = first.get(of_first..).unwrap_or_default();
                second = second.get(n - of_first..).unwrap_or_default();
                stream.txn.down.wire_out += n as u64;
                client.timer.set_after(limit);
            }
            Err(cause) => {
                stream.end(cause, Phase::Data);
                return Err(());
            }
        }
    }
    Ok(())
}
