//! Asking all workers.
//!
//! A worker's connections and bad messages are its own: nobody else may look at them. So a question travels
//! to each worker as a job, and the answers come back to the task that asked. A worker that has ended, or one
//! that hangs, is left out after a while, so that the runtime API still answers when it is needed most.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use engine::Worker;
use parking_lot::Mutex;
use rt::RemoteNotify;

/// How long workers may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

struct Round<T> {
    answers: Mutex<Vec<(usize, T)>>,
    left: AtomicUsize,
    notify: RemoteNotify,
}

/// Counts a worker out when its job is done or dropped.
struct Part<T>(Arc<Round<T>>);

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.notify.notify();
        }
    }
}

/// Runs `question` on every worker; the answers with the numbers of their workers, in order.
pub async fn gather<T: Send + 'static>(
    question: impl Fn(&Rc<Worker>) -> T + Send + Sync + 'static,
) -> Vec<(usize, T)> {
    let workers = rt::worker_count();
    let round = Arc::new(Round {
        answers: Mutex::default(),
        left: AtomicUsize::new(workers + 1),
        notify: RemoteNotify::new(),
    });
    let question = Arc::new(question);
    for index in 0..workers {
        let (part, question) = (Part(round.clone()), question.clone());
        rt::send_to(index, Box::new(move || answer(index, &part, &*question)));
    }
    drop(Part(round.clone()));
    let mut timer = rt::Timer::at(rt::now() + PATIENCE);
    std::future::poll_fn(|cx| {
        if round.left.load(Ordering::Acquire) == 0 || round.notify.poll_notified(cx).is_ready() {
            return Poll::Ready(());
        }
        timer.poll_expired(cx)
    })
    .await;
    let mut answers = std::mem::take(&mut *round.answers.lock());
    answers.sort_by_key(|(index, _)| *index);
    answers
}

fn answer<T>(index: usize, part: &Part<T>, question: &dyn Fn(&Rc<Worker>) -> T) {
    if let Some(answer) = engine::worker::with_worker(|w| question(w)) {
        part.0.answers.lock().push((index, answer));
    }
}

/// Has every worker do something soon, without waiting for it.
pub fn tell_all(job: impl Fn(&Rc<Worker>) + Send + Sync + 'static) {
    let job = Arc::new(job);
    for index in 0..rt::worker_count() {
        let job = job.clone();
        rt::send_to(
            index,
            Box::new(move || {
                engine::worker::with_worker(|w| job(w));
            }),
        );
    }
}
