//! `traces` sections (manual, section 12.1): the words of the command `trace`, obeyed one after the other.

use model::trace::Settings;
use model::trace::command::{self, Told};
use program::log::Ring;
use syntax::{Diagnostic, Diagnostics, Span, Word};

use crate::statement::{Statement, Step};

/// What the sections set so far.
pub(crate) struct TracesDraft {
    /// For all sources, in their order.
    pub settings: Vec<Settings>,
    /// Sinks that were named before there was a ring of that name.
    ahead: Vec<(Box<str>, Span)>,
}

impl Default for TracesDraft {
    fn default() -> TracesDraft {
        let settings = model::trace::sources().iter().map(|_| Settings::off()).collect();
        TracesDraft { settings, ahead: Vec::new() }
    }
}

/// One line of a section. What the command would answer is said while the section is read.
pub(crate) fn line(s: &mut Statement<'_>, draft: &mut TracesDraft, rings: &[Ring]) -> Step {
    if s.keyword() != "trace" {
        return Err(s.fail(format!("unknown keyword '{}' in 'traces' section", s.keyword())));
    }
    let words: Vec<&Word> = s.args.eat_rest().iter().collect();
    let texts: Vec<&str> = words.iter().map(|w| w.text()).collect();
    let mut known: Vec<(&str, &str)> =
        vec![("stdout", "standard output (fd#1)"), ("stderr", "standard output (fd#2)")];
    known.extend(rings.iter().map(|r| (&*r.name, &*r.description)));
    for at in 1..texts.len() {
        let name = texts[at];
        if texts[at - 1] == "sink" && name != "none" && !known.iter().any(|(other, _)| *other == name) {
            draft.ahead.push((name.into(), words[at].span()));
            known.push((name, ""));
        }
    }
    match command::run(&mut draft.settings, &texts, &known) {
        Err(text) => return Err(s.fail(text)),
        Ok(Told::Nothing) => {}
        Ok(Told::List(text)) => s.warn(format!("'trace': {text}")),
        Ok(Told::Notice(text)) => {
            let notice = Diagnostic::notice(s.eaten().span(), format!("'trace': {text}"));
            s.notes.push(notice);
        }
    }
    Ok(())
}

/// Sinks that are still missing when all sections are read.
pub(crate) fn finish(draft: &TracesDraft, rings: &[Ring], notes: &mut Diagnostics) {
    for (name, span) in draft.ahead.iter().filter(|(name, _)| !rings.iter().any(|r| r.name == *name)) {
        let text = format!("there is no trace sink '{name}': what is traced goes nowhere.");
        notes.warning(*span, text);
    }
}
