//! Opening the listening sockets, and saying why one can't be opened.
//!
//! A port that an old process holds (`-sf`, `-st`) is asked for with SIGTTOU, as the management guide
//! describes in chapter 4; if it can't be had all the same, SIGTTIN lets the old process go on as if nothing
//! had happened.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use engine::forward::Doors;
use engine::run::{self, Opened};
use engine::worker::{Exposed, ExposedSocket};
use engine::{Shared, listener, net};
use program::address::Listen;
use program::forward::Dgram;
use program::global::Global;
use program::{Bind, Program, Proxy};
use rt::sys::{self, Signal};
use rt::{ListenOptions, Listener, SharedDatagram, Unheard};

use crate::args::Args;
use crate::handover::Inherited;
use crate::say;

/// How often, and how far apart, a port that an old process holds is tried again.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// All sockets of a program.
pub struct Sockets {
    /// Those of frontends.
    pub opened: Vec<Opened>,
    /// Those of the runtime API.
    pub cli: Vec<(Bind, Listener)>,
    /// Those of peers, by section.
    pub peers: Vec<Listener>,
    /// Those of `log-forward` sections.
    pub forwards: Doors,
}

impl Sockets {
    /// Those that another process may ask for: of frontends, of the runtime API, of peers.
    pub fn exposed(&self, program: &Program) -> Vec<Exposed> {
        let expose = |bind: &Bind, listener: &Listener| Exposed {
            socket: ExposedSocket::Listener(listener.downgrade()),
            address: bind.address.clone(),
            interface: bind.interface.clone(),
            namespace: bind.namespace,
            threads: bind.threads,
        };
        // Over these come sockets of connections, none of which began here.
        let listens = |bind: &Bind| !matches!(bind.address, Listen::SockPair(_));
        let of_frontends = self.opened.iter().map(|o| {
            let bind = &program.configured(o.proxy).binds[o.bind as usize];
            (bind, &o.listener)
        });
        let of_forwards = self.forwards.listeners.iter().filter_map(|(section, line, listener)| {
            Some((program.forwards.get(*section)?.binds.get(*line)?, listener))
        });
        let of_cli = self.cli.iter().map(|(bind, listener)| (bind, listener));
        let of_peers = program.peers.iter().map(|section| &section.bind).zip(&self.peers);
        of_frontends
            .chain(of_forwards)
            .chain(of_cli)
            .chain(of_peers)
            .filter(|(b, _)| listens(b))
            .map(|(b, l)| expose(b, l))
            .chain(self.exposed_datagrams(program))
            .collect()
    }
}

impl Sockets {
    fn exposed_datagrams<'s>(&'s self, program: &'s Program) -> impl Iterator<Item = Exposed> + 's {
        self.forwards.datagrams.iter().filter_map(|(section, line, receiver)| {
            let dgram = program.forwards.get(*section)?.datagrams.get(*line)?;
            Some(exposed_datagram(dgram, ExposedSocket::Datagram(receiver.downgrade())))
        })
    }
}

/// A socket for datagrams, for another process.
pub fn exposed_datagram(dgram: &Dgram, socket: ExposedSocket) -> Exposed {
    let (address, interface) = (dgram.address.clone(), dgram.interface.clone());
    Exposed { socket, address, interface, namespace: dgram.namespace, threads: dgram.threads }
}

