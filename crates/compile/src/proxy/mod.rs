//! `defaults`, `frontend`, `backend`, `listen` (manual, chapter 4).
//!
//! One table for all four, by family. An entry says where its keyword may stand; what happens elsewhere is the same
//! for all of them and done here: `defaults` refuses it, a proxy of the wrong kind ignores it with a warning.

pub(crate) mod balance;
pub(crate) mod basic;
pub(crate) mod capture;
pub(crate) mod check;
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
use crate::global::refuse_modifier;
use crate::keyword::{Keyword, Places, find};
use crate::statement::{Statement, Step, tight};

/// All tables.
pub(crate) const TABLES: &[&[Keyword<Draft>]] = &[
    basic::KEYWORDS,
    balance::KEYWORDS,
    capture::KEYWORDS,
    check::KEYWORDS,
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

/// An entry of a proxy table.
pub(crate) const fn entry(
    name: &'static str,
    places: Places,
    set: fn(&mut Statement<'_>, &mut Draft) -> Step,
    doc: &'static str,
    example: &'static str,
) -> Keyword<Draft> {
    Keyword { name, places, set, doc, example, once: None }
}

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
        // What a frontend says as a backend nobody looks at, but it is understood, and looked up, like elsewhere.
        false
            if p.kind == Kind::Frontend
                && (!entry.name.contains("server") || entry.name == "load-server-state-from-file") =>
        {
            (entry.set)(s, p)
        }
        // The line has no effect, but what is wrong in it is an error all the same, as is a name in it that nobody has.
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

/// Whether a keyword may act here. `Ok(false)`: it was ignored with a warning.
pub(crate) fn placed(s: &mut Statement<'_>, p: &Draft, name: &str, places: Places) -> Step<bool> {
    let (here, lacks) = match p.kind {
        Kind::Defaults { named } => {
            let ok = places.has(Places::NAMED) && named
                || places.has(Places::DEFAULTS) && !places.has(Places::NAMED);
            if ok {
                return Ok(true);
            }
            let kind = if places.has(Places::NAMED) { "anonymous 'defaults'" } else { "'defaults'" };
            let sub = s.line.args().first().map_or("", |w| w.text());
            let name = if name == "capture" { format!("capture {sub}") } else { name.to_owned() };
            let text = format!("'{name}' not allowed in {kind} section.");
            let refusal = s.fail_at(s.line.keyword().span(), text);
            return Err(if matches!(&*name, "description" | "id") { tight(refusal) } else { refusal });
        }
        Kind::Frontend => (Places::FRONTEND, "backend"),
        Kind::Listen => (Places::LISTEN, "frontend"),
        Kind::Backend => (Places::BACKEND, "frontend"),
    };
    if places.has(here) {
        return Ok(true);
    }
    let hint = match name {
        "fullconn" => " Maybe you want 'maxconn' instead ?",
        "maxconn" => " Maybe you want 'fullconn' instead ?",
        _ => "",
    };
    let text = format!("'{name}' ignored because {} has no {lacks} capability.{hint}", p.label());
    s.notes.warning(s.line.span(), text);
    Ok(false)
}
