//! Another attempt at a request that `retry-on` names the failure of.

use link::pump::Framing;
use program::Proxy;
use rt::Buf;
use wire::http1::Body;

use crate::choose::Wish;
use crate::connect;
use crate::stream::Stream;

/// Whether the request can be sent once more.
pub(super) fn may_retry(stream: &Stream<'_>, back: &Proxy) -> bool {
    let retries = stream.txn.overrides.retries.unwrap_or(back.retries);
    stream.txn.retries < retries && is_kept(stream)
}

/// Whether all of the request is there that was sent, and no rule forbids to send it again.
pub(super) fn is_kept(stream: &Stream<'_>) -> bool {
    let waiting = stream.client.buf.as_ref().map_or(0, Buf::len);
    let fits = stream.upload.kept.as_ref().is_some_and(|k| k.len() + waiting <= rt::bufsize());
    fits && !stream.txn.decisions.no_l7_retry
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
