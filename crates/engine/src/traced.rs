//! The points of traces about clients and their sessions: each one line where it happens, one relaxed load
//! where nobody looks. Those of streams are in [`crate::points`].

use std::fmt::Write;

use model::Conn;
use model::trace::{Point, Source, Whom};

use crate::sessions::Session;

/// From this verbosity on addresses are told.
pub const MINIMAL: u8 = 2;

/// Whom a client's connection is.
pub fn whom(conn: &Conn) -> Whom {
    Whom {
        frontend: Some(conn.frontend.get()),
        listener: Some(conn.listener.get()),
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

/// Something happens to a stream of a session, which has this number.
#[inline]
#[track_caller]
pub fn stream_of(s: &Session, own: u64, source: &Source, events: u32, level: u8, text: &str) {
    if source.on() {
        let conn = &s.conn;
        let own = Some(own);
        let whom = Whom { backend: s.backend.get(), server: s.server.get(), own, ..whom(conn) };
        source.tell(Point { events, level, text, whom }, &mut |verbosity, out| about(conn, verbosity, out));
    }
}

/// Tells of a connection.
pub fn about(conn: &Conn, verbosity: u8, out: &mut String) {
    if verbosity >= 1 {
        let _ = write!(out, " session={} frontend=#{}", conn.serial, conn.frontend.get());
    }
    if verbosity >= MINIMAL {
        let _ = write!(out, " src={} dst={}", conn.src.get(), conn.dst.get());
    }
}
