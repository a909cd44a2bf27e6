//! The response head: checks, persistence, rules, then on its way.

use lang::env::Side;
use model::term::{Cause, Phase};
use program::options::Connection;

use super::exchange::Step;
use super::{Next, answer, captures, headers, rules};
use crate::stream::Stream;
use wire::http1::{self, Body};
use wire::method::Version;

/// Processes a complete final response head and stages it for the client.
pub async fn process(stream: &mut Stream<'_>) -> Step {
    // Variables of the request end where the response begins.
    stream.txn.req_vars.get_mut().clear();
    stream.client.look_early();
    crate::stick::response(stream);
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let back = program.proxy(stream.backend_index());
    let front_index = stream.client.conn().frontend;
    let front = program.proxy(front_index);
    if let Step::Done(next) = rules(stream, back, front).await {
        return Step::Done(next);
    }
    captures::response(stream);
    crate::stick::store_response(stream, back);
    crate::persist::response(stream, back);
    answer::after_response_rules(stream);
    let body = stream.http.response_body;
    // What HTTP/1.0 says of chunks is not to be trusted (RFC 9112 section 6.1).
    let doubtful = body == Body::Chunked && stream.txn.res.version() < Version::HTTP_11;
    let keep = headers::may_keep_client(stream) && body != Body::UntilClose && !doubtful;
    let next = if keep { Next::KeepAlive } else { Next::Close };
    stream.http.next_keeps = keep;
    stream.txn.status = stream.txn.res.status();
    if headers::send_response(stream, next).is_err() {
        stream.to_client = None;
        stream.end(Cause::Proxy, Phase::Headers);
        return Step::Done(answer::refuse(stream, 502).await);
    }
    Step::Go
}

/// Rules on the response, of the backend before those of the frontend. What `tcp-response` lets through counts as a
/// response of its server, whatever becomes of it.
async fn rules(stream: &mut Stream<'_>, back: &program::Proxy, front: &program::Proxy) -> Step {
    let both = both(stream, back, front);
    for proxy in &both {
        let inspect = proxy.timeouts.inspect_response;
        if let Step::Done(next) = rules::run(stream, &proxy.rules.tcp_response, Side::Response, inspect).await
        {
            return Step::Done(next);
        }
    }
    crate::finish::count_response(stream, stream.txn.res.status());
    // Rules that log see what the server said.
    stream.txn.status = stream.txn.res.status();
    for proxy in &both {
        if let Step::Done(next) = rules::run(stream, &proxy.rules.http_response, Side::Response, None).await {
            return Step::Done(next);
        }
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
    if stream.txn.backend.is_some_and(|b| b != stream.client.conn().frontend) && has_rules(front) {
        list.push(front);
    }
    list
}

fn has_rules(proxy: &program::Proxy) -> bool {
    !proxy.rules.http_response.is_empty() || !proxy.rules.tcp_response.is_empty()
}

/// Notes what the response head says of framing and connection, before rules change it.
pub fn note(stream: &mut Stream<'_>) {
    let method = stream.txn.req.method_id();
    let body = http1::response_body(&stream.txn.res, method);
    let connection = stream.frontend().options.connection.max(stream.backend().options.connection);
    stream.http.response_body = body;
    stream.http.server_keeps = http1::keeps_alive(&stream.txn.res)
        && connection == Connection::KeepAlive
        && !matches!(body, Body::UntilClose);
}

/// Processes the head of a response that opens a tunnel (101, or 2xx to CONNECT).
pub async fn tunnel(stream: &mut Stream<'_>) -> Step {
    let upgrade = http1::upgrades(&stream.txn.res);
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let (back, front) = (program.proxy(stream.backend_index()), program.proxy(stream.client.conn().frontend));
    if let Step::Done(next) = rules(stream, back, front).await {
        return Step::Done(next);
    }
    crate::stick::store_response(stream, back);
    crate::persist::response(stream, back);
    answer::after_response_rules(stream);
    stream.txn.status = stream.txn.res.status();
    if headers::send_tunnel(stream, upgrade).is_err() {
        stream.to_client = None;
        stream.end(Cause::Proxy, Phase::Headers);
        return Step::Done(answer::refuse(stream, 502).await);
    }
    Step::Go
}
