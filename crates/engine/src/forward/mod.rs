//! `log-forward` sections at work: messages of syslog come in by datagrams or over streams, and go on to the
//! targets of their section.
//!
//! A message is one buffer at most, and nothing is kept of it: what a target does not take at once is dropped
//! and counted, as with lines of our own.

mod datagrams;
mod streams;

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::proxy::{Front, FrontState};
use program::address::Listen;
use program::forward::Forward;
use rt::{Listener, SharedDatagram};
use wire::syslog::Message;

use crate::listener::Trouble;
use crate::sinks::Relayed;
use crate::worker::Worker;
use crate::{lines, listener};

pub use datagrams::open;

/// How long a socket rests that gives an error, or for whose connections there is no room.
const REST: Duration = Duration::from_millis(100);

/// The sockets of all sections.
#[derive(Clone, Default)]
pub struct Doors {
    /// Those for streams: section, `bind` line, socket.
    pub listeners: Vec<(usize, usize, Listener)>,
    /// Those for datagrams: section, `dgram-bind` line, socket.
    pub datagrams: Vec<(usize, usize, SharedDatagram)>,
}

/// What a socket brings.
#[derive(Clone, Copy)]
enum Carrier {
    Streams,
    Datagrams,
}

/// Starts this worker's share of the sockets.
pub fn start(worker: &Rc<Worker>, doors: Doors) {
    let program = worker.shared.program.clone();
    for (section, line, listener) in doors.listeners {
        let bind = program.forwards.get(section).and_then(|f| f.binds.get(line));
        if bind.is_some_and(|bind| bind.threads.has(worker.index)) {
            rt::spawn(streams::accept(worker.clone(), section, line, listener));
        }
    }
    for (section, line, socket) in doors.datagrams {
        let dgram = program.forwards.get(section).and_then(|f| f.datagrams.get(line));
        if dgram.is_some_and(|dgram| dgram.threads.has(worker.index)) {
            rt::spawn(datagrams::receive(worker.clone(), section, line, socket));
        }
    }
}

/// This worker's share in a socket of a section: counted as long as it has its port, for whoever disables the
/// section or shuts it down.
struct Share {
    worker: Rc<Worker>,
    section: usize,
    line: usize,
    carrier: Carrier,
}

impl Share {
    /// `None`: there is no such section.
    fn begin(worker: &Rc<Worker>, section: usize, line: usize, carrier: Carrier) -> Option<Share> {
        worker.shared.program.forwards.get(section)?.state.front.holding.fetch_add(1, Relaxed);
        Some(Share { worker: worker.clone(), section, line, carrier })
    }

    /// Goes along to the configuration that runs; whether the socket is in it.
    fn follow(&mut self) -> bool {
        while self.worker.is_superseded() {
            let Some((next, section, line)) = followed(&self.worker, self.section, self.line, self.carrier)
            else {
                return false;
            };
            let Some(share) = Share::begin(&next, section, line, self.carrier) else { return false };
            *self = share;
        }
        true
    }

    /// Whether there is something else to do than to take what comes.
    fn is_called(&self) -> bool {
        self.is_over() || self.state() == FrontState::Paused || self.worker.is_superseded()
    }

    fn forward(&self) -> Option<&Forward> {
        self.worker.shared.program.forwards.get(self.section)
    }

    fn front(&self) -> Option<&Front> {
        self.forward().map(|forward| &forward.state.front)
    }

    fn state(&self) -> FrontState {
        self.front().map_or(FrontState::Stopped, Front::state)
    }

    /// Whether nothing comes in any more.
    fn is_over(&self) -> bool {
        let process = &self.worker.shared.program.world.process;
        process.stopping.load(Relaxed) || self.state() == FrontState::Stopped
    }

    /// A disabled section gives up its ports until it is enabled again.
    async fn pause(
        &self,
        address: &Listen,
        suspend: impl FnOnce() -> io::Result<()>,
        restore: impl FnOnce() -> io::Result<()>,
    ) {
        let Some(front) = self.front() else { return };
        let ports = listener::Ports {
            worker: &self.worker,
            front,
            is_over: &|| self.is_over(),
            tell: &|trouble| match trouble {
                Trouble::Kept(e) => self.tell(&format!("Cannot pause {}: {e}.", self.name())),
                Trouble::Busy(e) => self.tell(&listener::busy(address, self.name(), e)),
            },
        };
        ports.give_up(suspend, restore).await;
    }

    fn name(&self) -> &str {
        self.forward().map_or("", |forward| &forward.name)
    }

    fn tell(&self, text: &str) {
        lines::console(&self.worker, "WARNING", text);
        lines::forward_line(&self.worker, self.section, program::log::level::WARNING, text);
    }
}

/// A line of a section under the configuration that took the place of the worker's own; `None`: it is gone.
fn followed(
    worker: &Worker,
    section: usize,
    line: usize,
    carrier: Carrier,
) -> Option<(Rc<Worker>, usize, usize)> {
    let moves = worker.moves()?;
    let kept = match carrier {
        Carrier::Streams => &moves.streams,
        Carrier::Datagrams => &moves.datagrams,
    };
    let (section, line) = kept.get(&(section, line)).copied()?;
    Some((worker.next()?, section, line))
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(front) = self.front() {
            front.holding.fetch_sub(1, Relaxed);
        }
    }
}

/// A message has come.
fn arrived(worker: &Worker, forward: &Forward, bytes: &[u8], sender: Option<&str>) {
    worker.shared.program.world.process.counters.of(worker.index).received_logs.inc();
    let message = if forward.unread { Message::unread(bytes) } else { Message::parse(bytes) };
    worker.sinks.relay(forward, &Relayed { message, sender, unread: forward.unread });
}
