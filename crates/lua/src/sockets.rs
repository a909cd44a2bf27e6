//! The class `Socket`: connections of scripts to the outside.
//!
//! A socket belongs to the worker on which it was opened, where its script runs; Lua holds its number. When
//! Lua forgets the object the socket is closed by a word to that worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use engine::Worker;
use engine::inner::address;
use engine::inner::line::{Line, Patience, Tls, To};
use mlua::Value;
use rt::{Addr, ConnectOptions};

use crate::came::Came;
use crate::here::with_worker;
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, nothing};

/// Functions of the class.
pub const BOUND: &[Bound] = &[
    ("socket.new", 0, new),
    ("socket.close", 1, close),
    ("socket.getpeername", 1, |args| name(args, true)),
    ("socket.getsockname", 1, |args| name(args, false)),
    ("socket.settimeout", 1, settimeout),
    ("socket.setoption", 1, |_| nothing()),
    ("socket.connect", 1, |args| connect(args, false)),
    ("socket.connect_ssl", 1, |args| connect(args, true)),
    ("socket.receive", 1, receive),
    ("socket.send", 1, send),
    ("client.request", 0, crate::client::request),
];

/// The most that one read gathers.
const MOST: usize = 64 << 20;
/// Sockets of one worker.
const MOST_SOCKETS: usize = 16384;
/// Without `settimeout`.
const SILENCE: Duration = Duration::from_secs(5);

/// A socket as scripts hold it.
struct Handle {
    number: u64,
    worker: usize,
    peers: rt::Peers,
}

impl mlua::UserData for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let number = self.number;
        let here = rt::worker_index() == Some(self.worker);
        if here {
            forget(number);
        } else {
            // Also from a thread that is no worker.
            self.peers.send_to(self.worker, Box::new(move || forget(number)));
        }
    }
}

fn forget(number: u64) {
    let gone = OPEN.try_with(|open| open.try_borrow_mut().ok().and_then(|mut open| open.remove(&number)));
    drop(gone);
}

/// One that is open, or is to be.
struct Open {
    line: Option<Line>,
    silence: Duration,
    peer: Option<SocketAddr>,
}

thread_local! {
    static OPEN: RefCell<HashMap<u64, Open>> = RefCell::default();
}

/// What a script wants of a socket.
#[derive(Clone, Debug)]
pub enum Ask {
    /// To be connected.
    Connect { number: u64, host: String, port: u16, tls: bool },
    /// To read.
    Receive { number: u64, pattern: Pattern, prefix: Vec<u8> },
    /// To write.
    Send { number: u64, data: Vec<u8>, end: i64 },
}

/// What is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A line, without its end.
    Line,
    /// All until the end.
    All,
    /// So many bytes.
    Bytes(usize),
}

impl mlua::UserData for Ask {}

/// The wish that a prepared call holds.
pub fn take(value: &Value) -> Option<Ask> {
    value.as_userdata()?.borrow::<Ask>().ok().map(|ask| ask.clone())
}

fn new(args: &mut Args<'_>) -> Outcome {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let worker =
        with_worker(|worker| worker.index).ok_or("sockets can't be used while the configuration is read")?;
    let number = NEXT.fetch_add(1, Relaxed);
    let room = OPEN.with_borrow_mut(|open| {
        if open.len() >= MOST_SOCKETS {
            return false;
        }
        open.insert(number, Open { line: None, silence: SILENCE, peer: None });
        true
    });
    if !room {
        return Err("too many sockets".into());
    }
    give(args.lua(), inner(args.lua().create_userdata(Handle { number, worker, peers: rt::peers() }))?)
}

fn number(args: &Args<'_>) -> Result<u64, String> {
    let own: mlua::AnyUserData = args.own()?;
    let handle = inner(own.borrow::<Handle>())?;
    if with_worker(|worker| worker.index) != Some(handle.worker) {
        return Err("connect: cannot use socket on other thread".into());
    }
    Ok(handle.number)
}

fn close(args: &mut Args<'_>) -> Outcome {
    let number = number(args)?;
    OPEN.with_borrow_mut(|open| {
        if let Some(open) = open.get_mut(&number) {
            open.line = None;
        }
    });
    nothing()
}

