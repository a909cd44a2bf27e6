//! The client connections of a worker: how many, which, and how to end one.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::slab::{Key, Slab};
use model::Conn;
use model::term::Cause;
use model::txn::SharedLine;
use model::world::profiling;
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
    /// The request line at hand, where it is wanted in logs (`show sess show-uri`).
    pub line: RefCell<SharedLine>,
    /// How many streams it has: a request from its head's end to its answer's, a connection of TCP as long as it is there.
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
    pub own: RefCell<Option<Box<crate::connect::Own>>>,
    /// Set to end it: why.
    pub kill: Cell<Option<Cause>>,
}

impl Session {
    /// Has an idle connection look whether it is to leave.
    fn leave(&self) {
        if let Some(task) = self.task.get().filter(|_| self.idle.get()) {
            task.wake();
        }
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

/// How finely `close-spread-time` is divided among the connections.
const SHARES: u32 = 1024;

/// Whether a soft stop has this client leave by now: at once, or at a moment of its own within `close-spread-time`.
pub fn is_sent_away(worker: &Worker, session: &Session) -> bool {
    worker.stopped.get().is_some_and(|since| rt::now() >= since + share(spread(worker), session))
}

fn spread(worker: &Worker) -> Duration {
    worker.shared.program.global.close_spread_time.unwrap_or_default()
}

/// What a connection has of the time. It is never nothing, so that of an infinite time none is ever over.
fn share(spread: Duration, session: &Session) -> Duration {
    spread / SHARES * (base::hash::avalanche(session.conn.serial as u32) % SHARES + 1)
}

/// Wakes the idle connections that a soft stop has leave, each when its moment has come.
pub async fn send_away(worker: Rc<Worker>) {
    let (begun, spread) = (rt::now(), spread(&worker));
    // Those who are no more by then don't count on.
    let weak = |session: &Rc<Session>| (share(spread, session), Rc::downgrade(session));
    let mut leaving: Vec<_> = worker.sessions.all().iter().map(weak).collect();
    leaving.sort_unstable_by_key(|(share, _)| *share);
    for (share, session) in leaving {
        rt::sleep_until(begun + share).await;
        if let Some(session) = session.upgrade() {
            session.leave();
        }
    }
    // Who came while the sockets were being closed.
    rt::sleep_until(begun + spread).await;
    worker.sessions.all().iter().for_each(|session| session.leave());
}

/// What the calls of streams took while they were measured (`show profiling`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    /// Calls.
    pub calls: u64,
    /// Time that they took, ns.
    pub cpu_ns: u64,
    /// Time that they waited to be run, ns.
    pub lat_ns: u64,
    /// When measuring began; `None`: never.
    pub since: Option<rt::Mono>,
    /// When it ended; `None`: it goes on.
    pub until: Option<rt::Mono>,
}

impl Profile {
    /// One that begins now, if anything is measured.
    pub fn begun(measured: bool) -> Profile {
        Profile { since: measured.then(rt::now), ..Profile::default() }
    }

    fn call(self, cpu: u64, wait: u64) -> Profile {
        let (cpu_ns, lat_ns) = (self.cpu_ns.saturating_add(cpu), self.lat_ns.saturating_add(wait));
        Profile { calls: self.calls + 1, cpu_ns, lat_ns, ..self }
    }

    /// Both together.
    pub fn and(self, other: Profile) -> Profile {
        Profile {
            calls: self.calls + other.calls,
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            lat_ns: self.lat_ns.saturating_add(other.lat_ns),
            since: self.since.or(other.since),
            until: self.until.or(other.until),
        }
    }
}

impl Worker {
    /// Measures calls from now on, or no more. The figures begin anew when it is switched on.
    pub fn profile(&self, on: bool) {
        rt::measure_waits(on);
        let before = self.profiled.get();
        self.profiled.set(if on {
            Profile::begun(true)
        } else {
            Profile { until: before.until.or(before.since.map(|_| rt::now())), ..before }
        });
    }
}

/// Runs the future that serves one stream. Its calls are counted, and measured if that is asked for. The future stays where
/// it was made: it is several kilobytes.
pub async fn serve<R>(worker: &Worker, session: &Session, mut work: Pin<&mut impl Future<Output = R>>) -> R {
    let conn = &session.conn;
    conn.calls.set(0);
    conn.cpu_ns.set(0);
    conn.lat_ns.set(0);
    if worker.shared.program.world.process.profiling.load(Relaxed) != profiling::ON {
        return poll_fn(|cx| {
            conn.calls.set(conn.calls.get().saturating_add(1));
            work.as_mut().poll(cx)
        })
        .await;
    }
    poll_fn(|cx| {
        conn.calls.set(conn.calls.get().saturating_add(1));
        let waited = nanos(rt::take_wait());
        conn.lat_ns.set(conn.lat_ns.get().saturating_add(waited));
        let start = Instant::now();
        worker.call_began.set(Some(start));
        let result = work.as_mut().poll(cx);
        worker.call_began.set(None);
        let took = nanos(start.elapsed());
        conn.cpu_ns.set(conn.cpu_ns.get().saturating_add(took));
        worker.profiled.set(worker.profiled.get().call(took, waited));
        result
    })
    .await
}

/// Nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
