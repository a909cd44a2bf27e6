//! One statement while it is being understood: its words, a place for warnings, and ready-made complaints.
//!
//! Setters are plain functions `fn(&mut Statement, &mut Target) -> Step`. They eat words and either change the
//! target or return the one complaint that keeps the line from being used; the next line is read all the same.

use std::time::Duration;

use syntax::{Args, Diagnostic, Diagnostics, Environment, Level, Line, Modifier, Span, Style, Word};

use crate::draft::Draft;
use crate::units::{self, TimeFault};

/// A line by position: index of its section and of the line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LineRef {
    pub section: u32,
    pub line: u32,
}

/// A setter's outcome.
pub(crate) type Step<T = ()> = Result<T, Diagnostic>;

/// What setters may ask about the surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'c> {
    pub sources: &'c syntax::Sources,
    /// What `$NAME` in addresses stands for.
    pub environment: &'c Environment,
    /// The proxies of the sections above, whose servers can be copied (`from`).
    pub earlier: &'c [Draft],
    /// `expose-experimental-directives`, further up.
    pub experimental: bool,
}

/// A statement being understood.
pub(crate) struct Statement<'c> {
    pub line: &'c Line,
    pub at: LineRef,
    pub args: Args<'c>,
    pub notes: &'c mut Diagnostics,
    pub around: &'c Surroundings<'c>,
    /// The section word.
    pub section: &'c str,
}

