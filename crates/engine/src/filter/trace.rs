//! `filter trace` (section 9.1): what happens to a stream, told on the standard error stream, and data that
//! pass in pieces of chance size.

use std::fmt::Write as _;

use lang::env::Side;
use lang::filter::Gate;
use program::filter::Trace;

use crate::stream::Stream;

/// Goes through the traces of a stream, frontend's first, each with the proxy that it belongs to.
pub fn each(stream: &Stream<'_>, mut f: impl FnMut(&str, &Trace)) {
    let (front, back) = (stream.frontend(), stream.backend());
    let other = (!std::ptr::eq(front, &*back)).then_some(&*back);
    for proxy in std::iter::once(front).chain(other) {
        proxy.traces.iter().for_each(|t| f(&proxy.name, t));
    }
}

/// Whether it has any.
pub fn is_traced(stream: &Stream<'_>) -> bool {
    !stream.frontend().traces.is_empty() || !stream.backend().traces.is_empty()
}

/// The traces of one direction, with their places among the filters.
pub fn filters(stream: &Stream<'_>, side: Side) -> Vec<(u32, Box<dyn Gate>)> {
    let at = usize::from(side == Side::Response);
    let mut all = Vec::new();
    each(stream, |proxy, trace| {
        let Some(order) = trace.order[at] else { return };
        let label = label(trace, proxy);
        let filter = Traced { trace: trace.clone(), label, what: what(stream, side), offset: 0 };
        all.push((order, Box::new(filter) as Box<dyn Gate>));
    });
    all
}

fn label(trace: &Trace, proxy: &str) -> String {
    format!("[{:<20}] ", format!("{}/{proxy}", trace.name))
}

fn what(stream: &Stream<'_>, side: Side) -> String {
    let http = stream.txn.has_req;
    let (call, mode) = if http { ("trace_http_payload", "HTTP") } else { ("trace_tcp_payload", "TCP") };
    let channel = if side == Side::Request { "REQUEST" } else { "RESPONSE" };
    format!("[strm {}] {call:<25}: channel={channel:<10} - mode={mode:<5}", stream.txn.serial)
}

/// A trace of one direction.
struct Traced {
    trace: Trace,
    label: String,
    what: String,
    offset: u64,
}

impl Gate for Traced {
    fn admit(&mut self, _: u64, ready: usize) -> Result<usize, u64> {
        let most = if self.trace.most > 0 { ready.min(self.trace.most) } else { ready };
        if !self.trace.random || most == 0 {
            return Ok(most);
        }
        Ok(1 + usize::try_from(rt::random() % most as u64).unwrap_or(0))
    }

    fn passed(&mut self, _: u64, bytes: &[u8]) {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        if self.trace.quiet {
            return;
        }
        let mut text = format!("{}{} - offset={offset} - forward={}\n", self.label, self.what, bytes.len());
        if self.trace.hexdump {
            dump(bytes, &mut text);
        }
        say(&text);
    }
}

/// Bytes in rows of 16, in hexadecimal and as text.
fn dump(bytes: &[u8], out: &mut String) {
    for (row, chunk) in bytes.chunks(16).enumerate() {
        let mut hex = String::new();
        for (i, b) in chunk.iter().enumerate() {
            let _ = write!(hex, "{}{b:02x} ", if i == 8 { "  " } else { "" });
        }
        let text: String =
            chunk.iter().map(|b| if (32..127).contains(b) { char::from(*b) } else { '.' }).collect();
        let _ = writeln!(out, "\t0x{:06x}: {hex:<50}  |{text}|", row * 16);
    }
}

fn tell(stream: &Stream<'_>, call: &str, rest: &str) {
    let serial = stream.txn.serial;
    each(stream, |proxy, trace| {
        if !trace.quiet {
            say(&format!("{}[strm {serial}] {call:<25}{rest}\n", label(trace, proxy)));
        }
    });
}

/// A stream begins.
pub fn started(stream: &Stream<'_>) {
    tell(stream, "trace_stream_start", "");
}

/// A head is about to be sent.
pub fn headers(stream: &Stream<'_>, side: Side) {
    if !is_traced(stream) {
        return;
    }
    let (head, channel) = match side {
        Side::Request => (&stream.txn.req, "REQUEST"),
        Side::Response => (&stream.txn.res, "RESPONSE"),
    };
    let mut text = format!(": channel={channel:<10} - mode=HTTP ");
    for (_, name, value) in head.fields() {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        let _ = write!(text, "\n\t{name}: {value}");
    }
    tell(stream, "trace_http_headers", &text);
}

/// A stream ends.
pub fn stopped(stream: &Stream<'_>) {
    if stream.txn.serial != model::Txn::UNNUMBERED {
        tell(stream, "trace_stream_stop", "");
    }
}

/// Writes to the standard error stream, for whoever traces wants each line there when the next event comes.
fn say(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), text.as_bytes());
}
