//! `show sess`, `shutdown session`, `shutdown sessions server`: the client connections of all workers.
//!
//! An id is the number of the connection, in hexadecimal like the addresses that HAProxy shows: to tools it
//! is opaque anyway.

use std::fmt::Write;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::fleet::Held;
use engine::Worker;
use engine::sessions::Session;
use model::Peer;
use model::term::Cause;
use program::address::Listen;
use program::{Program, Proxy};

use super::basic::duration;
use crate::cli::anon::Anon;
use crate::cli::call::{Call, Outcome, Refusal, Reply, find_proxy};
use crate::cli::table::Command;
use crate::gather::gather;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::later(
        &["show", "sess"],
        "[help|<id>|all] [opts...]",
        "client connections",
        Level::Operator,
        show,
    ),
    Command::later(&["shutdown", "session"], "[id]", "end a client connection", Level::Admin, shutdown),
    Command::later(
        &["shutdown", "sessions", "server"],
        "<bk>/<srv>",
        "end the client connections of a server",
        Level::Admin,
        shutdown_server,
    ),
];

const HELP: &str = "\
Usage: show sess [<id> | all | help] [<options>*]
Lists client connections with a request at hand, and those of TCP. What to list:
   <id>         this one alone (0x...), with all that is known
   all          all of them, with all that is known
   help         these lines
Options:
   show-uri     with the line of the request, where it is logged
   older <age>  only those older than this many seconds
   server <b/s> only those on this server
   backend <b>  only those on this backend
   frontend <f> only those on this frontend
";

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    id: Option<u64>,
    long: bool,
    older: u64,
    none: bool,
    frontend: Option<u32>,
    backend: Option<u32>,
    server: Option<u32>,
    anon: Anon,
    /// `show-uri`.
    uri: bool,
}

/// `show sess`.
pub fn show<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let wanted = match wanted(call)? {
            Some(wanted) => wanted,
            None => return Ok(Reply::Dump(HELP.into())),
        };
        let by_id = wanted.id.is_some();
        let texts = gather(move |w| list(w, &wanted)).await;
        let text: String = texts.into_iter().map(|(_, text)| text).collect();
        Ok(Reply::Dump(if by_id && text.is_empty() { "Session not found.\n".into() } else { text }))
    })
}

fn wanted(call: &Call<'_>) -> Result<Option<Wanted>, Refusal> {
    let mut wanted = Wanted { anon: call.client.anon, ..Wanted::default() };
    let mut words = call.args().iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or("");
        match word {
            "help" => return Ok(None),
            "all" => wanted.long = true,
            "show-uri" => wanted.uri = true,
            // What HAProxy calls suspicious are streams that nothing will ever wake: here each has a
            // deadline.
            "susp" => wanted.none = true,
            "older" => {
                let age = match value() {
                    "" => return Err("Expects a minimum age (in seconds by default).".into()),
                    text => duration(text, Duration::from_secs(1)),
                };
                wanted.older = age.ok_or("Invalid age.")?.as_secs();
            }
            "frontend" => {
                let found = find_proxy(call.shared(), value(), |p| p.is_frontend);
                wanted.frontend = Some(found.ok_or("No such frontend.")?.0);
            }
            "backend" => wanted.backend = Some(call.find_backend(value()).ok_or("No such backend.")?.0),
            "server" => {
                let at = call.server_called(value())?;
                (wanted.backend, wanted.server) = (Some(at.proxy), Some(at.server));
            }
            word => match parse_id(word) {
                Some(id) => (wanted.id, wanted.long) = (Some(id), true),
                None => {
                    return Err(format!("Unsupported option '{word}', try 'help' for more info.").into());
                }
            },
        }
    }
    Ok(Some(wanted))
}

