//! What other threads have to tell a worker.
//!
//! Each worker has one inbox. A sender takes its lock for a push; the worker takes it once per turn, and only
//! if the counter says that there is something. A sleeping worker is woken through an eventfd, which is
//! registered edge-triggered and never read: one system call, on the sender's side, and only if the worker
//! may sleep.
//!
//! The registry finds an inbox by the tag in a task's id, so a waker needs no pointer. Tags carry an epoch:
//! what is addressed to a worker that is gone reaches nobody, even if its place in the registry was taken
//! again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::waker::{Tag, TaskId};

/// A function to run on another worker.
pub type Job = Box<dyn FnOnce() + Send>;

pub(crate) enum Message {
    Wake(TaskId),
    Run(Job),
}

/// The inbox of one worker.
pub(crate) struct Inbox {
    queue: Mutex<Vec<Message>>,
    /// How many messages are queued; read without the lock.
    length: AtomicUsize,
    /// Set while the worker is in, or about to enter, a poll that may wait.
    sleeping: AtomicBool,
    /// `None` in a simulated world, which never sleeps.
    bell: Option<OwnedFd>,
}

impl Inbox {
    pub(crate) fn new(bell: Option<OwnedFd>) -> Inbox {
        let (length, sleeping) = (AtomicUsize::new(0), AtomicBool::new(false));
        Inbox { queue: Mutex::default(), length, sleeping, bell }
    }

    /// The descriptor that becomes readable when a message comes for a sleeping worker.
    pub(crate) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(|b| b.as_fd())
    }

    pub(crate) fn post(&self, message: Message) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.push(message);
            self.length.store(queue.len(), Ordering::SeqCst);
        }
        self.ring();
    }

    /// Ends the worker's sleep, if it sleeps.
    pub(crate) fn ring(&self) {
        // Both sides write their flag before they read the other's (SeqCst), so one of them sees the message.
        if self.sleeping.swap(false, Ordering::SeqCst)
            && let Some(bell) = &self.bell
        {
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }

    /// Whether there is something to take.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// Moves all messages to the end of `to`.
    pub(crate) fn take(&self, to: &mut Vec<Message>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.length.store(0, Ordering::SeqCst);
        to.append(&mut queue);
    }

    /// The worker wants to sleep. False if a message came in the meantime.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        let asleep = self.length.load(Ordering::SeqCst) == 0;
        if !asleep {
            self.wake_up();
        }
        asleep
    }

    /// The worker is awake.
    pub(crate) fn wake_up(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }
}

/// One place of the registry: the epoch of its present or next holder.
struct Place {
    epoch: u8,
    inbox: Option<Arc<Inbox>>,
}

static REGISTRY: [RwLock<Place>; Tag::MAX_SLOTS] =
    [const { RwLock::new(Place { epoch: 1, inbox: None }) }; Tag::MAX_SLOTS];

/// Gives a worker its tag. Panics beyond 1,024 workers.
pub(crate) fn register(inbox: &Arc<Inbox>) -> Tag {
    // Place 0 stays free so that no task id is 0.
    for (slot, place) in REGISTRY.iter().enumerate().skip(1) {
        let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
        if place.inbox.is_none() {
            place.inbox = Some(inbox.clone());
            return Tag::new(slot, place.epoch);
        }
    }
    panic!("more than {} workers", Tag::MAX_SLOTS - 1)
}

/// The worker with this tag is gone.
pub(crate) fn unregister(tag: Tag) {
    let mut place = REGISTRY[tag.slot()].write().unwrap_or_else(PoisonError::into_inner);
    place.inbox = None;
    place.epoch = place.epoch.wrapping_add(1);
}

/// Sends a wake-up to the worker that `task` names, if there is still one.
pub(crate) fn wake_elsewhere(task: TaskId) {
    let tag = task.tag();
    let place = REGISTRY[tag.slot()].read().unwrap_or_else(PoisonError::into_inner);
    if let Some(inbox) = &place.inbox
        && place.epoch == tag.epoch()
    {
        inbox.post(Message::Wake(task));
    }
}
