//! The clock of the script that runs on a thread, and what wakes scripts that wait.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;

/// What stands in front of what a function yields.
pub const TAG: i64 = 0x4861_7272_6965_7201;

/// What stands in front of what a function returns in a coroutine that is used again.
pub const OVER: i64 = TAG + 1;

/// Wakes a script that waits to be woken.
#[derive(Default)]
pub struct Wake {
    raised: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Wake {
    /// Wakes it, now or when it waits next.
    pub fn raise(&self) {
        self.raised.store(true, Relaxed);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    /// Waits to be woken.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock() = Some(cx.waker().clone());
        if self.raised.swap(false, Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The clock of the script that runs on this thread.
#[derive(Clone, Copy)]
pub struct Clock {
    /// When it has run for too long in one go.
    pub burst: Option<Instant>,
    /// When it has run for too long in all.
    pub whole: Option<Instant>,
    /// Which of both is over.
    pub over: Option<Over>,
}

/// Which time is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The time in one go.
    Burst,
    /// The time in all.
    Whole,
}

thread_local! {
    static CLOCK: Cell<Option<Clock>> = const { Cell::new(None) };
    static YIELDS: Cell<bool> = const { Cell::new(false) };
    static WAKE: std::cell::RefCell<Option<Arc<Wake>>> = const { std::cell::RefCell::new(None) };
}

/// What wakes the script that runs on this thread.
pub fn wake() -> Option<Arc<Wake>> {
    WAKE.with_borrow(Clone::clone)
}

/// Whether the script that runs on this thread may wait.
pub fn yields() -> bool {
    YIELDS.get()
}

/// Looks at the clock, after so many instructions as `tune.lua.forced-yield` says.
pub fn tick() -> mlua::Result<mlua::VmState> {
    let Some(mut clock) = CLOCK.get() else { return Ok(mlua::VmState::Continue) };
    let now = Instant::now();
    let over = |at: Option<Instant>| at.is_some_and(|at| now >= at);
    let late = match (over(clock.whole), over(clock.burst)) {
        (true, _) => Some(Over::Whole),
        (_, true) => Some(Over::Burst),
        _ => None,
    };
    if let Some(late) = late {
        clock.over = Some(late);
        CLOCK.set(Some(clock));
        let text = if late == Over::Whole { "execution timeout" } else { "burst timeout" };
        return Err(mlua::Error::RuntimeError(text.into()));
    }
    // Nobody goes first meanwhile: a yield out of a hook is not safe with this binding, which takes what
    // stands on the stack of a coroutine for its results.
    Ok(mlua::VmState::Continue)
}

/// Runs `work` by a clock, where scripts find what wakes them and whether they may wait; gives what of the
/// clock is over.
pub fn timed<R>(
    clock: Clock,
    (wake, may_wait): (Option<&Arc<Wake>>, bool),
    work: impl FnOnce() -> R,
) -> (R, Option<Over>) {
    let before = CLOCK.replace(Some(clock));
    let waker = WAKE.replace(wake.cloned());
    let yields = YIELDS.replace(may_wait);
    let result = work();
    YIELDS.set(yields);
    WAKE.set(waker);
    (result, CLOCK.replace(before).and_then(|clock| clock.over))
}
