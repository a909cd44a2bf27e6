//! From frames to the user of a stream: bodies in the form of HTTP/1, through a stream inside the worker.

use std::io::Write;
use std::task::{Context, Poll};

use base::slab::Key;
use rt::Socket;
use wire::h2::Connection;
use wire::head::Head;
use wire::http1::{Body, write_head};

/// What is to reach the user of a stream.
pub struct Delivery {
    /// How the user expects the body.
    pub body: Body,
    /// Bytes for the user, of which `sent` are sent.
    bytes: Vec<u8>,
    sent: usize,
    /// Bytes of data among them, to be released when they are sent.
    owed: usize,
    /// The user is to see the end behind them.
    ends: bool,
}

impl Delivery {
    /// Nothing so far; a body of this kind is expected.
    pub fn new(body: Body) -> Delivery {
        Delivery { body, bytes: Vec::new(), sent: 0, owed: 0, ends: false }
    }

    /// Takes a head.
    pub fn head(&mut self, head: &Head) {
        write_head(head, &mut |part| self.bytes.extend_from_slice(part));
    }

    /// Takes data.
    pub fn data(&mut self, data: &[u8], end: bool) {
        self.owed += data.len();
        match self.body {
            Body::None => {}
            Body::Length(_) => self.bytes.extend_from_slice(data),
            Body::UntilClose => {
                self.bytes.extend_from_slice(data);
                self.ends |= end;
            }
            Body::Chunked => {
                if !data.is_empty() {
                    // Writing into a Vec can't fail.
                    let _ = write!(self.bytes, "{:x}\r\n", data.len());
                    self.bytes.extend_from_slice(data);
                    self.bytes.extend_from_slice(b"\r\n");
                }
                if end {
                    self.bytes.extend_from_slice(b"0\r\n\r\n");
                }
            }
        }
    }

    /// Takes the trailers that end the body. Without chunks there is no place for them.
    pub fn trailers(&mut self, head: &Head) {
        match self.body {
            Body::Chunked => {
                self.bytes.extend_from_slice(b"0\r\n");
                for (_, name, value) in head.fields() {
                    for part in [name, b": ", value, b"\r\n"] {
                        self.bytes.extend_from_slice(part);
                    }
                }
                self.bytes.extend_from_slice(b"\r\n");
            }
            Body::UntilClose => self.ends = true,
            Body::None | Body::Length(_) => {}
        }
    }

    /// Whether everything that came has gone on.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.owed == 0 && !self.ends
    }

    /// Nobody will get what is left: its window is given back.
    pub fn abandon(&mut self, stream: Key, connection: &mut Connection, out: &mut Vec<u8>) {
        self.bytes = Vec::new();
        (self.sent, self.ends) = (0, false);
        let owed = std::mem::take(&mut self.owed);
        if owed > 0 {
            connection.release(stream, owed, out);
        }
    }

    /// Gives the user what came; whether something moved.
    pub fn push(
        &mut self,
        cx: &mut Context<'_>,
        link: &Socket,
        stream: Key,
        connection: &mut Connection,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match link.poll_send(cx, rest, false) {
                Poll::Ready(Ok(n)) => self.sent += n,
                Poll::Pending => return false,
                // The user has all it wants, or is gone: the rest is of no interest.
                Poll::Ready(Err(_)) => break,
            }
        }
        self.bytes.clear();
        self.sent = 0;
        if std::mem::take(&mut self.ends) {
            let _ = link.shutdown_write();
        }
        connection.release(stream, std::mem::take(&mut self.owed), out);
        true
    }
}
