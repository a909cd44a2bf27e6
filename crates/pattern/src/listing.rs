//! Walking over the entries of a set (`show map`, `show acl`).

use std::borrow::Cow;
use std::sync::Arc;

use crate::layers::Layers;

/// An entry as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its reference, which [`Which::Ref`] takes.
    pub id: u64,
    /// The pattern as written.
    pub pattern: Cow<'a, [u8]>,
    /// Its value, in a map.
    pub value: Option<Cow<'a, [u8]>>,
}

/// A walk over the entries of one version; it may pause as long as its reader likes. Entries added meanwhile
/// are left out, deleted ones too.
#[derive(Clone, Debug)]
pub struct Listing {
    pub(crate) layers: Arc<Layers>,
    layer: usize,
    place: u32,
}

impl Listing {
    /// A walk from the first entry on.
    pub(crate) fn of(layers: Arc<Layers>) -> Listing {
        Listing { layers, layer: 0, place: 0 }
    }

    /// The next entry.
    pub fn advance(&mut self) -> Option<Entry<'_>> {
        loop {
            let segment = self.layers.0.get(self.layer)?;
            if self.place < segment.len() {
                let n = segment.entries.at(self.place);
                self.place += 1;
                if segment.dead.spares(n) {
                    return self.entry(n);
                }
                continue;
            }
            self.layer += 1;
            self.place = 0;
        }
    }

    fn entry(&self, n: u32) -> Option<Entry<'_>> {
        let segment = self.layers.0.get(self.layer)?;
        let value = match segment.new_value(n) {
            Some(new) => Some(Cow::Owned(new.to_vec())),
            None => segment.entries.value(n).map(Cow::Borrowed),
        };
        Some(Entry { id: segment.ids.id(n), pattern: segment.pattern(n), value })
    }
}
