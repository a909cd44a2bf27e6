//! An agent as its filter knows it: what is sent to it and when, and what its answers may do.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lang::filter::Moments;
use lang::names::Loggers;
use lang::{Condition, Expr};
use model::vars::VarRef;
use program::log::Target;

use crate::event::{COUNT, Event};

/// `spoe-message`.
pub struct Message {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its arguments with their names, which may be empty.
    pub args: Box<[(Box<[u8]>, Expr)]>,
    /// It is only sent when this holds.
    pub condition: Option<Condition>,
}

/// `spoe-group`.
pub struct Group {
    /// Its name.
    pub name: Box<str>,
    /// Its messages.
    pub messages: Box<[Arc<Message>]>,
    /// The arguments of its messages: which rules may send it follows from them.
    pub sources: Box<[Source]>,
}

/// Where an argument comes from.
pub struct Source {
    /// The name of its message.
    pub message: Box<str>,
    /// Where that stands: file and line.
    pub place: Box<str>,
    /// Where the sample is to be had.
    pub places: lang::places::Places,
}

/// `spoe-agent`.
pub struct Agent {
    /// Tells it from all others that there were in this process.
    pub number: u64,
    /// Its name.
    pub name: Box<str>,
    /// The name of the engine, by which rules know it.
    pub engine: Box<str>,
    /// Messages by event.
    pub events: [Box<[Arc<Message>]>; COUNT],
    /// The moments with events that have messages, to filters of the frontend, and to those of the backend.
    pub moments: (Moments, Moments),
    /// Its groups.
    pub groups: Box<[Group]>,
    /// What stands in front of the names of its variables, the dot included.
    pub prefix: Box<str>,
    /// `option continue-on-error`
    pub continues: bool,
    /// `option force-set-var`
    pub forces: bool,
    /// `option pipelining`
    pub pipelining: bool,
    /// `option dontlog-normal`
    pub logs_errors_only: bool,
    /// `option set-on-error`
    pub error: Option<VarRef>,
    /// `option set-process-time`
    pub process_time: Option<VarRef>,
    /// `option set-total-time`
    pub total_time: Option<VarRef>,
    /// `timeout processing`
    pub timeout: Option<Duration>,
    /// `max-frame-size`, in bytes without the prefix.
    pub most: usize,
    /// `use-backend`, by index of the program.
    pub backend: u32,
    /// `log`
    pub loggers: Option<Loggers>,
    /// Events and groups that failed.
    pub errors: AtomicU64,
    /// Events and groups that were processed.
    pub processed: AtomicU64,
    /// The variables that the configuration names behind the prefix, once somebody asked.
    pub known: OnceLock<Known>,
    /// The name by which servers know its connections, once there was one.
    pub id: OnceLock<Box<str>>,
}

/// Variables by scope and name, without the prefix.
pub type Known = [HashMap<Box<[u8]>, VarRef>; 5];

impl Agent {
    /// The messages of an event.
    pub fn messages(&self, event: Event) -> &[Arc<Message>] {
        self.events.get(event as usize).map_or(&[], |list| list)
    }

    /// Where lines about it go.
    pub fn targets(&self) -> &[Target] {
        let set = self.loggers.as_ref().and_then(|cell| cell.get());
        set.and_then(|any| any.downcast_ref::<Vec<Target>>()).map_or(&[], |list| list)
    }

    /// The name by which servers know its connections.
    pub fn id(&self) -> &str {
        self.id.get_or_init(|| {
            let (high, low) = (rt::random(), rt::random());
            // A random UUID (RFC 9562, section 5.4).
            let (high, low) = (high & !0xf000 | 0x4000, low & !(3 << 62) | 1 << 63);
            format!(
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xffff,
                low >> 48,
                low & 0xffff_ffff_ffff
            )
            .into()
        })
    }
}
