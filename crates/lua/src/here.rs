//! The worker that a script runs on: that of the configuration which the script belongs to.
//!
//! After a reload in place a thread has a worker for each configuration that is still at work, and indices
//! mean something in their own only. So each load of scripts knows the worker that was begun with it.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use engine::Worker;

thread_local! {
    static KNOWN: RefCell<Vec<(u64, Weak<Worker>)>> = const { RefCell::new(Vec::new()) };
    static HERE: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// Notes the worker of this thread that scripts of a load run on.
pub fn enter(load: u64, worker: &Rc<Worker>) {
    KNOWN.with_borrow_mut(|known| {
        known.retain(|(_, worker)| worker.strong_count() > 0);
        known.push((load, Rc::downgrade(worker)));
    });
}

/// Whether the script at hand is not of the configuration that runs.
pub fn is_other() -> bool {
    HERE.with_borrow(Option::is_some)
}

/// Runs `work` where [`with_worker`] finds the worker of a load.
pub fn within<R>(load: u64, work: impl FnOnce() -> R) -> R {
    let mine = |known: &Vec<(u64, Weak<Worker>)>| match known.as_slice() {
        [] | [_] => None,
        [.., (last, _)] if *last == load => None,
        all => all.iter().find(|(number, _)| *number == load).and_then(|(_, worker)| worker.upgrade()),
    };
    // The last one is that of the thread.
    let Some(worker) = KNOWN.with_borrow(mine) else { return work() };
    let before = HERE.replace(Some(worker));
    let result = work();
    HERE.set(before);
    result
}

/// Runs `f` with the worker of the script at hand, or that of the thread; `None`: it is no worker.
pub fn with_worker<R>(f: impl FnOnce(&Rc<Worker>) -> R) -> Option<R> {
    match HERE.with_borrow(Clone::clone) {
        Some(worker) => Some(f(&worker)),
        None => engine::worker::with_worker(f),
    }
}
