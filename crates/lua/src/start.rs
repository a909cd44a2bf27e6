//! The beginning of what scripts do by themselves, and the end of those of the configuration before.

use std::rc::Rc;
use std::sync::Arc;

use engine::Worker;
use mlua::MultiValue;
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::load::{Loaded, at_once};
use crate::scripts::Scripts;
use crate::tasks::task;

/// The scripts that are at work. They are held to the end of the process: what they hold may belong to
/// threads that are gone by then.
static CURRENT: Mutex<Option<Arc<Scripts>>> = Mutex::new(None);

/// The scripts of another configuration, if it has any, take the place of those before on this worker; the
/// first one ends what these do by themselves.
///
/// # Errors
/// A function that runs at the start failed: what is to be said of it.
pub fn succeed(loaded: Option<&Loaded>, worker: &Rc<Worker>) -> Result<(), String> {
    if worker.index == 0 {
        let now = loaded.map(|loaded| loaded.scripts.clone());
        let before = std::mem::replace(&mut *CURRENT.lock(), now);
        for state in before.iter().flat_map(|before| before.states.values()) {
            state.ending.end();
        }
    }
    loaded.map_or(Ok(()), |loaded| loaded.start(worker))
}

impl Loaded {
    /// Begins on a worker what scripts do by themselves: functions that run once the configuration is
    /// complete, then tasks. The shared state is the first worker's.
    ///
    /// # Errors
    /// A function that runs at the start failed: what is to be said of it. The process does not start.
    fn start(&self, worker: &Rc<Worker>) -> Result<(), String> {
        crate::here::enter(self.scripts.settings.load, worker);
        crate::samples::forget();
        crate::hot::forget();
        let own = [(worker.index == 0).then_some(0), Some(worker.index + 1)];
        for number in own.into_iter().flatten() {
            let Some(registered) = self.registered.get(&number) else { continue };
            let Some(state) = self.scripts.states.get(&number) else { continue };
            crate::events::start(state, worker);
            let inits = std::mem::take(&mut registered.lock().inits);
            for function in inits {
                at_once(state, function, MultiValue::new()).map_err(|failure| match failure {
                    Failure::Runtime(text, trace) => {
                        format!("Lua init: runtime error: '{text}' from {trace}")
                    }
                    other => other.told("Lua init", number),
                })?;
            }
            let tasks = std::mem::take(&mut registered.lock().tasks);
            for (function, values) in tasks {
                rt::spawn(task(state.clone(), function, values, worker.clone()));
            }
        }
        Ok(())
    }
}
