//! What an SPOE filter asks, at the backend of its agents, where that backend has rules.
//!
//! As in HAProxy a question is a stream of TCP: what it asks is what its client sent, what the agent answers
//! is what its server sent. It has no client, so addresses and variables of one have no value. How it reaches
//! its agent is not of interest here: that is the business of whoever asks.

use std::rc::{Rc, Weak};
use std::time::Duration;

use balance::queue::Priority;
use farm::pool::Fit;
use farm::queue::Place;
use link::pump::{Framing, Half};
use model::Conn;
use model::txn::Traffic;
use program::Proxy;
use rt::Socket;

use super::content;
use crate::choose;
use crate::client::{Client, Part, Seat};
use crate::sessions::Session;
use crate::stream::{Stream, Upstream};
use crate::worker::Worker;

/// What stands before the messages in what rules see: the kind of their frame.
const NOTIFY: u8 = 3;

/// Whether the backend has anything that looks at questions.
#[must_use]
pub fn is_ruled(back: &Proxy) -> bool {
    !back.rules.tcp_content.is_empty()
        || !back.rules.tcp_response.is_empty()
        || !back.use_server.is_empty()
        || !back.stick.request.is_empty()
        || !back.stick.response.is_empty()
        || back.balance.is_hash()
}

/// Who stands for the client of a question, with the other end of its socket.
#[must_use]
pub fn client(worker: &Rc<Worker>, backend: u32) -> Option<(Client, Socket)> {
    let (near, far) = Socket::local().ok()?;
    let seat = Seat { worker: worker.clone(), front: backend, listener: 0 };
    let conn = Conn::new(worker.farm.next_serial(), backend, 0, rt::now(), rt::wall());
    let session = Session::new(conn, &worker.program);
    let part = Part { head: None, refused: None, lead: Weak::new(), id: 0, receipt: Rc::default() };
    Some((Client::of_stream(seat, Rc::new(session), near.into(), part), far))
}

/// A question that rules look at.
pub struct Question<'c> {
    stream: Stream<'c>,
    /// Takes the place of the agent's connection while rules look at what it said.
    far: Option<Socket>,
}

impl<'c> Question<'c> {
    /// It comes to the backend, which counts it. These are its messages.
    #[must_use]
    pub fn begin((client, far): (&'c mut Client, Socket), backend: u32, messages: &[u8]) -> Question<'c> {
        let buf = client.buf.get_or_insert_default();
        buf.push(&[NOTIFY]);
        buf.push(messages);
        let mut stream = Stream::new(client);
        // No frontend counts it, and no log tells of it.
        (stream.txn.mirror.is_copy, stream.txn.silent) = (true, true);
        stream.upload = Half::new(Framing::Length(0));
        stream.txn.up = whole(messages.len() + 1);
        stream.set_backend(backend);
        Question { stream, far: Some(far) }
    }

    /// Runs the rules on what is asked; whether it may be.
    pub async fn may_go(&mut self) -> bool {
        let worker = self.stream.worker.clone();
        let back = &*worker.shared.program.proxy(self.stream.backend_index());
        let goes = content::of_backend(&mut self.stream, back).await && self.stream.service.is_none();
        if !goes {
            back.state.back.counters.of(worker.index).bytes.add(&self.stream.txn.up, &Traffic::default());
        }
        goes
    }

    /// The agent that it is bound to.
    pub fn server(&mut self) -> Option<u32> {
        choose::bound(&mut self.stream)
    }

    /// What a balancing algorithm looks up. What is asked is on its way by then, so that samples find nothing
    /// of it, as in HAProxy.
    pub fn key(&mut self) -> Option<u32> {
        self.stream.client.buf = None;
        let worker = &self.stream.worker;
        let back = &*worker.shared.program.proxy(self.stream.backend_index());
        if back.balance.is_hash() { choose::key(&self.stream, back) } else { None }
    }

    /// What rules said of its wait in a queue.
    #[must_use]
    pub fn patience(&self) -> (Priority, Option<Duration>) {
        let said = &self.stream.txn.decisions;
        let priority = Priority { class: said.priority_class.into(), offset: said.priority_offset };
        (priority, self.stream.txn.overrides.queue)
    }

    /// The agent at this place has answered: runs the rules on that; whether the answer may be used.
    pub async fn may_return(&mut self, server: u32, place: Place, answer: &[u8]) -> bool {
        let stream = &mut self.stream;
        let worker = stream.worker.clone();
        let back = &*worker.shared.program.proxy(stream.backend_index());
        stream.set_server(Some(server));
        stream.place = Some(place);
        // Rules that wait for nothing run before there is an answer.
        let buf = back.timeouts.inspect_response.map(|_| {
            let mut buf = rt::Buf::default();
            buf.push(answer);
            buf
        });
        stream.upstream = self.far.take().map(|far| Upstream {
            socket: far.into(),
            buf,
            reused: false,
            requests: 0,
            fit: Fit { identity: 0, shareable: false, moves: 0 },
            seat: None,
            call: None,
        });
        let goes = content::of_answer(stream, back).await;
        if goes {
            stream.txn.down = whole(answer.len().max(1));
            crate::stick::store_response(stream, back);
        }
        goes
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        crate::tracking::stream_over(self.stream.client.conn(), &self.stream.txn);
    }
}

fn whole(bytes: usize) -> Traffic {
    let bytes = bytes as u64;
    Traffic { received: bytes, sent: bytes, wire_in: bytes, wire_out: bytes }
}
