//! Wake-up calls between tasks: [`Notify`] within a worker, [`RemoteNotify`] from any thread.
//!
//! Both remember a call that nobody awaits yet, as one: calls are not counted. One task awaits at a time; the
//! last one to poll is the one woken.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use crate::waker::TaskId;
use crate::worker::task_of;

/// A wake-up call between tasks of one worker.
#[derive(Debug)]
pub struct Notify {
    called: Cell<bool>,
    waiter: Cell<TaskId>,
}

impl Default for Notify {
    fn default() -> Notify {
        Notify::new()
    }
}

impl Notify {
    /// Nobody has called.
    pub const fn new() -> Notify {
        Notify { called: Cell::new(false), waiter: Cell::new(TaskId::NONE) }
    }

    /// Wakes the waiter, or lets the next poll return at once.
    pub fn notify(&self) {
        self.called.set(true);
        let waiter = self.waiter.replace(TaskId::NONE);
        if waiter != TaskId::NONE {
            waiter.wake();
        }
    }

    /// Ready once after each call (or several).
    pub fn poll_notified(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.called.replace(false) {
            return Poll::Ready(());
        }
        self.waiter.set(task_of(cx));
        Poll::Pending
    }

    /// Waits for a call.
    pub async fn notified(&self) {
        poll_fn(|cx| self.poll_notified(cx)).await;
    }
}

/// A wake-up call from any thread to a task of any worker.
#[derive(Debug, Default)]
pub struct RemoteNotify {
    called: AtomicBool,
    waiter: AtomicU64,
}

impl RemoteNotify {
    /// Nobody has called.
    pub const fn new() -> RemoteNotify {
        RemoteNotify { called: AtomicBool::new(false), waiter: AtomicU64::new(0) }
    }

    /// Wakes the waiter, or lets the next poll return at once. Cheap if already called.
    pub fn notify(&self) {
        if self.called.swap(true, Ordering::SeqCst) {
            return;
        }
        let waiter = TaskId::from_bits(self.waiter.swap(0, Ordering::SeqCst));
        if waiter != TaskId::NONE {
            waiter.wake();
        }
    }

    /// Ready once after each call (or several).
    pub fn poll_notified(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.called.swap(false, Ordering::SeqCst) {
            return Poll::Ready(());
        }
        self.waiter.store(task_of(cx).to_bits(), Ordering::SeqCst);
        // A call may have come between the look and the store, and found nobody to wake.
        if self.called.swap(false, Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits for a call.
    pub async fn notified(&self) {
        poll_fn(|cx| self.poll_notified(cx)).await;
    }
}

struct Cellar<T> {
    value: RefCell<Option<T>>,
    closed: Cell<bool>,
    notify: Notify,
}

/// The end of a one-shot channel that sends its value.
pub struct Sender<T>(Rc<Cellar<T>>);

/// The end of a one-shot channel that receives its value.
pub struct Receiver<T>(Rc<Cellar<T>>);

/// A channel for one value between two tasks of a worker.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let cellar = Cellar { value: RefCell::new(None), closed: Cell::new(false), notify: Notify::new() };
    let cellar = Rc::new(cellar);
    (Sender(cellar.clone()), Receiver(cellar))
}

impl<T> Sender<T> {
    /// Sends the value; gives it back if the receiver is gone.
    ///
    /// # Errors
    /// The value itself.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.0.closed.get() {
            return Err(value);
        }
        *self.0.value.borrow_mut() = Some(value);
        Ok(())
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.0.closed.get()
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.closed.set(true);
        self.0.notify.notify();
    }
}

impl<T> Receiver<T> {
    /// Ready with the value, or with `None` if the sender was dropped without sending one.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match self.0.value.borrow_mut().take() {
            Some(value) => Poll::Ready(Some(value)),
            None if self.0.closed.get() => Poll::Ready(None),
            None => match self.0.notify.poll_notified(cx) {
                Poll::Ready(()) => Poll::Ready(self.0.value.borrow_mut().take()),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// Waits for the value.
    pub async fn recv(mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.closed.set(true);
    }
}
