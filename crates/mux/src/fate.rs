//! What a stream of a connection to a server and its user tell each other, beside the bytes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rt::TaskId;

use crate::trailers::Trailers;

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
    /// The server has been sent all of the request, and has said all of its response: the stream is closed.
    pub over: Cell<bool>,
    /// Who waits for the stream to be opened, or for the news that it will not be.
    pub waiting: Cell<Option<TaskId>>,
    /// Bytes that count for the body though its user gets none for them: a body where there can be none, and
    /// one for an end that comes behind all else.
    pub extra: Cell<u64>,
    /// Bytes of the fields that were added to the head of the final response to frame it as HTTP/1.
    pub added: Cell<i64>,
    /// The head of the final response has a `content-length` that the server did not say.
    pub measured: Cell<bool>,
    /// The server itself speaks of chunks, and makes them.
    pub chunked: Cell<bool>,
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
