//! `show errors`: the last message of each proxy and direction that could not be parsed.

use std::fmt::Write;
use std::pin::Pin;

use engine::captured::{Captured, Named};

use crate::cli::call::{Call, Outcome, Refusal, Reply, find_proxy};
use crate::cli::date;
use crate::cli::table::Command;
use crate::gather::gather;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::later(
    &["show", "errors"],
    "[<px>] [request|response]",
    "the last messages that could not be parsed",
    Level::Operator,
    show,
)];

/// Columns of the dump that a message's bytes may take.
const WIDTH: usize = 70;

/// `show errors [<iid>|<proxy>] [request|response]`.
pub fn show<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let only = proxy(call)?;
        let side = [call.arg(0), call.arg(1)].iter().find_map(|w| match *w {
            "request" => Some(false),
            "response" => Some(true),
            _ => None,
        });
        let answers = gather(|w| w.errors.borrow().iter().cloned().collect::<Vec<_>>()).await;
        let mut all: Vec<Captured> = answers.into_iter().flat_map(|(_, kept)| kept).collect();
        all.sort_by_key(|c| c.date);
        let mut out = format!("Total events captured on [{}] : {}\n", date::millis(rt::wall()), all.len());
        for (number, c) in all.iter().enumerate() {
            let replaced = all
                .iter()
                .skip(number + 1)
                .any(|later| owner(later) == owner(c) && later.response == c.response);
            let concerned =
                only.is_none_or(|p| p == c.frontend.id || c.backend.as_ref().is_some_and(|b| b.id == p));
            if !replaced && concerned && side.is_none_or(|s| s == c.response) {
                dump(number, c, &mut out);
            }
        }
        Ok(Reply::Dump(out))
    })
}

/// The id of the proxy that keeps the message: the frontend a request, the backend a response.
fn owner(c: &Captured) -> u32 {
    c.backend.as_ref().filter(|_| c.response).unwrap_or(&c.frontend).id
}

fn proxy(call: &Call<'_>) -> Result<Option<u32>, Refusal> {
    match call.arg(0) {
        "" | "-1" | "request" | "response" => Ok(None),
        word => {
            let number = word.parse::<u32>().ok();
            let named = match number {
                // A number that no proxy has is no error: nothing was captured there.
                Some(n) => {
                    let found = find_proxy(call.shared(), &format!("#{n}"), |_| true);
                    return Ok(Some(found.map_or(u32::MAX, |(_, p)| p.state.id)));
                }
                None => find_proxy(call.shared(), word, |_| true),
            };
            named.map(|(_, p)| Some(p.state.id)).ok_or("No such proxy.".into())
        }
    }
}

fn dump(number: usize, c: &Captured, out: &mut String) {
    let at = |n: &Named| format!("{} (#{})", n.name, n.id);
    let none = || "<NONE> (#-1)".to_owned();
    let server = c.server.as_ref().map_or_else(none, at);
    let _ = writeln!(out, " ");
    let when = date::millis(c.date);
    let _ = match c.response {
        false => writeln!(
            out,
            "[{when}] frontend {}: invalid request\n  backend {}, server {server}, event #{number}, src {}",
            at(&c.frontend),
            c.backend.as_ref().map_or_else(none, at),
            c.src,
        ),
        true => writeln!(
            out,
            "[{when}] backend {}: invalid response\n  frontend {}, server {server}, event #{number}, src {}",
            c.backend.as_ref().map_or_else(none, at),
            at(&c.frontend),
            c.src,
        ),
    };
    let _ = writeln!(
        out,
        "  buffer starts at 0 (including 0 out), {} free,\n  len {}, wraps at {}, error at position {}\n  \
H1 connection flags {}, H1 stream flags {}\n  H1 msg state {}, H1 msg flags {:#010x}\n  \
H1 chunk len 0 bytes, H1 body len 0 bytes :\n  ",
        rt::bufsize().saturating_sub(c.bytes.len()),
        c.bytes.len(),
        // HAProxy keeps 40 bytes of a buffer for itself, and so does what it prints.
        rt::bufsize().saturating_sub(40),
        c.position,
        if c.response { "0x80000000" } else { "0x00000000" },
        if c.response { "0x00014810" } else { "0x00000810" },
        state(c),
        flags(c),
    );
    bytes(&c.bytes, out);
}

