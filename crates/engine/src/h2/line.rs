//! One stream between its frames and the task that serves it, which speaks HTTP/1.

use std::io::Write;
use std::task::{Context, Poll};

use base::slab::Key;
use rt::{Buf, Socket};
use wire::h2::{Code, Connection};
use wire::head::Head;
use wire::http1::{Body, Limits, Parsed, Scanner, parse_response, response_body};
use wire::method::Method;

/// Where the response is.
enum Down {
    /// Its head is awaited.
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    /// The body comes in chunks.
    Chunked(Scanner),
    /// The body ends with the stream; so do tunnels.
    Close,
    /// All is sent.
    Done,
}

/// A stream.
pub struct Line {
    /// Its key.
    pub stream: Key,
    link: Socket,
    method: Method,
    /// 101 is told as 200 (RFC 8441).
    extended: bool,
    /// How the task expects the body of the request.
    request: Body,
    /// Bytes for the task, of which `up_sent` are sent.
    up: Vec<u8>,
    up_sent: usize,
    /// Bytes of data among them, to be released when they are sent.
    owed: usize,
    /// The task is to see the end after them: of a tunnel.
    up_ends: bool,
    down: Down,
    /// What the task sent and is not understood yet.
    buf: Option<Buf>,
    /// Data taken out of chunks and not sent.
    plain: Vec<u8>,
    plain_ends: bool,
    /// The task has said all it had to say.
    ended: bool,
}

impl Line {
    pub fn new(stream: Key, link: Socket, method: Method, extended: bool, request: Body) -> Line {
        Line {
            stream,
            link,
            method,
            extended,
            request,
            up: Vec::new(),
            up_sent: 0,
            owed: 0,
            up_ends: false,
            down: Down::Head,
            buf: None,
            plain: Vec::new(),
            plain_ends: false,
            ended: false,
        }
    }

    /// Takes data of the request.
    pub fn data(&mut self, bytes: &[u8], end: bool) {
        self.owed += bytes.len();
        match self.request {
            Body::None => {}
            Body::Length(_) => self.up.extend_from_slice(bytes),
            Body::UntilClose => {
                self.up.extend_from_slice(bytes);
                self.up_ends |= end;
            }
            Body::Chunked => {
                if !bytes.is_empty() {
                    let _ = write!(self.up, "{:x}\r\n", bytes.len());
                    self.up.extend_from_slice(bytes);
                    self.up.extend_from_slice(b"\r\n");
                }
                if end {
                    self.up.extend_from_slice(b"0\r\n\r\n");
                }
            }
        }
    }

    /// Takes the trailers of the request.
    pub fn trailers(&mut self, head: &Head) {
        match self.request {
            Body::Chunked => {
                self.up.extend_from_slice(b"0\r\n");
                for (_, name, value) in head.fields() {
                    [name, b": ", value, b"\r\n"]
                        .into_iter()
                        .for_each(|part| self.up.extend_from_slice(part));
                }
                self.up.extend_from_slice(b"\r\n");
            }
            Body::UntilClose => self.up_ends = true,
            Body::None | Body::Length(_) => {}
        }
    }

