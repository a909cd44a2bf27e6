//! How much memory variables may take (manual, `tune.vars.*-max-size`).
//!
//! There is an account for the process, for each session, each transaction and each direction of it, and what
//! is taken from one is taken from all around it. A scope has one from its first variable on, and only where
//! the configuration limits any.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::vars::Owned;

/// What a variable counts for, but for the bytes of a text: as much as in HAProxy, so that the same limits
/// fit the same variables.
const EACH: usize = 88;

/// What the variables of one scope, and of those within it, take together.
#[derive(Debug, Default)]
pub struct Account {
    used: AtomicUsize,
    /// Most, 0: no limit.
    most: usize,
    within: Option<Arc<Account>>,
}

/// The limits of one configuration, 0 where there is none.
#[derive(Debug)]
pub struct Limits {
    /// The account of the process.
    pub process: Arc<Account>,
    /// `sess`.
    pub session: usize,
    /// `txn`.
    pub transaction: usize,
    /// `reqres`.
    pub message: usize,
    /// `check`.
    pub check: usize,
}

impl Limits {
    /// From the limits of everything, `proc`, `sess`, `txn`, `reqres` and `check`; `None` if there is none at
    /// all. So many variables of the process are there from the beginning.
    pub fn new(limits: [usize; 6], standing: usize) -> Option<Limits> {
        let [all, process, session, transaction, message, check] = limits;
        if limits == [0; 6] {
            return None;
        }
        let process = Account::new(process, Some(Account::new(all, None)));
        process.force(standing.saturating_mul(EACH));
        Some(Limits { process, session, transaction, message, check })
    }
}

impl Account {
    /// An empty one.
    pub fn new(most: usize, within: Option<Arc<Account>>) -> Arc<Account> {
        Arc::new(Account { used: AtomicUsize::new(0), most, within })
    }

    /// What becomes of a variable that is set, or forgotten with `None`; `None` also where there is no room
    /// for another.
    pub fn admit(&self, old: Option<&Owned>, new: Option<Owned>) -> Option<Owned> {
        match (old, new) {
            (None, new) => new.filter(|_| self.take(EACH)).map(|new| self.replace(None, new)),
            (Some(old), None) => {
                self.give(EACH + text(old));
                None
            }
            (old, Some(new)) => Some(self.replace(old, new)),
        }
    }

    /// What becomes of a variable that is there. Where a text finds no room an integer stays what it was, and
    /// what else there was is lost.
    pub fn replace(&self, old: Option<&Owned>, new: Owned) -> Owned {
        self.give(old.map_or(0, text));
        match old {
            _ if self.take(text(&new)) => new,
            Some(Owned::Int(n)) => Owned::Int(*n),
            _ => Owned::Int(0),
        }
    }

    /// Gives back what a variable's text took.
    pub fn forget(&self, old: Option<&Owned>) {
        self.give(old.map_or(0, text));
    }

    /// Takes so many bytes, or none at all.
    fn take(&self, bytes: usize) -> bool {
        let more = |used: usize| {
            let used = used.saturating_add(bytes);
            (bytes == 0 || self.most == 0 || used <= self.most).then_some(used)
        };
        if self.used.fetch_update(Relaxed, Relaxed, more).is_err() {
            return false;
        }
        let fits = self.within.as_ref().is_none_or(|within| within.take(bytes));
        if !fits {
            self.used.fetch_sub(bytes, Relaxed);
        }
        fits
    }

    /// Takes so many bytes, whatever the limits.
    fn force(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        self.within.iter().for_each(|within| within.force(bytes));
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        self.within.iter().for_each(|within| within.give(bytes));
    }
}

impl Drop for Account {
    /// The scope is over, with all that was in it.
    fn drop(&mut self) {
        self.within.iter().for_each(|within| within.give(*self.used.get_mut()));
    }
}

/// Bytes of a text.
fn text(value: &Owned) -> usize {
    match value {
        Owned::Str(bytes) | Owned::Bin(bytes) => bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(bytes: &[u8]) -> Option<Owned> {
        Some(Owned::Str(bytes.into()))
    }

    #[test]
    fn a_text_without_room_leaves_an_integer_as_it_was() {
        let account = Account::new(EACH + 4, None);
        let old = account.admit(None, Some(Owned::Int(7)));
        assert_eq!(account.admit(old.as_ref(), text_of(b"abcde")), Some(Owned::Int(7)));
        let old = account.admit(old.as_ref(), text_of(b"abcd"));
        assert_eq!(old, text_of(b"abcd"));
        assert_eq!(account.admit(old.as_ref(), text_of(b"efgh")), text_of(b"efgh"));
        assert_eq!(account.admit(None, Some(Owned::Bool(true))), None);
        assert_eq!(account.admit(old.as_ref(), None), None);
        assert_eq!(account.used.load(Relaxed), 0);
    }

    #[test]
    fn what_is_within_counts_around_it_until_it_is_over() {
        let outer = Account::new(2 * EACH, None);
        let inner = Account::new(0, Some(outer.clone()));
        let number = || Some(Owned::Int(1));
        assert!(outer.admit(None, number()).is_some() && inner.admit(None, number()).is_some());
        assert_eq!((outer.admit(None, number()), inner.admit(None, number())), (None, None));
        drop(inner);
        assert!(outer.admit(None, number()).is_some());
    }
}
