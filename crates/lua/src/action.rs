//! Actions, fetches and converters of scripts, in the rules.

use std::sync::Arc;
use std::time::Duration;

use engine::Worker;
use lang::action::{Action, Content, Exec, Extension, Flow, Fulfilled, Need, Payload, Reply};
use lang::arg::Arg;
use lang::env::{Env, Side};
use lang::sample::{Found, Miss, Value as Sample};
use mlua::{MultiValue, Value};

use crate::came::Came;
use crate::failure::Failure;
use crate::fulfil::fulfil;
use crate::host::{Acting, Looking, within};
use crate::run::{Run, Step};
use crate::scripts::{Calls, Scripts};
use crate::told;
use crate::value::{Form, to_lua, to_sample};
use crate::wait::Wait;

/// An action.
pub struct LuaAction {
    /// The scripts.
    pub scripts: Arc<Scripts>,
    /// Its functions, by state.
    pub calls: Calls,
    /// Its name without `lua.`.
    pub name: Arc<str>,
    /// The words behind its name.
    pub words: Vec<Box<[u8]>>,
}

/// A script that waited, and what came.
struct Suspended {
    run: Run,
    came: Came,
}

/// What a script goes on with once the data are what it made of them.
enum After {
    /// It has ended.
    Ended(Flow),
    /// It waits for this.
    Waits(Run, Wait),
    /// It waited for more data.
    More(Run),
}

/// How an action goes on.
enum Resumed {
    /// From its beginning.
    Not,
    /// Its script goes on with what came; whether no more data will.
    With(Run, Came, bool),
    /// Not at all.
    Over(Flow),
}

fn resumed(exec: &mut Exec<'_>) -> Resumed {
    let brought = match exec.resumed.take() {
        Some(Fulfilled::Brought(brought)) => brought,
        Some(Fulfilled::Failed | Fulfilled::TimedOut) => return Resumed::Over(Flow::Next),
        _ => return Resumed::Not,
    };
    let brought = match brought.downcast::<Suspended>() {
        Ok(suspended) => return Resumed::With(suspended.run, suspended.came, false),
        Err(other) => other,
    };
    let Ok(content) = brought.downcast::<Content>() else {
        // `act.YIELD`: from the beginning.
        return Resumed::Not;
    };
    match content.kept.downcast::<After>().map(|after| *after) {
        Ok(After::Ended(flow)) => Resumed::Over(flow),
        Ok(After::Waits(run, wait)) => Resumed::Over(wait_for(run, wait)),
        Ok(After::More(run)) => Resumed::With(run, Came::Over, content.over),
        Err(_) => Resumed::Over(Flow::Next),
    }
}

impl Action for LuaAction {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        let (mut run, args, over) = match resumed(exec) {
            Resumed::Over(flow) => return flow,
            Resumed::With(run, came, over) => {
                let values = came.values(&run.state.lua);
                (run, values, over)
            }
            Resumed::Not => match self.begin(exec) {
                Ok((run, args)) => (run, Ok(args), false),
                Err(failure) => return self.failed(exec, &failure, 0),
            },
        };
        let args = match args {
            Ok(args) => args,
            Err(e) => return self.failed(exec, &crate::failure::failure(&e), run.state.number),
        };
        let (step, data) = {
            let host = Acting::new(run.id, exec, over);
            let step = run.resume(&host, args);
            (step, host.edited())
        };
        let content = |data, more, kept| Flow::Yield(Need::Content { data, more, kept: Box::new(kept) });
        let flow = match step {
            Step::Waits(Wait::Data) => return content(data, true, After::More(run)),
            Step::Waits(wait) if data.is_some() => return content(data, false, After::Waits(run, wait)),
            Step::Waits(wait) => return wait_for(run, wait),
            Step::Failed(failure) => self.failed(exec, &failure, run.state.number),
            Step::Done(values) => done(exec, run.id, &values),
        };
        if data.is_some() { content(data, false, After::Ended(flow)) } else { flow }
    }
}

impl LuaAction {
    fn begin(&self, exec: &Exec<'_>) -> Result<(Run, MultiValue), Failure> {
        let found = self.scripts.call(&self.calls, exec.live.worker());
        let (state, call) =
            found.ok_or_else(|| Failure::Runtime("no such function".into(), String::new()))?;
        let run = Run::of_stream(state, (call, true), true, exec.txn.has_req || exec.txn.has_res)?;
        let mut args = MultiValue::new();
        for word in &self.words {
            let word = state.lua.create_string(word).map_err(|e| crate::failure::failure(&e))?;
            args.push_back(Value::String(word));
        }
        Ok((run, args))
    }

