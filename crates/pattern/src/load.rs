//! Pattern files: one pattern a line, in a map followed by its value (manual 7.1, `-f`, and
//! `map_*`).
//!
//! Leading blanks go, a line that begins with `#` or is empty is skipped (a blank before the
//! `#` makes it a pattern), the end of a line may be CR LF.

use base::outside;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::Path;

use crate::draft::Draft;
use crate::error::{ChangeError, LoadError, PatternError};
use crate::kind::Kind;
use crate::live::{LiveSet, Shape};
use crate::net;

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

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;

/// What tells the content of a file from another.
pub(crate) fn stamp(path: &Path) -> std::io::Result<u64> {
    let (mut file, mut hash) = (outside::open(path)?, DefaultHasher::new());
    each_block(&mut file, &mut |block| {
        hash.write(block);
        true
    })?;
    Ok(hash.finish())
}

/// Loads a file into `set`. It is read in chunks and never held as a whole. Gives its [`stamp`].
pub(crate) fn load(set: &LiveSet, path: &Path, kind: Kind, names: bool) -> Result<u64, LoadError> {
    let mut draft = Draft::new(kind == Kind::Ip);
    let mut file = outside::open(path)?;
    let (mut failed, mut hash) = (None, DefaultHasher::new());
    each_block(&mut file, &mut |block| {
        hash.write(block);
        let ok = if kind == Kind::Ip {
            addresses(&mut draft, block, set.shape())
        } else {
            lines(&mut draft, block, set.shape())
        };
        failed = failed.take().or(if ok.is_none() { Some(()) } else { None });
        ok.is_some()
    })?;
    let full = || LoadError::from(PatternError::new(b"", "out of memory"));
    if failed.is_some() {
        return Err(full());
    }
    let entries = draft.finish().ok_or_else(full)?;
    set.add_entries(None, entries, names).map_err(|(place, e)| match e {
        ChangeError::Pattern(mut e) => {
            e.line = line_of(path, set.shape(), place);
            LoadError::Pattern(e)
        }
        other => LoadError::Io(std::io::Error::other(other.to_string())),
    })?;
    Ok(hash.finish())
}

/// Reads a file to its end and hands it over in blocks of whole lines, until `take` has enough.
fn each_block(file: &mut dyn Read, take: &mut dyn FnMut(&[u8]) -> bool) -> std::io::Result<()> {
    let mut room = vec![0; CHUNK];
    let mut filled = 0;
    loop {
        if filled == room.len() {
            room.resize(room.len() * 2, 0);
        }
        let got = file.read(&mut room[filled..])?;
        filled += got;
        let end =
            if got == 0 { filled } else { memchr::memrchr(b'\n', &room[..filled]).map_or(0, |n| n + 1) };
        if end > 0 && !take(&room[..end]) || got == 0 {
            return Ok(());
        }
        room.copy_within(end..filled, 0);
        filled -= end;
    }
}

fn lines(draft: &mut Draft, block: &[u8], shape: Shape) -> Option<()> {
    let mut from = 0;
    for end in memchr::memchr_iter(b'\n', block).chain([block.len()]) {
        if let Some(line) = split_line(&block[from..end], shape) {
            draft.push(line.pattern, line.value)?;
        }
        from = (end + 1).min(block.len());
    }
    Some(())
}

/// Lines of addresses: most hold one and nothing else, and are read without looking for their end first.
fn addresses(draft: &mut Draft, block: &[u8], shape: Shape) -> Option<()> {
    let mut rest = block;
    while !rest.is_empty() {
        if shape == Shape::Acl
            && let Some((address, len)) = net::strict_prefix(rest)
            && rest.get(len) == Some(&b'\n')
        {
            draft.push_host(address, None)?;
            rest = &rest[len + 1..];
            continue;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        if let Some(line) = split_line(&rest[..end], shape) {
            draft.push(line.pattern, line.value)?;
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Some(())
}

/// The line of an entry, by its place among the entries of a file; 0 if that can't be told any more.
pub(crate) fn line_of(path: &Path, shape: Shape, place: u32) -> u32 {
    let Ok(mut file) = outside::open(path) else { return 0 };
    let (mut line, mut entries, mut found) = (0u32, 0u32, 0);
    let _ = each_block(&mut file, &mut |block| {
        for text in block.split_inclusive(|c| *c == b'\n') {
            line = line.saturating_add(1);
            if split_line(text.strip_suffix(b"\n").unwrap_or(text), shape).is_none() {
                continue;
            }
            if entries == place {
                found = line;
                return false;
            }
            entries += 1;
        }
        true
    });
    found
}
