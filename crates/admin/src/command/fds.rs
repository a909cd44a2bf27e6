//! `show fd`: the open descriptors, and what is known of each (management guide, 9.3).
//!
//! No worker is asked: the kernel's own tables of sockets say which descriptor listens, and which connection
//! came in through one of those. The rest are connections to servers and other places.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use model::server::Target;
use program::address::Listen;
use program::{Bind, Program};

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] =
    &[Command::now(&["show", "fd"], "[-!plcfbs]* [num]", "open file descriptors", Level::Operator, show)];

/// The most descriptors that are listed.
const MOST: usize = 4096;

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
pub fn show(call: &mut Call<'_>) -> Outcome {
    let (kinds, only) = wanted(call.args())?;
    let fds = open()?;
    let known = Known::new(&call.shared().program, &fds);
    let lines = fds.iter().filter(|(number, _)| only.is_none_or(|n| n == *number)).map(|(number, target)| {
        let (kind, about) = known.what(target);
        if kinds & kind == 0 { String::new() } else { format!("{number:7} : {target}{about}\n") }
    });
    Ok(Reply::Dump(lines.collect()))
}

/// The open descriptors that are no pipe, no listener and no connection, with what they lead to.
///
/// # Errors
/// When the system does not list them.
pub fn unknown(program: &Program) -> Result<Vec<(u32, String)>, Refusal> {
    let mut fds = open()?;
    let known = Known::new(program, &fds);
    fds.retain(|(_, target)| known.what(target).0 == kind::OTHER);
    Ok(fds)
}

/// All open descriptors, with what they lead to.
fn open() -> Result<Vec<(u32, String)>, Refusal> {
    let entries = std::fs::read_dir("/proc/self/fd").map_err(|e| e.to_string())?;
    let mut fds: Vec<(u32, String)> = entries
        .flatten()
        .take(MOST)
        .filter_map(|e| {
            let number = e.file_name().to_str()?.parse().ok()?;
            Some((number, std::fs::read_link(e.path()).ok()?.to_string_lossy().into_owned()))
        })
        .collect();
    fds.sort();
    Ok(fds)
}

/// Which kinds are asked for, and which number. A number may stand behind a thread group, of which there is
/// one.
fn wanted(words: &[String]) -> Result<(u8, Option<u32>), Refusal> {
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

/// A socket in a table of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    listens: bool,
    /// Both ends; `None`: a Unix socket.
    ends: Option<(SocketAddr, SocketAddr)>,
    /// Path of a Unix socket.
    path: String,
}

/// What descriptors may be.
struct Known {
    entries: HashMap<String, Entry>,
    /// Frontends by the port, or the path, where they listen.
    ports: HashMap<u16, String>,
    paths: HashMap<String, String>,
    /// Servers by address.
    servers: HashMap<SocketAddr, String>,
}

impl Known {
    fn new(program: &Program, fds: &[(u32, String)]) -> Known {
        let mut entries = HashMap::new();
        for (file, read) in
            [("tcp", inet as fn(&str) -> Option<(String, Entry)>), ("tcp6", inet), ("unix", unix)]
        {
            let text = std::fs::read_to_string(format!("/proc/self/net/{file}")).unwrap_or_default();
            entries.extend(text.lines().skip(1).filter_map(read));
        }
        let mut known =
            Known { entries, ports: HashMap::new(), paths: HashMap::new(), servers: HashMap::new() };
        for proxy in program.present() {
            proxy.binds.iter().for_each(|bind| known.listener(&proxy.name, bind, fds));
            for server in proxy.present() {
                if let Target::Inet(at) = **server.state.target.load() {
                    known.servers.entry(at).or_insert_with(|| format!("{}/{}", proxy.name, &*server.name));
                }
            }
        }
        program.global.cli.iter().for_each(|bind| known.listener("GLOBAL", bind, fds));
        known
    }

    fn listener(&mut self, name: &str, bind: &Bind, fds: &[(u32, String)]) {
        match &bind.address {
            Listen::Tcp(at) => drop(self.ports.insert(at.port(), name.into())),
            Listen::Unix(path) => drop(self.paths.insert(String::from_utf8_lossy(path).into(), name.into())),
            Listen::Abns(path) | Listen::Abnsz(path) => {
                self.paths.insert(format!("@{}", String::from_utf8_lossy(path)), name.into());
            }
            Listen::Fd(fd) => {
                let at = u32::try_from(*fd).ok().and_then(|fd| fds.iter().find(|(n, _)| *n == fd));
                let entry = at.and_then(|(_, target)| self.entries.get(inode(target)?));
                if let Some((local, _)) = entry.and_then(|e| e.ends) {
                    self.ports.insert(local.port(), name.into());
                }
            }
            Listen::SockPair(_) => {}
        }
    }

