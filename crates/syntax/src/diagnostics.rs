//! What is wrong with a configuration, as values.
//!
//! Tools match HAProxy's lines, people need more than HAProxy says. A [`Diagnostic`] therefore carries the
//! words that HAProxy prints apart from our additions (the place within the line, the help), and nothing is
//! turned into text before [`crate::render`]. Reading goes on after an error wherever the next line can be
//! understood without it, so a file's errors are all reported in one run.

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

/// When it came up: lines are read first, and only when nothing was wrong with any of them is looked at how
/// they fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// While lines were taken apart into words; HAProxy does that with all of them before it reads any.
    Words,
    /// While lines were read; told in the order of the lines.
    Reading,
    /// When all lines had been read; told in the order in which it came up, unless a line was wrong.
    Fitting,
    /// When the parts were known to fit together, and what they name was looked up and opened; told unless
    /// anything was wrong before.
    Settling,
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
    /// When it came up.
    pub phase: Phase,
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
            phase: Phase::Reading,
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

    /// A remark about a place that is in order.
    pub fn notice(span: Span, text: impl Into<String>) -> Self {
        Self::new(Level::Notice, span, text)
    }

    /// A complaint about the configuration as a whole.
    pub fn plain(level: Level, text: impl Into<String>) -> Self {
        Diagnostic {
            level,
            phase: Phase::Fitting,
            style: Style::Plain,
            span: None,
            text: text.into(),
            help: None,
            fatal: level == Level::Alert,
        }
    }

    /// The same in another style; a place given before is still shown with the source line. What is not said
    /// of the configuration's lines is said when all of them have been read.
    #[must_use]
    pub fn styled(self, style: Style) -> Self {
        let phase = if style == Style::Bare { Phase::Fitting } else { self.phase };
        Diagnostic { style, phase, ..self }
    }

    /// The same, found while lines were taken apart.
    #[must_use]
    pub fn of_words(self) -> Self {
        Diagnostic { phase: Phase::Words, ..self }
    }

    /// The same, found when all lines had been read.
    #[must_use]
    pub fn fitting(self) -> Self {
        Diagnostic { phase: Phase::Fitting, ..self }
    }

    /// The same, found when everything was known to fit together.
    #[must_use]
    pub fn settling(self) -> Self {
        Diagnostic { phase: Phase::Settling, ..self }
    }

    /// The same, but the configuration is used nevertheless.
    #[must_use]
    pub fn tolerated(self) -> Self {
        Diagnostic { fatal: false, ..self }
    }

    /// Whether it is an error of a line, and not of how lines fit together.
    pub fn is_of_reading(&self) -> bool {
        self.fatal && self.phase < Phase::Fitting
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

    /// Adds a remark about a place.
    pub fn notice(&mut self, span: Span, text: impl Into<String>) {
        self.push(Diagnostic::notice(span, text));
    }

    /// The same, what is not of single lines found when everything was known to fit together.
    #[must_use]
    pub fn settling(mut self) -> Diagnostics {
        for item in self.items.iter_mut().filter(|item| item.phase == Phase::Fitting) {
            item.phase = Phase::Settling;
        }
        self
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, other: Diagnostics) {
        self.items.extend(other.items);
    }

    /// Puts what came up while lines were read into the order of the files, as if reading and compiling had
    /// been one pass; what came up afterwards follows as it is.
    pub fn sort(&mut self) {
        self.items.sort_by_key(|item| match item.span {
            Some(span) if item.phase < Phase::Fitting => (item.phase, span.file, span.line),
            _ => (item.phase, Default::default(), 0),
        });
    }

    /// Exchanges neighbours about the same line whose order `wrong` finds fault with.
    pub fn reorder(&mut self, wrong: impl Fn(&Diagnostic, &Diagnostic) -> bool) {
        let line = |item: &Diagnostic| item.span.map(|span| (span.file, span.line));
        for at in 1..self.items.len() {
            if let [.., first, second] = &self.items[..=at]
                && line(first) == line(second)
                && wrong(first, second)
            {
                self.items.swap(at - 1, at);
            }
        }
    }

    /// Keeps those that `wanted` is true of.
    pub fn retain(&mut self, wanted: impl FnMut(&Diagnostic) -> bool) {
        self.items.retain(wanted);
    }

    /// The complaints in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.items.iter()
    }

    /// How many of a level there are.
    pub fn count(&self, level: Level) -> usize {
        self.items.iter().filter(|item| item.level == level).count()
    }

    /// Leaves out what would not have been looked for: the phases behind one that found an error.
    pub fn stop_at_errors(&mut self) {
        let first =
            self.items.iter().filter(|item| item.fatal).map(|item| item.phase.max(Phase::Reading)).min();
        if let Some(last) = first {
            self.items.retain(|item| item.phase <= last);
        }
    }

    /// Whether an error was found so far that keeps the parts from being looked at together.
    pub fn stops_settling(&self) -> bool {
        self.items.iter().any(|item| item.fatal && item.phase < Phase::Settling)
    }

    /// Whether the configuration can't be used.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.fatal)
    }

    /// Whether one is a warning.
    pub fn has_warnings(&self) -> bool {
        self.items.iter().any(|item| item.level == Level::Warning)
    }

    /// Whether one is a warning that HAProxy gives as well. What Harrier alone has to say names it.
    pub fn has_common_warnings(&self) -> bool {
        self.items.iter().any(|item| item.level == Level::Warning && !item.text.contains("Harrier"))
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
