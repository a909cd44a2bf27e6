//! `filter spoe` on a stream: it asks its agent at the events that have messages.

use std::rc::Rc;
use std::sync::Arc;

use lang::action::{Exec, Flow};
use lang::filter::{Filter, Maker, Moment, Moments};
use lang::registry::{FilterPlace, Registry};
use lang::{Fault, Names, Words};

use crate::agent::Agent;
use crate::config;
use crate::event::Event;
use crate::process::State;
use crate::told::Subject;

/// Reads the words behind `spoe`, and the file that they name.
pub fn parse(
    words: &mut Words<'_>,
    place: &FilterPlace<'_>,
    registry: &Registry,
    names: &mut dyn Names,
) -> Result<Arc<dyn Maker>, Fault> {
    let agent = Arc::new(config::read(words, place, registry, names)?);
    if let Some(shelf) = names.shelf() {
        shelf.push(agent.clone());
    }
    Ok(Arc::new(Line { agent, front: place.front }))
}

/// A line, compiled.
struct Line {
    agent: Arc<Agent>,
    /// Its proxy is a frontend, or both.
    front: bool,
}

impl Maker for Line {
    fn begin(&self, exec: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        let state = State::new(self.agent.clone());
        exec.txn.shared.borrow_mut().push(state.clone());
        // A proxy that is both may be only the backend of this stream.
        let front = self.front && exec.txn.backend.is_none();
        Some(Box::new(Attached { state, front, met: 0, waits: None }))
    }
}

/// The filter of one stream.
struct Attached {
    state: Rc<State>,
    /// It is the frontend's.
    front: bool,
    /// The events that were met, a bit each: some moments come again (`retry-on`).
    met: u8,
    /// The event whose answer is awaited.
    waits: Option<Event>,
}

impl Filter for Attached {
    fn moments(&self) -> Moments {
        if self.front { self.state.agent().moments.0 } else { self.state.agent().moments.1 }
    }

    fn meet(&mut self, moment: Moment, exec: &mut Exec<'_>) -> Flow {
        if let Some(event) = self.waits.take() {
            let fulfilled = exec.resumed.take();
            self.state.finish(Subject::Event(event.name()), fulfilled, exec);
        }
        for event in Event::at(moment, self.front) {
            let bit = 1 << *event as u8;
            if self.met & bit != 0 {
                continue;
            }
            self.met |= bit;
            let messages = self.state.agent().messages(*event);
            if let Some(flow) = self.state.begin(Subject::Event(event.name()), messages, exec) {
                self.waits = Some(*event);
                return flow;
            }
        }
        Flow::Next
    }
}
