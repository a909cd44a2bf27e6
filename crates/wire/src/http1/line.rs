//! The lines of an HTTP/1 head behind the first: field lines and the empty line. Each function takes the
//! input and the offset of the line and says what lies where; `None` or [`Line::More`] means that the input
//! ends within the line.

use super::bytes::{TOKEN, UPPER, class};
use super::error::{ErrorKind, ParseError, State};
use crate::head::Known;

/// A line after the start line.
pub enum Line {
    More,
    /// The empty line; the body starts at `next`.
    End {
        next: usize,
    },
    Field(FieldLine),
    /// A line that starts with a blank and goes on with the value before it.
    Fold {
        value: (usize, usize),
        next: usize,
    },
    /// A line with a bad name, let pass and dropped; the bad byte is at `at`.
    Drop {
        at: usize,
        next: usize,
    },
}

/// Where the parts of a field line lie.
pub struct FieldLine {
    pub name: (usize, usize),
    pub value: (usize, usize),
    pub known: Known,
    /// Exactly one space after the colon and CR LF right after the value.
    pub plain: bool,
    pub upper: bool,
    /// A NUL that was let pass.
    pub nul: Option<ParseError>,
    pub next: usize,
}

/// A field line as nearly all are: a name, a colon, one space, a value without blanks around it, CR LF.
pub struct Usual {
    pub colon: usize,
    /// The end of the value, two bytes before the next line.
    pub end: usize,
    pub known: Known,
    pub upper: bool,
}

/// Reads the line at `at` if it is whole and as nearly all are. `None` says nothing of it but that [`field`]
/// has to look: it tells the rest apart, this one is only the faster.
#[inline]
pub fn usual(input: &[u8], at: usize) -> Option<Usual> {
    let line = input.get(at..)?;
    let mut seen = 0;
    let len = line.iter().position(|&byte| {
        let bits = class(byte);
        seen |= bits;
        bits & TOKEN == 0
    })?;
    let (name, rest) = line.split_at_checked(len)?;
    let [b':', b' ', value @ ..] = rest else { return None };
    if name.is_empty() || matches!(value.first(), Some(b' ' | b'\t')) {
        return None;
    }
    let length = memchr::memchr3(b'\r', b'\n', 0, value)?;
    let (text, [b'\r', b'\n', ..]) = value.split_at_checked(length)? else { return None };
    if matches!(text.last(), None | Some(b' ' | b'\t')) {
        return None;
    }
    let colon = at + len;
    Some(Usual { colon, end: colon + 2 + length, known: Known::of(name), upper: seen & UPPER != 0 })
}

/// Reads the line at `at`; `first`: there was no field before it, so that nothing can go on with a blank.
#[inline]
pub fn field(input: &[u8], at: usize, first: bool, relax: bool) -> Result<Line, ParseError> {
    let line = input.get(at..).unwrap_or_default();
    let (mut seen, mut len) = (0, 0);
    let stop = loop {
        let Some(&byte) = line.get(len) else { return Ok(Line::More) };
        let bits = class(byte);
        if bits & TOKEN == 0 {
            break byte;
        }
        seen |= bits;
        len += 1;
    };
    let colon = at + len;
    if stop != b':' || len == 0 {
        return odd_line(input, at, colon, first && !relax, relax);
    }
    let Some(value) = value(input, colon + 1, relax)? else { return Ok(Line::More) };
    Ok(Line::Field(FieldLine {
        name: (at, colon),
        value: (value.start, value.end),
        known: Known::of(line.get(..len).unwrap_or_default()),
        plain: value.start == colon + 2
            && value.end + 2 == value.next
            && input.get(colon + 1) == Some(&b' ')
            && input.get(value.end) == Some(&b'\r'),
        upper: seen & UPPER != 0,
        nul: value.nul,
        next: value.next,
    }))
}

/// A line that does not start with a name and a colon: the empty line, a folded one, or a fault.
#[cold]
fn odd_line(input: &[u8], at: usize, stop: usize, no_fold: bool, relax: bool) -> Result<Line, ParseError> {
    let bad_name = ParseError::new(ErrorKind::BadFieldName, stop, State::FieldName);
    match input.get(stop) {
        Some(b'\r' | b'\n') if stop == at => {
            Ok(line_end(input, at)?.map_or(Line::More, |next| Line::End { next }))
        }
        Some(b' ' | b'\t') if stop == at && no_fold => Err(bad_name),
        Some(b' ' | b'\t') if stop == at => {
            let Some(value) = value(input, at, relax)? else { return Ok(Line::More) };
            Ok(Line::Fold { value: (value.start, value.end), next: value.next })
        }
        Some(b'\r' | b'\n') => Err(bad_name),
        Some(byte) if relax && (*byte != b':' || stop > at) => {
            let Some(value) = value(input, stop, true)? else { return Ok(Line::More) };
            let named = input.get(stop..value.next).is_some_and(|rest| rest.contains(&b':'));
            if named { Ok(Line::Drop { at: stop, next: value.next }) } else { Err(bad_name) }
        }
        _ => Err(bad_name),
    }
}

struct Value {
    start: usize,
    end: usize,
    next: usize,
    nul: Option<ParseError>,
}

/// Reads a value from `at` to the end of its line, without the blanks around it.
#[inline]
fn value(input: &[u8], at: usize, relax: bool) -> Result<Option<Value>, ParseError> {
    let mut start = at;
    while matches!(input.get(start), Some(b' ' | b'\t')) {
        start += 1;
    }
    let (mut nul, mut from) = (None, start);
    let stop = loop {
        let Some(found) = memchr::memchr3(b'\r', b'\n', 0, input.get(from..).unwrap_or_default()) else {
            return Ok(None);
        };
        let stop = from + found;
        if input.get(stop) != Some(&0) {
            break stop;
        }
        let fault = ParseError::new(ErrorKind::BadFieldValue, stop, State::FieldValue);
        if !relax {
            return Err(fault);
        }
        nul = nul.or(Some(fault));
        from = stop + 1;
    };
    let Some(next) = line_end(input, stop)? else { return Ok(None) };
    let mut end = stop;
    while end > start && matches!(input.get(end - 1), Some(b' ' | b'\t')) {
        end -= 1;
    }
    Ok(Some(Value { start, end, next, nul }))
}

/// The offset after the line end at `at`, which is CR LF or LF.
#[inline]
pub fn line_end(input: &[u8], at: usize) -> Result<Option<usize>, ParseError> {
    match (input.get(at), input.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => Ok(Some(at + 2)),
        (Some(b'\n'), _) => Ok(Some(at + 1)),
        (Some(b'\r'), None) | (None, _) => Ok(None),
        _ => Err(ParseError::new(ErrorKind::BareCr, at + 1, State::LineEnd)),
    }
}
