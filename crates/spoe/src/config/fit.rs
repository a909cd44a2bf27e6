//! How the sections of a scope fit together, and what comes of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lang::Names;
use lang::names::{Agents, Missing};
use lang::registry::FilterPlace;
use model::vars::VarRef;

use super::{Sections, agent, message};
use crate::agent::{Agent, Group, Message, Source};
use crate::event::{COUNT, Event, source};

/// The number of the next agent.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes the agent of a scope.
///
/// # Errors
/// What is wrong with the scope as a whole.
pub fn agent(
    sections: Sections,
    engine: Option<String>,
    path: &str,
    place: &FilterPlace<'_>,
    names: &mut dyn Names,
) -> Result<Agent, String> {
    let Some(draft) = sections.agent else { return Err(format!("No SPOE agent found in file {path}")) };
    let at = format!("{path}:{}", draft.line);
    let Some(backend) = draft.backend.clone() else {
        return Err(format!("No backend declared for SPOE agent '{}' declared at {at}", draft.name));
    };
    warn(&draft, &at, place, names);
    let mut fit =
        Fit { path, place, draft: &draft, at: &at, messages: HashMap::new(), taken: HashMap::new() };
    fit.messages = sections.messages.into_iter().map(|m| (m.name.clone(), Known::from(m))).collect();
    let groups = fit.groups(&sections.groups)?;
    let events = fit.events(names)?;
    let sent = |event: Event| events.get(event as usize).is_some_and(|list| !list.is_empty());
    let moments = (Event::moments(true, sent), Event::moments(false, sent));
    let backend = match names.agents(&backend) {
        Agents::At(number) => number,
        Agents::Unknown => {
            fit.refuse(format!("unknown backend '{backend}' used by SPOE agent"), "", names);
            0
        }
        Agents::OtherMode => {
            fit.refuse(format!("backend '{backend}' used by SPOE agent"), " must use SPOP mode", names);
            0
        }
    };
    let prefix = draft.prefix.clone().unwrap_or_else(|| draft.name.clone());
    let (error, process_time, total_time) = variables(&draft, &prefix, names)?;
    let engine = engine.unwrap_or_else(|| draft.name.clone());
    unique(&engine, place, names);
    let loggers = match draft.logs.is_empty() {
        true => None,
        false => draft.loggers(names).ok(),
    };
    Ok(Agent {
        number: NEXT.fetch_add(1, Relaxed),
        engine: engine.into(),
        events,
        moments,
        groups,
        prefix: format!("{prefix}.").into(),
        continues: draft.continues,
        forces: draft.forces,
        pipelining: draft.pipelining,
        logs_errors_only: draft.logs_errors_only,
        error,
        process_time,
        total_time,
        timeout: draft.timeout,
        most: draft.most,
        backend,
        loggers,
        errors: AtomicU64::new(0),
        processed: AtomicU64::new(0),
        known: Default::default(),
        id: Default::default(),
        name: draft.name.into(),
    })
}

/// What is odd, but can be used.
fn warn(draft: &agent::Draft, at: &str, place: &FilterPlace<'_>, names: &mut dyn Names) {
    let (proxy, name) = (place.proxy, &draft.name);
    if draft.timeout.is_none() {
        let text = format!(
            "Proxy '{proxy}': missing 'processing' timeout for SPOE agent '{name}' declare at {at}.\n   | While not properly invalid, you will certainly encounter various problems\n   | with such a configuration. To fix this, please ensure it is set to a non-zero value."
        );
        names.aside(false, text);
    }
    if draft.messages.is_empty() && draft.groups.is_empty() {
        let text = format!("Proxy '{proxy}': No message/group used by SPOE agent '{name}' declared at {at}.");
        names.aside(false, text);
    }
}

/// An engine has its name alone in its proxy.
fn unique(engine: &str, place: &FilterPlace<'_>, names: &mut dyn Names) {
    let twice = names.shelf().is_some_and(|shelf| {
        let mut agents = shelf.iter().filter_map(|any| any.downcast_ref::<Agent>());
        agents.any(|other| *other.engine == *engine)
    });
    if twice {
        let text = format!("Proxy {} : duplicated name for SPOE engine '{engine}'.", place.proxy);
        names.miss(Missing::Refusal(text));
    }
}

type Three = (Option<VarRef>, Option<VarRef>, Option<VarRef>);

/// Gives slots to the variables that the section names.
fn variables(draft: &agent::Draft, prefix: &str, names: &mut dyn Names) -> Result<Three, String> {
    for name in &draft.registered {
        for scope in ["proc", "sess", "txn", "req", "res"] {
            names.variable(&format!("{scope}.{prefix}.{name}")).map_err(|fault| {
                let agent = &draft.name;
                format!("SPOE agent '{agent}': failed to register variable {prefix}.{name} ({})", fault.text)
            })?;
        }
    }
    let mut own = |name: &Option<String>| {
        let Some(name) = name else { return Ok(None) };
        names.variable(&format!("txn.{prefix}.{name}")).map(Some).map_err(|fault| fault.text)
    };
    Ok((own(&draft.error)?, own(&draft.process_time)?, own(&draft.total_time)?))
}

