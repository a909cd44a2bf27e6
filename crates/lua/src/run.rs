//! One call of a script: a coroutine that is resumed by hand.
//!
//! A function that waits yields what it waits for (the prelude puts [`TAG`](crate::clock::TAG) in front).
//! Whoever resumed it waits outside of Lua, without its lock, and resumes it with what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::{MultiValue, Thread, ThreadStatus, Value};

use crate::clock::{Clock, Over, TAG, Wake, timed};
use crate::failure::{Failure, failure};
use crate::here;
use crate::host::{Host, within};
use crate::state::State;
use crate::wait::Wait;

/// What a script does until it waits or ends.
pub enum Step {
    /// It returned this.
    Done(MultiValue),
    /// It waits.
    Waits(Wait),
    /// It failed.
    Failed(Failure),
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
            over: None,
        };
        let load = self.state.settings.load;
        let work = || here::within(load, || within(host, || self.thread.resume::<MultiValue>(args)));
        let wake = Some(&self.wake).filter(|_| self.yields && !self.free);
        let (result, over) = timed(clock, (wake, self.yields), work);
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
            return Step::Waits(Wait::Own);
        }
        Step::Waits(Wait::read(values.into_iter().skip(1).collect()))
    }
}
