//! The first line of an HTTP/1 head: request line and status line. Each function takes the input and the
//! offset of the line, fills the head and says where the next line is; `None` means that the input ends
//! within the line.

use super::bytes::{TARGET, TOKEN, VERSION, class};
use super::error::{ErrorKind, ParseError, State};
use super::line::line_end;
use crate::head::{Head, Span};
use crate::method::{Method, Version};

/// Where a start line leads.
pub enum Next {
    /// To the field lines from this offset on.
    Fields(usize),
    /// To the body: a request of HTTP/0.9 is its line and nothing else.
    Body(usize),
}

/// Reads a request line into `head`.
pub fn request(input: &[u8], at: usize, head: &mut Head, relax: bool) -> Result<Option<Next>, ParseError> {
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
    match input.get(target_end) {
        None => return Ok(None),
        Some(b' ' | b'\t' | b'\r' | b'\n') if target_end > target => {}
        Some(_) => return Err(ParseError::new(ErrorKind::BadTarget, target_end, State::Target)),
    }
    let Some(version) = version(input, run(input, target_end, is_blank), relax)? else { return Ok(None) };
    let bad_version = |position| ParseError::new(ErrorKind::BadVersion, position, State::Version);
    if !matches!(input.get(version.end), Some(b'\r' | b'\n')) {
        return Err(bad_version(version.end));
    }
    let Some(next) = line_end(input, version.end)? else { return Ok(None) };
    head.method_id = Method::from_bytes(input.get(at..method_end).unwrap_or_default());
    // The method of HTTP/2's preface is nobody's in HTTP/1, and in front of a server that takes it for a
    // preface a danger.
    if input.get(at..method_end) == Some(b"PRI") {
        return Err(ParseError::new(ErrorKind::BadMethod, method_end, State::Method));
    }
    let form = input.get(target..target_end).unwrap_or_default();
    if !fits_method(form, head.method_id) {
        return Err(ParseError::new(ErrorKind::BadTarget, target, State::Target));
    }
    head.method = Span::new(at, method_end);
    head.target = Span::new(target, target_end);
    head.version = version.number;
    (head.version_text, head.version_read) = (version.text, version.read);
    if version.number != Version::HTTP_09 || version.text.len > 0 {
        return Ok(Some(Next::Fields(next)));
    }
    // No version at all: HTTP/0.9, which knows only GET and is passed on as HTTP/1.0.
    if !relax || head.method_id != Method::Get {
        return Err(bad_version(version.end));
    }
    head.version = Version::HTTP_10;
    head.distrusted = true;
    Ok(Some(Next::Body(next)))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether a target has one of the forms that RFC 9112 section 3.2 gives this method: `host:port` for CONNECT
/// and for nothing else, `*` for OPTIONS, a path or an absolute URI for all but CONNECT. As HAProxy does, `*`
/// is let pass for methods that nobody knows.
fn fits_method(target: &[u8], method: Method) -> bool {
    match (target, method) {
        (b"*", _) => matches!(method, Method::Options | Method::Other),
        ([b'/', ..], _) => method != Method::Connect,
        (_, Method::Connect) => crate::uri::scheme(target).is_none(),
        _ => crate::uri::scheme(target).is_some(),
    }
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

/// A version as it was read.
struct Read {
    number: Version,
    /// Its text, when it has to be passed on as it came.
    text: Span,
    /// Its text, unless it is one of the usual two.
    read: Span,
    /// The offset behind it.
    end: usize,
}

/// Reads the word of a version; the byte behind it is not looked at further than that it ends the word.
#[inline]
fn version(input: &[u8], at: usize, relax: bool) -> Result<Option<Read>, ParseError> {
    let number = match input.get(at..at + 8) {
        Some(b"HTTP/1.1") => Version::HTTP_11,
        Some(b"HTTP/1.0") => Version::HTTP_10,
        _ => return odd_version(input, at, relax),
    };
    match input.get(at + 8) {
        None => Ok(None),
        Some(&byte) if class(byte) & VERSION != 0 => odd_version(input, at, relax),
        Some(_) => Ok(Some(Read { number, text: Span::default(), read: Span::default(), end: at + 8 })),
    }
}

/// Any version but the two usual ones. `HTTP/` and two digits around a dot are due; where that is relaxed,
/// any word will do. From 1.1 up (the sixth and eighth letter of eight say so) it is passed on as HTTP/1.1,
/// numbers below 1.0 as HTTP/1.0, because a server that takes 0.9 at its word reads no fields; words as they
/// came.
#[cold]
fn odd_version(input: &[u8], at: usize, relax: bool) -> Result<Option<Read>, ParseError> {
    let end = run(input, at, |byte| class(byte) & VERSION != 0);
    let bad = |position| ParseError::new(ErrorKind::BadVersion, position, State::Version);
    match input.get(end) {
        None => return Ok(None),
        Some(b' ' | b'\t' | b'\r' | b'\n') => {}
        Some(_) => return Err(bad(end)),
    }
    let word = input.get(at..end).unwrap_or_default();
    let (number, well_formed) = match *word {
        [ref name @ .., b'/', major, b'.', minor] if name == b"HTTP" => {
            let digits = major.is_ascii_digit() && minor.is_ascii_digit();
            let number = Version { major: major.wrapping_sub(b'0'), minor: minor.wrapping_sub(b'0') };
            (number, digits)
        }
        _ => (Version::HTTP_10, false),
    };
    if !relax && !well_formed {
        return Err(bad(at));
    }
    let modern = matches!(*word, [_, _, _, _, _, major, _, minor] if (major, minor >= b'1') >= (b'1', true));
    let number = match () {
        _ if word.is_empty() => Version::HTTP_09,
        _ if modern => Version::HTTP_11,
        _ if well_formed => number.max(Version::HTTP_10),
        _ => Version::HTTP_10,
    };
    let text = if modern || well_formed { Span::default() } else { Span::new(at, end) };
    Ok(Some(Read { number, text, read: Span::new(at, end), end }))
}

/// Reads a status line into `head` and returns the offset of the next line.
pub fn status(input: &[u8], at: usize, head: &mut Head, relax: bool) -> Result<Option<usize>, ParseError> {
    let bad_version = |position| ParseError::new(ErrorKind::BadVersion, position, State::Version);
    match input.get(at) {
        None => return Ok(None),
        Some(b'\r') if input.len() == at + 1 => return Ok(None),
        Some(&byte) if class(byte) & TOKEN == 0 => return Err(bad_version(at)),
        Some(_) => {}
    }
    let Some(version) = version(input, at, relax)? else { return Ok(None) };
    let code = run(input, version.end, is_blank);
    let code_end = run(input, code, |byte| byte.is_ascii_digit());
    let digits = input.get(code..code_end).unwrap_or_default();
    let bad = |position| Err(ParseError::new(ErrorKind::BadStatus, position, State::Status));
    match input.get(code_end) {
        _ if digits.len() > 3 && !relax => return bad(code + 3),
        None => return Ok(None),
        Some(b' ' | b'\t' | b'\r' | b'\n') if !digits.is_empty() => {}
        Some(_) => return bad(code_end),
    }
    let Some(status) = number(digits) else { return bad(code) };
    let reason = run(input, code_end, is_blank);
    let rest = input.get(reason..).unwrap_or_default();
    let Some(len) = memchr::memchr2(b'\r', b'\n', rest) else { return Ok(None) };
    let Some(next) = line_end(input, reason + len)? else { return Ok(None) };
    // Some take it for an interim response, and what follows for the final one.
    if !relax && status < 100 {
        return bad(code);
    }
    head.version = version.number;
    (head.version_text, head.version_read) = (version.text, version.read);
    head.status = status;
    head.status_text = if digits.len() == 3 { Span::default() } else { Span::new(code, code_end) };
    head.reason = Span::new(reason, reason + len);
    Ok(Some(next))
}

/// A status below 65535.
fn number(digits: &[u8]) -> Option<u16> {
    let add = |sum: u16, byte: &u8| sum.checked_mul(10)?.checked_add(u16::from(byte - b'0'));
    digits.iter().try_fold(0, add).filter(|number| *number < u16::MAX)
}

/// The offset of the first byte from `at` on that is not `wanted`.
#[inline]
fn run(input: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let rest = input.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len())
}
