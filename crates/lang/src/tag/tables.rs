//! The log tags (manual, table of section 8.2.6).

use std::sync::atomic::Ordering::Relaxed;

use base::time::Wall;
use model::Peer;

use super::{hex, push_hex};
use crate::calendar::{Civil, log_date, zone_suffix};
use crate::env::Env;
use crate::logfmt::{Known, Options, TagDef, TagKind};
use crate::sample::append_int;
use crate::timers::Timers;

type Write = for<'a> fn(&Env<'a>, &Options, &mut Vec<u8>) -> Option<()>;

const fn text(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Text, doc }
}

const fn plain(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Plain, doc }
}

const fn number(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Number, doc }
}

const fn figures(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Figure, doc }
}

const fn running(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Running, doc }
}

const fn encoded(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: true, known: Known::Request, kind: TagKind::Encoded, doc }
}

const fn captures(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Captures, doc }
}

const fn address(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::Address, doc }
}

const fn list(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, known: Known::Early, kind: TagKind::List, doc }
}

const fn http(def: TagDef) -> TagDef {
    TagDef { http_only: true, ..def }
}

/// Known with the head of the response, or the connection to the server.
const fn response(def: TagDef) -> TagDef {
    TagDef { known: Known::Response, ..def }
}

/// Known at the end.
const fn end(def: TagDef) -> TagDef {
    TagDef { known: Known::End, ..def }
}

