//! One request of a connection between its records and whoever sent it.

use std::rc::Rc;
use std::task::{Context, Poll};

use rt::{Buf, Socket};
use wire::fcgi::{Header, MOST, kind, write};
use wire::head::{Head, Known};
use wire::http1::{Body, request_body, response_body};
use wire::method::{Method, Version};

use super::answer::{Awaited, Whole};
use crate::carrier::Carrier;
use crate::delivery::Delivery;
use crate::fate::Fate;
use crate::outbox::Outbox;
use crate::pickup::{Pickup, Stage};

/// The body of a request on its way.
struct Stdin(u16);

impl Carrier for Stdin {
    fn send(&mut self, data: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        data.chunks(MOST).for_each(|part| write::stdin(out, self.0, part));
        self.framed(end, out);
        data.len()
    }

    fn frame(&mut self, len: usize, _: bool, out: &mut Vec<u8>) -> bool {
        let Ok(content) = u16::try_from(len) else { return false };
        out.extend_from_slice(&Header::new(kind::STDIN, self.0, content).bytes());
        true
    }

    fn framed(&mut self, end: bool, out: &mut Vec<u8>) {
        if end {
            write::stdin(out, self.0, &[]);
        }
    }

    // There is no place for fields behind a body.
    fn trailers(&mut self, _: &Head, out: &mut Vec<u8>) {
        self.framed(true, out);
    }

    fn release(&mut self, _: usize, _: &mut Vec<u8>) {}
}

/// What an application that has ended its request does not want to see any more of the body.
struct Nowhere;

impl Carrier for Nowhere {
    fn send(&mut self, data: &[u8], _: bool, _: &mut Vec<u8>) -> usize {
        data.len()
    }

    fn frame(&mut self, _: usize, _: bool, _: &mut Vec<u8>) -> bool {
        false
    }

    fn framed(&mut self, _: bool, _: &mut Vec<u8>) {}

    fn trailers(&mut self, _: &Head, _: &mut Vec<u8>) {}

    fn release(&mut self, _: usize, _: &mut Vec<u8>) {}
}

/// How much of a response has come.
enum Answer {
    /// Its head is awaited.
    Awaited(Awaited),
    /// The head is whole, and what came behind it so far: whether more comes is seen before it goes on.
    Held(Box<Head>, Whole),
    /// The head is on its way. So many bytes of the body may come yet; `None`: whatever comes.
    Open(Option<u64>),
    /// All came that will.
    Over,
}

/// Most bytes of a response.
#[derive(Clone, Copy)]
pub(super) struct Most {
    /// Of its head.
    pub head: usize,
    /// That wait together for the end of it, so that its length is known.
    pub held: usize,
}

/// A request.
pub(super) struct Route {
    pub id: u16,
    pub link: Socket,
    pub fate: Rc<Fate>,
    method: Method,
    version: Version,
    up: Pickup,
    down: Delivery,
    answer: Answer,
    /// With so many bytes, head and body together, a head does not wait for the rest.
    held: usize,
    /// The response came whole.
    complete: bool,
    /// The application has said that the request is over.
    pub over: bool,
}

impl Route {
    /// A request that begins; its body comes as its head says.
    pub fn new(id: u16, order: (Socket, Rc<Fate>), head: &Head, read: Option<Buf>, most: Most) -> Route {
        let (link, fate) = order;
        let mut up = Pickup::new(Stage::from(request_body(head)));
        up.buf = read.filter(|buf| !buf.is_empty());
        let (answer, down) = (Answer::Awaited(Awaited::new(most.head)), Delivery::new(Body::None));
        Route {
            id,
            link,
            fate,
            method: head.method_id(),
            version: head.version(),
            up,
            down,
            answer,
            held: most.held,
            complete: false,
            over: false,
        }
    }

    /// Whether nothing is left to do: all of the response was taken, or nobody is to get more of it.
    pub fn is_through(&self) -> bool {
        matches!(self.answer, Answer::Over) && self.down.is_empty() && !self.drains()
    }

    /// Whether the application has answered and ended the request before its body was there. The rest is read
    /// and dropped, so that the client sees the response and may go on.
    fn drains(&self) -> bool {
        self.over && self.complete && !self.up.is_done() && !self.up.ended
    }

