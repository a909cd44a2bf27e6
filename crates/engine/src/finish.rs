//! The end of a stream: counters and the log line.

use std::sync::atomic::Ordering::Relaxed;

use model::Txn;
use model::proxy::status_class;
use program::proxy::Mode;
use rt::Mono;

use crate::pump::Half;
use crate::stream::Stream;

/// Counts what the stream did and logs it.
pub fn run(stream: &mut Stream<'_>) {
    let now = rt::now();
    stream.txn.times.ended = Some(now);
    // The upload's own figures, whatever part of it was made.
    stream.txn.up.received += stream.upload.received;
    stream.txn.up.sent += stream.upload.sent;
    stream.client.conn().idle_since.set(now);
    crate::h2::note(stream);
    crate::stick::stream_over(stream);
    if !stream.txn.silent {
        count(stream);
    }
    crate::filter::stopped(stream);
    stream.release();
    if crate::log::wanted(stream) {
        crate::log::write(stream);
    }
}

/// Counts what went to the client through pipes.
pub fn count_spliced(stream: &Stream<'_>, down: &Half) {
    if down.spliced > 0 {
        let counters = &stream.worker.shared.program.world.process.counters;
        counters.of(stream.worker.index).spliced_bytes_out.add(down.spliced);
    }
}

fn count(stream: &Stream<'_>) {
    let worker = stream.worker.index;
    let txn = &*stream.txn;
    let front = stream.frontend();
    let f = front.state.front.counters.of(worker);
    let (up, down) = (txn.up.received, txn.down.sent);
    f.bytes_in.add(up);
    f.bytes_out.add(down);
    let listener = front.binds[stream.client.conn().listener as usize].state.counters.of(worker);
    listener.bytes_in.add(up);
    listener.bytes_out.add(down);
    stream.worker.shared.program.world.process.counters.of(worker).bytes_out.add(down);
    // A stream of HTTP that ends without an answer counts as one with another status.
    let http = txn.status > 0 || txn.has_req || front.mode == Mode::Http;
    let class = http.then(|| status_class(txn.status));
    if let Some(c) = class {
        f.responses[c].inc();
    }
    // Until one is chosen, a proxy is its own backend for the bytes.
    let back = stream.backend();
    let b = back.state.back.counters.of(worker);
    b.bytes_in.add(up);
    b.bytes_out.add(down);
    if txn.backend.is_none() {
        return;
    }
    if txn.has_req {
        b.requests.inc();
    }
    if let Some(c) = class {
        b.responses[c].inc();
    }
    let Some(place) = &stream.place else { return };
    let state = &place.config().state;
    let s = state.counters.of(worker);
    s.bytes_in.add(up);
    s.bytes_out.add(down);
    let times = durations(txn);
    state.times.add(times);
    back.state.back.times.add(times);
    for (i, t) in times.iter().enumerate() {
        s.max_times[i].max(u64::from(*t));
        b.max_times[i].max(u64::from(*t));
    }
    state.last_session.store(rt::wall().as_secs(), Relaxed);
}

/// Counts a response at the server that it came from, interim ones included: what is answered in its place is none.
pub fn count_response(stream: &Stream<'_>, status: u16) {
    let Some(place) = &stream.place else { return };
    let counters = place.config().state.counters.of(stream.worker.index);
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
