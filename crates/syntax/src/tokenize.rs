//! A line of bytes to words: quotes, escapes, variables, comments (manual, sections 2.2 and 2.3).
//!
//! One pass from left to right in one of three moods: outside quotes, within weak quotes, within strong
//! quotes. A word exists as soon as anything of it was written, so `""` is an empty word and an unset
//! variable within quotes is one too. Expansion could double a line's length with every line of a file, hence
//! the budget.

use crate::source::Span;
use crate::word::Word;
use std::borrow::Cow;

/// The most words that a line may have.
pub const MAX_WORDS: usize = 64;

/// What is wrong with a line, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The byte of the line to point at.
    pub at: usize,
}

/// What can be wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A quote is never closed.
    Quote,
    /// `${` is never closed.
    Brace,
    /// `\x` without two hexadecimal digits.
    Hex,
    /// `$` is not followed by a name.
    Name,
    /// `[` in a variable that is not `[*]`.
    List,
    /// More than [`MAX_WORDS`] words.
    TooMany,
    /// More bytes out of variables than the budget allows.
    TooLong,
}

/// The words of a line, and what is wrong with it. Words in front of the fault are there in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The words.
    pub words: Vec<Word>,
    /// How many bytes of them came out of variables.
    pub expanded: usize,
    /// The first fault.
    pub fault: Option<Fault>,
}

/// Cuts a line into words. `lookup` tells the values of variables; `place` gives file and line to the words'
/// spans; no more than `budget` bytes may come out of variables.
pub fn cut<'v>(
    line: &[u8],
    place: Span,
    budget: usize,
    lookup: impl Fn(&[u8]) -> Option<Cow<'v, [u8]>>,
) -> Cut {
    cut_until(line, place, budget, b"#\r", lookup)
}

/// The words of a condition on the command line, joined by one blank: what `#` begins is no comment there.
///
/// # Errors
/// What is wrong with the quotes, escapes and variables.
pub fn unquote(text: &str, environment: &crate::Environment) -> Result<String, FaultKind> {
    let lookup = |name: &[u8]| environment.get(name).map(Cow::Borrowed);
    let cut = cut_until(text.as_bytes(), Span::default(), usize::MAX, b"", lookup);
    match cut.fault {
        Some(fault) => Err(fault.kind),
        None => Ok(cut.words.iter().map(Word::text).collect::<Vec<_>>().join(" ")),
    }
}

fn cut_until<'v>(
    line: &[u8],
    place: Span,
    budget: usize,
    ends: &'static [u8],
    lookup: impl Fn(&[u8]) -> Option<Cow<'v, [u8]>>,
) -> Cut {
    let mut cutter = Cutter {
        line,
        at: 0,
        place,
        ends,
        words: Vec::with_capacity(16),
        word: Vec::with_capacity(64),
        start: None,
        budget,
        expanded: 0,
        vanished: false,
    };
    let fault = cutter.run(&lookup).err();
    Cut { words: cutter.words, expanded: cutter.expanded, fault }
}

struct Cutter<'l> {
    line: &'l [u8],
    at: usize,
    place: Span,
    /// The bytes that end the line outside quotes.
    ends: &'static [u8],
    words: Vec<Word>,
    word: Vec<u8>,
    start: Option<usize>,
    budget: usize,
    expanded: usize,
    /// Whether a list without elements stood in the word: if nothing else does, there is no word.
    vanished: bool,
}

type Step = Result<(), Fault>;

