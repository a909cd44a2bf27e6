//! Changing a head: every edit appends to the arena and repoints, or is refused whole with [`NoRoom`].

use super::values::{blank_line_ends, is_blank, trim};
use super::{Field, Head, Kind, Known, Name, NoRoom, Span, comma, split_values};
use crate::method::{Method, Version, default_reason};

/// Dead bytes that the arena may hold beside the live ones before it is swept.
const DEAD_MAX: usize = 16 * 1024;

impl Head {
    /// Replaces the method.
    pub fn set_method(&mut self, method: &[u8]) -> Result<(), NoRoom> {
        self.method = self.replace(self.method().len(), method)?;
        self.method_id = Method::from_bytes(method);
        Ok(())
    }

    /// Replaces the request target.
    pub fn set_target(&mut self, target: &[u8]) -> Result<(), NoRoom> {
        self.target = self.replace(self.target.len as usize, target)?;
        Ok(())
    }

    /// Replaces the request target by what somebody chose: HTTP/1 gets it as it is, whatever the request came
    /// over.
    pub fn set_uri(&mut self, target: &[u8]) -> Result<(), NoRoom> {
        self.normalized = false;
        self.set_target(target)
    }

    /// Replaces the status and the reason, which is the registered one when none is given.
    pub fn set_status(&mut self, status: u16, reason: Option<&[u8]>) -> Result<(), NoRoom> {
        let reason = reason.unwrap_or(default_reason(status).as_bytes());
        self.reason = self.replace(self.reason.len as usize, reason)?;
        self.status = status;
        self.status_text = Span::default();
        Ok(())
    }

    pub fn set_version(&mut self, version: Version) {
        self.version = version;
        (self.version_text, self.version_read) = Default::default();
    }

