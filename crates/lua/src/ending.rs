//! The end of the scripts of a configuration: another one has taken its place. What a script does by itself
//! (tasks, functions for events) ends then, where it waits; what it does for a stream ends with that.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// Whether it has come, and who waits for it.
#[derive(Default)]
pub struct Ending {
    over: AtomicBool,
    waiting: Mutex<HashMap<u64, Waker>>,
}

impl Ending {
    /// It has come.
    pub fn end(&self) {
        self.over.store(true, Relaxed);
        for (_, waker) in std::mem::take(&mut *self.waiting.lock()) {
            waker.wake();
        }
    }

    /// What a future brings, unless the end comes first. `id` is a number of whoever waits.
    pub async fn before<T>(&self, id: u64, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        let found = poll_fn(|cx| {
            if let Poll::Ready(found) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(found));
            }
            self.waiting.lock().insert(id, cx.waker().clone());
            if self.over.load(Relaxed) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        self.waiting.lock().remove(&id);
        found
    }
}
