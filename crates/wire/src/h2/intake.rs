//! Header lists of HTTP/2 into heads (RFC 9113 section 8, RFC 8441 section 5), so that nobody behind reads
//! another message than was sent.
//!
//! An [`Intake`] receives the lines of one block. What is malformed by the RFC ends the stream; what is
//! merely no valid request, as it would be in HTTP/1, is answered with a status. A request becomes what
//! HAProxy makes of it: the authority becomes Host, in front, and takes precedence over a Host that came; the
//! target is the absolute URI, and marked so that it is written to HTTP/1 as a path; cookies are joined and
//! come last; an extended CONNECT becomes a GET that asks for an upgrade.

use crate::head::{Field, Head, Kind, Known, Span, trim};
use crate::hpack::{Line, Pseudo, Tag, ValueForm};
use crate::http1::bytes::{HOST, TARGET, TOKEN, class};
use crate::http1::{ErrorKind, check_translated, decimal};
use crate::method::{Method, Version};

/// Which kind of list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Request,
    Response,
    Trailers,
}

/// What was wrong with a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Malformed (RFC 9113 section 8.1.1): a stream error.
    Malformed(&'static str),
    /// To be answered with this status.
    Status(u16),
}

/// What a head says beside its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The length that the body has to have.
    pub length: Option<u64>,
    /// The request was an extended CONNECT (RFC 8441): answered with 200 instead of 101.
    pub extended: bool,
}

/// Reads one list into a head.
pub struct Intake<'h> {
    head: &'h mut Head,
    section: Section,
    limit: usize,
    fields: usize,
    relax: bool,
    size: usize,
    pseudo: [Option<Span>; 6],
    in_fields: bool,
    cookies: u32,
    hosts: u32,
    refusal: Option<Refusal>,
}

impl<'h> Intake<'h> {
    /// Begins with an empty head. A list may have `limit` bytes and `fields` lines less one.
    pub fn new(head: &'h mut Head, section: Section, limit: usize, fields: usize, relax: bool) -> Intake<'h> {
        head.clear_as(if section == Section::Request { Kind::Request } else { Kind::Response });
        head.version = Version::HTTP_2;
        let pseudo = [None; 6];
        Intake {
            head,
            section,
            limit,
            fields,
            relax,
            size: 0,
            pseudo,
            in_fields: false,
            cookies: 0,
            hosts: 0,
            refusal: None,
        }
    }

    /// Takes the next line.
    #[inline]
    pub fn line(&mut self, line: Line<'_>) {
        // Beyond the limit nothing is kept, so a list that unfolds to a great size costs no memory.
        self.size = self.size.saturating_add(line.name.len() + line.value.len());
        if self.size > self.limit || self.head.fields.len() + 2 > self.fields {
            return self.malformed("header list too large");
        }
        match (line.tag, line.form) {
            (_, ValueForm::Bad) | (Tag::Pseudo(_), ValueForm::Padded) => {
                self.refuse(Refusal::Malformed("bad byte in a value"));
            }
            (Tag::Field(known), form) => self.field(known, line.name, line.value, form),
            (Tag::Pseudo(pseudo), _) => self.pseudo(pseudo, line.value),
            (Tag::Bad, _) => self.refuse(Refusal::Malformed("bad field name")),
        }
    }

    /// The first fault stands, but a malformed list is no longer answered.
    fn refuse(&mut self, refusal: Refusal) {
        match (self.refusal, refusal) {
            (None, _) | (Some(Refusal::Status(_)), Refusal::Malformed(_)) => self.refusal = Some(refusal),
            _ => {}
        }
    }

    fn malformed(&mut self, why: &'static str) {
        self.refuse(Refusal::Malformed(why));
    }

    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) {
        let fits = match self.section {
            Section::Request => pseudo != Pseudo::Status,
            Section::Response => pseudo == Pseudo::Status,
            Section::Trailers => false,
        };
        if !fits || self.in_fields {
            return self.malformed("pseudo-header out of place");
        }
        let span = self.keep(value);
        match self.pseudo.get_mut(pseudo as usize) {
            Some(place @ None) => *place = Some(span),
            _ => self.malformed("pseudo-header repeated"),
        }
    }

