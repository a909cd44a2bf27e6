//! `shm-stats-file`: figures that processes count together (`admin::shm`).

use super::draft::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "shm-stats-file",
        shared_figures,
        "File of figures that processes count together and hand on at a reload (docs/shm-stats-file.md).",
        "shm-stats-file /dev/shm/harrier",
    ),
    entry(
        "shm-stats-file-max-objects",
        most_shared,
        "Objects that may be in the file of `shm-stats-file`.",
        "shm-stats-file-max-objects 5000",
    )
    .default("2000"),
];

/// `shm-stats-file <path>`.
fn shared_figures(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let word = s.word("'shm-stats-file' expect one argument: a file path.\n")?;
    if g.figures.shared.is_some() {
        return Err(s.fail("'shm-stats-file' already specified.\n"));
    }
    g.figures.shared = Some(word.text().into());
    Ok(())
}

/// `shm-stats-file-max-objects <number>`.
fn most_shared(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let word = s.word("'shm-stats-file-max-objects' expect one argument: max objects number.\n")?;
    if g.figures.most_shared.is_some() {
        return Err(s.fail("'shm-stats-file-max-objects' already specified.\n"));
    }
    g.figures.most_shared = Some(usize::try_from(units::lenient(word.text())).unwrap_or(usize::MAX));
    Ok(())
}
