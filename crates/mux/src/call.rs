//! A stream of a connection to a server, as its user sees it.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll};

use model::conn::Multiplex;
use model::txn::{StreamOf, Txn};
use rt::{Socket, TaskId};
use wire::head::Head;

use crate::fate::Fate;
use crate::server::{Mux, Order};
use crate::trailers::Trailers;

/// A stream that is reserved, and used once [`Call::submit`] was called. Dropping it gives it back.
pub struct Call {
    mux: Rc<Mux>,
    /// The end for the connection's task, until there is a request.
    far: Cell<Option<Socket>>,
    fate: Rc<Fate>,
}

impl Mux {
    /// Takes a stream for a client connection, with the socket to use it by.
    pub fn reserve(self: &Rc<Mux>, session: u64) -> Option<(Call, Socket)> {
        self.occupy(session);
        Call::new(self.clone())
    }
}

impl Call {
    /// A stream of a connection, whose reservation it takes over, and the socket to use it by. Nothing when
    /// memory is out.
    pub fn new(mux: Rc<Mux>) -> Option<(Call, Socket)> {
        let pair = Socket::local().ok();
        let (near, far) = pair.map_or((None, None), |(near, far)| (Some(near), Some(far)));
        let call = Call { mux, far: Cell::new(far), fate: Rc::default() };
        Some((call, near?))
    }

    /// A stream that is used by the other end of `far`.
    pub fn with(mux: Rc<Mux>, far: Socket) -> Call {
        Call { mux, far: Cell::new(Some(far)), fate: Rc::default() }
    }

    /// Sends a request, whose head goes along as it is; where there is none it is read from the socket.
    /// `trailers` may follow a body whose length the head declares.
    pub fn submit(&self, head: Option<Head>, scheme: &'static [u8], trailers: Option<Rc<Trailers>>) {
        let Some(link) = self.far.take() else { return };
        let fate = self.fate.clone();
        self.mux.order(Order { link, head, scheme, fate, read: None, trailers, params: None });
    }

    /// The same on a connection of FastCGI: `params` are all parameters, encoded.
    pub fn submit_with(&self, head: Head, params: Vec<u8>) {
        let Some(link) = self.far.take() else { return };
        let (fate, params) = (self.fate.clone(), Some(params));
        let head = Some(head);
        self.mux.order(Order { link, head, scheme: b"", fate, read: None, trailers: None, params });
    }

    /// What follows the body of the response, where its length is declared.
    pub fn trailers(&self) -> Option<Rc<Trailers>> {
        self.fate.trailers.borrow().clone()
    }

    /// The socket of the connection.
    pub fn raw(&self) -> &Socket {
        self.mux.socket().raw()
    }

    /// Whether the request may be sent once more because the server did not look at it.
    pub fn was_refused(&self) -> bool {
        self.fate.refused.get()
    }

    /// Whether the server has answered, with something that is no response.
    pub fn was_malformed(&self) -> bool {
        self.fate.malformed.get()
    }

    /// Bytes that count for the body and never come, since the last call.
    pub fn take_extra(&self) -> u64 {
        self.fate.extra.take()
    }

    /// Whether the response has no body, nor anything else behind its head.
    pub fn was_bare(&self) -> bool {
        self.fate.bare.get()
    }

    /// Ready when the stream is open, or never will be. Until then a body has nowhere to go: what is handed
    /// over before might be more than can be sent once more on another connection.
    pub fn poll_opened(&self, cx: &Context<'_>) -> Poll<()> {
        if self.fate.id.get().is_some() || self.fate.refused.get() {
            return Poll::Ready(());
        }
        self.fate.waiting.set(TaskId::of(cx.waker()));
        Poll::Pending
    }

    /// Bytes by which the head of the final response grew when it was framed as HTTP/1, as statistics count
    /// them.
    pub fn added(&self) -> i64 {
        self.fate.added.get()
    }

    /// Whether the length of the response's body was found out here, not said by the server.
    pub fn was_measured(&self) -> bool {
        self.fate.measured.get()
    }

    /// Whether the chunks of the response are the server's own.
    pub fn was_chunked(&self) -> bool {
        self.fate.chunked.get()
    }

    /// Whether the connection is one of FastCGI, whose heads count as the application wrote them.
    pub fn speaks_fcgi(&self) -> bool {
        self.mux.is_fcgi()
    }

    /// Whether the connection has served others before.
    pub fn mux(&self) -> &Rc<Mux> {
        &self.mux
    }

    /// As [`Call::note`], of a stream that came to no response: its user takes it back.
    pub fn note_lost(&self, txn: &mut Txn) {
        self.fate.over.set(true);
        self.note(txn);
    }

    /// Notes what is known of the connection and the stream; how many streams there are is as it was when
    /// the response came.
    pub fn note(&self, txn: &mut Txn) {
        let (facts, answered) = (&mut txn.server_conn, txn.has_res);
        facts.glitches = self.mux.glitches.get();
        if !answered {
            let Multiplex { streams, limit } = self.mux.multiplex.get();
            // This one is among them until it is closed, whenever its user has taken what came.
            let streams = streams.max(1).saturating_sub(u32::from(self.fate.over.get()));
            facts.multiplex = Multiplex { streams, limit };
        }
        if facts.error.is_none() {
            facts.error = self.mux.error.get();
        }
        facts.stream = StreamOf { id: self.fate.id.get(), reset: self.fate.reset.get() };
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.mux.give_back();
    }
}
