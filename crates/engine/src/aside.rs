//! Work that would keep a worker waiting for the system: names that the C library resolves, commands that are
//! run.
//!
//! It goes to a thread of its own, and the task that wants the outcome is woken when it is there. There are
//! only so many such threads at once: one that hangs can't be ended, only given up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use rt::{RemoteNotify, Timer};

/// Most threads at once.
const MOST: usize = 16;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A thread that counts as running.
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let more = |n: usize| (n < MOST).then_some(n + 1);
        RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Does some work on a thread called `name` and returns what came of it; `None` when it takes longer than
/// `patience`, or when no thread can be had. Work that was given up still runs to its end.
pub async fn run<T: Send + 'static>(
    name: &str,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let place = Place::take()?;
    let done = Arc::new((Mutex::new(None), RemoteNotify::new()));
    let theirs = done.clone();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let run = move || {
        let outcome = work();
        *theirs.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        drop(place);
        theirs.1.notify();
    };
    thread.spawn(run).ok()?;
    let mut timer = Timer::new();
    timer.set_after(Some(patience));
    std::future::poll_fn(|cx| match done.1.poll_notified(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => timer.poll_expired(cx),
    })
    .await;
    done.0.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_only_so_many_places() {
        let places: Vec<_> = std::iter::from_fn(Place::take).take(MOST + 1).collect();
        assert_eq!(places.len(), MOST);
        drop(places);
        assert!(Place::take().is_some());
    }
}
