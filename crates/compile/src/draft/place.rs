//! Positions of what is understood later, when all sections are known.

use syntax::Span;

/// A line by position: index of its section and of the line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LineRef {
    pub section: u32,
    pub line: u32,
}

/// A name with its place, resolved later.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub name: Box<str>,
    pub span: Span,
}

/// Text that is parsed later, with the line it stands in.
#[derive(Clone, Debug)]
pub(crate) struct Deferred {
    pub at: LineRef,
    /// Index of the first word (the keyword is word 0).
    pub word: usize,
}
