//! The filters of one direction ([`lang::filter`]): gates that see the data and may hold them back, and
//! rewriters that replace them.
//!
//! Each filter sees only what those before it let pass. Without a rewriter the data stay where they are: the
//! pump asks how much may go and tells what went. Each rewriter has a buffer of its own for what comes out of
//! it, which is all that it can fill: who is behind it sets the pace. A direction without filters has no
//! chain and pays for none; what a chain sees goes through buffers, never through a pipe.

use std::task::{Context, Poll};
use std::time::Duration;

use lang::filter::{Broken, Data, Gate, Rewriter};
use rt::{Buf, Timer};
use wire::head::Head;
use wire::http1::split_trailers;

/// The filters of one direction, in order.
pub struct Chain {
    stages: Vec<Stage>,
    /// Gates behind the last rewriter.
    tail: Gates,
}

/// A rewriter with the gates before it.
struct Stage {
    gates: Gates,
    rewriter: Box<dyn Rewriter>,
    /// What came out of it and has not gone on.
    out: Option<Buf>,
    /// It may hold something back.
    holds: bool,
    /// It has given its last byte.
    over: bool,
}

/// Gates in a row.
struct Gates {
    list: Vec<Box<dyn Gate>>,
    timer: Timer,
}

/// Who waits longer than this looks again: the other side may be gone.
const LONGEST: u64 = 500;

/// What is known of the payload that goes into a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// More may come.
    Open,
    /// More may come, but nothing is at hand now.
    Paused,
    /// Nothing more will come.
    Over,
}

impl Gates {
    fn new() -> Gates {
        Gates { list: Vec::new(), timer: Timer::new() }
    }

    /// How many of the bytes at hand may go now. With 0 the task is woken when more may.
    ///
    /// With nothing at hand nobody is asked.
    fn admit(&mut self, cx: &mut Context<'_>, ready: usize) -> usize {
        if self.list.is_empty() || ready == 0 {
            return ready;
        }
        let now = rt::now();
        let mut left = ready;
        for gate in &mut self.list {
            match gate.admit(now.as_millis(), left) {
                Ok(n) if n > 0 => left = left.min(n),
                Ok(_) => return self.wait(cx, now, 1),
                Err(wait) => return self.wait(cx, now, wait),
            }
        }
        left
    }

    fn wait(&mut self, cx: &mut Context<'_>, now: rt::Mono, millis: u64) -> usize {
        self.timer.set(Some(now + Duration::from_millis(millis.clamp(1, LONGEST))));
        if self.timer.poll_expired(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        0
    }

    fn passed(&mut self, bytes: &[u8]) {
        if self.list.is_empty() || bytes.is_empty() {
            return;
        }
        let now = rt::now().as_millis();
        self.list.iter_mut().for_each(|gate| gate.passed(now, bytes));
    }

    fn ended(&mut self) {
        self.list.iter_mut().for_each(|gate| gate.ended());
    }
}

impl Stage {
    /// Offers it payload; how much of it was taken.
    fn offer(&mut self, cx: &mut Context<'_>, payload: &[u8]) -> Result<usize, Broken> {
        if !has_room(&mut self.out) {
            return Ok(0);
        }
        let ready = self.gates.admit(cx, payload.len());
        let payload = payload.get(..ready).filter(|p| !p.is_empty());
        let Some(payload) = payload else { return Ok(0) };
        let out = self.out.get_or_insert_default();
        let Poll::Ready(moved) = self.rewriter.poll_data(cx, payload, out.spare_mut()) else { return Ok(0) };
        let moved = moved?;
        out.advance(moved.made.min(out.spare()));
        let taken = moved.taken.min(payload.len());
        self.holds |= taken > 0;
        self.gates.passed(payload.get(..taken).unwrap_or_default());
        Ok(taken)
    }

