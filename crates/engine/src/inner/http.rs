//! An exchange of HTTP on a line: a request whose body goes out piece by piece, and an answer whose body
//! comes in piece by piece. Neither is ever held as a whole: whoever sends waits for the server, and the
//! server for whoever reads.
//!
//! Requests are written in the form of HTTP/1. Where HTTP/2 was agreed on, the exchange is a stream inside
//! the worker (`mux::h2`), which has the same form.

use mux::{Call, Owner, h2};
use rt::Socket;
use wire::head::Head;
use wire::http1::{Body, Limits, Parsed, Scanner, parse_response, response_body};
use wire::method::Method;

use super::Fault;
use super::line::{End, Line, TimedOut};
use crate::Worker;

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its head is not there.
    Awaited,
    /// So many bytes of the body are to come.
    Length(u64),
    /// The body is chunked.
    Chunked,
    /// The body goes on until the server closes.
    UntilClose,
    /// It is whole.
    Whole,
}

/// A request that was begun, and its answer.
pub struct Exchange {
    line: Line,
    /// The stream that it is, where HTTP/2 is spoken.
    call: Option<Call>,
    method: Method,
    head: Head,
    state: State,
    scanner: Scanner,
    /// The last piece of the body.
    piece: Vec<u8>,
}

impl Exchange {
    /// Sends a request as far as it is in `request`: its head, with the framing of what
    /// [follows](Exchange::send).
    ///
    /// # Errors
    /// It does not go out in time.
    pub async fn begin(
        worker: &Worker,
        line: Line,
        method: Method,
        request: &[u8],
    ) -> Result<Exchange, Fault> {
        let mut exchange = Exchange {
            line,
            call: None,
            method,
            head: Head::default(),
            state: State::Awaited,
            scanner: Scanner::default(),
            piece: Vec::new(),
        };
        if exchange.line.agreed_h2() {
            exchange.multiplex(worker)?;
        }
        exchange.send(request).await?;
        Ok(exchange)
    }

    /// Speaks HTTP/2 from here on.
    fn multiplex(&mut self, worker: &Worker) -> Result<(), Fault> {
        let (near, far) = Socket::local().map_err(|_| Fault::Refused)?;
        let owner = Owner::alone(worker.index, None);
        let limits = h2::server_limits(&worker.shared.program.global.tune, false);
        let call = Call::with(h2::start(self.line.replace(near.into()), limits, owner, None, 0), far);
        call.submit(None, b"https", None);
        self.call = Some(call);
        Ok(())
    }

    /// Sends more of the request, in its framing. `false`: the server has answered, or ended, before it took
    /// it all, and no more needs to be sent.
    ///
    /// # Errors
    /// It does not go out in time.
    pub async fn send(&mut self, mut data: &[u8]) -> Result<bool, Fault> {
        while !data.is_empty() {
            if self.look()? {
                return Ok(false);
            }
            match self.line.push(data).await.map_err(|late| self.late(late))? {
                Some(n) => data = data.get(n..).unwrap_or_default(),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Waits for the head of the answer. Interim answers are passed over.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn answer(&mut self) -> Result<&Head, Fault> {
        while !self.look()? {
            if !self.line.more().await.map_err(|late| self.late(late))? {
                // A head that fills a buffer is too long.
                let is_wrong =
                    self.line.end().is_none() || self.call.as_ref().is_some_and(Call::was_malformed);
                return Err(if is_wrong { Fault::Malformed } else { Fault::Silent });
            }
        }
        Ok(&self.head)
    }

    /// Looks whether the head of the answer is there.
    fn look(&mut self) -> Result<bool, Fault> {
        while self.state == State::Awaited {
            let parsed = parse_response(self.line.data(), &mut self.head, &Limits::default(), false);
            let Parsed::Complete { consumed } = parsed.map_err(|_| Fault::Malformed)? else {
                return Ok(false);
            };
            self.line.consume(consumed);
            match self.head.status() {
                // Nobody asked for another protocol.
                101 => return Err(Fault::Malformed),
                100..200 => {}
                _ => self.state = framing(response_body(&self.head, self.method)),
            }
        }
        Ok(true)
    }

    /// Waits for the next piece of the answer's body, which takes a buffer at most; `None` when it is whole.
    /// [`Exchange::answer`] came before.
    ///
    /// # Errors
    /// The body breaks off, or does not go on in time.
    pub async fn body(&mut self) -> Result<Option<&[u8]>, Fault> {
        self.piece.clear();
        while self.piece.is_empty() {
            if self.state == State::Whole {
                return Ok(None);
            }
            if self.line.data().is_empty() && !self.line.more().await.map_err(|late| self.late(late))? {
                return match self.state {
                    State::UntilClose if self.line.end() == Some(End::Closed) => Ok(None),
                    _ => Err(Fault::Cut),
                };
            }
            self.take()?;
        }
        Ok(Some(&self.piece))
    }

    /// Moves what has come of the body from the line to the piece at hand.
    fn take(&mut self) -> Result<(), Fault> {
        let data = self.line.data();
        let used = match self.state {
            State::Length(left) => {
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
                self.piece.extend_from_slice(data.get(..n).unwrap_or_default());
                let left = left.saturating_sub(n as u64);
                self.state = if left == 0 { State::Whole } else { State::Length(left) };
                n
            }
            State::Chunked => {
                let piece = &mut self.piece;
                let ends = self.scanner.data(data, |part| piece.extend_from_slice(part));
                if ends.map_err(|_| Fault::Malformed)? {
                    self.state = State::Whole;
                }
                data.len()
            }
            State::UntilClose => {
                self.piece.extend_from_slice(data);
                data.len()
            }
            State::Awaited | State::Whole => 0,
        };
        self.line.consume(used);
        Ok(())
    }

    fn late(&self, TimedOut: TimedOut) -> Fault {
        if self.state == State::Awaited { Fault::Late } else { Fault::Stalled }
    }

    /// Bytes that have come in all.
    pub fn received(&self) -> usize {
        self.line.received()
    }

    /// Whether HTTP/2 is spoken.
    pub fn speaks_h2(&self) -> bool {
        self.call.is_some()
    }
}

/// What is to come of a body.
fn framing(body: Body) -> State {
    match body {
        Body::None | Body::Length(0) => State::Whole,
        Body::Length(length) => State::Length(length),
        Body::Chunked => State::Chunked,
        Body::UntilClose => State::UntilClose,
    }
}