fn parse_id(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// The id of a connection; never 0.
fn id(session: &Session) -> u64 {
    session.conn.serial + 1
}

impl Wanted {
    /// Whether a connection is to be listed. One without a stream, at rest or with a request that has yet to
    /// come, never is.
    fn is(&self, s: &Session, program: &Arc<Program>) -> bool {
        let (backend, server) = s.place_in(program);
        s.streams.get() > 0
            && self.id.is_none_or(|wanted| wanted == id(s))
            && age(s) >= self.older
            && !self.none
            && self.frontend.is_none_or(|f| s.frontend_in(program) == Some(f))
            && (self.backend.is_none() || backend == self.backend)
            && (self.server.is_none() || server == self.server)
    }
}

fn age(s: &Session) -> u64 {
    rt::now().since(s.conn.accepted).as_secs()
}

/// The matching connections of a worker.
fn list(worker: &Rc<Worker>, wanted: &Wanted) -> String {
    let mut out = String::new();
    for s in worker.sessions.all().iter().filter(|s| wanted.is(s, &worker.shared.program)) {
        let write = if wanted.long { long } else { short };
        write(worker, s, wanted, &mut out);
    }
    out
}

struct Names<'w> {
    frontend: &'w Proxy,
    backend: Option<Held<'w, Proxy>>,
    server: Option<Held<'w, program::Server>>,
    protocol: &'static str,
    source: String,
}

fn names<'p>(program: &'p Program, s: &Session, anon: Anon) -> Names<'p> {
    let frontend = program.configured(s.conn.frontend.get());
    let backend = s.backend.get().and_then(|b| program.proxies.get(b as usize));
    let server = || program.find_server(s.backend.get()?, s.server.get()?);
    let bind = frontend.binds.get(s.conn.listener.get() as usize);
    let protocol = match (s.conn.src.get(), bind.map(|b| &b.address)) {
        (Peer::Inet(a), _) if a.is_ipv4() => "tcpv4",
        (Peer::Inet(_), _) => "tcpv6",
        (_, Some(Listen::SockPair(_))) => "sockpair",
        _ => "unix_stream",
    };
    let source = match s.conn.src.get() {
        Peer::Unix => format!("unix:{}", bind.map_or(0, |b| b.state.id)),
        peer => anon.peer(peer),
    };
    Names { frontend, backend, server: server(), protocol, source }
}

fn short(_: &Worker, s: &Session, wanted: &Wanted, out: &mut String) {
    let (anon, program) = (wanted.anon, s.program.borrow().clone());
    let n = names(&program, s, anon);
    let _ = writeln!(
        out,
        "0x{:x}: proto={} src={} fe={} be={} srv={} ts=00 epoch=0 age={}s calls={} rate=0 cpu=0 lat=0 \
rq[f=0h,i=0,an=00h,ax=] rp[f=0h,i=0,an=00h,ax=] scf=[8,0h,fd=-1,rex=,wex=] \
scb=[{},0h,fd=-1,rex=,wex=] exp= rc=0 c_exp={}",
        id(s),
        n.protocol,
        n.source,
        anon.word(&n.frontend.name),
        n.backend.as_ref().map_or("<NONE>".into(), |b| anon.word(&b.name)),
        n.server.as_ref().map_or("<none>".into(), |s| anon.word(&s.name)),
        age(s),
        s.conn.requests.get(),
        if n.server.is_some() { 8 } else { 0 },
        uri(s, wanted),
    );
}

fn long(worker: &Worker, s: &Session, wanted: &Wanted, out: &mut String) {
    let (anon, program) = (wanted.anon, s.program.borrow().clone());
    let n = names(&program, s, anon);
    let mode = |p: &Proxy| p.mode.word();
    let date = crate::cli::date::micros(s.conn.accept_date);
    let _ = writeln!(
        out,
        "0x{:x}: [{date}] id={} proto={} source={}",
        id(s),
        s.conn.serial,
        n.protocol,
        n.source
    );
    let _ = writeln!(
        out,
        "  requests={} streams={} idle={} glitches={} error={}{}",
        s.conn.requests.get(),
        s.streams.get(),
        u8::from(s.idle.get()),
        s.conn.glitches.get(),
        s.conn.error.get().0,
        uri(s, wanted),
    );
    let bind = n.frontend.binds.get(s.conn.listener.get() as usize);
    let _ = writeln!(
        out,
        "  frontend={} (id={} mode={}), listener={} (id={}) addr={}",
        anon.word(&n.frontend.name),
        n.frontend.state.id,
        mode(n.frontend),
        bind.map_or("?", |b| if b.state.name.is_empty() { "?" } else { &b.state.name }),
        bind.map_or(0, |b| b.state.id),
        anon.peer(s.conn.dst.get()),
    );
    let _ = match &n.backend {
        Some(b) => writeln!(out, "  backend={} (id={} mode={})", anon.word(&b.name), b.state.id, mode(b)),
        None => writeln!(out, "  backend=<NONE> (id=-1 mode=-)"),
    };
    let _ = match &n.server {
        Some(server) => writeln!(
            out,
            "  server={} (id={}) addr={}",
            anon.word(&server.name),
            server.state.id,
            anon.server(&crate::server_state::full_address(server))
        ),
        None => writeln!(out, "  server=<NONE> (id=-1)"),
    };
    sides(worker, s, &n, anon, out);
}

