//! Files to a tree.
//!
//! A file is read line by line: cut into words, directives obeyed, section words open a section, anything
//! else is a statement of the section that is open. A fault within a line costs that line only.
//!
//! HAProxy reads a configuration twice, the first time only to find out how it shall start; what the first
//! reading left in the environment is visible to the second from its first line. [`read`] therefore does the
//! same whenever an environment keyword occurs anywhere.

use crate::diagnostics::{Diagnostic, Diagnostics, Level, Style};
use crate::directive::{Blocks, Surroundings};
use crate::dump::Dump;
use crate::environment::Environment;
use crate::facts::Facts;
use crate::inherit::Headers;
use crate::settings;
use crate::source::{FileId, Source, Sources, Span};
use crate::tokenize::{Fault, FaultKind, MAX_WORDS, cut};
use crate::tree::{Role, SectionWord, Tree};
use crate::word::{Line, Word};
use std::borrow::Cow;

/// The most bytes that may come out of variables on one line.
const MAX_EXPANDED_LINE: usize = 16 << 20;

/// The most bytes that may come out of variables in all files together.
const MAX_EXPANDED: usize = 64 << 20;

/// What the caller knows and the grammar does not.
#[derive(Clone, Copy)]
pub struct Grammar<'g> {
    /// The words that open sections.
    pub sections: &'g [SectionWord],
    /// The answers to predicates.
    pub facts: &'g dyn Facts,
}

/// What came out of reading.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The sections.
    pub tree: Tree,
    /// The files, for diagnostics.
    pub sources: Sources,
    /// The environment after the last line.
    pub environment: Environment,
    /// What is wrong so far.
    pub diagnostics: Diagnostics,
}

/// Reads files in order into one tree.
pub fn read(files: Vec<Source>, environment: Environment, grammar: Grammar<'_>) -> Reading {
    let mut sources = Sources::default();
    for file in files {
        sources.add(file);
    }
    let environment = match sources.iter().any(changes_environment) {
        true => {
            Reader { rehearsal: true, ..Reader::new(grammar, &sources, environment) }.finish().environment
        }
        false => environment,
    };
    let reader = Reader::new(grammar, &sources, environment).finish();
    let Reader { tree, environment, diagnostics, .. } = reader;
    Reading { tree, sources, environment, diagnostics }
}

/// The text of `-dC`: all lines as they were understood, anonymised unless `key` is zero, and with their
/// numbers if they shall be.
pub fn dump(
    files: Vec<Source>,
    environment: Environment,
    grammar: Grammar<'_>,
    (key, numbered): (u32, bool),
) -> String {
    let mut sources = Sources::default();
    for file in files {
        sources.add(file);
    }
    let mut reader = Reader::new(grammar, &sources, environment);
    reader.dump = Some(Dump::new(key, numbered));
    reader.finish().dump.unwrap_or_default().into_text()
}

/// Whether an environment keyword may occur in a file; all of them end alike.
fn changes_environment(source: &Source) -> bool {
    source.bytes().windows(6).any(|window| window == b"setenv")
}

struct Reader<'r> {
    grammar: Grammar<'r>,
    sources: &'r Sources,
    environment: Environment,
    tree: Tree,
    headers: Headers,
    blocks: Blocks,
    diagnostics: Diagnostics,
    /// How many bytes may still come out of variables.
    budget: usize,
    /// Whether the file at hand has opened a section yet.
    open: bool,
    /// Whether this is the first reading, of which only the environment is kept.
    rehearsal: bool,
    /// Where all lines go if a dump is wanted.
    dump: Option<Dump>,
}

impl<'r> Reader<'r> {
    fn new(grammar: Grammar<'r>, sources: &'r Sources, environment: Environment) -> Self {
        Reader {
            grammar,
            sources,
            environment,
            tree: Tree::default(),
            headers: Headers::default(),
            blocks: Blocks::default(),
            diagnostics: Diagnostics::new(),
            budget: MAX_EXPANDED,
            open: false,
            rehearsal: false,
            dump: None,
        }
    }

