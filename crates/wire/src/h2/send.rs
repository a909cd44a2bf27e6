//! Commands: heads, data, trailers, resets, the end of the connection. All append to the output; a key that
//! is stale makes them do nothing, because the peer may have reset the stream meanwhile.

use base::slab::Key;

use super::code::Code;
use super::conn::{Connection, Ending, Rx};
use super::flow::{Inflow, Outflow};
use super::frame::{self, Frame, HEADER, MAX31};
use super::outlet::{self, Outline};
use super::streams::Stream;
use crate::head::Head;
use crate::method::Method;

/// What the ping says whose answer ends an announcement.
pub(super) const FAREWELL: [u8; 8] = *b"farewell";
/// What the ping says that asks whether the peer is there.
const THERE: [u8; 8] = *b"presence";

/// No stream can be opened now; see [`Connection::can_open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unopened;

impl Connection {
    /// Opens a stream with a request (client); `end`: it has no body.
    ///
    /// # Errors
    /// The limits of both sides, or the end of the connection, forbid it.
    pub fn open(
        &mut self,
        head: &Head,
        outline: Outline<'_>,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<Key, Unopened> {
        if !self.can_open() {
            return Err(Unopened);
        }
        let id = if self.last_own == 0 { 1 } else { self.last_own + 2 };
        let stream = Stream {
            id,
            outflow: Outflow::new(self.remote.window),
            inflow: Inflow::new(self.first_window()),
            receiving: true,
            sending: true,
            head_in: false,
            left: None,
            bodiless: head.method_id() == Method::Head,
            queued: false,
            fed: 0,
        };
        let key = self.streams.insert(stream).ok_or(Unopened)?;
        self.last_own = id;
        self.opened = self.opened.saturating_add(1);
        let start = reserve(out);
        outlet::request(head, outline, &mut self.encoder, out);
        frame::seal_block(out, start, id, end, self.remote.frame as usize);
        self.sent(key, end);
        Ok(key)
    }

    /// Resets a stream that was never opened (client): the request can't be sent. Servers may end the
    /// connection for it.
    pub fn open_none(&mut self, out: &mut Vec<u8>) {
        if self.can_open() {
            self.last_own = if self.last_own == 0 { 1 } else { self.last_own + 2 };
            let id = self.last_own;
            self.streams.remember(id, true);
            frame::put_reset(out, id, Code::INTERNAL_ERROR);
        }
    }

    /// Sends a response with `status`, which may be informational, and differs from that of `head` only where
    /// 101 becomes the 200 of an extended CONNECT.
    pub fn respond(&mut self, stream: Key, head: &Head, status: u16, end: bool, out: &mut Vec<u8>) {
        let Some(id) = self.sendable(stream) else { return };
        let start = reserve(out);
        outlet::response(head, status, &mut self.encoder, out);
        frame::seal_block(out, start, id, end, self.remote.frame as usize);
        self.guard.useful();
        self.sent(stream, end);
    }

    /// Sends the trailers that end a body.
    pub fn send_trailers(&mut self, stream: Key, head: &Head, out: &mut Vec<u8>) {
        let Some(id) = self.sendable(stream) else { return };
        let start = reserve(out);
        outlet::trailers(head, &mut self.encoder, out);
        frame::seal_block(out, start, id, true, self.remote.frame as usize);
        self.sent(stream, true);
    }

    fn sendable(&self, stream: Key) -> Option<u32> {
        let stream = self.streams.slab.get(stream).filter(|stream| stream.sending)?;
        (!self.dead).then_some(stream.id)
    }

    fn sent(&mut self, stream: Key, end: bool) {
        if end {
            self.streams.end_sending(stream);
        }
    }

    /// Bytes of data that may be sent on a stream now, as both windows allow.
    pub fn room(&self, stream: Key) -> usize {
        let live = self.streams.slab.get(stream).filter(|stream| stream.sending);
        live.map_or(0, |stream| stream.outflow.room().min(self.outflow.room()))
    }

    /// The largest payload of a frame that the peer takes.
    pub fn frame_max(&self) -> usize {
        self.remote.frame as usize
    }

    /// The header of a DATA frame of `len` bytes, for whoever puts the data behind it himself; the windows
    /// are charged. Nothing when [`Connection::room`] or [`Connection::frame_max`] is less.
    pub fn frame_data(&mut self, stream: Key, len: usize, end: bool) -> Option<[u8; HEADER]> {
        if len > self.room(stream) || len > self.frame_max() {
            return None;
        }
        let live = self.streams.slab.get_mut(stream).filter(|stream| stream.sending)?;
        live.outflow.take(len);
        self.outflow.take(len);
        let flags = if end { frame::END_STREAM } else { 0 };
        let header = Frame { len: len as u32, kind: frame::DATA, flags, stream: live.id };
        self.guard.useful();
        self.sent(stream, end);
        Some(header.bytes())
    }

    /// Sends as much of `data` as the windows allow, and says how much that was; `end`: the body ends with
    /// it.
    pub fn send(&mut self, stream: Key, data: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let mut sent = 0;
        loop {
            let rest = data.get(sent..).unwrap_or_default();
            let len = rest.len().min(self.room(stream)).min(self.frame_max());
            let last = len == rest.len();
            if len == 0 && !(last && end) {
                return sent;
            }
            let Some(header) = self.frame_data(stream, len, end && last) else { return sent };
            out.extend_from_slice(&header);
            out.extend_from_slice(rest.get(..len).unwrap_or_default());
            sent += len;
            if last {
                return sent;
            }
        }
    }

