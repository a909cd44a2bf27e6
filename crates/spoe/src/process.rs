//! An event or a group on its way: from the messages to what the answer did.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lang::action::{Exec, Extension, Flow, Fulfilled, Need};
use lang::variables::write;
use model::vars::{Owned, VarRef};
use rt::Mono;

use crate::agent::{Agent, Message};
use crate::ask::{self, Outcome};
use crate::told::Subject;
use crate::{ack, encode, reason, spare, told};

/// The least bytes of a NOTIFY frame that are none of its messages.
const HEAD: usize = 7;

/// What an agent has to do with one stream, shared by its filter and the rules that send its groups.
pub struct State {
    agent: Arc<Agent>,
    /// Something failed: the agent is asked no more.
    disabled: Cell<bool>,
    /// What all took so far.
    total: Cell<Duration>,
    /// When what is being processed began.
    begun: Cell<Option<Mono>>,
}

impl State {
    /// That of a stream which begins.
    pub fn new(agent: Arc<Agent>) -> Rc<State> {
        let (disabled, total, begun) = (Cell::new(false), Cell::default(), Cell::new(None));
        Rc::new(State { agent, disabled, total, begun })
    }

    /// The one that a stream keeps for an agent.
    pub fn find(exec: &Exec<'_>, agent: &Arc<Agent>) -> Option<Rc<State>> {
        let shared = exec.txn.shared.borrow();
        let own = |any: &Rc<dyn Any>| any.clone().downcast::<State>().ok();
        shared.iter().filter_map(own).find(|state| Arc::ptr_eq(&state.agent, agent))
    }

    /// The agent.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Sends messages; `None`: there are none to be sent, or what had to be said of them is said.
    pub fn begin(
        &self,
        subject: Subject<'_>,
        messages: &[Arc<Message>],
        exec: &mut Exec<'_>,
    ) -> Option<Flow> {
        if self.disabled.get() || messages.is_empty() {
            return None;
        }
        let mut payload = spare::take();
        encode::messages(messages, exec, &mut payload);
        if payload.is_empty() {
            spare::give(payload);
            return None;
        }
        self.begun.set(Some(rt::now()));
        if payload.len() + HEAD > self.agent.most {
            self.end(subject, Err(reason::TOO_BIG), exec);
            return None;
        }
        let agent = self.agent.clone();
        Some(Flow::Yield(Need::Extension(Extension::new(move |worker| ask::begin(worker, agent, payload)))))
    }

    /// What came of it.
    pub fn finish(&self, subject: Subject<'_>, fulfilled: Option<Fulfilled>, exec: &mut Exec<'_>) {
        let outcome = match fulfilled {
            Some(Fulfilled::Brought(brought)) => {
                brought.downcast::<Outcome>().map_or(Err(reason::UNKNOWN), |outcome| *outcome)
            }
            _ => Err(reason::INTERRUPTED),
        };
        self.end(subject, outcome, exec);
    }

    fn end(&self, subject: Subject<'_>, outcome: Outcome, exec: &mut Exec<'_>) {
        let agent = &*self.agent;
        let spent = self.begun.take().map_or(Duration::ZERO, |begun| rt::now().since(begun));
        self.total.set(self.total.get() + spent);
        let status = match &outcome {
            Ok(payload) => {
                ack::apply(agent, payload, exec);
                0
            }
            Err(status) => *status,
        };
        let set = |var: Option<VarRef>, n: u64| {
            if let Some(var) = var {
                write(&exec.env(), var, Some(Owned::Int(i64::try_from(n).unwrap_or(i64::MAX))));
            }
        };
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        set(agent.process_time, millis(spent));
        set(agent.total_time, millis(self.total.get()));
        if status != 0 {
            set(agent.error, u64::from(status));
            self.disabled.set(!agent.continues);
        }
        told::processed(agent, subject, status, millis(spent), exec);
        if let Ok(payload) = outcome {
            spare::give(payload);
        }
    }
}
