//! News that tasks of one worker wait for.

use std::cell::Cell;
use std::task::Context;

/// A call that several tasks of a worker watch for: the process is stopping, a frontend was disabled, a
/// connection ended.
#[derive(Default)]
pub struct Change {
    raised: Cell<u32>,
    watchers: std::cell::RefCell<Vec<rt::TaskId>>,
}

impl Change {
    /// Wakes all watchers.
    pub fn raise(&self) {
        self.raised.set(self.raised.get().wrapping_add(1).max(1));
        for task in self.watchers.take() {
            task.wake();
        }
    }

    /// Whether it was ever raised.
    pub fn is_raised(&self) -> bool {
        self.raised.get() > 0
    }

    /// How often it was raised.
    pub fn count(&self) -> u32 {
        self.raised.get()
    }

    /// Watches from the task at hand; whether it was ever raised.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> bool {
        self.poll_raised_since(0, cx)
    }

    /// Watches from the task at hand; whether it was raised since the count was `seen`.
    pub fn poll_raised_since(&self, seen: u32, cx: &mut Context<'_>) -> bool {
        if let Some(task) = rt::TaskId::of(cx.waker()) {
            let mut watchers = self.watchers.borrow_mut();
            if !watchers.contains(&task) {
                watchers.push(task);
            }
        }
        self.raised.get() != seen
    }
}
