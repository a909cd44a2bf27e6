//! A connection to an agent, which carries the questions of many streams.
//!
//! It is a task of its own (`serve`): it connects, greets, sends what streams left in its buffer (frames of
//! all streams that asked in one turn go in one write), and hands answers to those that wait. It is in the
//! pool of its worker as long as it may take questions. It says good-bye when nobody has used it for
//! `pool-purge-delay` and another connection stands in for it, or its configuration does not run any more.

mod connect;
pub mod pool;
mod serve;
mod traced;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use engine::Worker;
use model::server::Target;
use model::trace::spop;
use rt::{Mono, Notify, TaskId};
use wire::spop::write::notify;
use wire::spop::{AgentHello, Status, kind};

use self::pool::Key;
use crate::agent::Agent;
use crate::spare;

/// Why a server was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It refused, or broke off.
    Refused,
    /// It was clear at once that it cannot be reached.
    Unreachable,
    /// `timeout connect`
    TimedOut,
    /// Out of descriptors, ports or memory.
    Resource,
}

/// How a question ended.
pub enum Ended {
    /// With an answer: the payload of an ACK frame.
    Answer(Vec<u8>),
    /// With the connection, or with a frame that is none; the status code.
    Failed(u32),
    /// It is longer than the agent takes.
    TooBig,
    /// It was not asked here: the agent takes one question at a time.
    Elsewhere(Vec<u8>),
    /// It was not asked at all.
    Unreached(Fault, Vec<u8>),
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It connects and greets.
    Opening,
    /// It takes questions.
    Open,
    /// It takes no more.
    Closing,
}

/// A question and what becomes of it.
#[derive(Default)]
struct Asked {
    /// Its messages, until they are sent.
    payload: RefCell<Vec<u8>>,
    ended: RefCell<Option<Ended>>,
    notify: Notify,
    /// Its number on the connection, 0 as long as it has none.
    stream: Cell<u64>,
    /// When it was put to what is sent: the connection was there then.
    sent: Cell<Option<Mono>>,
}

impl Asked {
    fn end(&self, ended: Ended) {
        self.ended.borrow_mut().get_or_insert(ended);
        self.notify.notify();
    }
}

/// A question that is being asked; dropped, it is taken back.
pub struct Asking {
    asked: Rc<Asked>,
    line: Rc<Line>,
}

impl Asking {
    /// When it was put to what is sent, if the connection came about.
    pub fn sent(&self) -> Option<Mono> {
        self.asked.sent.get()
    }

    /// Ready when it has ended.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Ended> {
        loop {
            if let Some(ended) = self.asked.ended.borrow_mut().take() {
                return Poll::Ready(ended);
            }
            if self.asked.notify.poll_notified(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.line.take_back(&self.asked);
    }
}

/// Questions are numbered by us, one after the other: a multiplication spreads the numbers well enough.
type ByNumber = BuildHasherDefault<Spread>;

/// See [`ByNumber`].
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A connection.
pub struct Line {
    agent: Arc<Agent>,
    key: Key,
    server: Arc<model::Server>,
    /// Its index in the agent's backend.
    index: u32,
    /// How often its server had been moved before.
    moves: u64,
    task: Cell<Option<TaskId>>,
    phase: Cell<Phase>,
    /// Frames to be sent.
    out: RefCell<Vec<u8>>,
    /// Questions that wait for the greeting.
    early: RefCell<Vec<Rc<Asked>>>,
    /// Questions that wait for their answers, by number.
    waiting: RefCell<HashMap<u64, Rc<Asked>, ByNumber>>,
    /// The number of the next question: odd ones, as HAProxy counts.
    next: Cell<u64>,
    /// The longest frame, in bytes without the prefix.
    most: Cell<usize>,
    /// Questions that may wait at once.
    room: Cell<usize>,
    /// Questions that it may still take in all (`max-reuse`).
    left: Cell<u64>,
    /// A question waits for an answer, as the server's statistics have it.
    used: Cell<bool>,
}

impl Line {
    /// Begins to open a connection.
    pub fn open(worker: &Rc<Worker>, agent: &Arc<Agent>, server: u32, key: Key) -> Rc<Line> {
        let proxy = worker.shared.program.proxy(agent.backend);
        let config = proxy.server(server);
        let serial = !agent.pipelining || pool::is_serial(key);
        let line = Rc::new(Line {
            agent: agent.clone(),
            key,
            server: config.state.clone(),
            index: server,
            moves: config.state.moves(),
            task: Cell::new(None),
            phase: Cell::new(Phase::Opening),
            out: RefCell::default(),
            early: RefCell::default(),
            waiting: RefCell::default(),
            next: Cell::new(1),
            most: Cell::new(agent.most),
            room: Cell::new(if serial { 1 } else { usize::MAX }),
            left: Cell::new(u64::try_from(config.max_reuse).map_or(u64::MAX, |reuse| reuse + 1)),
            used: Cell::new(false),
        });
        line.mark_used(true);
        line.task.set(Some(rt::spawn(serve::run(line.clone(), worker.clone(), server))));
        line
    }

