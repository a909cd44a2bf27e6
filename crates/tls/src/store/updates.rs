//! When OCSP responses are asked for, and what came of it (manual, `ocsp-update`; management manual, `show
//! ssl ocsp-updates`). Whoever speaks to responders is the engine; here is the calendar.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use super::{Known, Question, Store};
use crate::ocsp::{Refused, Response};

/// Settings of updates, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `ocsp-update.mindelay`.
    pub least: i64,
    /// `ocsp-update.maxdelay`.
    pub most: i64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { least: 300, most: 3600 }
    }
}

/// What came of asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Came {
    /// Nobody asked yet.
    #[default]
    Nothing,
    /// A response that was taken.
    Updated,
    /// No answer of HTTP, or not the right one.
    HttpError,
    /// An answer that says it is something else.
    NoResponse,
    /// A response that is not believed.
    Unchecked,
    /// A response that was not taken.
    NotTaken,
}

impl Came {
    /// Number and words.
    pub fn words(self) -> (u8, &'static str) {
        match self {
            Came::Nothing => (0, "Unknown"),
            Came::Updated => (1, "Update successful"),
            Came::HttpError => (2, "HTTP error"),
            Came::NoResponse => (3, "Missing \"ocsp-response\" header"),
            Came::Unchecked => (4, "OCSP response check failure"),
            Came::NotTaken => (5, "Error during insertion"),
        }
    }
}

impl From<Result<(), Refused>> for Came {
    fn from(taken: Result<(), Refused>) -> Came {
        match taken {
            Ok(()) => Came::Updated,
            Err(Refused::Unsigned | Refused::Broken | Refused::Unsuccessful) => Came::Unchecked,
            Err(_) => Came::NotTaken,
        }
    }
}

/// One response that is asked for. Times are in seconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The first name that its certificate was loaded by.
    pub name: Box<str>,
    /// When it is asked for next.
    pub next: i64,
    /// When it was taken last.
    pub last: Option<i64>,
    /// How often it was taken.
    pub successes: u64,
    /// How often it was not.
    pub failures: u64,
    /// How often in a row.
    in_row: u32,
    /// What came of it last.
    pub came: Came,
}

/// All of them, by id of the certificate.
pub(super) type Updates = BTreeMap<Vec<u8>, Update>;

impl Pace {
    /// When to ask again for a response that was taken at `now`.
    fn after(self, response: Option<&[u8]>, now: i64) -> i64 {
        let until = response.and_then(|r| Response::parse(r).ok()?.valid_until(now).ok());
        let wait = until.map_or(self.least, |until| until - now);
        now + wait.clamp(self.least, self.most)
    }

    /// When to ask again after so many failures in a row.
    fn again(self, failures: u32, now: i64) -> i64 {
        let wait = self.least.saturating_mul(1i64 << failures.min(20));
        now + wait.min(self.most.max(self.least))
    }
}

impl Store {
    /// Whether any response is kept fresh (`ocsp-update on`).
    pub fn has_updates(&self) -> bool {
        !self.wanted().is_empty()
    }

    /// Whether the responder of any of them is asked over TLS.
    pub fn asks_over_tls(&self) -> bool {
        let uri = |known: &Known| self.question(&known.name).map(|question| question.uri);
        let is_https = |uri: String| uri.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"));
        self.wanted().iter().filter_map(uri).any(is_https)
    }

    /// Lets one task of all workers do the asking: `true` for the one that is to begin with it now.
    pub fn begin_asking(&self) -> bool {
        self.has_updates() && !self.asking.swap(true, Ordering::AcqRel)
    }

    /// The task that asks has nothing to do: whether it may end. It may not if something was added meanwhile.
    pub fn may_end_asking(&self) -> bool {
        if self.has_updates() {
            return false;
        }
        self.asking.store(false, Ordering::Release);
        !self.begin_asking()
    }

    /// The calendar after it was compared with the certificates at hand: the new ones are in it, those that
    /// are gone are not.
    fn calendar(&self, wanted: &[Known], pace: Pace, now: i64) -> MutexGuard<'_, Updates> {
        let mut updates = self.calendar_as_it_is();
        updates.retain(|id, _| wanted.iter().any(|known| known.id == *id));
        for known in wanted {
            updates.entry(known.id.clone()).or_insert_with(|| Update {
                name: known.name.clone(),
                // One that was loaded is good for a while.
                next: known.response.as_deref().map_or(now, |r| pace.after(Some(r), now)),
                ..Update::default()
            });
        }
        updates
    }

    pub(super) fn calendar_as_it_is(&self) -> MutexGuard<'_, Updates> {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to be asked for now; it is not due again until its outcome was [told](Store::asked).
    pub fn due(&self, pace: Pace, now: i64) -> Vec<(Box<str>, Question)> {
        let wanted = self.wanted();
        let mut names = Vec::new();
        for (id, update) in self.calendar(&wanted, pace, now).iter_mut().filter(|(_, u)| u.next <= now) {
            update.next = now + pace.most;
            // The name by which the certificate is known now; the first one may have been deleted.
            names.extend(wanted.iter().find(|known| known.id == *id).map(|known| known.name.clone()));
        }
        names.into_iter().filter_map(|name| Some((name.clone(), self.question(&name)?))).collect()
    }

    /// Notes what came of asking for the response of a certificate; how it stands now.
    pub fn asked(&self, name: &str, id: &[u8], came: Came, pace: Pace, now: i64) -> Update {
        let response = self.ocsp_response(name);
        let mut updates = self.calendar_as_it_is();
        let update = updates.entry(id.to_vec()).or_default();
        if update.name.is_empty() {
            update.name = name.into();
        }
        update.came = came;
        if came == Came::Updated {
            (update.successes, update.in_row, update.last) = (update.successes + 1, 0, Some(now));
            update.next = pace.after(response.as_deref(), now);
        } else {
            (update.failures, update.in_row) = (update.failures + 1, update.in_row + 1);
            update.next = pace.again(update.in_row - 1, now);
        }
        update.clone()
    }

    /// All updates, those that are due first in front.
    pub fn updates(&self, pace: Pace, now: i64) -> Vec<(Vec<u8>, Update)> {
        let calendar = self.calendar(&self.wanted(), pace, now);
        let mut all: Vec<_> = calendar.iter().map(|(id, update)| (id.clone(), update.clone())).collect();
        all.sort_by_key(|(_, update)| update.next);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_tried_again_ever_later_within_bounds() {
        let pace = Pace { least: 10, most: 60 };
        assert_eq!([0, 1, 2, 3, 40].map(|n| pace.again(n, 1000)), [1010, 1020, 1040, 1060, 1060]);
        assert_eq!(pace.after(None, 1000), 1010);
        assert_eq!(pace.after(Some(b"nothing"), 1000), 1010);
    }

    #[test]
    fn outcomes_are_counted() {
        let store = Store::default();
        let pace = Pace::default();
        store.asked("a.pem", &[1], Came::HttpError, pace, 1000);
        let update = store.asked("a.pem", &[1], Came::Updated, pace, 2000);
        assert_eq!((update.successes, update.failures, update.last), (1, 1, Some(2000)));
        assert_eq!(update.next, 2300);
        // No certificate has this id, so nothing is kept of it.
        assert!(store.updates(pace, 2000).is_empty());
    }
}
