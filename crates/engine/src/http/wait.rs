//! Waiting for a body before anything of it is passed on: `option http-buffer-request`, `wait-for-body`,
//! services that read what was posted.
//!
//! The head counts as received only with the body that was waited for (`%TR`). A client that leaves meanwhile
//! ends the wait, not the rules: they still decide what is counted and logged, and whoever comes to choose a
//! server finds that there is nobody to serve ([`crate::stream::Http::client_left`]).

use std::any::Any;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use lang::action::Waiting;
use lang::env::Side;
use model::term::{Cause, Phase};
use program::Proxy;
use rt::{Buf, Mono};
use wire::head::Known;
use wire::http1::{Body, ErrorKind, ParseError, Scanner, State};
use wire::method::Version;

use crate::body::{self, Progress, Waited};
use crate::room;
use crate::silence;
use crate::stream::Stream;

/// Longer than any client stays.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// What is waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// How long in all.
    pub time: Option<Duration>,
    /// Enough when so many bytes are there; `None`: all that fits.
    pub at_least: Option<u64>,
    /// What does not fit a buffer gets a large one (`use-large-buffer`).
    pub large: bool,
}

/// Makes a full buffer larger, if that is wanted.
fn grow(worker: &crate::Worker, buf: Option<&mut Buf>, taken: usize, wait: Wait) {
    if wait.large
        && let Some(buf) = buf.filter(|b| b.is_full() || b.len() >= room::of(b, taken))
    {
        buf.grow(worker.shared.program.global.tune.large_bufsize);
    }
}

fn grow_request(stream: &mut Stream<'_>, wait: Wait) {
    grow(&stream.worker, stream.client.buf.as_mut(), stream.http.request_taken, wait);
}

