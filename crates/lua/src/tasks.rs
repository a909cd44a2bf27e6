//! Tasks: scripts that run by themselves.

use std::rc::Rc;
use std::sync::Arc;

use engine::Worker;
use mlua::{Function, Lua, MultiValue, Value};

use crate::failure::{Failure, failure};
use crate::fulfil::fulfil;
use crate::here::with_worker;
use crate::host::Nothing;
use crate::run::{Run, Step};
use crate::state::State;
use crate::told;

/// Begins a task on this worker.
pub fn begin_task(lua: &Lua, function: Function, values: Vec<Value>) {
    let state = lua.app_data_ref::<std::sync::Weak<State>>().and_then(|state| state.upgrade());
    let worker = with_worker(Rc::clone);
    if let (Some(state), Some(worker)) = (state, worker) {
        rt::spawn(task(state, function, values, worker));
    }
}

/// A task, from its beginning to its end.
pub async fn task(state: Arc<State>, function: Function, values: Vec<Value>, worker: Rc<Worker>) {
    let failure = match Run::new(&state, function, state.settings.task, true) {
        Ok(mut run) => drive(&mut run, MultiValue::from_vec(values), &worker).await.err(),
        Err(failure) => Some(failure),
    };
    if let Some(failure) = failure.filter(|failure| *failure != Failure::Over) {
        told::failed(&state.settings, &failure.told("Lua task", state.number));
    }
}

/// Lets a script run to its end, waiting for what it waits for.
pub async fn drive(
    run: &mut Run,
    mut values: MultiValue,
    worker: &Rc<Worker>,
) -> Result<MultiValue, Failure> {
    loop {
        match run.resume(&Nothing, std::mem::take(&mut values)) {
            Step::Done(values) => return Ok(values),
            Step::Failed(failure) => return Err(failure),
            Step::Waits(wait) => {
                let came = run.state.ending.before(run.id, fulfil(wait, run, worker, None)).await;
                let Some(came) = came else { return Err(Failure::Over) };
                values = came.values(&run.state.lua).map_err(|e| failure(&e))?;
            }
        }
    }
}
