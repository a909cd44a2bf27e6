//! `defaults`, `frontend`, `backend`, `listen` (manual, chapter 4).
//!
//! One table for all four, by family. An entry says where its keyword may stand; what happens elsewhere is
//! the same for all of them and done here: `defaults` refuses it, a proxy of the wrong kind ignores it with a
//! warning.

pub(crate) mod balance;
pub(crate) mod basic;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod compression;
pub(crate) mod errors;
pub(crate) mod filter;
pub(crate) mod logging;
pub(crate) mod option;
pub(crate) mod persist;
pub(crate) mod removed;
pub(crate) mod rules;
pub(crate) mod stats;
pub(crate) mod stick;
pub(crate) mod timeout;

use crate::draft::{Draft, Kind};
use crate::keyword::{Keyword, find, placed, refuse_modifier};
use crate::statement::{Statement, Step};

/// All tables.
pub(crate) const TABLES: &[&[Keyword<Draft>]] = &[
    basic::KEYWORDS,
    balance::KEYWORDS,
    capture::KEYWORDS,
    check::KEYWORDS,
    compression::KEYWORDS,
    errors::KEYWORDS,
    filter::KEYWORDS,
    logging::KEYWORDS,
    crate::mailers::KEYWORDS,
    option::KEYWORDS,
    persist::KEYWORDS,
    rules::KEYWORDS,
    stats::KEYWORDS,
    stick::KEYWORDS,
    timeout::KEYWORDS,
    removed::KEYWORDS,
];

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let word = s.line.keyword();
    refuse_modifier(s.line)?;
    let Some(entry) = find(TABLES, word.text()) else {
        let near = syntax::nearest(word.text(), TABLES.iter().flat_map(|t| t.iter()).map(|k| k.name));
        let hint = near.map(|n| format!("; did you mean '{n}' maybe ?")).unwrap_or_default();
        let text = format!("unknown keyword '{word}' in '{}' section{hint}", p.kind.word());
        return Err(s.fail_at(word.span(), text));
    };
    if let Some(refusal) = only_there(s, p, entry) {
        return Err(refusal);
    }
    match placed(s, p, entry.name, entry.places)? {
        true => (entry.set)(s, p),
        // The words of this one are left unread there.
        false if entry.name == "stick" => Ok(()),
        // What a frontend says as a backend nobody looks at, but it is understood, and looked up, like
        // elsewhere.
        false
            if p.kind == Kind::Frontend
                && (!entry.name.contains("server") || entry.name == "load-server-state-from-file") =>
        {
            (entry.set)(s, p)
        }
        // The line has no effect, but what is wrong in it is an error all the same, as is a name in it that
        // nobody has.
        false => {
            let mut idle = p.clone();
            let step = (entry.set)(s, &mut idle);
            p.default_backend = idle.default_backend;
            p.switching = idle.switching;
            p.monitor_fail = idle.monitor_fail;
            p.monitor_uri = idle.monitor_uri;
            p.capture_cookie = idle.capture_cookie;
            step
        }
    }
}

/// Keywords that are refused on the wrong side instead of being ignored there.
fn only_there(s: &Statement<'_>, p: &Draft, entry: &Keyword<Draft>) -> Option<syntax::Diagnostic> {
    let (wrong, right) = match entry.name {
        "force-be-switch" => (Kind::Backend, "frontend"),
        "be-unpublished" | "hash-preserve-affinity" => (Kind::Frontend, "backend"),
        _ => return None,
    };
    // One that lacks its word says so first.
    let lacking = entry.name == "hash-preserve-affinity" && s.peek().is_empty();
    let text = format!("'{}' only available in {right} or listen section", entry.name);
    (p.kind == wrong && !lacking).then(|| s.fail(text))
}
