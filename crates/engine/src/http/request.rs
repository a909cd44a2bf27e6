//! Reading the head of a request.

use std::io;

use model::term::{Cause, Phase};
use mux::{glitches, h2};
use rt::Mono;
use wire::head::{Head, Kind};
use wire::http1::{
    Body, ErrorKind, Limits, ParseError, Parsed, State, parse_request, request_body, violation,
};

use super::wait;
use crate::captured::{self, Captured};
use crate::stream::Stream;

/// What came.
pub enum Read {
    /// A request.
    Request,
    /// Nothing that deserves an answer.
    Nothing,
    /// The preface of HTTP/2.
    Preface,
    /// Something to be answered with this status.
    Bad(u16),
}

/// Reads a request head into the transaction.
pub async fn read(stream: &mut Stream<'_>) -> Read {
    let mut deadline = begin(stream);
    if let Some(part) = &mut stream.client.part
        && let Some(head) = part.head.take()
    {
        part.receipt.begun.set(true);
        let refused = part.refused;
        stream.note_streams();
        return arrived(stream, &head, refused);
    }
    loop {
        if stream.client.has_input() {
            if note_first_byte(stream) {
                deadline = deadline.or_else(|| request_deadline(stream));
            }
            let parsed = match preface(stream) {
                h2::Preface::Http2 => return prefaced(stream),
                h2::Preface::Maybe => Ok(Parsed::Partial),
                h2::Preface::Other => parse(stream),
            };
            match parsed {
                Ok(Parsed::Complete { .. }) if is_cut_off(stream) => return cut_off(stream),
                Ok(Parsed::Complete { consumed }) => return complete(stream, consumed),
                Ok(Parsed::Partial) => {}
                Err(e) => return bad(stream, &e),
            }
            await_more(stream, deadline);
        }
        match stream.receive().await {
            Ok(0) => return closed(stream),
            Ok(_) => {}
            Err(e) => return failed(stream, &e),
        }
    }
}

/// Whether the connection is one of HTTP/2, which it may say without being asked (RFC 9113 section 3.3).
#[inline]
fn preface(stream: &Stream<'_>) -> h2::Preface {
    let bytes = stream.client.buf.as_ref().map(|buf| buf.filled()).unwrap_or_default();
    if bytes.starts_with(b"PRI") {
        return h2::preface(bytes);
    }
    h2::Preface::Other
}

/// It is, where it may and nothing came before.
fn prefaced(stream: &mut Stream<'_>) -> Read {
    let listener = stream.client.listener as usize;
    let fixed = stream.frontend().binds.get(listener).is_some_and(|bind| bind.h1);
    let refused = stream.http.only_h1 || stream.frontend().options.disable_h2_upgrade;
    if fixed || refused || !stream.txn.first_request || stream.client.part.is_some() {
        stream.end(Cause::Proxy, Phase::Request);
        count_error(stream);
        count_request(stream);
        if stream.client.part.is_none() {
            uncount_stream(stream);
        }
        return Read::Bad(405);
    }
    Read::Preface
}

/// Counts a request of HTTP/1 from its first byte on, or from when a stream of TCP became one.
pub fn count_stream(stream: &mut Stream<'_>) {
    if stream.client.part.is_none() && !std::mem::replace(&mut stream.http.counted, true) {
        let h1 = &stream.frontend().state.front.counters.of(stream.worker.index).h1;
        h1.streams.inc();
        h1.open_streams.inc();
    }
}

/// What came was the first of a connection of HTTP/2, no request of HTTP/1.
pub fn uncount_stream(stream: &Stream<'_>) {
    let streams = &stream.frontend().state.front.counters.of(stream.worker.index).h1.streams;
    // An operator may have cleared the counters since it was counted.
    if streams.get() > 0 {
        streams.dec();
    }
}

/// Notes when the wait for the request began; returns when all of its head has to be there, if that is known
/// already.
fn begin(stream: &mut Stream<'_>) -> Option<Mono> {
    let conn = stream.client.conn();
    // Idle time of the first request starts when handshakes were done.
    let ready = conn.handshake_done.get().unwrap_or(conn.accepted);
    let idle_from = if stream.txn.first_request { ready } else { conn.idle_since.get() };
    stream.txn.times.idle_from = Some(idle_from);
    stream.txn.req.set_limit(stream.worker.shared.program.global.tune.bufsize);
    match stream.frontend().timeouts.http_request {
        Some(limit) if stream.txn.first_request && !stream.client.has_input() => Some(idle_from + limit),
        _ => None,
    }
}

/// `timeout http-request` from now on.
fn request_deadline(stream: &Stream<'_>) -> Option<Mono> {
    Some(rt::now() + stream.frontend().timeouts.http_request?)
}

/// What is missing of a head may take until its deadline, and the client may be silent for no longer than
/// `timeout client`.
fn await_more(stream: &mut Stream<'_>, deadline: Option<Mono>) {
    let silence = stream.frontend().timeouts.client.map(|limit| rt::now() + limit);
    stream.client.timer.set(deadline.into_iter().chain(silence).min());
}

