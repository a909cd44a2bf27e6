//! Clients that leave before a server was reached.

use std::future::poll_fn;
use std::task::{Context, Poll};

use program::proxy::Proxy;
use tls::Ahead;

use crate::silence;
use crate::stream::Stream;

/// Whether the client is no longer there to be served: its connection broke, or it closed its side and that
/// counts as leaving (`option abortonclose`; of TCP what it has said is served all the same), or an operator
/// ended its session, or its time to send the rest of its request is over.
pub(super) fn has_left(stream: &Stream<'_>, proxy: &Proxy, cx: &mut Context<'_>) -> bool {
    let client = &stream.client;
    if stream.txn.has_req && silence::is_over(stream) {
        return true;
    }
    if !stream.txn.has_req && client.session.kill.get().is_none() {
        return client.ended_silently(cx);
    }
    client.session.kill.get().is_some()
        || client.socket.poll_broken(cx).is_ready()
        || (proxy.options.abortonclose && client.socket.has_ended(cx))
}

/// Whether the client leaves while its server is on the way. One of TCP that had closed its side before is
/// served all the same, unless `option abortonclose` says that it need not.
pub(super) fn withdraws(stream: &Stream<'_>, proxy: &Proxy, cx: &mut Context<'_>) -> bool {
    let expected = !stream.txn.has_req
        && stream.http.left_early
        && !proxy.options.abortonclose
        && stream.client.session.kill.get().is_none();
    !expected && has_left(stream, proxy, cx)
}

/// Whether a client of TCP had closed its side, without a word, before its server was asked for the first
/// time.
fn had_closed(stream: &Stream<'_>, cx: &mut Context<'_>) -> bool {
    !stream.txn.has_req
        && stream.txn.retries == 0
        && !stream.client.has_input()
        && matches!(stream.client.socket.poll_look(cx), Poll::Ready(Ahead::End))
}

/// Asks, as a connection begins, whether the client has left already.
pub(super) async fn left_before(stream: &mut Stream<'_>, proxy: &Proxy) -> bool {
    if !poll_fn(|cx| Poll::Ready(has_left(stream, proxy, cx))).await {
        return false;
    }
    stream.http.left_early |= poll_fn(|cx| Poll::Ready(had_closed(stream, cx))).await;
    true
}

/// Whether a client of TCP has left without a word.
pub(super) async fn left_silently(stream: &Stream<'_>) -> bool {
    !stream.txn.has_req && poll_fn(|cx| Poll::Ready(stream.client.ended_silently(cx))).await
}
