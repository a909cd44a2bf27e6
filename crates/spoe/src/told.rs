//! What was processed is counted, and told in the logs of its agent (SPOE.txt, section 4).

use std::sync::atomic::Ordering::Relaxed;

use engine::sinks::{Body, Event};
use engine::worker::with_worker;
use lang::action::Exec;
use model::{Origin, Txn};
use program::log::level::{NOTICE, WARNING};

use crate::agent::Agent;

/// What is processed.
#[derive(Clone, Copy)]
pub enum Subject<'s> {
    /// An event, by name.
    Event(&'s str),
    /// A group, by name.
    Group(&'s str),
}

/// An event or a group was processed, with this status and in so many milliseconds.
pub fn processed(agent: &Agent, subject: Subject<'_>, status: u32, spent: u64, exec: &Exec<'_>) {
    let processed = agent.processed.fetch_add(1, Relaxed) + 1;
    let failed = u64::from(status != 0);
    let errors = agent.errors.fetch_add(failed, Relaxed) + failed;
    let targets = agent.targets();
    if targets.is_empty() || status == 0 && agent.logs_errors_only {
        return;
    }
    let (kind, name) = match subject {
        Subject::Event(name) => ("EVENT", name),
        Subject::Group(name) => ("GROUP", name),
    };
    let stream = if exec.txn.serial == Txn::UNNUMBERED { 0 } else { exec.txn.serial };
    let text = format!(
        "SPOE: [{}] <{kind}:{name}> sid={stream} st={status} {spent} {errors}/{processed}",
        agent.name
    );
    let level = if status == 0 { NOTICE } else { WARNING };
    let event = Event { origin: Origin::Unspecified, level, profile: None };
    with_worker(|worker| worker.sinks.send_to(targets, None, event, Body::Text(text.as_bytes())));
}