    fn finish(mut self) -> Self {
        let sources = self.sources;
        for (number, source) in sources.iter().enumerate() {
            self.open = false;
            if let Some(dump) = &mut self.dump {
                dump.begin_file();
            }
            let file = FileId(u32::try_from(number).unwrap_or(u32::MAX));
            self.read_file(file, source);
            self.end_blocks(file, source);
        }
        self
    }

    fn end_blocks(&mut self, file: FileId, source: &Source) {
        if std::mem::take(&mut self.blocks).is_open() {
            let line = u32::try_from(source.lines()).unwrap_or(u32::MAX);
            self.complain(
                Span { file, line, ..Span::default() },
                0,
                "non-terminated '.if' block.".to_owned(),
            );
        }
    }

    fn read_file(&mut self, file: FileId, source: &Source) {
        let lines = u32::try_from(source.lines()).unwrap_or(u32::MAX);
        for number in 1..=lines {
            let place = Span { file, line: number, ..Span::default() };
            let line = source.line(number);
            if let Some(nul) = line.iter().position(|b| *b == 0) {
                self.complain(place, nul, format!("Stray NUL character at position {}.", nul + 1));
                return;
            }
            self.read_line(line, place);
            if !source.is_complete(number) {
                let text = format!(
                    "Missing LF on last line, file might have been truncated at position {}.",
                    line.len() + 1
                );
                self.complain(place, line.len(), text);
            }
        }
    }

    /// Adds an error of the reader itself, pointing at one byte.
    fn complain(&mut self, place: Span, at: usize, text: String) {
        let start = u32::try_from(at).unwrap_or(u32::MAX);
        let span = Span { start, end: start.saturating_add(1), ..place };
        self.diagnostics.push(Diagnostic::alert(span, text).styled(Style::Reading).of_words());
    }

    fn read_line(&mut self, line: &[u8], place: Span) {
        if self.rehearsal && self.is_idle(line) {
            return;
        }
        let cut = cut(line, place, self.budget.min(MAX_EXPANDED_LINE), |name| self.look_up(name, place));
        self.budget = self.budget.saturating_sub(cut.expanded);
        if let Some(fault) = cut.fault {
            self.complain(place, fault.at, fault_text(fault, &cut.words));
            return;
        }
        if self.dump.is_some() {
            let opens = cut.words.first().is_some_and(|first| self.section_word(first).is_some());
            self.dump.iter_mut().for_each(|dump| dump.line(&cut.words, opens));
        }
        match cut.words.first() {
            Some(first) if first.bytes().starts_with(b".") => self.directive(&cut.words),
            Some(first) if self.blocks.is_live() && !first.is_empty() => self.line(cut.words, line),
            _ => {}
        }
    }

    /// Whether a line can change nothing but the tree: a keyword, plainly written, outside the global
    /// section.
    fn is_idle(&self, line: &[u8]) -> bool {
        let begin = line.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(line.len());
        let line = line.get(begin..).unwrap_or_default();
        let end = line.iter().position(|b| matches!(b, b' ' | b'\t' | b'#')).unwrap_or(line.len());
        let word = line.get(..end).unwrap_or_default();
        let global = self.tree.sections.last().is_some_and(|section| section.role == Role::Global);
        let plain = word.first().is_some_and(u8::is_ascii_lowercase)
            && word.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        plain && !global && self.grammar.sections.iter().all(|entry| entry.word.as_bytes() != word)
    }

    fn directive(&mut self, words: &[Word]) {
        let Reader { environment, grammar, diagnostics, blocks, .. } = self;
        blocks.obey(words, &mut Surroundings { environment, facts: grammar.facts, diagnostics });
    }

