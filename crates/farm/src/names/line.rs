//! Name servers over TCP (RFC 7766): a few connections to each, on each a few questions at a time. A
//! connection that nobody needs is closed after some seconds.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use link::transport::Transport;
use model::names::Event;
use program::names::{NameServer, Way};
use rt::{Addr, Mono, Notify, Receiver, Sender, Timer};
use wire::dns::{self, Answer, Fault, Question};

use super::ask::event;
use crate::{dial, with_worker};

/// Questions on a connection at a time.
const AT_ONCE: usize = 4;

/// Connections to one server where `maxconn` says nothing.
const CONNECTIONS: usize = 32;

/// Questions that wait for a connection.
const WAITING: usize = 1024;

/// How long a connection stays that nobody needs.
const IDLE: Duration = Duration::from_secs(5);

/// A question to be asked over a connection.
pub(super) struct Pending {
    pub message: Vec<u8>,
    pub question: Question,
    pub until: Mono,
}

type Waiting = (Pending, Sender<Result<Answer, Fault>>);

/// The connections to one name server.
#[derive(Default)]
pub(super) struct Lines {
    waiting: RefCell<VecDeque<Waiting>>,
    all: RefCell<Vec<Rc<Line>>>,
}

/// One connection, as those see it who have questions.
#[derive(Default)]
struct Line {
    /// Questions that are not answered.
    busy: Cell<usize>,
    wanted: Notify,
}

impl Lines {
    /// Asks; `None`: too many wait.
    pub fn ask(
        self: &Rc<Lines>,
        server: &NameServer,
        payload: u16,
        pending: Pending,
    ) -> Option<Receiver<Result<Answer, Fault>>> {
        if self.waiting.borrow().len() >= WAITING {
            // Nobody waits any more for most of them, if no connection was to be had.
            let now = rt::now();
            self.waiting.borrow_mut().retain(|(pending, _)| pending.until > now);
            if self.waiting.borrow().len() >= WAITING {
                return None;
            }
        }
        let (sender, receiver) = rt::oneshot();
        self.waiting.borrow_mut().push_back((pending, sender));
        let free = self.all.borrow().iter().find(|line| line.busy.get() < AT_ONCE).cloned();
        let most = if server.maxconn == 0 { CONNECTIONS } else { server.maxconn as usize };
        match free {
            Some(line) => line.wanted.notify(),
            None if self.all.borrow().len() < most => {
                let line = Rc::<Line>::default();
                self.all.borrow_mut().push(line.clone());
                let talk = Talk::new(self.clone(), line, server, payload);
                rt::spawn(talk.run());
            }
            None => {}
        }
        Some(receiver)
    }
}

/// Connects to a name server as its line says; `None`: it can't be had now.
async fn open(addr: &Addr, way: &Way, timer: &mut Timer) -> Option<Transport> {
    let sni = way.tls.as_ref().and_then(|tls| tls.sni.as_ref());
    let name = sni.and_then(|sni| with_worker(|w| w.above.constant(sni)).flatten());
    let program = with_worker(|w| w.farm.program.clone())?;
    let line = dial::Line {
        tls: way.tls.as_ref().map(|tls| (tls, name.as_deref())),
        plain: &way.plain,
        source: way.source.as_ref(),
    };
    dial::connect(addr, line, &program.global.tune, timer).await
}

/// A connection is of no use any more.
struct Broken;

/// A question, when it was asked, and where its answer goes.
type Asked = (Question, Mono, Sender<Result<Answer, Fault>>);

/// A connection and what is under way on it.
struct Talk {
    lines: Rc<Lines>,
    line: Rc<Line>,
    addr: Addr,
    way: Arc<Way>,
    state: Arc<model::names::NameServer>,
    payload: usize,
    asked: Vec<Asked>,
    out: Vec<u8>,
    input: Vec<u8>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.lines.all.borrow_mut().retain(|line| !Rc::ptr_eq(line, &self.line));
    }
}

