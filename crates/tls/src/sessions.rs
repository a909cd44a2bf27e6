//! Sessions that clients may resume (RFC 5246 section 7.3, RFC 8446 section 2.2; manual,
//! `tune.ssl.cachesize`, `tune.ssl.lifetime`).
//!
//! Those of one bind line, or of one set of rules about clients: a session that was opened without a
//! certificate opens no door that asks for one. They live in tickets that clients keep, or in a cache that
//! all workers share. The cache is cut in parts, each behind a lock of its own that is held for a look-up in
//! a map; a handshake costs thousands of those.
//!
//! Where early data are allowed all sessions of TLS 1.3 live in the cache, and whoever resumes one takes it
//! out, on whichever worker: what was sent early once can't be sent again (RFC 8446 section 8.1).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::server::{NoServerSessionStorage, ProducesTickets, StoresServerSessions};

use crate::figures;
use crate::tickets::{Keys, Tickets};

/// Parts of a cache.
const PARTS: usize = 16;

/// How long sessions live and how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `tune.ssl.cachesize`: sessions in the cache, 0: no cache.
    pub cache: usize,
    /// `tune.ssl.lifetime`.
    pub lifetime: Duration,
}

/// Sessions of one bind line, or of one set of rules about clients.
#[derive(Clone, Debug)]
pub struct Sessions {
    pub(crate) tickets: Option<Arc<dyn ProducesTickets>>,
    pub(crate) cache: Arc<dyn StoresServerSessions>,
    pub(crate) limits: Limits,
    /// Keys that were given.
    pub(crate) keys: Option<Arc<Keys>>,
}

impl Sessions {
    /// Tickets are sealed with `keys`, or with random ones.
    pub fn new(limits: Limits, keys: Option<Arc<Keys>>) -> Sessions {
        let cache: Arc<dyn StoresServerSessions> = match limits.cache {
            0 => Arc::new(NoServerSessionStorage {}),
            n => Arc::new(Cache::new(n, limits.lifetime)),
        };
        let given = keys.clone();
        let keys = keys.or_else(|| Keys::random().map(Arc::new));
        let lifetime = u32::try_from(limits.lifetime.as_secs()).unwrap_or(u32::MAX);
        let tickets = keys.map(|keys| Arc::new(Tickets { keys, lifetime }) as Arc<dyn ProducesTickets>);
        Sessions { tickets, cache, limits, keys: given }
    }

    /// Whether tickets would be sealed with keys that were given.
    pub(crate) fn has_given_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Others under the same limits, for another certificate or other rules about clients.
    pub fn renewed(&self) -> Sessions {
        Sessions::new(self.limits, self.keys.clone())
    }
}

/// A part of the cache: sessions by their id, and the ids by age.
#[derive(Debug, Default)]
struct Part {
    sessions: HashMap<Vec<u8>, (Instant, Vec<u8>)>,
    ages: VecDeque<(Instant, Vec<u8>)>,
}

/// Sessions of clients that take no tickets.
#[derive(Debug)]
struct Cache {
    parts: [Mutex<Part>; PARTS],
    each: usize,
    lifetime: Duration,
    hash: RandomState,
}

impl Cache {
    fn new(size: usize, lifetime: Duration) -> Cache {
        Cache { parts: Default::default(), each: size.div_ceil(PARTS), lifetime, hash: RandomState::new() }
    }

    fn part(&self, key: &[u8]) -> MutexGuard<'_, Part> {
        let part = &self.parts[self.hash.hash_one(key) as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self, found: Option<(Instant, Vec<u8>)>) -> Option<Vec<u8>> {
        let found = found.filter(|(since, _)| since.elapsed() <= self.lifetime).map(|(_, value)| value);
        figures::looked_up(found.is_some());
        found
    }
}

impl StoresServerSessions for Cache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let now = Instant::now();
        let part = &mut *self.part(&key);
        // The oldest go; of one that was taken or replaced only its age is left.
        while part.ages.len() >= self.each {
            let Some((since, old)) = part.ages.pop_front() else { break };
            if part.sessions.get(&old).is_some_and(|(s, _)| *s == since) {
                part.sessions.remove(&old);
            }
        }
        part.ages.push_back((now, key.clone()));
        part.sessions.insert(key, (now, value));
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let found = self.part(key).sessions.get(key).cloned();
        self.fresh(found)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let found = self.part(key).sessions.remove(key);
        self.fresh(found)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_and_the_old_are_not_found() {
        let cache = Cache::new(PARTS * 2, Duration::from_secs(60));
        for n in 0..1000u32 {
            cache.put(n.to_be_bytes().to_vec(), vec![1]);
        }
        let found = (0..1000u32).filter(|n| cache.get(&n.to_be_bytes()).is_some()).count();
        assert_eq!(found, PARTS * 2);
        let last = 999u32.to_be_bytes();
        assert!(cache.take(&last).is_some() && cache.get(&last).is_none());
        let cache = Cache::new(10, Duration::ZERO);
        cache.put(vec![1], vec![1]);
        let before = Instant::now();
        while before.elapsed().is_zero() {}
        assert!(cache.get(&[1]).is_none());
    }
}
