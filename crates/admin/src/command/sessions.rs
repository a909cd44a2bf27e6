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
use engine::applets::Applet;
use engine::sessions::Session;
use model::term::Cause;
use model::{Conn, Peer};
use program::address::Listen;
use program::{Program, Proxy};
use rt::Watched;
use rt::sys::SocketFacts;

use super::applets;
use super::basic::duration;
use crate::cli::anon::Anon;
use crate::cli::call::{Call, Outcome, Refusal, Reply, find_proxy};
use crate::cli::date::human_age;
use crate::cli::table::Command;
use crate::gather::gather;
use program::listener::Level;

/// One end of a connection: its descriptor, and what the kernel says of it.
type End = Option<(i32, Option<SocketFacts>)>;

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
    /// A `log-forward` section.
    section: Option<Box<str>>,
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
            "frontend" | "backend" | "server" => wanted.place(call, word, value())?,
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
    /// `frontend`, `backend`, `server` with a name.
    fn place(&mut self, call: &Call<'_>, what: &str, name: &str) -> Result<(), Refusal> {
        if self.frontend.is_some() || self.backend.is_some() || self.section.is_some() {
            return Err("Only one of backend, frontend or server may be set.".into());
        }
        match what {
            "server" if name.is_empty() => {
                return Err("Missing server name (<backend>/<server>).".into());
            }
            _ if name.is_empty() => return Err(format!("Missing {what} name.").into()),
            "frontend" => {
                let found = find_proxy(call.shared(), name, |p| p.is_frontend).map(|(at, _)| at);
                let forward = || call.shared().program.forwards.iter().find(|f| *f.name == *name);
                match found {
                    Some(at) => self.frontend = Some(at),
                    None => self.section = Some(forward().ok_or("No such frontend.")?.name.clone()),
                }
            }
            "backend" => self.backend = Some(call.find_backend(name).ok_or("No such backend.")?.0),
            _ => {
                let at = call.server_called(name)?;
                (self.backend, self.server) = (Some(at.proxy), Some(at.server));
            }
        }
        Ok(())
    }

    /// Whether a connection that no stream serves is to be listed.
    fn is_applet(&self, applet: &Applet) -> bool {
        let id = applet.serial + 1;
        let elsewhere = self.frontend.is_some() || self.backend.is_some() || self.none;
        !elsewhere
            && self.id.is_none_or(|wanted| wanted == id)
            && rt::now().since(applet.accepted).as_secs() >= self.older
            && self.section.as_deref().is_none_or(|name| name == &*applet.door.section)
    }

    /// Whether a connection is to be listed. One without a stream, at rest or with a request that has yet to
    /// come, never is.
    fn is(&self, s: &Session, program: &Arc<Program>) -> bool {
        let (backend, server) = s.place_in(program);
        s.streams.get() > 0
            && self.id.is_none_or(|wanted| wanted == id(s))
            && age(s) >= self.older
            && !self.none
            && self.section.is_none()
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
    let (mut out, watched) = (String::new(), rt::watched());
    for s in worker.sessions.all().iter().filter(|s| wanted.is(s, &worker.shared.program)) {
        let write = if wanted.long { long } else { short };
        write(worker, s, (&watched, wanted), &mut out);
    }
    for applet in worker.applets.all().iter().filter(|a| wanted.is_applet(a)) {
        applets::tell(worker, applet, (&watched, wanted.anon, wanted.long), &mut out);
    }
    out
}

/// The descriptor towards the client and the one towards the server that the task of a connection waits for.
fn descriptors(s: &Session, watched: &[Watched]) -> [End; 2] {
    let Some(task) = s.task.get() else { return [None, None] };
    let mut sides = [None, None];
    for w in watched.iter().filter(|w| w.reader == Some(task) || w.writer == Some(task)) {
        let facts = rt::sys::socket_facts(w.number);
        let peer = facts.as_ref().and_then(|f| f.peer.as_ref());
        let is_client = match (s.conn.fc_src.get(), peer.and_then(rt::Addr::as_inet)) {
            (Peer::Inet(src), Some(peer)) => src == peer,
            (Peer::Unix, None) => facts.as_ref().is_some_and(|f| f.local.as_ref().is_some_and(is_named)),
            _ => false,
        };
        sides[usize::from(!is_client)] = Some((w.number, facts));
    }
    sides
}

