//! A name that may change while everybody reads it (`set server ... name`).
//!
//! Names are read for each log line and change hardly ever, so reading takes no lock and no count: a name
//! that has changed points to its successor, and whoever holds the old one reads on from there. Old names are
//! kept as long as the whole, which is why they may change [`Name::MOST`] times only.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A name shared by all its clones.
#[derive(Clone)]
pub struct Name(Arc<Link>);

struct Link {
    text: Box<str>,
    next: OnceLock<Box<Link>>,
}

impl Link {
    fn new(text: &str) -> Link {
        Link { text: text.into(), next: OnceLock::new() }
    }
}

impl Name {
    /// How often a name may change.
    pub const MOST: usize = 100;

    /// A name of its own.
    pub fn new(text: &str) -> Name {
        Name(Arc::new(Link::new(text)))
    }

    /// Changes it for all clones. False when it changed too often, or somebody else did it at the same time.
    pub fn change(&self, text: &str) -> bool {
        let mut at = &*self.0;
        let mut changes = 0;
        while let Some(next) = at.next.get() {
            at = next;
            changes += 1;
        }
        changes < Self::MOST && at.next.set(Box::new(Link::new(text))).is_ok()
    }
}

impl Deref for Name {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        let mut at = &*self.0;
        while let Some(next) = at.next.get() {
            at = next;
        }
        &at.text
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        **self == **other
    }
}

impl Eq for Name {}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn a_change_is_seen_by_all_clones_and_what_was_read_stays() {
        let name = Name::new("one");
        let (clone, before) = (name.clone(), &*name);
        assert!(clone.change("two"));
        assert_eq!((before, &*name, &*clone), ("one", "two", "two"));
        assert!(name.change("three"));
        assert_eq!(name, clone);
    }

    #[test]
    fn names_change_so_many_times_and_no_more() {
        let name = Name::new("0");
        assert_eq!((0..2 * Name::MOST).filter(|n| name.change(&n.to_string())).count(), Name::MOST);
        assert_eq!(&*name, "99");
    }
}