    /// The kind of a descriptor with this target, and what is told of it.
    fn what(&self, target: &str) -> (u8, String) {
        if target.starts_with("pipe:") {
            return (kind::PIPE, String::new());
        }
        let Some(entry) = inode(target).and_then(|inode| self.entries.get(inode)) else {
            return (kind::OTHER, String::new());
        };
        let name = |found: Option<&String>| found.map_or("?", |n| n).to_owned();
        let Some((local, peer)) = entry.ends else {
            let front = self.paths.get(bound(&entry.path));
            return match (entry.listens, front) {
                (true, front) => (kind::LISTENER, format!(" l.st=RDY fe={} fam=unix", name(front))),
                (false, Some(front)) => (kind::FRONT, format!(" back=0 fam=unix fe={front}")),
                (false, None) => (kind::OTHER, " fam=unix".into()),
            };
        };
        let family = if local.is_ipv4() { "ipv4" } else { "ipv6" };
        let (lport, rport) = (local.port(), peer.port());
        match self.ports.get(&lport) {
            front if entry.listens => {
                (kind::LISTENER, format!(" l.st=RDY fe={} fam={family} lport={lport}", name(front)))
            }
            Some(front) => {
                (kind::FRONT, format!(" back=0 fam={family} lport={lport} rport={rport} fe={front}"))
            }
            None => {
                let server = self.servers.get(&peer).map_or(String::new(), |s| format!(" sv={s}"));
                (kind::BACK, format!(" back=1 fam={family} lport={lport} rport={rport}{server}"))
            }
        }
    }
}

/// The path that a Unix socket was meant for: it is bound under a name of its own and moved to that.
fn bound(path: &str) -> &str {
    path.strip_suffix(".tmp").and_then(|p| p.rsplit_once('.')).map_or(path, |(path, _)| path)
}

/// The number in `socket:[123]`.
fn inode(target: &str) -> Option<&str> {
    target.strip_prefix("socket:[")?.strip_suffix(']')
}

/// A line of `/proc/net/tcp` or `tcp6`: its inode and what it says.
fn inet(line: &str) -> Option<(String, Entry)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, peer, state) = (words.next()?, words.next()?, words.next()?);
    let inode = words.nth(5)?;
    let ends = Some((address(local)?, address(peer)?));
    Some((inode.into(), Entry { listens: state == "0A", ends, path: String::new() }))
}

/// An address in hexadecimal, each group of four bytes in the order of this machine, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0u8; 16];
    for (group, to) in bytes.chunks_exact_mut(4).enumerate().take(ip.len() / 8) {
        let word = u32::from_str_radix(ip.get(group * 8..group * 8 + 8)?, 16).ok()?;
        to.copy_from_slice(&word.to_ne_bytes());
    }
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        32 => IpAddr::V6(Ipv6Addr::from(bytes)),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// A line of `/proc/net/unix`.
fn unix(line: &str) -> Option<(String, Entry)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
    let path = words.get(7).map_or("", |p| p);
    Some(((*words.get(6)?).into(), Entry { listens: flags & 0x1_0000 != 0, ends: None, path: path.into() }))
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
    #[cfg(target_endian = "little")]
    fn tables_of_the_kernel_are_read() {
        let line = "   0: 0100007F:4651 0200007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0";
        let ends = ("127.0.0.1:18001".parse().unwrap(), "127.0.0.2:80".parse().unwrap());
        let entry = Entry { listens: false, ends: Some(ends), path: String::new() };
        assert_eq!(inet(line), Some(("4711".into(), entry)));
        assert_eq!(address("00000000000000000000000001000000:1F90"), "[::1]:8080".parse().ok());
        assert_eq!(address("0100007F"), None);
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 815 /run/x.sock";
        let entry = Entry { listens: true, ends: None, path: "/run/x.sock".into() };
        assert_eq!(unix(line), Some(("815".into(), entry)));
        assert_eq!((unix("x y"), inet("")), (None, None));
    }
}
