//! The connection: what it holds, and what can be asked of it.

use std::collections::VecDeque;

use base::slab::Key;

use super::code::{Code, Fatal};
use super::flow::{Inflow, Outflow};
use super::frame::{self, Frame, MAX31};
use super::guard::{Guard, Tally};
use super::settings::{Limits, Role, Settings, WINDOW_DEFAULT};
use super::streams::Streams;
use crate::hpack::{Decoder, Encoder};

/// What was received.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// A head is in the head given to [`Connection::receive`]: a request that opens this stream, or a
    /// response, which may be informational.
    Head {
        stream: Key,
        /// No body follows.
        end: bool,
        /// What came is no valid request and deserves this status; the head is not to be used.
        refused: Option<u16>,
        /// The request is an extended CONNECT, turned into a GET that asks for an upgrade (RFC 8441).
        extended: bool,
    },
    /// A piece of a body. Each of its bytes has to be given to [`Connection::release`] once, even after a
    /// reset.
    Data {
        stream: Key,
        bytes: &'i [u8],
        end: bool,
        /// It is an end that came behind all else.
        lone: bool,
    },
    /// The trailers that end a body are in the head.
    Trailers { stream: Key },
    /// The stream is gone: the peer reset it, or this side did because of a violation. Its key is stale.
    Reset {
        stream: Key,
        code: Code,
        by_peer: bool,
        /// What was no head, or were no trailers, ended it.
        malformed: bool,
    },
    /// A request was malformed and its stream is closed; no key was ever made for it.
    Malformed { why: &'static str },
    /// More may be sent on this stream, or on all.
    Window { stream: Option<Key> },
    /// The peer opens or takes no more streams; those above `last` were not processed, see
    /// [`Connection::refused`].
    GoAway { last: u32, code: Code },
    /// Enough frames for a turn (`max-frames-at-once`, `max-rst-at-once`): others should have theirs.
    Pause,
}

/// See [`Connection::receive`].
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'i> {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Nothing when more input is needed.
    pub event: Option<Event<'i>>,
}

/// What is left of a frame of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub stream: Key,
    pub left: u32,
    pub pad: u32,
    pub end: bool,
    /// See [`Event::Data`].
    pub lone: bool,
}

/// Where in the input the connection is.
#[derive(Debug)]
pub(super) enum Rx {
    /// So many bytes of the preface came.
    Preface(usize),
    /// At the header of a frame.
    Header,
    /// In the payload of this frame, which is handled whole.
    Payload(Frame),
    /// In the data of a frame.
    Data(Piece),
    /// Behind the last data of a stream, which are fewer than were declared; so much padding follows.
    Short { id: u32, pad: u32 },
    /// In what is of no interest.
    Skip(u32),
}

/// How far the end of the connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// The peer was asked for no more than it needs, and is served as long as it stays.
    Hinted,
    /// The end is announced, and a ping sent whose answer says that the peer knows.
    Announced,
    /// No stream above this one is processed.
    Final(u32),
}

/// One end of an HTTP/2 connection. See the module.
#[derive(Debug)]
pub struct Connection {
    pub(super) role: Role,
    pub(super) limits: Limits,
    pub(super) remote: Settings,
    /// The first frame of the peer has to be its settings.
    pub(super) has_settings: bool,
    /// The peer knows what this side set.
    pub(super) acknowledged: bool,
    pub(super) streams: Streams,
    /// The highest stream that the peer opened.
    pub(super) last_peer: u32,
    /// The highest stream that the peer began to open, with a block that may be broken.
    pub(super) begun_peer: u32,
    /// The highest stream that this side opened.
    pub(super) last_own: u32,
    pub(super) opened: u32,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) outflow: Outflow,
    pub(super) inflow: Inflow,
    pub(super) rx: Rx,
    /// The payload of a frame of which a part has come.
    pub(super) partial: Vec<u8>,
    /// A block of header fields that goes on in the next frame.
    pub(super) block: Vec<u8>,
    pub(super) block_of: Option<(u32, bool)>,
    pub(super) block_frames: u32,
    pub(super) turns: VecDeque<Key>,
    pub(super) guard: Guard,
    pub(super) tally: Tally,
    pub(super) ending: Ending,
    /// The last stream that the peer says it processes.
    pub(super) peer_last: Option<u32>,
    /// The peer was asked whether it is there, and has not answered.
    pub(super) asked: bool,
    pub(super) dead: bool,
}

