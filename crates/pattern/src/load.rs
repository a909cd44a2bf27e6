//! Pattern files: one pattern a line, in a map followed by its value (manual 7.1, `-f`, and
//! `map_*`).
//!
//! Leading blanks go, a line that begins with `#` or is empty is skipped (a blank before the
//! `#` makes it a pattern), the end of a line may be CR LF.

use std::path::Path;

use crate::entries::Entries;
use crate::error::{ChangeError, LoadError, PatternError};
use crate::live::{LiveSet, Shape};

/// One line of a pattern file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The pattern: the line without leading blanks, or in a map its first word.
    pub pattern: &'a [u8],
    /// The rest of a map's line without the blanks around it.
    pub value: Option<&'a [u8]>,
}

fn blank(c: &u8) -> bool {
    matches!(c, b' ' | b'\t')
}

fn trim_start(text: &[u8]) -> &[u8] {
    let n = text.iter().position(|c| !blank(c)).unwrap_or(text.len());
    &text[n..]
}

/// Splits a line, given without its line feed; nothing if it is empty or a comment.
pub fn split_line(line: &[u8], shape: Shape) -> Option<Line<'_>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.first() == Some(&b'#') {
        return None;
    }
    let text = trim_start(line);
    if text.is_empty() {
        return None;
    }
    if shape == Shape::Acl {
        return Some(Line { pattern: text, value: None });
    }
    let end = text.iter().position(blank).unwrap_or(text.len());
    let (pattern, rest) = text.split_at(end);
    let rest = trim_start(rest);
    let keep = rest.iter().rposition(|c| !blank(c)).map_or(0, |n| n + 1);
    Some(Line { pattern, value: Some(&rest[..keep]) })
}

/// Loads a file into `set`.
pub(crate) fn load(set: &LiveSet, path: &Path) -> Result<(), LoadError> {
    let text = std::fs::read(path)?;
    let mut entries = Entries::default();
    let mut lines = Vec::new();
    for (number, line) in (1u32..).zip(text.split(|c| *c == b'\n')) {
        let Some(line) = split_line(line, set.shape()) else { continue };
        if entries.push(line.pattern, line.value).is_none() {
            return Err(PatternError::new(line.pattern, "out of memory").into());
        }
        lines.push(number);
    }
    set.add_entries(None, entries).map_err(|(n, e)| match e {
        ChangeError::Pattern(mut e) => {
            e.line = lines.get(n as usize).copied().unwrap_or(0);
            LoadError::Pattern(e)
        }
        other => LoadError::Io(std::io::Error::other(other.to_string())),
    })
}
