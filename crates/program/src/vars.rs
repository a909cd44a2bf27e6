//! Names of variables: which slot of its scope each has.

use model::vars::{Scope, VarRef};

/// The names in the order of their slots, for each scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VarNames {
    names: [Vec<Box<str>>; 6],
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

    /// The names of a scope by slot.
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
}
