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
        if pattern.iter().any(is_separator) {
            return Ok(pattern.to_vec());
        }
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

/// Reads `n`, `min:max`, `min:` or `:max`. A dash separates like a colon, so `-5` is all up to 5; only the
/// upper bound of a range without a lower one may be negative.
pub(crate) fn parse(version: bool, text: &[u8]) -> Result<Range, PatternError> {
    let number = if version { dotted } else { integer };
    let Some(at) = text.iter().position(is_separator) else {
        let what = if version { "dotted number" } else { "number" };
        let n = number(text).ok_or_else(|| wrong(text, what))?;
        return Ok(Range { min: n, max: n });
    };
    let (lower, upper) = (&text[..at], &text[at + 1..]);
    let min = if lower.is_empty() { Some(i64::MIN) } else { number(lower) };
    let max = match upper {
        [] => Some(i64::MAX),
        [b'-'] => Some(0),
        [b'-', digits @ ..] => number(digits).map(|n| -n),
        digits => number(digits),
    };
    match (min, max) {
        (Some(min), Some(max)) if min <= max && text.len() > 1 => Ok(Range { min, max }),
        _ => Err(wrong(text, if version { "valid dotted number range" } else { "valid number range" })),
    }
}

fn is_separator(c: &u8) -> bool {
    matches!(c, b':' | b'-')
}

fn wrong(text: &[u8], what: &str) -> PatternError {
    PatternError::new(text, format!("'{}' is not a {what}", String::from_utf8_lossy(text)))
}

fn integer(text: &[u8]) -> Option<i64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

fn dotted(text: &[u8]) -> Option<i64> {
    let mut parts = text.splitn(2, |c| *c == b'.');
    let major = i64::from(half(parts.next()?)?);
    let minor = parts.next().map_or(Some(0), half)?;
    Some((major << 16) + i64::from(minor))
}

fn half(text: &[u8]) -> Option<u16> {
    u16::try_from(integer(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_haproxy_reads_them() {
        let range = |min, max| Ok(Range { min, max });
        let cases = [
            ("5", 5, 5),
            ("05", 5, 5),
            ("5:7", 5, 7),
            ("5-7", 5, 7),
            ("5:", 5, i64::MAX),
            ("5-", 5, i64::MAX),
            (":5", i64::MIN, 5),
            ("-5", i64::MIN, 5),
            (":-3", i64::MIN, -3),
            ("--3", i64::MIN, -3),
            (":-", i64::MIN, 0),
        ];
        for (text, min, max) in cases {
            assert_eq!(parse(false, text.as_bytes()), range(min, max), "{text}");
        }
    }

    #[test]
    fn what_is_no_range_is_named_in_haproxys_words() {
        for text in ["x", "+1", "0x5", "5 ", "9223372036854775808", ""] {
            let e = parse(false, text.as_bytes()).unwrap_err();
            assert_eq!(e.text, format!("'{text}' is not a number"));
        }
        for text in ["5:3", "1:2:3", "-", ":", "-5:", "-5:-3", "5:-3", "0-0:", "+5:", "5:+7", "5:x"] {
            let e = parse(false, text.as_bytes()).unwrap_err();
            assert_eq!(e.text, format!("'{text}' is not a valid number range"));
        }
        assert_eq!(parse(true, b"3.1.2").unwrap_err().text, "'3.1.2' is not a dotted number");
    }

    #[test]
    fn an_operator_before_a_range_says_nothing() {
        assert_eq!(Compare::Gt.apply(false, b"5:7").unwrap(), b"5:7");
        assert_eq!(Compare::Gt.apply(false, b"5").unwrap(), b"6:");
        assert_eq!(Compare::Lt.apply(false, b"0").unwrap(), b":-1");
        assert_eq!(Compare::Ge.apply(true, b"3.1").unwrap(), b"3.1:");
    }
}
