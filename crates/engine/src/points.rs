//! The points of traces about streams and their messages.

use std::fmt::Write;

use model::trace::{self, Point, Source, Whom};
use wire::head::Head;

use crate::stream::Stream;
use crate::traced::{MINIMAL, about, whom};

/// From this verbosity on the first line of a message is told.
const SIMPLE: u8 = 3;
/// And its fields.
const ADVANCED: u8 = 4;
/// And all that is known.
const COMPLETE: u8 = 5;

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
        true => s.txn.server_conn.http_major == 2,
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

fn whom_of(s: &Stream<'_>) -> Whom {
    Whom { backend: s.txn.backend, server: s.txn.server, own: Some(s.txn.serial), ..whom(s.client.conn()) }
}

fn describe(s: &Stream<'_>, verbosity: u8, out: &mut String) {
    about(s.client.conn(), verbosity, out);
    if verbosity < MINIMAL {
        return;
    }
    let _ = write!(out, " stream={} fe={}", s.txn.serial, s.frontend().name);
    if s.txn.backend.is_some() {
        let _ = write!(out, " be={}", s.backend().name);
    }
    if let (Some(_), Some(server)) = (s.txn.backend, s.txn.server) {
        let _ = write!(out, " srv={}", &*s.backend().server(server).name);
    }
    if verbosity >= COMPLETE {
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
    if verbosity < SIMPLE {
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
    if verbosity >= ADVANCED {
        for (_, name, value) in head.fields() {
            let [name, value] = [name, value].map(|b| String::from_utf8_lossy(b).into_owned());
            let _ = write!(out, " | {}: {}", name.escape_default(), value.escape_default());
        }
    }
}