pub(super) const TAGS: &[TagDef] = &[
    plain("T", |e, _, o| zoned(o, Civil::utc(e, secs(accepted(e)))), "Accept date, UTC."),
    plain("Tl", |e, _, o| zoned(o, Civil::local(e, secs(accepted(e)))), "Accept date, local."),
    figures("Ts", |e, p, o| figure(o, p, secs(accepted(e))), "Accept date, seconds since the epoch."),
    plain("t", |e, _, o| millis(e, o, accepted(e)), "Accept date, local, with milliseconds."),
    number("ms", |e, _, o| three(o, accepted(e)), "Milliseconds of the accept date."),
    http(plain("tr", |e, _, o| millis(e, o, requested(e)?), "Request date, local, with milliseconds.")),
    http(plain("trg", |e, _, o| zoned(o, Civil::utc(e, secs(requested(e)?))), "Request date, UTC.")),
    http(plain("trl", |e, _, o| zoned(o, Civil::local(e, secs(requested(e)?))), "Request date, local.")),
    end(http(running("Ta", |e, _, o| int(o, Timers::of(e).active()), "Active time of the request."))),
    end(number("Tc", |e, _, o| int(o, Timers::of(e).connect()), "Time to connect to the server.")),
    end(number("Td", |e, _, o| int(o, Timers::of(e).data()), "Time to transfer the response.")),
    end(number("Th", |e, _, o| int(o, Timers::of(e).handshake()), "Time of handshakes.")),
    end(http(number("Ti", |e, _, o| int(o, Timers::of(e).idle()), "Idle time before the request."))),
    end(http(number("Tq", |e, _, o| int(o, Timers::of(e).client()), "Th + Ti + TR."))),
    end(http(number("TR", |e, _, o| int(o, Timers::of(e).request()), "Time to receive the request."))),
    end(http(number("Tr", |e, _, o| int(o, Timers::of(e).response()), "Time of the server to answer."))),
    end(running("Tt", |e, _, o| int(o, Timers::of(e).total()), "Time in all.")),
    end(running("Tu", |e, _, o| int(o, Timers::of(e).user()), "Time as the client sees it.")),
    end(number("Tw", |e, _, o| int(o, Timers::of(e).queue()), "Time in queues.")),
    // What HAProxy 3.5 logs: answers of its own count nothing here.
    end(running("B", |e, _, o| uint(o, e.txn.shown().1.received), "Bytes from the server.")),
    end(number("U", |e, _, o| uint(o, e.txn.shown().0.received), "Bytes from the client.")),
    response(http(text("CC", |e, _, o| raw(o, e.txn.req_cookie.as_deref()?), "Captured request cookie."))),
    response(http(text("CS", |e, _, o| raw(o, e.txn.res_cookie.as_deref()?), "Captured response cookie."))),
    text("H", |e, _, o| raw(o, e.live.node().0.as_bytes()), "Host name."),
    encoded("HM", |e, _, o| line(e, o, |l| l.method()), "Method."),
    encoded("HP", |e, _, o| line(e, o, |l| before_query(l.target())), "Target without query."),
    encoded("HPO", |e, _, o| line(e, o, |l| path(l.target())), "Path; nothing for `*`."),
    encoded("HQ", query, "Query with its question mark."),
    encoded("HU", |e, _, o| line(e, o, |l| l.target()), "Target."),
    encoded("HV", |e, _, o| line(e, o, |l| l.version()), "HTTP version."),
    end(text("ID", unique_id, "Unique id.")),
    response(number(
        "ST",
        |e, _, o| {
            // Where nothing looks at HTTP there is no status that could be missing.
            let awaited = e.conn.http_major.get() > 0 || e.txn.awaits_http;
            let missing = e.txn.status == 0 && !e.txn.unread && !e.txn.hinted && awaited;
            int(o, if missing { -1 } else { i64::from(e.txn.status) })
        },
        "Status.",
    )),
    end(number(
        "ac",
        |e, _, o| uint(o, e.live.world().process.connections.load(Relaxed)),
        "Connections of the process.",
    )),
    text("b", |e, _, o| raw(o, e.live.backend().unwrap_or(e.live.frontend()).name.as_bytes()), "Backend."),
    end(number(
        "bc",
        |e, _, o| uint(o, e.live.backend().unwrap_or(e.live.frontend()).back.current.load(Relaxed)),
        "Requests of the backend.",
    )),
    response(address("bi", |e, p, o| ip(o, p, e.server_source()), "Local address of the server connection.")),
    response(figures(
        "bp",
        |e, p, o| server_port(o, p, e.server_source()),
        "Local port of the server connection.",
    )),
    end(number("bq", |e, _, o| uint(o, e.txn.queue_positions.1), "Requests ahead in the backend's queue.")),
    response(address("ci", |e, p, o| ip(o, p, e.src()), "Client address.")),
    response(figures("cp", client_port, "Client port.")),
    text("f", |e, _, o| raw(o, e.live.frontend().name.as_bytes()), "Frontend."),
    end(number(
        "fc",
        |e, _, o| uint(o, e.live.frontend().front.current.load(Relaxed)),
        "Connections of the frontend.",
    )),
    response(address("fi", |e, p, o| ip(o, p, e.dst()), "Address that the client connected to.")),
    response(figures(
        "fp",
        |e, p, o| listener_port(e, p, o, e.dst()),
        "Port that the client connected to, or the listener's number.",
    )),
    TagDef {
        http_only: false,
        known: Known::Early,
        ..encoded("ft", frontend, "Frontend, with '~' behind it on TLS.")
    },
    figures(
        "lc",
        |e, p, o| figure(o, p, i64::try_from(e.txn.log_number.get()).unwrap_or(i64::MAX)),
        "Lines logged by the frontend.",
    ),
    response(captures("hr", |e, _, o| braces(o, &e.txn.req_captures.borrow()), "Captured request headers.")),
    response(list(
        "hrl",
        |e, _, o| separate(o, &e.txn.req_captures.borrow()),
        "Captured request headers, as a list.",
    )),
    response(captures("hs", |e, _, o| braces(o, &e.txn.res_captures.borrow()), "Captured response headers.")),
    response(list(
        "hsl",
        |e, _, o| separate(o, &e.txn.res_captures.borrow()),
        "Captured response headers, as a list.",
    )),
    text("OG", origin, "When the line was made."),
    figures("pid", |e, p, o| figure(o, p, i64::from(e.live.node().1)), "Number of the process."),
    encoded("r", |e, _, o| line(e, o, |l| &l.bytes), "Request line."),
    end(number("rc", retries, "Retries, with '+' after a redispatch.")),
    TagDef {
        known: Known::Request,
        ..figures(
            "rt",
            |e, p, o| figure(o, p, i64::try_from(e.txn.serial & 0xffff_ffff).unwrap_or(0)),
            "Number of the transaction.",
        )
    },
    response(text(
        "s",
        |e, _, o| raw(o, e.live.server().map_or(nobody(e), |s| s.name.as_bytes())),
        "Server.",
    )),
    end(number(
        "sc",
        |e, _, o| uint(o, e.live.server().map_or(0, |s| s.served.load(Relaxed))),
        "Requests of the server.",
    )),
    response(address("si", |e, p, o| ip(o, p, e.txn.server_conn.dst), "Address of the server.")),
    response(figures("sp", |e, p, o| server_port(o, p, e.txn.server_conn.dst), "Port of the server.")),
    end(number("sq", |e, _, o| uint(o, e.txn.queue_positions.0), "Requests ahead in the server's queue.")),
    response(text(
        "sslc",
        |e, _, o| raw(o, e.conn.secured()?.cipher.as_bytes()),
        "Cipher of the client connection.",
    )),
    response(text(
        "sslv",
        |e, _, o| raw(o, e.conn.secured()?.version.as_bytes()),
        "TLS version of the client connection.",
    )),
    end(plain("ts", |e, _, o| raw(o, &e.txn.term.two()), "Termination state.")),
    http(plain("tsc", |e, _, o| raw(o, &e.txn.term.four()), "Termination state with cookie status.")),
];

