//! One message head for every HTTP version, request or response.
//!
//! A head is one arena of bytes and a table of fields that point into it. The parser copies the received head
//! into the arena in one go and notes where each name and value lies. An edit appends its bytes to the arena
//! and repoints the table; nothing is put back together until the head is written out, and there every run of
//! fields that nobody touched is one copy. [`Head::clear`] keeps the memory, so a recycled head allocates
//! nothing.
//!
//! Names are kept in lower case whatever the peer wrote: HTTP/2 demands it, and the manual (`h1-case-adjust`)
//! documents that HTTP/1 peers get them so too. Removed fields leave a hole in the table, so an index stays
//! valid until something is prepended or the head is cleared.
//!
//! The limit ([`Head::set_limit`]) counts live bytes, that is what the head would take on an HTTP/1 wire, not
//! what edits left behind in the arena; what lies there unused is swept out when it outgrows the rest.

mod cookies;
mod edit;
mod known;
mod values;

pub use cookies::{Cookie, Cookies, Segment, SetCookies, segment};
pub use known::{Known, NAMES};
pub use values::{Values, comma, split_values, trim};

use crate::method::{Method, Version, default_reason};

/// Whether a head opens a request or a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    Request,
    Response,
}

/// An edit was refused because the head would outgrow its limit; the head is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A range of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, len: end.saturating_sub(start) as u32 }
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.start as usize + self.len as usize
    }

    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start()..self.end()).unwrap_or_default()
    }
}

/// One entry of the table. `plain` says that the arena holds exactly `name: value\r\n` around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub name: Span,
    pub value: Span,
    pub known: Known,
    pub plain: bool,
    pub removed: bool,
}

impl Field {
    /// Bytes of a line beside name and value: colon, space, CR, LF.
    pub(crate) const AROUND: usize = 4;

    /// Bytes on an HTTP/1 wire: name, colon, space, value, CR, LF.
    #[inline]
    pub(crate) fn wire_len(&self) -> usize {
        self.name.len as usize + self.value.len as usize + Field::AROUND
    }
}

/// How far the HTTP/1 parser has come with a head of which only a part has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// A parse is under way: `offset` bytes of the input are done with.
    pub under_way: bool,
    pub offset: usize,
    pub start_line: bool,
    /// A name had an upper-case letter.
    pub upper: bool,
    /// A value went on over a line end (obs-fold).
    pub folded: bool,
    /// The last line was dropped; what folds belongs to it.
    pub dropped: bool,
}

/// The head of a message: start line and fields. See the module for how it is kept.
#[derive(Clone, Debug)]
pub struct Head {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields: Vec<Field>,
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) method_id: Method,
    pub(crate) method: Span,
    pub(crate) target: Span,
    pub(crate) reason: Span,
    /// A version that is written as it came, because it is none of those that [`Version`] writes.
    pub(crate) version_text: Span,
    /// How the version was written by whoever sent the head, if not in a usual way.
    pub(crate) version_read: Span,
    /// A status that is written as it came, because it has not three digits.
    pub(crate) status_text: Span,
    /// A bit for each known field that is or was present.
    pub(crate) present: u64,
    /// Sum of `wire_len` over the live fields.
    pub(crate) field_bytes: usize,
    /// How many fields are live.
    pub(crate) live: usize,
    pub(crate) limit: usize,
    pub(crate) progress: Progress,
    pub(crate) violation: Option<crate::http1::ParseError>,
    /// The framing was doubtful: the connection has to close after this message.
    pub(crate) distrusted: bool,
    /// The target is a URI only because HTTP/2 sends its parts: HTTP/1 gets the path of it.
    pub(crate) normalized: bool,
    /// Its sender named the scheme `http`, be it in a field that is none of the target.
    pub(crate) plain_scheme: bool,
}

impl Default for Head {
    fn default() -> Head {
        Head::request()
    }
}

impl Head {
    /// An empty request: `GET` without a target.
    pub fn request() -> Head {
        Head::new(Kind::Request)
    }

