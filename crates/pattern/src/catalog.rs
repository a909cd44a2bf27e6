//! All live sets of a process, by number and by name: what `show map` lists, and where `get map #3 x` finds
//! its set.

use std::collections::HashMap;
use std::sync::Arc;

use crate::live::LiveSet;

/// A set and what `show acl` and `show map` say of it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The set.
    pub set: Arc<LiveSet>,
    /// Where the configuration names it.
    pub about: Box<str>,
    /// The line that it stands on, for inline patterns: by this they are known in another configuration.
    /// Empty: they are not.
    pub key: Box<str>,
    /// Whether ACLs use it.
    pub in_acls: bool,
    /// Whether converters use it, or ACLs with `-M`.
    pub in_maps: bool,
}

/// Sets by number; those of files also by name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// In the order of their numbers.
    by_id: Vec<(u32, Listed)>,
    by_name: HashMap<String, u32>,
}

impl Catalog {
    /// A catalog of nothing.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Takes in a set under the number wanted (`-u`), or else the lowest free one from `least` on. Fails with
    /// the set if that number or name is taken.
    ///
    /// # Errors
    /// The set that could not be taken in.
    pub fn insert(&mut self, listed: Listed, wanted: Option<u32>, least: u32) -> Result<u32, Box<Listed>> {
        let id = wanted.unwrap_or_else(|| self.lowest_free(least));
        let name = listed.set.name();
        let at = match self.by_id.binary_search_by_key(&id, |(id, _)| *id) {
            Err(at) if !self.by_name.contains_key(name) => at,
            _ => return Err(Box::new(listed)),
        };
        if !name.is_empty() {
            self.by_name.insert(name.to_owned(), id);
        }
        self.by_id.insert(at, (id, listed));
        Ok(id)
    }

    fn lowest_free(&self, least: u32) -> u32 {
        let from = self.by_id.partition_point(|(id, _)| *id < least);
        let taken = self.by_id.iter().skip(from).map(|(id, _)| *id);
        let run = (least..).zip(taken).take_while(|(a, b)| a == b).count();
        least.saturating_add(u32::try_from(run).unwrap_or(u32::MAX))
    }

    /// The set that a command means: `#number`, or the name of a file with or without `file@` or `opt@`.
    pub fn get(&self, reference: &str) -> Option<&Listed> {
        let id = match reference.strip_prefix('#') {
            // As HAProxy reads it, no digits are a zero.
            Some("") => 0,
            Some(id) => id.parse().ok()?,
            None => *self.by_name.get(bare_name(reference))?,
        };
        self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| &self.by_id[at].1)
    }

    /// The set of a file, by its bare name.
    pub fn named(&self, name: &str) -> Option<&Listed> {
        let id = *self.by_name.get(name)?;
        self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| &self.by_id[at].1)
    }

    /// All sets, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Listed)> {
        self.by_id.iter().map(|(id, listed)| (*id, listed))
    }
}

/// The name of a file without `file@` or `opt@`. That of a virtual one keeps its `virt@`.
pub fn bare_name(reference: &str) -> &str {
    reference.strip_prefix("file@").or(reference.strip_prefix("opt@")).unwrap_or(reference)
}
