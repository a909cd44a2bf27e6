//! All live sets of a process, by name and by number: what `show map` lists, and where
//! `get map #3 x` and `add-acl(file)` find their set.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::live::LiveSet;

/// Sets by number; those of files also by name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    by_id: BTreeMap<u32, Arc<LiveSet>>,
    by_name: HashMap<String, u32>,
}

impl Catalog {
    /// A catalog of nothing.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Takes in a set under the number wanted (`-u`), or else the lowest free one. Fails with
    /// the set that already has that number or name.
    pub fn insert(&mut self, set: Arc<LiveSet>, wanted: Option<u32>) -> Result<u32, Arc<LiveSet>> {
        let id = wanted.unwrap_or_else(|| self.lowest_free());
        if let Some(other) = self.by_id.get(&id).or_else(|| self.named(set.name())) {
            return Err(other.clone());
        }
        if !set.name().is_empty() {
            self.by_name.insert(set.name().to_owned(), id);
        }
        self.by_id.insert(id, set);
        Ok(id)
    }

    fn lowest_free(&self) -> u32 {
        let mut id = 0;
        while self.by_id.contains_key(&id) {
            id += 1;
        }
        id
    }

    /// The set of a file, by its name without `file@` or `opt@`.
    pub fn named(&self, name: &str) -> Option<&Arc<LiveSet>> {
        self.by_id.get(self.by_name.get(name)?)
    }

    /// The set with a number.
    pub fn numbered(&self, id: u32) -> Option<&Arc<LiveSet>> {
        self.by_id.get(&id)
    }

    /// The set that a command means: `#number` or a name.
    pub fn get(&self, reference: &str) -> Option<&Arc<LiveSet>> {
        match reference.strip_prefix('#') {
            Some(id) => self.numbered(id.parse().ok()?),
            None => self.named(reference),
        }
    }

    /// All sets, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Arc<LiveSet>)> {
        self.by_id.iter().map(|(id, set)| (*id, set))
    }
}
