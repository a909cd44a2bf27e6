//! A direction whose data pass filters that replace them: the payload is taken out of its framing, goes
//! through the chain, and is framed anew behind it.
//!
//! Every buffer on the way has its size, and what is full stops what comes before it: the receiver sets the
//! pace, as without filters. What came out is gathered as long as more is at hand, so that a short message
//! leaves together with its head; when nothing more is at hand the chain is told so, and nothing waits.

use std::fmt::Debug;
use std::rc::Rc;
use std::task::{Context, Poll};

use lang::filter::{Broken, Data};
use rt::Buf;

use super::{Break, End, Framing, Half, TURNS, send_both};
use crate::chain::{Chain, Source, Unchanged};
use crate::transport::Transport;

/// How a message that filters replace leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outer {
    /// As it comes: its length is known, or it ends with the connection.
    Plain,
    /// In chunks.
    Chunked,
}

/// What follows a body whose length its head declares: HTTP/1 has no place for it, so it comes beside the
/// body.
pub trait Behind: Debug {
    /// The lines of its fields with the empty one behind them, once they are known; without fields, nothing.
    fn poll_lines(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>>;
}

/// What a chunk needs besides its data: the line before it and the line end behind.
const CHUNK_FRAME: usize = 12;
/// Less room than this for data, and a chunk waits for more.
const LEAST_CHUNK: usize = 512;

/// The filters of a direction and what came out of them.
#[derive(Debug)]
pub(super) struct Rewritten {
    chain: Chain,
    outer: Outer,
    /// What goes to the receiver.
    wire: Option<Buf>,
    /// What stands behind the data and has yet to go into `wire`.
    tail: Vec<u8>,
    /// Fields behind the payload.
    trailers: Vec<u8>,
    /// Where such fields come from that come beside the body.
    behind: Option<Rc<dyn Behind>>,
    /// All data are in `wire` or went.
    closed: bool,
    /// Bytes of data that came out.
    went: u64,
}

impl From<Broken> for Break {
    fn from(_: Broken) -> Break {
        Break::Filtered
    }
}

impl Rewritten {
    pub(super) fn new(chain: Chain, outer: Outer) -> Rewritten {
        let chain = if chain.rewrites() { chain } else { chain.behind(Data::Rewriter(Box::new(Unchanged))) };
        let (tail, trailers) = (Vec::new(), Vec::new());
        Rewritten { chain, outer, wire: None, tail, trailers, behind: None, closed: false, went: 0 }
    }

    pub(super) fn into_chain(self) -> Chain {
        self.chain
    }

    /// Bytes of data that came out.
    pub(super) fn counted(&self) -> u64 {
        self.went
    }

    /// Whether everything is on its way or gone.
    pub(super) fn is_finished(&self) -> bool {
        self.closed && self.tail.is_empty() && self.wire.is_none()
    }

    /// Puts what came out into the form in which it leaves; whether that brought anything.
    fn compose(&mut self, cx: &mut Context<'_>) -> bool {
        let ends = !self.closed && self.chain.is_over() && self.is_followed(cx);
        let wire = self.wire.get_or_insert_default();
        if wire.spare() < wire.capacity() / 4 {
            wire.compact();
        }
        let ready = self.chain.ready(cx);
        let frame = if self.outer == Outer::Chunked { CHUNK_FRAME } else { 0 };
        let n = ready.len().min(wire.spare().saturating_sub(frame));
        if n > 0 && (n == ready.len() || n >= LEAST_CHUNK) {
            let piece = ready.get(..n).unwrap_or_default();
            if self.outer == Outer::Chunked {
                wire.push(chunk_line(n, &mut [0; 10]));
            }
            wire.push(piece);
            if self.outer == Outer::Chunked {
                wire.push(b"\r\n");
            }
            self.chain.went(n);
            self.went += n as u64;
            return true;
        }
        let mut moved = false;
        if ends {
            self.closed = true;
            self.chain.ended();
            if self.outer == Outer::Chunked {
                self.tail.extend_from_slice(b"0\r\n");
                let trailers = std::mem::take(&mut self.trailers);
                self.tail.extend_from_slice(if trailers.is_empty() { b"\r\n" } else { &trailers });
            }
            moved = true;
        }
        if !self.tail.is_empty() {
            let n = wire.push(&self.tail);
            self.tail.drain(..n);
            moved |= n > 0;
        }
        if wire.is_empty() {
            self.wire = None;
        }
        moved
    }