    /// An empty response with status 200.
    pub fn response() -> Head {
        Head::new(Kind::Response)
    }

    fn new(kind: Kind) -> Head {
        let mut head = Head {
            bytes: Vec::new(),
            fields: Vec::new(),
            kind,
            version: Version::HTTP_11,
            status: 200,
            method_id: Method::Get,
            method: Span::default(),
            target: Span::default(),
            reason: Span::default(),
            version_text: Span::default(),
            version_read: Span::default(),
            status_text: Span::default(),
            present: 0,
            field_bytes: 0,
            live: 0,
            limit: usize::MAX,
            progress: Progress::default(),
            violation: None,
            distrusted: false,
            normalized: false,
            plain_scheme: false,
        };
        head.clear();
        head
    }

    /// Makes the head empty again, keeping its kind, its memory and its limit.
    pub fn clear(&mut self) {
        self.clear_as(self.kind);
    }

    /// Makes the head an empty one of `kind`, keeping memory and limit.
    pub fn clear_as(&mut self, kind: Kind) {
        self.bytes.clear();
        self.fields.clear();
        self.kind = kind;
        self.version = Version::HTTP_11;
        self.status = if kind == Kind::Response { 200 } else { 0 };
        self.method_id = if kind == Kind::Request { Method::Get } else { Method::Other };
        (self.method, self.target, self.reason) = Default::default();
        (self.version_text, self.version_read, self.status_text) = Default::default();
        self.present = 0;
        self.field_bytes = 0;
        self.live = 0;
        self.progress = Progress::default();
        self.violation = None;
        self.distrusted = false;
        self.normalized = false;
        self.plain_scheme = false;
    }

    /// Live bytes that edits may bring the head to, as [`Head::wire_len`] counts them. What is there already
    /// stays.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Gives back memory above `capacity` bytes, for a head that waits in a pool.
    pub fn shrink_to(&mut self, capacity: usize) {
        self.bytes.shrink_to(capacity);
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The method as received or set; `GET` in an empty request, nothing in a response.
    pub fn method(&self) -> &[u8] {
        if self.method.len == 0 { self.method_id.as_str().as_bytes() } else { self.method.of(&self.bytes) }
    }

    pub fn method_id(&self) -> Method {
        self.method_id
    }

    /// The request target in whichever form it came (RFC 9112 section 3.2); see [`crate::uri`] for its parts.
    pub fn target(&self) -> &[u8] {
        self.target.of(&self.bytes)
    }

    /// The target as HTTP/1 gets it: the path alone, where HTTP/2 brought the parts of a URI (RFC 9113
    /// section 8.3.1).
    pub fn written_target(&self) -> &[u8] {
        let target = self.target();
        if !self.normalized {
            return target;
        }
        match crate::uri::path_and_query(target) {
            // A rule may have left no path.
            [] if crate::uri::scheme(target).is_none() => target,
            [] if self.method_id == Method::Options => b"*",
            [] => b"/",
            path => path,
        }
    }

    /// Whether the target is a URI only because HTTP/2 sends its parts.
    pub fn is_normalized(&self) -> bool {
        self.normalized
    }

    /// The scheme of a request that has none in its target: what its sender named if that is `http`, `https`
    /// otherwise, whatever the connection, as in HAProxy.
    pub fn default_scheme(&self) -> &'static [u8] {
        if self.plain_scheme { b"http" } else { b"https" }
    }

