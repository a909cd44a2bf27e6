//! The log tags (manual, table of section 8.2.6).

use std::sync::atomic::Ordering::Relaxed;

use base::time::Wall;
use model::Peer;

use super::{hex, push_hex};
use crate::calendar::{Civil, log_date, zone_suffix};
use crate::env::Env;
use crate::logfmt::Options;
use crate::registry::{TagDef, TagKind};
use crate::sample::append_int;
use crate::timers::Timers;

type Write = for<'a> fn(&Env<'a>, &Options, &mut Vec<u8>) -> Option<()>;

const fn text(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, kind: TagKind::Text, doc }
}

const fn plain(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, kind: TagKind::Plain, doc }
}

const fn number(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, kind: TagKind::Number, doc }
}

const fn running(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, kind: TagKind::Running, doc }
}

const fn list(name: &'static str, write: Write, doc: &'static str) -> TagDef {
    TagDef { name, write, http_only: false, kind: TagKind::List, doc }
}

const fn http(def: TagDef) -> TagDef {
    TagDef { http_only: true, ..def }
}

pub(super) const TAGS: &[TagDef] = &[
    plain("T", |e, _, o| zoned(o, Civil::utc(e, secs(accepted(e)))), "Accept date, UTC."),
    plain("Tl", |e, _, o| zoned(o, Civil::local(e, secs(accepted(e)))), "Accept date, local."),
    number("Ts", |e, p, o| figure(o, p, secs(accepted(e))), "Accept date, seconds since the epoch."),
    plain("t", |e, _, o| millis(e, o, accepted(e)), "Accept date, local, with milliseconds."),
    number("ms", |e, _, o| three(o, accepted(e)), "Milliseconds of the accept date."),
    http(plain("tr", |e, _, o| millis(e, o, requested(e)?), "Request date, local, with milliseconds.")),
    http(plain("trg", |e, _, o| zoned(o, Civil::utc(e, secs(requested(e)?))), "Request date, UTC.")),
    http(plain("trl", |e, _, o| zoned(o, Civil::local(e, secs(requested(e)?))), "Request date, local.")),
    http(running("Ta", |e, _, o| int(o, Timers::of(e).active()), "Active time of the request.")),
    number("Tc", |e, _, o| int(o, Timers::of(e).connect()), "Time to connect to the server."),
    running("Td", |e, _, o| int(o, Timers::of(e).data()), "Time to transfer the response."),
    number("Th", |e, _, o| int(o, Timers::of(e).handshake()), "Time of handshakes."),
    http(number("Ti", |e, _, o| int(o, Timers::of(e).idle()), "Idle time before the request.")),
    http(number("Tq", |e, _, o| int(o, Timers::of(e).client()), "Th + Ti + TR.")),
    http(number("TR", |e, _, o| int(o, Timers::of(e).request()), "Time to receive the request.")),
    http(number("Tr", |e, _, o| int(o, Timers::of(e).response()), "Time of the server to answer.")),
    running("Tt", |e, _, o| int(o, Timers::of(e).total()), "Time in all."),
    running("Tu", |e, _, o| int(o, Timers::of(e).user()), "Time as the client sees it."),
    number("Tw", |e, _, o| int(o, Timers::of(e).queue()), "Time in queues."),
    // What HAProxy 3.5 logs: answers of its own count nothing here.
    running("B", |e, _, o| uint(o, e.txn.down.received), "Bytes from the server."),
    running("U", |e, _, o| uint(o, e.txn.up.received), "Bytes from the client."),
    http(text("CC", |e, _, o| shown(o, e.txn.req_cookie.as_deref()?), "Captured request cookie.")),
    http(text("CS", |e, _, o| shown(o, e.txn.res_cookie.as_deref()?), "Captured response cookie.")),
    text("H", |e, _, o| raw(o, e.live.node().0.as_bytes()), "Host name."),
    http(text("HM", |e, _, o| line(e, o, |l| l.method()), "Method.")),
    http(text("HP", |e, _, o| line(e, o, |l| before_query(l.target())), "Target without query.")),
    http(text("HPO", |e, _, o| line(e, o, |l| wire::uri::path(l.target())), "Path.")),
    http(text("HQ", query, "Query with its question mark.")),
    http(text("HU", |e, _, o| line(e, o, |l| l.target()), "Target.")),
    http(text("HV", |e, _, o| line(e, o, |l| l.version()), "HTTP version.")),
    text("ID", |e, _, o| shown(o, e.txn.unique_id.borrow().as_deref()?), "Unique id."),
    number(
        "ST",
        |e, _, o| int(o, if e.txn.status == 0 && !e.txn.unread { -1 } else { i64::from(e.txn.status) }),
        "Status.",
    ),
    number(
        "ac",
        |e, _, o| uint(o, e.live.world().process.connections.load(Relaxed)),
        "Connections of the process.",
    ),
    text("b", |e, _, o| raw(o, e.live.backend().unwrap_or(e.live.frontend()).name.as_bytes()), "Backend."),
    number(
        "bc",
        |e, _, o| uint(o, e.live.backend().map_or(0, |b| b.back.current.load(Relaxed))),
        "Requests of the backend.",
    ),
    text("bi", |e, p, o| ip(o, p, e.server_source()), "Local address of the server connection."),
    number("bp", |e, p, o| port(o, p, e.server_source()), "Local port of the server connection."),
    number("bq", |e, _, o| uint(o, e.txn.queue_positions.1), "Requests ahead in the backend's queue."),
    text("ci", |e, p, o| ip(o, p, e.src()), "Client address."),
    number("cp", client_port, "Client port."),
    text("f", |e, _, o| raw(o, e.live.frontend().name.as_bytes()), "Frontend."),
    number(
        "fc",
        |e, _, o| uint(o, e.live.frontend().front.current.load(Relaxed)),
        "Connections of the frontend.",
    ),
    text("fi", |e, p, o| ip(o, p, e.dst()), "Address that the client connected to."),
    number("fp", |e, p, o| port(o, p, e.dst()), "Port that the client connected to."),
    text("ft", frontend, "Frontend, with '~' behind it on TLS."),
    number("lc", |e, _, o| uint(o, e.txn.log_number.get()), "Lines logged by the frontend."),
    text("hr", |e, _, o| braces(o, &e.txn.req_captures.borrow()), "Captured request headers."),
    list("hrl", |e, _, o| separate(o, &e.txn.req_captures.borrow()), "Captured request headers, as a list."),
    text("hs", |e, _, o| braces(o, &e.txn.res_captures.borrow()), "Captured response headers."),
    list("hsl", |e, _, o| separate(o, &e.txn.res_captures.borrow()), "Captured response headers, as a list."),
    text("OG", origin, "When the line was made."),
    number("pid", |e, p, o| figure(o, p, i64::from(e.live.node().1)), "Number of the process."),
    http(text("r", |e, _, o| line(e, o, |l| &l.bytes), "Request line.")),
    number("rc", retries, "Retries, with '+' after a redispatch."),
    number(
        "rt",
        |e, p, o| figure(o, p, i64::try_from(e.txn.serial & 0xffff_ffff).unwrap_or(0)),
        "Number of the transaction.",
    ),
    text("s", |e, _, o| raw(o, e.live.server().map_or(nobody(e), |s| s.name.as_bytes())), "Server."),
    number(
        "sc",
        |e, _, o| uint(o, e.live.server().map_or(0, |s| s.served.load(Relaxed))),
        "Requests of the server.",
    ),
    text("si", |e, p, o| ip(o, p, e.txn.server_conn.dst), "Address of the server."),
    number("sp", |e, p, o| port(o, p, e.txn.server_conn.dst), "Port of the server."),
    number("sq", |e, _, o| uint(o, e.txn.queue_positions.0), "Requests ahead in the server's queue."),
    text("sslc", |e, _, o| raw(o, e.conn.secured()?.cipher.as_bytes()), "Cipher of the client connection."),
    text(
        "sslv",
        |e, _, o| raw(o, e.conn.secured()?.version.as_bytes()),
        "TLS version of the client connection.",
    ),
    plain("ts", |e, _, o| raw(o, &e.txn.term.two()), "Termination state."),
    http(plain("tsc", |e, _, o| raw(o, &e.txn.term.four()), "Termination state with cookie status.")),
];

fn frontend(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(env.live.frontend().name.as_bytes());
    if env.conn.secured().is_some() {
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

/// The port, or the number of the listener where there are no ports.
fn client_port(env: &Env<'_>, options: &Options, out: &mut Vec<u8>) -> Option<()> {
    match env.src() {
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
    if captures.is_empty() {
        return None;
    }
    for (i, value) in captures.iter().enumerate() {
        if i > 0 {
            out.push(0);
        }
        match value.as_deref() {
            Some(value) if !value.is_empty() => capture(out, value),
            _ => out.push(b'-'),
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
    if env.txn.by_service { b"<STATS>" } else { b"<NOSRV>" }
}

fn retries(env: &Env<'_>, _: &Options, out: &mut Vec<u8>) -> Option<()> {
    if env.txn.redispatched {
        out.push(b'+');
    }
    uint(out, env.txn.retries)
}
