//! `send-spoe-group`: a rule that sends a group of messages.

use std::sync::Arc;

use lang::action::{Action, Exec, Flow};
use lang::names::Missing;
use lang::places::Place;
use lang::registry::{ActionPlace, Registry};
use lang::{Fault, Names, Words};

use crate::agent::Agent;
use crate::event::source;
use crate::process::State;
use crate::told::Subject;

/// Reads the names of engine and group.
pub fn parse(
    words: &mut Words<'_>,
    at: &ActionPlace,
    _: &Registry,
    names: &mut dyn Names,
) -> Result<Box<dyn Action>, Fault> {
    const WANTED: &str = "expects 2 arguments: <engine-id> <group-id>";
    let engine = words.expect(WANTED)?.to_owned();
    let name = words.expect(WANTED)?.to_owned();
    if !matches!(words.peek(), None | Some(b"if" | b"unless")) {
        return Err(Fault::new(WANTED));
    }
    let Some(shelf) = names.shelf() else { return Ok(Box::new(Send(None))) };
    let agents = shelf.iter().filter_map(|any| any.clone().downcast::<Agent>().ok());
    let found = agents.into_iter().find(|agent| *agent.engine == *engine);
    let Some(agent) = found else {
        let text = format!("unable to find SPOE engine '{engine}' used by the send-spoe-group '{name}'");
        names.miss(Missing::Rule(text));
        return Ok(Box::new(Send(None)));
    };
    let Some(group) = agent.groups.iter().position(|group| *group.name == *name) else {
        let text = format!("unable to find SPOE group '{name}' into SPOE engine '{engine}' configuration");
        names.miss(Missing::Rule(text));
        return Ok(Box::new(Send(None)));
    };
    if let Some(text) = misplaced(&agent, group, at.place) {
        names.miss(Missing::Rule(text));
    }
    Ok(Box::new(Send(Some((agent, group)))))
}

/// What is said of a group whose messages need what is not there where the rule stands.
fn misplaced(agent: &Agent, group: usize, place: Place) -> Option<String> {
    let group = agent.groups.get(group)?;
    let lost = group.sources.iter().find(|source| !source.places.has(place))?;
    let (message, places) = (&lost.message, lost.places);
    // HAProxy always speaks of backends there.
    let place = if place == Place::FrontHttpRes { Place::BackHttpRes } else { place };
    Some(format!(
        "Invalid SPOE message '{message}' used by SPOE group '{}' at {}: some args extract information from '{}',none of which is available here ('{}')",
        group.name,
        lost.place,
        source(places),
        place.words()
    ))
}

/// The rule, with its agent and the position of its group; none where there is no such group.
struct Send(Option<(Arc<Agent>, usize)>);

impl Action for Send {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        let Some((agent, at)) = &self.0 else { return Flow::Next };
        let (Some(group), Some(state)) = (agent.groups.get(*at), State::find(exec, agent)) else {
            return Flow::Next;
        };
        let subject = Subject::Group(&group.name);
        if let Some(fulfilled) = exec.resumed.take() {
            state.finish(subject, Some(fulfilled), exec);
            return Flow::Next;
        }
        state.begin(subject, &group.messages, exec).unwrap_or(Flow::Next)
    }
}
