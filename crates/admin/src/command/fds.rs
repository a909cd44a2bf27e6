//! `show fd`: the open descriptors, whose they are, and who waits for them (management guide, 9.3).
//!
//! The kernel says what a descriptor is and where its ends are. Each worker says which descriptors it
//! watches, what it knows of their readiness, and which task waits; the task names the client connection.
//! Descriptors are looked at while the answer is sent, so a long list holds nobody up.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;

use engine::Worker;
use model::proxy::FrontState;
use model::server::Target;
use program::address::Listen;
use program::{Bind, Program};
use rt::sys::SocketFacts;
use rt::{Addr, Watched};

use super::sessions::mux_of;
use crate::cli::anon::Anon;
use crate::cli::call::{Call, Lines, Outcome, Refusal, Reply};
use crate::cli::date::human_age;
use crate::cli::table::Command;
use crate::gather::gather;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::later(
    &["show", "fd"],
    "[-!plcfbs]* [num]",
    "open file descriptors, and whose they are",
    Level::Operator,
    show,
)];

/// Descriptors that are looked at in one go.
const STRETCH: usize = 64;

/// Kinds of descriptors, as bits.
mod kind {
    pub const PIPE: u8 = 1;
    pub const LISTENER: u8 = 2;
    pub const FRONT: u8 = 4;
    pub const BACK: u8 = 8;
    pub const OTHER: u8 = 16;
    pub const ALL: u8 = 31;
}

/// `show fd [-!plcfbs]* [number]`.
pub fn show<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let (kinds, only) = wanted(call.args())?;
        let anon = call.client.anon;
        let watched = gather(move |w| watched_here(w, anon)).await;
        let mut numbers = open().unwrap_or_else(|_| probed(&watched));
        numbers.retain(|number| only.is_none_or(|n| n == *number));
        numbers.reverse();
        let known = Known::new(&call.shared().program, watched, anon);
        Ok(Reply::Lines(Box::new(Shown { numbers, kinds, known })))
    })
}

/// `show fd` on its way.
#[derive(Debug)]
struct Shown {
    /// What is still to come, the next one last.
    numbers: Vec<i32>,
    kinds: u8,
    known: Known,
}

impl Lines for Shown {
    fn append(&mut self, out: &mut String) -> bool {
        for _ in 0..STRETCH {
            let Some(number) = self.numbers.pop() else { return false };
            let Some(target) = target(number).or_else(|| self.known.guess(number)) else { continue };
            let (kind, about) = self.known.what(number, &target);
            if self.kinds & kind != 0 {
                let _ = writeln!(out, "{number:7} : {about}");
            }
        }
        true
    }
}

/// The open descriptors that are no pipe, no listener and no connection, with what they lead to.
///
/// # Errors
/// When the system does not list them.
pub fn unknown(program: &Program) -> Result<Vec<(i32, String)>, Refusal> {
    let known = Known::new(program, Vec::new(), Anon::default());
    let mut fds: Vec<_> = open()?.into_iter().filter_map(|n| Some((n, target(n)?))).collect();
    fds.retain(|(number, target)| known.what(*number, target).0 == kind::OTHER);
    Ok(fds)
}

/// Behind a chroot nobody lists them: those that the workers watch, and the sockets among their neighbours.
fn probed(watched: &[(usize, Vec<Seen>)]) -> Vec<i32> {
    /// So many numbers beyond the highest that is watched are looked at.
    const BEYOND: i32 = 256;
    let known: HashSet<i32> = watched.iter().flat_map(|(_, all)| all).map(|s| s.watched.number).collect();
    let highest = known.iter().max().copied().unwrap_or(0).saturating_add(BEYOND);
    (0..=highest).filter(|n| known.contains(n) || rt::sys::socket_facts(*n).is_some()).collect()
}

