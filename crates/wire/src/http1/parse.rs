//! Heads of HTTP/1 messages.
//!
//! The parser works line by line and straight on the input: a head that has arrived whole is read once, and
//! its bytes are copied once into the arena of the [`Head`]. When the input ends early, the head remembers
//! which lines are done, so the next call goes on there and a peer that sends byte by byte costs one look at
//! the current line each time. A fault is reported as soon as its byte is there, not when the head is
//! complete.
//!
//! What is refused, and what `relax` lets pass, is in the manual's section of `option
//! accept-unsafe-violations-in-http-request`; the checks that need the whole head are in `rules`.

use super::error::{ErrorKind, ParseError, State};
use super::line::{self, Line};
use super::rules;
use super::start::{self, Next};
use crate::head::{Field, Head, Kind, Known, Span};

/// Limits of a received head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes from the first to the end of the empty line.
    pub head: usize,
    /// Lines, the start line counted in, as `tune.http.maxhdr` does.
    pub fields: usize,
    /// HTTP/1.0's GET, HEAD and DELETE may have a body (`h1-accept-payload-with-any-method`).
    pub any_payload: bool,
    /// A length beside a coding is dropped, and the connection may go on
    /// (`h1-do-not-close-on-insecure-transfer-encoding`).
    pub insecure_coding: bool,
}

impl Default for Limits {
    /// The manual's defaults: `tune.bufsize` 16384 less `tune.maxrewrite` 1024, `tune.http.maxhdr` 101.
    fn default() -> Limits {
        Limits::of(15360, 101)
    }
}

impl Limits {
    /// None: for heads that were checked before.
    pub const NONE: Limits = Limits { any_payload: true, ..Limits::of(usize::MAX, usize::MAX) };

    /// So many bytes and lines, and nothing that the RFCs don't want.
    pub const fn of(head: usize, fields: usize) -> Limits {
        Limits { head, fields, any_payload: false, insecure_coding: false }
    }

    /// HAProxy keeps a head in a form of its own, and it is that which has to fit: 8 bytes a line and at the
    /// end, 60 for itself, and the words without what stands between them.
    ///
    /// # Errors
    /// The head is too large, though its bytes are not too many.
    pub fn admit(&self, head: &Head) -> Result<(), ParseError> {
        const KEPT: usize = 60 + 11;
        let length = head.wire_len();
        if length + 4 * head.fields.len() + KEPT > self.head {
            return Err(ParseError::new(ErrorKind::TooLarge, length, State::Head));
        }
        Ok(())
    }
}

/// How far a parse came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head goes on; call again with the same bytes and more after them.
    Partial,
    /// The head is complete and took `consumed` bytes.
    Complete { consumed: usize },
}

/// Reads the head of a request. `head` is cleared first, unless the last call for it answered
/// [`Parsed::Partial`]: then `input` has to start with the bytes of that call.
pub fn parse_request(
    input: &[u8],
    head: &mut Head,
    limits: &Limits,
    relax: bool,
) -> Result<Parsed, ParseError> {
    parse(input, head, limits, relax, Kind::Request)
}

/// Reads the head of a response, like [`parse_request`].
pub fn parse_response(
    input: &[u8],
    head: &mut Head,
    limits: &Limits,
    relax: bool,
) -> Result<Parsed, ParseError> {
    parse(input, head, limits, relax, Kind::Response)
}

/// What is wrong with a head that was read with `relax`: why it would be refused without.
pub fn violation(input: &[u8], limits: &Limits, kind: Kind) -> Option<ParseError> {
    parse(input, &mut Head::default(), limits, false, kind).err()
}

fn parse(
    input: &[u8],
    head: &mut Head,
    limits: &Limits,
    relax: bool,
    kind: Kind,
) -> Result<Parsed, ParseError> {
    if !head.progress.under_way || head.kind != kind || head.progress.offset > input.len() {
        head.clear_as(kind);
        head.progress.under_way = true;
    }
    let parsed = lines(input, head, limits, relax);
    if !matches!(parsed, Ok(Parsed::Partial)) {
        head.progress.under_way = false;
    }
    parsed
}