/// A socket that was accepted has the name of its listener.
fn is_named(addr: &rt::Addr) -> bool {
    !matches!(addr, rt::Addr::Unix(path) if path.is_empty())
}

/// A descriptor as `show sess` writes it.
fn number(side: &End) -> String {
    side.as_ref().map_or("-1".into(), |(number, _)| format!("1/{number}"))
}

/// What speaks with a client, in a word.
pub fn mux_of(conn: &Conn) -> &'static str {
    match conn.http_major.get() {
        0 => "PASS",
        1 => "H1",
        _ => "H2",
    }
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

fn short(_: &Worker, s: &Session, (watched, wanted): (&[Watched], &Wanted), out: &mut String) {
    let (anon, program) = (wanted.anon, s.program.borrow().clone());
    let n = names(&program, s, anon);
    let [client, server] = descriptors(s, watched);
    let _ = writeln!(
        out,
        "0x{:x}: proto={} src={} fe={} be={} srv={} ts=00 epoch=0 age={} calls={} rate=0 cpu={} lat={} \
rq[f=0h,i=0,an=00h,ax=] rp[f=0h,i=0,an=00h,ax=] scf=[8,0h,fd={},rex=,wex=] \
scb=[{},0h,fd={},rex=,wex=] exp= rc=0 c_exp={}",
        id(s),
        n.protocol,
        n.source,
        anon.word(&n.frontend.name),
        n.backend.as_ref().map_or("<NONE>".into(), |b| anon.word(&b.name)),
        n.server.as_ref().map_or("<none>".into(), |s| anon.word(&s.name)),
        human_age(age(s)),
        s.conn.calls.get(),
        s.conn.cpu_ns.get(),
        s.conn.lat_ns.get(),
        number(&client),
        if n.server.is_some() { 8 } else { 0 },
        number(&server),
        uri(s, wanted),
    );
}

fn long(worker: &Worker, s: &Session, (watched, wanted): (&[Watched], &Wanted), out: &mut String) {
    let (anon, program) = (wanted.anon, s.program.borrow().clone());
    let n = names(&program, s, anon);
    let ends = descriptors(s, watched);
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
        Some(b) => {
            let local = ends[1].as_ref().and_then(|(_, facts)| facts.as_ref()?.local.as_ref()?.as_inet());
            let addr = local.map(|at| format!(" addr={}", anon.peer(Peer::Inet(at)))).unwrap_or_default();
            writeln!(out, "  backend={} (id={} mode={}){addr}", anon.word(&b.name), b.state.id, mode(b))
        }
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
    sides(worker, s, (&n, &ends), anon, out);
}

/// The task that serves a connection, and both ends of what it connects.
fn sides(worker: &Worker, s: &Session, (n, ends): (&Names<'_>, &[End; 2]), anon: Anon, out: &mut String) {
    let (conn, thread) = (&s.conn, worker.index + 1);
    let _ = writeln!(
        out,
        "  task: nice={} calls={} cpu={}us lat={}us tid={thread}(1/{thread}) age={}",
        s.task.get().map_or(0, rt::nice),
        conn.calls.get(),
        conn.cpu_ns.get() / 1000,
        conn.lat_ns.get() / 1000,
        human_age(age(s)),
    );
    let state = match (conn.handshake_done.get(), s.kill.get()) {
        (_, Some(_)) => "CLO",
        (None, _) => "HSK",
        _ => "EST",
    };
    let mux = mux_of(conn);
    let _ = writeln!(
        out,
        "  scf: state={state}\n      co0: ctrl={} xprt={} mux={mux} src={} dst={} target=LISTENER:{}\n      \
fd={} fd.tmask=0x{:x}",
        n.protocol,
        if conn.tls.get() { "SSL" } else { "RAW" },
        n.source,
        anon.peer(conn.dst.get()),
        anon.word(&n.frontend.name),
        number(&ends[0]),
        1u64.checked_shl(worker.index as u32).unwrap_or(0),
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
            let fd = number(&ends[1]);
            let _ = writeln!(out, "  scb: state=EST\n      co1: target=SERVER:{to}\n      fd={fd}");
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
        let killed = gather(move |w| {
            let own = w.sessions.kill(Cause::Killed, |s| id(s) == wanted);
            own + w.applets.end(|a| a.serial + 1 == wanted)
        })
        .await;
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
