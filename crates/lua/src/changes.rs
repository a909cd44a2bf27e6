//! Variables that services set, on their way to the transaction.

use std::cell::RefCell;
use std::collections::HashMap;

use engine::worker::service::Changes;
use model::vars::{Owned, VarRef};

thread_local! {
    static CHANGES: RefCell<HashMap<u64, Changes>> = RefCell::default();
}

/// Notes a variable that the script of a service set, for the transaction itself.
pub fn changed(id: u64, var: VarRef, value: Option<&Owned>) {
    if matches!(var.scope, model::vars::Scope::Proc | model::vars::Scope::Sess) {
        return;
    }
    CHANGES.with_borrow(|all| {
        if all.is_empty() {
            return;
        }
        if let Some(changes) = all.get(&id) {
            changes.borrow_mut().push((var, value.cloned()));
        }
    });
}

/// Notes where the variables of a host go while it is there.
pub fn enter(id: u64, changes: Changes) {
    CHANGES.with_borrow_mut(|all| all.insert(id, changes));
}

/// It is there no more.
pub fn leave(id: u64) {
    CHANGES.with_borrow_mut(|all| all.remove(&id));
}