    fn keep(&mut self, value: &[u8]) -> Span {
        let start = self.head.bytes.len();
        self.head.bytes.extend_from_slice(value);
        Span::new(start, self.head.bytes.len())
    }

    fn get(&self, pseudo: Pseudo) -> Option<Span> {
        self.pseudo.get(pseudo as usize).copied().flatten()
    }

    #[inline]
    fn field(&mut self, known: Known, name: &[u8], value: &[u8], form: ValueForm) {
        if !self.in_fields {
            self.start_line();
        }
        match known {
            Known::Connection
            | Known::KeepAlive
            | Known::ProxyConnection
            | Known::TransferEncoding
            | Known::Upgrade => return self.malformed("connection-specific field"),
            // Field values of this kind are case-sensitive unless said otherwise, and HAProxy takes it so.
            Known::Te if value != b"trailers" => {
                return self.malformed("te other than trailers");
            }
            // RFC 9110 section 6.5.1: not where the body is known already.
            Known::ContentLength | Known::Host | Known::Te if self.section == Section::Trailers => {
                return self.malformed("a field that trailers can't have");
            }
            Known::Host if self.get(Pseudo::Authority).is_some() => return,
            Known::Host if form == ValueForm::Padded => return self.malformed("a blank in a host"),
            Known::Cookie => self.cookies += 1,
            Known::Host => self.hosts += 1,
            _ => {}
        }
        // Blanks around a value are no part of it (RFC 9110 section 5.5).
        let value = if form == ValueForm::Padded { trim(value) } else { value };
        self.push(known, name, value);
    }

    fn push(&mut self, known: Known, name: &[u8], value: &[u8]) {
        let bytes = &mut self.head.bytes;
        let start = bytes.len();
        bytes.reserve(name.len() + value.len() + 4);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(b": ");
        let middle = bytes.len();
        bytes.extend_from_slice(value);
        let end = bytes.len();
        bytes.extend_from_slice(b"\r\n");
        let name = Span::new(start, start + name.len());
        let field = Field { name, value: Span::new(middle, end), known, plain: true, removed: false };
        self.head.count_in(&field);
        self.head.fields.push(field);
    }

    /// All pseudo-headers are there: makes the start line of them.
    fn start_line(&mut self) {
        self.in_fields = true;
        match self.section {
            Section::Request => self.request_line(),
            Section::Response => self.status_line(),
            Section::Trailers => {}
        }
    }

    fn status_line(&mut self) {
        let Some(span) = self.get(Pseudo::Status) else { return self.malformed("no :status") };
        let digits = span.of(&self.head.bytes);
        match decimal(digits) {
            Some(status) if digits.len() == 3 && status >= 100 => self.head.status = status as u16,
            _ => self.malformed("bad :status"),
        }
        // RFC 9113 section 8.6: there is no such thing here.
        if self.head.status == 101 {
            self.malformed("status 101");
        }
    }

    fn request_line(&mut self) {
        let Some(method) = self.get(Pseudo::Method) else { return self.malformed("no :method") };
        let text = method.of(&self.head.bytes);
        if text.is_empty() {
            return self.malformed("empty :method");
        }
        // A request of that method would be read as the preface of HTTP/2 further on.
        if text.iter().any(|&byte| class(byte) & TOKEN == 0) || text == b"PRI" {
            self.refuse(Refusal::Status(400));
        }
        self.head.method = method;
        self.head.method_id = Method::from_bytes(method.of(&self.head.bytes));
        if let Some(authority) = self.get(Pseudo::Authority) {
            let sound = authority.of(&self.head.bytes).iter().all(|&byte| is_authority(byte));
            if !sound {
                self.malformed("bad byte in :authority");
            }
        }
        if self.head.method_id == Method::Connect && self.get(Pseudo::Protocol).is_none() {
            return self.connect();
        }
        self.target();
    }

