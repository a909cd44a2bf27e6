//! The states of a configuration, and the functions that are called in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::Function;

use crate::settings::Settings;
use crate::state::State;

/// The function of a name in each state that has one, by number of the state.
pub type Functions = Arc<Vec<(usize, Function)>>;

/// The states of all scripts.
pub struct Scripts {
    /// What they may do.
    pub settings: Arc<Settings>,
    /// By number.
    pub states: BTreeMap<usize, Arc<State>>,
}

impl Scripts {
    /// The function of a name in the state that serves on this worker.
    pub fn function(&self, functions: &Functions, worker: usize) -> Option<(Arc<State>, Function)> {
        let found = functions.iter().find(|(number, _)| *number == 0 || *number == worker + 1);
        let (number, function) = found?;
        Some((self.states.get(number)?.clone(), function.clone()))
    }
}
