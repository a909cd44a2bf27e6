//! The trailers of a body whose length its head declares.
//!
//! HTTP/1, in whose form bodies go through the code that serves requests, has no place for them. So they go
//! beside it: who takes the body from frames settles what follows it, and who puts it into frames again ends
//! the stream only when that is known.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use link::pump::Behind;
use wire::head::Head;

use crate::carrier::Carrier;

/// What follows a body.
#[derive(Debug, Default)]
pub struct Trailers {
    state: RefCell<State>,
    waiting: RefCell<Option<Waker>>,
}

#[derive(Debug, Default)]
enum State {
    /// The end of the stream has yet to come.
    #[default]
    Awaited,
    Nothing,
    Fields(Box<Head>),
}

impl Trailers {
    /// The body is over, with these fields behind it or without any. What was said first holds.
    pub fn settle(&self, fields: Option<&Head>) {
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Awaited) {
            *state = fields.map_or(State::Nothing, |head| State::Fields(Box::new(head.clone())));
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Whether it is known that nothing follows.
    pub fn are_none(&self) -> bool {
        matches!(*self.state.borrow(), State::Nothing)
    }

    /// Ready when it is known what follows.
    pub fn poll_settled(&self, cx: &Context<'_>) -> Poll<()> {
        if matches!(*self.state.borrow(), State::Awaited) {
            *self.waiting.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Ends a stream with what follows its body; `false` while that is not known.
    pub fn send(&self, carrier: &mut impl Carrier, out: &mut Vec<u8>) -> bool {
        match &*self.state.borrow() {
            State::Awaited => return false,
            State::Nothing => drop(carrier.send(&[], true, out)),
            State::Fields(head) => carrier.trailers(head, out),
        }
        true
    }
}

impl Behind for Trailers {
    fn poll_lines(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        self.poll_settled(cx).map(|()| match &*self.state.borrow() {
            State::Fields(head) => head.trailer_lines(),
            _ => Vec::new(),
        })
    }
}
