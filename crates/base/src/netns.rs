//! The network namespaces that configurations name, as numbers.
//!
//! A namespace is known by its number from the line that names it to the socket that is made in it, so that
//! nobody on the way of a connection compares or copies names. Names are never forgotten: of a process that
//! reloads in place, too, there are only as many as its configurations named.

use std::fmt;
use std::sync::{PoisonError, RwLock};

/// How many there may be.
pub const MOST: usize = 1024;

static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// A network namespace that a configuration names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Namespace(u16);

impl Namespace {
    /// The one of this name; `None`: there are too many.
    pub fn named(name: &str) -> Option<Namespace> {
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        let at = match names.iter().position(|known| *known == name) {
            Some(at) => at,
            None if names.len() >= MOST => return None,
            None => {
                names.push(Box::leak(name.into()));
                names.len() - 1
            }
        };
        u16::try_from(at).ok().map(Namespace)
    }

    /// The one of this name, if any configuration named it.
    pub fn find(name: &[u8]) -> Option<Namespace> {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        let at = names.iter().position(|known| known.as_bytes() == name)?;
        u16::try_from(at).ok().map(Namespace)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.get(self.index()).copied().unwrap_or_default()
    }

    /// Its number, below [`MOST`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Where the system keeps it.
    pub fn path(self) -> std::path::PathBuf {
        path_of(self.name())
    }
}

/// Where the system keeps a namespace of this name (ip-netns(8)).
pub fn path_of(name: &str) -> std::path::PathBuf {
    std::path::Path::new("/var/run/netns").join(name)
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let a = Namespace::named("netns-test-a").expect("room");
        let b = Namespace::named("netns-test-b").expect("room");
        assert!(a != b && Namespace::named("netns-test-a") == Some(a));
        assert_eq!((a.name(), Namespace::find(b"netns-test-b")), ("netns-test-a", Some(b)));
        assert_eq!(Namespace::find(b"netns-test-c"), None);
        assert_eq!(b.path().to_str(), Some("/var/run/netns/netns-test-b"));
    }
}