    /// A plain CONNECT has an authority and nothing else (section 8.5).
    fn connect(&mut self) {
        match self.get(Pseudo::Authority) {
            Some(authority) if self.get(Pseudo::Scheme).is_none() && self.get(Pseudo::Path).is_none() => {
                self.head.target = authority;
                self.host(authority);
            }
            _ => self.malformed("CONNECT with more or less than :authority"),
        }
    }

    fn target(&mut self) {
        let (Some(scheme), Some(mut path)) = (self.get(Pseudo::Scheme), self.get(Pseudo::Path)) else {
            return self.malformed("no :scheme or no :path");
        };
        let authority = self.get(Pseudo::Authority);
        let named = scheme.of(&self.head.bytes);
        self.head.plain_scheme = named.eq_ignore_ascii_case(b"http");
        // Who is asked for something of another scheme has to be told so.
        let usual = self.head.plain_scheme || named.eq_ignore_ascii_case(b"https");
        match path.of(&self.head.bytes) {
            [b'/', ..] => {}
            b"*" if self.head.method_id == Method::Options => {}
            b"*" if self.refusal.is_some() => {}
            // With other methods it stands for the root of an authority: alone it stays as it is, as in
            // HAProxy.
            b"*" if authority.is_none() => {}
            b"*" => path = self.root(),
            _ => return self.malformed("bad :path"),
        }
        let bytes = &self.head.bytes;
        if !self.relax && path.of(bytes).iter().any(|&byte| byte == b'#' || byte == b' ') {
            return self.malformed("bad byte in :path");
        }
        // Other than in HTTP/1, where nobody knows how they are meant, bytes beyond ASCII pass, as in
        // HAProxy.
        let fits = |byte: u8| class(byte) & TARGET != 0 || byte >= 128 || (self.relax && byte == b'#');
        if !path.of(bytes).iter().all(|&byte| fits(byte)) {
            return self.malformed("bad byte in :path");
        }
        if !is_scheme(scheme.of(bytes)) {
            self.refuse(Refusal::Status(400));
        }
        match authority {
            Some(authority) => {
                // The asterisk is no part of a URI: it stands for having no path (RFC 9112 section 3.2.4).
                let path = if path.of(&self.head.bytes) == b"*" { Span::default() } else { path };
                self.head.target = self.absolute(scheme, authority, path);
                self.head.normalized = usual;
            }
            _ => self.head.target = path,
        }
        if let Some(authority) = authority {
            self.host(authority);
        }
        if self.get(Pseudo::Protocol).is_some() {
            self.extended();
        }
    }

    fn root(&mut self) -> Span {
        let bytes = &mut self.head.bytes;
        let start = bytes.len();
        bytes.push(b'/');
        Span::new(start, bytes.len())
    }

    fn absolute(&mut self, scheme: Span, authority: Span, path: Span) -> Span {
        let bytes = &mut self.head.bytes;
        let start = bytes.len();
        bytes.extend_from_within(scheme.start()..scheme.end());
        bytes.extend_from_slice(b"://");
        bytes.extend_from_within(authority.start()..authority.end());
        bytes.extend_from_within(path.start()..path.end());
        Span::new(start, bytes.len())
    }

    fn host(&mut self, authority: Span) {
        let bytes = &mut self.head.bytes;
        let start = bytes.len();
        bytes.extend_from_slice(b"host: ");
        bytes.extend_from_within(authority.start()..authority.end());
        let end = bytes.len();
        bytes.extend_from_slice(b"\r\n");
        let (name, value) = (Span::new(start, start + 4), Span::new(start + 6, end));
        let field = Field { name, value, known: Known::Host, plain: true, removed: false };
        self.head.count_in(&field);
        self.head.fields.push(field);
    }