/// Reads as many lines as there are.
fn lines(input: &[u8], head: &mut Head, limits: &Limits, relax: bool) -> Result<Parsed, ParseError> {
    if !head.progress.start_line {
        match start_line(input, head, relax)? {
            None => return partial(input, head, limits),
            Some(Next::Fields(_)) => {}
            Some(Next::Body(next)) if next > limits.head => {
                return Err(ParseError::new(ErrorKind::TargetTooLong, next, State::Head));
            }
            Some(Next::Body(next)) => return finish(input, head, next, limits, relax),
        }
    }
    loop {
        let at = head.progress.offset;
        if at > limits.head {
            return Err(ParseError::new(ErrorKind::TooLarge, at, State::Head));
        }
        if let Some(line) = line::usual(input, at)
            && head.fields.len() + 2 <= limits.fields
        {
            add_usual(head, at, &line);
            continue;
        }
        match line::field(input, at, head.fields.is_empty(), relax)? {
            Line::More => return partial(input, head, limits),
            Line::End { next } if next > limits.head => {
                return Err(ParseError::new(ErrorKind::TooLarge, at, State::Head));
            }
            Line::End { next } => return finish(input, head, next, limits, relax),
            Line::Fold { value, next } if !head.fields.is_empty() && !head.progress.dropped => {
                fold(head, value, next);
            }
            Line::Fold { next, .. } if relax && head.progress.dropped => head.progress.offset = next,
            Line::Fold { value, next } => {
                // A blank at the start of the first field line.
                let named = input.get(value.0..value.1).is_some_and(|text| text.contains(&b':'));
                if !relax || !named {
                    return Err(ParseError::new(ErrorKind::BadFieldName, at, State::FieldName));
                }
                drop_line(head, at, next);
            }
            Line::Drop { at: position, next } => drop_line(head, position, next),
            Line::Field(field) => {
                if head.fields.len() + 2 > limits.fields {
                    return Err(ParseError::new(ErrorKind::TooManyFields, at, State::FieldName));
                }
                add(head, &field);
            }
        }
    }
}

fn partial(input: &[u8], head: &Head, limits: &Limits) -> Result<Parsed, ParseError> {
    if input.len() >= limits.head {
        let in_line = !head.progress.start_line && head.kind == Kind::Request;
        let kind = if in_line { ErrorKind::TargetTooLong } else { ErrorKind::TooLarge };
        return Err(ParseError::new(kind, input.len(), State::Head));
    }
    Ok(Parsed::Partial)
}

/// The head ends before `next`.
#[inline]
fn finish(
    input: &[u8],
    head: &mut Head,
    next: usize,
    limits: &Limits,
    relax: bool,
) -> Result<Parsed, ParseError> {
    complete(input, head, next);
    rules::check(head, limits, relax)?;
    Ok(Parsed::Complete { consumed: next })
}

/// Notes a line with a bad name, which is let pass but not passed on.
#[cold]
fn drop_line(head: &mut Head, position: usize, next: usize) {
    let fault = ParseError::new(ErrorKind::BadFieldName, position, State::FieldName);
    head.violation.get_or_insert(fault);
    head.progress.offset = next;
    head.progress.dropped = true;
}

/// Reads the start line; nothing when it isn't complete.
fn start_line(input: &[u8], head: &mut Head, relax: bool) -> Result<Option<Next>, ParseError> {
    let mut at = head.progress.offset;
    // RFC 9112 section 2.2: empty lines before a request are ignored; before a response they do no harm
    // either.
    loop {
        match (input.get(at), input.get(at + 1)) {
            (Some(b'\r'), Some(b'\n')) => at += 2,
            (Some(b'\n'), _) => at += 1,
            _ => break,
        }
    }
    head.progress.offset = at;
    let next = match head.kind {
        Kind::Request => start::request(input, at, head, relax)?,
        Kind::Response => start::status(input, at, head, relax)?.map(Next::Fields),
    };
    if let Some(Next::Fields(offset)) = next {
        head.progress.offset = offset;
        head.progress.start_line = true;
    }
    Ok(next)
}

#[inline]
fn add_usual(head: &mut Head, at: usize, line: &line::Usual) {
    let entry = Field {
        name: Span::new(at, line.colon),
        value: Span::new(line.colon + 2, line.end),
        known: line.known,
        plain: true,
        removed: false,
    };
    head.count_in(&entry);
    head.progress.upper |= line.upper;
    head.progress.offset = line.end + 2;
    head.progress.dropped = false;
    head.fields.push(entry);
}

