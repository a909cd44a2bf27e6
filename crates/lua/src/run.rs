//! One call of a script: a coroutine that is resumed by hand.
//!
//! A function that waits yields what it waits for (the prelude puts [`TAG`] in front). Whoever resumed it
//! waits outside of Lua, without its lock, and resumes it with what came of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mlua::{MultiValue, Thread, ThreadStatus, Value};
use parking_lot::Mutex;

use crate::host::{Host, within};
use crate::state::State;
use crate::wait::Wait;

/// What stands in front of what a function yields.
pub const TAG: i64 = 0x4861_7272_6965_7201;

/// What a script does until it waits or ends.
pub enum Step {
    /// It returned this.
    Done(MultiValue),
    /// It waits.
    Waits(Wait),
    /// It failed.
    Failed(Failure),
}

/// Why a script failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It waited where it may not.
    Yield,
    /// It ran for too long in all.
    Timeout,
    /// It ran for too long in one go.
    Burst,
    /// It used too much memory.
    Memory,
    /// It raised an error: what it says, and where it comes from.
    Runtime(String, String),
}

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
struct Clock {
    burst: Option<Instant>,
    whole: Option<Instant>,
    /// The coroutine itself; those that it made yield to it and not to us.
    thread: usize,
    yields: bool,
    /// Which of both is over.
    over: Option<Over>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Burst,
    Whole,
}

thread_local! {
    static CLOCK: Cell<Option<Clock>> = const { Cell::new(None) };
    static WAKE: std::cell::RefCell<Option<Arc<Wake>>> = const { std::cell::RefCell::new(None) };
}

/// What wakes the script that runs on this thread.
pub fn wake() -> Option<Arc<Wake>> {
    WAKE.with_borrow(Clone::clone)
}

/// Looks at the clock, after so many instructions as `tune.lua.forced-yield` says.
pub fn tick(lua: &mlua::Lua) -> mlua::Result<mlua::VmState> {
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
    if clock.yields && lua.current_thread().to_pointer() as usize == clock.thread {
        return Ok(mlua::VmState::Yield);
    }
    Ok(mlua::VmState::Continue)
}

/// A call.
pub struct Run {
    /// The state that it runs in.
    pub state: Arc<State>,
    /// What wakes it.
    pub wake: Arc<Wake>,
    /// Number of its host.
    pub id: u64,
    thread: Thread,
    left: Option<Duration>,
    yields: bool,
    /// Nothing limits it: nobody is served yet.
    free: bool,
}

impl Run {
    /// One that nothing limits.
    pub fn free(state: &Arc<State>, function: mlua::Function) -> Result<Run, Failure> {
        Ok(Run { free: true, ..Run::new(state, function, None, true)? })
    }

    /// Of a function, which may run so long. `yields`: it may wait.
    pub fn new(
        state: &Arc<State>,
        function: mlua::Function,
        limit: Option<Duration>,
        yields: bool,
    ) -> Result<Run, Failure> {
        let thread = state.lua.create_thread(function).map_err(|e| failure(&e))?;
        let wake = Arc::default();
        Ok(Run {
            state: state.clone(),
            wake,
            id: crate::state::next_id(),
            thread,
            left: limit,
            yields,
            free: false,
        })
    }

    /// Lets it run until it waits or ends.
    pub fn resume(&mut self, host: &dyn Host, args: MultiValue) -> Step {
        let began = Instant::now();
        let clock = Clock {
            burst: self.state.settings.burst.filter(|_| !self.free).map(|limit| began + limit),
            whole: self.left.map(|left| began + left),
            thread: self.thread.to_pointer() as usize,
            yields: self.yields,
            over: None,
        };
        let before = CLOCK.replace(Some(clock));
        let waker = WAKE.replace(Some(self.wake.clone()));
        let result = within(host, || self.thread.resume::<MultiValue>(args));
        WAKE.set(waker);
        let over = CLOCK.replace(before).and_then(|clock| clock.over);
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(began.elapsed());
        }
        match (result, over) {
            (Err(_), Some(Over::Whole)) => Step::Failed(Failure::Timeout),
            (Err(_), Some(Over::Burst)) => Step::Failed(Failure::Burst),
            (Err(error), None) => Step::Failed(failure(&error)),
            (Ok(values), _) if self.thread.status() == ThreadStatus::Resumable => self.waits(values),
            (Ok(values), _) => Step::Done(values),
        }
    }

    fn waits(&self, values: MultiValue) -> Step {
        let tagged = matches!(values.front(), Some(Value::Integer(TAG)));
        if tagged && values.get(1).and_then(Value::as_string).is_some_and(|s| *s.as_bytes() == *b"done") {
            return Step::Done(values.into_iter().skip(2).collect());
        }
        if !self.yields {
            return Step::Failed(Failure::Yield);
        }
        if !tagged {
            return Step::Waits(Wait::Forced);
        }
        Step::Waits(Wait::read(values.into_iter().skip(1).collect()))
    }
}

/// What is said of an error of Lua's, without the trace.
pub fn words(error: &mlua::Error) -> String {
    match failure(error) {
        Failure::Runtime(text, _) => text,
        Failure::Memory => "not enough memory".into(),
        other => format!("{other:?}"),
    }
}

/// What an error of Lua's means.
pub fn failure(error: &mlua::Error) -> Failure {
    use mlua::Error as E;
    let text = match error {
        E::CallbackError { cause, .. } | E::WithContext { cause, .. } => return failure(cause),
        E::MemoryError(_) => return Failure::Memory,
        E::RuntimeError(text) => text.clone(),
        E::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let (text, trace) = text.split_once("\nstack traceback:").unwrap_or((&text, ""));
    if text.contains("attempt to yield from outside a coroutine") {
        return Failure::Yield;
    }
    Failure::Runtime(text.into(), traced(trace))
}

/// A trace in the words of HAProxy's logs.
fn traced(trace: &str) -> String {
    let lines = trace.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "...");
    let frames = lines.filter(|line| !line.contains(crate::state::PRELUDE) && !line.contains("harrier."));
    let frames = frames.map(|line| {
        let line = line.replace("in main chunk", "in function line 0");
        match line.split_once("in function <") {
            Some((place, from)) => {
                let number = from.trim_end_matches('>').rsplit(':').next().unwrap_or_default().to_owned();
                format!("{place}in function line {number}")
            }
            None => line.replace("in function '", "in global '"),
        }
    });
    frames.collect::<Vec<_>>().join(", ")
}

impl Failure {
    /// What the log says of it: `what` names the function, `number` the state.
    pub fn told(&self, what: &str, number: usize) -> String {
        match self {
            Failure::Yield => format!("{what}: yield not allowed."),
            Failure::Timeout => format!("{what}: execution timeout."),
            Failure::Burst => format!("{what}: burst timeout."),
            Failure::Memory => format!("{what}: out of memory error."),
            Failure::Runtime(text, trace) => {
                format!("{what}: [state-id {number}] runtime error: {text} from {trace}.")
            }
        }
    }
}
