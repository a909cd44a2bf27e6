//! The states of a configuration, and the functions that are called in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::Function;

use crate::settings::Settings;
use crate::state::State;

/// The function of a name in each state that has one, by number of the state.
pub type Functions = Arc<Vec<(usize, Function)>>;

/// The number of a kept function in each state that has one, by number of the state.
pub type Calls = Arc<Vec<(usize, i64)>>;

/// The states of all scripts.
pub struct Scripts {
    /// What they may do.
    pub settings: Arc<Settings>,
    /// By number.
    pub states: BTreeMap<usize, Arc<State>>,
}

impl Scripts {
    /// Keeps functions in their states, for calls of [`Run::of_stream`](crate::run::Run::of_stream).
    pub fn keep(&self, functions: &[(usize, Function)]) -> Calls {
        let kept = functions
            .iter()
            .filter_map(|(number, function)| Some((*number, self.states.get(number)?.keep(function).ok()?)));
        Arc::new(kept.collect())
    }

    /// The number of a kept function in the state that serves on this worker.
    pub fn call(&self, calls: &Calls, worker: usize) -> Option<(&Arc<State>, i64)> {
        let (number, call) = calls.iter().find(|(number, _)| *number == 0 || *number == worker + 1)?;
        Some((self.states.get(number)?, *call))
    }

    /// The function of a name in the state that serves on this worker.
    pub fn function(&self, functions: &Functions, worker: usize) -> Option<(Arc<State>, Function)> {
        let found = functions.iter().find(|(number, _)| *number == 0 || *number == worker + 1);
        let (number, function) = found?;
        Some((self.states.get(number)?.clone(), function.clone()))
    }
}