/// Opens all sockets, but for those that another process hands over; if one can't be had, says so of each.
pub fn open(shared: &Shared, args: &Args, mut inherited: Inherited) -> Option<Sockets> {
    let program = &shared.program;
    let global = &program.global;
    let old: Vec<i32> = args.finish.iter().chain(&args.terminate).copied().collect();
    let until = Instant::now() + PAUSE * TRIES;
    let (mut opened, failed) = run::open_all(shared, |bind, backlog| {
        if let Some(listener) = inherited.take(bind, &options(global, bind, backlog)) {
            return Ok(listener);
        }
        if !old.is_empty() {
            await_turn(program, bind, until);
        }
        listen(global, bind, backlog)
    });
    let failed = if old.is_empty() { failed } else { insist(program, failed, &mut opened, &old) };
    for (proxy, bind, e) in &failed {
        let proxy = program.configured(*proxy);
        complain(&proxy.binds[*bind as usize], &format!("{} {}", noun(proxy), proxy.name), e);
    }
    let mut cli = Vec::new();
    let mut complete = failed.is_empty();
    for bind in &program.global.cli {
        let handed = inherited.take(bind, &options(global, bind, 1024));
        match handed.map_or_else(|| listen(global, bind, 1024), Ok) {
            Ok(l) => cli.push((bind.clone(), l)),
            Err(e) => {
                complete = false;
                complain(bind, "frontend GLOBAL", &e);
            }
        }
    }
    let forwards = forward_doors(global, program, &mut inherited);
    complete &= forwards.is_some();
    let mut peers = Vec::new();
    for section in &program.peers {
        let handed = inherited.take(&section.bind, &options(global, &section.bind, 1024));
        match handed.map_or_else(|| listen(global, &section.bind, 1024), Ok) {
            Ok(l) => peers.push(l),
            Err(e) => {
                complete = false;
                complain(&section.bind, &format!("peers {}", section.name), &e);
            }
        }
    }
    if !complete {
        let name = std::env::args().next().unwrap_or_default();
        say::alert(&format!("[{name}.main()] Some protocols failed to start their listeners! Exiting."));
        return None;
    }
    for o in &opened {
        let proxy = program.configured(o.proxy);
        let (bind, whose) = (&proxy.binds[o.bind as usize], format!("{} {}", noun(proxy), proxy.name));
        tell_lacking(bind, &whose);
        set_congestion(bind, &o.listener, &whose);
    }
    for (bind, listener) in &cli {
        tell_lacking(bind, "frontend GLOBAL");
        set_congestion(bind, listener, "frontend GLOBAL");
    }
    Some(Sockets { opened, cli, peers, forwards: forwards? })
}

/// The sockets of `log-forward` sections; `None`: one can't be had, which was said.
fn forward_doors(global: &Global, program: &Program, inherited: &mut Inherited) -> Option<Doors> {
    let (mut doors, mut complete) = (Doors::default(), true);
    for (section, forward) in program.forwards.iter().enumerate() {
        let whose = format!("frontend {}", forward.name);
        for (line, bind) in forward.binds.iter().enumerate() {
            let backlog = forward.backlog_of(bind);
            let handed = inherited.take(bind, &options(global, bind, backlog));
            match handed.map_or_else(|| listen(global, bind, backlog), Ok) {
                Ok(listener) => doors.listeners.push((section, line, listener)),
                Err(e) => {
                    complete = false;
                    complain(bind, &whose, &e);
                }
            }
        }
        for (line, dgram) in forward.datagrams.iter().enumerate() {
            let handed = inherited.take_datagrams(dgram, datagram_options(global).recv_buffer);
            match handed.map_or_else(|| datagrams(global, dgram), Ok) {
                Ok(socket) => doors.datagrams.push((section, line, socket)),
                Err(e) => {
                    complete = false;
                    say::alert(&datagram_complaint(dgram, &whose, &e));
                }
            }
        }
    }
    complete.then_some(doors)
}

/// What a socket for datagrams is opened with.
pub fn datagram_options(global: &Global) -> ListenOptions {
    ListenOptions {
        reuseport: !global.disabled.reuseport,
        recv_buffer: global.tune.rcvbuf_frontend.map(|bytes| bytes as usize),
        ..ListenOptions::default()
    }
}

/// Opens a socket for datagrams.
///
/// # Errors
/// What the system says.
pub fn datagrams(global: &Global, dgram: &Dgram) -> io::Result<SharedDatagram> {
    dgram.namespace.map_or(Ok(()), rt::open_namespace)?;
    engine::forward::open(dgram, datagram_options(global))
}

/// Why a socket for datagrams can't be had.
pub fn datagram_complaint(dgram: &Dgram, whose: &str, e: &io::Error) -> String {
    let (file, line) = &dgram.place;
    let reason = say::reason(e);
    let what = match &dgram.address {
        Listen::Tcp(a) => {
            let family = if a.is_ipv6() { "udpv6" } else { "udpv4" };
            format!("{family}: cannot bind socket ({reason}) for [{}:{}].", a.ip(), a.port())
        }
        Listen::Unix(path) => {
            format!("unix_dgram: cannot bind UNIX socket ({reason}) [{}].", String::from_utf8_lossy(path))
        }
        _ => format!("udpv4: cannot receive on socket ({reason})."),
    };
    format!("Binding [{file}:{line}] for {whose}: protocol {what}")
}

