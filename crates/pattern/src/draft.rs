//! Entries being collected, from a file or from segments that are merged.
//!
//! Where addresses are expected they are kept as numbers first; whether that pays is known at the end.

use crate::entries::{Entries, TextRoom};
use crate::net;

/// From this many plain IPv4 addresses on, their text is not kept.
const MANY: usize = 1 << 16;

/// Entries in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    compact: bool,
    hosts: Vec<u32>,
    odd_at: Vec<u32>,
    texts: Entries,
    len: u32,
}

impl Draft {
    /// Nothing yet; `compact` when addresses are expected.
    pub(crate) fn new(compact: bool) -> Draft {
        Draft { compact, ..Draft::default() }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Appends an entry; fails when there are too many.
    pub(crate) fn push(&mut self, pattern: &[u8], value: Option<&[u8]>) -> Option<()> {
        if self.compact {
            if let Some(address) = net::strict(pattern) {
                return self.push_host(address, value);
            }
            self.odd_at.push(self.len);
        }
        self.count(value)?;
        self.texts.push(pattern, None)
    }

    /// Appends an address; only when they are expected.
    pub(crate) fn push_host(&mut self, address: u32, value: Option<&[u8]>) -> Option<()> {
        self.count(value)?;
        self.hosts.push(address);
        Some(())
    }

    fn count(&mut self, value: Option<&[u8]>) -> Option<()> {
        if let Some(value) = value {
            self.texts.put_value(self.len as usize, value)?;
        }
        self.len = self.len.checked_add(1)?;
        Some(())
    }

    /// What was collected.
    pub(crate) fn finish(self) -> Option<Entries> {
        let Draft { hosts, odd_at, mut texts, .. } = self;
        if hosts.is_empty() {
            texts.seal();
            return Some(texts);
        }
        texts.seal();
        if hosts.len() >= MANY {
            return Some(texts.with_hosts(hosts, odd_at));
        }
        spell_out(texts, &hosts, &odd_at)
    }
}

/// The same entries, each with its text.
fn spell_out(texts: Entries, hosts: &[u32], odd_at: &[u32]) -> Option<Entries> {
    let mut out = Entries::default();
    let mut room = TextRoom::default();
    let (mut odd, mut hosts) = (0u32, hosts.iter());
    let count = u32::try_from(hosts.len() + odd_at.len()).ok()?;
    for place in 0..count {
        let text = if odd_at.get(odd as usize) == Some(&place) {
            odd += 1;
            texts.text(odd - 1)?
        } else {
            room.put(*hosts.next()?)
        };
        out.push(text, None)?;
    }
    out.seal();
    Some(out.with_values_of(texts))
}