impl Connection {
    /// A connection of `role`; a client's preface and settings are appended to `out`. A server says nothing
    /// before the client has sent its preface: who speaks something else gets no answer in HTTP/2.
    pub fn new(role: Role, limits: Limits, out: &mut Vec<u8>) -> Connection {
        if role == Role::Client {
            out.extend_from_slice(frame::PREFACE);
            limits.announce(role, out);
        }
        Connection {
            role,
            remote: Settings::default(),
            has_settings: false,
            acknowledged: false,
            streams: Streams::new(),
            last_peer: 0,
            begun_peer: 0,
            last_own: 0,
            opened: 0,
            decoder: Decoder::new(limits.header_table),
            encoder: Encoder::new(limits.encoder_table),
            outflow: Outflow::new(WINDOW_DEFAULT),
            inflow: Inflow::new(WINDOW_DEFAULT),
            rx: if role == Role::Server { Rx::Preface(0) } else { Rx::Header },
            partial: Vec::new(),
            block: Vec::new(),
            block_of: None,
            block_frames: 0,
            turns: VecDeque::new(),
            guard: Guard::default(),
            tally: Tally::default(),
            ending: Ending::No,
            peer_last: None,
            asked: false,
            dead: false,
            limits,
        }
    }

    /// What the peer set.
    pub fn remote(&self) -> &Settings {
        &self.remote
    }

    /// Whether the peer's settings have come.
    pub fn is_greeted(&self) -> bool {
        self.has_settings
    }

    /// Live streams.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.streams.len() == 0
    }

    /// Streams opened so far, by either side.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// The number of a stream on the wire.
    pub fn id(&self, stream: Key) -> Option<u32> {
        self.streams.slab.get(stream).map(|stream| stream.id)
    }

    /// Whether the peer has yet to end its side of a stream.
    pub fn is_receiving(&self, stream: Key) -> bool {
        self.streams.slab.get(stream).is_some_and(|live| live.receiving)
    }

    /// Whether the peer has said all that it had to say on a stream, or all but the end of it: the data that
    /// it declared have begun to arrive to their last byte.
    pub fn is_answered(&self, stream: Key) -> bool {
        let live = self.streams.slab.get(stream);
        live.is_none_or(|live| !live.receiving || (live.head_in && live.left == Some(0)))
    }

    /// Whether the connection is at an end: it failed, or an announced end has come and no stream is left.
    pub fn is_over(&self) -> bool {
        self.dead || (matches!(self.ending, Ending::Final(_)) && self.is_empty())
    }

    /// Whether no new stream is to be expected from, or opened towards, the peer.
    pub fn is_ending(&self) -> bool {
        self.dead || self.ending != Ending::No || self.peer_last.is_some()
    }

    /// Whether another stream can be opened now (client).
    pub fn can_open(&self) -> bool {
        let own = if self.limits.streams == 0 { u32::MAX } else { self.limits.streams };
        let limit = self.remote.streams.min(own) as usize;
        !self.is_ending() && self.streams.len() < limit && self.last_own < MAX31 - 2
    }

    /// The window that a stream should have: one buffer, and its share of 7/8 of what is left of the receive
    /// buffer (`tune.h2.fe.rxbuf`).
    pub(super) fn window_target(&self) -> u32 {
        let own = u64::from(self.limits.window) * self.streams.len().max(1) as u64;
        let free = u64::from(self.limits.rxbuf).saturating_sub(own);
        let share = free * 7 / 8 / u64::from(self.streams.receiving.max(1));
        self.limits.window.saturating_add(share.min(u64::from(MAX31)) as u32)
    }

    /// The window of a stream that is opened now: until the peer knows better, it takes the default.
    pub(super) fn first_window(&self) -> u32 {
        let default = if self.acknowledged { 0 } else { WINDOW_DEFAULT };
        self.limits.window.min(MAX31).max(default)
    }

    /// Opens the windows of the connection and of a stream where that is worth it.
    pub(super) fn refill(&mut self, stream: Option<Key>, out: &mut Vec<u8>) {
        let all = self.limits.rxbuf.max(self.limits.window).max(WINDOW_DEFAULT);
        let more = self.inflow.refill(all);
        if more > 0 {
            frame::put_window(out, 0, more);
        }
        let target = self.window_target();
        let live = stream.and_then(|key| self.streams.slab.get_mut(key));
        if let Some(stream) = live.filter(|stream| stream.receiving) {
            let more = stream.inflow.refill(target);
            if more > 0 {
                frame::put_window(out, stream.id, more);
            }
        }
    }

    /// Ends the connection because of an error.
    pub(super) fn fail(&mut self, code: Code, why: &'static str, out: &mut Vec<u8>) -> Fatal {
        self.close(code, out);
        Fatal { code, why, logged: true }
    }
}
