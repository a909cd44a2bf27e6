//! The client connections of a worker: how many, which, and how to end one.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base::slab::{Key, Slab};
use model::Conn;
use model::term::Cause;
use rt::TaskId;

use crate::worker::Worker;

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
    /// Between requests: may be closed at once on a soft stop.
    pub idle: Cell<bool>,
    /// `silent-drop`: the close must tell the peer nothing.
    pub vanished: Cell<bool>,
    /// Set to end it: why.
    pub kill: Cell<Option<Cause>>,
}

impl Session {
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

/// Runs the future that serves one stream. Its calls are counted, and measured if that is asked for.
pub async fn serve<R>(worker: &Worker, session: &Session, work: impl Future<Output = R>) -> R {
    let conn = &session.conn;
    conn.calls.set(0);
    conn.cpu_ns.set(0);
    conn.lat_ns.set(0);
    let mut work = std::pin::pin!(work);
    if !worker.shared.program.global.tune.profiling {
        return poll_fn(|cx| {
            conn.calls.set(conn.calls.get().saturating_add(1));
            work.as_mut().poll(cx)
        })
        .await;
    }
    poll_fn(|cx| {
        conn.calls.set(conn.calls.get().saturating_add(1));
        conn.lat_ns.set(conn.lat_ns.get().saturating_add(nanos(rt::take_wait())));
        let start = Instant::now();
        worker.call_began.set(Some(start));
        let result = work.as_mut().poll(cx);
        worker.call_began.set(None);
        conn.cpu_ns.set(conn.cpu_ns.get().saturating_add(nanos(start.elapsed())));
        result
    })
    .await
}

/// Nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
