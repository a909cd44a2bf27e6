//! Lines that begin with a dot: conditional blocks and messages (manual, section 2.4).
//!
//! The open blocks of a file are a stack of three-valued states. A block whose condition can't be evaluated
//! counts as decided, so that neither of its branches adds errors that nobody can make sense of.

use crate::condition::{self, ConditionError};
use crate::diagnostics::{Diagnostic, Diagnostics, Level, Style};
use crate::environment::Environment;
use crate::facts::Facts;
use crate::source::Span;
use crate::word::Word;

/// What an open block does with the lines that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// Read: its condition is true.
    Taken,
    /// Skipped until a branch with a true condition comes.
    Waiting,
    /// Skipped until the end of the block: another branch was taken, or the whole block lies in a skipped
    /// one.
    Decided,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    branch: Branch,
    has_else: bool,
}

/// The open blocks of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    stack: Vec<Block>,
}

/// What directives look at and talk to.
pub(crate) struct Surroundings<'s> {
    pub(crate) environment: &'s Environment,
    pub(crate) facts: &'s dyn Facts,
    pub(crate) diagnostics: &'s mut Diagnostics,
}

/// All directives.
const DIRECTIVES: &[&str] = &[".if", ".elif", ".else", ".endif", ".diag", ".notice", ".warning", ".alert"];

impl Surroundings<'_> {
    fn say(&mut self, level: Level, span: Span, text: String) {
        self.diagnostics.push(Diagnostic::new(level, span, text).styled(Style::Reading));
    }

    fn unexpected(&mut self, word: Option<&Word>, directive: &Word, more: &str) -> bool {
        if let Some(word) = word {
            let text = format!("Unexpected argument '{word}' for '{directive}'.{more}");
            self.say(Level::Alert, word.span(), text);
        }
        word.is_some()
    }

    /// Evaluates the words behind the directive; they are one text with a space between each two.
    fn evaluate(&mut self, words: &[Word], directive: &Word) -> Option<bool> {
        let texts: Vec<&str> = words.iter().map(Word::text).collect();
        match condition::evaluate(&texts.join(" "), self.environment, self.facts) {
            Ok(value) => Some(value),
            Err(ConditionError { text, at }) => {
                let span = point(words, at).unwrap_or(directive.span());
                self.say(Level::Alert, span, format!("{text} in '{directive}' at position {}:", at + 1));
                None
            }
        }
    }
}

/// The word that byte `at` of the joined words lies in, from that byte on if it was written as it is.
fn point(words: &[Word], at: usize) -> Option<Span> {
    let mut start = 0;
    for word in words {
        let end = start + word.text().len();
        if at <= end {
            let mut span = word.span();
            let written = (span.end.saturating_sub(span.start)) as usize == word.text().len();
            if written && at < end {
                span.start += u32::try_from(at - start).unwrap_or(0);
            }
            return Some(span);
        }
        start = end + 1;
    }
    words.last().map(Word::span)
}

impl Blocks {
    /// Whether lines are read, not skipped.
    pub(crate) fn is_live(&self) -> bool {
        self.stack.last().is_none_or(|block| block.branch == Branch::Taken)
    }

    /// Whether a block is still open.
    pub(crate) fn is_open(&self) -> bool {
        !self.stack.is_empty()
    }

    /// Obeys a directive. `words` begins with it.
    pub(crate) fn obey(&mut self, words: &[Word], around: &mut Surroundings<'_>) {
        let Some((directive, args)) = words.split_first() else { return };
        match directive.text() {
            ".if" => self.open(directive, args, around),
            ".elif" => self.retry(directive, args, around),
            ".else" => self.turn(directive, args, around),
            ".endif" => self.close(directive, args, around),
            _ if !self.is_live() => {}
            ".diag" => message(Level::Diag, directive, args, around),
            ".notice" => message(Level::Notice, directive, args, around),
            ".warning" => message(Level::Warning, directive, args, around),
            ".alert" => message(Level::Alert, directive, args, around),
            other => {
                let complaint = Diagnostic::alert(directive.span(), format!("unknown directive '{other}'."));
                let near = crate::nearest(other, DIRECTIVES.iter().copied());
                around.diagnostics.push(complaint.styled(Style::Reading).meant(near));
            }
        }
    }

    fn open(&mut self, directive: &Word, args: &[Word], around: &mut Surroundings<'_>) {
        let branch = match self.is_live().then(|| around.evaluate(args, directive)).flatten() {
            Some(true) => Branch::Taken,
            Some(false) => Branch::Waiting,
            None => Branch::Decided,
        };
        self.stack.push(Block { branch, has_else: false });
    }

    fn retry(&mut self, directive: &Word, args: &[Word], around: &mut Surroundings<'_>) {
        let Some(block) = self.innermost(directive, around) else { return };
        match block.branch {
            Branch::Waiting => match around.evaluate(args, directive) {
                Some(true) => block.branch = Branch::Taken,
                Some(false) => {}
                None => block.branch = Branch::Decided,
            },
            Branch::Taken | Branch::Decided => block.branch = Branch::Decided,
        }
    }

    fn turn(&mut self, directive: &Word, args: &[Word], around: &mut Surroundings<'_>) {
        around.unexpected(args.first(), directive, "");
        let Some(block) = self.innermost(directive, around) else { return };
        block.has_else = true;
        block.branch = match block.branch {
            Branch::Waiting => Branch::Taken,
            Branch::Taken | Branch::Decided => Branch::Decided,
        };
    }

    fn close(&mut self, directive: &Word, args: &[Word], around: &mut Surroundings<'_>) {
        around.unexpected(args.first(), directive, "");
        if self.stack.pop().is_none() {
            lone(directive, around);
        }
    }

    /// The block that `.elif` or `.else` belongs to.
    fn innermost(&mut self, directive: &Word, around: &mut Surroundings<'_>) -> Option<&mut Block> {
        let block = self.stack.last_mut();
        match &block {
            None => lone(directive, around),
            Some(block) if block.has_else => {
                let text = format!("'{directive}' after '.else' is not permitted.");
                around.say(Level::Alert, directive.span(), text);
                return None;
            }
            Some(_) => {}
        }
        block
    }
}

fn lone(directive: &Word, around: &mut Surroundings<'_>) {
    let text = format!("lone '{directive}' with no matching '.if'.");
    around.say(Level::Alert, directive.span(), text);
}

fn message(level: Level, directive: &Word, args: &[Word], around: &mut Surroundings<'_>) {
    let more = " Use quotes if the message should contain spaces.";
    if around.unexpected(args.get(1), directive, more) {
        return;
    }
    let text = args.first().map_or("", Word::text);
    around.say(level, args.first().unwrap_or(directive).span(), format!("'{text}'."));
}
