//! Copies of requests for another backend (`http-request mirror`), which is ours.
//!
//! A rule leaves a copy of the head with the transaction. One without a body goes at once; else a [`Tee`]
//! stands first in the way of the body and sees what passes, and the copy goes when all of it has passed. It
//! is then a request of its own, in a task of its own ([`send`]), served by the engine as any other is from
//! the choice of the backend on, but for its answer. The original never waits: what there is no room for is
//! dropped and counted ([`model::mirror::MirrorCounters`]).

mod run;
mod send;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use lang::filter::Gate;
use model::counter::Counter;
use model::mirror::{Copied, Held, MirrorCounters, enter};
use program::Program;
use wire::head::Head;
use wire::http1::Body;

use crate::sessions::Session;
use crate::stream::Stream;
use crate::worker::Worker;

/// A copy that is to be sent, with what it holds of the room for copies.
pub(super) struct Order {
    worker: Rc<Worker>,
    session: Rc<Session>,
    /// Where the original was served: frontend and listener.
    seat: (u32, u32),
    copied: Copied,
    holds: Holds,
}

/// What a copy holds, given back when it is dropped.
struct Holds {
    program: Arc<Program>,
    backend: Arc<model::Proxy>,
    bytes: usize,
}

impl Holds {
    /// Holds so many bytes more; whether there is room for them.
    fn more(&mut self, bytes: usize) -> bool {
        let fits = self.room().take(bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }

    fn room(&self) -> &Held {
        &self.program.world.mirrored
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        self.room().give(self.bytes);
        self.backend.back.mirrored.fetch_sub(1, Relaxed);
    }
}

impl Order {
    /// Takes what a rule has left; `None`: there is no room, which is counted.
    fn take(stream: &Stream<'_>, copied: Copied) -> Option<Order> {
        let worker = stream.worker.clone();
        let program = worker.shared.program.clone();
        let backend = program.proxy(copied.backend).state.clone();
        let full = |backend: &model::Proxy| backend.back.counters.of(worker.index).mirror.full.inc();
        if !enter(&backend.back.mirrored) {
            full(&backend);
            return None;
        }
        let mut holds = Holds { program, backend, bytes: 0 };
        if !holds.more(copied.head.wire_len()) {
            full(&holds.backend);
            return None;
        }
        let seat = (stream.client.front, stream.client.listener);
        Some(Order { session: stream.client.session.clone(), seat, copied, holds, worker })
    }

    /// Counts what became of it.
    fn count(&self, of: fn(&MirrorCounters) -> &Counter) {
        of(&self.holds.backend.back.counters.of(self.worker.index).mirror).inc();
    }
}

/// Rules have run: the copies that they asked for begin, or wait for the body of the request.
#[cold]
pub(super) fn begin(stream: &mut Stream<'_>) {
    for copied in std::mem::take(&mut stream.txn.mirror.copies) {
        let body = stream.http.request_body;
        let Some(order) = Order::take(stream, copied) else { continue };
        match body {
            Body::None | Body::Length(0) => send::send(order, Vec::new(), body != Body::None),
            Body::Length(length) if length > order.copied.most => order.count(|c| &c.too_long),
            _ => stream.tees.push(Box::new(Tee { order: Some(order), body: Vec::new() })),
        }
    }
}

/// Sees the body of a request that is to be copied. It holds nothing back.
struct Tee {
    /// The copy, until it is sent or dropped.
    order: Option<Order>,
    body: Vec<u8>,
}

impl Tee {
    /// The copy is not sent.
    fn give_up(&mut self, of: fn(&MirrorCounters) -> &Counter) {
        self.body = Vec::new();
        if let Some(order) = self.order.take() {
            order.count(of);
        }
    }
}

impl Gate for Tee {
    fn passed(&mut self, _: u64, bytes: &[u8]) {
        let Some(order) = &mut self.order else { return };
        if (self.body.len() + bytes.len()) as u64 > order.copied.most {
            return self.give_up(|c| &c.too_long);
        }
        if !order.holds.more(bytes.len()) {
            return self.give_up(|c| &c.full);
        }
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, _: &Head) {}

    fn ended(&mut self) {
        if let Some(order) = self.order.take() {
            send::send(order, std::mem::take(&mut self.body), true);
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.give_up(|c| &c.incomplete);
    }
}