/// Whether the request's first byte has just come: the time to wait for a request is over.
fn note_first_byte(stream: &mut Stream<'_>) -> bool {
    if stream.txn.times.first_byte.is_some() {
        return false;
    }
    stream.txn.times.first_byte = Some(rt::now());
    stream.txn.times.request_date = Some(rt::wall());
    count_stream(stream);
    true
}

/// Lets the rules of a TCP stream see the request that its bytes begin with, if they do: they stay where they
/// are.
pub fn peek(stream: &mut Stream<'_>) {
    forget(stream);
    let limits = limits(stream);
    let relax = stream.frontend().options.unsafe_request;
    let bytes = stream.client.buf.as_ref().map(|b| b.filled()).unwrap_or_default();
    let txn = &mut *stream.txn;
    match parse_request(bytes, &mut txn.req, &limits, relax) {
        Ok(Parsed::Complete { .. }) => txn.peeked = true,
        Ok(Parsed::Partial) => txn.may_be_http = true,
        Err(_) => {}
    }
}

/// Ends what [`peek`] began.
pub fn forget(stream: &mut Stream<'_>) {
    (stream.txn.peeked, stream.txn.may_be_http) = (false, false);
    stream.txn.req.clear();
}

pub(super) fn limits(stream: &Stream<'_>) -> Limits {
    stream.worker.shared.program.global.head_limits()
}

fn parse(stream: &mut Stream<'_>) -> Result<Parsed, ParseError> {
    let limits = limits(stream);
    let relax = stream.frontend().options.unsafe_request;
    let Some(buf) = &stream.client.buf else { return Ok(Parsed::Partial) };
    let parsed = parse_request(buf.filled(), &mut stream.txn.req, &limits, relax)?;
    if let Parsed::Complete { consumed } = parsed {
        limits.admit(&stream.txn.req)?;
        wait::check_chunks(request_body(&stream.txn.req), buf.filled(), consumed, relax)?;
        if relax && let Some(e) = violation(buf.filled(), &limits, Kind::Request) {
            glitch(stream);
            capture(stream, &e);
        }
    }
    Ok(parsed)
}

/// The head of a stream came with it.
fn arrived(stream: &mut Stream<'_>, head: &Head, refused: Option<u16>) -> Read {
    match refused {
        None => {
            note_first_byte(stream);
        }
        Some(0) => {
            stream.txn.unread = true;
            stream.end(Cause::Proxy, Phase::Request);
            return Read::Nothing;
        }
        Some(status) => {
            stream.end(Cause::Proxy, Phase::Request);
            stream.txn.refused = true;
            stream.txn.up.received += head.counted_len() as u64;
            stream.txn.up.wire_in += head.wire_len() as u64;
            count_error(stream);
            count_request(stream);
            return Read::Bad(status);
        }
    }
    stream.txn.req.copy_from(head);
    let read = complete(stream, head.wire_len());
    // What came of the body together with the head is there for rules to look at, as with HTTP/1.
    if stream.http.request_body != Body::None
        && let Some(Ok(taken)) = stream.client.socket.raw().try_take()
    {
        stream.client.buf = taken;
    }
    read
}

fn complete(stream: &mut Stream<'_>, consumed: usize) -> Read {
    if let Some(buf) = &mut stream.client.buf {
        buf.consume(consumed);
    }
    stream.number();
    stream.client.look_early();
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let proxy_fields = stream.frontend().options.http_use_proxy_header;
    let txn = &mut *stream.txn;
    txn.has_req = true;
    txn.req.keep_scheme();
    txn.note_proxy(proxy_fields);
    txn.up.wire_in += consumed as u64;
    txn.times.request = Some(rt::now());
    let max = program.global.tune.logurilen;
    txn.line.edit().set(txn.req.method(), txn.req.target(), txn.req.version_read(), max);
    let front = program.configured(stream.client.front);
    txn.line_kept = front.log.keeps_request_line(front.options.logasap);
    stream.client.show_line(&txn.line);
    super::headers::note_request(stream);
    let upgraded = stream.txn.backend.is_some() || stream.filters.is_some();
    crate::filter::started(stream, upgraded);
    Read::Request
}

/// Counts a request, be it malformed; one that is cut off as TCP is none.
pub fn count_request(stream: &Stream<'_>) {
    let worker = &stream.worker;
    let front = &stream.frontend().state.front;
    let counters = front.counters.of(worker.index);
    // By what the request says: over HTTP/1, too.
    let major = if stream.client.part.is_some() { Some(&b'2') } else { stream.txn.req.version_read().get(5) };
    let counted = match major {
        Some(b'2') => Some(&counters.h2_requests),
        Some(b'3') => Some(&counters.h3_requests),
        Some(b'0') => Some(&counters.other_requests),
        _ => None,
    };
    // Versions that nobody knows yet are accepted, but HAProxy has no figure to count them in.
    if !matches!(major, Some(b'4'..=b'9')) {
        front.request_rate.add(rt::now().as_millis());
        counters.requests.inc();
        counted.into_iter().for_each(|counter| counter.inc());
    }
    stream.txn.counted.set(stream.txn.counted.get() + 1);
    worker.shared.program.world.process.counters.of(worker.index).requests.inc();
}