    /// Keeps the scheme that the target names, for rules may take it away.
    pub fn keep_scheme(&mut self) {
        self.plain_scheme |=
            crate::uri::scheme(self.target()).is_some_and(|s| s.eq_ignore_ascii_case(b"http"));
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The version as its sender wrote it: `HTTP/2.0` of a request of HTTP/1 that says so goes on as
    /// HTTP/1.1.
    pub fn version_read(&self) -> &[u8] {
        match self.version_read.of(&self.bytes) {
            b"" => self.version.as_str().as_bytes(),
            text => text,
        }
    }

    /// The status of a response, 0 in a request.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase as received or set; it may be empty.
    pub fn reason(&self) -> &[u8] {
        self.reason.of(&self.bytes)
    }

    /// What the HTTP/1 parser let pass only because it was told to relax, for `show errors`.
    pub fn violation(&self) -> Option<crate::http1::ParseError> {
        self.violation
    }

    /// Whether the framing was doubtful, so that the connection has to close after this message.
    pub fn is_distrusted(&self) -> bool {
        self.distrusted
    }

    /// Bytes that the head takes on an HTTP/1 wire, the closing empty line included.
    pub fn wire_len(&self) -> usize {
        self.start_line_len() + self.field_bytes + 2
    }

    /// The fields as they stand behind the last chunk of a body, the empty line included (RFC 9112 section
    /// 7.1.2).
    pub fn trailer_lines(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.field_bytes + 2);
        for (_, name, value) in self.fields() {
            [name, b": ", value, b"\r\n"].into_iter().for_each(|part| out.extend_from_slice(part));
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// Bytes that the head counts for in logs and statistics. HAProxy counts its own form of a message: a
    /// start line of 20 bytes and its three parts, the names and values of the fields, one byte for the end.
    pub fn counted_len(&self) -> usize {
        let start = match self.kind {
            Kind::Request => self.method().len() + self.target().len(),
            Kind::Response => 3 + self.reason().len(),
        };
        20 + 8 + start + (self.field_bytes - Field::AROUND * self.live) + 1
    }

    /// Counts a field that is about to enter the table.
    #[inline]
    pub(crate) fn count_in(&mut self, field: &Field) {
        self.present |= field.known.bit();
        self.field_bytes += field.wire_len();
        self.live += 1;
    }

    pub(crate) fn start_line_len(&self) -> usize {
        let version = if self.version_text.len == 0 { 8 } else { self.version_text.len as usize };
        match self.kind {
            Kind::Request => self.method().len() + self.written_target().len() + version + 4,
            Kind::Response => {
                let status = if self.status_text.len == 0 { 3 } else { self.status_text.len as usize };
                version + status + self.written_reason().len() + 4
            }
        }
    }

    /// The reason phrase, or the one that belongs to the status when there is none.
    pub(crate) fn written_reason(&self) -> &[u8] {
        if self.reason.len == 0 { default_reason(self.status).as_bytes() } else { self.reason() }
    }

    /// The fields in order, each with its index.
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = (usize, &[u8], &[u8])> + Clone {
        let live = self.fields.iter().enumerate().filter(|(_, field)| !field.removed);
        live.map(|(index, field)| (index, field.name.of(&self.bytes), field.value.of(&self.bytes)))
    }

    /// The number of fields, removed ones not counted.
    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The field at `index`, unless it is removed.
    pub fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let field = self.fields.get(index).filter(|field| !field.removed)?;
        Some((field.name.of(&self.bytes), field.value.of(&self.bytes)))
    }

    /// The number of the field at `index`.
    pub fn known(&self, index: usize) -> Known {
        self.fields.get(index).map_or(Known::Other, |field| field.known)
    }

    /// Whether `name` (any case) is there.
    pub fn has<'n>(&self, name: impl Into<Name<'n>>) -> bool {
        self.all(name).next().is_some()
    }