/// What messages call the owner of a `bind` line.
pub fn noun(proxy: &Proxy) -> &'static str {
    if proxy.is_backend { "proxy" } else { "frontend" }
}

/// Sets the congestion control algorithm of a `bind` line. Without it the socket serves as well, so it is a
/// warning when there is none.
pub fn set_congestion(bind: &Bind, listener: &Listener, whose: &str) {
    let Some(algorithm) = &bind.congestion else { return };
    let Some(a) = inet(bind, listener) else { return };
    let Err(e) = listener.set_congestion(algorithm) else { return };
    let (file, line) = &bind.place;
    say::warning(&format!(
        "Starting [{file}:{line}] for {whose}: protocol {}: cannot set TCP congestion control algorithm, ({}) for [{}:{}].",
        family(bind, &a),
        say::reason(&e),
        a.ip(),
        a.port()
    ));
}

/// Warns of what the sockets of a line do without.
pub fn tell_lacking(bind: &Bind, whose: &str) {
    let Listen::Tcp(a) = &bind.address else { return };
    let options = engine::listener::options(bind, 1);
    if options.interface.is_none() && options.mss.is_none() {
        return;
    }
    let Ok(lacking) = rt::lacking(*a, &options) else { return };
    let (file, line) = &bind.place;
    let place = format!("[{file}:{line}] for {whose}: protocol {}", family(bind, a));
    let say = |verb: &str, what: &str, e: &io::Error| {
        let reason = say::reason(e);
        say::warning(&format!("{verb} {place}: {what} ({reason}) for [{}:{}].", a.ip(), a.port()));
    };
    if let (Some(name), Some(e)) = (&options.interface, &lacking.interface) {
        say("Binding", &format!("cannot bind receiver to device '{name}'"), e);
    }
    if let (Some(mss), Some(e)) = (options.mss, &lacking.mss) {
        say("Starting", &format!("cannot set MSS to {mss},"), e);
    }
}

/// The TCP address of a listener; what a descriptor was bound to is asked of the kernel.
fn inet(bind: &Bind, listener: &Listener) -> Option<SocketAddr> {
    match &bind.address {
        Listen::Tcp(a) => Some(*a),
        Listen::Fd(_) => listener.local_addr().ok()?.as_inet(),
        _ => None,
    }
}

fn family(bind: &Bind, address: &SocketAddr) -> &'static str {
    match (bind.mptcp, address.is_ipv6()) {
        (false, false) => "tcpv4",
        (false, true) => "tcpv6",
        (true, false) => "mptcpv4",
        (true, true) => "mptcpv6",
    }
}

/// Waits until at most one process listens on the port of a `bind` line. One that stops has the kernel hand
/// new connections to the socket that began to listen last, which works with one old socket and one new one:
/// with a third the kernel puts them in another order when the first is closed.
fn await_turn(program: &Program, bind: &Bind, until: Instant) {
    let (Listen::Tcp(address), None) = (&bind.address, bind.namespace) else { return };
    // Of several shards the old process has as many, and they all go at once.
    let on = |p: &Proxy| p.binds.iter().filter(|other| other.address == bind.address).count();
    if program.proxies.iter().map(|p| on(&p)).sum::<usize>() > 1 {
        return;
    }
    while rt::listening(*address).is_some_and(|sockets| sockets > 1) && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
}

/// What a socket is opened with.
pub fn options(global: &Global, bind: &Bind, backlog: u32) -> ListenOptions {
    ListenOptions {
        reuseport: !global.disabled.reuseport,
        recv_buffer: global.tune.rcvbuf_client.map(|bytes| bytes as usize),
        send_buffer: global.tune.sndbuf_client.map(|bytes| bytes as usize),
        unsent: global.tune.unsent_client,
        ..listener::options(bind, backlog)
    }
}

/// Opens one listening socket, `fd@` ones included.
///
/// # Errors
/// What the system says.
pub fn listen(global: &Global, bind: &Bind, backlog: u32) -> io::Result<Listener> {
    bind.namespace.map_or(Ok(()), rt::open_namespace)?;
    let options = options(global, bind, backlog);
    match &bind.address {
        Listen::Fd(fd) => Listener::adopt(sys::inherited(*fd)?, &options),
        Listen::SockPair(fd) => Listener::from_sockpair(sys::inherited(*fd)?),
        address => match net::listen(address) {
            Some(addr) => Listener::bind(&addr, &options),
            None => Err(io::ErrorKind::Unsupported.into()),
        },
    }
}