    /// Has it give what it holds, for now or for good; whether that brought it further.
    fn squeeze(&mut self, cx: &mut Context<'_>, source: Source) -> Result<bool, Broken> {
        let due = match source {
            Source::Open => false,
            // Nobody waits for what is held while there is something else for him.
            Source::Paused => self.holds && self.out.as_ref().is_none_or(Buf::is_empty),
            Source::Over => !self.over,
        };
        if !due || !has_room(&mut self.out) {
            return Ok(false);
        }
        let out = self.out.get_or_insert_default();
        let polled = match source {
            Source::Over => self.rewriter.poll_end(cx, out.spare_mut()),
            _ => self.rewriter.poll_pause(cx, out.spare_mut()),
        };
        let Poll::Ready(given) = polled else { return Ok(false) };
        let (made, all) = given?;
        out.advance(made.min(out.spare()));
        if all {
            self.holds = false;
            if source == Source::Over {
                self.over = true;
                self.gates.ended();
            }
        }
        Ok(made > 0 || all)
    }
}

/// Makes room in what comes out; whether it is enough.
fn has_room(out: &mut Option<Buf>) -> bool {
    let Some(buf) = out else { return true };
    if buf.is_empty() {
        buf.clear();
    } else if buf.spare() < buf.capacity() / 2 {
        buf.compact();
    }
    buf.spare() >= buf.capacity() / 2
}

impl Chain {
    /// A chain of these filters.
    pub fn new(filters: Vec<Data>) -> Chain {
        let (mut stages, mut gates) = (Vec::new(), Gates::new());
        for filter in filters {
            match filter {
                Data::Gate(gate) => gates.list.push(gate),
                Data::Rewriter(rewriter) => {
                    let gates = std::mem::replace(&mut gates, Gates::new());
                    stages.push(Stage { gates, rewriter, out: None, holds: false, over: false });
                }
            }
        }
        Chain { stages, tail: gates }
    }

    /// The same behind one more filter.
    #[must_use]
    pub fn behind(self, first: Data) -> Chain {
        let mut chain = Chain::new(vec![first]);
        chain.stages.extend(self.stages);
        chain.tail.list.extend(self.tail.list);
        chain
    }

