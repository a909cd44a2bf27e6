//! Regular expressions over bytes, in the dialect that configurations are written in.
//!
//! HAProxy users write PCRE. What has a linear-time meaning runs on `regex`, whatever the
//! input; only patterns with look-around, back-references or atomic groups run on
//! `fancy-regex`, with a limit on back-tracking, beyond which they count as not matching.

use crate::error::PatternError;

/// Steps of back-tracking granted to one look-up of a pattern that needs it.
const BACKTRACK_LIMIT: usize = 100_000;

/// Memory granted to one compiled expression, in bytes.
pub(crate) const SIZE_LIMIT: usize = 64 << 20;

#[derive(Clone, Debug)]
enum Program {
    Linear(regex::bytes::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Regex {
    program: Program,
    groups: usize,
}

/// The places that the groups of a match took, by number; group 0 is the whole match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    spans: Vec<Option<(usize, usize)>>,
}

impl Groups {
    /// Start and end of group `n`, or nothing if it took no part in the match.
    pub fn get(&self, n: usize) -> Option<(usize, usize)> {
        self.spans.get(n).copied().flatten()
    }

    /// Number of groups, the whole match included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there was no match.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

impl Regex {
    /// Compiles `pattern`; `ignore_case` is `-i`.
    pub fn new(pattern: &[u8], ignore_case: bool) -> Result<Regex, PatternError> {
        let source = crate::pcre::translate(pattern);
        let linear = regex::bytes::RegexBuilder::new(&source)
            .unicode(false)
            .case_insensitive(ignore_case)
            .size_limit(SIZE_LIMIT)
            .build();
        if let Ok(regex) = linear {
            let groups = regex.captures_len();
            return Ok(Regex { program: Program::Linear(regex), groups });
        }
        let fancy = fancy_regex::RegexBuilder::new(&source)
            .case_insensitive(ignore_case)
            .bytes_mode(fancy_regex::BytesMode::Ascii)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map_err(|e| {
                let shown = String::from_utf8_lossy(pattern);
                let (error, offset) = match crate::fault::find(pattern) {
                    Some((text, offset)) => (text.to_owned(), offset),
                    None => (e.to_string(), pattern.len()),
                };
                let text = format!("regex '{shown}' is invalid (error={error}, erroffset={offset})");
                PatternError::new(pattern, text)
            })?;
        let groups = fancy.captures_len();
        Ok(Regex { program: Program::Backtracking(Box::new(fancy)), groups })
    }

    /// Whether it matches anywhere in `text`.
    pub fn is_match(&self, text: &[u8]) -> bool {
        match &self.program {
            Program::Linear(r) => r.is_match(text),
            Program::Backtracking(r) => r.is_match(text).unwrap_or(false),
        }
    }

    /// Finds the first match at or after `start` and fills `groups`; says whether there is one.
    pub fn captures_at(&self, text: &[u8], start: usize, groups: &mut Groups) -> bool {
        groups.spans.clear();
        if start > text.len() {
            return false;
        }
        match &self.program {
            Program::Linear(r) => {
                let Some(caps) = r.captures_at(text, start) else { return false };
                groups.spans.extend(caps.iter().map(|m| m.map(|m| (m.start(), m.end()))));
            }
            Program::Backtracking(r) => {
                let Ok(Some(caps)) = r.captures_from_pos(text, start) else { return false };
                let spans = (0..self.groups).map(|n| caps.get(n).map(|m| (m.start(), m.end())));
                groups.spans.extend(spans);
            }
        }
        true
    }

    /// Number of groups, the whole match included.
    pub fn group_count(&self) -> usize {
        self.groups
    }

    /// Whether matching takes time linear in the input, whatever it is.
    pub fn is_linear(&self) -> bool {
        matches!(self.program, Program::Linear(_))
    }
}
