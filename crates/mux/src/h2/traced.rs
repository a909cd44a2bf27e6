//! The points of traces in connections of HTTP/2.

use model::Conn;
use model::trace::{H2, Point, Whom, h2, level};
use wire::h2::Event;

/// Something happens to a connection: `None` for one to a server.
#[inline]
#[track_caller]
pub(super) fn connection(conn: Option<&Conn>, events: u32, level: u8, text: &str) {
    if H2.on() {
        H2.tell(Point { events, level, text, whom: whom(conn) }, &mut |_, out| describe(conn, out));
    }
}

/// A frame was understood.
#[inline]
#[track_caller]
pub(super) fn frame(conn: Option<&Conn>, event: &Event<'_>) {
    if H2.on() {
        let (events, level, text) = what(event);
        H2.tell(Point { events, level, text, whom: whom(conn) }, &mut |verbosity, out| {
            describe(conn, out);
            if let (Event::Data { bytes, .. }, 2..) = (event, verbosity) {
                out.push_str(&format!(" {} bytes", bytes.len()));
            }
        });
    }
}

fn what(event: &Event<'_>) -> (u32, u8, &'static str) {
    match event {
        Event::Head { refused: Some(_), .. } => {
            (h2::RX_FRAME | h2::STREAM_ERR, level::ERROR, "received HEADERS that are no request")
        }
        Event::Head { .. } => {
            (h2::RX_FRAME | h2::RX_HEADERS | h2::STREAM_NEW, level::PROTO, "received HEADERS")
        }
        Event::Trailers { .. } => (h2::RX_FRAME | h2::RX_HEADERS, level::PROTO, "received trailers"),
        Event::Data { .. } => (h2::RX_FRAME | h2::RX_DATA, level::DATA, "received DATA"),
        Event::Reset { by_peer: true, .. } => {
            (h2::RX_FRAME | h2::RX_RESET, level::PROTO, "received RST_STREAM")
        }
        Event::Reset { .. } => {
            (h2::TX_FRAME | h2::TX_RESET | h2::STREAM_ERR, level::ERROR, "stream was reset")
        }
        Event::Malformed { why } => (h2::STREAM_ERR, level::ERROR, why),
        Event::Window { .. } => (h2::RX_FRAME, level::PROTO, "received WINDOW_UPDATE or SETTINGS"),
        Event::GoAway { .. } => (h2::RX_FRAME | h2::RX_GOAWAY, level::PROTO, "received GOAWAY"),
        Event::Pause => (0, level::DEVELOPER, "enough frames for a turn"),
    }
}

fn whom(conn: Option<&Conn>) -> Whom {
    match conn {
        Some(conn) => Whom {
            frontend: Some(conn.frontend.get()),
            listener: Some(conn.listener.get()),
            session: Some(conn.serial),
            ..Whom::default()
        },
        None => Whom { back: true, ..Whom::default() },
    }
}

fn describe(conn: Option<&Conn>, out: &mut String) {
    match conn {
        Some(conn) => out.push_str(&format!(" [F] session={} src={}", conn.serial, conn.src.get())),
        None => out.push_str(" [B]"),
    }
}