/// The same, but nobody can connect to it before the other half of what this gives has begun. Inherited
/// sockets listen already.
///
/// # Errors
/// What the system says.
pub fn bound(global: &Global, bind: &Bind, backlog: u32) -> io::Result<(Listener, Option<Unheard>)> {
    bind.namespace.map_or(Ok(()), rt::open_namespace)?;
    match net::listen(&bind.address) {
        Some(addr) => {
            let (listener, unheard) = Listener::bound(&addr, &options(global, bind, backlog))?;
            Ok((listener, Some(unheard)))
        }
        None => Ok((listen(global, bind, backlog)?, None)),
    }
}

/// Has the old processes give up their ports; what fails then, too, is returned.
fn insist(
    program: &Program,
    failed: Vec<(u32, u32, io::Error)>,
    opened: &mut Vec<Opened>,
    old: &[i32],
) -> Vec<(u32, u32, io::Error)> {
    let (busy, mut rest): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|(.., e)| e.kind() == io::ErrorKind::AddrInUse);
    if busy.is_empty() {
        return rest;
    }
    signal(old, Signal::Ttou);
    for (proxy, index, first) in busy {
        let proxy_ref = program.configured(proxy);
        let bind = &proxy_ref.binds[index as usize];
        let mut last = Err(first);
        for _ in 0..TRIES {
            last = listen(&program.global, bind, engine::listener::backlog(proxy_ref, bind));
            if last.is_ok() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        match last {
            Ok(listener) => opened.push(Opened { proxy, bind: index, listener }),
            Err(e) => rest.push((proxy, index, e)),
        }
    }
    if !rest.is_empty() {
        signal(old, Signal::Ttin);
    }
    rest
}

/// Sends a signal to processes, gone ones passed over.
pub fn signal(processes: &[i32], signal: Signal) {
    for pid in processes {
        let _ = sys::kill(*pid, signal.number());
    }
}

/// Says why a socket can't be had.
pub fn complain(bind: &Bind, whose: &str, e: &io::Error) {
    say::alert(&complaint(bind, whose, e));
    if let Some(text) = hint(bind, e).filter(|_| !say::hushed()) {
        say::error(&format!("  {text}\n"));
    }
}

/// Whether the kernel knows no such protocol: `ENOPROTOOPT`, `EPROTONOSUPPORT`.
fn lacks_protocol(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(92 | 93))
}

/// Why a socket can't be had.
pub fn complaint(bind: &Bind, whose: &str, e: &io::Error) -> String {
    let (file, line) = &bind.place;
    let reason = say::reason(e);
    let what = match &bind.address {
        Listen::Tcp(a) => {
            // A kernel without MPTCP makes no such sockets.
            let made = if bind.mptcp && lacks_protocol(e) { "create receiving" } else { "bind" };
            format!("{}: cannot {made} socket ({reason}) for [{}:{}].", family(bind, a), a.ip(), a.port())
        }
        Listen::Unix(path) => {
            let path = String::from_utf8_lossy(path);
            format!("unix_stream: cannot bind UNIX socket ({reason}) [{path}].")
        }
        Listen::Abns(name) => abstract_name("abns", name, &reason),
        Listen::Abnsz(name) => abstract_name("abnsz", name, &reason),
        Listen::Fd(n) => format!("tcpv4: cannot receive on socket ({reason}) for [fd@{n}]."),
        Listen::SockPair(n) => format!("sockpair: cannot receive on socket ({reason}) for [sockpair@{n}]."),
    };
    format!("Binding [{file}:{line}] for {whose}: protocol {what}")
}

fn abstract_name(kind: &str, name: &[u8], reason: &str) -> String {
    format!("{kind}: cannot bind UNIX socket ({reason}) [{kind}@{}].", String::from_utf8_lossy(name))
}

/// What may be done about it.
fn hint(bind: &Bind, e: &io::Error) -> Option<String> {
    let Listen::Tcp(address) = &bind.address else { return None };
    Some(match e.kind() {
        io::ErrorKind::AddrInUse => format!(
            "Another program listens on port {0}: 'ss -ltnp sport = :{0}' names it. Stop it, or change this line.",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => {
            "Ports below 1024 need root, or the capability CAP_NET_BIND_SERVICE.".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "This machine has no such address: 'ip address' lists those it has. 'transparent' binds it all the same."
                .to_owned()
        }
        _ => return None,
    })
}
