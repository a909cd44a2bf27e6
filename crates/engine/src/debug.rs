//! `-d`: what happens to streams, told on the standard output stream, a line for each event and each field of
//! a head as it came, before rules change it (management guide, chapters 3 and 12).

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use model::Peer;
use wire::head::Head;

use crate::stream::Stream;

static ON: AtomicBool = AtomicBool::new(false);

/// Tells from now on.
pub fn begin() {
    ON.store(true, Relaxed);
}

/// A stream of mode tcp has begun.
#[inline]
pub fn accepted(stream: &mut Stream<'_>) {
    if ON.load(Relaxed) {
        tell_client(stream);
    }
}

/// A request has come: the beginning of its stream, unless that was one of mode tcp.
#[inline]
pub fn requested(stream: &mut Stream<'_>) {
    if ON.load(Relaxed) {
        if stream.http.shown.is_none() {
            tell_client(stream);
        }
        let head = Heads { first: "clireq", field: "clihdr", head: &stream.txn.req };
        tell_head(stream, &stream.txn.line.bytes, head);
    }
}

/// A connection to a server stands.
#[inline]
pub fn reached(stream: &mut Stream<'_>) {
    if ON.load(Relaxed)
        && let Some(upstream) = &stream.upstream
    {
        stream.http.shown = Some(Some(upstream.raw().number()));
    }
}

/// A response has come, from a server or a service.
#[inline]
pub fn answered(stream: &mut Stream<'_>) {
    if ON.load(Relaxed) {
        stream.http.shown.get_or_insert_default().get_or_insert(-1);
        let res = &stream.txn.res;
        let line =
            [res.version_read(), b" ", res.status().to_string().as_bytes(), b" ", res.reason()].concat();
        tell_head(stream, &line, Heads { first: "srvrep", field: "srvhdr", head: res });
    }
}

/// The stream is over.
#[inline]
pub fn over(stream: &mut Stream<'_>) {
    if let Some(server) = stream.http.shown {
        tell_end(stream, server.is_some() || stream.service.is_some());
        stream.http.shown = None;
    }
}

/// A head with the words that its lines begin with.
struct Heads<'h> {
    first: &'static str,
    field: &'static str,
    head: &'h Head,
}

fn tell_client(stream: &mut Stream<'_>) {
    stream.http.shown = Some(None);
    let conn = stream.client.conn();
    let bind = stream.frontend().binds.get(stream.client.listener as usize);
    let source = match conn.src.get() {
        Peer::Inet(at) => format!("{}:{}", at.ip(), at.port()),
        _ => format!("unix:{}", bind.map_or(0, |bind| bind.state.id)),
    };
    let alpn = conn.secured().and_then(|facts| facts.alpn.as_deref());
    let alpn = alpn.map_or("<none>".into(), String::from_utf8_lossy);
    let listener = bind.map_or(-1, |bind| bind.state.socket.load(Relaxed)) as u16;
    let [client, _] = numbers(stream);
    say(format!("{}.accept({listener:04x})={client:04x} from [{source}] ALPN={alpn}\n", whose(stream))
        .as_bytes());
}

/// `served`: a server or a service had a part in it.
fn tell_end(stream: &Stream<'_>, served: bool) {
    let [client, server] = numbers(stream).map(|number| number as u16);
    let mut out = Vec::new();
    for word in ["srvcls", "clicls", "closed"].into_iter().skip(usize::from(!served)) {
        let _ = writeln!(out, "{}.{word}[{client:04x}:{server:04x}]", whose(stream));
    }
    say(&out);
}

fn tell_head(stream: &Stream<'_>, line: &[u8], heads: Heads<'_>) {
    let [client, server] = numbers(stream);
    let whose = whose(stream);
    let mut out = Vec::new();
    let mut put = |word: &str, text: &[&[u8]]| {
        let _ = write!(out, "{whose}.{word}[{client:04x}:{server:04x}]: ");
        text.iter().for_each(|part| out.extend_from_slice(part));
        out.push(b'\n');
    };
    put(heads.first, &[line]);
    for (_, name, value) in heads.head.fields() {
        put(heads.field, &[&name.to_ascii_lowercase(), b": ", value]);
    }
    say(&out);
}

/// Number of the stream and name of its proxy.
fn whose(stream: &Stream<'_>) -> String {
    format!("{:08x}:{}", stream.txn.serial, stream.backend().name)
}

/// The descriptors of both connections, -1 for one that is not there.
fn numbers(stream: &Stream<'_>) -> [i32; 2] {
    let client = match &stream.client.part {
        Some(part) => part.lead.upgrade().map_or(-1, |lead| lead.socket.raw().number()),
        None => stream.client.socket.raw().number(),
    };
    [client, stream.http.shown.flatten().unwrap_or(-1)]
}

/// Writes whole lines. Where nobody reads any more there is nothing to tell.
fn say(lines: &[u8]) {
    let _ = std::io::stdout().lock().write_all(lines);
    let _ = std::io::stdout().flush();
}
