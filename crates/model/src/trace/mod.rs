//! Traces: what passes through the process, told line by line while somebody looks (management guide, 9.3,
//! `trace`).
//!
//! A point in the code asks [`Source::on`], one relaxed load, and only then looks for what it would tell.
//! Sources are of the process, as the levels of a debugger are: reached from everywhere, set from the runtime
//! API, a `traces` section or `-dt`. What is set is a plain value ([`settings::Settings`]), which all three
//! change in the same way; where lines go is found above ([`Sink`]).

pub mod command;
pub mod settings;
pub mod show;
mod table;

use std::cell::Cell;
use std::fmt::Write;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;

pub use settings::{Settings, State};
pub use table::{
    APPLET, CHECK, COUNT, FCGI, H1, H2, LEVELS, Name, PEERS, PT, SESSION, SPOP, SSL, STREAM, Table, applet,
    check, fcgi, h1, h2, peers, pt, session, sources, spop, ssl, stream,
};

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

/// Says which worker this thread is: lines begin with it.
pub fn enter(worker: usize) {
    THREAD.set(worker);
}

/// How much is told. The number is that of [`LEVELS`].
pub mod level {
    /// Errors.
    pub const ERROR: u8 = 0;
    /// What users do.
    pub const USER: u8 = 1;
    /// Elements of the protocol.
    pub const PROTO: u8 = 2;
    /// Changes of state.
    pub const STATE: u8 = 3;
    /// Transfers.
    pub const DATA: u8 = 4;
    /// Everything.
    pub const DEVELOPER: u8 = 5;
}

/// A criterion to lock on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// None.
    #[default]
    Nothing,
    /// The backend.
    Backend,
    /// The connection.
    Connection,
    /// The frontend.
    Frontend,
    /// The listener.
    Listener,
    /// The server.
    Server,
    /// The client's session.
    Session,
    /// The thread.
    Thread,
    /// What is special to the source.
    Own,
}

/// Whom an event is about, as far as it is known. Numbers are only ever compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whom {
    /// Index of the frontend.
    pub frontend: Option<u32>,
    /// Index of the listener, in the frontend.
    pub listener: Option<u32>,
    /// Index of the backend.
    pub backend: Option<u32>,
    /// Index of the server, in the backend.
    pub server: Option<u32>,
    /// Number of the client's connection.
    pub session: Option<u64>,
    /// What is special to the source.
    pub own: Option<u64>,
    /// It is the connection to the server.
    pub back: bool,
}

impl Whom {
    fn get(&self, kind: Kind, thread: usize) -> Option<u64> {
        let pair = |a: Option<u32>, b: Option<u32>| Some(u64::from(a?) << 32 | u64::from(b?));
        match kind {
            Kind::Nothing => None,
            Kind::Backend => self.backend.map(u64::from),
            Kind::Frontend => self.frontend.map(u64::from),
            Kind::Listener => pair(self.frontend, self.listener),
            Kind::Server => pair(self.backend, self.server),
            Kind::Connection => self.session.map(|s| s << 1 | u64::from(self.back)),
            Kind::Session => self.session,
            Kind::Thread => Some(thread as u64),
            Kind::Own => self.own,
        }
    }
}

/// Takes lines.
pub trait Sink: Send + Sync {
    /// Takes one, at once; it has no end of line yet.
    fn line(&self, line: &[u8]);

    /// How many it could not take.
    fn dropped(&self) -> u64;
}

/// What is set, what it is locked on, and where lines go.
struct Live {
    settings: Settings,
    locked: Option<u64>,
    sink: Option<Arc<dyn Sink>>,
}

/// Something that can be traced.
pub struct Source {
    /// What it is made of.
    pub table: Table,
    on: AtomicBool,
    live: Mutex<Live>,
}

/// What happens at a point in the code.
#[derive(Clone, Copy, Debug)]
pub struct Point<'p> {
    /// Its events.
    pub events: u32,
    /// Its level.
    pub level: u8,
    /// What is said.
    pub text: &'p str,
    /// Whom it is about.
    pub whom: Whom,
}

