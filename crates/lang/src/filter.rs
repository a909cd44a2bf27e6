//! Filters: what sees a stream on its way, and may change it (manual, chapter 9).
//!
//! A `filter` line is compiled ([`crate::registry::FilterDef`]) into a [`Maker`], which is asked for each
//! stream whether it wants a [`Filter`] at work there. A filter is asked at the [moments](Moment) of its
//! stream, where it may look at heads, change them, wait or end the stream, as an action may. When a head has
//! got its final form the filter may put something between the two sides of that direction ([`Data`]): a
//! [`Gate`] sees the data and may hold them back, a [`Rewriter`] replaces them. Both see the payload: chunks
//! are taken away before the first filter and made anew behind the last one. A filter does no I/O.

use std::task::{Context, Poll};

use wire::head::Head;

use crate::action::{Exec, Flow};
use crate::env::Side;

/// A `filter` line, compiled.
pub trait Maker: Send + Sync {
    /// The filter for a stream that begins, or that comes to this backend; `None`: it has no use for one.
    fn begin(&self, exec: &mut Exec<'_>) -> Option<Box<dyn Filter>>;
}

/// The moments at which filters are asked. What comes in between (rules, the choice of a server) is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the rules of its own proxy look at the request, or at what a client of TCP says.
    Rules,
    /// `tcp-request content` rules of the frontend are through, `http-request` rules are next; HTTP only.
    FrontRequest,
    /// The same of a backend that is another proxy than the frontend: before `tcp-request content` rules.
    /// Filters of both proxies are asked.
    BackContent,
    /// Between those and the `http-request` rules of that backend; HTTP only.
    BackRequest,
    /// The request's head has got its final form; HTTP only. Also before each further attempt at a server.
    RequestHead,
    /// The server is reached.
    Connected,
    /// A response has come, and no rule has seen it; in TCP, before rules see what the server says.
    Response,
    /// `tcp-response content` rules are through, `http-response` rules are next; HTTP only.
    ResponseRules,
    /// The response's head has got its final form; HTTP only.
    ResponseHead,
}

impl Moment {
    /// The direction that it belongs to.
    pub fn side(self) -> Side {
        match self {
            Moment::Rules
            | Moment::FrontRequest
            | Moment::BackContent
            | Moment::BackRequest
            | Moment::RequestHead
            | Moment::Connected => Side::Request,
            Moment::Response | Moment::ResponseRules | Moment::ResponseHead => Side::Response,
        }
    }
}

/// A filter at work on a stream. It is dropped with its stream.
pub trait Filter {
    /// A moment has come. What it returns is treated as that of an action: [`Flow::Next`] goes on,
    /// [`Flow::Yield`] has the engine fulfil a need and asks again (`exec.resumed`), what ends a stream ends
    /// it. At [`Moment::Connected`] and at both moments of a head nothing but waiting and [`Flow::Next`] is
    /// expected of it.
    fn meet(&mut self, moment: Moment, exec: &mut Exec<'_>) -> Flow {
        let _ = (moment, exec);
        Flow::Next
    }

    /// What the data of a direction shall pass through. It is asked once for each message when the head has
    /// got its final form, and again when the message is sent anew (`retry-on`); not of messages without a
    /// body.
    fn data(&mut self, side: Side) -> Option<Data> {
        let _ = side;
        None
    }

    /// The stream is over; `exec` is as the log line sees it.
    fn over(&mut self, exec: &mut Exec<'_>) {
        let _ = exec;
    }
}

/// What data pass through.
pub enum Data {
    /// Something that sees them, and may hold them back.
    Gate(Box<dyn Gate>),
    /// Something that replaces them.
    Rewriter(Box<dyn Rewriter>),
}

/// Sees data and may hold them back. It never copies or waits itself: who moves the data asks how much may go
/// now, and tells what went.
pub trait Gate {
    /// How many of `ready` bytes may go at `now` (ms).
    ///
    /// # Errors
    /// None for so many milliseconds.
    fn admit(&mut self, now: u64, ready: usize) -> Result<usize, u64> {
        let _ = now;
        Ok(ready)
    }

    /// These bytes went.
    fn passed(&mut self, now: u64, bytes: &[u8]);

    /// The fields behind the payload, if there are any.
    fn trailers(&mut self, trailers: &Head) {
        let _ = trailers;
    }

    /// The message ended, after all its data went.
    fn ended(&mut self) {}
}

/// What a [`Rewriter`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes of the payload that it took.
    pub taken: usize,
    /// Bytes that it wrote into the room.
    pub made: usize,
}

/// A rewriter could not go on: the message breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Replaces data. It is given pieces of payload and room for what goes on instead; what it neither takes nor
/// writes waits, so nothing that it is part of can grow. The room is at least half a buffer (8 KiB with
/// `tune.bufsize` as it comes).
///
/// Who returns `Poll::Pending` has kept the waker and done nothing. Who returns 0 for both figures wants to
/// be asked again when there is more payload or more room.
pub trait Rewriter {
    /// Takes of the payload, which is not empty, and writes into the room.
    ///
    /// # Errors
    /// It can't go on.
    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Poll<Result<Moved, Broken>>;

    /// No more payload is at hand for now: gives what it holds back (a packer flushes) if somebody may wait
    /// for that. `true`: nothing is left to be given.
    ///
    /// # Errors
    /// It can't go on.
    fn poll_pause(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        let _ = (cx, room);
        Poll::Ready(Ok((0, true)))
    }

    /// The payload is over: gives the rest. `true`: that was all.
    ///
    /// # Errors
    /// It can't go on.
    fn poll_end(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        let _ = (cx, room);
        Poll::Ready(Ok((0, true)))
    }

    /// The fields behind the payload, if there are any; they may be changed.
    fn trailers(&mut self, trailers: &mut Head) {
        let _ = trailers;
    }

    /// As many bytes come out as go in: a message with a length keeps it.
    fn keeps_length(&self) -> bool {
        false
    }

    /// How many bytes come out, where it knows that before and they are not those that go in. A message that
    /// is longer or shorter is broken.
    fn length(&self) -> Option<u64> {
        None
    }
}
