//! What is set for a source.

use super::Kind;

/// Whether a source is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No.
    #[default]
    Stopped,
    /// Not before an event that starts it.
    Waiting,
    /// Yes.
    Running,
}

/// What is set for one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether it is at work.
    pub state: State,
    /// The highest level that is told.
    pub level: u8,
    /// How much is told besides: an index of its verbosities.
    pub verbosity: u8,
    /// Events that are told, as bits.
    pub report: u32,
    /// Events that start it.
    pub start: u32,
    /// Events that stop it.
    pub stop: u32,
    /// Events after which it waits again.
    pub pause: u32,
    /// What it locks on.
    pub lock: Kind,
    /// Another source whose lock it heeds, by index.
    pub follow: Option<usize>,
    /// Where lines go, by name.
    pub sink: Option<Box<str>>,
}

impl Settings {
    /// Those of a source that nobody looks at.
    pub const fn off() -> Settings {
        Settings {
            state: State::Stopped,
            level: super::level::USER,
            verbosity: 1,
            report: u32::MAX,
            start: 0,
            stop: 0,
            pause: 0,
            lock: Kind::Nothing,
            follow: None,
            sink: None,
        }
    }

    /// Whether its points have anything to do.
    pub fn is_on(&self) -> bool {
        self.state != State::Stopped || self.follow.is_some()
    }

    /// Stops it, whatever it waited for.
    pub fn halt(&mut self) {
        self.state = State::Stopped;
        (self.start, self.stop, self.pause) = (0, 0, 0);
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::off()
    }
}
