//! Glitches and floods.
//!
//! Glitches are counted as the manual's `fc_glitches` and `tune.h2.fe.glitches-threshold` describe: violations and
//! oddities; at three quarters of the threshold the connection is wound up, at the threshold it is closed.
//!
//! Floods use what is legal, so a threshold of violations never sees them. Here every frame that moves nothing (a
//! ping, a setting, a priority, an empty frame, a stream that is reset before it was answered, a window) costs a point,
//! and what moves something gives points back: a request answered, data either way. An honest peer hovers at zero.
//! One that has cost [`JUNK_MAX`] more than it was worth is asked to be calm (RFC 9113 section 10.5). Because there is
//! no clock here, the caller says when time has passed ([`Connection::calm_down`]), which forgives half.

use super::code::{Code, Fatal};
use super::conn::Connection;

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

impl Connection {
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
    }

    /// Counts a glitch, which may wind up or end the connection.
    pub(super) fn glitch(&mut self, out: &mut Vec<u8>) -> Result<(), Fatal> {
        self.guard.glitches = self.guard.glitches.saturating_add(1);
        let limit = self.limits.glitches;
        if limit == 0 {
            return Ok(());
        }
        if self.guard.glitches >= limit {
            return Err(self.fail(Code::ENHANCE_YOUR_CALM, "too many glitches", out));
        }
        if self.guard.glitches >= limit - limit / 4 {
            self.shutdown(out);
        }
        Ok(())
    }
}
