//! What is wrong with a configuration, as values.
//!
//! Tools match HAProxy's lines, people need more than HAProxy says. A [`Diagnostic`] therefore carries the words that
//! HAProxy prints apart from our additions (the place within the line, the help), and nothing is turned into text
//! before [`crate::render`]. Reading goes on after an error wherever the next line can be understood without it, so a
//! file's errors are all reported in one run.

use crate::source::Span;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Suspicious; shown in diagnostic mode (`-dD`) only.
    Diag,
    /// Worth knowing.
    Notice,
    /// Probably wrong; fatal with `zero-warning`.
    Warning,
    /// Wrong: nothing starts.
    Alert,
}

/// How a message names its place; HAProxy has several ways and tools know them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// `config : parsing [file:line] : text`, the usual one.
    Parsing,
    /// `config : parsing [file:line]: text`, of the reader of lines.
    Reading,
    /// `config : Parsing [file:line]: text`, about sections as a whole.
    Titled,
    /// `config : [file:line] : text`
    Bracket,
    /// `config : text`, also for what has no place in a file.
    Plain,
    /// `text`: not about the configuration.
    Bare,
}

/// One complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub level: Level,
    /// How the place is named.
    pub style: Style,
    /// The place, if it has one.
    pub span: Option<Span>,
    /// HAProxy's words, without the place, without a full line feed at the end.
    pub text: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Whether it keeps the configuration from being used. All alerts do but the few that HAProxy shrugs off.
    pub fatal: bool,
}

impl Diagnostic {
    /// A complaint about a place, in the usual style.
    pub fn new(level: Level, span: Span, text: impl Into<String>) -> Self {
        Diagnostic {
            level,
            style: Style::Parsing,
            span: Some(span),
            text: text.into(),
            help: None,
            fatal: level == Level::Alert,
        }
    }

    /// An error at a place.
    pub fn alert(span: Span, text: impl Into<String>) -> Self {
        Self::new(Level::Alert, span, text)
    }

    /// A warning at a place.
    pub fn warning(span: Span, text: impl Into<String>) -> Self {
        Self::new(Level::Warning, span, text)
    }

    /// A complaint about the configuration as a whole.
    pub fn plain(level: Level, text: impl Into<String>) -> Self {
        Diagnostic {
            level,
            style: Style::Plain,
            span: None,
            text: text.into(),
            help: None,
            fatal: level == Level::Alert,
        }
    }

    /// The same in another style; a place given before is still shown with the source line.
    #[must_use]
    pub fn styled(self, style: Style) -> Self {
        Diagnostic { style, ..self }
    }

    /// The same, but the configuration is used nevertheless.
    #[must_use]
    pub fn tolerated(self) -> Self {
        Diagnostic { fatal: false, ..self }
    }

    /// The same with a line of help.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// The same with "did you mean" as help, if `near` found something.
    #[must_use]
    pub fn meant(self, near: Option<&str>) -> Self {
        match near {
            Some(near) => self.help(format!("did you mean '{near}' maybe ?")),
            None => self,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All complaints of one run, in the order in which they came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Adds an error at a place.
    pub fn alert(&mut self, span: Span, text: impl Into<String>) {
        self.push(Diagnostic::alert(span, text));
    }

    /// Adds a warning at a place.
    pub fn warning(&mut self, span: Span, text: impl Into<String>) {
        self.push(Diagnostic::warning(span, text));
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, other: Diagnostics) {
        self.items.extend(other.items);
    }

    /// Puts what has a place into the order of the files, as if reading and compiling had been one pass; what has
    /// none, or is said of the whole, comes after it.
    pub fn sort(&mut self) {
        let late =
            |item: &Diagnostic| matches!(item.style, Style::Bracket | Style::Bare) || item.span.is_none();
        self.items.sort_by_key(|item| match item.span {
            Some(span) if !late(item) => (false, span.file, span.line),
            _ => (true, Default::default(), 0),
        });
    }

    /// The complaints in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.items.iter()
    }

    /// How many of a level there are.
    pub fn count(&self, level: Level) -> usize {
        self.items.iter().filter(|item| item.level == level).count()
    }

    /// Whether the configuration can't be used.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.fatal)
    }

    /// Whether one is a warning.
    pub fn has_warnings(&self) -> bool {
        self.items.iter().any(|item| item.level == Level::Warning)
    }

    /// Whether nobody complained.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
