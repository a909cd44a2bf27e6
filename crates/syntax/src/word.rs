//! Words, lines, and the cursor that eats them.
//!
//! A configuration line is a keyword and its arguments, and nothing more is known here: what the keyword
//! means, how many arguments it takes and whether `{` opens an anonymous ACL is the business of whoever reads
//! the words. Words are owned so that a keyword's entry may keep the ones it needs beyond the tree. Most
//! words are UTF-8, but `\xNN` and old files make others; both views are at hand and only the odd word pays
//! for it.

use crate::source::Span;
use std::fmt;

/// One word after quotes, escapes and variables have been resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    text: Box<str>,
    // Boxed twice to keep the words that are text small; there are very many of them.
    raw: Option<Box<Box<[u8]>>>,
    span: Span,
}

impl Word {
    /// A word with its final bytes and the place where it was written.
    pub fn new(bytes: &[u8], span: Span) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Word { text: text.into(), raw: None, span },
            Err(_) => {
                Word { text: String::from_utf8_lossy(bytes).into(), raw: Some(Box::new(bytes.into())), span }
            }
        }
    }

    /// The word as text; bytes that are not UTF-8 show as U+FFFD. For keywords, names and numbers.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The word's exact bytes. For patterns, payloads, header values: whatever goes to the wire.
    pub fn bytes(&self) -> &[u8] {
        self.raw.as_ref().map_or(self.text.as_bytes(), |raw| raw)
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether nothing is left between the quotes.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, other: &str) -> bool {
        self.bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a leading `no` or `default` asks of the keyword behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Modifier {
    /// The keyword stands alone.
    #[default]
    Set,
    /// `no <keyword>`: switch it off.
    No,
    /// `default <keyword>`: as if it had never been written.
    Default,
}

/// One statement: a keyword, perhaps behind `no` or `default`, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    words: Vec<Word>,
    modifier: Modifier,
}

impl Line {
    /// A line of at least one word; `None` if there is none. A leading `no` or `default` with a word behind
    /// it becomes the modifier.
    pub fn new(mut words: Vec<Word>) -> Option<Self> {
        let modifier = match words.first()?.bytes() {
            b"no" if words.len() > 1 => Modifier::No,
            b"default" if words.len() > 1 => Modifier::Default,
            _ => Modifier::Set,
        };
        if modifier != Modifier::Set {
            words.remove(0);
        }
        words.shrink_to_fit();
        Some(Line { words, modifier })
    }

    /// Whether `no` or `default` came first.
    pub fn modifier(&self) -> Modifier {
        self.modifier
    }

    /// The first word (behind `no` or `default`).
    pub fn keyword(&self) -> &Word {
        // `new` is the one constructor and refuses an empty list.
        &self.words[0]
    }

    /// The words behind the keyword.
    pub fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The keyword and its arguments.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// From the keyword to the end of the last word.
    pub fn span(&self) -> Span {
        let first = self.keyword().span();
        self.words.last().map_or(first, |last| first.to(last.span()))
    }

    /// A cursor that stands before the first argument.
    pub fn cursor(&self) -> Args<'_> {
        Args { words: &self.words, at: 1 }
    }
}

/// Eats the arguments of a line from left to right.
#[derive(Clone, Debug)]
pub struct Args<'t> {
    words: &'t [Word],
    at: usize,
}

impl<'t> Args<'t> {
    /// A cursor over all of `words`. The word eaten last, which is where a missing argument is reported, is
    /// the first one to begin with.
    pub fn new(words: &'t [Word]) -> Self {
        Args { words, at: 0 }
    }

    /// The argument that comes next, without eating it.
    pub fn peek(&self) -> Option<&'t Word> {
        self.words.get(self.at)
    }

    /// The argument `ahead` places behind the next one.
    pub fn peek_at(&self, ahead: usize) -> Option<&'t Word> {
        self.words.get(self.at.checked_add(ahead)?)
    }

    /// Eats the next argument if it is exactly `word`.
    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|next| next == word);
        self.at += usize::from(found);
        found
    }

    /// What has not been eaten yet.
    pub fn rest(&self) -> &'t [Word] {
        self.words.get(self.at..).unwrap_or_default()
    }

    /// Eats everything that is left.
    pub fn eat_rest(&mut self) -> &'t [Word] {
        let rest = self.rest();
        self.at = self.words.len();
        rest
    }

    /// Steps back over the word eaten last.
    pub fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    /// How many words have been eaten, the keyword included.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether all words have been eaten.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.words.len()
    }

    /// The word eaten last (the keyword, before any argument): the place to point at when one is missing.
    pub fn last(&self) -> Option<&'t Word> {
        self.words.get(self.at.saturating_sub(1)).or(self.words.last())
    }

    /// Where a message about what comes next should point: the next word, or the last one when there is none.
    pub fn here(&self) -> Span {
        self.peek().or(self.words.last()).map_or(Span::default(), Word::span)
    }

    /// `Ok` when all words have been eaten, otherwise the first that has not.
    pub fn expect_end(&self) -> Result<(), &'t Word> {
        self.peek().map_or(Ok(()), Err)
    }
}

impl<'t> Iterator for Args<'t> {
    type Item = &'t Word;

    fn next(&mut self) -> Option<&'t Word> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest().len();
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        let words = text.split(' ').enumerate().map(|(at, word)| {
            let at = at as u32;
            Word::new(word.as_bytes(), Span { start: at, end: at + 1, ..Span::default() })
        });
        Line::new(words.collect()).expect("a word")
    }

    #[test]
    fn a_word_keeps_bytes_that_are_not_text() {
        let word = Word::new(b"a\xffb", Span::default());
        assert_eq!(word.bytes(), b"a\xffb");
        assert_eq!(word.text(), "a\u{fffd}b");
        assert!(word != "a\u{fffd}b");
    }

    #[test]
    fn a_modifier_is_taken_off_only_before_a_keyword() {
        let off = line("no option httplog");
        assert_eq!((off.modifier(), off.keyword().text(), off.args().len()), (Modifier::No, "option", 1));
        assert_eq!(line("no").keyword().text(), "no");
        assert_eq!(line("default option x").modifier(), Modifier::Default);
    }

    #[test]
    fn the_cursor_knows_where_something_is_missing() {
        let line = line("bind :80 ssl");
        let mut args = line.cursor();
        assert_eq!(args.next().expect("address").text(), ":80");
        assert!(!args.eat("crt"));
        assert!(args.eat("ssl"));
        assert_eq!(args.expect_end(), Ok(()));
        assert_eq!(args.here().start, 2);
        args.back();
        assert_eq!(args.expect_end().expect_err("ssl is left").text(), "ssl");
    }
}