/// Waits for the body of the request, at most as long as `wait` says in all and for the client's timeout
/// between two pieces.
pub async fn request(stream: &mut Stream<'_>, wait: Wait) -> Waited {
    let Wait { time, at_least, .. } = wait;
    let mut progress = body::request(stream);
    if stream.http.client_left || stream.http.body_received {
        return Waited::Enough;
    }
    invite(stream).await;
    grow_request(stream, wait);
    if let Some(done) = progress.look(stream.client.buf.as_ref(), at_least) {
        return done;
    }
    stream.txn.times.request = None;
    let deadline = time.map(|t| rt::now() + t);
    let done = loop {
        stream.client.timer.set(next_deadline(deadline, stream.client_limit()));
        match stream.receive().await {
            Ok(n) if n > 0 => {
                grow_request(stream, wait);
                if let Some(done) = progress.look(stream.client.buf.as_ref(), at_least) {
                    break done;
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::TimedOut => break Waited::Late,
            Err(e) if e.kind() == std::io::ErrorKind::OutOfMemory => break Waited::Enough,
            _ => {
                stream.http.client_left = true;
                break Waited::Enough;
            }
        }
    };
    if done == Waited::Enough {
        stream.txn.times.request = Some(rt::now());
    }
    done
}

/// What comes first: the end of the whole wait, or that of a silence that begins now.
fn next_deadline(whole: Option<Mono>, silence: Option<Duration>) -> Option<Mono> {
    let silence = silence.map(|t| rt::now() + t);
    whole.into_iter().chain(silence).min()
}

/// Whether the bytes that came with a head can't be the chunks that it announces. A message whose fault is
/// seen before anything of it was passed on is refused as a whole.
///
/// # Errors
/// The fault, for `show errors`.
pub fn check_chunks(body: Body, bytes: &[u8], head: usize, relax: bool) -> Result<(), ParseError> {
    let rest = bytes.get(head..).unwrap_or_default();
    if body != Body::Chunked || Scanner::new(relax).data(rest, |_| {}).is_ok() {
        return Ok(());
    }
    Err(ParseError { kind: ErrorKind::BadChunkSize, position: head, state: State::ChunkSize })
}

/// A client that asked leave to send its body gets it, for here it is waited for (RFC 9110 section 10.1.1).
/// HAProxy says so also when some of the body is there, and the server is not asked any more.
async fn invite(stream: &mut Stream<'_>) {
    let req = &stream.txn.req;
    if req.version() >= Version::HTTP_11
        && req.has(Known::Expect)
        && req.has_token(Known::Expect, b"100-continue")
    {
        let _ = stream.client.socket.send_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        stream.txn.req.remove_all(Known::Expect);
    }
}

/// So does a client whom a service or a cache answers in the place of a server, if its head says where its
/// body ends.
pub async fn invite_in_place(stream: &mut Stream<'_>) {
    let req = &stream.txn.req;
    if req.has(Known::ContentLength) || req.has(Known::TransferEncoding) {
        invite(stream).await;
    }
}

/// Waits for the body of the response, at most as long as `wait` says in all and for the server's timeout
/// between two pieces.
pub async fn response(stream: &mut Stream<'_>, wait: Wait) -> Waited {
    let Wait { time, at_least, .. } = wait;
    let (taken, relax) = (stream.http.response_taken, stream.backend().options.unsafe_response);
    let mut progress = Progress::of(stream.http.response_body, taken, relax);
    let limit = stream.server_limit();
    let deadline = time.map(|t| rt::now() + t);
    stream.server_timer.set(next_deadline(deadline, limit));
    poll_fn(|cx| {
        loop {
            grow(&stream.worker, stream.upstream.as_mut().and_then(|u| u.buf.as_mut()), taken, wait);
            let buf = stream.upstream.as_ref().and_then(|u| u.buf.as_ref());
            if let Some(done) = progress.look(buf, at_least) {
                return Poll::Ready(done);
            }
            match receive(stream, cx) {
                Poll::Ready(true) => stream.server_timer.set(next_deadline(deadline, limit)),
                Poll::Ready(false) => return Poll::Ready(Waited::Enough),
                Poll::Pending => return stream.server_timer.poll_expired(cx).map(|()| Waited::Late),
            }
        }
    })
    .await
}

/// Receives more of the response; `false`: there will be no more.
fn receive(stream: &mut Stream<'_>, cx: &mut Context<'_>) -> Poll<bool> {
    if stream.client.session.kill.get().is_some() || stream.client.socket.poll_broken(cx).is_ready() {
        return Poll::Ready(false);
    }
    let Some(up) = stream.upstream.as_mut() else { return Poll::Ready(false) };
    let buf = up.buf.get_or_insert_default();
    if buf.spare() == 0 {
        buf.compact();
    }
    if buf.spare() == 0 {
        return Poll::Ready(false);
    }
    match up.socket.poll_recv(cx, buf.spare_mut()) {
        Poll::Ready(Ok(n)) if n > 0 => {
            buf.advance(n);
            Poll::Ready(true)
        }
        Poll::Ready(_) => {
            stream.http.response_ended = true;
            Poll::Ready(false)
        }
        Poll::Pending => Poll::Pending,
    }
}

/// `inspect-delay`: waits until the deadline for more bytes of a direction; whether some came.
pub async fn more(stream: &mut Stream<'_>, side: Side, deadline: Option<Mono>) -> bool {
    if side == Side::Response {
        stream.server_timer.set(deadline);
        return poll_fn(|cx| match receive(stream, cx) {
            Poll::Pending => stream.server_timer.poll_expired(cx).map(|()| false),
            came => came,
        })
        .await;
    }
    if stream.client.buf.as_ref().is_some_and(Buf::is_full) {
        return false;
    }
    stream.client.timer.set(deadline.into_iter().chain(silence::end(stream)).min());
    match stream.receive().await {
        Ok(n) if n > 0 => return true,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::OutOfMemory) => {}
        // Who closes its side behind a request that is whole may be waiting for the answer.
        Ok(_) => stream.http.client_left |= !body::is_whole(stream),
        Err(_) => stream.http.client_left = true,
    }
    false
}

/// What a client may do behind a request that came whole without ending a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Anything: it is heard of when a server is sought, be that for an answer or not.
    Boundless,
    /// It may close its side.
    Half,
    /// Nothing: it has to stay (`option abortonclose`).
    None,
}

impl Patience {
    /// Whether it is over.
    fn is_over(self, stream: &Stream<'_>, cx: &mut Context<'_>) -> bool {
        let socket = &stream.client.socket;
        match self {
            Patience::Boundless => false,
            Patience::None if !stream.wants_tunnel() => {
                socket.poll_broken(cx).is_ready() || socket.has_ended(cx)
            }
            Patience::Half | Patience::None => socket.poll_reset(cx).is_ready(),
        }
    }
}

/// `pause`: lets time pass, as long as there is somebody to wait, with whom `patience` is had. A client that
/// owes a part of its request is waited for no longer than it may be silent, and not when it closes its side.
pub async fn pause(stream: &mut Stream<'_>, time: Duration, patience: Patience) {
    hold(stream, time, patience).await;
    if patience != Patience::Boundless && stream.client.socket.raw().is_reset() {
        stream.http.client_left = true;
    }
}

