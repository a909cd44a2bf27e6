//! The filters of a stream (manual, chapter 9): which there are, and what the data of each direction pass
//! through. Those of [`lang::filter`] are attached to their stream; bandwidth limits (section 9.7), which
//! rules turn on, and `trace` (9.1) only look at data.

mod keep;
mod limit;
mod trace;

use lang::env::Side;
use lang::filter::{Data, Gate};
use link::chain::{Chain, Source};
use link::pump::Outer;
use wire::head::{Head, Known};
use wire::http1::Body;
use wire::method::Version;

use crate::stream::Stream;

pub use trace::headers;

/// A stream begins: the filters of its frontend are attached. Once a stream of TCP turns to HTTP it has them
/// already.
pub fn started(stream: &mut Stream<'_>, upgraded: bool) {
    if !upgraded && !stream.frontend().filters.is_empty() {
        attach(stream, stream.client.front, false);
    }
    trace::started(stream);
}

/// The backend is chosen: its filters are attached.
pub fn sent_to(stream: &mut Stream<'_>, backend: u32) {
    if backend != stream.client.front {
        attach(stream, backend, true);
    }
}

fn attach(stream: &mut Stream<'_>, proxy: u32, back: bool) {
    let worker = stream.worker.clone();
    for line in &worker.shared.program.proxy(proxy).filters {
        if let Some(filter) = stream.with_exec(Side::Request, false, None, |exec| line.maker.begin(exec)) {
            stream.filters.get_or_insert_default().attach(line.order, back, filter);
        }
    }
}

/// A stream is over.
pub fn stopped(stream: &mut Stream<'_>) {
    if let Some(mut filters) = stream.filters.take() {
        stream.with_exec(Side::Response, true, None, |exec| filters.over(exec));
    }
    trace::stopped(stream);
}

/// The gates of one direction as rules and `filter trace` want them.
fn gates(stream: &mut Stream<'_>, side: Side) -> Vec<(u32, Data)> {
    let traced = trace::is_traced(stream);
    let kept = stream.txn.caching.storing.take_if(|_| side == Side::Response);
    let upload = side == Side::Request;
    let copied = upload && !stream.tees.is_empty();
    if stream.txn.bandwidth.is_empty() && !traced && kept.is_none() && !copied {
        return Vec::new();
    }
    let mut gates: Vec<(u32, Box<dyn Gate>)> = trace::filters(stream, side);
    // What is kept is what the server sent: filters see it again when it answers.
    gates.extend(kept.map(|kept| (0, Box::new(keep::Keep::new(kept)) as Box<dyn Gate>)));
    if copied {
        // A copy is of what the client sent, as its head is.
        gates.extend(std::mem::take(&mut stream.tees).into_iter().map(|tee| (0, tee)));
    }
    let mut rest = Vec::new();
    for limit in std::mem::take(&mut stream.txn.bandwidth) {
        match limit.upload == upload {
            true => gates.push((limit.order, Box::new(limit::Limit::new(limit)))),
            false => rest.push(limit),
        }
    }
    stream.txn.bandwidth = rest;
    gates.into_iter().map(|(order, gate)| (order, Data::Gate(gate))).collect()
}

fn in_order(mut all: Vec<(u32, Data)>) -> Option<Box<Chain>> {
    all.sort_by_key(|(order, _)| *order);
    (!all.is_empty()).then(|| Box::new(Chain::new(all.into_iter().map(|(_, data)| data).collect())))
}

/// What a direction without a message of its own passes through: a tunnel, or what is left of a request when
/// the response has come. Nothing is replaced there.
pub fn late(stream: &mut Stream<'_>, side: Side) -> Option<Box<Chain>> {
    in_order(gates(stream, side))
}

/// What a direction of TCP passes through.
pub fn of_tcp(stream: &mut Stream<'_>, side: Side) -> Option<(Box<Chain>, Outer)> {
    Some((all(stream, side)?, Outer::Plain))
}

fn all(stream: &mut Stream<'_>, side: Side) -> Option<Box<Chain>> {
    let mut all = gates(stream, side);
    if let Some(filters) = &mut stream.filters {
        all.extend(filters.data(side));
    }
    in_order(all)
}

