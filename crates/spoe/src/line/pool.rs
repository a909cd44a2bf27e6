//! The connections of a worker to agents. A connection belongs to its worker and to one agent of the
//! configuration: what was agreed on in its greeting is for that one.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use engine::Worker;
use program::Proxy;

use super::Line;
use crate::agent::Agent;

/// The number of an agent, and its server by the address of its live state.
pub type Key = (u64, usize);

thread_local! {
    static LINES: RefCell<HashMap<Key, Vec<Rc<Line>>>> = RefCell::default();
}

/// A connection to a server that takes one more question: the first of those that stand, or a new one.
pub fn line(worker: &Rc<Worker>, agent: &Arc<Agent>, proxy: &Proxy, server: u32) -> Rc<Line> {
    let config = &*proxy.server(server);
    let key = (agent.number, Arc::as_ptr(&config.state) as usize);
    let moves = config.state.moves();
    let found = LINES.with_borrow(|all| {
        let own = all.get(&key)?;
        own.iter().find(|line| line.has_room() && line.moves() == moves).cloned()
    });
    let (back, own) = (proxy.state.back.counters.of(worker.index), config.state.counters.of(worker.index));
    let counters =
        if found.is_some() { [&back.reuses, &own.reuses] } else { [&back.connects, &own.connects] };
    counters.into_iter().for_each(|counter| counter.inc());
    found.unwrap_or_else(|| {
        let line = Line::open(worker, agent, server, key);
        LINES.with_borrow_mut(|all| all.entry(key).or_default().push(line.clone()));
        line
    })
}

/// A connection takes no more questions.
pub fn remove(key: Key, line: &Rc<Line>) {
    let _ = LINES.try_with(|all| {
        let mut all = all.borrow_mut();
        if let Some(own) = all.get_mut(&key) {
            own.retain(|other| !Rc::ptr_eq(other, line));
            if own.is_empty() {
                all.remove(&key);
            }
        }
    });
}

/// Whether another connection stands in for this one.
pub fn has_another(key: Key, line: &Rc<Line>) -> bool {
    LINES.with_borrow(|all| all.get(&key).is_some_and(|own| own.iter().any(|other| !Rc::ptr_eq(other, line))))
}

thread_local! {
    /// Servers that take one question at a time, as far as the last greeting tells.
    static SERIAL: RefCell<HashSet<Key>> = RefCell::default();
}

/// Notes whether a server takes one question at a time.
pub fn note_serial(key: Key, serial: bool) {
    SERIAL.with_borrow_mut(|all| if serial { all.insert(key) } else { all.remove(&key) });
}

/// Whether a server is known to take one question at a time.
pub fn is_serial(key: Key) -> bool {
    SERIAL.with_borrow(|all| all.contains(&key))
}
