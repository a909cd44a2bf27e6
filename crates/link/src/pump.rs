//! Moving the bytes of one direction: TCP both ways, request bodies, response bodies. The protocol is a
//! parameter ([`Framing`]); the pump knows when a message ends, never what it means.

use std::io;
use std::task::{Context, Poll};

use rt::{Buf, Pipe};
use wire::http1::{Body, Scanner};

use crate::chain::Chain;
use crate::transport::Transport;

mod fill;
mod pipe;
mod rewritten;

pub use rewritten::{Behind, Outer};

/// Turns of read and write before other tasks get theirs.
const TURNS: u32 = 16;

/// Where the message in a direction ends.
#[derive(Debug)]
pub enum Framing {
    /// After so many more bytes.
    Length(u64),
    /// Where the chunks say.
    Chunked(Scanner),
    /// At the end of the stream.
    Close,
}

impl Framing {
    /// That of a body; `relax`: the option that lets violations of its message pass is set.
    pub fn of(body: Body, relax: bool) -> Framing {
        match body {
            Body::None => Framing::Length(0),
            Body::Length(length) => Framing::Length(length),
            Body::Chunked => Framing::Chunked(Scanner::new(relax)),
            Body::UntilClose => Framing::Close,
        }
    }
}

/// One direction.
#[derive(Debug)]
pub struct Half {
    /// Where the message ends.
    pub framing: Framing,
    /// The sender has closed.
    pub eof: bool,
    /// Bytes received in this direction by the pump, as they were on the wire.
    pub received: u64,
    /// What was received before the pump has been counted, too.
    pub begun: bool,
    /// It comes from a stream of HTTP/2, whose end counts for nothing.
    pub multiplexed: bool,
    /// Bytes of the message that are no longer in the buffer or a pipe.
    done: u64,
    /// Bytes passed on, a staged head included, as they were on the wire.
    pub sent: u64,
    /// Something moved since this was last cleared: timeouts start anew.
    pub moved: bool,
    /// The last poll ended waiting for the receiver to take more.
    pub blocked: bool,
    /// Bytes of the buffer that belong to the message and were looked at by the scanner.
    scanned: usize,
    ended: bool,
    /// Trailers, put in order, that go out behind what the buffer holds of the message.
    trailers: Vec<u8>,
    /// The receiver must not see trailers.
    bare: bool,
    /// Bytes may go through a pipe inside the kernel instead of through the buffer.
    pub splice: bool,
    /// Streams of unknown length may go through pipes once they turn out to be long.
    pub bulk_pipes: bool,
    /// Nothing is held back for company (`option http-no-delay`).
    pub prompt: bool,
    /// The receiver is told the end of the stream with the end of the message: in the same segment if that
    /// can be, so that it has to wake up once.
    pub closes: bool,
    /// Reads in a row that filled the whole room.
    full_reads: u8,
    /// The receiver must not see the message: its bytes are dropped.
    pub discard: bool,
    /// Of the bytes passed on, those that went through a pipe.
    pub spliced: u64,
    pipe: Option<Pipe>,
    /// What was passed on, for another attempt (`retry-on`); `None` if that isn't wanted, or it was too much.
    pub kept: Option<Vec<u8>>,
    /// Gates that the data pass where they are.
    gates: Option<Box<Chain>>,
    /// What takes the payload out of its framing and gives filters their turn.
    rewritten: Option<Box<rewritten::Rewritten>>,
}

/// Sends a staged head and what is there of a body, as far as they go. `more`: bytes follow at once.
fn send_both(
    cx: &mut Context<'_>,
    to: &Transport,
    head: &[u8],
    body: &[u8],
    more: bool,
) -> Poll<io::Result<usize>> {
    match (head.is_empty(), body.is_empty()) {
        (true, _) => to.poll_send(cx, body, more),
        (false, true) => to.poll_send(cx, head, more),
        (false, false) => to.poll_send_pair(cx, head, body, more),
    }
}

/// So many full reads in a row make a stream a long one.
const BULK: u8 = 4;
/// Filling or emptying a pipe moves as much as so many turns with a buffer.
const PIPE_TURNS: u32 = 8;

/// How a direction came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The message is complete and passed on.
    Complete,
    /// The stream ended, which is the end of the message, and everything is passed on.
    Closed,
}

/// Why a direction broke.
#[derive(Debug)]
pub enum Break {
    /// Receiving failed.
    Read(io::Error),
    /// Sending failed.
    Write(io::Error),
    /// The stream ended inside the message.
    Truncated,
    /// The chunks are malformed.
    Malformed,
    /// A filter could not go on.
    Filtered,
}

