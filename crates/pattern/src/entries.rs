//! The entries of one segment: pattern texts end to end in one arena, and for maps a number
//! per entry into a table of distinct values. No entry has an allocation of its own.

use std::collections::HashMap;

/// Pattern texts and values, in the order they were given.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    text: Vec<u8>,
    ends: Vec<u32>,
    values: Option<Values>,
}

/// Distinct values and which entry has which.
#[derive(Debug, Default)]
pub(crate) struct Values {
    of: Vec<u32>,
    text: Vec<u8>,
    ends: Vec<u32>,
    seen: HashMap<Box<[u8]>, u32>,
}

fn slice<'a>(text: &'a [u8], ends: &[u32], n: usize) -> &'a [u8] {
    let start = if n == 0 { 0 } else { ends.get(n - 1).map_or(0, |e| *e as usize) };
    let end = ends.get(n).map_or(start, |e| *e as usize);
    text.get(start..end).unwrap_or_default()
}

impl Values {
    fn intern(&mut self, value: &[u8]) -> Option<u32> {
        if let Some(n) = self.seen.get(value) {
            return Some(*n);
        }
        let n = u32::try_from(self.ends.len()).ok()?;
        self.text.extend_from_slice(value);
        self.ends.push(u32::try_from(self.text.len()).ok()?);
        self.seen.insert(value.into(), n);
        Some(n)
    }
}

impl Entries {
    /// Appends an entry; fails when the arena is full (4 GiB).
    pub(crate) fn push(&mut self, pattern: &[u8], value: Option<&[u8]>) -> Option<()> {
        let end = u32::try_from(self.text.len().checked_add(pattern.len())?).ok()?;
        if let Some(value) = value {
            let values = self.values.get_or_insert_default();
            let n = values.intern(value)?;
            values.of.resize(self.ends.len(), 0);
            values.of.push(n);
        }
        self.text.extend_from_slice(pattern);
        self.ends.push(end);
        Some(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The pattern of entry `n` as written.
    pub(crate) fn pattern(&self, n: u32) -> &[u8] {
        slice(&self.text, &self.ends, n as usize)
    }

    /// The value of entry `n`, if it has one.
    pub(crate) fn value(&self, n: u32) -> Option<&[u8]> {
        let values = self.values.as_ref()?;
        let v = *values.of.get(n as usize)?;
        Some(slice(&values.text, &values.ends, v as usize))
    }

    /// Gives back what growing left over, and the table that only writing needs.
    pub(crate) fn seal(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        if let Some(values) = &mut self.values {
            values.seen = HashMap::new();
            values.text.shrink_to_fit();
            values.ends.shrink_to_fit();
            values.of.shrink_to_fit();
        }
    }
}
