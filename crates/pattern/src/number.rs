//! Integers, versions and ranges of them as patterns write them (manual 7.1.2).
//!
//! A version `3.1` is two 16-bit numbers in one integer, so everything said of integers holds
//! for it too.

use crate::error::PatternError;

/// A closed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl Range {
    pub(crate) fn contains(&self, n: i64) -> bool {
        self.min <= n && n <= self.max
    }
}

/// An operator written before the patterns of an integer criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `eq`
    Eq,
    /// `ge`
    Ge,
    /// `gt`
    Gt,
    /// `le`
    Le,
    /// `lt`
    Lt,
}

impl Compare {
    /// The operator of a word.
    pub fn from_name(name: &str) -> Option<Compare> {
        Some(match name {
            "eq" => Compare::Eq,
            "ge" => Compare::Ge,
            "gt" => Compare::Gt,
            "le" => Compare::Le,
            "lt" => Compare::Lt,
            _ => return None,
        })
    }

    /// The pattern that says the same as this operator before `pattern`: `gt 5` is `6:`.
    pub fn apply(self, version: bool, pattern: &[u8]) -> Result<Vec<u8>, PatternError> {
        let range = parse(version, pattern)?;
        let (min, max) = match self {
            Compare::Eq => (Some(range.min), Some(range.max)),
            Compare::Ge => (Some(range.min), None),
            Compare::Gt => (Some(range.max.saturating_add(1)), None),
            Compare::Le => (None, Some(range.max)),
            Compare::Lt => (None, Some(range.min.saturating_sub(1))),
        };
        let show = |n: i64| if version { format!("{}.{}", n >> 16, n & 0xffff) } else { n.to_string() };
        let text = match (min, max) {
            (Some(a), Some(b)) if a == b => show(a),
            (a, b) => format!("{}:{}", a.map(show).unwrap_or_default(), b.map(show).unwrap_or_default()),
        };
        Ok(text.into_bytes())
    }
}

/// Reads `n`, `min:max`, `min:` or `:max`.
pub(crate) fn parse(version: bool, text: &[u8]) -> Result<Range, PatternError> {
    let wrong = |what: &str| {
        let shown = String::from_utf8_lossy(text);
        PatternError::new(text, format!("'{shown}' is not a {what}"))
    };
    let number = |t: &[u8]| if version { dotted(t) } else { integer(t) };
    let Some(colon) = text.iter().position(|c| *c == b':') else {
        let what = if version { "dotted number" } else { "number" };
        let n = number(text).ok_or_else(|| wrong(what))?;
        return Ok(Range { min: n, max: n });
    };
    let bound = |t: &[u8], open: i64| if t.is_empty() { Some(open) } else { number(t) };
    let min = bound(&text[..colon], i64::MIN);
    let max = bound(&text[colon + 1..], i64::MAX);
    match (min, max) {
        (Some(min), Some(max)) if min <= max && text != b":" => Ok(Range { min, max }),
        _ => Err(wrong(if version { "valid dotted number range" } else { "valid number range" })),
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    if text.first() == Some(&b'+') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn dotted(text: &[u8]) -> Option<i64> {
    let mut parts = text.splitn(2, |c| *c == b'.');
    let major = i64::from(half(parts.next()?)?);
    let minor = parts.next().map_or(Some(0), half)?;
    Some((major << 16) + i64::from(minor))
}

fn half(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