fn settimeout(args: &mut Args<'_>) -> Outcome {
    let seconds = args.number(1)?;
    let number = number(args)?;
    let bad = !(0.0..=2_147_483.0).contains(&seconds);
    if bad {
        return Err("settimeout: cannot set negatives values".into());
    }
    // As HAProxy, at least a millisecond.
    let silence = Duration::from_millis(((seconds * 1000.0) as u64).max(1));
    OPEN.with_borrow_mut(|open| {
        if let Some(open) = open.get_mut(&number) {
            open.silence = silence;
            if let Some(line) = &mut open.line {
                line.set_silence(silence);
            }
        }
    });
    give(args.lua(), 1)
}

fn name(args: &mut Args<'_>, peer: bool) -> Outcome {
    let number = number(args)?;
    let found = OPEN.with_borrow(|open| {
        let open = open.get(&number)?;
        let line = open.line.as_ref()?;
        if peer { open.peer } else { line.local_addr() }
    });
    match found {
        Some(addr) => give(args.lua(), addr.to_string().replace(['[', ']'], "")),
        None => give(args.lua(), Value::Nil),
    }
}

fn prepared(args: &Args<'_>, ask: Ask) -> Outcome {
    give(args.lua(), inner(args.lua().create_userdata(ask))?)
}

fn connect(args: &mut Args<'_>, tls: bool) -> Outcome {
    let number = number(args)?;
    let host = args.text(1)?;
    let port = match args.get(2) {
        Value::Nil => 0,
        _ => u16::try_from(args.int(2)?).map_err(|_| "connect: invalid port".to_owned())?,
    };
    prepared(args, Ask::Connect { number, host, port, tls })
}

fn receive(args: &mut Args<'_>) -> Outcome {
    let number = number(args)?;
    let pattern = match args.get(1) {
        Value::Nil => Pattern::Line,
        Value::String(s) if *s.as_bytes() == *b"*a" => Pattern::All,
        Value::String(s) if *s.as_bytes() == *b"*l" => Pattern::Line,
        _ => match args.int(1) {
            Ok(n) if n >= 0 => Pattern::Bytes(usize::try_from(n).unwrap_or(usize::MAX)),
            _ => return Err("Unsupported pattern.".into()),
        },
    };
    let prefix = if args.get(2).is_nil() { Vec::new() } else { args.bytes(2)? };
    prepared(args, Ask::Receive { number, pattern, prefix })
}

fn send(args: &mut Args<'_>) -> Outcome {
    let number = number(args)?;
    let data = args.bytes(1)?;
    let length = i64::try_from(data.len()).unwrap_or(i64::MAX);
    let place = |n: i64| if n < 0 { (length + n + 1).max(0) } else { n };
    let (from, to) = (place(args.int_or(2, 1)?).max(1), place(args.int_or(3, -1)?).min(length));
    let (a, b) = (usize::try_from(from - 1).unwrap_or(0), usize::try_from(to).unwrap_or(0));
    let data = data.get(a..b.max(a)).unwrap_or_default().to_vec();
    prepared(args, Ask::Send { number, data, end: to })
}

/// Takes the line of a socket out for the time of a wait, so that nobody else uses it meanwhile.
fn take_line(number: u64) -> Option<Line> {
    OPEN.with_borrow_mut(|open| open.get_mut(&number)?.line.take())
}

fn put_line(number: u64, line: Line) {
    OPEN.with_borrow_mut(|open| {
        if let Some(open) = open.get_mut(&number) {
            open.line = Some(line);
        }
    });
}

/// Does what a script wants of a socket.
pub async fn fulfil(ask: Ask, worker: &Rc<Worker>) -> Came {
    match ask {
        Ask::Connect { number, host, port, tls } => dial(worker, number, &host, port, tls).await,
        Ask::Receive { number, pattern, prefix } => {
            let Some(mut line) = take_line(number) else { return Came::Failed("connection closed.", None) };
            let (came, keep) = read(&mut line, pattern, prefix).await;
            if keep {
                put_line(number, line);
            }
            came
        }
        Ask::Send { number, data, end } => {
            let Some(mut line) = take_line(number) else { return Came::Failed("connection closed.", None) };
            match line.send(&data).await {
                Ok(true) => {
                    put_line(number, line);
                    Came::Number(end)
                }
                Ok(false) => Came::Failed("connection closed.", None),
                Err(_) => Came::Failed("timeout", None),
            }
        }
    }
}

