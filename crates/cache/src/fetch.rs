//! Who fetches what a cache does not have, and who waits for that.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Who waits, by the key of what is being fetched.
type Waiting = HashMap<Box<[u8]>, Vec<Waker>>;

/// What is being fetched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetches(Arc<Mutex<Waiting>>);

/// Somebody fetches what is under a key. When this is dropped those who wait look again.
#[derive(Debug)]
pub struct Fetch {
    fetches: Fetches,
    key: Box<[u8]>,
}

impl Fetches {
    /// Says that what is under `key` is being fetched; `None` if somebody said so before.
    pub fn begin(&self, key: &[u8]) -> Option<Fetch> {
        let mut waiting = self.0.lock();
        if waiting.contains_key(key) {
            return None;
        }
        waiting.insert(key.into(), Vec::new());
        Some(Fetch { fetches: self.clone(), key: key.into() })
    }

    /// Ready when nobody fetches what is under `key`.
    pub fn poll_over(&self, key: &[u8], cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.0.lock();
        let Some(list) = waiting.get_mut(key) else { return Poll::Ready(()) };
        if !list.iter().any(|waker| waker.will_wake(cx.waker())) {
            list.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Whether a fetch is one of these.
    pub fn has(&self, fetch: &Fetch) -> bool {
        Arc::ptr_eq(&self.0, &fetch.fetches.0)
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let waiting = self.fetches.0.lock().remove(&self.key);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}
