//! Frames in (RFC 9113 sections 4 and 6). Data is handed on as it arrives; every other frame is handled
//! whole, from the input where it lies there whole, else from a copy.

use base::slab::Key;

use super::code::{Code, Fatal, Fault, Notice, on_closed, protocol, size};
use super::conn::{Connection, Ending, Event, Piece, Received, Rx};
use super::frame::{self, Frame, HEADER, MAX31, PREFACE};
use super::send::FAREWELL;
use super::settings::{Role, WINDOW_DEFAULT};
use super::streams::Closed;
use crate::head::Head;

/// Whether to go on with the input or to tell of something.
pub(super) type Outcome<'i> = Result<Option<Event<'i>>, Fault>;

impl Connection {
    /// Takes input up to the first event. A head goes into `head`, answers go to `out`. To be called again
    /// with what was not consumed, until there is no event. The caller stops calling while `out` is long:
    /// each byte of input makes at most three of output.
    ///
    /// # Errors
    /// The connection is at an end; `out` holds the `GOAWAY` that says so.
    pub fn receive<'i>(
        &mut self,
        input: &'i [u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Received<'i>, Fatal> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            if self.dead {
                return Ok(Received { consumed: input.len(), event: None });
            }
            let Some((used, outcome)) = self.step(rest, head, out) else {
                return Ok(Received { consumed: at, event: None });
            };
            at += used;
            let event = match outcome {
                Ok(event) => event,
                Err(Fault::Connection(code, why, notice)) => return Err(self.fatal(code, why, notice, out)),
                Err(Fault::Stream(_) | Fault::Message) => None,
            };
            if self.guard.flooded() {
                return Err(self.fail(Code::ENHANCE_YOUR_CALM, "too many frames of no use", out));
            }
            if event.is_some() {
                return Ok(Received { consumed: at, event });
            }
        }
    }

    fn fatal(&mut self, code: Code, why: &'static str, notice: Notice, out: &mut Vec<u8>) -> Fatal {
        self.guard.glitches = self.guard.glitches.saturating_add(1);
        let counted = matches!(notice, Notice::Full | Notice::Spare | Notice::Counted);
        self.tally.connection_errors += u32::from(counted);
        let logged = match notice {
            Notice::Full | Notice::Logged => true,
            Notice::Spare => self.is_empty(),
            Notice::Counted | Notice::Nothing => false,
        };
        Fatal { logged, ..self.fail(code, why, out) }
    }

    /// One step: how much of `rest` it took and what came of it; nothing when there is too little of it.
    fn step<'i>(
        &mut self,
        rest: &'i [u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Option<(usize, Outcome<'i>)> {
        match self.rx {
            Rx::Header => {
                let frame = Frame::parse(rest.first_chunk::<HEADER>()?);
                let padded = frame.kind == frame::DATA && frame.has(frame::PADDED) && frame.len > 0;
                let pad = if padded { Some(*rest.get(HEADER)?) } else { None };
                self.guard.frames += 1;
                let outcome = self.begin(frame, pad, out);
                Some((HEADER + usize::from(padded), outcome))
            }
            Rx::Data(piece) => {
                let (used, event) = self.data(rest, piece, out)?;
                Some((used, Ok(event)))
            }
            Rx::Short { id, pad } => {
                self.rx = if pad > 0 { Rx::Skip(pad) } else { Rx::Header };
                let lives = self.streams.find(id).is_some();
                Some((
                    0,
                    if lives { self.settle(id, Fault::Stream(Code::PROTOCOL_ERROR), out) } else { Ok(None) },
                ))
            }
            Rx::Payload(frame) => self.payload(frame, rest, head, out),
            Rx::Skip(left) => {
                let used = rest.len().min(left as usize);
                let left = left - used as u32;
                self.rx = if left == 0 { Rx::Header } else { Rx::Skip(left) };
                (used > 0 || left == 0).then_some((used, Ok(None)))
            }
            Rx::Preface(done) => {
                let due = PREFACE.get(done..).unwrap_or_default();
                let used = rest.len().min(due.len());
                if rest.get(..used) != due.get(..used) {
                    return Some((0, Err(protocol("bad preface"))));
                }
                self.rx = if used == due.len() { Rx::Header } else { Rx::Preface(done + used) };
                if used == due.len() {
                    self.limits.announce(self.role, out);
                }
                (used > 0).then_some((used, Ok(None)))
            }
        }
    }

    /// Takes the payload of a frame that is handled whole.
    fn payload<'i>(
        &mut self,
        frame: Frame,
        rest: &'i [u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Option<(usize, Outcome<'i>)> {
        let due = (frame.len as usize).saturating_sub(self.partial.len());
        if self.partial.is_empty() && rest.len() >= due {
            self.rx = Rx::Header;
            return Some((due, self.frame(frame, rest.get(..due)?, head, out)));
        }
        let part = rest.get(..due.min(rest.len()))?;
        self.partial.extend_from_slice(part);
        if part.len() < due {
            return (!part.is_empty()).then_some((part.len(), Ok(None)));
        }
        self.rx = Rx::Header;
        let payload = std::mem::take(&mut self.partial);
        let outcome = self.frame(frame, &payload, head, out);
        Some((part.len(), outcome))
    }

    /// Looks at the header of a frame and says where its payload goes. `pad` is the length of the padding of
    /// data.
    fn begin<'i>(&mut self, frame: Frame, pad: Option<u8>, out: &mut Vec<u8>) -> Outcome<'i> {
        if !self.has_settings && (frame.kind != frame::SETTINGS || frame.has(frame::ACK)) {
            return Err(protocol("first frame is not SETTINGS"));
        }
        if frame.len > self.limits.frame {
            return Err(Fault::Connection(Code::FRAME_SIZE_ERROR, "frame too large", Notice::Spare));
        }
        if let Some((stream, _)) = self.block_of
            && (frame.kind != frame::CONTINUATION || frame.stream != stream)
        {
            return Err(protocol("header block interrupted"));
        }
        self.count(frame);
        match frame.kind {
            frame::DATA => self.begin_data(frame, pad, out),
            frame::HEADERS..=frame::CONTINUATION | frame::PRIORITY_UPDATE => {
                self.rx = Rx::Payload(frame);
                self.pause()
            }
            _ => {
                // RFC 9113 section 5.5: unknown ones are ignored.
                self.guard.junk();
                self.rx = Rx::Skip(frame.len);
                self.pause()
            }
        }
    }

    /// Whether it is time for others.
    fn pause<'i>(&mut self) -> Outcome<'i> {
        let limit = self.limits.frames_at_once;
        Ok((limit > 0 && self.guard.frames == limit).then_some(Event::Pause))
    }

    fn begin_data<'i>(&mut self, frame: Frame, pad: Option<u8>, out: &mut Vec<u8>) -> Outcome<'i> {
        if frame.stream == 0 {
            return Err(protocol("DATA on stream 0"));
        }
        let padding = pad.map_or(0, |pad| u32::from(pad) + 1);
        if frame.has(frame::PADDED) && pad.is_none() {
            return Err(size("no room for the length of padding"));
        }
        let Some(left) = frame.len.checked_sub(padding) else {
            return Err(protocol("more padding than frame"));
        };
        if !self.inflow.receive(frame.len) {
            return Err(Fault::Connection(
                Code::FLOW_CONTROL_ERROR,
                "window of the connection exceeded",
                Notice::Full,
            ));
        }
        let end = frame.has(frame::END_STREAM);
        let pad = padding.saturating_sub(1);
        let live = self.streams.find(frame.stream).and_then(|key| self.streams.slab.get(key));
        let lone = end && left == 0 && live.is_some_and(|live| live.fed != self.guard.turn);
        match self.accept_data(frame, left, end) {
            Ok(stream) => {
                self.drop_data(Some(stream), padding, out);
                if left == 0 && !end {
                    self.guard.junk();
                }
                self.rx = Rx::Data(Piece { stream, left, pad, end, lone });
                self.pause()
            }
            Err(fault) => {
                self.rx = Rx::Skip(frame.len - u32::from(frame.has(frame::PADDED)));
                self.drop_data(None, frame.len, out);
                match fault {
                    None => Ok(None),
                    Some(fault) => self.settle(frame.stream, fault, out),
                }
            }
        }
    }

    /// Checks data against its stream. An error of nothing has the data ignored.
    fn accept_data(&mut self, frame: Frame, left: u32, end: bool) -> Result<Key, Option<Fault>> {
        let Some(key) = self.streams.find(frame.stream) else {
            return match self.streams.closed(frame.stream) {
                _ if self.is_idle(frame.stream) => Err(Some(protocol("DATA on an idle stream"))),
                Closed::Reset => Err(None),
                // A server knows what it has ended.
                Closed::Known if self.role == Role::Client => Err(Some(on_closed("DATA on a closed stream"))),
                _ => Err(Some(Fault::Stream(Code::STREAM_CLOSED))),
            };
        };
        let fault = |code| Err(Some(Fault::Stream(code)));
        let Some(stream) = self.streams.slab.get_mut(key) else { return Err(None) };
        if !stream.receiving {
            return fault(Code::STREAM_CLOSED);
        }
        self.tally.received(frame::DATA);
        stream.fed = self.guard.turn;
        if !stream.head_in {
            return fault(Code::PROTOCOL_ERROR);
        }
        if !stream.inflow.receive(frame.len) {
            return fault(Code::FLOW_CONTROL_ERROR);
        }
        // RFC 9113 section 8.1.1: the length has to be that of the data. What there is of too few goes on
        // before the stream ends.
        if let Some(due) = stream.left {
            match due.checked_sub(u64::from(left)) {
                Some(due) if due == 0 || !end || left > 0 => stream.left = Some(due),
                _ => return fault(Code::PROTOCOL_ERROR),
            }
        }
        Ok(key)
    }

    /// Gives back windows for bytes that nobody will.
    fn drop_data(&mut self, stream: Option<Key>, bytes: u32, out: &mut Vec<u8>) {
        if bytes == 0 {
            return;
        }
        self.inflow.release(bytes);
        if let Some(stream) = stream.and_then(|key| self.streams.slab.get_mut(key)) {
            stream.inflow.release(bytes);
        }
        self.refill(stream, out);
    }

    /// Hands on what is there of the data of a frame.
    fn data<'i>(
        &mut self,
        rest: &'i [u8],
        piece: Piece,
        out: &mut Vec<u8>,
    ) -> Option<(usize, Option<Event<'i>>)> {
        let Piece { stream, left, pad, end, lone } = piece;
        let used = rest.len().min(left as usize);
        if used == 0 && left > 0 {
            return None;
        }
        let left = left - used as u32;
        let live = self.streams.slab.get(stream).filter(|_| end);
        let short = live.filter(|live| live.left.is_some_and(|due| due > 0)).map(|live| live.id);
        self.rx = match (left, pad, short) {
            (0, pad, Some(id)) => Rx::Short { id, pad },
            (0, 0, None) => Rx::Header,
            (0, pad, None) => Rx::Skip(pad),
            _ => Rx::Data(Piece { left, ..piece }),
        };
        if self.streams.slab.get(stream).is_none() {
            // It was reset in the midst of the frame.
            self.drop_data(None, used as u32, out);
            return Some((used, None));
        }
        let end = end && left == 0 && !matches!(self.rx, Rx::Short { .. });
        if end {
            self.streams.end_receiving(stream);
        }
        if used > 0 || end {
            self.guard.useful();
        }
        let bytes = rest.get(..used).unwrap_or_default();
        Some((used, (used > 0 || end).then_some(Event::Data { stream, bytes, end, lone })))
    }

    /// Whether nobody has used this stream yet.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        let own = (id % 2 == 1) == (self.role == Role::Client);
        if own { id > self.last_own } else { id > self.last_peer }
    }

    /// Ends a stream because of an error of the peer, or the connection if the error is one of it.
    pub(super) fn settle<'i>(&mut self, id: u32, fault: Fault, out: &mut Vec<u8>) -> Outcome<'i> {
        let (code, malformed) = match fault {
            Fault::Stream(code) => (code, false),
            Fault::Message => (Code::PROTOCOL_ERROR, true),
            Fault::Connection(..) => return Err(fault),
        };
        if malformed && self.role == Role::Client {
            // HAProxy counts what a server says wrong where it is read and where the stream is ended.
            self.guard.glitches = self.guard.glitches.saturating_add(1);
        }
        if self.is_idle(id) {
            return Err(Fault::Connection(code, "error on an idle stream", Notice::Full));
        }
        frame::put_reset(out, id, code);
        self.tally.resets_sent += 1;
        // What comes after the end of a stream is no error of it in HAProxy's figures.
        self.tally.stream_errors += u32::from(code != Code::STREAM_CLOSED);
        if let Err(fatal) = self.glitch(out) {
            return Err(Fault::Connection(fatal.code, fatal.why, Notice::Full));
        }
        match self.streams.find(id) {
            Some(stream) => {
                self.streams.remove(stream, true);
                Ok(Some(Event::Reset { stream, code, by_peer: false, malformed }))
            }
            None => {
                self.streams.remember(id, true);
                Ok(None)
            }
        }
    }

    /// Handles a whole frame that is not data.
    fn frame<'i>(&mut self, frame: Frame, payload: &[u8], head: &mut Head, out: &mut Vec<u8>) -> Outcome<'i> {
        let outcome = match frame.kind {
            frame::HEADERS => self.headers(frame, payload, head, out),
            frame::CONTINUATION => self.continuation(frame, payload, head, out),
            frame::PRIORITY => self.priority(frame, payload),
            frame::RST_STREAM => self.reset_in(frame, payload),
            frame::SETTINGS => self.settings(frame, payload, out),
            frame::PING => self.ping(frame, payload, out),
            frame::GOAWAY => self.goaway(frame, payload),
            frame::WINDOW_UPDATE => self.window_update(frame, payload),
            frame::PRIORITY_UPDATE => self.priority_update(frame, payload),
            // RFC 9113 section 8.4: clients push nothing, and servers were told not to.
            _ => Err(protocol("PUSH_PROMISE")),
        };
        match outcome {
            Err(fault @ (Fault::Stream(_) | Fault::Message)) => self.settle(frame.stream, fault, out),
            outcome => outcome,
        }
    }

    /// Section 5.3.2: priorities are obsolete, what they may not say still is an error.
    fn priority<'i>(&mut self, frame: Frame, payload: &[u8]) -> Outcome<'i> {
        self.guard.junk();
        if frame.stream == 0 {
            return Err(protocol("PRIORITY on stream 0"));
        }
        let Some(dependency) = payload.first_chunk::<4>().filter(|_| payload.len() == 5) else {
            return Err(Fault::Stream(Code::FRAME_SIZE_ERROR));
        };
        if u32::from_be_bytes(*dependency) & MAX31 == frame.stream {
            let why = "a stream that depends on itself";
            return Err(Fault::Connection(Code::PROTOCOL_ERROR, why, Notice::Counted));
        }
        Ok(None)
    }

    /// RFC 9218 section 7.1: it is checked and otherwise ignored.
    fn priority_update<'i>(&mut self, frame: Frame, payload: &[u8]) -> Outcome<'i> {
        self.guard.junk();
        if frame.stream != 0 || self.role == Role::Client {
            return Err(protocol("PRIORITY_UPDATE out of place"));
        }
        let Some(stream) = payload.first_chunk::<4>() else { return Err(size("PRIORITY_UPDATE too short")) };
        match u32::from_be_bytes(*stream) & MAX31 {
            0 => Err(protocol("PRIORITY_UPDATE of stream 0")),
            _ => Ok(None),
        }
    }

    fn reset_in<'i>(&mut self, frame: Frame, payload: &[u8]) -> Outcome<'i> {
        let Ok(code) = <[u8; 4]>::try_from(payload) else {
            return Err(size("RST_STREAM is not 4 bytes long"));
        };
        if frame.stream == 0 || self.is_idle(frame.stream) {
            return Err(protocol("RST_STREAM on an idle stream"));
        }
        self.guard.junk();
        self.guard.resets += 1;
        let limit = self.limits.resets_at_once;
        let pause = (limit > 0 && self.guard.resets == limit).then_some(Event::Pause);
        let Some(stream) = self.streams.find(frame.stream) else { return Ok(pause) };
        self.streams.remove(stream, false);
        let code = Code(u32::from_be_bytes(code));
        Ok(Some(Event::Reset { stream, code, by_peer: true, malformed: false }))
    }

    fn settings<'i>(&mut self, frame: Frame, payload: &[u8], out: &mut Vec<u8>) -> Outcome<'i> {
        if frame.stream != 0 {
            return Err(protocol("SETTINGS on a stream"));
        }
        if frame.has(frame::ACK) {
            if !payload.is_empty() {
                let why = "SETTINGS acknowledged with a payload";
                return Err(Fault::Connection(Code::FRAME_SIZE_ERROR, why, Notice::Logged));
            }
            self.acknowledge(out);
            return Ok(None);
        }
        if self.has_settings {
            self.guard.junk();
        }
        self.has_settings = true;
        let before = self.remote.window;
        let shrunk = self.remote.update(payload, self.role)?;
        self.odd(shrunk, out)?;
        self.encoder.set_limit(self.remote.header_table);
        let change = i64::from(self.remote.window) - i64::from(before);
        if change != 0 {
            for key in self.keys() {
                let Some(stream) = self.streams.slab.get_mut(key) else { continue };
                if !stream.outflow.add(change) {
                    return Err(Fault::Connection(
                        Code::FLOW_CONTROL_ERROR,
                        "window of a stream above 2^31-1",
                        Notice::Logged,
                    ));
                }
            }
        }
        frame::put(out, frame::SETTINGS, frame::ACK, 0, &[]);
        Ok((change > 0 && !self.is_empty()).then_some(Event::Window { stream: None }))
    }

    /// The peer knows what this side set.
    fn acknowledge(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.acknowledged, true) {
            return;
        }
        self.decoder.set_limit(self.limits.header_table);
        let change = i64::from(self.limits.window) - i64::from(WINDOW_DEFAULT);
        if change < 0 {
            for key in self.keys() {
                if let Some(stream) = self.streams.slab.get_mut(key) {
                    stream.inflow.adjust(change);
                }
                self.refill(Some(key), out);
            }
        }
    }

    fn keys(&self) -> Vec<Key> {
        self.streams.slab.iter().map(|(key, _)| key).collect()
    }

    fn ping<'i>(&mut self, frame: Frame, payload: &[u8], out: &mut Vec<u8>) -> Outcome<'i> {
        if frame.stream != 0 {
            return Err(protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(size("PING is not 8 bytes long"));
        }
        if !frame.has(frame::ACK) {
            self.guard.junk();
            frame::put(out, frame::PING, frame::ACK, 0, payload);
        } else if payload == FAREWELL && self.ending == Ending::Announced {
            self.finish(out);
        } else {
            // Whatever it repeats, it is an answer.
            self.asked = false;
        }
        Ok(None)
    }

    fn goaway<'i>(&mut self, frame: Frame, payload: &[u8]) -> Outcome<'i> {
        if frame.stream != 0 {
            return Err(protocol("GOAWAY on a stream"));
        }
        let Some(&[a, b, c, d, e, f, g, h]) = payload.first_chunk::<8>() else {
            return Err(size("GOAWAY too short"));
        };
        self.guard.junk();
        let last = u32::from_be_bytes([a, b, c, d]) & MAX31;
        // Section 6.8: it may only be lowered.
        let last = self.peer_last.map_or(last, |before| before.min(last));
        self.peer_last = Some(last);
        Ok(Some(Event::GoAway { last, code: Code(u32::from_be_bytes([e, f, g, h])) }))
    }

    fn window_update<'i>(&mut self, frame: Frame, payload: &[u8]) -> Outcome<'i> {
        let Ok(more) = <[u8; 4]>::try_from(payload) else {
            return Err(size("WINDOW_UPDATE is not 4 bytes long"));
        };
        let more = u32::from_be_bytes(more) & MAX31;
        self.guard.junk();
        if frame.stream == 0 {
            if more == 0 {
                let why = "window opened by nothing";
                return Err(Fault::Connection(Code::PROTOCOL_ERROR, why, Notice::Counted));
            }
            if !self.outflow.add(i64::from(more)) {
                let why = "window above 2^31-1";
                return Err(Fault::Connection(Code::FLOW_CONTROL_ERROR, why, Notice::Nothing));
            }
            return Ok((!self.is_empty()).then_some(Event::Window { stream: None }));
        }
        if self.is_idle(frame.stream) {
            return Err(protocol("WINDOW_UPDATE on an idle stream"));
        }
        let Some(key) = self.streams.find(frame.stream) else { return Ok(None) };
        let Some(stream) = self.streams.slab.get_mut(key) else { return Ok(None) };
        if more == 0 {
            return Err(Fault::Stream(Code::PROTOCOL_ERROR));
        }
        if !stream.outflow.add(i64::from(more)) {
            return Err(Fault::Stream(Code::FLOW_CONTROL_ERROR));
        }
        Ok(stream.sending.then_some(Event::Window { stream: Some(key) }))
    }
}