impl Cutter<'_> {
    fn run<'v>(&mut self, lookup: &impl Fn(&[u8]) -> Option<Cow<'v, [u8]>>) -> Step {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => {
                    self.end_word(self.at)?;
                    self.at += 1;
                }
                byte if self.ends.contains(&byte) => break,
                b'"' => self.weak(lookup)?,
                b'\'' => self.strong()?,
                b'\\' => self.escape(false)?,
                _ => self.run_of(is_plain),
            }
        }
        self.end_word(self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn fault<T>(&self, kind: FaultKind, at: usize) -> Result<T, Fault> {
        Err(Fault { kind, at })
    }

    fn begin(&mut self) {
        self.start.get_or_insert(self.at);
    }

    fn plain(&mut self, byte: u8) -> Step {
        self.begin();
        self.word.push(byte);
        self.at += 1;
        Ok(())
    }

    /// Takes all bytes that mean nothing but themselves; the first one is known to.
    fn run_of(&mut self, plain: impl Fn(u8) -> bool) {
        self.begin();
        let rest = self.line.get(self.at..).unwrap_or_default();
        let length = rest.iter().skip(1).position(|b| !plain(*b)).map_or(rest.len(), |at| at + 1);
        self.word.extend_from_slice(rest.get(..length).unwrap_or_default());
        self.at += length;
    }

    fn end_word(&mut self, end: usize) -> Step {
        let Some(start) = self.start.take() else { return Ok(()) };
        if std::mem::take(&mut self.vanished) && self.word.is_empty() {
            return Ok(());
        }
        if self.words.len() == MAX_WORDS {
            return self.fault(FaultKind::TooMany, start);
        }
        let column = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = Span { start: column(start), end: column(end), ..self.place };
        let length = self.word.iter().position(|b| *b == 0).unwrap_or(self.word.len());
        self.words.push(Word::new(self.word.get(..length).unwrap_or_default(), span));
        self.word.clear();
        Ok(())
    }

    fn strong(&mut self) -> Step {
        self.begin();
        let open = self.at;
        let inside = self.line.get(open + 1..).unwrap_or_default();
        let Some(length) = inside.iter().position(|b| *b == b'\'') else {
            return self.fault(FaultKind::Quote, open);
        };
        self.word.extend_from_slice(inside.get(..length).unwrap_or_default());
        self.at = open + length + 2;
        Ok(())
    }

    fn weak<'v>(&mut self, lookup: &impl Fn(&[u8]) -> Option<Cow<'v, [u8]>>) -> Step {
        self.begin();
        let open = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return self.fault(FaultKind::Quote, open),
                Some(b'"') => break self.at += 1,
                Some(b'\\') => self.escape(true)?,
                Some(b'$') => self.variable(lookup)?,
                Some(_) => self.run_of(|b| !matches!(b, b'"' | b'\\' | b'$')),
            }
        }
        Ok(())
    }

    /// Resolves what stands behind a backslash. What is not known as an escape keeps its backslash.
    fn escape(&mut self, weak: bool) -> Step {
        self.begin();
        let at = self.at;
        let next = self.line.get(at + 1).copied();
        let byte = match next {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => return self.hex(at),
            Some(byte @ (b'\\' | b'"' | b'\'' | b'#' | b' ')) => byte,
            Some(byte @ b'$') if weak => byte,
            _ => return self.plain(b'\\'),
        };
        self.word.push(byte);
        self.at += 2;
        Ok(())
    }

    fn hex(&mut self, at: usize) -> Step {
        let digit = |at: usize| (*self.line.get(at)? as char).to_digit(16);
        let (Some(high), Some(low)) = (digit(at + 2), digit(at + 3)) else {
            return self.fault(FaultKind::Hex, at);
        };
        self.word.push((high * 16 + low) as u8);
        self.at += 4;
        Ok(())
    }

    /// Expands `$NAME`, `${NAME}`, `${NAME-default}` and `${NAME[*]}`.
    fn variable<'v>(&mut self, lookup: &impl Fn(&[u8]) -> Option<Cow<'v, [u8]>>) -> Step {
        let dollar = self.at;
        let braced = self.line.get(dollar + 1) == Some(&b'{');
        let from = dollar + 1 + usize::from(braced);
        let tail = self.line.get(from..).unwrap_or_default();
        let length = name_length(tail);
        if length == 0 {
            return self.fault(FaultKind::Name, from);
        }
        let (name, tail) = tail.split_at(length);
        let mut end = from + length;
        let (mut listed, mut default) = (false, None);
        if braced {
            let Some(close) = tail.iter().position(|b| *b == b'}') else {
                return self.fault(FaultKind::Brace, dollar + 1);
            };
            let mut inside = tail.get(..close).unwrap_or_default();
            if inside.first() == Some(&b'[') {
                let Some(rest) = inside.strip_prefix(b"[*]") else {
                    return self.fault(FaultKind::List, end);
                };
                (listed, inside) = (true, rest);
            }
            match inside.strip_prefix(b"-") {
                Some(rest) => default = Some(rest),
                None if !inside.is_empty() => return self.fault(FaultKind::Brace, dollar + 1),
                None => {}
            }
            end += close + 1;
        }
        let value = lookup(name);
        let value = value.as_deref().or(default).unwrap_or_default();
        self.at = end;
        if listed { self.spread(value, end) } else { self.append(value) }
    }

    fn append(&mut self, value: &[u8]) -> Step {
        self.expanded = self.expanded.saturating_add(value.len());
        if self.expanded > self.budget {
            return self.fault(FaultKind::TooLong, self.at);
        }
        self.word.extend_from_slice(value);
        Ok(())
    }

    /// Spaces in a list's value delimit words as they do outside quotes.
    fn spread(&mut self, value: &[u8], end: usize) -> Step {
        let start = self.start;
        for (number, part) in value.split(|b| *b == b' ').enumerate() {
            if number > 0 && !self.word.is_empty() {
                self.end_word(end)?;
                self.start = start;
            }
            self.append(part)?;
        }
        self.vanished |= self.word.is_empty();
        Ok(())
    }
}

/// Whether a byte outside quotes stands for itself.
fn is_plain(byte: u8) -> bool {
    !matches!(byte, b' ' | b'\t' | b'#' | b'\r' | b'"' | b'\'' | b'\\')
}

/// How many bytes of `text` are a variable's name; a leading dot makes a pseudo-variable.
fn name_length(text: &[u8]) -> usize {
    let dot = usize::from(text.first() == Some(&b'.'));
    let name = text.get(dot..).unwrap_or_default();
    if name.first().is_none_or(|b| b.is_ascii_digit()) {
        return 0;
    }
    let length = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let known = dot == 0 || matches!(name.get(..length), Some(b"FILE" | b"LINE" | b"SECTION"));
    if length == 0 || !known { 0 } else { dot + length }
}
