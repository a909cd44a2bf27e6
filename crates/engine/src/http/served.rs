//! How the bodies of answers made here go out, those of services through the filters of their stream.

use lang::filter::Moment;
use link::chain::{Chain, Source};
use model::conn::ConnError;
use model::term::{Cause, Phase};
use wire::http1::response_body;

use super::exchange::Step;
use super::{Next, rules};
use crate::client::Client;
use crate::filter;
use crate::filters::Whose;
use crate::stream::Stream;

/// Has the filters see the head of a service's answer, and what is there of its body; what the rest of that
/// passes through.
///
/// # Errors
/// A filter ended the stream.
pub(super) async fn filtered(
    stream: &mut Stream<'_>,
    body: &mut Vec<u8>,
    goes_on: bool,
) -> Result<Option<Box<Chain>>, Next> {
    if let Step::Done(next) = rules::filters(stream, Moment::ResponseHead, Whose::All).await {
        return Err(next);
    }
    stream.http.response_body = response_body(&stream.txn.res, stream.txn.req.method_id());
    let _ = filter::prepare_response(stream);
    let Some((mut chain, _)) = stream.down_chain.take() else { return Ok(None) };
    let source = if goes_on { Source::Open } else { Source::Over };
    *body = filter::pass(&mut chain, body, source).await;
    Ok(Some(chain))
}

/// An answer on its way: its head and, unless that is all, its body, in chunks if it is `chunked`, which are
/// `over` with it or go on.
pub(super) fn write(stream: &mut Stream<'_>, body: Option<&[u8]>, chunked: bool, over: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(stream.txn.res.wire_len() + body.map_or(0, <[u8]>::len) + 64);
    super::headers::write_response(stream, &mut out);
    match body {
        Some(body) if chunked => {
            chunks(body, stream.worker.shared.program.global.tune.bufsize, &mut out);
            if over {
                out.extend_from_slice(LAST_CHUNK);
            }
        }
        Some(body) => out.extend_from_slice(body),
        None => {}
    }
    out
}

/// Writes a body in chunks of at most `most` bytes.
pub(super) fn chunks(body: &[u8], most: usize, out: &mut Vec<u8>) {
    use std::io::Write;
    for piece in body.chunks(most.max(1)) {
        let _ = write!(out, "{:X}\r\n", piece.len());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
}

/// What ends a body in chunks.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Sends what a service makes piece by piece. Between two pieces the worker's other tasks have their turn.
pub(super) async fn pieces(
    stream: &mut Stream<'_>,
    mut rest: Box<dyn crate::worker::service::Pieces>,
    chunked: bool,
    mut chain: Option<Box<Chain>>,
) -> Result<(), ()> {
    let most = stream.worker.shared.program.global.tune.bufsize;
    let (mut piece, mut out) = (Vec::new(), Vec::new());
    loop {
        piece.clear();
        let more = std::future::poll_fn(|cx| rest.poll_next(cx, &mut piece)).await;
        if let Some(chain) = &mut chain {
            let source = if more { Source::Open } else { Source::Over };
            piece = filter::pass(chain, &piece, source).await;
        }
        let size = piece.len() as u64;
        super::answer::add(&mut stream.txn, size, size);
        if chunked {
            out.clear();
            chunks(&piece, most, &mut out);
            if !more {
                out.extend_from_slice(LAST_CHUNK);
            }
        } else {
            std::mem::swap(&mut piece, &mut out);
        }
        deliver(stream, &out).await?;
        stream.txn.down.wire_out += out.len() as u64;
        if !more {
            return Ok(());
        }
        rt::yield_now().await;
    }
}

/// Nothing more goes to a client: one on a UNIX socket that has closed it is noticed by writing only. What
/// was no request HAProxy answers before there is a stream that could tell.
fn unsent(client: &Client, is_request: bool, error: &std::io::Error) -> Cause {
    if is_request
        && client.part.is_none()
        && error.kind() == std::io::ErrorKind::BrokenPipe
        && client.conn().error.get().is_none()
    {
        client.conn().error.set(ConnError::of_system(error));
    }
    Cause::ClientAbort
}

/// Notes that a client over TLS which has closed its UNIX socket can't be told that this is the end.
pub(super) fn note_unsaid_end(client: &Client) {
    let socket = &client.socket;
    if client.part.is_none()
        && !socket.is_plain()
        && socket.is_broken()
        && client.conn().error.get().is_none()
    {
        client.conn().error.set(ConnError::of_system(&std::io::ErrorKind::BrokenPipe.into()));
    }
}

/// Sends all of an answer, at most for the client timeout between two steps.
pub(super) async fn deliver(stream: &mut Stream<'_>, out: &[u8]) -> Result<(), ()> {
    let limit = stream.frontend().timeouts.client;
    let (client, is_request) = (&mut *stream.client, stream.txn.has_req);
    client.timer.set_after(limit);
    let mut sent = 0;
    while sent < out.len() {
        let step = std::future::poll_fn(|cx| match client.socket.poll_send(cx, &out[sent..], false) {
            std::task::Poll::Ready(r) => {
                std::task::Poll::Ready(r.map_err(|e| unsent(client, is_request, &e)))
            }
            std::task::Poll::Pending if client.is_overdue(cx, limit) => {
                std::task::Poll::Ready(Err(Cause::ClientTimeout))
            }
            std::task::Poll::Pending => std::task::Poll::Pending,
        })
        .await;
        match step {
            Ok(n) => {
                sent += n;
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