async fn hold(stream: &mut Stream<'_>, time: Duration, patience: Patience) {
    let end = rt::now() + time;
    let mut timer = rt::Timer::at(silence::end(stream).map_or(end, |silence| silence.min(end)));
    let mut owes = !stream.http.body_received;
    loop {
        let client = &stream.client;
        let over = poll_fn(|cx| {
            // A request of HTTP/2 that is taken back is nobody's any more.
            let taken_back = client.part.is_some() && client.socket.poll_broken(cx).is_ready();
            if client.session.kill.get().is_some() || taken_back {
                return Poll::Ready(true);
            }
            if owes && client.socket.poll_hangup(cx).is_ready() {
                return Poll::Ready(false);
            }
            if !owes && patience.is_over(stream, cx) {
                return Poll::Ready(true);
            }
            if timer.poll_expired(cx).is_ready() && rt::now() < end && client.socket.is_readable() {
                // It has said something meanwhile.
                timer.set(Some(end));
            }
            timer.poll_expired(cx).map(|()| true)
        })
        .await;
        if over || left(stream).await {
            break;
        }
        owes = false;
    }
}

/// Waits for an extension as long as the client is there, and no longer than until `deadline`; `None`: one of
/// them is over.
pub async fn extension(
    stream: &mut Stream<'_>,
    deadline: Option<Mono>,
    mut waiting: Waiting,
) -> Option<Box<dyn Any>> {
    let time = deadline.map_or(FOREVER, |end| end.since(rt::now()));
    let brought = {
        let mut client = pin!(hold(stream, time, Patience::Boundless));
        poll_fn(|cx| match waiting.as_mut().poll(cx) {
            Poll::Ready(brought) => Poll::Ready(Some(brought)),
            Poll::Pending => client.as_mut().poll(cx).map(|()| None),
        })
        .await
    };
    stream.http.left_early |= stream.client.socket.is_hung_up() && !stream.wants_tunnel();
    brought
}

/// Whether a client that has closed its side left before its request was whole, as far as that fits a buffer.
pub async fn left(stream: &mut Stream<'_>) -> bool {
    if stream.http.client_left || stream.http.body_received {
        return stream.http.client_left;
    }
    let mut progress = body::request(stream);
    stream.client.timer.set_after(stream.client_limit());
    while progress.look(stream.client.buf.as_ref(), None).is_none() {
        if !matches!(stream.receive().await, Ok(n) if n > 0) {
            stream.http.client_left = true;
            return true;
        }
    }
    false
}

/// `option http-buffer-request`: waits for the body, or as much of it as fits.
///
/// # Errors
/// The status to answer when it did not come in time, or is none.
pub async fn buffer_request(stream: &mut Stream<'_>, proxy: &Proxy) -> Result<(), u16> {
    let waited = request(stream, Wait { time: proxy.timeouts.http_request, ..Wait::default() }).await;
    // Where rules or a balancing algorithm need the body the wait is part of them.
    stream.txn.times.waited |= waited == Waited::Enough && proxy.options.http_buffer_request;
    note_request(stream, waited)
}

/// Notes how the stream ends if its request did not come as it should.
///
/// # Errors
/// The status to answer.
pub fn note_request(stream: &mut Stream<'_>, waited: Waited) -> Result<(), u16> {
    match waited {
        Waited::Enough => Ok(()),
        Waited::Late => {
            stream.end(Cause::ClientTimeout, Phase::Request);
            if let Some((front, _)) = stream.front_counters() {
                front.req_errors.inc();
            }
            Err(408)
        }
        Waited::Malformed => {
            // Nothing more that such a client says can be understood: it is told nothing.
            stream.end(Cause::Proxy, Phase::Request);
            super::request::bad_body(stream);
            stream.http.client_left = true;
            Err(400)
        }
    }
}

/// The same for a response.
///
/// # Errors
/// The status to answer.
pub fn note_response(stream: &mut Stream<'_>, waited: Waited) -> Result<(), u16> {
    match waited {
        Waited::Enough => return Ok(()),
        Waited::Late => stream.end(Cause::ServerTimeout, Phase::Headers),
        Waited::Malformed => {
            stream.txn.times.response = None;
            stream.end(Cause::Proxy, Phase::Headers);
        }
    }
    crate::losses::response_failure(stream);
    Err(if waited == Waited::Late { 504 } else { 502 })
}