/// What a point may add to its line, by verbosity.
pub type Details<'d> = &'d mut dyn FnMut(u8, &mut String);

impl Source {
    const fn new(table: Table) -> Source {
        let live = Live { settings: Settings::off(), locked: None, sink: None };
        Source { table, on: AtomicBool::new(false), live: Mutex::new(live) }
    }

    /// Whether anybody looks.
    #[inline]
    pub fn on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Tells of an event, if those who look want to know. To be called only where [`Source::on`].
    #[cold]
    #[track_caller]
    pub fn tell(&self, point: Point<'_>, details: Details<'_>) {
        let place = Location::caller();
        let thread = THREAD.get();
        // One lock at a time: a source may follow another that follows it.
        let followed = self.live.lock().settings.follow;
        let follows = followed.is_some_and(|f| sources()[f].is_locked_on(&point.whom, thread));
        let mut live = self.live.lock();
        let told = live.pass(&point, thread) || follows;
        self.on.store(live.settings.is_on(), Relaxed);
        let (verbosity, sink) = (live.settings.verbosity, live.sink.clone());
        let told = told && point.level <= live.settings.level;
        drop(live);
        let Some(sink) = sink.filter(|_| told) else { return };
        let file = place.file().rsplit('/').next().unwrap_or("");
        let mut line = String::with_capacity(160);
        let name = self.table.name;
        let _ = write!(line, "[{thread:02}|{name}|{}|{file}:{}] {}", point.level, place.line(), point.text);
        if verbosity > 0 {
            let before = line.len();
            line.push_str(" :");
            let start = line.len();
            details(verbosity, &mut line);
            if line.len() == start {
                line.truncate(before);
            }
        }
        sink.line(line.as_bytes());
    }

    fn is_locked_on(&self, whom: &Whom, thread: usize) -> bool {
        let live = self.live.lock();
        live.locked.is_some() && live.locked == whom.get(live.settings.lock, thread)
    }

    /// What is set.
    pub fn settings(&self) -> Settings {
        self.live.lock().settings.clone()
    }

    /// Lines that could not be taken.
    pub fn dropped(&self) -> u64 {
        self.live.lock().sink.as_ref().map_or(0, |s| s.dropped())
    }
}

impl Live {
    /// Takes note of an event; whether it is to be reported.
    fn pass(&mut self, point: &Point<'_>, thread: usize) -> bool {
        let set = &mut self.settings;
        if set.state == State::Waiting && point.events & set.start != 0 {
            (set.state, self.locked) = (State::Running, None);
        }
        if set.state != State::Running {
            return false;
        }
        if set.lock != Kind::Nothing {
            let value = point.whom.get(set.lock, thread);
            match (self.locked, value) {
                (None, Some(value)) => self.locked = Some(value),
                (locked, value) if locked == value && locked.is_some() => {}
                _ => return false,
            }
        }
        let reported = point.events & set.report != 0;
        if point.events & set.pause != 0 {
            (set.state, self.locked) = (State::Waiting, None);
        }
        if point.events & set.stop != 0 {
            (set.state, self.locked) = (State::Stopped, None);
        }
        reported
    }
}

/// What is set for all sources, in their order.
pub fn all_settings() -> Vec<Settings> {
    sources().iter().map(|s| s.settings()).collect()
}

/// Puts settings in force. `find` knows where a sink of this name is.
pub fn apply(all: &[Settings], find: &dyn Fn(&str) -> Option<Arc<dyn Sink>>) {
    for (source, settings) in sources().iter().zip(all) {
        let mut live = source.live.lock();
        if live.settings == *settings {
            continue;
        }
        if live.settings.lock != settings.lock || live.settings.state != settings.state {
            live.locked = None;
        }
        if live.settings.sink != settings.sink {
            live.sink = settings.sink.as_deref().and_then(find);
        }
        live.settings = settings.clone();
        source.on.store(live.settings.is_on(), Relaxed);
    }
}

#[cfg(test)]
mod tests;