impl Half {
    /// A direction at its start.
    pub fn new(framing: Framing) -> Half {
        let ended = matches!(framing, Framing::Length(0));
        Half {
            framing,
            eof: false,
            received: 0,
            begun: false,
            multiplexed: false,
            done: 0,
            sent: 0,
            moved: false,
            blocked: false,
            scanned: 0,
            ended,
            trailers: Vec::new(),
            bare: false,
            splice: false,
            bulk_pipes: false,
            prompt: false,
            closes: false,
            full_reads: 0,
            discard: false,
            spliced: 0,
            pipe: None,
            kept: None,
            gates: None,
            rewritten: None,
        }
    }

    /// Whether the message has been received whole.
    pub fn is_received(&self) -> bool {
        self.ended
    }

    /// Whether what was sent gives its receiver more time to speak: not with `option independent-streams`,
    /// unless it has yet to take what waits for it.
    pub fn prolongs(&self, independent: bool) -> bool {
        !independent || self.blocked
    }

    /// Bytes of the message that were received, as logs and statistics count them: data, and of chunks the
    /// trailers and one byte for the end. What waits in `buf` is among them, what lies there behind the
    /// message is not.
    pub fn counted(&mut self, buf: &mut Option<Buf>) -> u64 {
        let waiting = buf.as_ref().map_or(0, Buf::len) as u64;
        let piped = self.pipe.as_ref().map_or(0, |pipe| pipe.len() as u64);
        match self.framing {
            Framing::Length(left) => self.done + left.min(waiting + piped),
            Framing::Close => self.done + waiting + piped,
            Framing::Chunked(_) => {
                // What is malformed from here on counts for nothing.
                let _ = self.scan(buf);
                self.content()
            }
        }
    }

    /// Whether the message has come whole and `waiting` bytes, all that a buffer holds, are the rest of it.
    pub fn is_whole(&self, waiting: usize) -> bool {
        match self.framing {
            Framing::Length(left) => left == waiting as u64,
            Framing::Chunked(_) => self.ended && self.scanned == waiting,
            Framing::Close => false,
        }
    }

    /// Bytes of the message that went on, counted as in [`Half::counted`].
    pub fn counted_sent(&self) -> u64 {
        if let Some(rewritten) = &self.rewritten {
            return rewritten.counted() + if rewritten.is_finished() { self.behind() } else { 0 };
        }
        match self.framing {
            _ if self.discard => 0,
            Framing::Length(_) | Framing::Close => self.done,
            Framing::Chunked(_) => self.content().saturating_sub(self.scanned as u64),
        }
    }

    /// What the chunks so far count for.
    fn content(&self) -> u64 {
        let Framing::Chunked(scanner) = &self.framing else { return 0 };
        scanner.content() + self.behind()
    }

    /// What stands behind the data of chunks counts for: the trailers, and one byte for the end.
    fn behind(&self) -> u64 {
        let Framing::Chunked(scanner) = &self.framing else { return 0 };
        let trailing = scanner.trailing();
        trailing + u64::from(self.ended && (!self.multiplexed || trailing > 0))
    }

    /// Whether the data pass filters already.
    pub fn is_filtered(&self) -> bool {
        self.gates.is_some() || self.rewritten.is_some()
    }

    /// Has the data pass filters from here on. Where nothing replaces them and no chunks hide them they stay
    /// where they are, else they leave as `outer` says.
    pub fn pass_through(&mut self, chain: Box<Chain>, outer: Outer) {
        let fresh = self.done == 0 && self.scanned == 0;
        if chain.rewrites() || fresh && matches!(self.framing, Framing::Chunked(_)) {
            self.rewritten = Some(Box::new(rewritten::Rewritten::new(*chain, outer)));
        } else {
            self.gates = Some(chain);
        }
    }

    /// Goes on behind a message as a tunnel, whose bytes count with those of the message.
    pub fn tunnel(&mut self) -> Half {
        let done = self.counted_sent();
        let chain = self.rewritten.take().map(|rewritten| rewritten.into_chain());
        let gates = chain.and_then(Chain::without_rewriters).map(Box::new);
        Half { done, gates: self.gates.take().or(gates), sent: self.sent, ..Half::new(Framing::Close) }
    }

    /// This direction before any of the message went on: `whole` has the length that the message had then,
    /// and the first `before` bytes of the buffer are those that had been passed on. What a scanner has read
    /// it does not read again: the extensions are gone from it, and the trailers wait here.
    pub fn rewound(&mut self, whole: Framing, before: usize) -> Half {
        let old = std::mem::replace(self, Half::new(Framing::Close));
        // Filters took chunks away as they came: they are read anew.
        let of_chunks = matches!(old.framing, Framing::Chunked(_)) && old.rewritten.is_none();
        let fresh = Half::new(if of_chunks { old.framing } else { whole });
        Half {
            received: old.received,
            sent: old.sent,
            begun: true,
            multiplexed: old.multiplexed,
            scanned: if of_chunks { before + old.scanned } else { 0 },
            ended: if of_chunks { old.ended } else { fresh.ended },
            trailers: old.trailers,
            bare: old.bare,
            kept: Some(Vec::new()),
            gates: old.gates,
            ..fresh
        }
    }