    /// Adds a field after all others and returns its index.
    pub fn append<'n>(&mut self, name: impl Into<Name<'n>>, value: &[u8]) -> Result<usize, NoRoom> {
        let field = self.store(name.into(), value)?;
        self.fields.push(field);
        Ok(self.fields.len() - 1)
    }

    /// Adds a field before all others; every index grows by one.
    pub fn prepend(&mut self, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        let field = self.store(Name::new(name), value)?;
        self.fields.insert(0, field);
        Ok(())
    }

    /// Removes every field called `name` and appends one. When there is no room the old ones stay.
    pub fn set<'n>(&mut self, name: impl Into<Name<'n>>, value: &[u8]) -> Result<usize, NoRoom> {
        let name = name.into();
        let freed: usize = self.matching(name).map(|field| field.wire_len()).sum();
        if self.wire_len() - freed + name.text.len() + value.len() + Field::AROUND > self.limit {
            return Err(NoRoom);
        }
        if freed > 0 {
            self.remove_all(name);
        }
        self.append(name, value)
    }

    /// Removes every field called `name` (any case) and says how many there were.
    pub fn remove_all<'n>(&mut self, name: impl Into<Name<'n>>) -> usize {
        let name = name.into();
        let mut removed = 0;
        if self.never_had(name) {
            return removed;
        }
        for index in 0..self.fields.len() {
            if self.fields.get(index).is_some_and(|field| !field.removed && name.is(field, &self.bytes)) {
                self.remove(index);
                removed += 1;
            }
        }
        removed
    }

    /// Removes the field at `index`; false when there is none.
    pub fn remove(&mut self, index: usize) -> bool {
        let Some(field) = self.fields.get_mut(index).filter(|field| !field.removed) else { return false };
        field.removed = true;
        self.field_bytes -= field.wire_len();
        self.live -= 1;
        true
    }

    /// Gives the field at `index` another value. Nothing happens when there is no such field.
    pub fn replace_value(&mut self, index: usize, value: &[u8]) -> Result<(), NoRoom> {
        let Some(field) = self.fields.get(index).filter(|field| !field.removed) else { return Ok(()) };
        let old = field.value.len as usize;
        let span = self.replace(old, value)?;
        if let Some(field) = self.fields.get_mut(index) {
            field.value = span;
            field.plain = false;
        }
        self.field_bytes = self.field_bytes - old + value.len();
        Ok(())
    }

    /// Keeps of the comma-separated values of every field called `name` those that `keep` wants, in their
    /// place and as they were written; a field of which nothing is left goes. It takes no room, so it can't
    /// fail.
    pub fn retain_values<'n>(&mut self, name: impl Into<Name<'n>>, mut keep: impl FnMut(&[u8]) -> bool) {
        let name = name.into();
        if self.never_had(name) {
            return;
        }
        for index in 0..self.fields.len() {
            let wanted = |field: &&mut Field| !field.removed && name.is(field, &self.bytes);
            let Some(span) = self.fields.get_mut(index).filter(wanted).map(|field| field.value) else {
                continue;
            };
            if split_values(span.of(&self.bytes)).all(&mut keep) && span.len > 0 {
                continue;
            }
            let len = self.squeeze(span, &mut keep);
            if len == 0 {
                self.remove(index);
            } else if let Some(field) = self.fields.get_mut(index) {
                field.value.len = len;
                field.plain = false;
                self.field_bytes -= (span.len - len) as usize;
            }
        }
    }

    /// Moves the wanted values within `span` to its start and returns their length.
    fn squeeze(&mut self, span: Span, mut keep: impl FnMut(&[u8]) -> bool) -> u32 {
        let Some(value) = self.bytes.get_mut(span.start()..span.end()) else { return 0 };
        let (mut from, mut to, mut first) = (0, 0, true);
        while let Some(rest) = value.get(from..) {
            let end = from + comma(rest);
            let blanks =
                value.get(from..end).unwrap_or_default().iter().take_while(|byte| is_blank(byte)).count();
            let start = from + blanks;
            if value.get(start..end).is_some_and(|part| keep(trim(part))) {
                if !first && let Some(slot) = value.get_mut(to) {
                    *slot = b',';
                    to += 1;
                }
                value.copy_within(start..end, to);
                (to, first) = (to + end - start, false);
            }
            from = end + 1;
        }
        let kept = value.get(..to).unwrap_or_default();
        trim(kept).len() as u32 + kept.iter().take_while(|byte| is_blank(byte)).count() as u32
    }

    /// Makes this head a copy of `other`, keeping its own memory and limit.
    pub fn copy_from(&mut self, other: &Head) {
        let (mut bytes, mut fields, limit) =
            (std::mem::take(&mut self.bytes), std::mem::take(&mut self.fields), self.limit);
        bytes.clear();
        bytes.extend_from_slice(&other.bytes);
        fields.clear();
        fields.extend_from_slice(&other.fields);
        *self = Head { bytes, fields, limit, ..*other };
    }

    /// A copy that holds no more than what is live.
    #[must_use]
    pub fn compact(&self) -> Head {
        let mut copy =
            Head { bytes: Vec::with_capacity(self.wire_len()), fields: Vec::new(), ..self.blank() };
        let mut keep = |span: Span| {
            let start = copy.bytes.len();
            copy.bytes.extend_from_slice(span.of(&self.bytes));
            Span::new(start, copy.bytes.len())
        };
        let spans =
            [self.method, self.target, self.reason, self.version_text, self.version_read, self.status_text];
        let [method, target, reason, version_text, version_read, status_text] = spans.map(&mut keep);
        (copy.method, copy.target, copy.reason) = (method, target, reason);
        (copy.version_text, copy.version_read, copy.status_text) = (version_text, version_read, status_text);
        for (_, name, value) in self.fields() {
            // What fitted before fits again.
            let _ = copy.append(name, value);
        }
        copy
    }

    /// One without fields and with an arena of its own, like this one otherwise.
    fn blank(&self) -> Head {
        Head {
            bytes: Vec::new(),
            fields: Vec::new(),
            present: 0,
            field_bytes: 0,
            live: 0,
            limit: usize::MAX,
            ..*self
        }
    }

    /// Appends `name: value\r\n` to the arena, the name in lower case.
    fn store(&mut self, name: Name<'_>, value: &[u8]) -> Result<Field, NoRoom> {
        let (known, text) = (name.known, name.text);
        self.reserve(text.len() + value.len() + Field::AROUND)?;
        let start = self.bytes.len();
        if name.clean {
            self.bytes.extend_from_slice(text);
        } else if known == Known::Other {
            self.bytes.extend_from_slice(text);
            let stored = self.bytes.get_mut(start..).unwrap_or_default();
            stored.make_ascii_lowercase();
            blank_line_ends(stored);
        } else {
            self.bytes.extend_from_slice(known.name().as_bytes());
        }
        self.bytes.extend_from_slice(b": ");
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        blank_line_ends(self.bytes.get_mut(middle..).unwrap_or_default());
        self.bytes.extend_from_slice(b"\r\n");
        let name = Span::new(start, start + text.len());
        let field = Field { name, value: Span::new(middle, end), known, plain: true, removed: false };
        self.count_in(&field);
        Ok(field)
    }

    /// Appends `bytes` to the arena in place of `old` live ones.
    fn replace(&mut self, old: usize, bytes: &[u8]) -> Result<Span, NoRoom> {
        self.reserve(bytes.len().saturating_sub(old))?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        blank_line_ends(self.bytes.get_mut(start..).unwrap_or_default());
        Ok(Span::new(start, self.bytes.len()))
    }

    fn reserve(&mut self, more: usize) -> Result<(), NoRoom> {
        if more > 0 && self.wire_len().saturating_add(more) > self.limit.min(u32::MAX as usize / 4) {
            return Err(NoRoom);
        }
        if self.bytes.len() > DEAD_MAX && self.bytes.len() > DEAD_MAX + 2 * self.wire_len() {
            self.sweep();
        }
        Ok(())
    }

    /// Rebuilds the arena from what is live. Indices stay.
    fn sweep(&mut self) {
        let old = std::mem::take(&mut self.bytes);
        let mut bytes = Vec::with_capacity(self.wire_len() * 2);
        let mut keep = |span: &mut Span| {
            let start = bytes.len();
            bytes.extend_from_slice(span.of(&old));
            *span = Span::new(start, bytes.len());
        };
        keep(&mut self.method);
        keep(&mut self.target);
        keep(&mut self.reason);
        keep(&mut self.version_text);
        keep(&mut self.version_read);
        keep(&mut self.status_text);
        for field in self.fields.iter_mut() {
            field.plain = false;
            if field.removed {
                (field.name, field.value) = Default::default();
            } else {
                keep(&mut field.name);
                keep(&mut field.value);
            }
        }
        self.bytes = bytes;
    }

    /// Whether no field of this name has been there since the head was cleared.
    fn never_had(&self, name: Name<'_>) -> bool {
        name.known != Known::Other && self.present & name.known.bit() == 0
    }

    fn matching<'h>(&'h self, name: Name<'h>) -> impl Iterator<Item = &'h Field> {
        let fields = if self.never_had(name) { &[] } else { self.fields.as_slice() };
        fields.iter().filter(move |field| !field.removed && name.is(field, &self.bytes))
    }

    /// Whether the head opens a request.
    pub fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }
}