/// What the body of the request passes through on its way to the server; the head says how it is framed then.
pub fn prepare_request(stream: &mut Stream<'_>) {
    if matches!(stream.http.request_body, Body::None | Body::Length(0)) || stream.upload.is_filtered() {
        return;
    }
    let Some(chain) = all(stream, Side::Request) else { return };
    let length = chain.length();
    let changed = chain.rewrites() && !chain.keeps_length() && length.is_none();
    let outer = match stream.http.request_body {
        _ if length.is_some() => Outer::Plain,
        _ if changed => Outer::Chunked,
        Body::Chunked => Outer::Chunked,
        _ => Outer::Plain,
    };
    if let Some(length) = length {
        say_length(&mut stream.txn.req, length);
    }
    if changed {
        let req = &mut stream.txn.req;
        req.remove_all(Known::ContentLength);
        if !req.has(Known::TransferEncoding) {
            let _ = req.append(b"transfer-encoding", b"chunked");
        }
        // Chunks need it; what a client of HTTP/1.0 is answered depends on its own version.
        if req.version() < Version::HTTP_11 {
            req.set_version(Version::HTTP_11);
        }
    }
    stream.upload.pass_through(chain, outer);
    if let Some(trailers) =
        stream.client.part.as_ref().and_then(|part| part.receipt.request_trailers.borrow().clone())
    {
        stream.upload.follow(trailers);
    }
}

/// A filter knows how long the message is.
fn say_length(head: &mut Head, length: u64) {
    head.remove_all(Known::TransferEncoding);
    head.remove_all(Known::ContentLength);
    let _ = head.append(b"content-length", base::text::int(length, &mut [0; base::text::INT_MAX]));
}

/// What the body of the response passes through on its way to the client; the head says how it is framed
/// then. Whether it ends with the connection.
pub fn prepare_response(stream: &mut Stream<'_>) -> bool {
    let body = stream.http.response_body;
    let closes = body == Body::UntilClose;
    if let Some(storing) = &mut stream.txn.caching.storing {
        storing.kept.framing = body;
    }
    if matches!(body, Body::None | Body::Length(0)) {
        if let Some(storing) = stream.txn.caching.storing.take() {
            keep::finish(*storing);
        }
        return closes;
    }
    let plain = takes_no_chunks(stream);
    if plain {
        stream.txn.res.remove_all(Known::TransferEncoding);
    }
    let chain = all(stream, Side::Response).or_else(|| plain.then(|| Box::new(Chain::new(Vec::new()))));
    let Some(chain) = chain else { return closes };
    if let Some(length) = chain.length() {
        say_length(&mut stream.txn.res, length);
        stream.down_chain = Some((chain, Outer::Plain));
        return false;
    }
    if !chain.rewrites() || chain.keeps_length() {
        let outer = if body == Body::Chunked && !plain { Outer::Chunked } else { Outer::Plain };
        stream.down_chain = Some((chain, outer));
        return closes || plain;
    }
    let chunks = stream.txn.req.version() >= Version::HTTP_11;
    let res = &mut stream.txn.res;
    res.remove_all(Known::ContentLength);
    if !chunks {
        res.remove_all(Known::TransferEncoding);
    } else if !res.has(Known::TransferEncoding) {
        let _ = res.append(b"transfer-encoding", b"chunked");
    }
    stream.down_chain = Some((chain, if chunks { Outer::Chunked } else { Outer::Plain }));
    !chunks
}

/// Whether the chunks are those that a connection of FastCGI made, and the client speaks HTTP/1.0: it gets
/// the body as it is, which ends with its connection.
fn takes_no_chunks(stream: &Stream<'_>) -> bool {
    stream.txn.req.version() < Version::HTTP_11
        && stream.http.response_body == Body::Chunked
        && stream.upstream.as_ref().and_then(|up| up.call.as_ref()).is_some_and(mux::Call::speaks_fcgi)
}

/// Passes what is at hand of a local answer through a chain. A filter that fails makes it end there.
pub async fn pass(chain: &mut Chain, mut payload: &[u8], source: Source) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = std::future::poll_fn(|cx| chain.poll_pass(cx, &mut payload, source, &mut out)).await;
    out
}
