//! One stream to a server between its frames and whoever uses it.

use std::rc::Rc;
use std::task::Context;

use base::slab::Key;
use rt::Socket;
use wire::h2::{Code, Connection};
use wire::head::{Head, Known};
use wire::http1::{Body, request_body, response_body, upgrades};
use wire::method::Method;

use super::frames::Frames;
use crate::delivery::Delivery;
use crate::fate::Fate;
use crate::outbox::Outbox;
use crate::pickup::{Pickup, Stage};
use crate::trailers::Trailers;
use crate::websocket;

/// What has to be remembered of a request to understand its response.
pub struct Asked {
    method: Method,
    /// The protocol of an extended CONNECT, and the answer to the key that the client sent along.
    upgrade: Option<(Vec<u8>, Vec<u8>)>,
    /// How its body comes.
    pub body: Body,
    /// It has a body before it is anything else: a tunnel can't be asked for along with one.
    pub has_body: bool,
}

impl Asked {
    /// What a request says.
    pub fn of(head: &Head) -> Asked {
        let upgrade = upgrades(head).then(|| {
            let accept = head.first(Known::SecWebsocketKey).map(websocket::accept).unwrap_or_default();
            (head.first(Known::Upgrade).unwrap_or_default().to_vec(), accept)
        });
        let method = head.method_id();
        let tunnel = upgrade.is_some() || method == Method::Connect;
        let declared = request_body(head);
        let body = if tunnel { Body::UntilClose } else { declared };
        Asked { method, upgrade, body, has_body: declared != Body::None }
    }

    /// The protocol of an extended CONNECT.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.upgrade.as_ref().map(|(protocol, _)| &protocol[..])
    }
}

/// A stream.
pub struct Route {
    pub stream: Key,
    pub link: Socket,
    pub fate: Rc<Fate>,
    asked: Asked,
    up: Pickup,
    pub down: Delivery,
    /// Its response can have no body.
    bodiless: bool,
}

impl Route {
    pub fn new(
        stream: Key,
        link: Socket,
        fate: Rc<Fate>,
        asked: Asked,
        read: Option<rt::Buf>,
        trailers: Option<Rc<Trailers>>,
    ) -> Route {
        let mut up = Pickup::new(Stage::from(asked.body));
        up.trailers = trailers;
        up.buf = read.filter(|buf| !buf.is_empty());
        Route { stream, link, fate, asked, up, down: Delivery::new(Body::None), bodiless: false }
    }

    /// Takes data; `lone`: an end behind all else.
    pub fn data(&mut self, bytes: &[u8], end: bool, lone: bool) {
        let passed_over = if self.bodiless { bytes.len() as u64 } else { 0 };
        self.fate.extra.set(self.fate.extra.get() + passed_over + u64::from(lone));
        self.fate.over.set(end && self.up.is_done());
        self.down.data(bytes, end);
    }

    /// Takes the head of a response.
    pub fn head(&mut self, head: &mut Head, end: bool) {
        let status = head.status();
        let success = (200..300).contains(&status);
        self.fate.bare.set(end);
        self.fate.over.set(end && self.up.is_done());
        self.bodiless = matches!(status, 204 | 304) || self.asked.method == Method::Head;
        match &self.asked.upgrade {
            _ if status < 200 => {}
            Some((protocol, accept)) if success => {
                let _ = head.set_status(101, None);
                head.remove_all(Known::ContentLength);
                let _ = head.append(b"connection", b"upgrade");
                let _ = head.append(b"upgrade", protocol);
                if !accept.is_empty() {
                    let before = head.counted_len();
                    let _ = head.append(b"sec-websocket-accept", accept);
                    self.fate.added.set(head.counted_len().saturating_sub(before) as i64);
                }
                self.down.body = Body::UntilClose;
            }
            _ if success && self.asked.method == Method::Connect => self.down.body = Body::UntilClose,
            _ => {
                let before = head.counted_len();
                self.down.body = framed(head, self.asked.method);
                self.fate.added.set(head.counted_len().saturating_sub(before) as i64);
            }
        }
        if matches!(self.down.body, Body::Length(_)) && !end {
            *self.fate.trailers.borrow_mut() = Some(self.down.followed());
        }
        self.down.head(head);
        if end && matches!(self.down.body, Body::UntilClose | Body::Chunked) {
            self.down.data(&[], true);
        }
    }

    /// Moves what there is; whether something moved.
    pub fn turn(&mut self, cx: &mut Context<'_>, connection: &mut Connection, out: &mut Outbox) -> bool {
        let mut moved = {
            let frames = &mut Frames { stream: self.stream, connection };
            self.down.push(cx, &self.link, frames, &mut out.bytes)
        };
        if out.is_full() {
            return moved;
        }
        moved |= self.send(connection, out);
        if self.up.fill(cx, &self.link) {
            moved = true;
            self.send(connection, out);
        }
        if self.up.is_cut() {
            connection.reset(self.stream, Code::CANCEL, &mut out.bytes);
        }
        moved
    }

    fn send(&mut self, connection: &mut Connection, out: &mut Outbox) -> bool {
        self.up.send(&mut Frames { stream: self.stream, connection }, out).unwrap_or_else(|_| {
            connection.reset(self.stream, Code::INTERNAL_ERROR, &mut out.bytes);
            true
        })
    }

    /// What is left of the stream. A user that leaves before the server has answered wants no answer; one
    /// that leaves behind an answer may have said more than is sent.
    pub fn state(&self, cx: &mut Context<'_>, connection: &mut Connection, out: &mut Vec<u8>) -> RouteState {
        let live = connection.id(self.stream).is_some();
        let left = self.link.poll_broken(cx).is_ready();
        match (live, left) {
            (true, false) => RouteState::Used,
            (true, true) if connection.is_answered(self.stream) => RouteState::Tail,
            (true, true) => {
                connection.reset(self.stream, Code::CANCEL, out);
                RouteState::Over
            }
            (false, false) if !self.down.is_empty() => RouteState::Used,
            (false, _) => RouteState::Over,
        }
    }
}

/// See [`Route::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteState {
    Used,
    /// Its user is gone, with a whole answer. What it sent before goes on to the server, and the server has
    /// yet to say that it said all.
    Tail,
    Over,
}

/// How the body of a response comes to its user, which the head is made to say.
fn framed(head: &mut Head, method: Method) -> Body {
    match response_body(head, method) {
        Body::UntilClose => {
            let _ = head.append(b"transfer-encoding", b"chunked");
            Body::Chunked
        }
        body => body,
    }
}
