//! The client connections of a worker: how many, which, and how to end one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use base::slab::{Key, Slab};
use model::Conn;
use model::term::Cause;
use model::txn::SharedLine;
use program::Program;
use rt::TaskId;

use crate::own::Own;

/// What can be seen of a connection from outside its task, and how it is told to end.
pub struct Session {
    /// Facts of the connection.
    pub conn: Conn,
    /// Its task.
    pub task: Cell<Option<TaskId>>,
    /// Backend in use, as an index of the program.
    pub backend: Cell<Option<u32>>,
    /// Server in use, as an index of the backend.
    pub server: Cell<Option<u32>>,
    /// The request line at hand, where it is wanted in logs (`show sess show-uri`).
    pub line: RefCell<SharedLine>,
    /// How many streams it has: a request from its head's end to its answer's, a connection of TCP as long as
    /// it is there.
    pub streams: Cell<u32>,
    /// Between requests: may be closed at once on a soft stop.
    pub idle: Cell<bool>,
    /// It still has to be counted in the rates of sessions, see [`crate::admission`].
    pub pending: Cell<bool>,
    /// `silent-drop`: the close must tell the peer nothing.
    pub vanished: Cell<bool>,
    /// It is not counted any more: what is left of it only reads on, so that its client can.
    pub left: Cell<bool>,
    /// It is counted among the open connections of HTTP/1.
    pub h1: Cell<bool>,
    /// Server connections that only this client may use; the streams of one of HTTP/2 share them.
    pub own: RefCell<Option<Box<Own>>>,
    /// Set to end it: why.
    pub kill: Cell<Option<Cause>>,
    /// It can't move to the configuration that runs, and ends when it may.
    pub leaves: Cell<bool>,
    /// The program that its indices belong to.
    pub program: RefCell<Rc<Arc<Program>>>,
}

impl Session {
    /// One that nothing has happened to yet, under this program.
    pub fn new(conn: Conn, program: &Rc<Arc<Program>>) -> Session {
        Session {
            conn,
            task: Cell::new(None),
            backend: Cell::new(None),
            server: Cell::new(None),
            line: RefCell::default(),
            streams: Cell::new(0),
            idle: Cell::new(false),
            pending: Cell::new(false),
            vanished: Cell::default(),
            left: Cell::default(),
            h1: Cell::default(),
            own: RefCell::default(),
            kill: Cell::new(None),
            leaves: Cell::default(),
            program: RefCell::new(program.clone()),
        }
    }

    /// Has a connection look whether it is to leave. One of HTTP/1 with a request under way looks when that
    /// is answered; one of HTTP/2 tells its client at once, whatever streams it has.
    pub fn leave(&self) {
        let looks = self.idle.get() || self.conn.http_major.get() == 2;
        if let Some(task) = self.task.get().filter(|_| looks) {
            task.wake();
        }
    }

    /// Has the connection look whether another configuration runs.
    pub fn look(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }

    /// Whether its indices are those of this program.
    pub fn is_of(&self, program: &Arc<Program>) -> bool {
        Arc::ptr_eq(&self.program.borrow(), program)
    }

    /// The frontend as a program knows it.
    pub fn frontend_in(&self, program: &Arc<Program>) -> Option<u32> {
        let own = self.program.borrow();
        let at = self.conn.frontend.get();
        if self.is_of(program) {
            return Some(at);
        }
        let was = own.proxies.configured(at as usize)?;
        program.proxies.numbered().find(|(_, p)| Arc::ptr_eq(&p.state, &was.state)).map(|(at, _)| at)
    }

    /// The backend and the server in use as a program knows them.
    pub fn place_in(&self, program: &Arc<Program>) -> (Option<u32>, Option<u32>) {
        let (backend, server) = (self.backend.get(), self.server.get());
        if self.is_of(program) {
            return (backend, server);
        }
        let own = self.program.borrow();
        let Some(was) = backend.and_then(|at| own.proxies.get(at as usize)) else { return (None, None) };
        let found = program.proxies.numbered().find(|(_, p)| Arc::ptr_eq(&p.state, &was.state));
        let Some((at, now)) = found else { return (None, None) };
        let server = server.and_then(|server| {
            let was = was.servers.get(server as usize)?;
            now.servers.numbered().find(|(_, s)| Arc::ptr_eq(&s.state, &was.state)).map(|(at, _)| at)
        });
        (Some(at), server)
    }

    /// Asks the connection to end.
    pub fn end(&self, cause: Cause) {
        if self.kill.get().is_none() {
            self.kill.set(Some(cause));
        }
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}

/// All connections of a worker.
pub struct Sessions {
    list: RefCell<Slab<Rc<Session>>>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions { list: RefCell::new(Slab::new(usize::MAX)) }
    }
}

impl Sessions {
    /// Enters a connection; `None` when the list is full.
    pub fn enter(&self, session: Rc<Session>) -> Option<Key> {
        self.list.borrow_mut().insert(session).ok()
    }

    /// Forgets a connection.
    pub fn leave(&self, key: Key) {
        self.list.borrow_mut().remove(key);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All connections as of now.
    pub fn all(&self) -> Vec<Rc<Session>> {
        self.list.borrow().iter().map(|(_, s)| s.clone()).collect()
    }

    /// Asks the connections that `which` names to end for `cause`; returns how many.
    pub fn kill(&self, cause: Cause, which: impl Fn(&Session) -> bool) -> usize {
        let chosen: Vec<_> = self.all().into_iter().filter(|s| s.kill.get().is_none() && which(s)).collect();
        for s in &chosen {
            s.kill.set(Some(cause));
            if let Some(t) = s.task.get() {
                t.wake();
            }
        }
        chosen.len()
    }
}
