//! Glitches and floods.
//!
//! Glitches are counted as the manual's `fc_glitches` and `tune.h2.fe.glitches-threshold` describe:
//! violations and oddities; at three quarters of the threshold the connection is wound up, at the threshold
//! it is closed.
//!
//! Floods use what is legal, so a threshold of violations never sees them. Here every frame that moves
//! nothing (a ping, a setting, a priority, an empty frame, a stream that is reset before it was answered, a
//! window) costs a point, and what moves something gives points back: a request answered, data either way. An
//! honest peer hovers at zero. One that has cost [`JUNK_MAX`] more than it was worth is asked to be calm (RFC
//! 9113 section 10.5). Because there is no clock here, the caller says when time has passed
//! ([`Connection::calm_down`]), which forgives half.

use super::code::{Code, Fatal, Fault, Notice};
use super::conn::Connection;
use super::frame::{self, Frame};

/// Points at which a connection ends.
const JUNK_MAX: u32 = 10_000;
/// What a message or a piece of data is worth.
const WORTH: u32 = 8;

/// What a connection has done wrong so far.
#[derive(Debug, Default)]
pub struct Guard {
    pub glitches: u32,
    junk: u32,
    /// Frames and resets since the caller last began a turn.
    pub frames: u32,
    pub resets: u32,
    /// The number of that turn; 0: none yet.
    pub turn: u32,
    /// Glitches do not end the connection.
    spared: bool,
}

/// The number of glitches at which a connection with this threshold is wound up.
pub fn parting(threshold: u32) -> u32 {
    ((u64::from(threshold) * 3 + 1) / 4) as u32
}

impl Guard {
    /// A frame came that moves nothing.
    pub fn junk(&mut self) {
        self.junk = self.junk.saturating_add(1);
    }

    /// Something useful happened.
    pub fn useful(&mut self) {
        self.junk = self.junk.saturating_sub(WORTH);
    }

    pub fn flooded(&self) -> bool {
        self.junk > JUNK_MAX
    }
}

/// Frames and errors counted since the last [`Connection::take_tally`], as the statistics have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub headers: u32,
    pub data: u32,
    pub settings: u32,
    pub resets: u32,
    pub goaways: u32,
    /// Errors of the peer that ended the connection.
    pub connection_errors: u32,
    /// Errors of the peer that ended a stream.
    pub stream_errors: u32,
    pub resets_sent: u32,
    pub goaways_sent: u32,
}

impl Tally {
    /// Counts a frame that came.
    #[inline]
    pub(super) fn received(&mut self, kind: u8) {
        let place = match kind {
            frame::DATA => &mut self.data,
            frame::HEADERS => &mut self.headers,
            frame::RST_STREAM => &mut self.resets,
            frame::SETTINGS => &mut self.settings,
            frame::GOAWAY => &mut self.goaways,
            _ => return,
        };
        *place = place.wrapping_add(1);
    }
}

impl Connection {
    /// What was counted since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Counts a frame that came, unless its length or its stream can't be: that one is an error and no more.
    /// DATA and HEADERS are counted where they are understood.
    pub(super) fn count(&mut self, frame: Frame) {
        let fits = match frame.kind {
            frame::RST_STREAM => frame.stream != 0 && !self.is_idle(frame.stream) && frame.len == 4,
            frame::SETTINGS => frame.stream == 0 && frame.len.is_multiple_of(6),
            frame::GOAWAY => frame.stream == 0 && frame.len >= 8,
            _ => false,
        };
        if fits {
            self.tally.received(frame.kind);
        }
        if frame.kind == frame::SETTINGS && frame.stream == 0 && !self.has_settings {
            // HAProxy counts the first ones twice: as the end of the preface, and as a frame, if they are
            // one.
            self.tally.received(frame.kind);
        }
    }

    /// Sends a GOAWAY and counts it, if it tells of an error.
    pub(super) fn put_goaway(&mut self, last: u32, code: Code, out: &mut Vec<u8>) {
        self.tally.goaways_sent += u32::from(code != Code::NO_ERROR);
        frame::put_goaway(out, last, code);
    }

    /// Glitches counted so far (`fc_glitches`, `bc_glitches`).
    pub fn glitches(&self) -> u32 {
        self.guard.glitches
    }

    /// A second or more has passed since the last call: half of what the peer cost is forgiven.
    pub fn calm_down(&mut self) {
        self.guard.junk /= 2;
    }

    /// The caller begins a turn: counts of frames at once start anew.
    pub fn begin_turn(&mut self) {
        (self.guard.frames, self.guard.resets) = (0, 0);
        self.guard.turn = self.guard.turn.wrapping_add(1).max(1);
    }

    /// The peer reset a stream of which nobody had begun to serve the request: a glitch.
    ///
    /// # Errors
    /// There were too many; `out` holds the `GOAWAY`.
    pub fn taken_back(&mut self, out: &mut Vec<u8>) -> Result<(), Fatal> {
        self.glitch(out)
    }

    /// Below which use of its processor, in percent, glitches do not end the connection; 0: they always do.
    pub fn spared_below(&self) -> u32 {
        self.limits.spared_below
    }

    /// Says whether that is so now.
    pub fn spare(&mut self, spared: bool) {
        self.guard.spared = spared;
    }

    /// Counts what is so many times as odd as a glitch.
    pub(super) fn odd(&mut self, times: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        (0..times)
            .try_for_each(|_| self.glitch(out))
            .map_err(|fatal| Fault::Connection(fatal.code, fatal.why, Notice::Full))
    }

    /// Counts a glitch, which may wind up or end the connection.
    pub(super) fn glitch(&mut self, out: &mut Vec<u8>) -> Result<(), Fatal> {
        self.guard.glitches = self.guard.glitches.saturating_add(1);
        let limit = self.limits.glitches;
        if limit == 0 {
            return Ok(());
        }
        if self.guard.glitches >= limit && !self.guard.spared {
            return Err(self.fail(Code::ENHANCE_YOUR_CALM, "too many glitches", out));
        }
        if self.guard.glitches >= parting(limit) {
            self.shutdown(out);
        }
        Ok(())
    }
}
