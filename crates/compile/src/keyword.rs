//! Entries of the keyword tables.
//!
//! A keyword is one entry of a plain `const` table beside its setter: where it may stand, whether `no` may
//! stand in front of it, a line of documentation and an example that compiles. Dumps, suggestions, the manual
//! and the tests that police the entries read the same tables.

use syntax::{Diagnostic, Line, Modifier};

use crate::draft::{Draft, Kind};
use crate::statement::{Statement, Step, tight};

/// The kinds of proxy sections, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(pub u8);

impl Places {
    /// `defaults`, named or not.
    pub const DEFAULTS: Places = Places(1);
    /// `frontend`.
    pub const FRONTEND: Places = Places(2);
    /// `listen`.
    pub const LISTEN: Places = Places(4);
    /// `backend`.
    pub const BACKEND: Places = Places(8);
    /// `defaults`, but only named ones.
    pub const NAMED: Places = Places(16);
    /// All four sections.
    pub const ALL: Places = Places(15);
    /// What accepts connections, and defaults.
    pub const FRONT: Places = Places(7);
    /// What has servers, and defaults.
    pub const BACK: Places = Places(13);
    /// What accepts connections, without defaults.
    pub const FRONT_ONLY: Places = Places(6);
    /// What has servers, without defaults.
    pub const BACK_ONLY: Places = Places(12);
    /// All but defaults.
    pub const PROXIES: Places = Places(14);
    /// Rules: everywhere, but of defaults only in named ones.
    pub const RULES: Places = Places(30);

    /// Whether all of `other` is in the set.
    pub const fn has(self, other: Places) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One keyword.
pub struct Keyword<T: 'static> {
    /// The word, or several words for a keyword with sub-keywords.
    pub name: &'static str,
    /// Where it may stand (proxy keywords).
    pub places: Places,
    /// What it does.
    pub set: fn(&mut Statement<'_>, &mut T) -> Step,
    /// One line of documentation.
    pub doc: &'static str,
    /// A line that compiles; empty: it can't stand alone (it needs another section or a file).
    pub example: &'static str,
    /// What holds where the keyword does not stand; empty: nothing to say, or the sentence says it.
    pub default: &'static str,
    /// Whether the first value stays, and what is said of a second line (global keywords).
    pub once: Option<&'static Once>,
    /// Read, checked, and without effect here; `doc` says why, and so does a notice where it is used.
    pub idle: bool,
}

/// What is told of a word that has no effect, to whoever uses it: no warning, for the configuration is in
/// order.
pub(crate) fn idle(word: &str, why: &str) -> String {
    format!("'{word}' has no effect in Harrier. {why}")
}

/// That a keyword counts once: the first value stays, a second line is told so and changes nothing.
#[derive(Clone, Copy)]
pub struct Once {
    /// What the keyword sets, where another one sets the same.
    pub setting: Option<&'static str>,
    /// Whether zero leaves it unset.
    pub zero_unsets: bool,
    /// Whether words behind the first are complained of before.
    pub ends: bool,
    /// What is said, with `$` for the keyword.
    pub said: Said,
}

/// What is said of a second line.
#[derive(Clone, Copy)]
pub enum Said {
    /// An alert that stops nothing, although HAProxy calls it one.
    Alert(&'static str),
    /// The same without the blank before the colon.
    Tight(&'static str),
    /// A warning.
    Warning(&'static str),
}

impl<T> Keyword<T> {
    /// The same keyword, with what holds where it does not stand.
    pub(crate) const fn default(mut self, default: &'static str) -> Keyword<T> {
        self.default = default;
        self
    }

    /// The same keyword, of which the first value stays.
    pub(crate) const fn once(mut self, once: &'static Once) -> Keyword<T> {
        self.once = Some(once);
        self
    }

    /// The same keyword, which has no effect.
    pub(crate) const fn idle(mut self) -> Keyword<T> {
        self.idle = true;
        self
    }
}

/// The entry of a keyword.
pub(crate) fn find<T>(tables: &[&'static [Keyword<T>]], name: &str) -> Option<&'static Keyword<T>> {
    tables.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}

/// An entry of a table of proxies' keywords.
pub(crate) const fn entry(
    name: &'static str,
    places: Places,
    set: fn(&mut Statement<'_>, &mut Draft) -> Step,
    doc: &'static str,
    example: &'static str,
) -> Keyword<Draft> {
    Keyword { name, places, set, doc, example, default: "", once: None, idle: false }
}

/// The keywords that `no` may stand in front of.
const NEGATABLE: &[&str] =
    &["log", "busy-polling", "set-dumpable", "strict-limits", "insecure-fork-wanted", "numa-cpu-mapping"];

/// What HAProxy says about `no` and `default` where they can't stand.
pub(crate) const NO_NEGATION: &str = "negation/default currently supported only for options, log, busy-polling, set-dumpable, strict-limits, insecure-fork-wanted and numa-cpu-mapping.";

/// `no` and `default` stand in front of a few keywords only.
pub(crate) fn refuse_modifier(line: &Line) -> Step {
    let word = line.keyword().text();
    let allowed = match line.modifier() {
        Modifier::Set => true,
        Modifier::Default => word == "option",
        Modifier::No => word == "option" || NEGATABLE.contains(&word),
    };
    if allowed { Ok(()) } else { Err(tight(Diagnostic::alert(line.span(), NO_NEGATION))) }
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
