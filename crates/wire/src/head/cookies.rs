//! Cookies: pairs of a `Cookie` line (RFC 6265 section 4.2) and the pair that opens a `Set-Cookie` line (section 4.1).
//!
//! Names are case-sensitive, blanks around name and value are dropped, and a quoted value keeps its quotes, as the
//! manual's `req.cook` says. What has no `=` is no cookie.

use super::values::trim;
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
            let end = memchr::memchr(b';', rest).unwrap_or(rest.len());
            let pair = pair(rest.get(..end).unwrap_or_default(), self.index, self.at);
            self.at += end + 1;
            if pair.is_some() {
                return pair;
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
            let end = memchr::memchr(b';', line).unwrap_or(line.len());
            if let Some(cookie) = pair(line.get(..end).unwrap_or_default(), index, 0) {
                return Some(cookie);
            }
        }
    }
}

/// The cookie in `text`, which starts at `offset` of its line.
fn pair(text: &[u8], index: usize, offset: usize) -> Option<Cookie<'_>> {
    let equals = memchr::memchr(b'=', text)?;
    let (name, value) = (trim(text.get(..equals)?), trim(text.get(equals + 1..)?));
    let lead = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let tail = text.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let (start, end) = (offset + lead.min(equals), offset + (text.len() - tail).max(equals + 1));
    Some(Cookie { index, name, value, start, end })
}
