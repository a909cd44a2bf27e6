//! Termination states (manual, section 8.5): four letters that say who ended a stream, and when.

/// First letter: what caused the stream to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Cause {
    /// `-`: both sides ended normally.
    #[default]
    Normal,
    /// `C`: the client aborted.
    ClientAbort,
    /// `S`: the server aborted or refused.
    ServerAbort,
    /// `P`: the proxy itself ended it (deny, bad message, security check).
    Proxy,
    /// `L`: answered locally (redirect, return, statistics).
    Local,
    /// `R`: a resource ran out (ports, descriptors, memory).
    Resource,
    /// `I`: an internal error was found.
    Internal,
    /// `D`: killed because the server went down (`on-marked-down shutdown-sessions`).
    Down,
    /// `U`: killed because a better server came up (`on-marked-up shutdown-backup-sessions`).
    Up,
    /// `K`: killed by an operator.
    Killed,
    /// `c`: the client-side timeout struck.
    ClientTimeout,
    /// `s`: the server-side timeout struck.
    ServerTimeout,
}

/// Second letter: what the stream was doing when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// `-`: it was over.
    #[default]
    Done,
    /// `R`: waiting for the whole request.
    Request,
    /// `Q`: waiting in the queue for a server.
    Queue,
    /// `C`: connecting to the server.
    Connect,
    /// `H`: waiting for the response head.
    Headers,
    /// `D`: transferring data.
    Data,
    /// `L`: sending the last data to the client after the server finished.
    Last,
    /// `T`: tarpitted.
    Tarpit,
}

/// The four letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// First letter.
    pub cause: Cause,
    /// Second letter.
    pub phase: Phase,
    /// Third letter: the persistence cookie the client sent (`N I D U V E O -`).
    pub cookie: u8,
    /// Fourth letter: what was done to the cookie in the response (`N I U P R D -`).
    pub set_cookie: u8,
}

impl Default for Term {
    fn default() -> Term {
        Term { cause: Cause::Normal, phase: Phase::Done, cookie: b'-', set_cookie: b'-' }
    }
}

impl Cause {
    /// The letter of section 8.5.
    pub fn letter(self) -> u8 {
        match self {
            Cause::Normal => b'-',
            Cause::ClientAbort => b'C',
            Cause::ServerAbort => b'S',
            Cause::Proxy => b'P',
            Cause::Local => b'L',
            Cause::Resource => b'R',
            Cause::Internal => b'I',
            Cause::Down => b'D',
            Cause::Up => b'U',
            Cause::Killed => b'K',
            Cause::ClientTimeout => b'c',
            Cause::ServerTimeout => b's',
        }
    }
}

impl Phase {
    /// The letter of section 8.5.
    pub fn letter(self) -> u8 {
        match self {
            Phase::Done => b'-',
            Phase::Request => b'R',
            Phase::Queue => b'Q',
            Phase::Connect => b'C',
            Phase::Headers => b'H',
            Phase::Data => b'D',
            Phase::Last => b'L',
            Phase::Tarpit => b'T',
        }
    }
}

impl Term {
    /// Records cause and phase unless an earlier cause stands already: the first one explains the end.
    pub fn end(&mut self, cause: Cause, phase: Phase) {
        if self.cause == Cause::Normal {
            self.cause = cause;
            self.phase = phase;
        }
    }

    /// The first two letters (TCP logs).
    pub fn two(&self) -> [u8; 2] {
        [self.cause.letter(), self.phase.letter()]
    }

    /// All four letters (HTTP logs).
    pub fn four(&self) -> [u8; 4] {
        [self.cause.letter(), self.phase.letter(), self.cookie, self.set_cookie]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stands() {
        let mut t = Term::default();
        t.end(Cause::ClientAbort, Phase::Data);
        t.end(Cause::ServerTimeout, Phase::Headers);
        assert_eq!(&t.four(), b"CD--");
    }
}
