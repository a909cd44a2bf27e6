//! Variables (manual, section 2.8): values that rules keep for later.
//!
//! Names are turned into slots when the configuration is read, so reading a variable is an array
//! access. A scope that was never written owns no memory.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::account::{Account, Limits};

/// How long a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole process, shared by all threads.
    Proc,
    /// The client connection.
    Sess,
    /// The transaction: request and response.
    Txn,
    /// While the request is processed.
    Req,
    /// While the response is processed.
    Res,
    /// A health check.
    Check,
    /// Of the stream that a stream works for. Nothing here runs rules for another stream, so there is none.
    Parent,
}

impl Scope {
    /// The scope of a name's prefix (`txn` of `txn.x`).
    pub fn from_prefix(prefix: &str) -> Option<Scope> {
        Some(match prefix {
            "proc" => Scope::Proc,
            "sess" => Scope::Sess,
            "txn" => Scope::Txn,
            "req" => Scope::Req,
            "res" => Scope::Res,
            "check" => Scope::Check,
            "psess" | "ptxn" | "preq" | "pres" => Scope::Parent,
            _ => return None,
        })
    }
}

/// Where a variable is kept: its scope and its slot in that scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarRef {
    /// Lifetime.
    pub scope: Scope,
    /// Index into the scope's slots.
    pub slot: u16,
}

/// A value that outlives the evaluation it came from.
#[derive(Clone, Debug, PartialEq)]
pub enum Owned {
    /// Boolean.
    Bool(bool),
    /// Signed 64-bit integer.
    Int(i64),
    /// IPv4 address.
    Ipv4(Ipv4Addr),
    /// IPv6 address.
    Ipv6(Ipv6Addr),
    /// Text.
    Str(Box<[u8]>),
    /// Bytes.
    Bin(Box<[u8]>),
    /// HTTP method, by name.
    Method(Box<[u8]>),
}

/// The variables of one scope.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    slots: Vec<Option<Owned>>,
    account: Option<Arc<Account>>,
}

impl Vars {
    /// The value in a slot.
    #[inline]
    pub fn get(&self, slot: u16) -> Option<&Owned> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// Sets a slot, or empties it with `None`; returns what was there.
    pub fn set(&mut self, slot: u16, value: Option<Owned>) -> Option<Owned> {
        let i = usize::from(slot);
        if i >= self.slots.len() {
            value.as_ref()?;
            self.slots.resize_with(i + 1, || None);
        }
        std::mem::replace(&mut self.slots[i], value)
    }

    /// The account of the scope, made when it is first needed.
    pub fn account(&mut self, make: impl FnOnce() -> Arc<Account>) -> &Arc<Account> {
        self.account.get_or_insert_with(make)
    }

    /// As [`Vars::set`], as far as the limits of the scope allow.
    pub fn set_limited(&mut self, slot: u16, value: Option<Owned>) {
        let value = match &self.account {
            Some(account) => account.admit(self.get(slot), value),
            None => value,
        };
        self.set(slot, value);
    }

    /// Forgets all values, keeps the memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.account = None;
    }
}

/// Variables of the process: one lock a slot, taken only by rules that use `proc.`.
#[derive(Debug, Default)]
pub struct ProcVars {
    slots: RwLock<Vec<Option<Arc<Owned>>>>,
    /// Those that no rule mentions, by name: the runtime API made them.
    aside: RwLock<HashMap<Box<str>, Arc<Owned>>>,
    limits: OnceLock<Limits>,
}

/// How many variables may be kept aside.
const MOST_ASIDE: usize = 4096;

impl ProcVars {
    /// Limits the memory of all variables, once.
    pub fn limit(&self, limits: Limits) {
        let _ = self.limits.set(limits);
    }

    /// What limits the memory of variables, if anything does.
    pub fn limits(&self) -> Option<&Limits> {
        self.limits.get()
    }

    /// The value of a variable that no rule mentions.
    pub fn aside(&self, name: &str) -> Option<Arc<Owned>> {
        self.aside.read().get(name).cloned()
    }

    /// Sets or forgets a variable that no rule mentions; `false` when there are too many.
    pub fn set_aside(&self, name: &str, value: Option<Owned>) -> bool {
        let mut all = self.aside.write();
        if value.is_some() && all.len() >= MOST_ASIDE && !all.contains_key(name) {
            return false;
        }
        let (old, wanted) = (all.get(name).map(|old| &**old), value.is_some());
        let value = match self.limits() {
            Some(limits) => limits.process.admit(old, value),
            None => value,
        };
        match value {
            None if wanted => return false,
            None => drop(all.remove(name)),
            Some(value) => drop(all.insert(name.into(), Arc::new(value))),
        }
        true
    }

    /// The value in a slot.
    pub fn get(&self, slot: u16) -> Option<Arc<Owned>> {
        self.slots.read().get(usize::from(slot))?.clone()
    }

    /// Sets or empties a slot.
    pub fn set(&self, slot: u16, value: Option<Owned>) {
        let mut s = self.slots.write();
        let i = usize::from(slot);
        if i >= s.len() {
            s.resize_with(i + 1, || None);
        }
        // Those that the configuration names are there in any case, and were counted when it was read.
        let value = match (self.limits(), value) {
            (Some(limits), Some(value)) => Some(limits.process.replace(s[i].as_deref(), value)),
            (Some(limits), None) => {
                limits.process.forget(s[i].as_deref());
                None
            }
            (None, value) => value,
        };
        s[i] = value.map(Arc::new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_last_value_and_unset_needs_no_room() {
        let mut v = Vars::default();
        assert_eq!(v.set(9, None), None);
        assert!(v.slots.is_empty());
        v.set(2, Some(Owned::Int(1)));
        assert_eq!(v.set(2, Some(Owned::Bool(true))), Some(Owned::Int(1)));
        assert_eq!(v.get(2), Some(&Owned::Bool(true)));
        assert_eq!(v.get(3), None);
    }

    #[test]
    fn one_too_many_aside_takes_nothing() {
        let vars = ProcVars::default();
        vars.limit(Limits::new([1 << 30, 0, 0, 0, 0, 0], 0).unwrap());
        let number = || Some(Owned::Int(1));
        assert!((0..MOST_ASIDE).all(|n| vars.set_aside(&format!("proc.{n}"), number())));
        let full = format!("{:?}", vars.limits());
        assert!(!vars.set_aside("proc.more", number()) && vars.set_aside("proc.0", number()));
        assert_eq!(format!("{:?}", vars.limits()), full);
    }
}
