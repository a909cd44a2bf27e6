//! `log-forward` sections at work: messages of syslog come in by datagrams or over streams, and go on to the
//! targets of their section.
//!
//! A message is one buffer at most, and nothing is kept of it: what a target does not take at once is dropped
//! and counted, as with lines of our own.

mod datagrams;
mod streams;

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use program::forward::Forward;
use rt::Listener;
use wire::syslog::Message;

use crate::sinks::Relayed;
use crate::worker::Worker;

pub use datagrams::open;

/// How long a socket rests that gives an error, or for whose connections there is no room.
const REST: Duration = Duration::from_millis(100);

/// The sockets of all sections.
#[derive(Clone, Default)]
pub struct Doors {
    /// Those for streams: section, `bind` line, socket.
    pub listeners: Vec<(usize, usize, Listener)>,
    /// Those for datagrams: section, `dgram-bind` line, socket.
    pub datagrams: Vec<(usize, usize, Arc<OwnedFd>)>,
}

/// Starts this worker's share of the sockets.
pub fn start(worker: &Rc<Worker>, doors: Doors) {
    let program = worker.shared.program.clone();
    let mine = |threads: u64| threads == 0 || threads & (1 << (worker.index % 64)) != 0;
    for (section, line, listener) in doors.listeners {
        let bind = program.forwards.get(section).and_then(|f| f.binds.get(line));
        if bind.is_some_and(|bind| mine(bind.threads)) {
            rt::spawn(streams::accept(worker.clone(), section, line, listener));
        }
    }
    for (section, line, socket) in doors.datagrams {
        let dgram = program.forwards.get(section).and_then(|f| f.datagrams.get(line));
        if dgram.is_some_and(|dgram| mine(dgram.threads))
            && let Ok(own) = socket.try_clone()
        {
            rt::spawn(datagrams::receive(worker.clone(), section, own));
        }
    }
}

/// A message has come.
fn arrived(worker: &Worker, forward: &Forward, bytes: &[u8], sender: Option<&str>) {
    worker.shared.program.world.process.counters.of(worker.index).received_logs.inc();
    let message = if forward.unread { Message::unread(bytes) } else { Message::parse(bytes) };
    worker.sinks.relay(forward, &Relayed { message, sender, unread: forward.unread });
}
