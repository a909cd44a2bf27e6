//! `tune.max-checks-per-thread`: how many checks run at once on a worker. Those beyond wait in order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use rt::TaskId;

/// The places of one worker.
pub struct Turns {
    /// 0: no limit.
    most: u32,
    taken: Cell<u32>,
    waiting: RefCell<VecDeque<TaskId>>,
}

/// A place, until it is dropped.
pub struct Turn(Rc<Turns>);

impl Turns {
    /// At most `most` at once; 0: no limit.
    pub fn new(most: u32) -> Turns {
        Turns { most, taken: Cell::new(0), waiting: RefCell::default() }
    }

    /// Waits for a place.
    pub async fn take(self: &Rc<Self>) -> Turn {
        poll_fn(|_| {
            let task = rt::current_task();
            let mut waiting = self.waiting.borrow_mut();
            let first = waiting.front().is_none_or(|t| *t == task);
            if self.most == 0 || (first && self.taken.get() < self.most) {
                if waiting.front() == Some(&task) {
                    waiting.pop_front();
                }
                return Poll::Ready(());
            }
            if !waiting.contains(&task) {
                waiting.push_back(task);
            }
            Poll::Pending
        })
        .await;
        self.taken.set(self.taken.get() + 1);
        Turn(self.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
        if let Some(next) = self.0.waiting.borrow().front() {
            next.wake();
        }
    }
}
