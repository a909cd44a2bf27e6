//! Who fetches what a cache does not have, and who waits for that.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::Store;

/// What is being fetched, by key, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Fetches(Mutex<HashMap<Box<[u8]>, Vec<Waker>>>);

/// Somebody fetches what is under a key. When this is dropped those who wait look again.
#[derive(Debug)]
pub struct Fetch<M> {
    store: Arc<Store<M>>,
    key: Box<[u8]>,
}

impl<M> Store<M> {
    /// Says that what is under `key` is being fetched; `None` if somebody said so before.
    pub fn fetch(self: &Arc<Self>, key: &[u8]) -> Option<Fetch<M>> {
        let mut fetches = self.fetches.0.lock();
        if fetches.contains_key(key) {
            return None;
        }
        fetches.insert(key.into(), Vec::new());
        Some(Fetch { store: self.clone(), key: key.into() })
    }

    /// Ready when nobody fetches what is under `key`.
    pub fn poll_fetched(&self, key: &[u8], cx: &mut Context<'_>) -> Poll<()> {
        let mut fetches = self.fetches.0.lock();
        let Some(waiting) = fetches.get_mut(key) else { return Poll::Ready(()) };
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<M> Fetch<M> {
    /// Whether it is for this store.
    pub fn is_of(&self, store: &Arc<Store<M>>) -> bool {
        Arc::ptr_eq(&self.store, store)
    }
}

impl<M> Drop for Fetch<M> {
    fn drop(&mut self) {
        let waiting = self.store.fetches.0.lock().remove(&self.key);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}
