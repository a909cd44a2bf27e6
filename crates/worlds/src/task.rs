//! Tasks with a result, and limits on waiting.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use rt::{Notify, TaskId, Timer};

/// No scene waits longer than this for anything: what takes longer hangs.
const LONGEST: Duration = Duration::from_secs(1800);

/// A task whose result can be awaited.
pub struct Job<T> {
    /// The task.
    pub task: TaskId,
    done: Rc<(RefCell<Option<T>>, Notify)>,
}

/// Starts a task.
pub fn spawn<T: 'static>(work: impl Future<Output = T> + 'static) -> Job<T> {
    let done: Rc<(RefCell<Option<T>>, Notify)> = Rc::new((RefCell::new(None), Notify::new()));
    let slot = done.clone();
    let task = rt::spawn(async move {
        let value = work.await;
        *slot.0.borrow_mut() = Some(value);
        slot.1.notify();
    });
    Job { task, done }
}

impl<T> Job<T> {
    /// Waits for its result.
    pub async fn join(self) -> T {
        let wait = async {
            loop {
                if let Some(value) = self.done.0.take() {
                    return value;
                }
                self.done.1.notified().await;
            }
        };
        within(LONGEST, wait).await.expect("a script hangs")
    }
}

/// Waits for all, which run at the same time.
pub async fn all<T>(jobs: impl IntoIterator<Item = Job<T>>) -> Vec<T> {
    let jobs: Vec<_> = jobs.into_iter().collect();
    let mut values = Vec::new();
    for job in jobs {
        values.push(job.join().await);
    }
    values
}

/// The result of `work`, if it comes in time.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut timer = Timer::at(rt::now() + limit);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
    })
    .await
}