    /// RFC 8441 section 4: a CONNECT with a protocol is an upgrade.
    fn extended(&mut self) {
        let Some(protocol) = self.get(Pseudo::Protocol) else { return };
        let protocol = protocol.of(&self.head.bytes).to_vec();
        let sound = !protocol.is_empty() && protocol.iter().all(|&byte| class(byte) & TOKEN != 0);
        // HTTP/2 inside HTTP/2 is asked for by nobody who means well.
        let h2c = protocol.eq_ignore_ascii_case(b"h2c");
        if self.head.method_id != Method::Connect || self.get(Pseudo::Authority).is_none() || !sound || h2c {
            return self.malformed("bad :protocol");
        }
        self.head.method = Span::default();
        self.head.method_id = Method::Get;
        self.push(Known::Connection, b"connection", b"upgrade");
        self.push(Known::Upgrade, b"upgrade", &protocol);
    }

    /// The list is complete. `end` says that no body follows.
    pub fn finish(mut self, end: bool) -> Result<Facts, Refusal> {
        if !self.in_fields {
            self.start_line();
        }
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        match self.cookies {
            0 => {}
            1 => self.put_cookie_last(),
            _ => self.join_cookies(),
        }
        if self.section == Section::Trailers {
            return Ok(Facts::default());
        }
        let extended = self.get(Pseudo::Protocol).is_some();
        if self.needs_check() {
            self.check()?;
        }
        let length = self.head.first(Known::ContentLength).and_then(decimal);
        if end && self.section == Section::Request && length.is_some_and(|length| length > 0) {
            return Err(Refusal::Malformed("a length and no body"));
        }
        Ok(Facts { length, extended })
    }

    /// Lengths are rare in requests, and a host that has nothing but letters is no trouble.
    fn needs_check(&self) -> bool {
        if self.head.present & Known::ContentLength.bit() != 0 {
            return true;
        }
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        self.section == Section::Request
            && (self.head.method_id == Method::Connect
                || self.hosts > 1
                || self
                    .head
                    .first(Known::Host)
                    .is_some_and(|host| host.is_empty() || !host.iter().all(plain)))
    }

    /// The checks that HTTP/1 makes of a whole head, which also put a default port in order.
    fn check(&mut self) -> Result<(), Refusal> {
        let normalized = self.head.normalized;
        let checked = check_translated(self.head, self.relax);
        self.head.normalized = normalized;
        checked.map_err(|fault| match fault.kind {
            ErrorKind::BadContentLength | ErrorKind::ConflictingContentLength => {
                Refusal::Malformed("bad content-length")
            }
            ErrorKind::BadHost | ErrorKind::BadAuthority => Refusal::Malformed("bad host"),
            kind => Refusal::Status(kind.status()),
        })
    }

    /// Where joined ones stand, too.
    fn put_cookie_last(&mut self) {
        let found = self.head.all(Known::Cookie).next();
        if let Some(index) = found.map(|(index, _)| index).filter(|index| index + 1 < self.head.fields.len())
        {
            let cookie = self.head.fields.remove(index);
            self.head.fields.push(cookie);
        }
    }

    /// Section 8.2.3: one field for whoever knows only HTTP/1, and the last one.
    fn join_cookies(&mut self) {
        let mut joined = Vec::new();
        for (_, value) in self.head.all(Known::Cookie).filter(|(_, value)| !value.is_empty()) {
            if !joined.is_empty() {
                joined.extend_from_slice(b"; ");
            }
            joined.extend_from_slice(value);
        }
        self.head.remove_all(Known::Cookie);
        self.push(Known::Cookie, b"cookie", &joined);
    }
}

fn is_scheme(scheme: &[u8]) -> bool {
    let more = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(more)
}

fn is_authority(byte: u8) -> bool {
    class(byte) & HOST != 0 || matches!(byte, b'[' | b']')
}
