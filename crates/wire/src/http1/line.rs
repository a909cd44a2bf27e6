//! The lines of an HTTP/1 head: request line, status line, field line. Each function takes the input and the offset
//! of the line and says what lies where; `None` or [`Line::More`] means that the input ends within the line.

use super::bytes::{TARGET, TOKEN, UPPER, class};
use super::error::{ErrorKind, ParseError, State};
use crate::head::{Head, Known, Span};
use crate::method::{Method, Version};

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

/// Reads the line at `at`.
#[inline]
pub fn field(input: &[u8], at: usize, relax: bool) -> Result<Line, ParseError> {
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
        return odd_line(input, at, colon, relax);
    }
    let Some(value) = value(input, colon + 1, relax)? else { return Ok(Line::More) };
    Ok(Line::Field(FieldLine {
        name: (at, colon),
        value: (value.start, value.end),
        known: Known::of(line.get(..len).unwrap_or_default()),
        plain: value.start == colon + 2 && value.end + 2 == value.next && input.get(colon + 1) == Some(&b' '),
        upper: seen & UPPER != 0,
        nul: value.nul,
        next: value.next,
    }))
}

/// A line that does not start with a name and a colon: the empty line, a folded one, or a fault.
#[cold]
fn odd_line(input: &[u8], at: usize, stop: usize, relax: bool) -> Result<Line, ParseError> {
    let bad_name = ParseError::new(ErrorKind::BadFieldName, stop, State::FieldName);
    match input.get(stop) {
        Some(b'\r' | b'\n') if stop == at => {
            Ok(line_end(input, at)?.map_or(Line::More, |next| Line::End { next }))
        }
        Some(b' ' | b'\t') if stop == at => {
            let Some(value) = value(input, at, relax)? else { return Ok(Line::More) };
            Ok(Line::Fold { value: (value.start, value.end), next: value.next })
        }
        Some(b'\r' | b'\n') => Err(bad_name),
        Some(_) if relax && stop > at => {
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

/// Reads a request line into `head` and returns the offset of the next line.
pub fn request(input: &[u8], at: usize, head: &mut Head, relax: bool) -> Result<Option<usize>, ParseError> {
    let method_end = run(input, at, |byte| class(byte) & TOKEN != 0);
    match input.get(method_end) {
        None => return Ok(None),
        Some(b' ' | b'\t') if method_end > at => {}
        Some(b'\r') if method_end == at && input.len() == at + 1 => return Ok(None),
        Some(_) => return Err(ParseError::new(ErrorKind::BadMethod, method_end, State::Method)),
    }
    // RFC 9112 section 3: blanks may be taken for one space.
    let target = run(input, method_end, is_blank);
    let target_end = target_end(input, target, head, relax)?;
    let (version, next) = match input.get(target_end) {
        None => return Ok(None),
        Some(b' ' | b'\t') if target_end > target => {
            match version(input, run(input, target_end, is_blank), relax)? {
                None => return Ok(None),
                Some((version, end)) => match line_end(input, end)? {
                    None => return Ok(None),
                    Some(next) => (version, next),
                },
            }
        }
        Some(b'\r' | b'\n') if relax && target_end > target => match line_end(input, target_end)? {
            None => return Ok(None),
            Some(next) => (Version::HTTP_09, next),
        },
        Some(b'\r' | b'\n') => {
            return Err(ParseError::new(ErrorKind::BadVersion, target_end, State::Version));
        }
        Some(_) => return Err(ParseError::new(ErrorKind::BadTarget, target_end, State::Target)),
    };
    let method = input.get(at..method_end).unwrap_or_default();
    head.method_id = Method::from_bytes(method);
    let form = input.get(target..target_end).unwrap_or_default();
    if !fits_method(form, head.method_id) && (!relax || head.method_id == Method::Connect) {
        return Err(ParseError::new(ErrorKind::BadTarget, target, State::Target));
    }
    if version == Version::HTTP_09 && head.method_id != Method::Get {
        return Err(ParseError::new(ErrorKind::BadVersion, target_end, State::Version));
    }
    head.method = Span::new(at, method_end);
    head.target = Span::new(target, target_end);
    head.version = version;
    Ok(Some(next))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether a target has one of the forms that RFC 9112 section 3.2 gives this method: `host:port` for CONNECT and for
/// nothing else, `*` for OPTIONS, a path or an absolute URI for all but CONNECT.
fn fits_method(target: &[u8], method: Method) -> bool {
    match (target, method) {
        (b"*", _) => method == Method::Options,
        ([b'/', ..], _) => method != Method::Connect,
        (_, Method::Connect) => !is_absolute(target),
        _ => is_absolute(target),
    }
}

/// Whether a target begins with a scheme (RFC 3986 section 3.1) and `://`.
fn is_absolute(target: &[u8]) -> bool {
    let Some(colon) = target.iter().position(|b| *b == b':') else { return false };
    let (scheme, rest) = target.split_at(colon);
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
        && rest.starts_with(b"://")
}

/// The end of the target: the first byte that no target has.
fn target_end(input: &[u8], start: usize, head: &mut Head, relax: bool) -> Result<usize, ParseError> {
    let mut at = start;
    loop {
        at = run(input, at, |byte| class(byte) & TARGET != 0);
        match input.get(at) {
            Some(b'#' | 128..) if relax => {
                head.violation.get_or_insert(ParseError::new(ErrorKind::BadTarget, at, State::Target));
                at += 1;
            }
            None | Some(b' ' | b'\t' | b'\r' | b'\n') => return Ok(at),
            Some(_) => return Err(ParseError::new(ErrorKind::BadTarget, at, State::Target)),
        }
    }
}

/// Reads `HTTP/x.y` and returns it with the offset after it.
#[inline]
fn version(input: &[u8], at: usize, relax: bool) -> Result<Option<(Version, usize)>, ParseError> {
    match input.get(at..at + 8) {
        Some(b"HTTP/1.1") if !relax => Ok(Some((Version::HTTP_11, at + 8))),
        Some(b"HTTP/1.0") if !relax => Ok(Some((Version::HTTP_10, at + 8))),
        _ => odd_version(input, at, relax),
    }
}

#[cold]
fn odd_version(input: &[u8], at: usize, relax: bool) -> Result<Option<(Version, usize)>, ParseError> {
    let bad = |position| ParseError::new(ErrorKind::BadVersion, position, State::Version);
    let name = run(input, at, |byte| byte.is_ascii_uppercase());
    let rest = input.get(at..name).unwrap_or_default();
    let known = if relax { !rest.is_empty() } else { rest == b"HTTP" };
    match input.get(name) {
        None if relax || b"HTTP".starts_with(rest) => return Ok(None),
        Some(b'/') if known => {}
        _ => return Err(bad(name)),
    }
    let major_end = run(input, name + 1, |byte| byte.is_ascii_digit());
    match input.get(major_end) {
        None => return Ok(None),
        Some(b'.') if major_end == name + 2 || (relax && major_end > name + 1) => {}
        _ => return Err(bad(major_end)),
    }
    let end = run(input, major_end + 1, |byte| byte.is_ascii_digit());
    if end == major_end + 1 {
        return if end < input.len() { Err(bad(end)) } else { Ok(None) };
    }
    if end >= input.len() {
        return Ok(None);
    }
    if !relax && end > major_end + 2 {
        return Err(bad(end - 1));
    }
    let digits = |from, to| number(input.get(from..to).unwrap_or_default());
    let (major, minor) = (digits(name + 1, major_end), digits(major_end + 1, end));
    let version = if (major, minor) >= (1, 1) { Version::HTTP_11 } else { Version::HTTP_10 };
    if !relax && major == 0 {
        return Err(ParseError::new(ErrorKind::UnsupportedVersion, name + 1, State::Version));
    }
    Ok(Some((version, end)))
}

fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |sum: u32, byte| sum.saturating_mul(10).saturating_add(u32::from(byte - b'0')))
}

/// Reads a status line into `head` and returns the offset of the next line.
pub fn status(input: &[u8], at: usize, head: &mut Head, relax: bool) -> Result<Option<usize>, ParseError> {
    let Some((version, version_end)) = version(input, at, relax)? else { return Ok(None) };
    let code = match input.get(version_end) {
        None => return Ok(None),
        Some(b' ') => version_end + 1,
        Some(_) => return Err(ParseError::new(ErrorKind::BadVersion, version_end, State::Version)),
    };
    let code_end = run(input, code, |byte| byte.is_ascii_digit());
    let bad = |position| Err(ParseError::new(ErrorKind::BadStatus, position, State::Status));
    let digits = input.get(code..code_end).unwrap_or_default();
    if digits.len() > 3 && !relax {
        return bad(code + 3);
    }
    let reason = match input.get(code_end) {
        None => return Ok(None),
        Some(b' ') => code_end + 1,
        Some(b'\r' | b'\n') => code_end,
        Some(_) => return bad(code_end),
    };
    let Ok(status) = u16::try_from(number(digits)) else { return bad(code) };
    if digits.len() < 3 || status < 100 {
        return bad(code);
    }
    let rest = input.get(reason..).unwrap_or_default();
    let Some(len) = memchr::memchr3(b'\r', b'\n', 0, rest) else { return Ok(None) };
    if rest.get(len) == Some(&0) {
        return Err(ParseError::new(ErrorKind::BadFieldValue, reason + len, State::Reason));
    }
    let Some(next) = line_end(input, reason + len)? else { return Ok(None) };
    head.version = version;
    head.status = status;
    head.reason = Span::new(reason, reason + len);
    Ok(Some(next))
}

/// The offset of the first byte from `at` on that is not `wanted`.
#[inline]
fn run(input: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let rest = input.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len())
}
