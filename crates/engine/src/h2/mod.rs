//! HTTP/2 towards the client: one task owns the connection, each of its streams is a client of its own.
//!
//! The connection's task reads frames, and gives each request to a task that serves it exactly as one of HTTP/1 is
//! served ([`crate::h1`]): same rules, same choice, same logs. What the two tasks exchange goes through a stream inside
//! the worker ([`rt::Socket::local`]): the head of the request is handed over as it is, bodies and the response
//! in the form of HTTP/1, which [`Line`] turns into frames. So whatever can happen to a client connection (it stalls,
//! it breaks, it is reset) happens to a stream in the same way, and no code above knows of two kinds of client.
//!
//! The task of the connection turns whenever its socket or one of the streams has something: first it takes in what
//! the peer sent, then it moves what the streams have, then all that came of it leaves in one write. It stops
//! reading, from the peer and from the streams, while more than [`HIGH`] bytes wait to be sent.

mod line;

use std::future::poll_fn;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use base::slab::Key;
use rt::Socket;
use wire::h2::{Code, Connection, Event, Limits, Received, Role};
use wire::head::{Head, Known};
use wire::http1::Body;

use crate::session::Client;
use line::Line;

/// Bytes that wait to be sent at which nothing is added to them.
const HIGH: usize = 64 * 1024;
/// Turns before other tasks get theirs.
const TURNS: u32 = 16;

/// The request of a stream.
pub struct Arrival {
    /// Its head.
    pub head: Head,
    /// It is none, and deserves this status.
    pub refused: Option<u16>,
}

/// Serves a connection until it ends.
pub async fn serve(client: Client) {
    client.conn().http_major.set(2);
    let mut out = Vec::new();
    let connection = Connection::new(Role::Server, limits(&client), &mut out);
    let mut serving = Serving {
        client,
        connection,
        out,
        sent: 0,
        lines: Vec::new(),
        head: Head::request(),
        state: State::Open,
    };
    serving.arm();
    poll_fn(|cx| serving.turns(cx)).await;
    serving.lines.clear();
    if !serving.client.socket.is_broken() {
        rt::boxed(crate::h1::close(&serving.client, true)).await;
    }
}

