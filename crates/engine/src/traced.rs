//! The points of traces in the way of a request: each one line where it happens, one relaxed load where
//! nobody looks.

use std::fmt::Write;

use model::Conn;
use model::trace::{self, Point, Source, Whom};
use wire::head::Head;

use crate::client::Client;
use crate::sessions::Session;
use crate::stream::Stream;

/// Verbosities, as numbers of their list.
mod verbosity {
    pub const MINIMAL: u8 = 2;
    pub const SIMPLE: u8 = 3;
    pub const ADVANCED: u8 = 4;
    pub const COMPLETE: u8 = 5;
}

/// Whom a client's connection is.
pub fn whom(conn: &Conn) -> Whom {
    Whom {
        frontend: Some(conn.frontend),
        listener: Some(conn.listener),
        session: Some(conn.serial),
        ..Whom::default()
    }
}

/// Something happens to a client's session.
#[inline]
#[track_caller]
pub fn session(session: &Session, source: &Source, events: u32, level: u8, text: &str) {
    if source.on() {
        let conn = &session.conn;
        let whom = Whom { backend: session.backend.get(), server: session.server.get(), ..whom(conn) };
        source.tell(Point { events, level, text, whom }, &mut |verbosity, out| about(conn, verbosity, out));
    }
}

/// Something happens to a stream.
#[inline]
#[track_caller]
pub fn stream(s: &Stream<'_>, source: &Source, events: u32, level: u8, text: &str) {
    if source.on() {
        let point = Point { events, level, text, whom: whom_of(s) };
        source.tell(point, &mut |verbosity, out| describe(s, verbosity, out));
    }
}

/// A head comes or goes, towards the client or (`back`) the server.
#[inline]
#[track_caller]
pub fn message(s: &Stream<'_>, back: bool, events: (u32, u32), level: u8, text: &str) {
    let multiplexed = match back {
        true => s.upstream.as_ref().is_some_and(|up| up.call.is_some()),
        false => s.client.part.is_some(),
    };
    let (source, events): (&Source, u32) =
        if multiplexed { (&trace::H2, events.1) } else { (&trace::H1, events.0) };
    if source.on() {
        let point = Point { events, level, text, whom: Whom { back, ..whom_of(s) } };
        source.tell(point, &mut |verbosity, out| {
            let _ = write!(out, " [{}]", if back { 'B' } else { 'F' });
            describe(s, verbosity, out);
            heads(s, text, verbosity, out);
        });
    }
}

/// Something happens to a client.
#[inline]
#[track_caller]
pub fn client(c: &Client, source: &Source, events: u32, level: u8, text: &str) {
    session(&c.session, source, events, level, text);
}

fn whom_of(s: &Stream<'_>) -> Whom {
    Whom { backend: s.txn.backend, server: s.txn.server, own: Some(s.txn.serial), ..whom(s.client.conn()) }
}

fn about(conn: &Conn, verbosity: u8, out: &mut String) {
    if verbosity >= 1 {
        let _ = write!(out, " session={} frontend=#{}", conn.serial, conn.frontend);
    }
    if verbosity >= verbosity::MINIMAL {
        let _ = write!(out, " src={} dst={}", conn.src.get(), conn.dst.get());
    }
}

fn describe(s: &Stream<'_>, verbosity: u8, out: &mut String) {
    about(s.client.conn(), verbosity, out);
    if verbosity < verbosity::MINIMAL {
        return;
    }
    let _ = write!(out, " stream={} fe={}", s.txn.serial, s.frontend().name);
    if s.txn.backend.is_some() {
        let _ = write!(out, " be={}", s.backend().name);
    }
    if let (Some(_), Some(server)) = (s.txn.backend, s.txn.server) {
        let _ = write!(out, " srv={}", &*s.backend().server(server).name);
    }
    if verbosity >= verbosity::COMPLETE {
        let txn = &s.txn;
        let _ = write!(
            out,
            " up={}/{} down={}/{}",
            txn.up.received, txn.up.sent, txn.down.received, txn.down.sent
        );
    }
}

/// The head that a point is about: that of the response where it is named so.
fn heads(s: &Stream<'_>, text: &str, verbosity: u8, out: &mut String) {
    if verbosity < verbosity::SIMPLE {
        return;
    }
    let (head, first): (&Head, String) = if text.contains("response") {
        (&s.txn.res, format!("{}", s.txn.res.status()))
    } else {
        let req = &s.txn.req;
        let words = [req.method(), req.target()].map(String::from_utf8_lossy);
        (req, words.join(" "))
    };
    let _ = write!(out, " \"{}\"", first.escape_default());
    if verbosity >= verbosity::ADVANCED {
        for (_, name, value) in head.fields() {
            let [name, value] = [name, value].map(|b| String::from_utf8_lossy(b).into_owned());
            let _ = write!(out, " | {}: {}", name.escape_default(), value.escape_default());
        }
    }
}