impl<'c> Statement<'c> {
    /// The keyword.
    pub fn keyword(&self) -> &'c str {
        self.line.keyword().text()
    }

    /// Whether `no` stands in front.
    pub fn negated(&self) -> bool {
        self.line.modifier() == Modifier::No
    }

    /// Whether `no` or `default` stands in front: the setting goes back to off.
    pub fn off(&self) -> bool {
        self.line.modifier() != Modifier::Set
    }

    /// The word eaten last; the keyword before any argument.
    pub fn eaten(&self) -> &'c Word {
        let before = self.args.position().saturating_sub(1);
        self.line.words().get(before).unwrap_or(self.line.keyword())
    }

    /// An error at the word eaten last.
    pub fn fail(&self, text: impl Into<String>) -> Diagnostic {
        Diagnostic::alert(self.eaten().span(), text)
    }

    /// An error at a span.
    pub fn fail_at(&self, span: Span, text: impl Into<String>) -> Diagnostic {
        Diagnostic::alert(span, text)
    }

    /// A warning at the word eaten last.
    pub fn warn(&mut self, text: impl Into<String>) {
        let span = self.eaten().span();
        self.notes.push(Diagnostic::warning(span, text));
    }

    /// The next word, if there is one that is not empty.
    pub fn next(&mut self) -> Option<&'c Word> {
        let word = self.args.peek().filter(|w| !w.is_empty())?;
        self.args.next();
        Some(word)
    }

    /// The text of the next word without eating it; empty at the end.
    pub fn peek(&self) -> &'c str {
        self.args.peek().map_or("", Word::text)
    }

    /// The next word, or an error with this text.
    pub fn word(&mut self, missing: impl Into<String>) -> Step<&'c Word> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.fail(missing)),
        }
    }

    /// No word may be left.
    pub fn end(&mut self) -> Step {
        match self.args.peek() {
            None => Ok(()),
            Some(extra) => {
                let text = format!("'{}' cannot handle unexpected argument '{extra}'.", self.keyword());
                Err(Diagnostic::alert(extra.span(), text))
            }
        }
    }

    /// One word of leading digits and the end of the line. What is no number counts as zero, as in HAProxy, but
    /// that deserves a warning.
    pub fn integer(&mut self, missing: impl Into<String>) -> Step<i64> {
        let word = self.word(missing)?;
        let number = self.lenient(word);
        self.end()?;
        Ok(number)
    }

    /// A number as HAProxy reads it, with a warning for what is none.
    pub fn lenient(&mut self, word: &Word) -> i64 {
        if units::strict(word.text()).is_none() {
            let text =
                format!("'{}' : '{word}' is not a number, only its leading digits count.", self.keyword());
            self.notes.push(Diagnostic::new(Level::Diag, word.span(), text));
        }
        units::lenient(word.text())
    }

    /// A non-negative number that fits `u32`; greater ones saturate, negative ones are zero.
    pub fn count(&mut self, missing: impl Into<String>) -> Step<u32> {
        Ok(clamp(self.integer(missing)?))
    }

    /// A size behind the keyword `name`.
    pub fn size(&mut self, name: &str) -> Step<u64> {
        let word = self.word(format!("'{name}' expects an integer argument"))?;
        match units::size(word.text()) {
            Ok(size) => Ok(size),
            Err(rest) => Err(self.fail(format!("unexpected '{rest}' after size passed to '{name}'"))),
        }
    }

    /// A time in milliseconds, its faults worded as `unexpected` (the character is filled in) or as overflow of `name`.
    pub fn millis(&mut self, word: &Word, name: &str, unexpected: impl Fn(char) -> String) -> Step<u64> {
        let (ms, trailing) =
            units::tolerant(word.text()).map_err(|fault| self.time_fault(fault, word, name, unexpected))?;
        if let Some(found) = trailing {
            let text = trailing_text(found, word);
            self.notes.push(Diagnostic::warning(word.span(), text).styled(Style::Plain));
        }
        Ok(ms)
    }

    /// The words for a fault of a time.
    pub fn time_fault(
        &self,
        fault: TimeFault,
        word: &Word,
        name: &str,
        unexpected: impl Fn(char) -> String,
    ) -> Diagnostic {
        let text = match fault {
            TimeFault::Unexpected(c) => unexpected(c),
            TimeFault::Overflow => format!(
                "timer overflow in argument '{word}' to '{name}' (maximum value is 2147483647 ms or ~24.8 days)"
            ),
            TimeFault::Underflow => {
                format!("timer underflow in argument '{word}' to '{name}' (minimum non-null value is 1 ms)")
            }
        };
        Diagnostic::alert(word.span(), text)
    }

    /// A mandatory time that counts in seconds where no unit is given; `missing` is said where it is not.
    pub fn seconds(&mut self, missing: &str) -> Step<Duration> {
        let name = self.keyword();
        let word = self.word(format!("'{name}' {missing}"))?;
        let bare = word.text().bytes().all(|b| b.is_ascii_digit());
        let unexpected = |c| format!("unexpected character '{c}' in argument to <{name}>.");
        let ms = match bare {
            true => u64::from(clamp(units::lenient(word.text()))) * 1000,
            false => self.millis(word, name, unexpected)?,
        };
        self.end()?;
        Ok(Duration::from_millis(ms))
    }

    /// A mandatory time in the style of the global section's keywords.
    pub fn plain_time(&mut self) -> Step<Duration> {
        let name = self.keyword();
        let word = self.word(format!("'{name}' expects <time> as argument.\n"))?;
        let ms =
            self.millis(word, name, |c| format!("unexpected character '{c}' in argument to <{name}>.\n"))?;
        self.end()?;
        Ok(Duration::from_millis(ms))
    }
}

/// The words for something behind a unit of time.
pub(crate) fn trailing_text(found: char, word: &Word) -> String {
    format!(
        "unexpected character '{found}' after the timer value '{word}', only (us=microseconds,ms=milliseconds,\
         s=seconds,m=minutes,h=hours,d=days) are supported. This will be reported as an error in next versions."
    )
}

/// A number as an unsigned one: negative ones are zero, great ones saturate.
pub(crate) fn clamp(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// The same complaint without the blank before the last colon, as some of HAProxy's parsers print it.
pub(crate) fn tight(diagnostic: Diagnostic) -> Diagnostic {
    diagnostic.styled(Style::Reading)
}

/// The same complaint in the form `config : [file:line] : text`, as server lines have it.
pub(crate) fn bracket(diagnostic: Diagnostic) -> Diagnostic {
    diagnostic.styled(Style::Bracket)
}