    /// The value of the first field called `name` (any case).
    pub fn first<'n>(&self, name: impl Into<Name<'n>>) -> Option<&[u8]> {
        self.all(name).next().map(|(_, value)| value)
    }

    /// The value of the last field called `name`.
    pub fn last<'n>(&self, name: impl Into<Name<'n>>) -> Option<&[u8]> {
        self.all(name).next_back().map(|(_, value)| value)
    }

    /// The number of fields called `name`.
    pub fn count<'n>(&self, name: impl Into<Name<'n>>) -> usize {
        self.all(name).count()
    }

    /// Index and value of every field called `name`, in order.
    pub fn all<'h, 'n>(&'h self, name: impl Into<Name<'n>>) -> All<'h, 'n> {
        let name = name.into();
        let absent = name.known != Known::Other && self.present & name.known.bit() == 0;
        let fields = if absent { &[] } else { self.fields.as_slice() };
        All { bytes: &self.bytes, fields: fields.iter().enumerate(), name }
    }

    /// The comma-separated values of every field called `name`, as the manual's `req.hdr` sees them.
    pub fn values<'h, 'n>(&'h self, name: impl Into<Name<'n>>) -> Values<'h, 'n> {
        Values::new(self.all(name))
    }

    /// Whether one of the comma-separated values of `name` is `token` in any case.
    pub fn has_token<'n>(&self, name: impl Into<Name<'n>>, token: &[u8]) -> bool {
        self.values(name).any(|value| value.eq_ignore_ascii_case(token))
    }

    /// The reason phrase that belongs to `status` when none is given.
    pub fn reason_for(status: u16) -> &'static str {
        default_reason(status)
    }
}

/// The name of a field to look for: its text in any case, or its number, which is found faster.
#[derive(Clone, Copy, Debug)]
pub struct Name<'n> {
    known: Known,
    text: &'n [u8],
    /// The text is in lower case and ends no line, so that it is stored as it is.
    clean: bool,
}

/// A name that was read at start-up: looked up, and in the form that messages keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    known: Known,
    text: Box<[u8]>,
}

impl FieldName {
    /// Of a name in any case; what would end a line becomes a blank.
    pub fn new(text: &[u8]) -> FieldName {
        let mut text: Box<[u8]> = text.into();
        text.make_ascii_lowercase();
        text.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
        FieldName { known: Known::of(&text), text }
    }

    /// The name in lower case.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

impl<'n> From<&'n FieldName> for Name<'n> {
    #[inline]
    fn from(name: &'n FieldName) -> Self {
        Name { known: name.known, text: &name.text, clean: true }
    }
}

impl Name<'_> {
    #[inline]
    pub(crate) fn is(&self, field: &Field, bytes: &[u8]) -> bool {
        match self.known {
            Known::Other => field.known == Known::Other && known::same(field.name.of(bytes), self.text),
            known => field.known == known,
        }
    }
}

impl<'n> Name<'n> {
    /// Looks the number up once, so that a name fixed at start-up is never hashed again.
    pub fn new(text: &'n [u8]) -> Name<'n> {
        Name { known: Known::of(text), text, clean: false }
    }

    pub fn as_bytes(&self) -> &'n [u8] {
        self.text
    }
}

impl From<Known> for Name<'_> {
    fn from(known: Known) -> Self {
        Name { known, text: known.name().as_bytes(), clean: true }
    }
}

impl<'n> From<&'n [u8]> for Name<'n> {
    fn from(text: &'n [u8]) -> Self {
        Name::new(text)
    }
}

impl<'n, const N: usize> From<&'n [u8; N]> for Name<'n> {
    fn from(text: &'n [u8; N]) -> Self {
        Name::new(text)
    }
}

impl<'n> From<&'n str> for Name<'n> {
    fn from(text: &'n str) -> Self {
        Name::new(text.as_bytes())
    }
}

/// Index and value of the fields of one name; see [`Head::all`].
#[derive(Clone, Debug)]
pub struct All<'h, 'n> {
    bytes: &'h [u8],
    fields: std::iter::Enumerate<std::slice::Iter<'h, Field>>,
    name: Name<'n>,
}

impl All<'_, '_> {
    fn wanted(&self, field: &Field) -> bool {
        !field.removed && self.name.is(field, self.bytes)
    }
}

impl<'h> Iterator for All<'h, '_> {
    type Item = (usize, &'h [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (index, field) = self.fields.next()?;
            if self.wanted(field) {
                return Some((index, field.value.of(self.bytes)));
            }
        }
    }
}

impl DoubleEndedIterator for All<'_, '_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let (index, field) = self.fields.next_back()?;
            if self.wanted(field) {
                return Some((index, field.value.of(self.bytes)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
