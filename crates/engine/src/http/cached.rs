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
use model::cached::Entry;
use model::term::{Cause, Phase};
use rt::Buf;
use wire::head::Known;
use wire::http1::Body;
use wire::method::{Method, Version};

use super::exchange::Step;
use super::{Next, answer, captures, exchange, headers, response, rules, served};
use crate::filters::Whose;
use crate::stream::Stream;

/// What log lines name in the place of a server.
const SERVER: &str = "<CACHE>";

/// So much of a body goes into the buffer of its head; more goes out from where it lies.
const SHORT: usize = 4096;

/// Answers with what `cache-use` found.
pub async fn serve(stream: &mut Stream<'_>) -> Next {
    let Some(entry) = stream.txn.caching.hit.as_ref().map(|(_, entry)| entry.clone()) else {
        return Next::Close;
    };
    stream.end(Cause::Local, Phase::Request);
    let (now, txn) = (Some(rt::now()), &mut *stream.txn);
    txn.by_service = Some(SERVER);
    (txn.times.queued, txn.times.connected, txn.times.response) = (now, now, now);
    txn.up.sent += headers::without(txn.req.counted_len(), stream.http.request_added);
    rules::intercepted(stream);
    if let Step::Done(next) = rules::filters(stream, Moment::RequestHead, Whose::All).await {
        return next;
    }
    let head_only = compose(stream, &entry);
    stream.txn.respond();
    crate::tracking::response(&stream.worker.shared.program.global, stream.client.conn(), &stream.txn);
    if let Step::Done(next) = rules::filters(stream, Moment::Response, Whose::All).await {
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
    let next = match stage(stream, &entry, head_only) {
        Ok(next) => next,
        Err(()) => return answer::refuse(stream, 502).await,
    };
    exchange::tell(stream);
    let head_only = head_only || response::is_bodiless(stream.txn.res.status());
    match send(stream, &entry, head_only).await {
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

/// Makes the head of the answer; whether that is all of it.
fn compose(stream: &mut Stream<'_>, entry: &Entry) -> bool {
    let kept = &entry.meta;
    let most = stream.worker.shared.program.global.tune.bufsize;
    let txn = &mut *stream.txn;
    let same = kept.is_unchanged(&txn.req);
    let res = &mut txn.res;
    res.copy_from(&kept.head);
    res.set_limit(most);
    let age = kept.age(rt::wall().as_secs());
    let _ = res.append(b"age", base::text::int(age, &mut [0; base::text::INT_MAX]));
    if same {
        let _ = res.set_status(304, None);
    }
    txn.has_res = true;
    txn.status = res.status();
    let head_only = same || txn.req.method_id() == Method::Head;
    txn.down.received += headers::counted(&txn.res) as u64 + if head_only { 0 } else { size(entry) };
    stream.http.response_body = if head_only { Body::None } else { kept.framing };
    stream.http.response_ended = true;
    head_only
}

/// Bytes of a body and what stands behind it, as they count.
fn size(entry: &Entry) -> u64 {
    let chunked = entry.meta.framing == Body::Chunked;
    entry.body.len() as u64 + u64::from(chunked) + wire::http1::counted_trailers(&entry.meta.trailers)
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
fn stage(stream: &mut Stream<'_>, entry: &Entry, head_only: bool) -> Result<Next, ()> {
    let kept = &entry.meta;
    if kept.framing == Body::Chunked && !head_only && !stream.txn.res.has(Known::TransferEncoding) {
        // It came over HTTP/2.
        let _ = stream.txn.res.append(b"transfer-encoding", b"chunked");
    }
    let bodiless = response::is_bodiless(stream.txn.res.status());
    let doubtful = kept.framing == Body::Chunked && stream.txn.res.version() < Version::HTTP_11;
    let closes = kept.framing == Body::UntilClose || crate::filter::prepare_response(stream);
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
    if stream.txn.req.method_id() == Method::Head
        && let Some(part) = &stream.client.part
    {
        part.receipt.head_only();
    }
    Ok(next)
}

/// Sends the staged head and the body.
async fn send(stream: &mut Stream<'_>, entry: &Arc<Entry>, head_only: bool) -> Result<(), ()> {
    let mut head = stream.to_client.take().unwrap_or_default();
    if head_only {
        return piece(stream, head.filled(), &[], false).await;
    }
    stream.txn.down.sent += size(entry);
    if let Some((chain, outer)) = stream.down_chain.take() {
        return rt::boxed(filtered(stream, entry, head, *chain, outer)).await;
    }
    let (body, chunked) = (&*entry.body, entry.meta.framing == Body::Chunked);
    if !chunked {
        if body.len() <= SHORT.min(head.spare()) {
            head.push(body);
            return piece(stream, head.filled(), &[], false).await;
        }
        return piece(stream, head.filled(), body, false).await;
    }
    let trailers = trailers(stream, entry);
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
fn trailers<'e>(stream: &Stream<'_>, entry: &'e Entry) -> &'e [u8] {
    match &*entry.meta.trailers {
        trailers if !trailers.is_empty() && !stream.frontend().options.drop_response_trailers => trailers,
        _ => b"\r\n",
    }
}

/// Sends a body through filters, piece by piece: between two of them the worker's other tasks have their
/// turn.
async fn filtered(
    stream: &mut Stream<'_>,
    entry: &Arc<Entry>,
    mut head: Buf,
    mut chain: Chain,
    outer: Outer,
) -> Result<(), ()> {
    let most = stream.worker.shared.program.global.tune.bufsize;
    let (mut rest, mut out) = (&*entry.body, Vec::new());
    loop {
        let (now, later) = rest.split_at(rest.len().min(most));
        rest = later;
        let over = rest.is_empty();
        let source = if over { Source::Over } else { Source::Open };
        let made = crate::filter::pass(&mut chain, now, source).await;
        out.clear();
        match outer {
            Outer::Plain => out.extend_from_slice(&made),
            Outer::Chunked => served::chunks(&made, most, &mut out),
        }
        if over && outer == Outer::Chunked {
            out.extend_from_slice(b"0\r\n");
            out.extend_from_slice(trailers(stream, entry));
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
