//! Changes of certificate lists at run time, repeated in the store that takes another one's place.
//!
//! They hold as long as the list reads as it did when they were made; of one that reads otherwise what it
//! says now is taken.

use super::lists::{List, ListChange, Lookup};
use super::{Store, certs};

/// A list that was changed, and the certificates of what was added.
struct Changed {
    name: Box<str>,
    read: u64,
    changes: Vec<ListChange>,
    certs: Vec<(Box<str>, certs::Cert)>,
}

impl Store {
    /// Repeats what was changed at run time of the lists of a store that this one takes the place of. Says of
    /// each change that can't be made any more why.
    pub fn repeat_changes(&self, before: &Store) -> Vec<String> {
        let mut lost = Vec::new();
        for changed in before.changed_lists() {
            let same = |list: &List| list.read == changed.read;
            if !self.lock().lists.get(&changed.name).is_some_and(same) {
                continue;
            }
            for (name, cert) in changed.certs {
                // One that came over the runtime API is nowhere else.
                self.lock().certs.entry(name).or_insert(cert);
            }
            for change in &changed.changes {
                let list = Lookup(&changed.name);
                let done = match change {
                    ListChange::Added { line, .. } => {
                        self.add_to_list(list, line).map_err(|(_, why)| why).err()
                    }
                    ListChange::Removed(which) => self.remove_from_list(list, which).err(),
                };
                lost.extend(done.map(|why| format!("crt-list '{}': {}", changed.name, why.trim_end())));
            }
        }
        lost
    }

    fn changed_lists(&self) -> Vec<Changed> {
        let known = self.lock();
        let changed = known.lists.iter().filter(|(_, list)| !list.changes.is_empty());
        let all = changed.map(|(name, list)| Changed {
            name: name.clone(),
            read: list.read,
            changes: list.changes.clone(),
            certs: list
                .changes
                .iter()
                .filter_map(|change| match change {
                    ListChange::Added { cert, .. } => Some((cert.clone(), known.certs.get(cert)?.clone())),
                    ListChange::Removed(_) => None,
                })
                .collect(),
        });
        all.collect()
    }
}
