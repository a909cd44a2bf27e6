//! Header blocks in (RFC 9113 sections 4.3, 6.2, 6.10 and 8.1): put together, decoded always, because the
//! tables of both ends have to stay alike, and then judged by the state of their stream.

use super::code::{Code, Fault, Notice, on_closed, protocol, size};
use super::conn::{Connection, Ending, Event};
use super::flow::{Inflow, Outflow};
use super::frame::{self, Frame, MAX31};
use super::intake::{Facts, Intake, Refusal, Section};
use super::receive::Outcome;
use super::settings::Role;
use super::streams::{Closed, Stream};
use crate::head::Head;

/// Frames that a block may be cut into. Its bytes are limited, too, and frames without any count as junk.
const FRAMES: u32 = 1024;
/// Into how many more a block may be cut before that is odd.
const CUT: u32 = 4;
const LATE: &str = "HEADERS on a closed stream";
const IDLE: &str = "HEADERS on an idle stream";

impl Connection {
    pub(super) fn headers<'i>(
        &mut self,
        frame: Frame,
        payload: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        if frame.stream == 0 {
            return Err(protocol("HEADERS on stream 0"));
        }
        if payload.is_empty() {
            return Err(size("HEADERS of nothing"));
        }
        self.may_have_headers(frame.stream)?;
        let block = unpadded(frame, payload)?;
        self.tally.received(frame::HEADERS);
        if self.role == Role::Server && frame.stream % 2 == 1 {
            self.begun_peer = self.begun_peer.max(frame.stream);
        }
        let (fragment, dependency) = prioritized(frame, block)?;
        let end = frame.has(frame::END_STREAM);
        if dependency == Some(frame.stream) {
            // RFC 7540 section 5.3.1.
            return Err(protocol("a stream that depends on itself"));
        }
        if frame.has(frame::END_HEADERS) {
            return self.block(frame.stream, end, fragment, head, out);
        }
        self.block.clear();
        self.block_frames = 0;
        self.block_of = Some((frame.stream, end));
        self.append(fragment)?;
        Ok(None)
    }

    pub(super) fn continuation<'i>(
        &mut self,
        frame: Frame,
        payload: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        let Some((stream, end)) = self.block_of else {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR, "CONTINUATION of nothing", Notice::Spare));
        };
        self.append(payload)?;
        if !frame.has(frame::END_HEADERS) {
            return Ok(None);
        }
        self.block_of = None;
        let more = self.block_frames.saturating_sub(1);
        if more > CUT {
            self.odd(more.div_ceil(16), out)?;
        }
        let block = std::mem::take(&mut self.block);
        self.block(stream, end, &block, head, out)
    }

    fn append(&mut self, fragment: &[u8]) -> Result<(), Fault> {
        self.block_frames += 1;
        if fragment.is_empty() {
            self.guard.junk();
        }
        if self.block_frames > FRAMES {
            let why = "header block of too many frames";
            return Err(Fault::Connection(Code::ENHANCE_YOUR_CALM, why, Notice::Full));
        }
        if self.block.len() + fragment.len() > self.limits.list.max(16_384) {
            // HAProxy had counted it before it knew.
            self.tally.received(frame::HEADERS);
            return Err(Fault::Connection(Code::INTERNAL_ERROR, "header block too large", Notice::Logged));
        }
        self.block.extend_from_slice(fragment);
        Ok(())
    }

    /// Whether the peer may send a block on this stream; a client also on one that it opens by that.
    fn may_have_headers(&self, id: u32) -> Result<(), Fault> {
        if self.role == Role::Client {
            return match self.streams.find(id) {
                None if self.is_idle(id) => Err(protocol(IDLE)),
                None if self.streams.closed(id) == Closed::Known => Err(on_closed(LATE)),
                _ => Ok(()),
            };
        }
        let Some(key) = self.streams.find(id) else {
            let gone = !self.is_idle(id) && !matches!(self.streams.closed(id), Closed::Reset);
            return if gone { Err(on_closed(LATE)) } else { Ok(()) };
        };
        let ended = self.streams.slab.get(key).is_some_and(|stream| !stream.receiving);
        let why = "HEADERS behind the end of a stream";
        if ended { Err(Fault::Connection(Code::PROTOCOL_ERROR, why, Notice::Spare)) } else { Ok(()) }
    }

    /// Decodes a block of which nothing is wanted.
    fn discard(&mut self, block: &[u8]) -> Result<(), Fault> {
        self.decoder.decode(block, &mut |_| {}).map_err(|_| compression())
    }

    fn decode(
        &mut self,
        block: &[u8],
        section: Section,
        end: bool,
        head: &mut Head,
    ) -> Result<Result<Facts, Refusal>, Fault> {
        let limits = &self.limits;
        let mut intake = Intake::new(head, section, limits.list, limits.fields, limits.relax);
        let mut nameless = false;
        let read = self.decoder.decode(block, &mut |line| {
            nameless |= line.name.is_empty();
            intake.line(line);
        });
        // HAProxy takes a field without a name for an error of the compression.
        if read.is_err() || nameless {
            return Err(compression());
        }
        Ok(intake.finish(end))
    }

    /// A block is complete.
    fn block<'i>(
        &mut self,
        id: u32,
        end: bool,
        block: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        match (self.streams.find(id), self.role) {
            (Some(key), Role::Client) if self.streams.slab.get(key).is_some_and(|stream| !stream.head_in) => {
                self.response(id, key, end, block, head)
            }
            (Some(key), _) => self.trailers(key, end, block, head),
            (None, _) if !self.is_idle(id) => self.late(id, end, block, out),
            (None, Role::Server) => self.request(id, end, block, head, out),
            (None, Role::Client) => Err(protocol(IDLE)),
        }
    }

    /// A block on a closed stream.
    fn late<'i>(&mut self, id: u32, end: bool, block: &[u8], out: &mut Vec<u8>) -> Outcome<'i> {
        self.discard(block)?;
        match (self.streams.closed(id), self.role) {
            // Trailers end a stream, even one that is no longer listened to.
            (Closed::Reset, Role::Server) if !end => {
                self.settle(id, Fault::Stream(Code::PROTOCOL_ERROR), out)
            }
            (Closed::Reset, _) => {
                self.guard.junk();
                Ok(None)
            }
            (Closed::Known, _) | (Closed::Forgotten, Role::Server) => Err(on_closed(LATE)),
            (Closed::Forgotten, Role::Client) => self.settle(id, Fault::Stream(Code::STREAM_CLOSED), out),
        }
    }

    fn trailers<'i>(
        &mut self,
        key: base::slab::Key,
        end: bool,
        block: &[u8],
        head: &mut Head,
    ) -> Outcome<'i> {
        let sound = self.decode(block, Section::Trailers, end, head)?.is_ok();
        let turn = self.guard.turn;
        let Some(stream) = self.streams.slab.get(key) else { return Ok(None) };
        if stream.fed == turn {
            // HAProxy counts those once more that it has to lay back until what came before them is taken.
            self.tally.received(frame::HEADERS);
        }
        if !stream.receiving {
            return Err(Fault::Stream(Code::STREAM_CLOSED));
        }
        if !end {
            return Err(protocol("trailers that do not end the stream"));
        }
        if !sound {
            return Err(Fault::Message);
        }
        if stream.left.is_some_and(|left| left > 0) {
            return Err(Fault::Stream(Code::PROTOCOL_ERROR));
        }
        self.guard.useful();
        self.streams.end_receiving(key);
        Ok(Some(Event::Trailers { stream: key }))
    }

    fn request<'i>(
        &mut self,
        id: u32,
        end: bool,
        block: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        if id.is_multiple_of(2) {
            return Err(protocol("a client opens streams of odd numbers"));
        }
        let read = self.decode(block, Section::Request, end, head)?;
        if matches!(self.ending, Ending::Final(last) if id > last) {
            return Ok(None);
        }
        self.last_peer = id;
        self.opened = self.opened.saturating_add(1);
        self.limit_total(out)?;
        if self.limits.streams > 0 && self.streams.len() >= self.limits.streams as usize {
            return Err(Fault::Stream(Code::REFUSED_STREAM));
        }
        let (facts, refused) = match read {
            Ok(facts) => (facts, None),
            Err(Refusal::Status(status)) => (Facts::default(), Some(status)),
            Err(Refusal::Malformed(why)) => {
                self.settle(id, Fault::Stream(Code::PROTOCOL_ERROR), out)?;
                return Ok(Some(Event::Malformed { why }));
            }
        };
        let stream = self.fresh(id, facts.length.filter(|_| !end), end);
        let Some(stream) = self.streams.insert(stream) else {
            return Err(Fault::Stream(Code::REFUSED_STREAM));
        };
        if !end {
            self.refill(Some(stream), out);
        }
        Ok(Some(Event::Head { stream, end, refused, extended: facts.extended }))
    }

    fn fresh(&self, id: u32, left: Option<u64>, end: bool) -> Stream {
        Stream {
            id,
            outflow: Outflow::new(self.remote.window),
            inflow: Inflow::new(self.first_window()),
            receiving: !end,
            sending: true,
            head_in: true,
            left,
            bodiless: false,
            queued: false,
            fed: 0,
        }
    }

    /// `tune.h2.fe.max-total-streams`: the end is announced at the limit; streams that were on their way are
    /// tolerated.
    fn limit_total(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let limit = self.limits.total_streams;
        if limit == 0 || self.opened < limit {
            return Ok(());
        }
        if self.opened > limit.saturating_add(self.limits.streams.max(100)) {
            return Err(Fault::Connection(
                Code::ENHANCE_YOUR_CALM,
                "streams opened beyond the announced end",
                Notice::Full,
            ));
        }
        self.shutdown(out);
        Ok(())
    }

    fn response<'i>(
        &mut self,
        id: u32,
        key: base::slab::Key,
        end: bool,
        block: &[u8],
        head: &mut Head,
    ) -> Outcome<'i> {
        let read = self.decode(block, Section::Response, end, head)?;
        let turn = self.guard.turn;
        let Some(stream) = self.streams.slab.get_mut(key).filter(|stream| stream.receiving) else {
            return Err(Fault::Stream(Code::STREAM_CLOSED));
        };
        if std::mem::replace(&mut stream.fed, turn) == turn {
            // See `trailers`.
            self.tally.received(frame::HEADERS);
        }
        let Ok(facts) = read else { return Err(Fault::Message) };
        let status = head.status();
        if status < 200 {
            return if end {
                Err(Fault::Message)
            } else {
                // One interim response is due at times, a stream of them is not.
                self.guard.junk();
                Ok(Some(Event::Head { stream: key, end, refused: None, extended: false }))
            };
        }
        stream.head_in = true;
        // What a server sends for a body where there can be none is passed over, as HAProxy does.
        stream.bodiless |= matches!(status, 204 | 304);
        let length = facts.length.filter(|_| !stream.bodiless);
        if end && length.is_some_and(|length| length > 0) {
            return Err(Fault::Message);
        }
        stream.left = length;
        debug_assert_eq!(stream.id, id);
        if end {
            self.streams.end_receiving(key);
        }
        self.guard.useful();
        Ok(Some(Event::Head { stream: key, end, refused: None, extended: false }))
    }
}

