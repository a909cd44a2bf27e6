//! The response head: checks, persistence, rules, then on its way.

use lang::env::Side;
use lang::filter::Moment;
use model::term::{Cause, Phase};

use super::exchange::Step;
use super::{Next, answer, captures, headers, rules};
use crate::filters::Whose;
use crate::stream::Stream;
use wire::head::Known;
use wire::http1::{self, Body};
use wire::method::{Method, Version};

/// Processes a complete final response head and stages it for the client.
pub async fn process(stream: &mut Stream<'_>) -> Step {
    stream.txn.respond();
    stream.client.look_early();
    crate::tracking::response(&stream.worker.shared.program.global, stream.client.conn(), &stream.txn);
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let back = &*program.proxy(stream.backend_index());
    let front_index = stream.client.front;
    let front = program.configured(front_index);
    if let Step::Done(next) = super::rules::filters(stream, Moment::Response, Whose::All).await {
        return Step::Done(next);
    }
    super::cgi::hide_length(stream);
    if let Step::Done(next) = rules(stream, back, front).await {
        return Step::Done(next);
    }
    if back.options.checkcache
        && let Some(next) = super::cacheable::refuse_cacheable(stream).await
    {
        return Step::Done(next);
    }
    captures::response_cookie(stream);
    crate::persist::response(stream, back);
    if !answer::after_response_rules(stream) {
        return Step::Done(super::rules::failed_after(stream).await);
    }
    if let Step::Done(next) = super::rules::filters(stream, Moment::ResponseHead, Whose::All).await {
        return Step::Done(next);
    }
    super::cgi::finish_response(stream);
    stage(stream).await
}

/// Frames the response as its client needs it, and stages its head.
async fn stage(stream: &mut Stream<'_>) -> Step {
    reframe_service(stream);
    let body = stream.http.response_body;
    let said = stream.txn.res.has(Known::TransferEncoding);
    if headers::response_is_framed(stream) && !said && !wants_head(stream) {
        let _ = stream.txn.res.append(b"transfer-encoding", b"chunked");
    }
    // What HTTP/1.0 says of chunks is not to be trusted (RFC 9112 section 6.1).
    let doubtful = body == Body::Chunked && stream.txn.res.version() < Version::HTTP_11;
    let unframed = unframe(stream);
    // What has no body may be kept all the same.
    let takes = !is_bodiless(stream.txn.res.status()) || stream.txn.caching.storing.is_some();
    let closes = takes && crate::filter::prepare_response(stream);
    // What rules say of a connection is about one of HTTP/1.
    let ended = stream.client.part.is_none() && headers::ends(&stream.txn.res);
    let keep = headers::may_keep_client(stream) && !closes && !doubtful && !unframed && !ended;
    let next = if keep { Next::KeepAlive } else { Next::Close };
    stream.http.next_keeps = keep;
    stream.txn.status = stream.txn.res.status();
    if headers::send_response(stream, next).is_err() {
        stream.to_client = None;
        stream.end(Cause::Proxy, Phase::Headers);
        return Step::Done(answer::refuse(stream, 502).await);
    }
    if stream.txn.req.method_id() == Method::Head
        && let Some(part) = &stream.client.part
    {
        part.receipt.head_only();
    }
    Step::Go
}

/// Whether a response of this status has no body, whatever its fields say (RFC 9112 section 6.3).
pub fn is_bodiless(status: u16) -> bool {
    status < 200 || matches!(status, 204 | 304)
}

/// Whether chunks of the response were made here, and count for nothing: its server, or a service, said
/// otherwise where it ends.
pub fn has_no_chunks(stream: &Stream<'_>) -> bool {
    let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
    stream.service.is_some() || call.is_some_and(|call| !call.was_chunked())
}

/// Whether a client of HTTP/1 asked for a head alone, whatever rules have made of its method: it is told
/// nothing of a framing that was made here.
pub fn wants_head(stream: &Stream<'_>) -> bool {
    stream.client.part.is_none() && stream.txn.line.method() == b"HEAD"
}

/// The chunks of a service's answer are of this side of it: they are told behind all other fields, and not in
/// answer to HEAD.
fn reframe_service(stream: &mut Stream<'_>) {
    if stream.service.is_none() || !stream.txn.res.has(Known::TransferEncoding) {
        return;
    }
    stream.txn.res.remove_all(Known::TransferEncoding);
    if stream.txn.req.method_id() != Method::Head && !wants_head(stream) {
        let _ = stream.txn.res.append(b"transfer-encoding", b"chunked");
    }
}

/// A 204 may not speak of chunks, and rules may have made one of a response that has some. Whether this one
/// did.
pub fn unchunk(res: &mut wire::head::Head) -> bool {
    // The answer to a HEAD speaks of chunks and has none.
    let chunked = res.status() == 204 && res.has(Known::TransferEncoding);
    if chunked {
        res.remove_all(Known::TransferEncoding);
    }
    chunked
}