impl Talk {
    fn new(lines: Rc<Lines>, line: Rc<Line>, server: &NameServer, payload: u16) -> Talk {
        Talk {
            lines,
            line,
            addr: Addr::Inet(server.addr),
            way: server.way.clone(),
            state: server.state.clone(),
            payload: payload.into(),
            asked: Vec::new(),
            out: Vec::new(),
            input: Vec::new(),
        }
    }

    /// Serves the connection until it breaks or nobody needs it. Who waits then is told by the end of its
    /// sender.
    async fn run(mut self) {
        self.take();
        let mut timer = Timer::at(self.deadline());
        let Some(socket) = open(&self.addr, &self.way, &mut timer).await else { return };
        loop {
            timer.set(Some(self.deadline()));
            if poll_fn(|cx| self.poll(cx, &socket, &mut timer)).await.is_err() {
                return;
            }
            // What floods us gives way to others.
            rt::yield_now().await;
        }
    }

    /// Until when something has to happen.
    fn deadline(&self) -> Mono {
        self.asked.iter().map(|(_, until, _)| *until).max().unwrap_or_else(|| rt::now() + IDLE)
    }

    /// Takes questions that wait, as many as there is room for.
    fn take(&mut self) {
        let mut waiting = self.lines.waiting.borrow_mut();
        let now = rt::now();
        while self.asked.len() < AT_ONCE {
            let Some((pending, sender)) = waiting.pop_front() else { break };
            if pending.until <= now {
                continue;
            }
            let Ok(length) = u16::try_from(pending.message.len()) else { continue };
            self.out.extend(length.to_be_bytes());
            self.out.extend(&pending.message);
            self.asked.push((pending.question, pending.until, sender));
        }
        self.line.busy.set(self.asked.len());
    }

    /// One step: `Ok` when a deadline may have changed, an error when the connection is of no use any more.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Transport,
        timer: &mut Timer,
    ) -> Poll<Result<(), Broken>> {
        let mut moved = self.line.wanted.poll_notified(cx).is_ready();
        self.take();
        while !self.out.is_empty() {
            match socket.poll_send(cx, &self.out, false) {
                Poll::Ready(Ok(n)) => drop(self.out.drain(..n.min(self.out.len()))),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Broken)),
                Poll::Pending => break,
            }
        }
        let mut buf = [0; 2048];
        for _ in 0..32 {
            match socket.poll_recv(cx, &mut buf) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Broken)),
                Poll::Ready(Ok(n)) => {
                    self.input.extend(buf.get(..n).unwrap_or_default());
                    self.messages()?;
                    moved = true;
                }
                Poll::Pending => break,
            }
        }
        if moved {
            return Poll::Ready(Ok(()));
        }
        if timer.poll_expired(cx).is_ready() {
            // Either nobody needs it, or the server is silent.
            return Poll::Ready(Err(Broken));
        }
        Poll::Pending
    }

    /// Reads the messages that are whole.
    fn messages(&mut self) -> Result<(), Broken> {
        while let Some((length, rest)) = self.input.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if length > self.payload {
                self.state.count(Event::TooBig);
                return Err(Broken);
            }
            let Some(message) = rest.get(..length) else { return Ok(()) };
            let number = dns::number(message);
            match self.asked.iter().position(|(q, ..)| Some(q.id) == number) {
                Some(at) => {
                    let (question, _, sender) = self.asked.swap_remove(at);
                    let heard = dns::answer(message, &question);
                    if let Err(fault) = &heard {
                        self.state.count(event(*fault));
                    }
                    let _ = sender.send(heard);
                }
                None => self.state.count(Event::Outdated),
            }
            self.input.drain(..2 + length);
        }
        let now = rt::now();
        self.asked.retain(|(_, until, _)| *until > now);
        self.line.busy.set(self.asked.len());
        Ok(())
    }
}