fn frontend(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(env.live.frontend().name.as_bytes());
    if env.conn.tls.get() || env.conn.secured().is_some() {
        out.push(b'~');
    }
    Some(())
}

fn raw(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    out.extend_from_slice(bytes);
    Some(())
}

fn int(out: &mut Vec<u8>, n: i64) -> Option<()> {
    append_int(out, n);
    Some(())
}

fn uint(out: &mut Vec<u8>, n: impl Into<u64>) -> Option<()> {
    int(out, i64::try_from(n.into()).unwrap_or(i64::MAX))
}

/// A number that `+X` writes in at least four hexadecimal digits.
fn figure(out: &mut Vec<u8>, options: &Options, n: i64) -> Option<()> {
    if !options.hex {
        return int(out, n);
    }
    let bytes = (n as u64).to_be_bytes();
    let from = bytes.iter().position(|b| *b != 0).unwrap_or(8).min(6);
    bytes[from..].iter().for_each(|b| out.extend(hex(*b)));
    Some(())
}

fn accepted(env: &Env<'_>) -> Wall {
    Timers::of(env).accept_date()
}

fn requested(env: &Env<'_>) -> Option<Wall> {
    Some(env.txn.times.request_date.unwrap_or_else(|| accepted(env)))
}

fn secs(date: Wall) -> i64 {
    i64::try_from(date.as_secs()).unwrap_or(i64::MAX)
}

fn zoned(out: &mut Vec<u8>, date: Civil) -> Option<()> {
    log_date(out, &date);
    zone_suffix(out, &date);
    Some(())
}

fn millis(env: &Env<'_>, out: &mut Vec<u8>, date: Wall) -> Option<()> {
    log_date(out, &Civil::local(env, secs(date)));
    out.push(b'.');
    three(out, date)
}

/// An empty one is as good as none.
fn unique_id(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    env.with_unique_id(|id| if id.is_empty() { None } else { raw(out, id) })?
}

fn three(out: &mut Vec<u8>, date: Wall) -> Option<()> {
    let ms = date.subsec_millis();
    out.extend([ms / 100, ms / 10 % 10, ms % 10].map(|d| b'0' + d as u8));
    Some(())
}