#[inline]
fn add(head: &mut Head, line: &line::FieldLine) {
    let entry = Field {
        name: Span::new(line.name.0, line.name.1),
        value: Span::new(line.value.0, line.value.1),
        known: line.known,
        plain: line.plain,
        removed: false,
    };
    head.count_in(&entry);
    head.progress.upper |= line.upper;
    head.progress.offset = line.next;
    head.progress.dropped = false;
    if line.nul.is_some() {
        head.violation = head.violation.or(line.nul);
    }
    head.fields.push(entry);
}

/// A line that starts with a blank goes on with the value before it (RFC 9112 section 5.2).
fn fold(head: &mut Head, value: (usize, usize), next: usize) {
    let Some(last) = head.fields.last_mut() else { return };
    head.field_bytes -= last.wire_len();
    let start = if last.value.len == 0 { value.0 } else { last.value.start() };
    let end = if value.1 > value.0 { value.1 } else { last.value.end() };
    last.value = Span::new(start, end.max(start));
    last.plain = false;
    head.field_bytes += last.wire_len();
    head.progress.folded = true;
    head.progress.offset = next;
}

/// Copies the head into the arena and puts names in lower case.
fn complete(input: &[u8], head: &mut Head, end: usize) {
    head.bytes.clear();
    head.bytes.extend_from_slice(input.get(..end).unwrap_or_default());
    if head.progress.upper {
        for field in &head.fields {
            if let Some(name) = head.bytes.get_mut(field.name.start()..field.name.end()) {
                name.make_ascii_lowercase();
            }
        }
    }
    if head.progress.folded {
        for field in head.fields.iter().filter(|field| !field.plain) {
            if let Some(value) = head.bytes.get_mut(field.value.start()..field.value.end()) {
                value.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
            }
        }
    }
}

/// Where the value of the first field `known` lies, for faults found once the head is complete.
pub(super) fn position(head: &Head, known: Known) -> usize {
    head.fields.iter().find(|field| field.known == known).map_or(0, |field| field.value.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: &[u8] = b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-A:  1 \r\nX-B:\r\n\r\nrest";

    #[test]
    fn a_head_is_read_whole() {
        let mut head = Head::request();
        let parsed = parse_request(BROWSER, &mut head, &Limits::default(), false);
        assert_eq!(parsed, Ok(Parsed::Complete { consumed: BROWSER.len() - 4 }));
        assert_eq!((head.method(), head.target()), (&b"GET"[..], &b"/a?b=c"[..]));
        let fields: Vec<_> = head.fields().map(|(_, name, value)| (name, value)).collect();
        assert_eq!(fields, [(&b"host"[..], &b"example.org"[..]), (b"x-a", b"1"), (b"x-b", b"")]);
    }

    /// The greatest heads that the oracle lets pass with its defaults.
    #[test]
    fn large_heads_are_measured_as_haproxy_keeps_them() {
        let of = |before: &str, fill: usize, after: &str| {
            let input = format!("{before}{}{after}", "a".repeat(fill));
            let mut head = Head::request();
            let parsed = parse_request(input.as_bytes(), &mut head, &Limits::default(), false);
            assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{before} {fill}");
            Limits::default().admit(&head).is_ok()
        };
        for (before, most, after) in [
            ("GET / HTTP/1.1\r\nHost: x\r\nA: ", 15249, "\r\n\r\n"),
            ("GET / HTTP/1.1\nHost: x\nA:", 15249, "\n\n"),
            ("GET /", 15258, " HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\nA: ", 15222, "\r\n\r\n"),
        ] {
            assert!(of(before, most, after) && !of(before, most + 1, after), "{before}");
        }
    }

    #[test]
    fn byte_by_byte_gives_the_same() {
        let mut head = Head::request();
        for len in 0..BROWSER.len() - 4 {
            let parsed = parse_request(&BROWSER[..len], &mut head, &Limits::default(), false);
            assert_eq!(parsed, Ok(Parsed::Partial), "{len}");
        }
        let parsed = parse_request(BROWSER, &mut head, &Limits::default(), false);
        assert_eq!(parsed, Ok(Parsed::Complete { consumed: BROWSER.len() - 4 }));
        assert_eq!(head.count("x-a"), 1);
    }
}
