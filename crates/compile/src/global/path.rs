//! `default-path`: the folder in which relative paths of the configuration start (manual, section 3.1).

use std::path::{Path, PathBuf};

use syntax::{Reading, Word};

use super::draft::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};

/// The keyword of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] =
    &[entry("default-path", set, "The folder in which relative paths start.", "default-path current")];

/// Looks at the words; [`folder`] has obeyed them before.
fn set(s: &mut Statement<'_>, _: &mut GlobalDraft) -> Step {
    let mode = s.next().map_or("", Word::text);
    match mode {
        "current" | "config" | "parent" => Ok(()),
        "origin" => {
            let folder = s.word("'default-path origin' expects a directory as an argument.")?.text();
            match Path::new(folder).is_relative() || base::outside::is_folder(folder) {
                true => Ok(()),
                false => Err(s.fail(format!("couldn't set 'default-path' to origin '{folder}'."))),
            }
        }
        _ => {
            let what = if mode.is_empty() { "missing" } else { "unsupported" };
            Err(s.fail(format!("{what} default-path mode '{mode}' for 'default-path', supported modes include 'current', 'config', 'parent', and 'origin'.")))
        }
    }
}

/// The folder in which relative paths start, if it is not that of the process. Who compiles works in it
/// meanwhile; it is one for all files, that of the last line which says so.
pub(crate) fn folder(reading: &Reading) -> Option<PathBuf> {
    let lines = reading.tree.with_word("global").flat_map(|(_, section)| &section.lines);
    let line = lines.filter(|line| line.keyword() == "default-path").last()?;
    let file = Path::new(reading.sources.name(line.span().file));
    // Of a bare name the folder is empty, which means the same as none.
    let beside = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match line.args().first()?.text() {
        "config" => beside.map(Path::to_path_buf),
        "parent" => Some(beside.map_or_else(|| "..".into(), |folder| folder.join(".."))),
        "origin" => Some(line.args().get(1)?.text().into()),
        _ => None,
    }
}