fn ip(out: &mut Vec<u8>, options: &Options, peer: Peer) -> Option<()> {
    match peer {
        Peer::Unix => raw(out, b"unix"),
        Peer::Unknown => None,
        Peer::Inet(a) if options.hex => {
            match a.ip() {
                std::net::IpAddr::V4(a) => a.octets().iter().for_each(|b| out.extend(hex(*b))),
                std::net::IpAddr::V6(a) => a.octets().iter().for_each(|b| out.extend(hex(*b))),
            }
            Some(())
        }
        Peer::Inet(a) => {
            crate::sample::Value::from(a.ip()).append_text(out);
            Some(())
        }
    }
}

fn port(out: &mut Vec<u8>, options: &Options, peer: Peer) -> Option<()> {
    figure(out, options, i64::from(peer.port()?))
}

/// The port of an end of a connection to a server: zero where there are no ports.
fn server_port(out: &mut Vec<u8>, options: &Options, peer: Peer) -> Option<()> {
    match peer {
        Peer::Unix => figure(out, options, 0),
        peer => port(out, options, peer),
    }
}

fn client_port(env: &Env<'_>, options: &Options, out: &mut Vec<u8>) -> Option<()> {
    listener_port(env, options, out, env.src())
}

/// The port, or the number of the listener where there are no ports.
fn listener_port(env: &Env<'_>, options: &Options, out: &mut Vec<u8>, peer: Peer) -> Option<()> {
    match peer {
        Peer::Unix => figure(out, options, i64::from(env.live.listener()?.id)),
        peer => port(out, options, peer),
    }
}

/// Text of a peer: what terminals or log tools could stumble over becomes `#XX` (section 8.6).
fn shown(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    encode(out, bytes, |c| matches!(c, b'"' | b'#'));
    Some(())
}

fn encode(out: &mut Vec<u8>, bytes: &[u8], special: impl Fn(u8) -> bool) {
    for &c in bytes {
        if !(b' '..=b'~').contains(&c) || special(c) {
            push_hex(out, b'#', c);
        } else {
            out.push(c);
        }
    }
}

fn capture(out: &mut Vec<u8>, bytes: &[u8]) {
    encode(out, bytes, |c| matches!(c, b'"' | b'#' | b'{' | b'|' | b'}'));
}

type Captures = [Option<Box<[u8]>>];

fn braces(out: &mut Vec<u8>, captures: &Captures) -> Option<()> {
    if captures.is_empty() {
        return Some(());
    }
    for (i, value) in captures.iter().enumerate() {
        out.push(if i == 0 { b'{' } else { b'|' });
        capture(out, value.as_deref().unwrap_or_default());
    }
    out.push(b'}');
    Some(())
}

fn separate(out: &mut Vec<u8>, captures: &Captures) -> Option<()> {
    for (i, value) in captures.iter().enumerate() {
        if i > 0 {
            out.push(0);
        }
        match value.as_deref() {
            Some(value) => capture(out, value),
            None => out.push(b'-'),
        }
    }
    Some(())
}

const BAD: &[u8] = b"<BADREQ>";

fn line(
    env: &Env<'_>,
    out: &mut Vec<u8>,
    part: for<'l> fn(&'l model::txn::RequestLine) -> &'l [u8],
) -> Option<()> {
    if env.txn.line.bytes.is_empty() {
        return raw(out, BAD);
    }
    shown(out, part(&env.txn.line))
}

fn before_query(target: &[u8]) -> &[u8] {
    target.split(|c| *c == b'?').next().unwrap_or_default()
}

fn path(target: &[u8]) -> &[u8] {
    if target == b"*" { b"" } else { wire::uri::path(target) }
}

fn query(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    let line = &env.txn.line;
    if line.bytes.is_empty() {
        return raw(out, BAD);
    }
    let target = line.target();
    let mark = target.iter().position(|c| *c == b'?').unwrap_or(target.len());
    shown(out, &target[mark..])
}

fn origin(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    raw(out, env.txn.origin.get().text().as_bytes())
}

/// What stands in the place of a server's name.
fn nobody(env: &Env<'_>) -> &'static [u8] {
    env.txn.by_service.map_or(&b"<NOSRV>"[..], str::as_bytes)
}

fn retries(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    if env.txn.redispatched {
        out.push(b'+');
    }
    uint(out, env.txn.retries)
}
