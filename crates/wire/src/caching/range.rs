//! A part of what a cache has (RFC 9110 section 14).

use std::ops::Range;

use crate::head::{Head, Known};

/// What of a representation a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// These bytes.
    Part(Range<usize>),
    /// It asks for bytes that there are not.
    Beyond,
}

/// What a GET asks for of `length` bytes with the fields `of`. Several ranges, other units and what is no
/// range are passed over: all of it answers them. So does a part of what the client does not have
/// (`If-Range`).
pub fn wanted(req: &Head, of: &Head, length: usize) -> Wanted {
    let Some(range) = req.first(Known::Range).filter(|_| req.count(Known::Range) == 1) else {
        return Wanted::Whole;
    };
    if !is_of_this(req, of) {
        return Wanted::Whole;
    }
    one(range, length).unwrap_or(Wanted::Whole)
}

/// Whether a condition on the range holds: the client has a part of this very representation.
fn is_of_this(req: &Head, of: &Head) -> bool {
    let Some(condition) = req.first("if-range") else { return true };
    match condition {
        [b'"', ..] => of.first("etag") == Some(condition),
        [b'W', b'/', ..] => false,
        date => of.first("last-modified") == Some(date),
    }
}

fn one(range: &[u8], length: usize) -> Option<Wanted> {
    let at = range.iter().position(|byte| *byte == b'=')?;
    let (unit, set) = (range.get(..at)?.trim_ascii(), range.get(at + 1..)?.trim_ascii());
    let dash = set.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (set.get(..dash)?, set.get(dash + 1..)?);
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let (first, last) = (number(first)?, number(last)?);
    let part = match (first, last) {
        (None, None) => return None,
        (None, Some(0)) => return Some(Wanted::Beyond),
        (None, Some(most)) => length.saturating_sub(most)..length,
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), last) => first..last.map_or(length, |last| last.saturating_add(1).min(length)),
    };
    Some(if part.start < length { Wanted::Part(part) } else { Wanted::Beyond })
}

/// Digits, or nothing; one that does not fit is the largest.
fn number(text: &[u8]) -> Option<Option<usize>> {
    if text.is_empty() {
        return Some(None);
    }
    let add = |sum: usize, digit: &u8| sum.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
    text.iter().all(u8::is_ascii_digit).then(|| Some(text.iter().fold(0, add)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Wanted {
        let (mut req, mut res) = (Head::request(), Head::response());
        for (name, value) in fields {
            req.append(name.as_bytes(), value.as_bytes()).unwrap();
        }
        res.append(b"etag", b"\"a\"").unwrap();
        res.append(b"last-modified", b"Mon, 01 Jan 2024 00:00:00 GMT").unwrap();
        wanted(&req, &res, 10)
    }

    #[test]
    fn one_range_is_a_part() {
        for (range, expected) in [
            ("bytes=0-3", Wanted::Part(0..4)),
            ("BYTES=3-", Wanted::Part(3..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-30", Wanted::Part(0..10)),
            ("bytes=9-99999999999999999999999", Wanted::Part(9..10)),
            ("bytes=10-", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=99999999999999999999999-", Wanted::Beyond),
            ("bytes=3-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes", Wanted::Whole),
            ("", Wanted::Whole),
        ] {
            assert_eq!(of(&[("range", range)]), expected, "{range}");
        }
        assert_eq!(of(&[]), Wanted::Whole);
        assert_eq!(of(&[("range", "bytes=0-1"), ("range", "bytes=0-1")]), Wanted::Whole);
    }

    #[test]
    fn a_part_is_of_what_the_client_has() {
        for (condition, part) in [
            ("\"a\"", true),
            ("\"b\"", false),
            ("W/\"a\"", false),
            ("Mon, 01 Jan 2024 00:00:00 GMT", true),
            ("Mon, 01 Jan 2024 00:00:01 GMT", false),
        ] {
            let expected = if part { Wanted::Part(0..2) } else { Wanted::Whole };
            assert_eq!(of(&[("range", "bytes=0-1"), ("if-range", condition)]), expected, "{condition}");
        }
    }
}