/// What is known while messages are given to groups and events.
struct Fit<'f> {
    path: &'f str,
    place: &'f FilterPlace<'f>,
    draft: &'f agent::Draft,
    /// Where the agent stands.
    at: &'f str,
    /// Messages that no event has taken yet. Those of groups stay: they may be sent on an event as well.
    messages: HashMap<String, Known>,
    /// The groups that took messages, with their lines.
    taken: HashMap<String, (String, usize)>,
}

impl Fit<'_> {
    /// Refuses the agent when everything is read.
    fn refuse(&self, what: String, behind: &str, names: &mut dyn Names) {
        let (proxy, agent, at) = (self.place.proxy, &self.draft.name, self.at);
        let text = format!("Proxy {proxy} : {what} '{agent}' declared at {at}{behind}.");
        names.miss(Missing::Refusal(text));
    }

    fn groups(&mut self, drafts: &[super::GroupDraft]) -> Result<Box<[Group]>, String> {
        let mut made = Vec::new();
        for name in &self.draft.groups {
            let Some(draft) = drafts.iter().find(|group| group.name == *name) else {
                let (agent, at) = (&self.draft.name, self.at);
                return Err(format!("SPOE agent '{agent}' try to use undefined SPOE group '{name}' at {at}"));
            };
            made.push(self.group(draft)?);
        }
        Ok(made.into())
    }

    fn group(&mut self, draft: &super::GroupDraft) -> Result<Group, String> {
        let (mut messages, mut sources) = (Vec::new(), Vec::new());
        for name in &draft.messages {
            if let Some((group, line)) = self.taken.get(name) {
                let path = self.path;
                return Err(format!(
                    "SPOE message '{name}' already belongs to the SPOE group '{group}' declare at {path}:{line}"
                ));
            }
            let Some(message) = self.messages.get(name) else {
                let (group, at) = (&draft.name, self.at);
                return Err(format!(
                    "SPOE group '{group}' try to use undefined SPOE message '{name}' at {at}"
                ));
            };
            self.taken.insert(name.clone(), (draft.name.clone(), draft.line));
            let place = format!("{}:{}", self.path, message.line);
            sources.extend(message.sent.args.iter().map(|(_, expr)| Source {
                message: name.as_str().into(),
                place: place.as_str().into(),
                places: expr.fetch.def.places,
            }));
            messages.push(message.sent.clone());
        }
        Ok(Group { name: draft.name.as_str().into(), messages: messages.into(), sources: sources.into() })
    }

    fn events(&mut self, names: &mut dyn Names) -> Result<[Box<[Arc<Message>]>; COUNT], String> {
        let mut events: [Vec<Arc<Message>>; COUNT] = Default::default();
        for name in &self.draft.messages {
            let Some(draft) = self.messages.remove(name) else {
                let (agent, at) = (&self.draft.name, self.at);
                return Err(format!(
                    "SPOE agent '{agent}' try to use undefined SPOE message '{name}' at {at}"
                ));
            };
            let at = format!("{}:{}", self.path, draft.line);
            let proxy = self.place.proxy;
            let Some(event) = draft.event else {
                names.aside(
                    false,
                    format!("Proxy '{proxy}': Ignore SPOE message '{name}' without event at {at}."),
                );
                continue;
            };
            if event.is_front() && !self.place.front {
                names.aside(
                    false,
                    format!("Proxy '{proxy}': frontend event used on a backend proxy at {at}."),
                );
                continue;
            }
            let both = self.place.front && self.place.back;
            let event = if both { event.of_both() } else { event };
            misplaced(&draft.sent, name, event, self.place, &at)?;
            if let Some(list) = events.get_mut(event as usize) {
                list.push(draft.sent);
            }
        }
        Ok(events.map(Into::into))
    }
}

/// A message, and what is to be known of it before anybody sends it.
struct Known {
    sent: Arc<Message>,
    line: usize,
    event: Option<Event>,
}

impl From<message::Draft> for Known {
    fn from(draft: message::Draft) -> Known {
        let sent = Message {
            name: draft.name.into_bytes().into(),
            args: draft.args.into(),
            condition: draft.condition,
        };
        Known { sent: Arc::new(sent), line: draft.line, event: draft.event }
    }
}

/// Refuses a message whose arguments are not there at its event.
fn misplaced(
    message: &Message,
    name: &str,
    event: Event,
    of: &FilterPlace<'_>,
    at: &str,
) -> Result<(), String> {
    let place = event.place(of.front, of.back);
    let lost = message.args.iter().map(|(_, expr)| expr.fetch.def.places).find(|places| !places.has(place));
    match lost {
        None => Ok(()),
        Some(places) => Err(format!(
            "Ignore SPOE message '{}' at {at}: some args extract information from '{}', none of which is available here ('{}')",
            name,
            source(places),
            place.words()
        )),
    }
}
