//! Who wants to be told of changes of a set (scripts: `Patref.event_sub`, Lua API manual).
//!
//! They are called under the writer's lock, in the order of the changes: they only note what they are told.

use std::fmt;
use std::sync::Arc;

/// A change of the current version of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An entry was added.
    Add,
    /// An entry was deleted, or all that are written alike.
    Del,
    /// Entries that are written alike got another value.
    Set,
    /// All entries were deleted.
    Clear,
    /// A prepared version took its place.
    Commit,
}

/// Who is told.
pub type Told = Arc<dyn Fn(Change) + Send + Sync>;

/// Those who are told, by number.
#[derive(Default)]
pub(crate) struct Heard {
    next: u64,
    list: Vec<(u64, Told)>,
}

impl Heard {
    /// Tells them.
    pub(crate) fn tell(&self, change: Change) {
        self.list.iter().for_each(|(_, told)| told(change));
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heard({})", self.list.len())
    }
}

impl Heard {
    /// Takes in one more; the number by which it ends.
    pub(crate) fn begin(&mut self, told: Told) -> u64 {
        self.next += 1;
        self.list.push((self.next, told));
        self.next
    }

    /// It ends.
    pub(crate) fn end(&mut self, number: u64) {
        self.list.retain(|(n, _)| *n != number);
    }
}