    /// Whether it is known what follows the payload.
    fn is_followed(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(behind) = &self.behind else { return true };
        let Poll::Ready(lines) = behind.poll_lines(cx) else { return false };
        self.behind = None;
        if !lines.is_empty() {
            self.trailers = self.chain.trailers(&lines);
        }
        true
    }

    /// Whether all data have come through and it waits for what follows them.
    fn awaits(&self) -> bool {
        self.behind.is_some() && self.chain.is_over()
    }

    /// Whether it can't take more before something of it has gone.
    fn is_full(&self) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.len() >= wire.capacity() / 4 * 3)
    }
}

/// The line before a chunk.
fn chunk_line(n: usize, line: &mut [u8; 10]) -> &[u8] {
    use std::io::Write;
    let mut rest = &mut line[..];
    // A buffer is shorter than 4 GB, so eight digits do.
    let _ = write!(rest, "{n:X}\r\n");
    let left = rest.len();
    line.get(..10 - left).unwrap_or_default()
}

impl Half {
    /// Has what comes beside a body of declared length leave behind the last chunk, where filters put the
    /// body into chunks.
    pub fn follow(&mut self, behind: Rc<dyn Behind>) {
        let declared = matches!(self.framing, Framing::Length(_)) && !self.bare;
        let rewritten = self.rewritten.as_mut().filter(|to| declared && to.outer == Outer::Chunked);
        if let Some(rewritten) = rewritten {
            rewritten.behind = Some(behind);
        }
    }

    /// Forgets what comes beside the body.
    pub(super) fn unfollow(&mut self) {
        if let Some(rewritten) = &mut self.rewritten {
            rewritten.behind = None;
        }
    }