    fn line(&mut self, words: Vec<Word>, written: &[u8]) {
        if let Some(number) = words.iter().position(Word::is_empty) {
            let span = words.get(number).map_or(Span::default(), Word::span);
            let at = empty_position(written, span);
            let text = format!(
                "argument number {number} at position {at} is empty and marks the end of the argument list:"
            );
            let help = "an unset variable within quotes is an empty word; \"${NAME[*]}\" vanishes instead";
            return self.diagnostics.push(Diagnostic::alert(span, text).styled(Style::Reading).help(help));
        }
        let Some(line) = Line::new(words) else { return };
        if !settings::may_be_modified(&line) {
            let complaint = Diagnostic::alert(line.keyword().span(), settings::NOT_MODIFIABLE);
            return self.diagnostics.push(complaint.styled(Style::Reading).of_words());
        }
        self.statement(line);
    }

    fn look_up(&self, name: &[u8], place: Span) -> Option<Cow<'_, [u8]>> {
        match name {
            b".FILE" => Some(self.sources.name(place.file).as_bytes().into()),
            b".LINE" => Some(place.line.to_string().into_bytes().into()),
            b".SECTION" => Some(self.section_label().into()),
            _ => self.environment.get(name).map(Cow::Borrowed),
        }
    }

    /// The name of the open section, or its word if it has none.
    fn section_label(&self) -> &[u8] {
        let section = self.tree.sections.last();
        section.map_or(b"", |section| section.name.as_ref().unwrap_or(section.header.keyword()).bytes())
    }

    fn statement(&mut self, line: Line) {
        let keyword = line.keyword();
        if let Some(word) = self.section_word(keyword) {
            return self.open_section(word.role, line);
        }
        match self.tree.sections.last_mut().filter(|_| self.open) {
            Some(section) => {
                if section.role == Role::Global {
                    settings::obey(&line, &mut self.environment, &mut self.diagnostics);
                }
                section.lines.push(line);
            }
            None => {
                let near = crate::nearest(keyword.text(), self.grammar.sections.iter().map(|word| word.word));
                let text = format!("unknown keyword '{keyword}' out of section.");
                let complaint = Diagnostic::new(Level::Alert, keyword.span(), text);
                self.diagnostics.push(complaint.styled(Style::Reading).meant(near));
            }
        }
    }

    fn section_word(&self, word: &Word) -> Option<&'r SectionWord> {
        self.grammar.sections.iter().find(|entry| word == entry.word)
    }

    fn open_section(&mut self, role: Role, header: Line) {
        self.open = true;
        self.headers.open(role, header, &mut self.tree, self.sources, &mut self.diagnostics);
    }
}

/// The place of an empty word as HAProxy counts it: behind the quote, or the beginning of the variable's
/// name.
fn empty_position(line: &[u8], span: Span) -> usize {
    let word = line.get(span.start as usize..).unwrap_or_default();
    let lead = word.get(1..).unwrap_or_default().iter().take_while(|b| matches!(b, b'$' | b'{')).count();
    span.start as usize + 2 + lead
}

fn fault_text(fault: Fault, words: &[Word]) -> String {
    let at = fault.at + 1;
    match fault.kind {
        FaultKind::Quote => format!("unmatched quote at position {at}:"),
        FaultKind::Brace => format!("unmatched brace in environment variable name at position {at}:"),
        FaultKind::Hex => format!("truncated or invalid hexadecimal sequence at position {at}:"),
        FaultKind::Name => format!("forbidden first char in environment variable name at position {at}:"),
        FaultKind::List => format!("truncated or invalid word expansion sequence at position {at}:"),
        FaultKind::TooMany => {
            let last = words.last().map_or("", Word::text);
            let ahead = words.iter().rev().skip(1).map(|word| word.bytes().len() + 1).sum::<usize>();
            format!("too many words, truncating after word {MAX_WORDS}, position {}: <{last}>.", ahead + 1)
        }
        FaultKind::TooLong => format!("variables expand to more than can be handled at position {at}:"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