/// The address of what `connect` was told.
async fn resolve(host: &str, port: u16) -> Option<Addr> {
    if let Some(path) = host.strip_prefix("unix@").or(host.starts_with('/').then_some(host)) {
        return Some(Addr::Unix(path.as_bytes().to_vec()));
    }
    if let Some(name) = host.strip_prefix("abns@") {
        return Some(Addr::Abstract { name: name.as_bytes().to_vec(), padded: true });
    }
    let host = host.strip_prefix("ipv4@").or(host.strip_prefix("ipv6@")).unwrap_or(host);
    let (host, port) = match host.rsplit_once(':') {
        Some((h, p)) if port == 0 && host.parse::<IpAddr>().is_err() => (h, p.parse().ok()?),
        _ => (host, port),
    };
    if port == 0 {
        return None;
    }
    address::find_by_system(host, port).await
}

async fn dial(worker: &Rc<Worker>, number: u64, host: &str, port: u16, tls: bool) -> Came {
    let silence = OPEN.with_borrow(|open| open.get(&number).map(|open| open.silence));
    let Some(silence) = silence else { return Came::Failed("connection closed.", None) };
    let Some(addr) = resolve(host, port).await else {
        return Came::Wrong("connect: cannot parse destination address".to_owned() + &format!(" '{host}'"));
    };
    let program = &worker.shared.program;
    let connector = match tls {
        true => match program.tls.client(&program.global.client_tls) {
            Some(connector) => Some(connector),
            None => return Came::Failed("Can't connect", None),
        },
        false => None,
    };
    let name = address::bare(host).as_bytes().to_vec();
    let tls = connector.as_deref().map(|connector| Tls { connector, name: &name, alpn: None });
    let to = To { addr: &addr, options: ConnectOptions::default(), tls };
    match Line::open(worker, &to, Patience { connect: silence, silence, whole: None }).await {
        Ok(line) => {
            let peer = if let Addr::Inet(peer) = &addr { Some(*peer) } else { None };
            OPEN.with_borrow_mut(|open| {
                if let Some(open) = open.get_mut(&number) {
                    (open.line, open.peer) = (Some(line), peer);
                }
            });
            Came::Number(1)
        }
        Err(_) => Came::Failed("Can't connect", None),
    }
}

/// Reads what a pattern says; whether the socket may be used on.
async fn read(line: &mut Line, pattern: Pattern, prefix: Vec<u8>) -> (Came, bool) {
    let mut got = prefix;
    let before = got.len();
    loop {
        let data = line.data();
        let (taken, whole) = match pattern {
            Pattern::Line => match data.iter().position(|c| *c == b'\n') {
                Some(at) => (at + 1, true),
                None => (data.len(), false),
            },
            Pattern::All => (data.len(), false),
            Pattern::Bytes(n) => {
                let left = n.saturating_sub(got.len() - before);
                (left.min(data.len()), left <= data.len())
            }
        };
        let part = data.get(..taken).unwrap_or_default();
        match pattern {
            // Carriage returns are no part of a line.
            Pattern::Line => got.extend(part.iter().filter(|c| !matches!(c, b'\r' | b'\n'))),
            _ => got.extend_from_slice(part),
        }
        line.consume(taken);
        if whole {
            return (Came::Bytes(Some(got)), true);
        }
        if got.len() > MOST {
            return (Came::Failed("too long", Some(got)), false);
        }
        match line.more().await {
            Ok(true) => {}
            Ok(false) if pattern == Pattern::All => return (Came::Bytes(Some(got)), true),
            Ok(false) => return (Came::Failed("connection closed.", Some(got)), false),
            Err(_) => return (Came::Failed("timeout", Some(got)), true),
        }
    }
}
