//! Cookies: pairs of a `Cookie` line (RFC 6265 section 4.2) and the pair that opens a `Set-Cookie` line
//! (section 4.1).
//!
//! Names are case-sensitive, blanks around name and value are dropped, and a quoted value keeps its quotes,
//! as the manual's `req.cook` says. What has no `=` is no cookie. As RFC 2965 had it, which HAProxy still
//! reads, a comma ends a pair like a semicolon, neither does within quotes, and names that begin with `$` are
//! no cookies but say something of the one before them.

use super::values::{is_blank, trim};
use super::{All, Head, Known};

/// A cookie as found in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie<'h> {
    /// The index of its field.
    pub index: usize,
    pub name: &'h [u8],
    pub value: &'h [u8],
    /// Where the pair lies in the field's value: from the first byte of the name to the end of the value.
    pub start: usize,
    pub end: usize,
    /// It is empty and the last of its line, with nothing but its name and `=`: who looks for that name does
    /// not see it.
    pub trails_empty: bool,
}

impl Head {
    /// Every cookie of the `Cookie` fields, in order.
    pub fn cookies(&self) -> Cookies<'_> {
        Cookies { fields: self.all(Known::Cookie), index: 0, line: &[], at: 0 }
    }

    /// The value of the first cookie called `name`.
    pub fn cookie(&self, name: &[u8]) -> Option<&[u8]> {
        self.cookies().find(|cookie| cookie.name == name).map(|cookie| cookie.value)
    }

    /// Every cookie that `Set-Cookie` fields set, in order.
    pub fn set_cookies(&self) -> SetCookies<'_> {
        SetCookies { fields: self.all(Known::SetCookie) }
    }

    /// The value of the first `Set-Cookie` called `name`.
    pub fn set_cookie(&self, name: &[u8]) -> Option<&[u8]> {
        self.set_cookies().find(|cookie| cookie.name == name).map(|cookie| cookie.value)
    }
}

/// What stands between two separators of a line, with the pair in it if it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'h> {
    /// All of it, blanks included.
    pub text: &'h [u8],
    /// Name and value, without the blanks around them.
    pub pair: Option<(&'h [u8], &'h [u8])>,
    /// Bytes before the name.
    pub lead: usize,
    /// Bytes behind the value.
    pub tail: usize,
    /// The separator that ended it, 0 at the end of the line.
    pub separator: u8,
}

impl Segment<'_> {
    /// Whether it says something of the cookie before it, or of all of them (`$Path`, `$Version`).
    pub fn is_attribute(&self) -> bool {
        self.text.trim_ascii_start().starts_with(b"$")
    }
}

/// The first segment of `line`, which ends at a semicolon or a comma outside of a value's quotes.
pub fn segment(line: &[u8]) -> Segment<'_> {
    let is_separator = |byte: &u8| matches!(byte, b';' | b',');
    let stop = line.iter().position(|byte| is_separator(byte) || *byte == b'=').unwrap_or(line.len());
    let is_pair = line.get(stop) == Some(&b'=');
    let end = if is_pair { value_end(line, stop + 1) } else { stop };
    let text = line.get(..end).unwrap_or_default();
    let blanks = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| is_blank(byte)).count();
    let name = text.get(..stop).unwrap_or_default();
    let value = text.get(stop + 1..).unwrap_or_default();
    Segment {
        text,
        pair: is_pair.then(|| (trim(name), trim(value))),
        lead: blanks(&mut name.iter()),
        tail: blanks(&mut value.iter().rev()),
        separator: line.get(end).copied().unwrap_or(0),
    }
}

/// Where the value ends that starts at `from`: quotes hide separators, a backslash within them what follows
/// it.
fn value_end(line: &[u8], from: usize) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.iter().enumerate().skip(from) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b';' | b',' if !quoted => return at,
            _ => {}
        }
    }
    line.len()
}

/// See [`Head::cookies`].
#[derive(Clone, Debug)]
pub struct Cookies<'h> {
    fields: All<'h, 'static>,
    index: usize,
    line: &'h [u8],
    at: usize,
}

impl<'h> Iterator for Cookies<'h> {
    type Item = Cookie<'h>;

    fn next(&mut self) -> Option<Cookie<'h>> {
        loop {
            let rest = self.line.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                (self.index, self.line) = self.fields.next()?;
                self.at = 0;
                continue;
            }
            let segment = segment(rest);
            let cookie = cookie(&segment, self.index, self.at);
            self.at += segment.text.len() + 1;
            if cookie.is_some() {
                return cookie;
            }
        }
    }
}

/// See [`Head::set_cookies`].
#[derive(Clone, Debug)]
pub struct SetCookies<'h> {
    fields: All<'h, 'static>,
}

impl<'h> Iterator for SetCookies<'h> {
    type Item = Cookie<'h>;

    fn next(&mut self) -> Option<Cookie<'h>> {
        loop {
            let (index, line) = self.fields.next()?;
            if let Some(cookie) = cookie(&segment(line), index, 0) {
                return Some(cookie);
            }
        }
    }
}

/// The cookie in a segment that starts at `offset` of its line.
fn cookie<'h>(segment: &Segment<'h>, index: usize, offset: usize) -> Option<Cookie<'h>> {
    let (name, value) = segment.pair.filter(|(name, _)| !name.starts_with(b"$"))?;
    let (start, end) = (offset + segment.lead, offset + segment.text.len() - segment.tail);
    let trails_empty = segment.separator == 0 && segment.text.len() == name.len() + 1;
    Some(Cookie { index, name, value, start, end, trails_empty })
}
