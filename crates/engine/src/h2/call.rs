//! A stream of a connection to a server, as its user sees it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};

use model::txn::{ServerConn, StreamOf};
use rt::{Socket, TaskId};
use wire::head::Head;

use super::mux::{Mux, Order};
use super::trailers::Trailers;

/// What became of a stream.
#[derive(Default)]
pub struct Fate {
    /// Its number.
    pub id: Cell<Option<u32>>,
    /// The code with which the server reset it.
    pub reset: Cell<Option<u32>>,
    /// The server says that it did not look at the request, or never saw it.
    pub refused: Cell<bool>,
    /// What the server sent is no head, or are no trailers.
    pub malformed: Cell<bool>,
    /// What follows the body of the response, where its length is declared.
    pub trailers: RefCell<Option<Rc<Trailers>>>,
    /// The response ended with its head.
    pub bare: Cell<bool>,
    /// Who waits for the stream to be opened, or for the news that it will not be.
    waiting: Cell<Option<TaskId>>,
    /// Bytes that count for the body though its user gets none for them: a body where there can be none, and one for an end that
    /// comes behind all else.
    pub extra: Cell<u64>,
    /// Bytes of the fields that were added to the head of the final response to frame it as HTTP/1.
    pub added: Cell<i64>,
}

impl Fate {
    /// The stream is open, with this number.
    pub fn opened(&self, id: Option<u32>) {
        self.id.set(id);
        self.settled();
    }

    /// The request came to nothing: no stream was opened for it, or the server passed it over.
    pub fn refuse(&self) {
        self.refused.set(true);
        self.settled();
    }

    fn settled(&self) {
        if let Some(task) = self.waiting.take() {
            task.wake();
        }
    }
}

/// A stream that is reserved, and used once [`Call::submit`] was called. Dropping it gives it back.
pub struct Call {
    mux: Rc<Mux>,
    /// The end for the connection's task, until there is a request.
    far: Cell<Option<Socket>>,
    fate: Rc<Fate>,
}

impl Call {
    /// A stream of a connection, whose reservation it takes over, and the socket to use it by. Nothing when memory is out.
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

    /// Sends a request, whose head goes along as it is; where there is none it is read from the socket. `trailers` may follow a body
    /// whose length the head declares.
    pub fn submit(&self, head: Option<Head>, scheme: &'static [u8], trailers: Option<Rc<Trailers>>) {
        let Some(link) = self.far.take() else { return };
        self.mux.order(Order { link, head, scheme, fate: self.fate.clone(), read: None, trailers });
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

    /// Ready when the stream is open, or never will be. Until then a body has nowhere to go: what is handed over before might be
    /// more than can be sent once more on another connection.
    pub fn poll_opened(&self, cx: &Context<'_>) -> Poll<()> {
        if self.fate.id.get().is_some() || self.fate.refused.get() {
            return Poll::Ready(());
        }
        self.fate.waiting.set(TaskId::of(cx.waker()));
        Poll::Pending
    }

    /// Bytes by which the head of the final response grew when it was framed as HTTP/1, as statistics count them.
    pub fn added(&self) -> i64 {
        self.fate.added.get()
    }

    /// Whether the connection has served others before.
    pub fn mux(&self) -> &Rc<Mux> {
        &self.mux
    }

    /// Notes what is known of the connection and the stream.
    pub fn note(&self, facts: &mut ServerConn) {
        facts.glitches = self.mux.glitches.get();
        facts.multiplex = self.mux.multiplex.get();
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

/// A fresh key: HTTP/2 has none, HTTP/1 can't do without (RFC 8441 section 5, RFC 6455 section 4.1).
pub fn websocket_key() -> Vec<u8> {
    let mut bytes = [0; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&rt::random().to_ne_bytes());
    second.copy_from_slice(&rt::random().to_ne_bytes());
    base::base64::encode(&bytes).into_bytes()
}

/// What a server of HTTP/1 would answer to a key (RFC 6455 section 4.2.2).
pub fn websocket_accept(key: &[u8]) -> Vec<u8> {
    use sha1::Digest;
    let mut digest = sha1::Sha1::new();
    digest.update(key);
    digest.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base::base64::encode(&digest.finalize()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_the_rfc_shows() {
        // RFC 6455 section 1.3.
        assert_eq!(websocket_accept(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