/// The client did something odd or wrong.
fn glitch(stream: &Stream<'_>) {
    let conn = stream.client.conn();
    conn.glitches.set(conn.glitches.get().saturating_add(1));
    crate::tracking::glitch(conn);
}

/// Whether the client has done so much that is odd that it gets no answer.
fn is_cut_off(stream: &Stream<'_>) -> bool {
    let tune = &stream.worker.shared.program.global.tune.glitches;
    glitches::kill(stream.client.conn().glitches.get(), tune.front, tune)
}

/// The connection ends as if the client had gone.
fn cut_off(stream: &mut Stream<'_>) -> Read {
    stream.end(Cause::ClientAbort, Phase::Request);
    count_error(stream);
    count_request(stream);
    Read::Nothing
}

fn bad(stream: &mut Stream<'_>, e: &ParseError) -> Read {
    glitch(stream);
    capture(stream, e);
    stream.end(Cause::Proxy, Phase::Request);
    count_error(stream);
    count_request(stream);
    Read::Bad(e.kind.status())
}

/// The body of a request is none that can be read.
pub fn bad_body(stream: &Stream<'_>) {
    glitch(stream);
    capture_body(stream);
    count_front_error(stream);
}

/// Keeps what should be chunks for `show errors`.
pub fn capture_body(stream: &Stream<'_>) {
    capture(stream, &ParseError { kind: ErrorKind::BadChunkSize, position: 0, state: State::ChunkSize });
}

fn capture(stream: &Stream<'_>, e: &ParseError) {
    let conn = stream.client.conn();
    let bytes = stream.client.buf.as_ref().map(|b| b.filled()).unwrap_or_default();
    stream.worker.keep_bad(Captured {
        response: false,
        date: rt::wall(),
        frontend: captured::Named::proxy(stream.frontend()),
        backend: stream.txn.backend.map(|_| captured::Named::proxy(&stream.backend())),
        server: None,
        src: conn.src.get(),
        session: conn.serial,
        position: e.position,
        state: e.state.as_str(),
        text: e.kind.as_str(),
        bytes: bytes[..bytes.len().min(captured::KEPT)].into(),
    });
}

/// Counts a request that is refused as malformed.
pub fn count_error(stream: &Stream<'_>) {
    crate::tracking::bad_request(stream.client.conn(), &stream.txn);
    count_front_error(stream);
}

pub fn count_front_error(stream: &Stream<'_>) {
    if let Some((front, listener)) = stream.front_counters() {
        front.req_errors.inc();
        listener.req_errors.inc();
    }
}

/// The client closed before its request was complete.
fn closed(stream: &mut Stream<'_>) -> Read {
    let silent = !stream.client.has_input();
    // A client that ends an idle connection does what it should.
    if silent && !stream.txn.first_request {
        stream.txn.silent = true;
        return Read::Nothing;
    }
    stream.end(Cause::ClientAbort, Phase::Request);
    if silent && stream.frontend().options.http_ignore_probes {
        stream.txn.silent = true;
        return Read::Nothing;
    }
    count_error(stream);
    count_request(stream);
    stream.txn.null = silent;
    Read::Bad(400)
}

fn failed(stream: &mut Stream<'_>, e: &io::Error) -> Read {
    let silent = !stream.client.has_input();
    match e.kind() {
        io::ErrorKind::TimedOut if silent && !stream.txn.first_request => closed(stream),
        io::ErrorKind::TimedOut => {
            stream.end(Cause::ClientTimeout, Phase::Request);
            if silent && stream.frontend().options.http_ignore_probes {
                stream.txn.silent = true;
                return Read::Nothing;
            }
            // To stick tables a client that is slow makes no error.
            crate::tracking::request(stream.client.conn(), &stream.txn);
            count_front_error(stream);
            count_request(stream);
            stream.txn.null = silent;
            Read::Bad(408)
        }
        io::ErrorKind::OutOfMemory => {
            glitch(stream);
            stream.end(Cause::Proxy, Phase::Request);
            count_error(stream);
            count_request(stream);
            // A full buffer: of a target alone, or of a whole head.
            let line = stream.client.buf.as_ref().is_some_and(|b| b.filled().contains(&b'\n'));
            Read::Bad(if line { 431 } else { 414 })
        }
        io::ErrorKind::ConnectionAborted => {
            stream.end(Cause::Killed, Phase::Request);
            Read::Nothing
        }
        _ => closed(stream),
    }
}
