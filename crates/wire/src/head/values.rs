//! Lists in field values: parts between commas, where a comma within a quoted string does not part (RFC 9110
//! section 5.6.1 and 5.6.4). The manual's `req.hdr` walks these; `req.fhdr` takes
//! [`Head::all`](super::Head::all).

use super::All;

/// The comma-separated values of all fields of one name, in order, without the blanks around them.
#[derive(Clone, Debug)]
pub struct Values<'h, 'n> {
    fields: All<'h, 'n>,
    parts: Option<Split<'h>>,
    index: usize,
}

impl<'h, 'n> Values<'h, 'n> {
    pub(super) fn new(fields: All<'h, 'n>) -> Values<'h, 'n> {
        Values { fields, parts: None, index: 0 }
    }

    /// The index of the field that the last value came from.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl<'h> Iterator for Values<'h, '_> {
    type Item = &'h [u8];

    fn next(&mut self) -> Option<&'h [u8]> {
        loop {
            if let Some(part) = self.parts.as_mut().and_then(Iterator::next) {
                return Some(part);
            }
            let (index, value) = self.fields.next()?;
            self.index = index;
            self.parts = Some(split_values(value));
        }
    }
}

/// The parts of one field value. An empty value is one empty part.
pub fn split_values(value: &[u8]) -> Split<'_> {
    Split { rest: Some(value) }
}

/// See [`split_values`].
#[derive(Clone, Debug)]
pub struct Split<'v> {
    rest: Option<&'v [u8]>,
}

impl<'v> Iterator for Split<'v> {
    type Item = &'v [u8];

    fn next(&mut self) -> Option<&'v [u8]> {
        let rest = self.rest.take()?;
        let end = comma(rest);
        let (part, tail) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        self.rest = tail.get(1..);
        Some(trim(part))
    }
}

/// The position of the first comma outside quotes, or the length.
pub fn comma(value: &[u8]) -> usize {
    let Some(first) = memchr::memchr2(b',', b'"', value) else { return value.len() };
    if value.get(first) == Some(&b',') {
        return first;
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, &byte) in value.iter().enumerate().skip(first) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    value.len()
}

/// `value` without the optional white space around it (RFC 9110, 5.6.3): spaces and tabs, no form feed or
/// other control.
pub fn trim(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    value.get(start..end).unwrap_or_default()
}

/// Whether a byte is a space or a tab.
pub(crate) fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Turns what ends a line or a text into blanks (RFC 9110 section 5.5). Callers encode such bytes; this makes
/// sure that none of them can ever split a message.
pub(super) fn blank_line_ends(stored: &mut [u8]) {
    let mut from = 0;
    while let Some(rest) = stored.get_mut(from..)
        && let Some(at) = memchr::memchr3(b'\r', b'\n', 0, rest)
        && let Some(byte) = rest.get_mut(at)
    {
        *byte = b' ';
        from += at + 1;
    }
}
