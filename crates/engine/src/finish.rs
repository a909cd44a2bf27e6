//! The end of a stream: counters and the log line.

use std::task::Context;
use std::time::Duration;

use link::pump::Half;
use model::Txn;
use model::counter::Counter;
use model::proxy::{BackCounters, FrontCounters, status_class};
use model::txn::{Meanwhile, Traffic};
use program::proxy::Mode;
use rt::Mono;

use crate::points;
use crate::stream::Stream;
use model::term::Cause;
use model::trace::{self, level};

/// Counts what the stream did and logs it.
pub fn run(stream: &mut Stream<'_>) {
    let now = rt::now();
    stream.txn.times.ended = Some(now);
    crate::connect::settle_service(stream);
    count_upload(stream);
    count_piped(stream, stream.upload.spliced, |front, back| (&front.spliced_in, &back.spliced_out));
    stream.client.conn().idle_since.set(now);
    stream.note_streams();
    crate::tracking::stream_over(stream.client.conn(), &stream.txn);
    if !stream.txn.silent {
        count(stream);
    } else if stream.txn.has_req {
        count_wire(stream);
    }
    crate::filter::stopped(stream);
    over(stream);
    crate::debug::over(stream);
    // The line sees the others at the backend and the server; who was never meant for its backend counts
    // there himself, as in HAProxy.
    if !stream.http.misled {
        stream.release();
    }
    let mut logged = crate::log::wanted(stream);
    if logged {
        crate::log::write(stream);
    } else if stream.txn.silent && stream.txn.has_req {
        logged = crate::log::left_to_client(stream);
    }
    stream.parted = None;
    stream.release();
    count_end(stream, logged);
}

/// Counts what a copy did, for its backend and its server alone.
pub fn copy(stream: &mut Stream<'_>) {
    stream.txn.times.ended = Some(rt::now());
    count_upload(stream);
    stream.note_streams();
    let (worker, txn) = (stream.worker.index, &*stream.txn);
    count_wire(stream);
    stream.backend().state.back.counters.of(worker).bytes.add(&txn.up, &txn.down);
    if let Some(place) = &stream.place {
        place.config().state.counters.of(worker).bytes.add(&txn.up, &txn.down);
    }
    if txn.has_req {
        stream.backend().state.back.counters.of(worker).requests.inc();
        count_behind(stream, (txn.status > 0).then(|| status_class(txn.status)));
    }
    crate::filter::stopped(stream);
    stream.release();
}

/// Tells that a stream is over, and if it did not end well.
fn over(stream: &Stream<'_>) {
    let (at, events) = (&trace::STREAM, trace::stream::ERR);
    let well = matches!(stream.txn.term.cause, Cause::Normal | Cause::Local);
    if !well && !stream.txn.silent {
        points::stream(stream, at, events, level::ERROR, "stream did not end well");
    }
    if stream.txn.has_req {
        let events = (trace::h1::TX_END | trace::h1::STREAM_END, trace::h2::STREAM_END);
        points::message(stream, false, events, level::USER, "exchange is over");
    }
}

/// Enters the end of a request into the ledger of its frontend.
fn count_end(stream: &Stream<'_>, logged: bool) {
    let ends = &stream.frontend().state.front.counters.of(stream.worker.index).ends;
    match stream.txn.counted.get() {
        0 if logged => ends.strangers.inc(),
        0 => {}
        _ => ends.count(stream.txn.term.cause, logged),
    }
}

/// Adds the upload's own figures to the transaction's, whatever part of it was made.
fn count_upload(stream: &mut Stream<'_>) {
    let (upload, txn) = (&mut stream.upload, &mut *stream.txn);
    let up = &mut txn.up;
    up.wire_in += upload.received;
    up.wire_out += upload.sent;
    if txn.has_req {
        let extra = stream.client.part.as_ref().map_or(0, |part| part.receipt.extra.take());
        up.received += upload.counted(&mut stream.client.buf) + extra;
        up.sent += upload.counted_sent();
    } else {
        up.received += upload.received;
        up.sent += upload.sent;
    }
}

/// Counts what went to the client through pipes.
pub fn count_spliced(stream: &Stream<'_>, down: &Half) {
    count_piped(stream, down.spliced, |front, back| (&front.spliced_out, &back.spliced_in));
}

/// Counts what went through pipes in one direction: for the process, for the frontend, for the backend.
fn count_piped(
    stream: &Stream<'_>,
    bytes: u64,
    which: impl for<'c> FnOnce(&'c FrontCounters, &'c BackCounters) -> (&'c Counter, &'c Counter),
) {
    if bytes == 0 {
        return;
    }
    let worker = stream.worker.index;
    stream.worker.shared.program.world.process.counters.of(worker).spliced_bytes_out.add(bytes);
    let front = stream.frontend().state.front.counters.of(worker);
    let back = stream.backend();
    let (front, back) = which(front, back.state.back.counters.of(worker));
    front.add(bytes);
    back.add(bytes);
}

/// Counts bytes of HTTP/1: what a stream of HTTP/2 or FastCGI moves inside the worker is none of them.
fn count_wire(stream: &Stream<'_>) {
    let (worker, txn) = (stream.worker.index, &*stream.txn);
    if stream.client.part.is_none() {
        let front = stream.frontend().state.front.counters.of(worker);
        front.wire_in.add(txn.up.wire_in);
        front.wire_out.add(txn.down.wire_out);
    }
    if txn.server_conn.http_major < 2 && txn.server_conn.stream.id.is_none() {
        let back = stream.backend();
        let back = back.state.back.counters.of(worker);
        back.wire_in.add(txn.down.wire_in);
        back.wire_out.add(txn.up.wire_out);
    }
}

