//! The filters `comp-req`, `comp-res` and `compression`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use lang::action::{Exec, Flow};
use lang::compression::{Algorithm, Compression, Effective};
use lang::env::Side;
use lang::filter::{Broken, Data, Filter, Maker, Moment, Moments, Moved, Rewriter};
use lang::registry::FilterPlace;
use lang::{Fault, Words};
use model::compression::{CompressionCounters, PERIOD, PROCESS};
use wire::head::{Head, Known};
use wire::method::Method;

use crate::choice;
use crate::packer::{Recipe, Step};
use crate::pool::{self, Lent};

/// Reads a line behind the filter's name.
pub fn parse(
    name: &'static str,
    words: &mut Words<'_>,
    place: &FilterPlace<'_>,
) -> Result<Arc<dyn Maker>, Fault> {
    if let Some(word) = words.peek_str() {
        return Err(Fault::new(format!("'filter {name}' : unknown keyword '{word}'.")));
    }
    let direction = place.compression.filter(|_| place.http).and_then(|lines| lines.direction);
    // What `direction` leaves out is left out of filters that are for one direction, too.
    let (request, response) = match (name, direction) {
        ("comp-req", said) => (said.is_none_or(|d| d.requests), false),
        ("comp-res", said) => (false, said.is_none_or(|d| d.responses)),
        (_, Some(said)) => (said.requests, said.responses),
        (_, None) => (false, true),
    };
    Ok(Arc::new(Line { request, response }))
}

/// A line, compiled.
struct Line {
    request: bool,
    response: bool,
}

impl Maker for Line {
    fn begin(&self, _: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        (self.request || self.response).then(|| {
            Box::new(Compressing {
                request: self.request,
                response: self.response,
                accepted: None,
                up: None,
                down: None,
                chunked: false,
                counts: Rc::default(),
            }) as Box<dyn Filter>
        })
    }
}

/// Compression of one stream.
struct Compressing {
    request: bool,
    response: bool,
    /// What may be done with the response, as far as the request says.
    accepted: Option<Algorithm>,
    /// How the request is compressed.
    up: Option<Recipe>,
    /// The packer for the response, and how many bytes a second all may take.
    down: Option<(Lent, u32)>,
    /// The response came in chunks, of a server or a cache.
    chunked: bool,
    counts: Rc<Counts>,
}

/// What was compressed of a response.
#[derive(Default)]
struct Counts {
    began: Cell<bool>,
    /// The response was whole.
    whole: Cell<bool>,
    bypasses: Cell<bool>,
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
}

/// A packer's recipe by the settings of the moment.
fn recipe(algorithm: Algorithm) -> Recipe {
    let of = |setting: &std::sync::atomic::AtomicU32| i32::try_from(setting.load(Relaxed)).unwrap_or(1);
    let level = match algorithm {
        Algorithm::Identity => 0,
        Algorithm::Gzip | Algorithm::Deflate | Algorithm::RawDeflate => of(&PROCESS.level),
        Algorithm::Brotli => of(&PROCESS.brotli),
        Algorithm::Zstd => of(&PROCESS.zstd),
    };
    Recipe { algorithm, level, memory_level: of(&PROCESS.memory_level), window: of(&PROCESS.window) }
}

/// What holds in one direction of a stream whose backend is known: each setting is the backend's where it has
/// one, else the frontend's.
fn in_force<'a>(exec: &Exec<'a>, side: Side) -> Effective<'a> {
    let of = |lines: &'a Compression| if side == Side::Request { &lines.request } else { &lines.response };
    let [front, back] = exec.live.compression().map(|lines| lines.map(of));
    Effective::of(front, back)
}

/// `offload` holds if either proxy has it.
fn offloads(exec: &Exec<'_>) -> bool {
    exec.live.compression().into_iter().flatten().any(|lines| lines.offload)
}

/// Whether the process does so much already that no more is begun (`maxcomprate`, `maxcompcpuusage`).
fn is_busy(exec: &Exec<'_>) -> bool {
    let cpu = PROCESS.cpu.load(Relaxed);
    let rate = u64::from(exec.live.world().process.comp_rate_limit.load(Relaxed));
    rate > 0 && PROCESS.bytes_in.read(exec.live.now().as_millis(), PERIOD) >= rate
        || cpu < 100 && exec.live.cpu_usage() > cpu
}

