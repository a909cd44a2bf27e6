//! The points of traces in connections of FastCGI.

use model::trace::{FCGI, Point, Whom, fcgi, level};
use wire::fcgi::Event;

/// Something happens to a connection.
#[inline]
#[track_caller]
pub(super) fn connection(events: u32, level: u8, text: &str) {
    if FCGI.on() {
        let whom = Whom { back: true, ..Whom::default() };
        FCGI.tell(Point { events, level, text, whom }, &mut |_, out| out.push_str(" [B]"));
    }
}

/// A record was understood.
#[inline]
#[track_caller]
pub(super) fn record(event: &Event<'_>) {
    if FCGI.on() {
        let (events, text) = match event {
            Event::Stdout { .. } => (fcgi::RX_STDOUT, "received STDOUT"),
            Event::Stderr { .. } => (fcgi::RX_STDERR, "received STDERR"),
            Event::End { .. } => (fcgi::RX_ENDREQ, "received END_REQUEST"),
            Event::Values(_) => (fcgi::RX_GETVAL, "received GET_VALUES_RESULT"),
            Event::Unknown(_) => (0, "received UNKNOWN_TYPE"),
        };
        let whom = Whom { back: true, ..Whom::default() };
        let point = Point { events: events | fcgi::RX_RECORD, level: level::PROTO, text, whom };
        FCGI.tell(point, &mut |verbosity, out| {
            out.push_str(" [B]");
            match event {
                Event::Stdout { id, bytes } | Event::Stderr { id, bytes, .. } => {
                    out.push_str(&format!(" id={id}"));
                    if verbosity >= 2 {
                        out.push_str(&format!(" {} bytes", bytes.len()));
                    }
                }
                Event::End { id, .. } => out.push_str(&format!(" id={id}")),
                _ => {}
            }
        });
    }
}