/// The state of HAProxy's parser that stops at such a place: its name and number.
fn state(c: &Captured) -> &'static str {
    match (c.state, c.response) {
        ("method", false) => "MSG_RQMETH(2)",
        ("target", _) => "MSG_RQURI(4)",
        ("version", false) => "MSG_RQVER(6)",
        ("version", true) => "MSG_RPVER(10)",
        ("status", _) => "MSG_RPCODE(12)",
        ("reason", _) => "MSG_RPREASON(14)",
        ("header name", _) => "MSG_HDR_NAME(17)",
        ("line end", _) => "MSG_HDR_L2_LF(23)",
        ("header value" | "headers", _) => "MSG_HDR_L2_LWS(24)",
        ("chunk size" | "chunk extension", _) => "MSG_CHUNK_SIZE(26)",
        ("chunk end", _) => "MSG_CHUNK_CRLF(28)",
        ("trailers", _) => "MSG_TRAILERS(29)",
        _ => "MSG_DATA(27)",
    }
}

/// What HAProxy's parser knows of a message there: its version, its direction, its framing.
fn flags(c: &Captured) -> u32 {
    let versioned = !matches!(c.state, "method" | "target");
    let chunked = c.state.starts_with("chunk") || c.state == "trailers";
    let known = if chunked { 0x11702 } else { 0x1400 };
    known | if versioned { 0x10 } else { 0 } | if c.response { 4 } else { 0 }
}

/// The bytes, each line with its position; a line that goes on is marked with `+`.
fn bytes(bytes: &[u8], out: &mut String) {
    let (mut width, mut fresh) = (usize::MAX, true);
    for (position, b) in bytes.iter().enumerate() {
        let text = escaped(*b);
        if width.saturating_add(text.len()) > WIDTH {
            if position > 0 && !fresh {
                out.push('\n');
            }
            let _ = write!(out, "  {position:05}{} ", if fresh { ' ' } else { '+' });
            width = 0;
        }
        out.push_str(&text);
        width += text.len();
        fresh = *b == b'\n';
        if fresh {
            out.push('\n');
            width = usize::MAX;
        }
    }
    if !fresh {
        out.push('\n');
    }
}

fn escaped(b: u8) -> String {
    match b {
        b'\t' => "\\t".into(),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        0x1b => "\\e".into(),
        b'\\' => "\\\\".into(),
        b' '..=b'~' => char::from(b).into(),
        _ => format!("\\x{b:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_line_by_line_as_the_oracle_does() {
        let mut message = b"GET / HTTP/1.1\r\nHost: x\r\nbad\x01hdr: a\\b\r\nLong: ".to_vec();
        message.extend([b'a'; 92]);
        message.extend(b"\r\n\r\n");
        let mut out = String::new();
        bytes(&message, &mut out);
        let a = |n| "a".repeat(n);
        let wanted = format!(
            "  00000  GET / HTTP/1.1\\r\\n\n  00016  Host: x\\r\\n\n  00025  bad\\x01hdr: a\\\\b\\r\\n\n  \
00039  Long: {}\n  00109+ {}\\r\\n\n  00139  \\r\\n\n",
            a(64),
            a(28)
        );
        assert_eq!(out, wanted);
    }

    #[test]
    fn bytes_without_a_last_line_end_get_one() {
        let mut out = String::new();
        bytes(b"BAD", &mut out);
        assert_eq!(out, "  00000  BAD\n");
        out.clear();
        bytes(b"", &mut out);
        assert_eq!(out, "");
    }
}