/// Whether a body in chunks is there as a whole, and has fewer bytes than are worth it.
fn is_short(exec: &Exec<'_>, side: Side, least: u64) -> bool {
    let head = if side == Side::Request { &exec.txn.req } else { &exec.txn.res };
    let framed = side == Side::Response && exec.txn.decisions.framed;
    if least == 0 || !(framed || head.has(Known::TransferEncoding)) {
        return false;
    }
    let payload = exec.live.payload(side);
    payload.complete && (payload.data.len() as u64) < least
}

impl Compressing {
    /// The request's head has its final form, and its backend is known.
    fn request_head(&mut self, exec: &mut Exec<'_>) {
        if self.response {
            let found = choice::for_response(&exec.txn.req, in_force(exec, Side::Response));
            self.accepted = found.map(|(algorithm, _)| algorithm);
            // Where nothing can be agreed on the server may know better.
            if found.is_some_and(|(_, named)| named) && offloads(exec) {
                exec.txn.req.remove_all("accept-encoding");
            }
        }
        let settings = in_force(exec, Side::Request);
        let wanted = settings.algorithms.first().copied().filter(|_| self.request);
        if let Some(algorithm) = wanted
            && choice::fits_request(&exec.txn.req, settings)
            && !is_short(exec, Side::Request, settings.least)
            && !is_busy(exec)
        {
            self.up = Some(recipe(algorithm));
            mark(&mut exec.txn.req, algorithm);
        }
    }

    /// A response has come, and rules have yet to see it.
    fn response_came(&mut self, exec: &mut Exec<'_>) {
        let Some(algorithm) = self.accepted.filter(|_| exec.txn.decisions.compressed.is_none()) else {
            return;
        };
        let framed = exec.txn.decisions.framed;
        let of_service = exec.txn.by_service.is_some() && exec.txn.caching.hit.is_none();
        self.chunked = !of_service && !framed && exec.txn.res.has(Known::TransferEncoding);
        let settings = in_force(exec, Side::Response);
        // Who asked for a head gets none of a body, whatever a rule made of the method.
        let fits = exec.txn.first_method() != Method::Head
            && choice::fits_response(&exec.txn.req, &exec.txn.res, framed, settings);
        if !fits || is_busy(exec) {
            return;
        }
        if is_short(exec, Side::Response, settings.least) {
            return;
        }
        let limit = exec.live.world().process.comp_rate_limit.load(Relaxed);
        self.down = pool::take(recipe(algorithm)).map(|packer| (packer, limit));
        exec.txn.decisions.compressed = self.down.as_ref().map(|_| algorithm.name());
    }

    /// The response's head has its final form.
    fn response_head(&mut self, exec: &mut Exec<'_>) {
        let Some((packer, _)) = &self.down else { return };
        let algorithm = packer.recipe().algorithm;
        mark(&mut exec.txn.res, algorithm);
        self.counts.began.set(true);
        self.counts.bypasses.set(algorithm == Algorithm::Identity);
    }
}

/// Says in a head how the body is coded. An entity tag is a weak one from here on.
fn mark(head: &mut Head, algorithm: Algorithm) {
    head.remove_all(Known::ContentLength);
    if !head.has(Known::TransferEncoding) {
        let _ = head.append(b"transfer-encoding", b"chunked");
    }
    weaken(head);
    vary(head);
    if algorithm != Algorithm::Identity {
        let _ = head.append(b"content-encoding", algorithm.token().as_bytes());
    }
}

fn weaken(head: &mut Head) {
    let strong = head.all("etag").find(|(_, value)| !value.starts_with(b"W/"));
    let strong = strong.map(|(at, value)| (at, [b"W/", value].concat()));
    if let Some((at, tag)) = strong {
        let _ = head.replace_value(at, &tag);
    }
}

/// Says that the message depends on what its receiver accepts, in the field that says such things if there is
/// one.
fn vary(head: &mut Head) {
    if head.has_token("vary", b"accept-encoding") {
        return;
    }
    let there = head.all("vary").next_back().map(|(at, value)| (at, [value, b",Accept-Encoding"].concat()));
    let _ = match there {
        Some((at, value)) => head.replace_value(at, &value).map(|()| 0),
        None => head.append(b"vary", b"Accept-Encoding"),
    };
}

