//! Changing a head: every edit appends to the arena and repoints, or is refused whole with [`NoRoom`].

use super::{Field, Head, Kind, Known, Name, NoRoom, Span};
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

    /// Replaces the status and the reason, which is the registered one when none is given.
    pub fn set_status(&mut self, status: u16, reason: Option<&[u8]>) -> Result<(), NoRoom> {
        let reason = reason.unwrap_or(default_reason(status).as_bytes());
        self.reason = self.replace(self.reason.len as usize, reason)?;
        self.status = status;
        Ok(())
    }

    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// Adds a field after all others and returns its index.
    pub fn append(&mut self, name: &[u8], value: &[u8]) -> Result<usize, NoRoom> {
        let field = self.store(name, value)?;
        self.fields.push(field);
        Ok(self.fields.len() - 1)
    }

    /// Adds a field before all others; every index grows by one.
    pub fn prepend(&mut self, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        let field = self.store(name, value)?;
        self.fields.insert(0, field);
        Ok(())
    }

    /// Removes every field called `name` and appends one. When there is no room the old ones stay.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<usize, NoRoom> {
        let freed: usize = self.matching(name.into()).map(|field| field.wire_len()).sum();
        if self.wire_len() - freed + name.len() + value.len() + 4 > self.limit {
            return Err(NoRoom);
        }
        self.remove_all(name);
        self.append(name, value)
    }

    /// Removes every field called `name` (any case) and says how many there were.
    pub fn remove_all<'n>(&mut self, name: impl Into<Name<'n>>) -> usize {
        let name = name.into();
        let mut removed = 0;
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

    /// Appends `name: value\r\n` to the arena, the name in lower case.
    fn store(&mut self, name: &[u8], value: &[u8]) -> Result<Field, NoRoom> {
        let known = Known::of(name);
        self.reserve(name.len() + value.len() + 4)?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        if let Some(stored) = self.bytes.get_mut(start..) {
            stored.make_ascii_lowercase();
        }
        self.bytes.extend_from_slice(b": ");
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(b"\r\n");
        let name = Span::new(start, start + name.len());
        let field = Field { name, value: Span::new(middle, end), known, plain: true, removed: false };
        self.present |= known.bit();
        self.field_bytes += field.wire_len();
        Ok(field)
    }

    /// Appends `bytes` to the arena in place of `old` live ones.
    fn replace(&mut self, old: usize, bytes: &[u8]) -> Result<Span, NoRoom> {
        self.reserve(bytes.len().saturating_sub(old))?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Ok(Span::new(start, self.bytes.len()))
    }

    fn reserve(&mut self, more: usize) -> Result<(), NoRoom> {
        if more > 0 && self.wire_len().saturating_add(more) > self.limit.min(u32::MAX as usize / 4) {
            return Err(NoRoom);
        }
        if self.bytes.len() > DEAD_MAX + 2 * self.wire_len() {
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

    fn matching<'h>(&'h self, name: Name<'h>) -> impl Iterator<Item = &'h Field> {
        self.fields.iter().filter(move |field| !field.removed && name.is(field, &self.bytes))
    }

    /// Whether the head opens a request.
    pub fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }
}
