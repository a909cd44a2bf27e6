//! Where text came from.
//!
//! Everything that the rest of the house says about a configuration must be able to point at a place in a
//! file that the user can open. So the bytes of every file stay in [`Sources`] for as long as diagnostics may
//! be shown, and a [`Span`] is four small numbers that anybody may copy. Columns count bytes, not characters:
//! they are turned into screen columns only when a line is shown.

use std::ops::Range;

/// The number of a configuration file in the order in which files were given, starting at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// A stretch of one line of one file.
///
/// For a word it covers what was written, quotes included. A word that came out of a variable points at the
/// variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The line, starting at one as in every message.
    pub line: u32,
    /// First byte of the stretch within its line, starting at zero.
    pub start: u32,
    /// One past the last byte of the stretch.
    pub end: u32,
}

impl Span {
    /// The stretch from the beginning of `self` to the end of `other`, for words of the same line.
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end.max(self.start), ..self }
    }
}

/// One file as it was read.
#[derive(Clone, Debug, Default)]
pub struct Source {
    name: String,
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Source {
    /// Takes a file's name, as it shall stand in messages, and its contents.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
        let mut starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        if starts.last() == Some(&bytes.len()) {
            starts.pop();
        }
        Source { name: name.into(), bytes, starts }
    }

    /// The name as given on the command line, or the folder's name, a slash and the file's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many lines there are; a last line without line feed counts.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of a line, counted from one, without its line feed. Empty for a line that does not exist.
    pub fn line(&self, number: u32) -> &[u8] {
        self.bytes.get(self.range(number)).unwrap_or_default()
    }

    /// Whether a line ends with a line feed, as all should.
    pub fn is_complete(&self, number: u32) -> bool {
        self.bytes.get(self.range(number).end) == Some(&b'\n')
    }

    fn range(&self, number: u32) -> Range<usize> {
        let index = (number as usize).wrapping_sub(1);
        let Some(&start) = self.starts.get(index) else { return 0..0 };
        let next = self.starts.get(index.wrapping_add(1)).copied().unwrap_or(self.bytes.len());
        let has_feed = next > start && self.bytes.get(next - 1) == Some(&b'\n');
        start..if has_feed { next - 1 } else { next }
    }
}

/// All files of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a file and hands out its number.
    pub fn add(&mut self, source: Source) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(source);
        id
    }

    /// A file by number.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }

    /// A file's name, or nothing for a number that was never handed out.
    pub fn name(&self, file: FileId) -> &str {
        self.get(file).map_or("", Source::name)
    }

    /// The bytes of the line that a span lies in.
    pub fn line(&self, span: Span) -> &[u8] {
        self.get(span.file).map_or(&[], |source| source.line(span.line))
    }

    /// The files in order.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_line_feeds_and_counted_from_one() {
        let source = Source::new("x", b"a\n\nbc".to_vec());
        assert_eq!(source.lines(), 3);
        assert_eq!(source.line(1), b"a");
        assert_eq!(source.line(2), b"");
        assert_eq!(source.line(3), b"bc");
        assert_eq!(source.line(0), b"");
        assert_eq!(source.line(4), b"");
        assert!(source.is_complete(2));
        assert!(!source.is_complete(3));
        assert_eq!(Source::new("x", b"a\n".to_vec()).lines(), 1);
        assert_eq!(Source::new("x", Vec::new()).lines(), 0);
    }
}