    /// How often its server had been moved before.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether its server is known to be there, or at least not to be refused by the system at once.
    pub fn is_under_way(&self) -> bool {
        self.phase.get() != Phase::Opening || matches!(&**self.server.target.load(), Target::Inet(_))
    }

    /// Whether it takes one more question.
    pub fn has_room(&self) -> bool {
        self.phase.get() != Phase::Closing
            && self.left.get() > 0
            && self.early.borrow().len() + self.waiting.borrow().len() < self.room.get()
    }

    /// Asks.
    pub fn ask(self: &Rc<Line>, payload: Vec<u8>) -> Asking {
        let asked = Rc::new(Asked { payload: RefCell::new(payload), ..Asked::default() });
        self.left.set(self.left.get().saturating_sub(1));
        match self.phase.get() {
            Phase::Opening => {
                self.early.borrow_mut().push(asked.clone());
                self.mark_used(true);
            }
            Phase::Open => {
                self.submit(&asked);
                self.wake();
            }
            Phase::Closing => asked.end(Ended::Elsewhere(asked.payload.take())),
        }
        Asking { asked, line: self.clone() }
    }

    /// Puts a question to what is to be sent.
    fn submit(&self, asked: &Rc<Asked>) {
        let stream = self.next.get();
        let payload = asked.payload.take();
        let written = notify(&mut self.out.borrow_mut(), stream, &payload, self.most.get());
        let length = payload.len();
        spare::give(payload);
        if written.is_err() {
            return asked.end(Ended::TooBig);
        }
        traced::question(self, stream, spop::STREAM_NEW, "new question");
        traced::sends(self, kind::NOTIFY, stream, length);
        self.next.set(stream + 2);
        asked.stream.set(stream);
        asked.sent.set(Some(rt::now()));
        self.waiting.borrow_mut().insert(stream, asked.clone());
        self.mark_used(true);
    }

    /// Nobody waits for this question any more. If it was sent its answer is passed over.
    fn take_back(&self, asked: &Rc<Asked>) {
        match asked.stream.get() {
            0 => self.early.borrow_mut().retain(|other| !Rc::ptr_eq(other, asked)),
            stream => {
                traced::question(self, stream, spop::STREAM_END, "question taken back");
                self.waiting.borrow_mut().remove(&stream);
            }
        }
        match self.phase.get() {
            Phase::Open if self.is_idle() => self.rest(),
            // It goes on to open, for whoever comes next.
            Phase::Opening if self.is_idle() => self.mark_used(false),
            _ => {}
        }
    }

    /// The greeting is over: those who waited for it may ask.
    fn opened(&self, hello: AgentHello) {
        self.most.set(hello.most.min(self.agent.most));
        let pipelines = hello.pipelining && self.agent.pipelining;
        pool::note_serial(self.key, !pipelines);
        self.room.set(if pipelines { usize::MAX } else { 1 });
        self.phase.set(Phase::Open);
        for asked in self.early.take() {
            if self.waiting.borrow().len() < self.room.get() {
                self.submit(&asked);
            } else {
                asked.end(Ended::Elsewhere(asked.payload.take()));
            }
        }
        if self.waiting.borrow().is_empty() {
            self.mark_used(false);
            self.server.conns.rest(true);
        }
    }

    /// An answer has come. One to a question that is no longer asked is passed over.
    ///
    /// # Errors
    /// There never was such a question.
    fn answer(&self, stream: u64, frame: u64, payload: &[u8]) -> Result<(), Status> {
        if frame != 1 || stream.is_multiple_of(2) || stream >= self.next.get() {
            return Err(Status::NotFound);
        }
        let asked = self.waiting.borrow_mut().remove(&stream);
        if let Some(asked) = asked {
            asked.stream.set(0);
            let mut bytes = spare::take();
            bytes.extend_from_slice(payload);
            asked.end(Ended::Answer(bytes));
            traced::question(self, stream, spop::STREAM_END, "question answered");
            if self.waiting.borrow().is_empty() {
                self.rest();
            }
        }
        Ok(())
    }

    /// It takes no more questions, and those that wait have failed.
    fn close(self: &Rc<Line>, early: impl Fn(Vec<u8>) -> Ended, code: u32) {
        self.phase.set(Phase::Closing);
        pool::remove(self.key, self);
        for asked in self.early.take() {
            asked.end(early(asked.payload.take()));
        }
        let waiting = self.waiting.take();
        for asked in waiting.into_values() {
            traced::question(self, asked.stream.get(), spop::STREAM_ERR, "question lost with its connection");
            asked.stream.set(0);
            asked.end(Ended::Failed(code));
        }
        self.mark_used(false);
    }

    /// No question waits: the task shall look whether it is needed.
    fn rest(&self) {
        if self.used.get() {
            self.mark_used(false);
            if self.phase.get() == Phase::Open {
                self.server.conns.rest(true);
                self.wake();
            }
        }
    }

    /// Has the statistics of the server know whether it is used; one that rests is taken out of those first.
    fn mark_used(&self, used: bool) {
        if self.used.replace(used) == used {
            return;
        }
        if used {
            if self.phase.get() == Phase::Open {
                self.server.conns.leave(true);
            }
            self.server.conns.begin();
        } else {
            self.server.conns.end();
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting.borrow().is_empty() && self.early.borrow().is_empty()
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}