    /// Gives the task what came for it; whether something moved.
    pub fn upload(&mut self, cx: &mut Context<'_>, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        if self.up.is_empty() && self.owed == 0 && !self.up_ends {
            return false;
        }
        while self.up_sent < self.up.len() {
            match self.link.poll_send(cx, &self.up[self.up_sent..], false) {
                Poll::Ready(Ok(n)) => self.up_sent += n,
                Poll::Pending => return false,
                // The task has its answer, or is gone: the rest is of no interest.
                Poll::Ready(Err(_)) => break,
            }
        }
        self.up.clear();
        self.up_sent = 0;
        if std::mem::take(&mut self.up_ends) {
            let _ = self.link.shutdown_write();
        }
        connection.release(self.stream, std::mem::take(&mut self.owed), out);
        true
    }

    /// Sends what the task has for the client; whether something moved.
    pub fn download(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> bool {
        let moved = self.flush(connection, out);
        if self.ended {
            self.end(connection, out);
            return moved;
        }
        if !self.plain.is_empty() || self.buf.as_ref().is_some_and(Buf::is_full) {
            return moved;
        }
        if self.link.poll_readable(cx).is_pending() {
            return moved;
        }
        let buf = self.buf.get_or_insert_default();
        buf.compact();
        if buf.spare() == 0 {
            return moved;
        }
        self.ended = match self.link.poll_recv(cx, buf.spare_mut()) {
            Poll::Pending => return moved,
            Poll::Ready(Ok(0) | Err(_)) => true,
            Poll::Ready(Ok(n)) => {
                buf.advance(n);
                false
            }
        };
        self.heads(connection, head, out);
        self.flush(connection, out);
        if self.ended {
            self.end(connection, out);
        }
        if self.buf.as_ref().is_some_and(Buf::is_empty) {
            self.buf = None;
        }
        true
    }

    /// Reads heads of responses.
    fn heads(&mut self, connection: &mut Connection, head: &mut Head, out: &mut Vec<u8>) {
        while let (Down::Head, Some(buf)) = (&self.down, self.buf.as_mut().filter(|buf| !buf.is_empty())) {
            head.clear();
            let limits = Limits { head: usize::MAX, fields: usize::MAX };
            match parse_response(buf.filled(), head, &limits, true) {
                Ok(Parsed::Complete { consumed }) => buf.consume(consumed),
                Ok(Parsed::Partial) => return,
                Err(_) => return self.abort(Code::INTERNAL_ERROR, connection, out),
            }
            let status = head.status();
            if status == 101 && self.extended {
                connection.respond(self.stream, head, 200, false, out);
                self.down = Down::Close;
            } else if status < 200 {
                connection.respond(self.stream, head, status, false, out);
            } else {
                let body = match self.method {
                    Method::Connect if status < 300 => Body::UntilClose,
                    method => response_body(head, method),
                };
                connection.respond(self.stream, head, status, body == Body::None, out);
                self.down = match body {
                    Body::None => Down::Done,
                    Body::Length(length) => Down::Length(length),
                    Body::Chunked => Down::Chunked(Scanner::default()),
                    Body::UntilClose => Down::Close,
                };
            }
        }
    }

    /// Sends what is there of the body, as the windows allow; whether something went out.
    fn flush(&mut self, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        match &mut self.down {
            Down::Head | Down::Done => {}
            Down::Length(left) => {
                let Some(buf) = &mut self.buf else { return false };
                let len = buf.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let sent = connection.send(self.stream, &buf.filled()[..len], len as u64 == *left, out);
                buf.consume(sent);
                *left -= sent as u64;
                if *left == 0 {
                    self.down = Down::Done;
                }
            }
            Down::Close => {
                let Some(buf) = &mut self.buf else { return false };
                let sent = connection.send(self.stream, buf.filled(), false, out);
                buf.consume(sent);
            }
            Down::Chunked(scanner) => {
                if let Some(buf) = self.buf.as_mut().filter(|buf| !buf.is_empty() && self.plain.is_empty()) {
                    let plain = &mut self.plain;
                    let scanned = scanner.data(buf.filled(), |piece| plain.extend_from_slice(piece));
                    buf.clear();
                    match scanned {
                        Ok(end) => self.plain_ends = end,
                        Err(_) => return self.abort_with(connection, out),
                    }
                }
                let sent = connection.send(self.stream, &self.plain, self.plain_ends, out);
                if sent == self.plain.len() {
                    self.plain.clear();
                    if self.plain_ends {
                        self.down = Down::Done;
                    }
                } else {
                    self.plain.drain(..sent);
                }
            }
        }
        out.len() > before
    }

    fn abort_with(&mut self, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        self.abort(Code::INTERNAL_ERROR, connection, out);
        true
    }

    fn abort(&mut self, code: Code, connection: &mut Connection, out: &mut Vec<u8>) {
        connection.reset(self.stream, code, out);
        self.down = Down::Done;
    }

    /// The task is through: so is the stream, once everything is sent.
    fn end(&mut self, connection: &mut Connection, out: &mut Vec<u8>) {
        match self.down {
            Down::Done => {}
            Down::Close if self.buf.as_ref().is_none_or(Buf::is_empty) => {
                connection.send(self.stream, &[], true, out);
                self.down = Down::Done;
            }
            // The windows are shut: the end is seen again when they open.
            Down::Close | Down::Length(_) | Down::Chunked(_)
                if self.buf.as_ref().is_some_and(|buf| !buf.is_empty()) || !self.plain.is_empty() => {}
            Down::Head => self.abort(Code::CANCEL, connection, out),
            _ => self.abort(Code::INTERNAL_ERROR, connection, out),
        }
    }

    /// Whether the stream is done with. After the response, the task may still want the rest of the request; when it does
    /// not, the client is told so (RFC 9113 section 8.1).
    pub fn is_over(&self, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        let live = connection.id(self.stream).is_some();
        match self.down {
            Down::Done if live && self.ended => {
                connection.reset(self.stream, Code::NO_ERROR, out);
                true
            }
            Down::Done => !live && (self.ended || self.up.is_empty()),
            _ => !live,
        }
    }
}
