//! One statement while it is being understood: its words, a place for warnings, and ready-made complaints.
//!
//! Setters are plain functions `fn(&mut Statement, &mut Target) -> Step`. They eat words and either change
//! the target or return the one complaint that keeps the line from being used; the next line is read all the
//! same.

use std::time::Duration;

use syntax::{Args, Diagnostic, Diagnostics, Environment, Level, Line, Modifier, Span, Style, Word};

use crate::draft::{Above, Draft, LineRef};
use crate::units::{self, TimeFault};

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
    /// `description` of `global`, further up.
    pub described: bool,
    /// The `log` lines of `global`, further up.
    pub logged: Above,
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

    /// Nothing may stand behind the first word, and that is told before the word is looked at.
    pub fn at_most_one(&self) -> Step {
        match self.line.args().get(1) {
            None => Ok(()),
            Some(extra) => {
                let text = format!("'{}' cannot handle unexpected argument '{extra}'.", self.keyword());
                Err(self.fail_at(extra.span(), text))
            }
        }
    }

    /// The word behind the keyword, empty if there is none, and nothing behind it.
    pub fn only(&mut self) -> Step<&'c str> {
        let word = self.next().map_or("", Word::text);
        self.end()?;
        Ok(word)
    }

    /// One word of leading digits and the end of the line. What is no number counts as zero, as in HAProxy,
    /// but that deserves a warning.
    pub fn integer(&mut self, missing: impl Into<String>) -> Step<i64> {
        let word = self.word(missing)?;
        self.end()?;
        Ok(self.lenient(word))
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

    /// The same of a number that must not be negative; `wrong` is said of one that is.
    pub fn positive(&mut self, missing: &str, wrong: &str) -> Step<u32> {
        let n = self.integer(missing)?;
        u32::try_from(n).map_err(|_| self.fail(wrong))
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

    /// A time in milliseconds, its faults worded as `unexpected` (the character is filled in) or as overflow
    /// of `name`.
    pub fn millis(&mut self, word: &Word, name: &str, unexpected: impl Fn(char) -> String) -> Step<u64> {
        let (ms, trailing) =
            units::tolerant(word.text()).map_err(|fault| self.time_fault(fault, word, name, unexpected))?;
        if let Some(found) = trailing {
            self.trailing(word, found);
        }
        Ok(ms)
    }

    /// Warns of something behind a unit of time.
    pub fn trailing(&mut self, word: &Word, found: char) {
        let text = trailing_text(found, word);
        self.notes.push(Diagnostic::warning(word.span(), text).styled(Style::Plain));
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
        };
        Diagnostic::alert(word.span(), text)
    }

    /// A mandatory time that counts in seconds where no unit is given; `missing` is said where it is not.
    pub fn seconds(&mut self, missing: &str) -> Step<Duration> {
        let name = self.keyword();
        let word = self.word(format!("'{name}' {missing}"))?;
        let seconds = match base::units::time(word.text(), base::units::Unit::Second) {
            Ok(n) => n,
            Err(base::units::TimeError::Trailing { value, found }) => {
                self.trailing(word, found);
                value
            }
            Err(base::units::TimeError::Overflow) => {
                return Err(self.fail(format!(
                    "timer overflow in argument '{word}' to <{name}> (maximum value is 2147483647 s or ~68 years)"
                )));
            }
            Err(_) => {
                let odd = word.text().chars().next().unwrap_or('\0');
                let odd = word.text().chars().find(|c| !c.is_ascii_digit()).unwrap_or(odd);
                return Err(self.fail(format!("unexpected character '{odd}' in argument to <{name}>.")));
            }
        };
        self.end()?;
        Ok(Duration::from_secs(seconds.into()))
    }

    /// A mandatory time in the style of the global section's keywords.
    pub fn plain_time(&mut self) -> Step<Duration> {
        let name = self.keyword();
        let word = self.word(format!("'{name}' expects <time> as argument.\n"))?;
        let ms =
            self.millis(word, name, |c| format!("unexpected character '{c}' in argument to <{name}>.\n"))?;
        Ok(Duration::from_millis(ms))
    }
}

/// What is said of a bare number where a time of less than 100 ms is seldom meant; nothing of other words.
pub(crate) fn suspicious(name: &str, word: &Word, of: &str) -> Option<String> {
    let bare = word.text().bytes().all(|b| b.is_ascii_digit());
    let small = word.text().parse::<u64>().ok().filter(|ms| bare && (1..100).contains(ms));
    small.map(|ms| {
        format!(
            "'{name} {ms}' in {of} is suspiciously small for a value in milliseconds. Please use an explicit unit ('{ms}ms') if that was the intent."
        )
    })
}

/// The words for something behind a unit of time.
pub(crate) fn trailing_text(found: char, word: &Word) -> String {
    base::units::TimeError::Trailing { value: 0, found }.text(word.text(), "")
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

/// A unique name has no odd characters and at most 127.
pub(crate) fn unique_name(text: &str) -> Result<Box<str>, String> {
    let odd = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.'));
    match text.chars().find(odd) {
        _ if text.len() > 127 => Err("invalid length".into()),
        Some(odd) => Err(format!("invalid character '{odd}'")),
        None => Ok(text.into()),
    }
}