fn compression() -> Fault {
    Fault::Connection(Code::COMPRESSION_ERROR, "header block can't be decoded", Notice::Logged)
}

/// The payload of HEADERS without padding.
fn unpadded(frame: Frame, payload: &[u8]) -> Result<&[u8], Fault> {
    let (mut rest, mut pad) = (payload, 0);
    if frame.has(frame::PADDED) {
        let (&length, tail) = rest.split_first().ok_or(size("HEADERS too short"))?;
        (rest, pad) = (tail, usize::from(length));
    }
    let len = rest.len().checked_sub(pad).ok_or(protocol("more padding than frame"))?;
    Ok(rest.get(..len).unwrap_or_default())
}

/// The fragment of a block behind its priority, and the stream that it is said to depend on.
fn prioritized(frame: Frame, payload: &[u8]) -> Result<(&[u8], Option<u32>), Fault> {
    if !frame.has(frame::PRIORITIZED) {
        return Ok((payload, None));
    }
    let short = Fault::Connection(Code::FRAME_SIZE_ERROR, "HEADERS too short", Notice::Logged);
    let (&[a, b, c, d, _], fragment) = payload.split_first_chunk::<5>().ok_or(short)?;
    Ok((fragment, Some(u32::from_be_bytes([a, b, c, d]) & MAX31)))
}
