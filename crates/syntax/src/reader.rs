//! Files to a tree.
//!
//! A file is read line by line: cut into words, directives obeyed, section words open a section, anything else is a
//! statement of the section that is open. A fault within a line costs that line only.
//!
//! HAProxy reads a configuration twice, the first time only to find out how it shall start; what the first reading
//! left in the environment is visible to the second from its first line. [`read`] therefore does the same whenever an
//! environment keyword occurs anywhere.

use crate::diagnostics::{Diagnostic, Diagnostics, Level, Style};
use crate::environment::Environment;
use crate::facts::Facts;
use crate::settings;
use crate::source::{FileId, Source, Sources, Span};
use crate::tokenize::{Fault, FaultKind, cut};
use crate::tree::{Inherited, Role, Section, SectionWord, Tree};
use crate::word::Line;
use std::borrow::Cow;

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
    let mut reader = Reader::new(grammar, &sources, environment);
    reader.read_all();
    let Reader { tree, environment, diagnostics, .. } = reader;
    Reading { tree, sources, environment, diagnostics }
}

struct Reader<'r> {
    grammar: Grammar<'r>,
    sources: &'r Sources,
    environment: Environment,
    tree: Tree,
    diagnostics: Diagnostics,
    /// Whether the file at hand has opened a section yet.
    open: bool,
}

impl<'r> Reader<'r> {
    fn new(grammar: Grammar<'r>, sources: &'r Sources, environment: Environment) -> Self {
        Reader {
            grammar,
            sources,
            environment,
            tree: Tree::default(),
            diagnostics: Diagnostics::new(),
            open: false,
        }
    }

    fn read_all(&mut self) {
        let sources = self.sources;
        for (number, source) in sources.iter().enumerate() {
            self.open = false;
            let file = FileId(u32::try_from(number).unwrap_or(u32::MAX));
            self.read_file(file, source);
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
        self.diagnostics.push(Diagnostic::alert(span, text).styled(Style::Reading));
    }

    fn read_line(&mut self, line: &[u8], place: Span) {
        let cut = cut(line, place, |name| self.look_up(name, place));
        if let Some(fault) = cut.fault {
            self.complain(place, fault.at, fault_text(fault));
            return;
        }
        if let Some(line) = Line::new(cut.words) {
            self.statement(line);
        }
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
        if let Some(word) = self.grammar.sections.iter().find(|word| keyword == word.word) {
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

    fn open_section(&mut self, role: Role, header: Line) {
        self.open = true;
        let name = header.args().first().filter(|_| role != Role::Global).cloned();
        let inherits = Inherited::Nothing;
        self.tree.sections.push(Section { header, role, name, inherits, lines: Vec::new() });
    }
}

fn fault_text(fault: Fault) -> String {
    let at = fault.at + 1;
    match fault.kind {
        FaultKind::Quote => format!("unmatched quote at position {at}:"),
        FaultKind::Brace => format!("unmatched brace in environment variable name at position {at}:"),
        FaultKind::Hex => format!("truncated or invalid hexadecimal sequence at position {at}:"),
        FaultKind::Name => format!("forbidden first char in environment variable name at position {at}:"),
        FaultKind::List => format!("truncated or invalid word expansion sequence at position {at}:"),
        FaultKind::TooMany => format!("too many words at position {at}:"),
        FaultKind::TooLong => format!("line too long at position {at}:"),
    }
}

#[cfg(test)]
mod tests;