/// Rules may have made a response of it that has no body: the server's is dropped then. Whether the client's
/// connection had better end with it: also where the server's ended with the body.
fn unframe(stream: &mut Stream<'_>) -> bool {
    let status = stream.txn.res.status();
    let chunked = unchunk(&mut stream.txn.res);
    let open = is_bodiless(status) && stream.http.response_body == Body::UntilClose;
    chunked || open || status < 200
}

/// Rules on the response, of the backend before those of the frontend. What `tcp-response` lets through
/// counts as a response of its server, whatever becomes of it.
async fn rules(stream: &mut Stream<'_>, back: &program::Proxy, front: &program::Proxy) -> Step {
    let both = both(stream, back, front);
    // Without a delay they had their turn when the server was reached.
    if let Some(delay) = back.timeouts.inspect_response
        && let Step::Done(next) =
            rules::run(stream, &back.rules.tcp_response, Side::Response, Some(delay)).await
    {
        return Step::Done(next);
    }
    // What a server said is stored as it said it, whatever `http-response` rules make of it.
    crate::stick::store_response(stream, back);
    if let Step::Done(next) = super::rules::filters(stream, Moment::ResponseRules, Whose::All).await {
        return Step::Done(next);
    }
    crate::finish::count_response(stream, stream.txn.res.status());
    // Rules that log see what the server said.
    stream.txn.status = stream.txn.res.status();
    captures::response(stream);
    for proxy in &both {
        if let Step::Done(next) = rules::run(stream, &proxy.rules.http_response, Side::Response, None).await {
            return Step::Done(next);
        }
    }
    if stream.http.client_left {
        // Rules paused, and it did not stay for the end of them.
        let phase = if stream.http.body_received { Phase::Last } else { Phase::Headers };
        stream.end(Cause::ClientAbort, phase);
        crate::losses::client_abort(stream);
        return Step::Done(Next::Close);
    }
    Step::Go
}

fn both<'p>(
    stream: &Stream<'_>,
    back: &'p program::Proxy,
    front: &'p program::Proxy,
) -> Vec<&'p program::Proxy> {
    let mut list = Vec::new();
    if has_rules(back) {
        list.push(back);
    }
    if stream.txn.backend.is_some_and(|b| b != stream.client.front) && has_rules(front) {
        list.push(front);
    }
    list
}

fn has_rules(proxy: &program::Proxy) -> bool {
    !proxy.rules.http_response.is_empty()
}

/// Notes what the response head says of framing and connection, before rules change it.
pub fn note(stream: &mut Stream<'_>) {
    let method = stream.txn.req.method_id();
    let body = http1::response_body(&stream.txn.res, method);
    stream.http.response_body = body;
    let maxrewrite = stream.worker.shared.program.global.tune.maxrewrite;
    let multiplexed = stream.upstream.as_ref().is_some_and(|up| up.call.is_some());
    stream.http.response_taken = crate::room::taken(&stream.txn.res, body, multiplexed, maxrewrite);
    stream.http.server_keeps = http1::keeps_alive(&stream.txn.res)
        && headers::keeps_server(stream.frontend(), &stream.backend())
        && !stream.http.server_ends
        && !matches!(body, Body::UntilClose);
    headers::hide_connection(&mut stream.txn.res, true);
    if method == Method::Connect && (200..300).contains(&stream.txn.res.status()) {
        // RFC 9110 sections 8.6 and 6.1: what follows is a tunnel, whatever the server says of a body.
        stream.txn.res.remove_all(Known::ContentLength);
        stream.txn.res.remove_all(Known::TransferEncoding);
    }
    headers::forget_persistence(&mut stream.txn.res);
    if headers::response_is_framed(stream) {
        let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
        stream.txn.decisions.framed = call.is_some_and(|call| !call.was_bare());
        // Rules see what the server sent.
        stream.txn.res.remove_all(Known::TransferEncoding);
    }
}

/// Whether the response opens a tunnel: 101, or 2xx to CONNECT.
pub fn opens_tunnel(stream: &Stream<'_>) -> bool {
    stream.txn.res.status() == 101 || super::exchange::is_tunnel(stream)
}

/// Processes the head of a response that opens a tunnel.
pub async fn tunnel(stream: &mut Stream<'_>) -> Step {
    let upgrade = http1::upgrades(&stream.txn.res);
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let front = program.configured(stream.client.front);
    let back = &*program.proxy(stream.backend_index());
    if let Step::Done(next) = rules(stream, back, front).await {
        return Step::Done(next);
    }
    captures::response_cookie(stream);
    crate::persist::response(stream, back);
    if !answer::after_response_rules(stream) {
        return Step::Done(super::rules::failed_after(stream).await);
    }
    if !opens_tunnel(stream) {
        // A rule says no. The client is not told of a tunnel and gets none: what else it sends never reaches
        // the server.
        stream.http.response_body = Body::UntilClose;
        return stage(stream).await;
    }
    stream.txn.status = stream.txn.res.status();
    if headers::send_tunnel(stream, upgrade).is_err() {
        stream.to_client = None;
        stream.end(Cause::Proxy, Phase::Headers);
        return Step::Done(answer::refuse(stream, 502).await);
    }
    Step::Go
}
