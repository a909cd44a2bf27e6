//! The points of traces in connections to agents.

use model::trace::{Point, SPOP, Whom, level, spop};
use wire::spop::kind;

use super::Line;

fn whom(line: &Line, stream: u64) -> Whom {
    // Each connection counts its questions anew.
    let connection = std::ptr::from_ref(line).addr() as u64;
    let own = (stream != 0).then_some(connection << 24 | stream & 0xff_ffff);
    let (backend, server) = (Some(line.agent.backend), Some(line.index));
    Whom { backend, server, own, back: true, ..Whom::default() }
}

/// Something happens to a connection.
#[inline]
#[track_caller]
pub(super) fn connection(line: &Line, events: u32, level: u8, text: &str) {
    if SPOP.on() {
        let point = Point { events, level, text, whom: whom(line, 0) };
        SPOP.tell(point, &mut |verbosity, out| about(line, 0, verbosity, out));
    }
}

/// Something happens to a question.
#[inline]
#[track_caller]
pub(super) fn question(line: &Line, stream: u64, events: u32, text: &str) {
    if SPOP.on() {
        let point = Point { events, level: level::STATE, text, whom: whom(line, stream) };
        SPOP.tell(point, &mut |verbosity, out| about(line, stream, verbosity, out));
    }
}

/// A frame has come.
#[inline]
#[track_caller]
pub(super) fn received(line: &Line, kind: u8, stream: u64, length: usize) {
    if SPOP.on() {
        let (events, text) = match kind {
            kind::AGENT_HELLO => (spop::RX_HELLO, "received AGENT HELLO frame"),
            kind::ACK => (spop::RX_ACK, "received AGENT ACK frame"),
            kind::AGENT_DISCONNECT => (spop::RX_DISCONNECT, "received AGENT DISCONNECT frame"),
            _ => (0, "received an unknown frame"),
        };
        frame(line, (spop::RX_FRAME | events, text), stream, length);
    }
}

/// A frame goes out, or is left to go with others.
#[inline]
#[track_caller]
pub(super) fn sends(line: &Line, kind: u8, stream: u64, length: usize) {
    if SPOP.on() {
        let (events, text) = match kind {
            kind::HAPROXY_HELLO => (spop::TX_HELLO, "sending HAPROXY HELLO frame"),
            kind::NOTIFY => (spop::TX_NOTIFY, "sending HAPROXY NOTIFY frame"),
            _ => (spop::TX_DISCONNECT, "sending HAPROXY DISCONNECT frame"),
        };
        frame(line, (spop::TX_FRAME | events, text), stream, length);
    }
}

#[track_caller]
fn frame(line: &Line, (events, text): (u32, &str), stream: u64, length: usize) {
    let point = Point { events, level: level::PROTO, text, whom: whom(line, stream) };
    SPOP.tell(point, &mut |verbosity, out| {
        about(line, stream, verbosity, out);
        if verbosity >= 3 {
            out.push_str(&format!(" {length} bytes"));
        }
    });
}

fn about(line: &Line, stream: u64, verbosity: u8, out: &mut String) {
    out.push_str(" [B]");
    if verbosity >= 2 {
        out.push_str(&format!(" agent={} server={}", line.agent.name, line.server.name));
    }
    if stream != 0 {
        out.push_str(&format!(" id={stream}"));
    }
}
