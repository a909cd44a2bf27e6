//! Reading the words of a configuration line: a cursor, and faults that know their word.

use std::fmt;

/// What is wrong with a rule, and at which word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In HAProxy's words as far as tools match them.
    pub text: String,
    /// Index of the word at fault in the line given to the parser.
    pub word: Option<usize>,
    /// What would be right, if it can be said.
    pub help: Option<String>,
}

impl Fault {
    /// A fault of the line as a whole.
    pub fn new(text: impl Into<String>) -> Fault {
        Fault { text: text.into(), word: None, help: None }
    }

    /// Points at a word, unless one is pointed at already.
    pub fn at(mut self, word: usize) -> Fault {
        self.word.get_or_insert(word);
        self
    }

    /// Adds a way out.
    pub fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    /// Puts words in front of the text, as outer parsers do.
    pub fn within(mut self, outer: impl fmt::Display) -> Fault {
        self.text = format!("{outer} : {}", self.text);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A cursor over the decoded words of a line.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    list: &'a [&'a [u8]],
    at: usize,
}

impl<'a> Words<'a> {
    /// Over a list of words, starting at the first.
    pub fn new(list: &'a [&'a [u8]]) -> Words<'a> {
        Words { list, at: 0 }
    }

    /// Index of the next word.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes back or forth to a word.
    pub fn seek(&mut self, position: usize) {
        self.at = position.min(self.list.len());
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.list.get(self.at).copied()
    }

    /// The next word as text, without taking it; words that are not UTF-8 are no keyword.
    pub fn peek_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.peek()?).ok()
    }

    /// Takes the next word, if there is one. Not an iterator: parsers peek and seek.
    pub fn take(&mut self) -> Option<&'a [u8]> {
        let w = self.peek()?;
        self.at += 1;
        Some(w)
    }

    /// Takes the next word as text.
    ///
    /// # Errors
    /// `missing` as the text when there is none; a word that is not UTF-8.
    pub fn expect(&mut self, missing: &str) -> Result<&'a str, Fault> {
        let at = self.at;
        let w = self.take().ok_or_else(|| Fault::new(missing).at(at.saturating_sub(1)))?;
        std::str::from_utf8(w).map_err(|_| Fault::new("invalid characters").at(at))
    }

    /// Takes the next word if it is `word`.
    pub fn take_if(&mut self, word: &str) -> bool {
        let same = self.peek() == Some(word.as_bytes());
        self.at += usize::from(same);
        same
    }

    /// What was taken from word `from` on.
    pub fn since(&self, from: usize) -> &'a [&'a [u8]] {
        self.list.get(from..self.at).unwrap_or_default()
    }

    /// What was not taken.
    pub fn rest(&self) -> &'a [&'a [u8]] {
        &self.list[self.at..]
    }

    /// Whether all words are taken.
    pub fn is_empty(&self) -> bool {
        self.at >= self.list.len()
    }
}
