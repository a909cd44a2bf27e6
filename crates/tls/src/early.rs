//! A stream whose handshake is not over, though data flow (RFC 8446 section 2.3).
//!
//! It takes the handshake along: reads and writes drive that further, and when it is over the stream becomes
//! one like all others. A client reads nothing before that, for a server answers after its own last message;
//! what it may send is limited by the session that it resumes. A server reads early data and may answer at
//! once.

use std::io;

use super::handshake::{Facts, Handshake, Step, Stop, Turn};
use super::record::Key;
use super::room::Room;
use super::stream::{Kept, Stream, Wire};

/// What a stream keeps of its beginning.
#[derive(Default)]
pub(crate) struct Early {
    /// The handshake that is not over.
    pub handshake: Option<Box<Handshake>>,
    /// The handshake is over, and its last words, and what follows at once, are not sent yet.
    pub draining: bool,
    /// What a handshake found that is over.
    pub facts: Option<Box<Facts>>,
}

impl Stream {
    /// A stream that takes the handshake along.
    pub(crate) fn early(handshake: Handshake) -> Stream {
        let mut stream = Stream::bare(Key::none(), Key::none(), Kept::Nothing);
        stream.beginning.handshake = Some(Box::new(handshake));
        stream
    }

    /// Whether its handshake is not over.
    #[inline]
    pub fn is_early(&self) -> bool {
        self.beginning.handshake.is_some() || self.beginning.draining
    }

    /// What the handshake found, once after it is over.
    pub fn take_facts(&mut self) -> Option<Box<Facts>> {
        self.beginning.facts.take()
    }

    /// Whether data that were sent early are lost: the server did not take them.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Whether the handshake failed after data began to flow.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Ends the handshake; `None` when the wire has to be awaited, in both directions if something is
    /// [pending](Stream::is_pending).
    ///
    /// # Errors
    /// It failed.
    pub fn shake(&mut self, wire: &impl Wire) -> Option<io::Result<()>> {
        match self.drive(wire, false) {
            None if self.beginning.handshake.is_some() => None,
            None => self.early_flush(wire),
            Some(e) => Some(Err(e)),
        }
    }

    /// Drives the handshake as far as the wire allows; an error if it failed.
    fn drive(&mut self, wire: &impl Wire, for_data: bool) -> Option<io::Error> {
        let shaking = self.beginning.handshake.as_mut()?;
        match shaking.run(wire, for_data) {
            Stop::Read | Stop::Write | Stop::Early | Stop::Data => None,
            Stop::Over => self.establish(wire),
            Stop::Failed(_) => Some(self.give_up()),
        }
    }

    /// Becomes a stream like all others.
    fn establish(&mut self, wire: &impl Wire) -> Option<io::Error> {
        let mut handshake = self.beginning.handshake.take()?;
        let Step::Done(mut stream, facts) = handshake.finish(wire) else { return Some(self.give_up()) };
        if handshake.ahead.was_refused(facts.resumed) {
            let again = handshake.ahead.take_kept();
            if again.is_none_or(|data| stream.seal(&data, &[]) != data.len()) {
                self.refused = true;
                return Some(self.give_up());
            }
        }
        (stream.owed, stream.muted) = (self.owed, self.muted);
        stream.set_sizes(self.sizes());
        stream.beginning.draining = stream.is_pending();
        stream.beginning.facts = Some(facts);
        *self = *stream;
        None
    }

    fn give_up(&mut self) -> io::Error {
        self.beginning.handshake = None;
        (self.broken, self.closed, self.failed) = (true, true, true);
        io::ErrorKind::InvalidData.into()
    }

    /// As [`Stream::try_recv`], while the handshake is not over.
    pub(crate) fn early_recv(&mut self, wire: &impl Wire, out: &mut [u8]) -> Option<io::Result<usize>> {
        loop {
            let Some(shaking) = self.beginning.handshake.as_mut() else {
                return match self.early_flush(wire)? {
                    Ok(()) => self.try_recv(wire, out),
                    Err(e) => Some(Err(e)),
                };
            };
            if !shaking.early.is_empty() {
                let n = shaking.early.len().min(out.len());
                out[..n].copy_from_slice(&shaking.early[..n]);
                shaking.early.drain(..n);
                return Some(Ok(n));
            }
            if let Some(e) = self.drive(wire, true) {
                return Some(Err(e));
            }
            if self.beginning.handshake.as_ref().is_some_and(|shaking| shaking.early.is_empty()) {
                return None;
            }
        }
    }

    /// As [`Stream::try_send`], while the handshake is not over.
    pub(crate) fn early_send(
        &mut self,
        wire: &impl Wire,
        first: &[u8],
        second: &[u8],
    ) -> Option<io::Result<usize>> {
        // A client's hello goes out with the first data.
        if let Some(shaking) = self.beginning.handshake.as_mut().filter(|_| self.owed == 0) {
            self.owed = shaking.seal(first, second) as u32;
        }
        if let Err(e) = self.early_flush(wire)? {
            return Some(Err(e));
        }
        if self.owed > 0 || first.len() + second.len() == 0 {
            return Some(Ok(std::mem::take(&mut self.owed) as usize));
        }
        // Nothing more goes ahead: what is left waits for the end of the handshake.
        if let Some(e) = self.drive(wire, false) {
            return Some(Err(e));
        }
        if self.beginning.handshake.is_some() { None } else { self.try_send(wire, first, second, false) }
    }

    /// As [`Stream::flush`], while the handshake is not over.
    pub(crate) fn early_flush(&mut self, wire: &impl Wire) -> Option<io::Result<()>> {
        match &mut self.beginning.handshake {
            Some(shaking) => shaking.flush(wire),
            None => {
                let sent = self.flush_output(wire, false)?;
                self.beginning.draining = false;
                Some(sent)
            }
        }
    }

    /// As [`Stream::close`], while the handshake is not over.
    pub(crate) fn early_close(&mut self, wire: &impl Wire) {
        // Perhaps the last message is there already.
        if self.drive(wire, false).is_some() || self.beginning.handshake.is_none() {
            self.beginning.draining = false;
            return self.close(wire);
        }
        self.closed = true;
        if let Some(shaking) = &mut self.beginning.handshake {
            shaking.ahead.say_farewell();
            shaking.seal(&[], &[]);
            let _ = shaking.flush(wire);
        }
    }
}

impl Handshake {
    /// Seals as much of the bytes as may go ahead now; returns how many.
    fn seal(&mut self, first: &[u8], second: &[u8]) -> usize {
        let room = self.output.as_ref().map_or(usize::MAX, Room::spare);
        if self.ahead.is_full() || room < SEALED {
            return 0;
        }
        let staged = self.ahead.stage(first, second);
        while self.ahead.is_staged() && self.failed.is_none() {
            match self.advance() {
                Turn::Again | Turn::Flush => {}
                _ => break,
            }
        }
        staged - self.ahead.unstage()
    }
}

/// Room that a sealed record needs beside messages of the handshake.
const SEALED: usize = 10 * 1024;