fn count(stream: &Stream<'_>) {
    let worker = stream.worker.index;
    let txn = &*stream.txn;
    let front = stream.frontend();
    let f = front.state.front.counters.of(worker);
    count_bytes(stream, txn.up, txn.down);
    count_wire(stream);
    stream.worker.shared.program.world.process.counters.of(worker).bytes_out.add(txn.down.wire_out);
    // A stream of HTTP that ends without an answer counts as one with another status, one of HTTP/2 that was
    // no request does not.
    let malformed = stream.client.part.is_some() && !txn.has_req;
    let http = txn.status > 0 || txn.has_req || (front.mode == Mode::Http && !malformed);
    // Nor does one whose only answer was an interim one.
    let hinted = txn.hinted && txn.status == 0;
    let http = http && !hinted;
    let class = http.then(|| status_class(txn.status));
    if let Some(c) = class {
        f.responses[c].inc();
    }
    if txn.backend.is_none() {
        return;
    }
    if txn.has_req && !hinted {
        stream.backend().state.back.counters.of(worker).requests.inc();
    }
    count_behind(stream, class);
}

/// Counts a response by its class, and what it took, for the backend and the server.
fn count_behind(stream: &Stream<'_>, class: Option<usize>) {
    let (worker, txn) = (stream.worker.index, &*stream.txn);
    let back = stream.backend();
    let b = back.state.back.counters.of(worker);
    if let Some(c) = class {
        b.responses[c].inc();
    }
    let Some(place) = &stream.place else { return };
    let state = &place.config().state;
    let s = state.counters.of(worker);
    // What a request of HTTP took that got no response says nothing of the server, as in HAProxy.
    let http = class.is_some() || txn.has_req;
    if !http || txn.times.response.is_some() {
        let times = durations(txn);
        state.times.add(times);
        back.state.back.times.add(times);
        for (i, t) in times.iter().enumerate() {
            s.max_times[i].max(u64::from(*t));
            b.max_times[i].max(u64::from(*t));
        }
    }
    if place.is_served() {
        state.touch(rt::wall());
    }
}

/// Enters the traffic of a transaction, but for what the counters hold of it already.
fn count_bytes(stream: &Stream<'_>, up: Traffic, down: Traffic) {
    let (up, down) = match &stream.txn.meanwhile {
        Some(held) => (up.beyond(&held.up), down.beyond(&held.down)),
        None => (up, down),
    };
    let worker = stream.worker.index;
    let front = stream.frontend();
    front.state.front.counters.of(worker).bytes.add(&up, &down);
    front.binds[stream.client.listener as usize].state.counters.of(worker).bytes.add(&up, &down);
    // Until one is chosen, a proxy is its own backend for the bytes.
    stream.backend().state.back.counters.of(worker).bytes.add(&up, &down);
    if let Some(place) = &stream.place {
        place.config().state.counters.of(worker).bytes.add(&up, &down);
    }
}

/// How often `option contstats` counts.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// `option contstats`: whether what has moved is to be counted now though nothing else came since: a stream
/// that falls silent is counted in time, too.
pub fn is_count_due(due: &mut Option<rt::Timer>, stream: &Stream<'_>, cx: &mut Context<'_>) -> bool {
    let last = stream.txn.meanwhile.as_ref().map_or_else(rt::now, |held| held.at);
    let timer = due.get_or_insert_with(rt::Timer::new);
    timer.set(Some(last + COUNT_EVERY));
    timer.poll_expired(cx).is_ready()
}

/// `option contstats`: enters what has moved so far into the counters, every few seconds while something
/// moves; whether it was time to. `down` is on its way to the client; what waits in buffers is counted later.
pub fn count_meanwhile(stream: &mut Stream<'_>, down: &Half) -> bool {
    let now = rt::now();
    if stream.txn.meanwhile.as_ref().is_some_and(|held| now < held.at + COUNT_EVERY) {
        return false;
    }
    let passed = |so_far: &Traffic, half: &Half| {
        let (received, sent) = match stream.txn.has_req {
            true => (half.counted_sent(), half.counted_sent()),
            false => (half.received, half.sent),
        };
        Traffic { received: so_far.received + received, sent: so_far.sent + sent, ..*so_far }
    };
    let (up, down) = (passed(&stream.txn.up, &stream.upload), passed(&stream.txn.down, down));
    count_bytes(stream, up, down);
    stream.txn.meanwhile = Some(Box::new(Meanwhile { up, down, at: now }));
    true
}

/// Counts a response at the server that it came from, interim ones included: what is answered in its place is
/// none.
pub fn count_response(stream: &Stream<'_>, status: u16) {
    let Some(place) = &stream.place else { return };
    let config = place.config();
    let counters = config.state.counters.of(stream.worker.index);
    counters.requests.inc();
    counters.responses[status_class(status)].inc();
}

/// Queue, connect, response and total time in ms.
fn durations(txn: &Txn) -> [u32; 4] {
    let t = &txn.times;
    let between = |from: Option<Mono>, to: Option<Mono>| match (from, to) {
        (Some(a), Some(b)) => u32::try_from(b.millis_since(a)).unwrap_or(u32::MAX),
        _ => 0,
    };
    let start = t.request.or(t.idle_from);
    [
        between(start, t.queued),
        between(t.queued, t.connected),
        between(t.connected, t.response),
        between(t.first_byte.or(t.idle_from), t.ended),
    ]
}