    /// Whether something in it replaces data.
    pub fn rewrites(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Whether as much comes out as goes in.
    pub fn keeps_length(&self) -> bool {
        self.stages.iter().all(|stage| stage.rewriter.keeps_length())
    }

    /// How many bytes come out, where the last rewriter to change that knows it.
    pub fn length(&self) -> Option<u64> {
        let last = self.stages.iter().rev().find(|stage| !stage.rewriter.keeps_length());
        last.and_then(|stage| stage.rewriter.length())
    }

    /// The gates alone, for what goes on as a tunnel.
    pub fn without_rewriters(self) -> Option<Chain> {
        let mut tail = Gates::new();
        for stage in self.stages {
            tail.list.extend(stage.gates.list);
        }
        tail.list.extend(self.tail.list);
        (!tail.list.is_empty()).then(|| Chain { stages: Vec::new(), tail })
    }

    /// How many of the bytes at hand may go now, where nothing replaces them. With 0 the task is woken when
    /// more may.
    pub fn admit(&mut self, cx: &mut Context<'_>, ready: usize) -> usize {
        self.tail.admit(cx, ready)
    }

    /// Tells all gates what went, where nothing replaces it.
    pub fn passed(&mut self, bytes: &[u8]) {
        self.tail.passed(bytes);
    }

    /// Tells the gates behind the last rewriter that everything went.
    pub fn ended(&mut self) {
        self.tail.ended();
    }

    /// Offers payload to the first rewriter; how much it took. 0: it takes more when what came out of it has
    /// gone on, or wakes the task.
    ///
    /// # Errors
    /// It can't go on.
    pub fn offer(&mut self, cx: &mut Context<'_>, payload: &[u8]) -> Result<usize, Broken> {
        match self.stages.first_mut() {
            Some(first) => first.offer(cx, payload),
            None => Ok(0),
        }
    }

    /// Moves what is on its way from one rewriter to the next; whether anything moved.
    ///
    /// # Errors
    /// One of them can't go on.
    pub fn settle(&mut self, cx: &mut Context<'_>, source: Source) -> Result<bool, Broken> {
        let (mut moved, mut source) = (false, source);
        for at in 0..self.stages.len() {
            let (before, from) = self.stages.split_at_mut(at);
            let Some(stage) = from.first_mut() else { break };
            if let Some(last) = before.last_mut() {
                if let Some(buf) = last.out.as_mut().filter(|buf| !buf.is_empty()) {
                    let taken = stage.offer(cx, buf.filled())?;
                    buf.consume(taken);
                    moved |= taken > 0;
                }
                source = match (last.out.as_ref().is_none_or(Buf::is_empty), last.over) {
                    (false, _) => Source::Open,
                    (true, true) => Source::Over,
                    (true, false) if source == Source::Over => Source::Open,
                    (true, false) => source,
                };
            }
            moved |= stage.squeeze(cx, source)?;
        }
        Ok(moved)
    }

    /// Passes payload that is at hand as a whole; what comes out is appended. `source`: what comes behind it.
    ///
    /// # Errors
    /// A rewriter can't go on.
    pub fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        payload: &mut &[u8],
        source: Source,
        out: &mut Vec<u8>,
    ) -> Poll<Result<(), Broken>> {
        if self.stages.is_empty() {
            return self.poll_gates(cx, payload, source, out).map(Ok);
        }
        loop {
            let mut moved = false;
            if !payload.is_empty() {
                let taken = self.offer(cx, payload)?;
                *payload = payload.get(taken..).unwrap_or_default();
                moved = taken > 0;
            }
            moved |= self.settle(cx, if payload.is_empty() { source } else { Source::Open })?;
            let ready = self.ready(cx);
            if !ready.is_empty() {
                let n = ready.len();
                out.extend_from_slice(ready);
                self.went(n);
                moved = true;
            }
            if !moved {
                let over = payload.is_empty() && (source != Source::Over || self.is_over());
                return if over { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
        }
    }

    /// The same where nothing replaces what passes.
    fn poll_gates(
        &mut self,
        cx: &mut Context<'_>,
        payload: &mut &[u8],
        source: Source,
        out: &mut Vec<u8>,
    ) -> Poll<()> {
        while !payload.is_empty() {
            let (now, later) = payload.split_at(self.tail.admit(cx, payload.len()).min(payload.len()));
            if now.is_empty() {
                return Poll::Pending;
            }
            out.extend_from_slice(now);
            self.tail.passed(now);
            *payload = later;
        }
        if source == Source::Over {
            self.tail.ended();
        }
        Poll::Ready(())
    }

    /// What came out at the end and may go now. With nothing the task is woken when more may.
    pub fn ready(&mut self, cx: &mut Context<'_>) -> &[u8] {
        let Some(last) = self.stages.last_mut() else { return &[] };
        last.out.take_if(|buf| buf.is_empty());
        let Some(buf) = last.out.as_ref() else { return &[] };
        let n = self.tail.admit(cx, buf.len());
        buf.filled().get(..n).unwrap_or_default()
    }

    /// So much of what came out has gone.
    pub fn went(&mut self, n: usize) {
        if let Some(buf) = self.stages.last_mut().and_then(|last| last.out.as_mut()) {
            self.tail.passed(buf.filled().get(..n).unwrap_or_default());
            buf.consume(n);
        }
    }

    /// Whether everything came out and has gone.
    pub fn is_over(&self) -> bool {
        self.stages.last().is_none_or(|last| last.over && last.out.as_ref().is_none_or(Buf::is_empty))
    }

    /// Shows the fields behind the payload to all filters: what they make of them, with the end behind it.
    #[cold]
    pub fn trailers(&mut self, bytes: &[u8]) -> Vec<u8> {
        let trailers = &mut Head::response();
        split_trailers(bytes, trailers);
        for stage in &mut self.stages {
            stage.gates.list.iter_mut().for_each(|gate| gate.trailers(trailers));
            stage.rewriter.trailers(trailers);
        }
        self.tail.list.iter_mut().for_each(|gate| gate.trailers(trailers));
        trailers.trailer_lines()
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain({} rewriters)", self.stages.len())
    }
}

/// Passes payload on as it is: what stands between chunks taken apart and chunks made anew where no other
/// filter replaces anything.
#[derive(Debug)]
pub struct Unchanged;

impl Rewriter for Unchanged {
    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Poll<Result<lang::filter::Moved, Broken>> {
        let n = payload.len().min(room.len());
        if let (Some(from), Some(to)) = (payload.get(..n), room.get_mut(..n)) {
            to.copy_from_slice(from);
        }
        Poll::Ready(Ok(lang::filter::Moved { taken: n, made: n }))
    }

    fn keeps_length(&self) -> bool {
        true
    }
}
