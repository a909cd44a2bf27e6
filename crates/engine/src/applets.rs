//! Connections that are served by something else than a stream: the runtime API, `log-forward` sections,
//! peers. Each is entered while it lasts, so that `show sess` and `show fd` can tell of it, and `shutdown
//! session` end it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::slab::{Key, Slab};
use model::Peer;
use rt::{Mono, TaskId, Wall};

/// What serves a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppletKind {
    /// The runtime API.
    Cli,
    /// A `log-forward` section.
    Syslog,
    /// A session with a peer.
    Peer,
}

impl AppletKind {
    /// Its name in dumps.
    pub fn word(self) -> &'static str {
        match self {
            AppletKind::Cli => "<CLI>",
            AppletKind::Syslog => "<SYSLOG>",
            AppletKind::Peer => "<PEER>",
        }
    }
}

/// Where a connection came in.
#[derive(Clone)]
pub struct AppletDoor {
    /// What is served there.
    pub kind: AppletKind,
    /// The section, `GLOBAL` for the runtime API.
    pub section: Arc<str>,
    /// Its number.
    pub id: u32,
    /// Its mode, in a word.
    pub mode: &'static str,
    /// The `bind` line; `None`: the connection was made from here.
    pub listener: Option<Arc<model::proxy::Listener>>,
    /// How it is ended from outside.
    pub end: AppletEnd,
}

/// How a connection is ended from outside.
#[derive(Clone)]
pub enum AppletEnd {
    /// Its task is dropped.
    Drop,
    /// Whoever serves it is asked.
    Ask(Rc<dyn Fn()>),
}

/// A connection.
pub struct Applet {
    /// Unique among all connections of clients.
    pub serial: u64,
    /// Where it came in.
    pub door: AppletDoor,
    /// The other end.
    pub source: Peer,
    /// This end.
    pub local: Peer,
    /// The task that serves it.
    pub task: TaskId,
    /// When it began.
    pub accepted: Mono,
    /// The same as a date.
    pub date: Wall,
}

/// Those of a worker.
pub struct Applets(RefCell<Slab<Rc<Applet>>>);

impl Default for Applets {
    fn default() -> Applets {
        Applets(RefCell::new(Slab::new(usize::MAX)))
    }
}

impl Applets {
    /// All of them as of now.
    pub fn all(&self) -> Vec<Rc<Applet>> {
        self.0.borrow().iter().map(|(_, applet)| applet.clone()).collect()
    }

    /// Enters a connection for as long as what is returned lives.
    pub fn enter(self: &Rc<Self>, applet: Applet) -> Option<Entry> {
        let key = self.0.borrow_mut().insert(Rc::new(applet)).ok()?;
        Some(Entry(self.clone(), key))
    }

    /// Has the tasks of those look around that serve connections of this kind.
    pub fn wake(&self, kind: AppletKind) {
        self.0
            .borrow()
            .iter()
            .filter(|(_, applet)| applet.door.kind == kind)
            .for_each(|(_, a)| a.task.wake());
    }

    /// Has those end that `which` names; returns how many.
    pub fn end(&self, which: impl Fn(&Applet) -> bool) -> usize {
        let chosen: Vec<_> = self.all().into_iter().filter(|a| which(a)).collect();
        for applet in &chosen {
            match &applet.door.end {
                AppletEnd::Drop => drop(rt::cancel(applet.task)),
                AppletEnd::Ask(end) => end(),
            }
        }
        chosen.len()
    }
}

/// Keeps a connection in its worker's list.
pub struct Entry(Rc<Applets>, Key);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.0.borrow_mut().remove(self.1);
    }
}