    /// Moves what can be moved from `from` through `buf` to `to`; `stage` goes out first.
    ///
    /// # Errors
    /// See [`Break`].
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &Transport,
        buf: &mut Option<Buf>,
        stage: &mut Option<Buf>,
        to: &Transport,
    ) -> Poll<Result<End, Break>> {
        if self.rewritten.is_some() {
            return self.poll_rewritten(cx, from, buf, stage, to);
        }
        let mut turns = 0;
        while turns < TURNS {
            turns += 1;
            self.blocked = false;
            let scanned = self.scan(buf)?;
            let ready = self.admit(cx, scanned);
            if self.discard && ready > 0 && stage.is_none() {
                self.consume(buf, ready);
                self.moved = true;
                continue;
            }
            if ready > 0 || stage.is_some() {
                match self.send(cx, buf, stage, to, ready) {
                    Poll::Pending => {
                        self.blocked = true;
                        return Poll::Pending;
                    }
                    Poll::Ready(r) => r?,
                }
                continue;
            }
            if scanned > 0 {
                // Filters hold it back; nobody is late meanwhile.
                self.moved = true;
                return Poll::Pending;
            }
            if !self.trailers.is_empty() {
                *stage = self.stage_trailers();
                continue;
            }
            if self.pipe.as_ref().is_some_and(|p| !p.is_empty()) {
                match self.empty_pipe(cx, to) {
                    Poll::Pending => {
                        self.blocked = true;
                        return Poll::Pending;
                    }
                    Poll::Ready(r) => r?,
                }
                turns += PIPE_TURNS - 1;
                continue;
            }
            if self.ended {
                self.tell_end(to);
                return Poll::Ready(Ok(if self.eof { End::Closed } else { End::Complete }));
            }
            if self.eof {
                return Poll::Ready(match self.framing {
                    Framing::Close => {
                        self.tell_end(to);
                        Ok(End::Closed)
                    }
                    _ => Err(Break::Truncated),
                });
            }
            let piped = self.pipes() && from.gives_plain() && to.takes_plain();
            let step = if piped { self.through_pipe(cx, from, buf) } else { self.fill(cx, from, buf) };
            turns += if piped { PIPE_TURNS - 1 } else { 0 };
            match step {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(r) => r?,
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Receives what is to come of the message, for nobody.
    ///
    /// # Errors
    /// See [`Break`].
    pub fn poll_discard(
        &mut self,
        cx: &mut Context<'_>,
        from: &Transport,
        buf: &mut Option<Buf>,
    ) -> Poll<Result<(), Break>> {
        self.discard = true;
        self.rewritten = None;
        let piped = self.pipe.take().map_or(0, |pipe| pipe.len() as u64);
        if let Framing::Length(left) = &mut self.framing
            && piped > 0
        {
            // What is in a pipe counts as received when it leaves.
            *left = left.saturating_sub(piped);
            self.done += piped;
            self.ended = *left == 0;
        }
        for _ in 0..TURNS {
            let ready = self.scan(buf)?;
            if ready > 0 {
                self.consume(buf, ready);
                self.moved = true;
            } else if self.ended {
                return Poll::Ready(Ok(()));
            } else if self.eof {
                return Poll::Ready(Err(Break::Truncated));
            } else {
                match self.fill(cx, from, buf) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(r) => r?,
                }
            }
        }
        rt::give_way(cx);
        Poll::Pending
    }

    /// Tells gates that everything went, and the receiver if it is to know.
    fn tell_end(&mut self, to: &Transport) {
        if self.closes {
            // A connection that is gone needs no end.
            let _ = to.shutdown_write();
        }
        if let Some(chain) = &mut self.gates {
            chain.ended();
        }
    }

    /// How many of them the filters let pass now.
    fn admit(&mut self, cx: &mut Context<'_>, scanned: usize) -> usize {
        match &mut self.gates {
            Some(chain) if scanned > 0 && !self.discard => chain.admit(cx, scanned),
            _ => scanned,
        }
    }

    /// How many bytes of the buffer belong to the message.
    fn scan(&mut self, buf: &mut Option<Buf>) -> Result<usize, Break> {
        let Some(buf) = buf.as_mut().filter(|b| !b.is_empty()) else { return Ok(0) };
        Ok(match &mut self.framing {
            Framing::Close => buf.len(),
            Framing::Length(left) => usize::try_from(*left).unwrap_or(usize::MAX).min(buf.len()),
            Framing::Chunked(scanner) => {
                if !self.ended && self.scanned < buf.len() {
                    let data = buf.filled_mut();
                    let done = scanner.strip(&mut data[self.scanned..]).map_err(|_| Break::Malformed)?;
                    if done.kept < done.used {
                        // What was left out makes the rest move up.
                        let (from, to, all) =
                            (self.scanned + done.used, self.scanned + done.kept, data.len());
                        data.copy_within(from..all, to);
                        buf.truncate(all - (done.used - done.kept));
                    }
                    self.scanned += done.kept;
                    self.ended = done.end;
                    if done.end {
                        self.trailers = scanner.take_trailers();
                        self.strip_trailers();
                    }
                }
                self.scanned
            }
        })
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut Option<Buf>,
        stage: &mut Option<Buf>,
        to: &Transport,
        ready: usize,
    ) -> Poll<Result<(), Break>> {
        if stage.is_none() && self.may_give(buf, ready, to) {
            let given = match to.raw().poll_give(cx, buf) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(given) => given.map_err(Break::Write)?,
            };
            self.moved = true;
            self.sent += given as u64;
            self.passed(given);
            return Poll::Ready(Ok(()));
        }
        let head = stage.as_ref().map(Buf::filled).unwrap_or_default();
        let ready = if self.discard { 0 } else { ready };
        let body = buf.as_ref().map(|b| &b.filled()[..ready]).unwrap_or_default();
        // The end of the stream follows at once; data only when the last read left something behind: else
        // what was read would wait in the kernel for its company.
        let follows = match self.framing {
            Framing::Length(left) if left > ready as u64 => self.full_reads > 0 && !self.prompt && ready > 0,
            Framing::Length(_) => self.closes,
            Framing::Chunked(_) => self.closes && self.ended && self.trailers.is_empty(),
            Framing::Close => false,
        };
        let Poll::Ready(result) = send_both(cx, to, head, body, follows) else { return Poll::Pending };
        let n = result.map_err(Break::Write)?;
        self.moved = true;
        self.sent += n as u64;
        let staged = n.min(head.len());
        if let Some(s) = stage {
            s.consume(staged);
            if s.is_empty() {
                *stage = None;
            }
        }
        self.consume(buf, n - staged);
        Poll::Ready(Ok(()))
    }

    /// Whether the buffer can be handed over as it is: it holds nothing else, nobody looks at what passes,
    /// and the receiver is in this worker.
    fn may_give(&self, buf: &Option<Buf>, ready: usize, to: &Transport) -> bool {
        to.raw().is_local()
            && to.is_plain()
            && ready > 0
            && buf.as_ref().is_some_and(|b| b.len() == ready)
            && !self.discard
            && self.kept.is_none()
            && self.gates.is_none()
    }

    fn consume(&mut self, buf: &mut Option<Buf>, n: usize) {
        if n == 0 {
            return;
        }
        if let Some(b) = buf {
            self.keep(&b.filled()[..n]);
            if let Some(chain) = self.gates.as_mut().filter(|_| !self.discard) {
                chain.passed(&b.filled()[..n]);
            }
            b.consume(n);
        }
        self.passed(n);
    }

    /// So many bytes of the message are no longer in the buffer.
    fn passed(&mut self, n: usize) {
        self.done += n as u64;
        match &mut self.framing {
            Framing::Length(left) => {
                *left -= n as u64;
                self.ended = *left == 0;
            }
            Framing::Chunked(_) => self.scanned -= n,
            Framing::Close => {}
        }
    }

    /// Keeps trailers from the receiver from now on, those that have come included (`option
    /// http-drop-request-trailers` and its like).
    pub fn drop_trailers(&mut self) {
        self.bare = true;
        self.unfollow();
        self.strip_trailers();
    }

    /// Leaves of the trailers the empty line behind them.
    fn strip_trailers(&mut self) {
        if self.bare && !self.trailers.is_empty() {
            self.trailers = b"\r\n".to_vec();
        }
    }

    /// As much of the trailers as fits a buffer.
    #[cold]
    fn stage_trailers(&mut self) -> Option<Buf> {
        let mut buf = Buf::new();
        let room = buf.spare_mut();
        let n = room.len().min(self.trailers.len());
        room[..n].copy_from_slice(&self.trailers[..n]);
        buf.advance(n);
        self.trailers.drain(..n);
        self.keep(buf.filled());
        (!self.discard).then_some(buf)
    }

    /// Keeps bytes for another attempt, as long as they fit a buffer.
    fn keep(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.kept {
            if kept.len() + bytes.len() > rt::bufsize() {
                self.kept = None;
            } else {
                kept.extend_from_slice(bytes);
            }
        }
    }
}
