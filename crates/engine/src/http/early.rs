//! Requests that came as early data (RFC 8470): they may be somebody else's copy until the handshake is over.
//!
//! A rule may wait for that end (`wait-for-handshake`). Without it the request goes on at once, and the
//! server is told by `Early-Data: 1`. A server that answers 425 to that, where `retry-on` names it, is asked
//! again when the handshake is over, without the field: the copy of somebody else never gets so far.

use std::future::poll_fn;
use std::task::{Context, Poll};

use link::transport::Early;
use model::term::{Cause, Phase};

use super::{Next, answer};
use crate::stream::Stream;

const FIELD: &str = "early-data";

/// How waiting for the handshake ended.
enum Waited {
    Over,
    Failed,
    Late,
}

/// Waits for the end of the handshake, with the patience of `timeout client`.
///
/// # Errors
/// It did not come: what becomes of the connection.
pub async fn handshake(stream: &mut Stream<'_>) -> Result<(), Next> {
    let limit = stream.client_limit();
    stream.client.timer.set_after(limit);
    let waited = poll_fn(|cx| {
        if stream.client.session.kill.get().is_some() {
            return Poll::Ready(Waited::Failed);
        }
        match poll(stream, cx) {
            Poll::Ready(true) => Poll::Ready(Waited::Over),
            Poll::Ready(false) => Poll::Ready(Waited::Failed),
            Poll::Pending => stream.client.timer.poll_expired(cx).map(|()| Waited::Late),
        }
    })
    .await;
    let worker = stream.worker.index;
    let status = match waited {
        Waited::Over => {
            stream.client.conn().early.set(false);
            return Ok(());
        }
        Waited::Late => {
            stream.end(Cause::ClientTimeout, Phase::Request);
            408
        }
        Waited::Failed => {
            stream.end(Cause::ClientAbort, Phase::Request);
            stream.backend().state.back.counters.of(worker).client_aborts.inc();
            400
        }
    };
    stream.frontend().state.front.counters.of(worker).req_errors.inc();
    Err(answer::refuse(stream, status).await)
}

/// Whether the handshake came to a good end. Where many streams share the connection its task reads, and this
/// one is told.
fn poll(stream: &Stream<'_>, cx: &mut Context<'_>) -> Poll<bool> {
    let client = &stream.client;
    if client.part.is_none() {
        return client.socket.poll_handshake(cx).map(|done| done.is_ok());
    }
    let Some(lead) = client.lead() else { return Poll::Ready(false) };
    if client.socket.poll_broken(cx).is_ready() {
        return Poll::Ready(false);
    }
    lead.socket.watch_handshake(cx).map(|()| lead.socket.early_end() != Some(Early::Failed))
}

/// Tells the server that the request may be somebody else's copy, as the rules saw it.
pub fn tell(stream: &mut Stream<'_>) {
    if stream.client.conn().early.get() && !stream.txn.req.has(FIELD) {
        stream.http.told_early = stream.txn.req.append(FIELD.as_bytes(), b"1").is_ok();
    }
}

/// Makes a request that the server found too early one that is not.
///
/// # Errors
/// The handshake did not end well: what becomes of the connection.
pub async fn settle(stream: &mut Stream<'_>) -> Result<(), Next> {
    if stream.http.told_early && stream.txn.res.status() == 425 {
        handshake(stream).await?;
        stream.txn.req.remove_all(FIELD);
        stream.http.told_early = false;
    }
    Ok(())
}

/// The server's side has come to a response: what the handshake found is known now.
pub fn note_server(stream: &mut Stream<'_>) {
    let Some(end) = stream.upstream.as_ref().and_then(|up| up.early_end()) else { return };
    if end != Early::Open && stream.txn.server_secured.is_none() {
        stream.txn.server_secured = stream.upstream.as_ref().and_then(|up| up.secured().cloned());
        let resumed = stream.txn.server_secured.as_ref().map(|facts| facts.resumed);
        let server = stream.place.as_ref().map(|place| place.config());
        farm::secure::count_server(
            &stream.worker.farm,
            &stream.backend(),
            server.as_ref().map(|s| &*s.state),
            resumed.filter(|_| end == Early::Taken),
        );
    }
}