    /// [`Half::poll`] where filters replace the data.
    pub(super) fn poll_rewritten(
        &mut self,
        cx: &mut Context<'_>,
        from: &Transport,
        buf: &mut Option<Buf>,
        stage: &mut Option<Buf>,
        to: &Transport,
    ) -> Poll<Result<End, Break>> {
        for _ in 0..TURNS {
            self.blocked = false;
            self.advance(cx, buf)?;
            let full = self.rewritten.as_ref().is_some_and(|rewritten| rewritten.is_full());
            if !full && !self.is_source_over() && !self.eof && !buf.as_ref().is_some_and(Buf::is_full) {
                match self.fill(cx, from, buf) {
                    Poll::Ready(filled) => {
                        filled?;
                        continue;
                    }
                    Poll::Pending => self.pause(cx, buf)?,
                }
            }
            if self.is_waiting() || stage.is_some() {
                match self.send_rewritten(cx, stage, to) {
                    Poll::Pending => {
                        self.blocked = true;
                        return Poll::Pending;
                    }
                    Poll::Ready(sent) => sent?,
                }
                continue;
            }
            if self.rewritten.as_ref().is_none_or(|rewritten| rewritten.is_finished()) {
                return Poll::Ready(Ok(if self.eof { End::Closed } else { End::Complete }));
            }
            if self.eof && !self.is_source_over() && buf.as_ref().is_none_or(Buf::is_empty) {
                // What came of it goes first.
                self.pause(cx, buf)?;
                if self.is_waiting() {
                    continue;
                }
                return Poll::Ready(Err(Break::Truncated));
            }
            let awaits = self.rewritten.as_ref().is_some_and(|rewritten| rewritten.awaits());
            if self.is_source_over() && !awaits || buf.as_ref().is_some_and(|buf| !buf.is_empty()) {
                // Filters hold it back; nobody is late meanwhile.
                self.moved = true;
            }
            return Poll::Pending;
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Whether the message has come whole.
    fn is_source_over(&self) -> bool {
        self.ended || self.eof && matches!(self.framing, Framing::Close)
    }

    /// Whether something is to be sent.
    fn is_waiting(&self) -> bool {
        self.rewritten.as_ref().is_some_and(|rewritten| rewritten.wire.is_some())
    }

    /// Moves what is there as far as it goes without the sockets.
    fn advance(&mut self, cx: &mut Context<'_>, buf: &mut Option<Buf>) -> Result<(), Break> {
        loop {
            let mut moved = self.feed(cx, buf)?;
            let source = if self.is_source_over() { Source::Over } else { Source::Open };
            let Some(rewritten) = &mut self.rewritten else { return Ok(()) };
            moved |= rewritten.chain.settle(cx, source)?;
            moved |= rewritten.compose(cx);
            if !moved {
                return Ok(());
            }
        }
    }

    /// Nothing more is at hand: what filters hold for company goes.
    fn pause(&mut self, cx: &mut Context<'_>, buf: &Option<Buf>) -> Result<(), Break> {
        if buf.as_ref().is_some_and(|buf| !buf.is_empty()) {
            return Ok(());
        }
        let Some(rewritten) = &mut self.rewritten else { return Ok(()) };
        while !rewritten.is_full() && rewritten.chain.settle(cx, Source::Paused)? {
            while rewritten.compose(cx) {}
        }
        Ok(())
    }

    /// Has the chain take payload from the buffer; whether anything of the message was taken.
    fn feed(&mut self, cx: &mut Context<'_>, buf: &mut Option<Buf>) -> Result<bool, Break> {
        let Some(b) = buf.as_mut().filter(|b| !b.is_empty() && !self.ended) else { return Ok(false) };
        let Some(rewritten) = &mut self.rewritten else { return Ok(false) };
        let taken = match &mut self.framing {
            Framing::Close => rewritten.chain.offer(cx, b.filled())?,
            Framing::Length(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(b.len());
                let taken = rewritten.chain.offer(cx, b.filled().get(..n).unwrap_or_default())?;
                *left -= taken as u64;
                self.ended = *left == 0;
                taken
            }
            Framing::Chunked(scanner) if scanner.chunk_left() > 0 => {
                let n = usize::try_from(scanner.chunk_left()).unwrap_or(usize::MAX).min(b.len());
                let taken = rewritten.chain.offer(cx, b.filled().get(..n).unwrap_or_default())?;
                scanner.skip(taken as u64);
                taken
            }
            Framing::Chunked(scanner) => {
                let (used, end) = scanner.frame(b.filled()).map_err(|_| Break::Malformed)?;
                self.ended = end;
                // Before the end the scanner still gathers them.
                let trailers = if end { scanner.take_trailers() } else { Vec::new() };
                if !trailers.is_empty() {
                    // Filters see those as well that don't go on.
                    let made = rewritten.chain.trailers(&trailers);
                    rewritten.trailers = if self.bare { Vec::new() } else { made };
                }
                used
            }
        };
        if let Some(buf) = buf {
            self.keep(buf.filled().get(..taken).unwrap_or_default());
            buf.consume(taken);
        }
        self.done += taken as u64;
        Ok(taken > 0)
    }

    fn send_rewritten(
        &mut self,
        cx: &mut Context<'_>,
        stage: &mut Option<Buf>,
        to: &Transport,
    ) -> Poll<Result<(), Break>> {
        let Some(rewritten) = &mut self.rewritten else { return Poll::Ready(Ok(())) };
        let head = stage.as_ref().map(Buf::filled).unwrap_or_default();
        let data = rewritten.wire.as_ref().map(Buf::filled).unwrap_or_default();
        let Poll::Ready(sent) = send_both(cx, to, head, data, false) else { return Poll::Pending };
        let n = sent.map_err(Break::Write)?;
        self.moved = true;
        self.sent += n as u64;
        let staged = n.min(head.len());
        take_off(stage, staged);
        take_off(&mut rewritten.wire, n - staged);
        Poll::Ready(Ok(()))
    }
}

/// Drops what was sent, and with the last byte the buffer.
fn take_off(buf: &mut Option<Buf>, n: usize) {
    if let Some(b) = buf {
        b.consume(n);
        if b.is_empty() {
            *buf = None;
        }
    }
}
