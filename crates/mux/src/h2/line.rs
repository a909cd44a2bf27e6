//! One stream of a client between its frames and the task that serves it.

use std::rc::Rc;
use std::task::{Context, Poll};

use base::slab::Key;
use rt::{Buf, Socket};
use wire::h2::{Code, Connection};
use wire::head::Head;
use wire::http1::{Body, Limits, Parsed, parse_response, response_body};
use wire::method::Method;

use super::Receipt;
use super::frames::Frames;
use crate::delivery::Delivery;
use crate::outbox::Outbox;
use crate::pickup::{Pickup, Stage};

/// A stream.
pub struct Line {
    /// Its key.
    pub stream: Key,
    link: Socket,
    method: Method,
    /// 101 is told as 200 (RFC 8441).
    extended: bool,
    /// The request.
    pub up: Delivery,
    /// The response.
    down: Pickup,
    /// What the task is told.
    pub receipt: Rc<Receipt>,
    /// The socket was looked at once more before the rest of the request is refused.
    looked: bool,
    /// The client was told something ahead of the response.
    hinted: bool,
}

impl Line {
    pub fn new(
        stream: Key,
        link: Socket,
        method: Method,
        extended: bool,
        request: Body,
        receipt: Rc<Receipt>,
    ) -> Line {
        let (mut up, down) = (Delivery::new(request), Pickup::new(Stage::Head));
        if matches!(request, Body::Length(_)) {
            *receipt.request_trailers.borrow_mut() = Some(up.followed());
        }
        Line { stream, link, method, extended, up, down, receipt, looked: false, hinted: false }
    }

    /// Takes data of the request; `lone`: an end behind all else.
    pub fn data(&mut self, bytes: &[u8], end: bool, lone: bool) {
        self.receipt.extra.set(self.receipt.extra.get() + u64::from(lone));
        self.up.data(bytes, end);
    }

    /// Gives the task what came for it; whether something moved.
    pub fn upload(&mut self, cx: &mut Context<'_>, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        self.up.push(cx, &self.link, &mut Frames { stream: self.stream, connection }, out)
    }

    /// Sends what the task has for the client; whether something moved.
    pub fn download(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        head: &mut Head,
        out: &mut Outbox,
    ) -> bool {
        let mut moved = self.send(connection, out);
        if self.down.fill(cx, &self.link) {
            moved = true;
            self.heads(cx, connection, head, out);
            self.send(connection, out);
        }
        let given_up =
            !self.down.is_done() && self.link.poll_broken(cx).is_ready() && self.receipt.given_up.get();
        if given_up || self.down.is_cut() {
            // Without a word, in the midst of the response, or after waiting for a window for too long.
            self.abort(self.parting_code(), connection, out);
            self.down.discard();
            moved = true;
        }
        if moved {
            self.receipt.moved.set(Some(rt::now()));
        }
        if self.down.is_done() || matches!(self.down.stage, Stage::Trailers) {
            self.receipt.take();
        }
        moved
    }

    fn send(&mut self, connection: &mut Connection, out: &mut Outbox) -> bool {
        self.down.send(&mut Frames { stream: self.stream, connection }, out).unwrap_or_else(|_| {
            self.abort(Code::INTERNAL_ERROR, connection, out);
            true
        })
    }

    /// Reads heads of responses.
    fn heads(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        head: &mut Head,
        out: &mut Outbox,
    ) {
        while let (Stage::Head, Some(buf)) =
            (&self.down.stage, self.down.buf.as_mut().filter(|buf| !Buf::is_empty(buf)))
        {
            head.clear_as(wire::head::Kind::Response);
            match parse_response(buf.filled(), head, &Limits::NONE, true) {
                Ok(Parsed::Complete { consumed }) => buf.consume(consumed),
                Ok(Parsed::Partial) => return,
                Err(_) => return self.abort(Code::INTERNAL_ERROR, connection, out),
            }
            let status = head.status();
            if status == 101 && self.extended {
                connection.respond(self.stream, head, 200, false, &mut out.bytes);
                self.down.stage = Stage::Close;
            } else if status < 200 {
                self.hinted = true;
                connection.respond(self.stream, head, status, false, &mut out.bytes);
            } else {
                let body = match self.method {
                    _ if self.receipt.headed.get() => Body::None,
                    Method::Connect if status < 300 => Body::UntilClose,
                    method => response_body(head, method),
                };
                let bare = body == Body::Chunked && self.ends_at_once(cx);
                let body = if bare { Body::None } else { body };
                connection.respond(self.stream, head, status, body == Body::None, &mut out.bytes);
                self.down.trailers = self.receipt.response_trailers.take();
                self.down.stage = body.into();
            }
        }
    }

    /// Whether the last chunk, and nothing else, stands behind a head: the client is told that there is no
    /// body.
    fn ends_at_once(&mut self, cx: &mut Context<'_>) -> bool {
        if self.down.buf.as_ref().is_none_or(Buf::is_empty) {
            self.down.fill(cx, &self.link);
        }
        self.down.buf.as_ref().is_some_and(|buf| buf.filled() == b"0\r\n\r\n")
    }

    /// The code that a client is told whose request ends without the whole of a response.
    fn parting_code(&self) -> Code {
        match self.down.stage {
            _ if self.receipt.expelled.get() => Code::ENHANCE_YOUR_CALM,
            // Nothing was said: the client may send the request again, as it would on a connection of HTTP/1
            // that was closed.
            Stage::Head if !self.hinted => Code::REFUSED_STREAM,
            _ => Code::CANCEL,
        }
    }

    /// Whether the connection has to end with this stream.
    pub fn expels(&self) -> bool {
        self.receipt.expelled.get() && self.down.is_done()
    }

    fn abort(&mut self, code: Code, connection: &mut Connection, out: &mut Outbox) {
        connection.reset(self.stream, code, &mut out.bytes);
        self.down.stage = Stage::Done;
    }

    /// Ready when nobody serves it any longer: at most the client has yet to take what is left of the
    /// response.
    pub fn poll_left(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.link.poll_broken(cx)
    }

    /// Whether the response waits for a window: from a client that has closed its side no window comes.
    pub fn waits_for_window(&self, connection: &Connection) -> bool {
        !self.down.is_empty() && connection.id(self.stream).is_some() && connection.room(self.stream) == 0
    }

    /// Whether its task has given up waiting for the client to take the response.
    pub fn is_given_up(&self) -> bool {
        self.receipt.given_up.get()
    }

    /// Whether the client is to be heard once more before it is told that nobody wants the rest of its
    /// request: that may have come already.
    pub fn hears_again(&mut self, connection: &Connection) -> bool {
        let refuses = self.down.is_done() && self.down.ended && connection.id(self.stream).is_some();
        refuses && !std::mem::replace(&mut self.looked, true)
    }

    /// Whether the stream is done with. After the response, the task may still want the rest of the request;
    /// when it does not, the client is told so (RFC 9113 section 8.1).
    pub fn is_over(&self, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        let live = connection.id(self.stream).is_some();
        if !self.down.is_done() {
            return !live;
        }
        if live && self.down.ended {
            connection.reset(self.stream, Code::NO_ERROR, out);
            return true;
        }
        // A HEAD is answered with its head; its task may still read a body on that the client does not get.
        let answered = self.up.is_empty() && self.method != Method::Head;
        !live && (self.down.ended || answered)
    }
}
