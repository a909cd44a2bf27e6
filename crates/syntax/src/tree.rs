//! The tree: sections in the order in which they were written, each with its lines.
//!
//! It is flat, because the language is: a section ends where the next one begins. The one relation between
//! sections that belongs to the grammar, and not to the meaning of keywords, is which `defaults` section a
//! proxy starts from; it is resolved here so that later stages look up an index and not a history.

use crate::source::Span;
use crate::word::{Line, Word};

/// What the grammar has to know about a section word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `global`: has no name, and its environment keywords act while reading.
    Global,
    /// `defaults [name] [from name]`.
    Defaults,
    /// `frontend`, `backend`, `listen`: `name [from name]`, starts from a defaults section.
    Proxy,
    /// Any other; its header is checked by whoever knows the section.
    Other,
}

/// An entry of the caller's table of section words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionWord {
    /// The word that opens the section, valid everywhere.
    pub word: &'static str,
    /// What the grammar has to know about it.
    pub role: Role,
}

impl SectionWord {
    /// An entry.
    pub const fn new(word: &'static str, role: Role) -> Self {
        SectionWord { word, role }
    }
}

/// The section words of HAProxy 3.5, chapters 3 to 12 of its manual.
pub const SECTION_WORDS: &[SectionWord] = &[
    SectionWord::new("global", Role::Global),
    SectionWord::new("defaults", Role::Defaults),
    SectionWord::new("frontend", Role::Proxy),
    SectionWord::new("backend", Role::Proxy),
    SectionWord::new("listen", Role::Proxy),
    SectionWord::new("userlist", Role::Other),
    SectionWord::new("peers", Role::Other),
    SectionWord::new("mailers", Role::Other),
    SectionWord::new("http-errors", Role::Other),
    SectionWord::new("ring", Role::Other),
    SectionWord::new("log-forward", Role::Other),
    SectionWord::new("log-profile", Role::Other),
    SectionWord::new("resolvers", Role::Other),
    SectionWord::new("cache", Role::Other),
    SectionWord::new("fcgi-app", Role::Other),
    SectionWord::new("crt-store", Role::Other),
    SectionWord::new("traces", Role::Other),
    SectionWord::new("acme", Role::Other),
    SectionWord::new("healthcheck", Role::Other),
    SectionWord::new("namespace_list", Role::Other),
];

/// Where a proxy or a defaults section takes its initial settings from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Inherited {
    /// From the documented defaults only.
    #[default]
    Nothing,
    /// From the last defaults section before it: an index into [`Tree::sections`].
    Last(usize),
    /// From the one named after `from`: an index into [`Tree::sections`].
    Named(usize),
}

impl Inherited {
    /// The index of the defaults section, if there is one.
    pub fn section(self) -> Option<usize> {
        match self {
            Inherited::Nothing => None,
            Inherited::Last(index) | Inherited::Named(index) => Some(index),
        }
    }
}

/// One section.
#[derive(Clone, Debug)]
pub struct Section {
    /// The line that opened it.
    pub header: Line,
    /// The role of its word in the caller's table.
    pub role: Role,
    /// The name behind the section word, if one was given.
    pub name: Option<Word>,
    /// For proxies and defaults: what they start from.
    pub inherits: Inherited,
    /// Its statements in order. Empty lines, comments, skipped blocks and directives are not among them.
    pub lines: Vec<Line>,
}

impl Section {
    /// The section word: `frontend`, `resolvers`, ...
    pub fn word(&self) -> &str {
        self.header.keyword().text()
    }

    /// The name, or an empty string.
    pub fn name(&self) -> &str {
        self.name.as_ref().map_or("", Word::text)
    }

    /// Where to point for a complaint about the section as a whole.
    pub fn span(&self) -> Span {
        self.name.as_ref().map_or(self.header.keyword().span(), Word::span)
    }
}

/// A whole configuration, all files after each other.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The sections in the order in which they were written.
    pub sections: Vec<Section>,
}

impl Tree {
    /// The sections that a word opens, with their indices.
    pub fn with_word<'t>(&'t self, word: &'t str) -> impl Iterator<Item = (usize, &'t Section)> {
        self.sections.iter().enumerate().filter(move |(_, section)| section.word() == word)
    }

    /// The chain of defaults sections that a section starts from, nearest first. Each lies before the last,
    /// so the chain ends.
    pub fn ancestry(&self, section: &Section) -> impl Iterator<Item = &Section> {
        let first = section.inherits.section().and_then(|index| self.sections.get(index));
        std::iter::successors(first, |section| self.sections.get(section.inherits.section()?))
    }
}
