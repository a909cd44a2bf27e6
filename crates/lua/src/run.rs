//! One call of a script: a coroutine that is resumed by hand.
//!
//! A function that waits yields what it waits for (the prelude puts [`TAG`](crate::clock::TAG) in front).
//! Whoever resumed it waits outside of Lua, without its lock, and resumes it with what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::{MultiValue, Thread, ThreadStatus, Value};

use crate::clock::{Clock, OVER, Over, TAG, Wake, timed};
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
    thread: Option<Thread>,
    /// The number of the function that a coroutine which is used again is to call.
    call: Call,
    left: Option<Duration>,
    yields: bool,
    /// Nothing limits it: nobody is served yet.
    free: bool,
}

/// How the coroutine of a call is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    /// For this call only.
    Once,
    /// For many: it is to begin with the function of that number, on a transaction or not.
    Begins(i64, bool),
    /// For many: it has begun.
    Goes,
}

impl Run {
    /// Of a function that was kept, for a stream: on its transaction (the first argument, which the coroutine
    /// makes) or not; `http`: there is a message of HTTP.
    pub fn of_stream(
        state: &Arc<State>,
        (function, txn): (i64, bool),
        yields: bool,
        http: bool,
    ) -> Result<Run, Failure> {
        let (thread, wake) = state.coroutine().map_err(|e| failure(&e))?;
        Ok(Run {
            state: state.clone(),
            wake,
            id: crate::state::host_id(http),
            thread: Some(thread),
            call: Call::Begins(function, txn),
            left: state.settings.session,
            yields,
            free: false,
        })
    }

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
            id: crate::state::host_id(false),
            thread: Some(thread),
            call: Call::Once,
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
        let (call, id) = (self.call, i64::try_from(self.id).unwrap_or(0));
        let thread = self.thread.as_ref();
        let resume = || match (thread, call) {
            (None, _) => Err(mlua::Error::CoroutineUnresumable),
            (Some(thread), Call::Once) => thread.resume::<MultiValue>(args).map(|all| (Value::Nil, all)),
            (Some(thread), Call::Begins(n, txn)) => thread.resume((n, txn.then_some(id), args)),
            (Some(thread), Call::Goes) => thread.resume(args),
        };
        let work = || here::within(load, || within(host, resume));
        let wake = Some(&self.wake).filter(|_| self.yields && !self.free);
        let (result, over) = timed(clock, (wake, self.yields), work);
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(began.elapsed());
        }
        match (result, over) {
            (Err(_), Some(Over::Whole)) => Step::Failed(Failure::Timeout),
            (Err(_), Some(Over::Burst)) => Step::Failed(Failure::Burst),
            (Err(error), None) => Step::Failed(failure(&error)),
            (Ok((_, values)), _) if call == Call::Once => {
                let thread = self.thread.as_ref();
                match thread.is_some_and(|thread| thread.status() == ThreadStatus::Resumable) {
                    true => self.waits(values),
                    false => Step::Done(values),
                }
            }
            (Ok((Value::Integer(OVER), values)), _) => {
                if let Some(thread) = self.thread.take() {
                    self.state.rest(thread, &self.wake);
                }
                Step::Done(values)
            }
            (Ok((first, mut values)), _) => {
                self.call = Call::Goes;
                values.push_front(first);
                self.waits(values)
            }
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
