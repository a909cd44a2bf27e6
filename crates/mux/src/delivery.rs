//! From frames to the user of a stream: bodies in the form of HTTP/1, through a stream inside the worker.
//!
//! What the user has no room for yet waits in buffers of the pool, which are handed over as they are. So a
//! slow user costs what is really there, in blocks of one size that serve the next one as well: vectors that
//! grew with each frame were twice as long as what was in them, and left holes of all sizes behind.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::task::{Context, Poll};

use rt::{Buf, Socket};
use wire::head::Head;
use wire::http1::{Body, write_head};

use crate::carrier::Carrier;
use crate::trailers::Trailers;

/// What is to reach the user of a stream.
pub struct Delivery {
    /// How the user expects the body.
    pub body: Body,
    /// Bytes for the user; none of the buffers is empty.
    waiting: VecDeque<Buf>,
    /// Bytes of data among them, to be released as they are sent.
    owed: usize,
    /// The user is to see the end behind them.
    ends: bool,
    /// What follows a body whose length is declared, for whom it concerns.
    trailers: Option<Rc<Trailers>>,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.settle(None);
    }
}

impl Delivery {
    /// Nothing so far; a body of this kind is expected.
    pub fn new(body: Body) -> Delivery {
        Delivery { body, waiting: VecDeque::new(), owed: 0, ends: false, trailers: None }
    }

    /// What will follow the body.
    pub fn followed(&mut self) -> Rc<Trailers> {
        self.trailers.get_or_insert_default().clone()
    }

    fn settle(&self, fields: Option<&Head>) {
        self.trailers.iter().for_each(|trailers| trailers.settle(fields));
    }

    /// Takes a head.
    pub fn head(&mut self, head: &Head) {
        write_head(head, &mut |part| self.append(part));
    }

    /// Takes data.
    pub fn data(&mut self, data: &[u8], end: bool) {
        self.owed += data.len();
        if end {
            self.settle(None);
        }
        match self.body {
            Body::None => {}
            Body::Length(_) => self.append(data),
            Body::UntilClose => {
                self.append(data);
                self.ends |= end;
            }
            Body::Chunked => {
                if !data.is_empty() {
                    // Writing into memory can't fail.
                    let _ = write!(Tail(self), "{:X}\r\n", data.len());
                    self.append(data);
                    self.append(b"\r\n");
                }
                if end {
                    self.append(b"0\r\n\r\n");
                }
            }
        }
    }

    /// Takes the trailers that end the body. Without chunks there is no place for them in it.
    pub fn trailers(&mut self, head: &Head) {
        match self.body {
            Body::Chunked => {
                self.append(b"0\r\n");
                self.append(&head.trailer_lines());
            }
            Body::UntilClose => self.ends = true,
            Body::Length(_) => self.settle(Some(head)),
            Body::None => {}
        }
    }

    /// Nothing more will come: the user is to see so behind what came.
    pub fn end(&mut self) {
        self.settle(None);
        self.ends = true;
    }

    /// Whether everything that came has gone on.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.owed == 0 && !self.ends
    }

    /// Nobody will get what is left: its window is given back.
    pub fn abandon(&mut self, carrier: &mut impl Carrier, out: &mut Vec<u8>) {
        self.waiting = VecDeque::new();
        self.ends = false;
        self.settle(None);
        let owed = std::mem::take(&mut self.owed);
        if owed > 0 {
            carrier.release(owed, out);
        }
    }

    /// Gives the user what came; whether something moved.
    pub fn push(
        &mut self,
        cx: &mut Context<'_>,
        link: &Socket,
        carrier: &mut impl Carrier,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut moved = false;
        while let Some(first) = self.waiting.pop_front() {
            let mut first = Some(first);
            match link.poll_give(cx, &mut first) {
                Poll::Ready(Ok(n)) => {
                    moved = true;
                    // The window opens as the user takes what came.
                    let freed = n.min(self.owed);
                    self.owed -= freed;
                    carrier.release(freed, out);
                }
                Poll::Pending => {
                    first.into_iter().for_each(|first| self.waiting.push_front(first));
                    return moved;
                }
                // The user has all it wants, or is gone: the rest is of no interest.
                Poll::Ready(Err(_)) => break,
            }
        }
        self.waiting.clear();
        if std::mem::take(&mut self.ends) {
            let _ = link.shutdown_write();
        }
        carrier.release(std::mem::take(&mut self.owed), out);
        true
    }

    /// Puts bytes behind those that wait.
    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.waiting.back().is_none_or(|last| last.spare() == 0) {
                self.waiting.push_back(Buf::new());
            }
            let Some(last) = self.waiting.back_mut() else { return };
            bytes = bytes.get(last.push(bytes)..).unwrap_or_default();
        }
    }
}

/// The end of what waits, to be written to.
struct Tail<'a>(&'a mut Delivery);

impl Write for Tail<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