/// What a descriptor leads to, as the system tells it.
fn target(number: i32) -> Option<String> {
    let target = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

/// The numbers of all open descriptors, in order.
fn open() -> Result<Vec<i32>, Refusal> {
    let entries = std::fs::read_dir("/proc/self/fd").map_err(|e| e.to_string())?;
    let number = |e: std::io::Result<std::fs::DirEntry>| e.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<i32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Which kinds are asked for, and which number. A number may stand behind a thread group, whose descriptors
/// are those of all.
fn wanted(words: &[String]) -> Result<(u8, Option<i32>), Refusal> {
    let mut kinds = 0;
    let mut first = true;
    for word in words {
        let number = word.split_once('/').map_or(word.as_str(), |(_, fd)| fd);
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '/') {
            let number = if number.is_empty() { None } else { Some(number.parse().map_err(|_| INVALID)?) };
            return Ok((if kinds == 0 { kind::ALL } else { kinds }, number));
        }
        let mut out = false;
        for c in word.chars() {
            let bits = match c {
                '-' | '!' => {
                    out = true;
                    if first {
                        kinds = kind::ALL;
                    }
                    0
                }
                'p' => kind::PIPE,
                'l' => kind::LISTENER,
                'c' => kind::FRONT | kind::BACK,
                'f' => kind::FRONT,
                'b' | 's' => kind::BACK,
                _ => return Err(INVALID.into()),
            };
            kinds = if out { kinds & !bits } else { kinds | bits };
            first = false;
        }
    }
    Ok((if words.is_empty() { kind::ALL } else { kinds }, None))
}

const INVALID: &str = "Invalid FD type";

/// What a worker knows of a descriptor.
#[derive(Clone, Debug)]
struct Seen {
    watched: Watched,
    /// What is told of the client connection that waits for it.
    owner: Option<String>,
}

/// The descriptors that this worker watches.
fn watched_here(worker: &Rc<Worker>, anon: Anon) -> Vec<Seen> {
    let mut owners: HashMap<rt::TaskId, String> = HashMap::new();
    for s in worker.sessions.all() {
        let Some(task) = s.task.get() else { continue };
        let program = s.program.borrow();
        let age = human_age(rt::now().since(s.conn.accepted).as_secs());
        let front = anon.word(&program.configured(s.conn.frontend.get()).name);
        let mut text =
            format!(" fe={front} sess=0x{:x} age={age} mux={}", s.conn.serial + 1, mux_of(&s.conn));
        if s.idle.get() {
            text.push_str(" idle");
        }
        owners.insert(task, text);
    }
    for applet in worker.applets.all() {
        let (id, kind) = (applet.serial + 1, applet.door.kind.word());
        let age = human_age(rt::now().since(applet.accepted).as_secs());
        let section = anon.word(&applet.door.section);
        owners.insert(applet.task, format!(" fe={section} sess=0x{id:x} age={age} applet={kind}"));
    }
    let seen = |watched: Watched| {
        let owner = [watched.reader, watched.writer].into_iter().flatten().find_map(|t| owners.get(&t));
        Seen { watched, owner: owner.cloned() }
    };
    rt::watched().into_iter().map(seen).collect()
}

/// What descriptors may be.
#[derive(Debug)]
struct Known {
    /// What the workers watch: the mask of those who do, and what the last of them knows.
    seen: HashMap<i32, (u64, Seen)>,
    /// Frontends by the port, or the path, where they listen, and what they do.
    ports: HashMap<u16, Vec<(IpAddr, String, FrontState)>>,
    paths: HashMap<Vec<u8>, (String, FrontState)>,
    /// Servers by address.
    servers: HashMap<SocketAddr, String>,
    anon: Anon,
}

impl Known {
    fn new(program: &Program, watched: Vec<(usize, Vec<Seen>)>, anon: Anon) -> Known {
        let (ports, paths, servers) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut known = Known { seen: HashMap::new(), ports, paths, servers, anon };
        for (worker, seen) in watched.into_iter().flat_map(|(i, all)| all.into_iter().map(move |s| (i, s))) {
            let bit = 1u64.checked_shl(worker as u32).unwrap_or(0);
            let number = seen.watched.number;
            match known.seen.get_mut(&number) {
                Some((mask, was)) => {
                    *mask |= bit;
                    if seen.owner.is_some() {
                        *was = seen;
                    }
                }
                None => drop(known.seen.insert(number, (bit, seen))),
            }
        }
        for proxy in program.present() {
            let state = proxy.state.front.state();
            proxy.binds.iter().for_each(|bind| known.listener(&proxy.name, state, &bind.address));
            for server in proxy.present() {
                if let Target::Inet(at) = **server.state.target.load() {
                    let name = || format!("{}/{}", anon.word(&proxy.name), anon.word(&server.name));
                    known.servers.entry(at).or_insert_with(name);
                }
            }
        }
        for forward in &program.forwards {
            let state = forward.state.front.state();
            let datagrams = forward.datagrams.iter().map(|d| &d.address);
            let addresses = forward.binds.iter().map(|bind| &bind.address).chain(datagrams);
            addresses.for_each(|address| known.listener(&forward.name, state, address));
        }
        for section in &program.peers {
            known.listener(&section.name, FrontState::Open, &section.bind.address);
        }
        let open = |bind: &Bind| (FrontState::Open, bind.address.clone());
        for (state, address) in program.global.cli.iter().map(open) {
            known.listener("GLOBAL", state, &address);
        }
        known
    }

    fn listener(&mut self, name: &str, state: FrontState, address: &Listen) {
        let front = (self.anon.word(name).into_owned(), state);
        match address {
            Listen::Tcp(at) => self.port(*at, front),
            Listen::Unix(path) => drop(self.paths.insert(path.to_vec(), front)),
            Listen::Abns(name) | Listen::Abnsz(name) => drop(self.paths.insert(abstracted(name), front)),
            Listen::Fd(number) => {
                match rt::sys::socket_facts(*number).and_then(|facts| facts.local) {
                    Some(Addr::Inet(at)) => self.port(at, front),
                    Some(addr) => drop(self.paths.insert(path_of(&addr), front)),
                    None => {}
                };
            }
            Listen::SockPair(_) => {}
        }
    }

    fn port(&mut self, at: SocketAddr, (name, state): (String, FrontState)) {
        self.ports.entry(at.port()).or_default().push((at.ip().to_canonical(), name, state));
    }

    /// The frontends that listen where a socket is: on its address, or else on all. They are several where
    /// the address is in several network namespaces.
    fn front_at(&self, at: SocketAddr) -> Option<(String, FrontState)> {
        let there = self.ports.get(&at.port())?;
        let of = |fits: &dyn Fn(IpAddr) -> bool| {
            let mut names: Vec<&str> = Vec::new();
            let fitting = there.iter().filter(|(ip, ..)| fits(*ip));
            let state = fitting.clone().map(|(.., state)| *state).next()?;
            fitting.for_each(|(_, name, _)| {
                if !names.contains(&&**name) {
                    names.push(name)
                }
            });
            Some((names.join("|"), state))
        };
        let ip = at.ip().to_canonical();
        of(&|known| known == ip).or_else(|| of(&|known| known.is_unspecified()))
    }

    /// What a descriptor leads to, where the system does not tell; `None`: it is closed by now.
    fn guess(&self, number: i32) -> Option<String> {
        if rt::sys::socket_facts(number).is_some() {
            return Some("socket:".to_owned());
        }
        self.seen.contains_key(&number).then(|| "?".to_owned())
    }

    /// The kind of a descriptor that leads to `target`, and what is told of it.
    fn what(&self, number: i32, target: &str) -> (u8, String) {
        let watch =
            self.seen.get(&number).map(|(mask, seen)| state(*mask, &seen.watched)).unwrap_or_default();
        let owner = self.seen.get(&number).and_then(|(_, seen)| seen.owner.as_deref());
        let facts = if target.starts_with("socket:") { rt::sys::socket_facts(number) } else { None };
        let Some(facts) = facts else {
            let kind = if target.starts_with("pipe:") { kind::PIPE } else { kind::OTHER };
            return (kind, format!("{watch}{target}"));
        };
        let (kind, about) = self.socket(&facts, owner);
        (kind, format!("{watch}{}", about.trim_start()))
    }

    fn socket(&self, facts: &SocketFacts, owner: Option<&str>) -> (u8, String) {
        let Some(local) = facts.local.as_ref().and_then(Addr::as_inet) else {
            return self.unix(facts, owner);
        };
        let family = if local.ip().to_canonical().is_ipv4() && local.is_ipv4() { "ipv4" } else { "ipv6" };
        let front = self.front_at(local);
        let front = front.as_ref();
        let lport = local.port();
        let Some(peer) = facts.peer.as_ref().and_then(Addr::as_inet) else {
            return match (facts.listens, facts.datagrams) {
                (true, _) => (kind::LISTENER, format!("{} fam={family} lport={lport}", listening(front))),
                (false, true) => {
                    let front = front.map(|(name, _)| format!(" fe={name}")).unwrap_or_default();
                    (kind::OTHER, format!("dgram{front} fam={family} lport={lport}"))
                }
                // A connection that is being made, or is no more.
                _ => (
                    kind::BACK,
                    format!("back=1 fam={family} lport={lport} unconnected{}", owner.unwrap_or_default()),
                ),
            };
        };
        let ports = format!("fam={family} lport={lport} rport={}", peer.port());
        if facts.datagrams {
            return (kind::OTHER, format!("dgram {ports} to={}", self.shown(peer)));
        }
        match (front, owner) {
            (Some(_), Some(owner)) => {
                (kind::FRONT, format!("back=0 {ports}{owner} src={}", self.shown(peer)))
            }
            (Some((front, _)), None) => {
                (kind::FRONT, format!("back=0 {ports} fe={front} src={}", self.shown(peer)))
            }
            (None, owner) => {
                let canonical = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                let server = self.servers.get(&canonical).map(|s| format!(" sv={s}")).unwrap_or_default();
                (
                    kind::BACK,
                    format!("back=1 {ports}{server}{} dst={}", owner.unwrap_or(" idle"), self.shown(peer)),
                )
            }
        }
    }

    fn shown(&self, peer: SocketAddr) -> String {
        self.anon.peer(model::Peer::Inet(peer))
    }

    fn unix(&self, facts: &SocketFacts, owner: Option<&str>) -> (u8, String) {
        let path = facts.local.as_ref().map(path_of).unwrap_or_default();
        let front = self.paths.get(bound(&path));
        match (facts.listens, front, owner) {
            (true, front, _) => (kind::LISTENER, format!("{} fam=unix", listening(front))),
            (_, Some(_), Some(owner)) => (kind::FRONT, format!("back=0 fam=unix{owner}")),
            (_, Some((front, _)), None) => (kind::FRONT, format!("back=0 fam=unix fe={front}")),
            (_, None, owner) => {
                let peer = facts.peer.as_ref().map(path_of).unwrap_or_default();
                let path = String::from_utf8_lossy(&peer);
                let to =
                    if path.is_empty() { String::new() } else { format!(" to={}", self.anon.word(&path)) };
                (kind::OTHER, format!("fam=unix{to}{}", owner.unwrap_or_default()))
            }
        }
    }
}

/// What is told of a listening socket.
fn listening(front: Option<&(String, FrontState)>) -> String {
    let state = match front {
        Some((_, FrontState::Paused)) => "PAU",
        Some((_, FrontState::Stopped)) => "ZOM",
        _ => "RDY",
    };
    format!("l.st={state} fe={}", front.map_or("?", |(name, _)| name))
}

/// What the workers know of a descriptor: `H`, `E` for a peer that left and an error; of each direction
/// whether it is worth trying (`R`) and whether a task waits for it (`A`).
fn state(mask: u64, w: &Watched) -> String {
    let letter = |on: bool, letter: char| if on { letter } else { letter.to_ascii_lowercase() };
    format!(
        "st=({}{} W:{}{} R:{}{}) tmask=0x{mask:x} ",
        letter(w.hung_up, 'H'),
        letter(w.failed, 'E'),
        letter(w.writable, 'R'),
        letter(w.writer.is_some(), 'A'),
        letter(w.readable, 'R'),
        letter(w.reader.is_some(), 'A'),
    )
}

fn abstracted(name: &[u8]) -> Vec<u8> {
    [b"@", name].concat()
}

fn path_of(addr: &Addr) -> Vec<u8> {
    match addr {
        Addr::Inet(_) => Vec::new(),
        Addr::Unix(path) => path.clone(),
        Addr::Abstract { name, .. } => abstracted(name),
    }
}

/// The path that a Unix socket was meant for: it is bound under a name of its own and moved to that.
fn bound(path: &[u8]) -> &[u8] {
    let short = path.strip_suffix(b".tmp").and_then(|p| Some(&p[..p.iter().rposition(|b| *b == b'.')?]));
    short.unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_chosen_by_letters() {
        let of = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            wanted(&words).ok()
        };
        assert_eq!(of(""), Some((kind::ALL, None)));
        assert_eq!(of("l p"), Some((kind::LISTENER | kind::PIPE, None)));
        assert_eq!(of("-lp"), Some((kind::ALL & !kind::LISTENER & !kind::PIPE, None)));
        assert_eq!(of("c!f"), of("b"));
        assert_eq!(of("l 5"), Some((kind::LISTENER, Some(5))));
        assert_eq!((of("1/5"), of("/5"), of("1/")), (of("5"), of("5"), of("")));
        assert_eq!((of("x"), of("5x")), (None, None));
    }

    #[test]
    fn sockets_are_told_with_their_ends() {
        let (ports, paths, servers) = (HashMap::new(), HashMap::new(), HashMap::new());
        let anon = Anon::default();
        let mut known = Known { seen: HashMap::new(), ports, paths, servers, anon };
        known.listener("fe", FrontState::Paused, &Listen::Tcp("127.0.0.1:80".parse().expect("an address")));
        known.servers.insert("127.0.0.2:81".parse().expect("an address"), "be/s".into());
        let of = |listens, local: &str, peer: Option<&str>| SocketFacts {
            listens,
            datagrams: false,
            local: Some(Addr::Inet(local.parse().expect("an address"))),
            peer: peer.map(|p| Addr::Inet(p.parse().expect("an address"))),
        };
        let told = |facts: &SocketFacts| known.socket(facts, None);
        let listener = (kind::LISTENER, "l.st=PAU fe=fe fam=ipv4 lport=80".into());
        assert_eq!(told(&of(true, "127.0.0.1:80", None)), listener);
        let (kind, text) = told(&of(false, "127.0.0.1:80", Some("127.0.0.9:4")));
        assert_eq!((kind, &*text), (kind::FRONT, "back=0 fam=ipv4 lport=80 rport=4 fe=fe src=127.0.0.9:4"));
        let (kind, text) = told(&of(false, "127.0.0.1:9", Some("127.0.0.2:81")));
        let text = (kind, &*text);
        assert_eq!(text, (kind::BACK, "back=1 fam=ipv4 lport=9 rport=81 sv=be/s idle dst=127.0.0.2:81"));
    }

    #[test]
    fn unix_sockets_are_found_by_the_path_that_they_were_meant_for() {
        assert_eq!(bound(b"/run/x.sock.123.tmp"), b"/run/x.sock");
        assert_eq!(bound(b"/run/x.sock"), b"/run/x.sock");
        assert_eq!(bound(b"x.tmp"), b"x.tmp");
    }
}