    /// Drops what came of a body that nobody wants; whether there was something.
    pub fn drain(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> bool {
        let mut moved = false;
        while self.drains() {
            let came = !self.up.is_empty();
            if self.up.send(&mut Nowhere, out).is_err() {
                self.up.discard();
            }
            if !self.up.fill(cx, &self.link) && !came {
                break;
            }
            moved = true;
        }
        moved
    }

    /// Whether the response came whole.
    pub fn is_complete(&self) -> bool {
        self.complete || matches!(self.answer, Answer::Open(Some(0)))
    }

    /// Whether its user has yet to take what came: nothing more is read meanwhile.
    pub fn is_behind(&self) -> bool {
        !self.down.is_empty()
    }

    /// Takes a part of the response.
    pub fn stdout(&mut self, bytes: &[u8], head: &mut Head) {
        match &mut self.answer {
            Answer::Awaited(awaited) => match awaited.take(bytes, head) {
                Ok(Some(whole)) => {
                    let mut held = Box::new(Head::response());
                    held.copy_from(head);
                    let full = held.counted_len() + whole.rest.len() > self.held;
                    self.answer = Answer::Held(held, whole);
                    if full {
                        self.settle(false);
                    }
                }
                Ok(None) => {}
                Err(_) => self.malformed(),
            },
            Answer::Held(held, whole) => {
                whole.rest.extend_from_slice(bytes);
                if held.counted_len() + whole.rest.len() > self.held {
                    self.settle(false);
                }
            }
            Answer::Open(None) => self.down.data(bytes, false),
            Answer::Open(Some(left)) => {
                let fits = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= fits as u64;
                // What is more than was announced belongs to nothing.
                self.down.data(bytes.get(..fits).unwrap_or_default(), false);
            }
            Answer::Over => {}
        }
    }

    /// What came is no response.
    fn malformed(&mut self) {
        self.fate.malformed.set(true);
        self.answer = Answer::Over;
        self.down.end();
    }

    /// Nothing more is at hand: a head goes on its way, with the length of a body that is whole.
    pub fn settle(&mut self, ended: bool) {
        let (mut head, Whole { counted, rest: body }) =
            match std::mem::replace(&mut self.answer, Answer::Over) {
                Answer::Held(head, whole) => (head, whole),
                other => {
                    self.answer = other;
                    return;
                }
            };
        let old = self.version < Version::HTTP_11;
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.fate.added.set(signed(head.counted_len()) - signed(counted));
        let (framing, left) = match response_body(&head, self.method) {
            Body::None => (Body::None, Some(0)),
            Body::Length(length) => (Body::Length(length), Some(length)),
            // As it comes, chunks and all.
            Body::Chunked => {
                self.fate.chunked.set(true);
                (Body::UntilClose, None)
            }
            // A client of HTTP/1.0 gets no length that the application did not say, and no chunks: those are
            // for the way to the engine, which sees by them whether the body is whole.
            Body::UntilClose if ended && !old => {
                head.remove_all(Known::TransferEncoding);
                let length = body.len() as u64;
                let digits = &mut [0; base::text::INT_MAX];
                let _ = head.append(b"content-length", base::text::int(length, digits));
                self.fate.measured.set(true);
                (Body::Length(length), Some(length))
            }
            Body::UntilClose => (Body::Chunked, None),
        };
        // A body in answer to HEAD is dropped (RFC 3875 section 4.3.3).
        let unwanted = self.method == Method::Head;
        if !unwanted && left.is_some_and(|left| (body.len() as u64) > left) {
            return self.malformed();
        }
        head.set_version(self.version.min(Version::HTTP_11));
        if framing == Body::Chunked {
            // Whoever takes the framing away counts nothing for it.
            let _ = head.append(b"transfer-encoding", b"chunked");
        }
        self.fate.bare.set(left == Some(0));
        self.down.body = framing;
        self.answer = Answer::Open(left);
        self.down.head(&head);
        self.stdout(&body, &mut head);
    }

    /// The response is over, as its application says.
    pub fn end(&mut self) {
        self.fate.over.set(self.up.is_done());
        self.settle(true);
        match std::mem::replace(&mut self.answer, Answer::Over) {
            Answer::Awaited(awaited) => {
                self.fate.malformed.set(!awaited.is_empty());
                self.down.end();
            }
            Answer::Open(Some(0)) => self.complete = true,
            Answer::Open(Some(_)) => self.down.end(),
            Answer::Open(None) => {
                // An end behind all else counts.
                let lone = u64::from(self.down.is_empty());
                self.fate.extra.set(self.fate.extra.get() + lone);
                self.complete = true;
                self.down.data(&[], true);
            }
            Answer::Held(..) | Answer::Over => {}
        }
    }

    /// The connection is gone before the response was over.
    pub fn break_off(&mut self) {
        self.settle(false);
        match std::mem::replace(&mut self.answer, Answer::Over) {
            Answer::Awaited(awaited) => {
                self.fate.malformed.set(!awaited.is_empty());
                self.down.end();
            }
            Answer::Open(Some(0)) => self.complete = true,
            Answer::Open(_) => self.down.end(),
            Answer::Held(..) | Answer::Over => {}
        }
    }

    /// Gives the user what came; whether something moved.
    pub fn push(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> bool {
        self.down.push(cx, &self.link, &mut Stdin(self.id), &mut out.bytes)
    }

    /// Moves what there is; whether something moved.
    pub fn turn(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> bool {
        let mut moved = self.push(cx, out);
        if self.drains() {
            return moved | self.drain(cx, out);
        }
        if out.is_full() || matches!(self.answer, Answer::Over) {
            return moved;
        }
        moved |= self.send(out);
        if self.up.fill(cx, &self.link) {
            moved = true;
            self.send(out);
        }
        moved
    }

    fn send(&mut self, out: &mut Outbox) -> bool {
        self.up.send(&mut Stdin(self.id), out).unwrap_or_else(|_| {
            self.up.discard();
            true
        })
    }

    /// Whether its user is gone, or has left the request unfinished.
    pub fn is_left(&self, cx: &mut Context<'_>) -> bool {
        self.link.poll_broken(cx) == Poll::Ready(()) || self.up.is_cut()
    }
}
