//! Names of variables: which slot of its scope each has.

use std::sync::{PoisonError, RwLock};

use model::vars::{Scope, VarRef};

/// How many names a scope may get while the process runs.
const MOST_LATE: usize = 1024;

/// The names in the order of their slots, for each scope.
#[derive(Debug, Default)]
pub struct VarNames {
    names: Lists,
    /// Names that were first mentioned while the process runs (by scripts), in slots behind the others.
    late: RwLock<Lists>,
}

type Lists = [Vec<Box<str>>; 7];

impl Clone for VarNames {
    /// What came late is known from the beginning in the copy.
    fn clone(&self) -> VarNames {
        let mut names = self.names.clone();
        let late = self.late.read().unwrap_or_else(PoisonError::into_inner);
        for (names, late) in names.iter_mut().zip(late.iter()) {
            names.extend(late.iter().cloned());
        }
        VarNames { names, late: RwLock::default() }
    }
}

impl PartialEq for VarNames {
    fn eq(&self, other: &VarNames) -> bool {
        self.names == other.names
    }
}

impl VarNames {
    /// The slot of a name (without its scope), given one on first mention; `None` when all are taken.
    pub fn slot(&mut self, scope: Scope, name: &str) -> Option<VarRef> {
        if let Some(found) = self.find(scope, name) {
            return Some(found);
        }
        let list = &mut self.names[index(scope)];
        let slot = u16::try_from(list.len()).ok()?;
        list.push(name.into());
        Some(VarRef { scope, slot })
    }

    /// The slot of a name that was mentioned.
    pub fn find(&self, scope: Scope, name: &str) -> Option<VarRef> {
        let slot = self.names[index(scope)].iter().position(|n| **n == *name)?;
        Some(VarRef { scope, slot: u16::try_from(slot).ok()? })
    }

    /// The slot of a name that was mentioned, in the configuration or later.
    pub fn find_late(&self, scope: Scope, name: &str) -> Option<VarRef> {
        if let Some(found) = self.find(scope, name) {
            return Some(found);
        }
        let late = self.late.read().unwrap_or_else(PoisonError::into_inner);
        self.late_slot(&late, scope, name)
    }

    /// The same, given a slot on first mention; `None` when there are too many.
    pub fn slot_late(&self, scope: Scope, name: &str) -> Option<VarRef> {
        if let Some(found) = self.find_late(scope, name) {
            return Some(found);
        }
        let mut late = self.late.write().unwrap_or_else(PoisonError::into_inner);
        let list = &mut late[index(scope)];
        if !list.iter().any(|n| **n == *name) {
            if list.len() >= MOST_LATE {
                return None;
            }
            list.push(name.into());
        }
        self.late_slot(&late, scope, name)
    }

    fn late_slot(&self, late: &Lists, scope: Scope, name: &str) -> Option<VarRef> {
        let at = late[index(scope)].iter().position(|n| **n == *name)?;
        let slot = u16::try_from(self.names[index(scope)].len() + at).ok()?;
        Some(VarRef { scope, slot })
    }

    /// The names of a scope by slot, as the configuration mentions them.
    pub fn of(&self, scope: Scope) -> &[Box<str>] {
        &self.names[index(scope)]
    }
}

fn index(scope: Scope) -> usize {
    match scope {
        Scope::Proc => 0,
        Scope::Sess => 1,
        Scope::Txn => 2,
        Scope::Req => 3,
        Scope::Res => 4,
        Scope::Check => 5,
        Scope::Parent => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_slot_and_scopes_are_apart() {
        let mut names = VarNames::default();
        let a = names.slot(Scope::Txn, "a");
        let b = names.slot(Scope::Txn, "b");
        assert_ne!(a, b);
        assert_eq!(names.slot(Scope::Txn, "a"), a);
        assert_eq!(names.slot(Scope::Req, "a").map(|v| v.slot), Some(0));
        assert_eq!(names.find(Scope::Sess, "a"), None);
    }

    #[test]
    fn what_came_late_keeps_its_slot_in_a_copy() {
        let mut names = VarNames::default();
        names.slot(Scope::Txn, "a");
        let late = names.slot_late(Scope::Txn, "b");
        assert_eq!(late.map(|v| v.slot), Some(1));
        assert_eq!((names.find(Scope::Txn, "b"), names.find_late(Scope::Txn, "b")), (None, late));
        let mut copy = names.clone();
        assert_eq!((copy.find(Scope::Txn, "b"), copy.slot(Scope::Txn, "c").map(|v| v.slot)), (late, Some(2)));
    }
}