/// The task that serves a connection, and both ends of what it connects.
fn sides(worker: &Worker, s: &Session, n: &Names<'_>, anon: Anon, out: &mut String) {
    let (conn, thread) = (&s.conn, worker.index + 1);
    let _ = writeln!(
        out,
        "  task: nice={} calls={} cpu={}us lat={}us tid={thread}(1/{thread}) age={}s",
        s.task.get().map_or(0, rt::nice),
        conn.calls.get(),
        conn.cpu_ns.get() / 1000,
        conn.lat_ns.get() / 1000,
        age(s),
    );
    let state = match (conn.handshake_done.get(), s.kill.get()) {
        (_, Some(_)) => "CLO",
        (None, _) => "HSK",
        _ => "EST",
    };
    let mux = match conn.http_major.get() {
        0 => "PASS",
        1 => "H1",
        _ => "H2",
    };
    let _ = writeln!(
        out,
        "  scf: state={state}\n      co0: ctrl={} xprt={} mux={mux} src={} dst={} target=LISTENER:{}",
        n.protocol,
        if conn.tls.get() { "SSL" } else { "RAW" },
        n.source,
        anon.peer(conn.dst.get()),
        anon.word(&n.frontend.name),
    );
    if mux == "H2" {
        let streams = conn.multiplex.get();
        let _ = writeln!(out, "      h2c: streams={} limit={}", streams.streams, streams.limit);
    }
    if let Some(tls) = conn.secured() {
        let alpn = tls.alpn.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let _ = writeln!(out, "      ssl: alpn={alpn} early={}", u8::from(conn.early.get()));
    }
    match (&n.backend, &n.server) {
        (Some(backend), Some(server)) => {
            let to = format!("{}/{}", anon.word(&backend.name), anon.word(&server.name));
            let _ = writeln!(out, "  scb: state=EST\n      co1: target=SERVER:{to}");
        }
        _ => out.push_str("  scb: state=INI\n"),
    }
}

/// The request line, if it is asked for and known.
fn uri(s: &Session, wanted: &Wanted) -> String {
    let line = s.line.borrow();
    if !wanted.uri || line.bytes.is_empty() {
        return String::new();
    }
    format!(" uri=\"{}\"", wanted.anon.word(&String::from_utf8_lossy(&line.bytes)).escape_default())
}

/// `shutdown session <id>`.
pub fn shutdown<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let wanted = parse_id(call.arg(0))
            .filter(|id| *id != 0)
            .ok_or("Session pointer expected (use 'show sess').")?;
        let killed = gather(move |w| w.sessions.kill(Cause::Killed, |s| id(s) == wanted)).await;
        if killed.iter().all(|(_, n)| *n == 0) {
            return Err("No such session (use 'show sess').".into());
        }
        Ok(Reply::Done)
    })
}

/// `shutdown sessions server <backend>/<server>`.
pub fn shutdown_server<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let at = call.server_to_change()?;
        let there = (Some(at.proxy), Some(at.server));
        gather(move |w| {
            w.sessions.kill(Cause::Killed, |s| s.place_in(&w.shared.program) == there);
        })
        .await;
        Ok(Reply::Done)
    })
}
