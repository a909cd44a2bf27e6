//! Entries of the keyword tables.
//!
//! A keyword is one entry of a plain `const` table beside its setter: where it may stand, whether `no` may stand in
//! front of it, a line of documentation and an example that compiles. Dumps, suggestions, the manual and the tests
//! that police the entries read the same tables.

use crate::statement::{Statement, Step};

/// The kinds of proxy sections, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(pub u8);

impl Places {
    /// `defaults`, named or not.
    pub const DEFAULTS: Places = Places(1);
    /// `frontend`.
    pub const FRONTEND: Places = Places(2);
    /// `listen`.
    pub const LISTEN: Places = Places(4);
    /// `backend`.
    pub const BACKEND: Places = Places(8);
    /// `defaults`, but only named ones.
    pub const NAMED: Places = Places(16);
    /// All four sections.
    pub const ALL: Places = Places(15);
    /// What accepts connections, and defaults.
    pub const FRONT: Places = Places(7);
    /// What has servers, and defaults.
    pub const BACK: Places = Places(13);
    /// What accepts connections, without defaults.
    pub const FRONT_ONLY: Places = Places(6);
    /// What has servers, without defaults.
    pub const BACK_ONLY: Places = Places(12);
    /// All but defaults.
    pub const PROXIES: Places = Places(14);
    /// Rules: everywhere, but of defaults only in named ones.
    pub const RULES: Places = Places(30);

    /// Whether all of `other` is in the set.
    pub const fn has(self, other: Places) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One keyword.
pub struct Keyword<T: 'static> {
    /// The word, or several words for a keyword with sub-keywords.
    pub name: &'static str,
    /// Where it may stand (proxy keywords).
    pub places: Places,
    /// What it does.
    pub set: fn(&mut Statement<'_>, &mut T) -> Step,
    /// One line of documentation.
    pub doc: &'static str,
    /// A line that compiles; empty: it can't stand alone (it needs another section or a file).
    pub example: &'static str,
    /// Whether the first value stays, and what is said of a second line (global keywords).
    pub once: Option<&'static Once>,
}

/// That a keyword counts once: the first value stays, a second line is told so and changes nothing.
#[derive(Clone, Copy)]
pub struct Once {
    /// What the keyword sets, where another one sets the same.
    pub setting: Option<&'static str>,
    /// Whether zero leaves it unset.
    pub zero_unsets: bool,
    /// Whether words behind the first are complained of before.
    pub ends: bool,
    /// What is said, with `$` for the keyword.
    pub said: Said,
}

/// What is said of a second line.
#[derive(Clone, Copy)]
pub enum Said {
    /// An alert that stops nothing, although HAProxy calls it one.
    Alert(&'static str),
    /// The same without the blank before the colon.
    Tight(&'static str),
    /// A warning.
    Warning(&'static str),
}

impl<T> Keyword<T> {
    /// The same keyword, of which the first value stays.
    pub(crate) const fn once(mut self, once: &'static Once) -> Keyword<T> {
        self.once = Some(once);
        self
    }
}

/// The entry of a keyword.
pub(crate) fn find<T>(tables: &[&'static [Keyword<T>]], name: &str) -> Option<&'static Keyword<T>> {
    tables.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}
