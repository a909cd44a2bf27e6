//! The `global` section (manual, chapter 3).

mod compression;
pub(crate) mod draft;
mod groups;
pub(crate) mod h2;
mod idle;
pub(crate) mod limits;
mod lua;
mod ocsp;
mod once;
pub(crate) mod path;
pub(crate) mod places;
pub(crate) mod process;
mod removed;
mod shm;
mod tls;
pub(crate) mod tune;
mod unix_bind;

use crate::global::draft::GlobalDraft;
use crate::keyword::{self, Keyword, find, refuse_modifier};
use crate::statement::{Statement, Step};

/// All tables.
pub(crate) const TABLES: &[&[Keyword<GlobalDraft>]] = &[
    process::KEYWORDS,
    limits::KEYWORDS,
    groups::KEYWORDS,
    compression::KEYWORDS,
    tune::KEYWORDS,
    path::KEYWORDS,
    h2::KEYWORDS,
    tls::KEYWORDS,
    ocsp::KEYWORDS,
    lua::KEYWORDS,
    removed::KEYWORDS,
    shm::KEYWORDS,
];

/// One line of the section.
pub(crate) fn line(s: &mut Statement<'_>, global: &mut GlobalDraft) -> Step {
    let word = s.line.keyword();
    refuse_modifier(s.line)?;
    if let Some(entry) = find(TABLES, word.text()) {
        once::line(s, global, entry)?;
        if entry.idle {
            s.notes.notice(word.span(), keyword::idle(entry.name, entry.doc));
        }
        if word.text().starts_with("ssl-default-") {
            global.tls.note(word.span());
        }
        return Ok(());
    }
    let near = syntax::nearest(word.text(), TABLES.iter().flat_map(|t| t.iter()).map(|k| k.name));
    let hint = near.map(|n| format!("; did you mean '{n}' maybe ?")).unwrap_or_default();
    Err(s.fail_at(word.span(), format!("unknown keyword '{word}' in 'global' section{hint}")))
}