    /// Resets a stream.
    pub fn reset(&mut self, stream: Key, code: Code, out: &mut Vec<u8>) {
        if let Some(gone) = self.streams.remove(stream, true)
            && !self.dead
        {
            frame::put_reset(out, gone.id, code);
        }
    }

    /// Says that `bytes` of received data are used up, so that the peer may send as many more.
    pub fn release(&mut self, stream: Key, bytes: usize, out: &mut Vec<u8>) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.inflow.release(bytes);
        if let Some(stream) = self.streams.slab.get_mut(stream) {
            stream.inflow.release(bytes);
        }
        if !self.dead {
            self.refill(Some(stream), out);
        }
    }

    /// Puts a stream at the end of the line of those that want to send data.
    pub fn want_turn(&mut self, stream: Key) {
        if self.turns.len() > 2 * self.streams.len() + 16 {
            // Those that went away while the connection was blocked.
            self.turns.retain(|key| self.streams.slab.get(*key).is_some());
        }
        if let Some(live) = self.streams.slab.get_mut(stream).filter(|live| !live.queued) {
            live.queued = true;
            self.turns.push_back(stream);
        }
    }

    /// The stream whose turn it is, taken out of the line. One whose own window is shut is left out: it asks
    /// again when [`super::Event::Window`] says so. Nothing when the line is empty or the window of the
    /// connection is shut.
    pub fn next_turn(&mut self) -> Option<Key> {
        if self.outflow.room() == 0 {
            return None;
        }
        while let Some(key) = self.turns.pop_front() {
            let Some(stream) = self.streams.slab.get_mut(key) else { continue };
            stream.queued = false;
            if stream.sending && stream.outflow.room() > 0 {
                return Some(key);
            }
        }
        None
    }

    /// Asks a client to go elsewhere with what comes next, once, and serves it as long as it stays.
    pub fn hint(&mut self, out: &mut Vec<u8>) {
        if !self.dead && self.ending == Ending::No {
            self.put_goaway(MAX31, Code::NO_ERROR, out);
            self.ending = Ending::Hinted;
        }
    }

    /// Announces the end: streams on their way are still served. When the peer's answer to a ping shows that
    /// it knows, the last stream is named (RFC 9113 section 6.8). A client names it at once.
    pub fn shutdown(&mut self, out: &mut Vec<u8>) {
        if self.dead || !matches!(self.ending, Ending::No | Ending::Hinted) {
            return;
        }
        if self.role == super::Role::Client {
            self.put_goaway(0, Code::NO_ERROR, out);
            self.ending = Ending::Final(0);
            return;
        }
        if self.ending == Ending::No {
            self.put_goaway(MAX31, Code::NO_ERROR, out);
        }
        frame::put(out, frame::PING, 0, 0, &FAREWELL);
        self.ending = Ending::Announced;
    }

    /// Asks whether the peer is there; `false` if it has yet to answer the last such question.
    pub fn ask(&mut self, out: &mut Vec<u8>) -> bool {
        if self.asked || self.dead {
            return false;
        }
        frame::put(out, frame::PING, 0, 0, &THERE);
        self.asked = true;
        true
    }

    /// Names the last stream that is served, without waiting any longer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.dead && !matches!(self.ending, Ending::Final(_)) {
            self.put_goaway(self.last_peer, Code::NO_ERROR, out);
            self.ending = Ending::Final(self.last_peer);
        }
    }

    /// The peer has closed its side. Tells whether that was before its preface was whole, which counts as an
    /// error.
    pub fn peer_closed(&mut self) -> bool {
        let cut = matches!(self.rx, Rx::Preface(_));
        // Not as a sum with `cut`: Rust 1.95 drops that where the caller branches on the result (issue 158206
        // of rust-lang/rust).
        if cut {
            self.tally.connection_errors += 1;
        }
        cut
    }

    /// Ends the connection at once.
    pub fn close(&mut self, code: Code, out: &mut Vec<u8>) {
        // Who never greeted in HTTP/2 is told nothing in that language.
        let stranger =
            !self.has_settings && (code == Code::PROTOCOL_ERROR || matches!(self.rx, Rx::Preface(_)));
        let silent = std::mem::replace(&mut self.dead, true) || stranger;
        if !silent {
            // An error names the stream in which it was found, too.
            let begun = if code == Code::NO_ERROR { 0 } else { self.begun_peer };
            self.put_goaway(self.last_peer.max(begun), code, out);
        }
    }

    /// Ends the connection of a peer that rules turned away: no error of the connection, so it is not counted
    /// as one.
    pub fn expel(&mut self, out: &mut Vec<u8>) {
        let counted = self.tally.goaways_sent;
        self.close(Code::ENHANCE_YOUR_CALM, out);
        self.tally.goaways_sent = counted;
    }

    /// A stream that the peer did not process, according to its GOAWAY, and that may be sent elsewhere; it is
    /// gone with this call. To be called until there is none.
    pub fn refused(&mut self) -> Option<Key> {
        let last = self.peer_last?;
        let above = self.streams.slab.iter().find(|(_, stream)| stream.id % 2 == 1 && stream.id > last);
        let key = above.map(|(key, _)| key).filter(|_| self.role == super::Role::Client)?;
        self.streams.remove(key, true);
        Some(key)
    }
}

/// Makes room for the header of a frame.
fn reserve(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    start
}