impl Filter for Compressing {
    fn moments(&self) -> Moments {
        let head = Moments::NONE.with(Moment::RequestHead);
        if self.response { head.with(Moment::Response).with(Moment::ResponseHead) } else { head }
    }

    fn meet(&mut self, moment: Moment, exec: &mut Exec<'_>) -> Flow {
        match moment {
            Moment::RequestHead => self.request_head(exec),
            Moment::Response => self.response_came(exec),
            Moment::ResponseHead => self.response_head(exec),
            _ => {}
        }
        Flow::Next
    }

    fn data(&mut self, side: Side) -> Option<Data> {
        let (packer, limit, counts) = match side {
            Side::Request => (pool::take(self.up?)?, 0, None),
            Side::Response => {
                let (packer, limit) = self.down.take()?;
                (packer, limit, Some(self.counts.clone()))
            }
        };
        let (level, marked) = (packer.recipe().level, self.chunked);
        Some(Data::Rewriter(Box::new(Packing { packer, limit, level, marked, counts })))
    }

    fn over(&mut self, exec: &mut Exec<'_>) {
        if !self.counts.began.get() {
            return;
        }
        let worker = exec.live.worker();
        let count = |to: &CompressionCounters| {
            // One that broke off is none.
            to.responses.add(self.counts.whole.get().into());
            if self.counts.bypasses.get() {
                to.bypassed.add(self.counts.bytes_in.get());
            } else {
                to.bytes_in.add(self.counts.bytes_in.get());
                to.bytes_out.add(self.counts.bytes_out.get());
            }
        };
        count(&exec.live.frontend().front.counters.of(worker).compression);
        if let Some(back) = exec.live.backend() {
            count(&back.back.counters.of(worker).compression);
        }
    }
}

/// A packer between the two sides of a direction.
struct Packing {
    packer: Lent,
    /// Bytes a second that all may take; 0: no limit.
    limit: u32,
    /// Its level of the moment.
    level: i32,
    /// The end of what comes counts as a byte, as it does for HAProxy where chunks or trailers tell it.
    marked: bool,
    /// What is counted; nothing of requests.
    counts: Option<Rc<Counts>>,
}

impl Packing {
    fn count(&self, taken: usize, made: usize) {
        let Some(counts) = &self.counts else { return };
        let (taken, made) = (taken as u64, made as u64);
        counts.bytes_in.set(counts.bytes_in.get() + taken);
        counts.bytes_out.set(counts.bytes_out.get() + made);
        if self.packer.recipe().algorithm == Algorithm::Identity {
            return;
        }
        let now = rt::now().as_millis();
        PROCESS.bytes_in.add(now, PERIOD, taken);
        PROCESS.bytes_out.add(now, PERIOD, made);
    }

    /// Packs less tightly where all together pack too much, and tighter again when they don't.
    fn adapt(&mut self) {
        if self.limit == 0 {
            return;
        }
        let over = PROCESS.bytes_in.read(rt::now().as_millis(), PERIOD) > u64::from(self.limit);
        let most = self.packer.recipe().level;
        let level = if over { self.level - 1 } else { self.level + 1 }.clamp(most.min(1), most);
        if level != self.level {
            self.level = level;
            self.packer.set_level(level);
        }
    }
}

impl Rewriter for Packing {
    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Poll<Result<Moved, Broken>> {
        let stepped = self.packer.step(payload, room, Step::Take)?;
        self.count(stepped.taken, stepped.made);
        Poll::Ready(Ok(Moved { taken: stepped.taken, made: stepped.made }))
    }

    fn poll_pause(&mut self, _: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        let stepped = self.packer.step(&[], room, Step::Flush)?;
        self.count(0, stepped.made);
        if stepped.done {
            self.adapt();
        }
        Poll::Ready(Ok((stepped.made, stepped.done)))
    }

    fn poll_end(&mut self, _: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        let stepped = self.packer.step(&[], room, Step::End)?;
        self.count(0, stepped.made);
        if stepped.done
            && let Some(counts) = &self.counts
            && !counts.whole.replace(true)
        {
            self.count(self.marked.into(), self.marked.into());
        }
        Poll::Ready(Ok((stepped.made, stepped.done)))
    }

    fn trailers(&mut self, trailers: &mut Head) {
        let bytes: usize = trailers.fields().map(|(_, name, value)| name.len() + value.len()).sum();
        self.count(bytes, bytes);
        self.marked = true;
    }
}