fn limits(client: &Client) -> Limits {
    let tune = &client.worker.shared.program.global.tune;
    Limits {
        list: tune.bufsize.saturating_sub(tune.maxrewrite),
        fields: tune.maxhdr,
        relax: client.frontend().options.unsafe_request,
        ..Limits::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// What is to be sent is sent, then the connection is closed.
    Closing,
}

/// A connection that is being served.
struct Serving {
    client: Client,
    connection: Connection,
    /// Bytes to send, of which `sent` are sent.
    out: Vec<u8>,
    sent: usize,
    /// The streams, by the slots of their keys.
    lines: Vec<Option<Line>>,
    /// Where heads are read into.
    head: Head,
    state: State,
}

impl Serving {
    /// Turns until there is nothing to do; ready when the connection is at its end.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            let mut moved = self.receive(cx);
            moved |= self.move_lines(cx);
            self.wind_up();
            match self.send(cx) {
                Err(()) => return Poll::Ready(()),
                Ok(sent) => moved |= sent,
            }
            let over = self.state == State::Closing || self.connection.is_over();
            if over && self.out.is_empty() {
                return Poll::Ready(());
            }
            if !moved {
                return self.expired(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes in what the peer sent; whether there was something.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        if self.state == State::Closing || self.waiting() >= HIGH {
            return false;
        }
        if self.client.socket.poll_readable(cx).is_pending() {
            return false;
        }
        let buf = self.client.buf.get_or_insert_default();
        buf.compact();
        let read = self.client.socket.poll_recv(cx, buf.spare_mut());
        let came = match read {
            Poll::Ready(Ok(0) | Err(_)) => {
                self.state = State::Closing;
                return true;
            }
            Poll::Ready(Ok(n)) => {
                buf.advance(n);
                true
            }
            Poll::Pending => false,
        };
        if came {
            self.arm();
            self.frames(cx);
        }
        self.client.buf = self.client.buf.take().filter(|buf| !buf.is_empty());
        came
    }

    /// Bytes that wait to be sent.
    fn waiting(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Understands what lies in the buffer.
    fn frames(&mut self, cx: &mut Context<'_>) {
        let Some(mut buf) = self.client.buf.take() else { return };
        self.connection.begin_turn();
        loop {
            let received = self.connection.receive(buf.filled(), &mut self.head, &mut self.out);
            let Ok(Received { consumed, event }) = received else {
                self.state = State::Closing;
                self.lines.clear();
                break;
            };
            let Some(event) = event else {
                buf.consume(consumed);
                break;
            };
            match event {
                Event::Head { stream, end, refused, extended } => self.open(stream, end, refused, extended),
                Event::Data { stream, bytes, end } => {
                    if let Some(line) = line(&mut self.lines, stream) {
                        line.data(bytes, end);
                        line.upload(cx, &mut self.connection, &mut self.out);
                    } else {
                        self.connection.release(stream, bytes.len(), &mut self.out);
                    }
                }
                Event::Trailers { stream } => {
                    if let Some(line) = line(&mut self.lines, stream) {
                        line.trailers(&self.head);
                    }
                }
                Event::Reset { stream, .. } => self.forget(stream),
                Event::Malformed { .. } | Event::Window { .. } | Event::GoAway { .. } | Event::Pause => {}
            }
            buf.consume(consumed);
        }
        self.client.buf = Some(buf);
    }

    /// A request has come: makes a task of it.
    fn open(&mut self, stream: Key, end: bool, refused: Option<u16>, extended: bool) {
        let Ok((link, far)) = Socket::local() else {
            return self.connection.reset(stream, Code::REFUSED_STREAM, &mut self.out);
        };
        let mut head = std::mem::take(&mut self.head);
        let method = head.method_id();
        let tunnel = extended || method == wire::method::Method::Connect;
        let body = match refused {
            _ if end => Body::None,
            Some(_) => Body::None,
            None if tunnel => Body::UntilClose,
            None if head.has(Known::ContentLength) => wire::http1::request_body(&head),
            None => {
                let _ = head.append(b"transfer-encoding", b"chunked");
                Body::Chunked
            }
        };
        if extended {
            let _ = head.append(b"sec-websocket-key", &websocket_key());
        }
        let client = &self.client;
        let arrival = Arrival { head, refused };
        let part = Client::of_stream(client.worker.clone(), client.session.clone(), far.into(), arrival);
        rt::spawn(one(part));
        let slot = stream.slot();
        if self.lines.len() <= slot {
            self.lines.resize_with(slot + 1, || None);
        }
        if let Some(place) = self.lines.get_mut(slot) {
            *place = Some(Line::new(stream, link, method, extended, body));
        }
    }

    fn forget(&mut self, stream: Key) {
        if let Some(place) = self.lines.get_mut(stream.slot())
            && place.as_ref().is_some_and(|line| line.stream == stream)
        {
            *place = None;
        }
    }

    /// Moves what the streams have; whether there was something.
    fn move_lines(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        for place in &mut self.lines {
            let Some(line) = place else { continue };
            moved |= line.upload(cx, &mut self.connection, &mut self.out);
            if self.out.len() - self.sent < HIGH {
                moved |= line.download(cx, &mut self.connection, &mut self.head, &mut self.out);
            }
            if line.is_over(&mut self.connection, &mut self.out) {
                *place = None;
            }
        }
        moved
    }

    /// Sends; whether something went out. An error is the end of the connection.
    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, ()> {
        if self.out.is_empty() {
            return Ok(false);
        }
        match self.client.socket.poll_send(cx, &self.out[self.sent..], false) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(_)) => Err(()),
            Poll::Ready(Ok(n)) => {
                self.sent += n;
                if self.sent == self.out.len() {
                    self.out.clear();
                    self.sent = 0;
                    if self.out.capacity() > HIGH || self.connection.is_empty() {
                        self.out = Vec::new();
                    }
                }
                self.arm();
                Ok(n > 0)
            }
        }
    }

    /// Sets the deadline of the connection: it counts while there is no stream, or while nothing can be sent.
    fn arm(&mut self) {
        let timeouts = &self.client.frontend().timeouts;
        let idle = self.connection.is_empty();
        let limit = match self.connection.opened() {
            _ if !idle => timeouts.client,
            0 => timeouts.http_request.or(timeouts.client),
            _ => timeouts.http_keep_alive.or(timeouts.http_request).or(timeouts.client),
        };
        self.client.session.idle.set(idle && self.connection.opened() > 0);
        self.client.timer.set_after(limit);
    }

    /// The process stops, or somebody wants the connection to end.
    fn wind_up(&mut self) {
        if self.client.session.kill.get().is_some() && self.state == State::Open {
            self.connection.finish(&mut self.out);
            self.state = State::Closing;
        }
        if self.client.worker.shared.program.world.process.stopping.load(Relaxed) {
            self.connection.shutdown(&mut self.out);
            if self.connection.is_empty() {
                self.connection.finish(&mut self.out);
            }
        }
    }

    fn expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.client.timer.poll_expired(cx).is_pending() {
            return Poll::Pending;
        }
        if !self.connection.is_empty() && self.out.is_empty() {
            // The streams have deadlines of their own.
            self.arm();
            let _ = self.client.timer.poll_expired(cx);
            return Poll::Pending;
        }
        self.connection.close(Code::NO_ERROR, &mut self.out);
        let _ = self.send(cx);
        Poll::Ready(())
    }
}

fn line(lines: &mut [Option<Line>], stream: Key) -> Option<&mut Line> {
    lines.get_mut(stream.slot())?.as_mut().filter(|line| line.stream == stream)
}

/// Serves the request of one stream.
async fn one(mut client: Client) {
    let _ = rt::boxed(crate::h1::exchange::run(&mut client)).await;
}

/// A fresh key: HTTP/2 has none, HTTP/1 can't do without (RFC 8441 section 5, RFC 6455 section 4.1).
pub(crate) fn websocket_key() -> [u8; 24] {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut key = [b'='; 24];
    let mut bits = u128::from(rt::random()) << 64 | u128::from(rt::random());
    for (at, place) in key.iter_mut().take(22).enumerate() {
        // 128 bits fill 21 digits and a third of the last one.
        let digit = if at == 21 { (bits & 3) << 4 } else { bits & 63 };
        bits >>= 6;
        *place = DIGITS[digit as usize];
    }
    key
}
