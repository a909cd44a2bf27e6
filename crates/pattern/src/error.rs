//! What can be wrong with a pattern, a pattern file, or a change of a set.

use std::fmt;

/// A pattern that its kind can't read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Line of the pattern file, counted from 1; 0 when it came from no file.
    pub line: u32,
    /// The pattern as written.
    pub pattern: Vec<u8>,
    /// Why, in HAProxy's words.
    pub text: String,
}

impl PatternError {
    pub(crate) fn new(pattern: &[u8], text: impl Into<String>) -> PatternError {
        PatternError { line: 0, pattern: pattern.to_vec(), text: text.into() }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PatternError {}

/// Why a pattern file wasn't loaded.
#[derive(Debug)]
pub enum LoadError {
    /// It can't be opened or read.
    Io(std::io::Error),
    /// One of its lines is wrong.
    Pattern(PatternError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io(e) => e.fmt(f),
            LoadError::Pattern(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<std::io::Error> for LoadError {
    fn from(e: std::io::Error) -> LoadError {
        LoadError::Io(e)
    }
}

impl From<PatternError> for LoadError {
    fn from(e: PatternError) -> LoadError {
        LoadError::Pattern(e)
    }
}

/// Why a change made at run time was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// The new pattern can't be read by one of the views of the set.
    Pattern(PatternError),
    /// No entry has that key or reference.
    NotFound,
    /// The version was never prepared, or is older than the current one.
    Version,
    /// A map entry needs a value, an ACL entry has none.
    Value,
    /// A value that the configuration reads as a number or an address is none.
    Unread(Vec<u8>),
    /// More text than one set can hold (4 GiB between two merges).
    Full,
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Pattern(e) => e.fmt(f),
            ChangeError::NotFound => f.write_str("entry not found"),
            ChangeError::Version => f.write_str("version number out of range"),
            ChangeError::Value => f.write_str("a map entry needs a value"),
            ChangeError::Unread(value) => write!(f, "unable to parse '{}'", String::from_utf8_lossy(value)),
            ChangeError::Full => f.write_str("out of memory"),
        }
    }
}

impl std::error::Error for ChangeError {}

impl From<PatternError> for ChangeError {
    fn from(e: PatternError) -> ChangeError {
        ChangeError::Pattern(e)
    }
}
