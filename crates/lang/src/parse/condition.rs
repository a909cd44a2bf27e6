//! Conditions: `if` or `unless`, and factors joined by `and` (implied), `or`, `||`, `!` (section 7.2).

use std::sync::Arc;

use super::did_you_mean;
use super::text::printable;
use crate::cond::{Acl, Condition, Term, Test};
use crate::names::Names;
use crate::places::Place;
use crate::registry::Registry;
use crate::words::{Fault, Words};

impl Condition {
    /// Reads `if ...` or `unless ...` to the last word; `None` when no word is left.
    ///
    /// # Errors
    /// A word that is neither `if` nor `unless`; an unknown ACL; a wrong anonymous ACL.
    pub fn parse(
        words: &mut Words<'_>,
        place: Place,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<Option<Condition>, Fault> {
        let at = words.position();
        let Some(first) = words.take() else { return Ok(None) };
        let unless = match first {
            b"if" => false,
            b"unless" => true,
            other => {
                let found = printable(other);
                let text =
                    format!("expects either 'if' or 'unless' followed by a condition but found '{found}'");
                return Err(Fault::new(text).at(at));
            }
        };
        let text = words.rest().iter().map(|w| printable(w)).collect::<Vec<_>>().join(" ");
        let any = alternatives(words, place, reg, names)?;
        Ok(Some(Condition { unless, any, text: text.into() }))
    }
}

fn alternatives(
    words: &mut Words<'_>,
    place: Place,
    reg: &Registry,
    names: &mut dyn Names,
) -> Result<Box<[Box<[Term]>]>, Fault> {
    let (mut any, mut all, mut negated) = (Vec::new(), Vec::new(), false);
    while let Some(word) = words.take() {
        let at = words.position() - 1;
        let mut rest = word;
        while let Some(tail) = rest.strip_prefix(b"!") {
            negated = !negated;
            rest = tail;
        }
        if rest.is_empty() {
            continue;
        }
        if rest.eq_ignore_ascii_case(b"or") || rest == b"||" {
            negated = false;
            any.push(std::mem::take(&mut all).into_boxed_slice());
            continue;
        }
        let acl = if rest == b"{" {
            anonymous(words, reg, names)?
        } else {
            named(rest, reg, names).map_err(|f| f.at(at))?
        };
        all.push(Term { negated: std::mem::take(&mut negated), acl });
    }
    any.push(all.into_boxed_slice());
    // An empty alternative holds nothing to test: it is no alternative.
    any.retain(|all| !all.is_empty());
    let mut tests = any.iter().flatten().flat_map(|term: &Term| term.acl.tests.iter());
    if tests.any(|test| test.expr.fetch.def.is_http()) {
        names.looks_at_http();
    }
    check_place(any.iter().flatten().map(|term: &Term| &*term.acl), place, names);
    Ok(any.into())
}

fn named(word: &[u8], reg: &Registry, names: &mut dyn Names) -> Result<Arc<Acl>, Fault> {
    let name = printable(word);
    match names.acl(&name) {
        Ok(acl) => Ok(acl),
        Err(fault) => super::predefined(&name, reg, names).ok_or_else(|| {
            let help = fault.help.or_else(|| did_you_mean(&name, super::predefined_names()));
            Fault { help, ..Fault::new(format!("no such ACL : '{name}'")) }
        }),
    }
}

fn anonymous(words: &mut Words<'_>, reg: &Registry, names: &mut dyn Names) -> Result<Arc<Acl>, Fault> {
    let at = words.position();
    let Some(end) = words.rest().iter().position(|w| *w == b"}") else {
        return Err(Fault::new("missing closing '}' in condition").at(at - 1));
    };
    let inside = &words.rest()[..end];
    let text = inside.iter().map(|w| printable(w)).collect::<Vec<_>>().join(" ");
    let test = Test::parse(&mut Words::new(inside), reg, names)
        .map_err(|f| Fault { word: Some(at + f.word.unwrap_or(0)), ..f })?;
    words.seek(at + end + 1);
    Ok(Arc::new(Acl { name: format!("{{ {text} }}").into(), tests: Box::new([test]) }))
}

/// Warns of the first ACL that can never match at a place; when there is none, of the first some of whose
/// lines can't.
fn check_place<'a>(acls: impl Iterator<Item = &'a Acl> + Clone, place: Place, names: &mut dyn Names) {
    let elsewhere = |test: &&Test| !test.expr.fetch.def.places.has(place);
    let never = |acl: &&Acl| !acl.tests.is_empty() && acl.tests.iter().all(|test| elsewhere(&test));
    let why = match acls.clone().find(never) {
        Some(Acl { tests, name }) => match &**tests {
            [test] if name.starts_with('{') => {
                let word = test.expr.word();
                format!("anonymous acl will never match because it uses keyword '{word}' which is")
            }
            _ => format!("acl '{name}' will never match because it only involves keywords that are"),
        },
        None => {
            let partly = acls.filter_map(|acl| Some((acl, acl.tests.iter().find(elsewhere)?))).next();
            let Some((acl, test)) = partly else { return };
            format!("acl '{}' involves keywords '{}' which is", acl.name, test.expr.word())
        }
    };
    names.warn(format!("{why} incompatible with '{}'", place.words()));
}