    /// Says what went wrong; the rules go on.
    fn failed(&self, exec: &mut Exec<'_>, failure: &Failure, number: usize) -> Flow {
        let text = failure.told(&format!("Lua function '{}'", self.name), number);
        let host = Acting::new(u64::MAX, exec, false);
        within(&host, || told::failed(&self.scripts.settings, &text));
        Flow::Next
    }
}

/// Waits outside of the rules and comes back.
fn wait_for(run: Run, wait: Wait) -> Flow {
    Flow::Yield(Need::Extension(Extension::new(move |worker| {
        Box::pin(async move {
            let came = match worker.downcast::<Worker>() {
                Ok(worker) => fulfil(wait, &run, &worker, None).await,
                Err(_) => Came::Wrong("no worker".into()),
            };
            Box::new(Suspended { run, came }) as Box<dyn std::any::Any>
        })
    })))
}

/// What an action that has ended makes of the rules.
fn done(exec: &Exec<'_>, id: u64, values: &MultiValue) -> Flow {
    if let Some(answer) = crate::txn::take_done(id) {
        return match answer {
            Some(message) => Flow::Reply(message_reply(&message)),
            None => Flow::Reject,
        };
    }
    let code = match values.front() {
        Some(Value::Integer(code)) => *code,
        _ => 0,
    };
    match code {
        1 | 4 => Flow::Accept,
        2 if exec.last => Flow::Next,
        2 => again(),
        3 => Flow::Error,
        5 => Flow::Deny(Reply {
            keep_alive: true,
            ..Reply::error(if exec.side == Side::Request { 403 } else { 502 })
        }),
        6 => Flow::Deny(Reply { keep_alive: true, ..Reply::error(503) }),
        7 => Flow::Invalid,
        _ => Flow::Next,
    }
}

/// How long a script that is to be called again is left alone where it did not say.
pub const PAUSE: Duration = Duration::from_millis(100);

/// The script is called again later, from its beginning: `act.YIELD`, `filter.WAIT`.
pub fn again() -> Flow {
    let time = crate::core::take_wake_time().unwrap_or(PAUSE);
    Flow::Yield(Need::Extension(Extension::new(move |_| {
        Box::pin(async move {
            rt::sleep(time).await;
            Box::new(()) as Box<dyn std::any::Any>
        })
    })))
}

/// An answer that is a whole message.
fn message_reply(message: &[u8]) -> Reply {
    let status = message.get(9..12).and_then(|s| std::str::from_utf8(s).ok()?.parse().ok()).unwrap_or(200);
    Reply { payload: Payload::Message(message.into()), keep_alive: true, ..Reply::error(status) }
}

/// Runs a fetch.
pub fn fetch<'a>(
    scripts: &Arc<Scripts>,
    calls: &Calls,
    name: &str,
    env: &Env<'a>,
    args: &'a [Arg],
) -> Found<'a> {
    let what = || format!("Lua sample-fetch '{name}'");
    call(scripts, calls, &what, env, None, args)
}

/// Runs a converter.
pub fn convert<'a>(
    scripts: &Arc<Scripts>,
    calls: &Calls,
    name: &str,
    env: &Env<'a>,
    value: Sample<'a>,
    args: &'a [Arg],
) -> Found<'a> {
    let what = || format!("Lua converter '{name}'");
    call(scripts, calls, &what, env, Some(value), args)
}

fn call<'a>(
    scripts: &Arc<Scripts>,
    calls: &Calls,
    what: &dyn Fn() -> String,
    env: &Env<'a>,
    value: Option<Sample<'a>>,
    args: &'a [Arg],
) -> Found<'a> {
    let (state, call) = scripts.call(calls, env.live.worker()).ok_or(Miss::None)?;
    let http = env.txn.has_req || env.txn.has_res;
    let result = Run::of_stream(state, (call, value.is_none()), false, http).and_then(|mut run| {
        let failure = |e: mlua::Error| crate::failure::failure(&e);
        let mut values = MultiValue::new();
        if let Some(value) = value {
            values.push_back(to_lua(&state.lua, value, Form::Text).map_err(failure)?);
        }
        for word in args.iter().filter_map(Arg::bytes) {
            values.push_back(Value::String(state.lua.create_string(word).map_err(failure)?));
        }
        let host = Looking { id: run.id, env: *env };
        match run.resume(&host, values) {
            Step::Done(values) => Ok(values),
            Step::Waits(_) => Err(Failure::Yield),
            Step::Failed(failure) => Err(failure),
        }
    });
    match result {
        Ok(values) => match values.front() {
            None => Err(Miss::None),
            Some(value) => Ok(to_sample(value, env.arena)),
        },
        Err(failure) => {
            let text = failure.told(&what(), state.number);
            let host = Looking { id: u64::MAX, env: *env };
            within(&host, || told::failed(&state.settings, &text));
            Err(Miss::None)
        }
    }
}
