//! Listening sockets of a configuration that takes the place of another: those that stay are known by their
//! address and by what can't change of them, others are opened before anything is adopted.

use engine::Shared;
use engine::listener::backlog;
use engine::run::Opened;
use engine::worker::{Exposed, ExposedSocket, Moves};
use model::proxy::FrontState;
use program::forward::Dgram;
use program::{Bind, Global, Program, Proxy};
use rt::{Listener, WeakListener};

use super::way::Way;
use crate::sockets;

/// All of them.
#[derive(Default)]
pub struct Doors {
    /// New ones of frontends.
    pub opened: Vec<Opened>,
    /// New ones of the runtime API, with the place of their line.
    pub cli: Vec<(usize, Listener)>,
    /// New ones of `log-forward` sections.
    pub forwards: engine::forward::Doors,
    /// What becomes of the others.
    pub moves: Moves,
    /// The addresses and interfaces of all, with the sockets of new ones.
    shown: Vec<(Bind, Option<WeakListener>)>,
    /// The same of those for datagrams.
    heard: Vec<Exposed>,
}

/// What makes a socket such as it is.
fn nature(global: &Global, bind: &Bind) -> String {
    let options = sockets::options(global, bind, 0);
    format!("{:?} {:?} {:?} {:?}", bind.address, options, bind.congestion, bind.threads)
}

/// The same of a socket for datagrams.
fn heard(global: &Global, dgram: &Dgram) -> String {
    let options = sockets::datagram_options(global);
    let own = (&dgram.interface, dgram.namespace, dgram.transparent, dgram.v6only, dgram.threads);
    format!("{:?} {own:?} {options:?}", dgram.address)
}

/// The `dgram-bind` lines of all sections.
fn datagram_lines(program: &Program) -> impl Iterator<Item = ((usize, usize), &Dgram)> {
    let forwards = program.forwards.iter().enumerate();
    forwards.flat_map(|(s, f)| f.datagrams.iter().enumerate().map(move |(d, dgram)| ((s, d), dgram)))
}

/// Whether a section was not shut down.
fn is_heard(program: &Program, section: usize) -> bool {
    program.forwards.get(section).is_some_and(|f| f.state.front.state() != FrontState::Stopped)
}

/// Frontends that accept, by index.
fn fronts(program: &Program) -> impl Iterator<Item = (u32, &Proxy)> {
    (0u32..).zip(program.proxies.beginning()).filter(|(_, p)| !p.disabled && p.is_frontend)
}

impl Doors {
    /// Finds those that stay and opens the others.
    ///
    /// # Errors
    /// What can't be had.
    pub fn open(shared: &Shared, program: &Program, way: &mut Way) -> Result<Doors, Vec<String>> {
        let before = &shared.program;
        let mut doors = Doors::default();
        let mut complaints = Vec::new();
        let mut left: std::collections::HashMap<String, Vec<(u32, u32)>> = Default::default();
        for (p, proxy) in fronts(before).filter(|(_, p)| p.state.front.state() != FrontState::Stopped) {
            for (b, bind) in (0u32..).zip(&proxy.binds) {
                left.entry(nature(&before.global, bind)).or_default().push((p, b));
            }
        }
        left.values_mut().for_each(|list| list.reverse());
        for (p, proxy) in fronts(program) {
            for (b, bind) in (0u32..).zip(&proxy.binds) {
                if let Some(was) = left.get_mut(&nature(&program.global, bind)).and_then(Vec::pop) {
                    doors.moves.frontends.insert(was, (p, b));
                    doors.shown.push((bind.clone(), None));
                    continue;
                }
                let whose = format!("{} {}", sockets::noun(proxy), proxy.name);
                match way.front(&program.global, (p, b), bind, backlog(proxy, bind), &whose) {
                    Ok(listener) => {
                        doors.shown.push((bind.clone(), Some(listener.downgrade())));
                        doors.opened.push(Opened { proxy: p, bind: b, listener });
                    }
                    Err(text) => complaints.push(text),
                }
            }
        }
        doors.streams(before, program, way, &mut complaints);
        doors.datagrams(shared, program, way, &mut complaints);
        doors.api(before, program, way, &mut complaints);
        if complaints.is_empty() { Ok(doors) } else { Err(complaints) }
    }

    /// Those of `log-forward` sections for streams.
    fn streams(&mut self, before: &Program, program: &Program, way: &mut Way, complaints: &mut Vec<String>) {
        let lines = |program: &Program| -> Vec<((usize, usize), String)> {
            let forwards = program.forwards.iter().enumerate();
            let all =
                forwards.flat_map(|(s, f)| f.binds.iter().enumerate().map(move |(b, bind)| (s, b, bind)));
            all.map(|(s, b, bind)| ((s, b), nature(&program.global, bind))).collect()
        };
        let mut left = lines(before);
        left.retain(|((section, _), _)| is_heard(before, *section));
        for (at, nature) in lines(program) {
            let Ok((_, bind)) = super::way::forwarding(program, at) else { continue };
            if let Some(found) = left.iter().position(|(_, was)| *was == nature) {
                self.moves.streams.insert(left.remove(found).0, at);
                self.shown.push((bind.clone(), None));
                continue;
            }
            match way.streams(program, at) {
                Ok(listener) => {
                    self.shown.push((bind.clone(), Some(listener.downgrade())));
                    self.forwards.listeners.push((at.0, at.1, listener));
                }
                Err(text) => complaints.push(text),
            }
        }
    }

    /// Those of `log-forward` sections for datagrams.
    fn datagrams(&mut self, shared: &Shared, program: &Program, way: &mut Way, complaints: &mut Vec<String>) {
        let before = &shared.program;
        let mut left: Vec<((usize, usize), String)> = datagram_lines(before)
            .filter(|((section, _), _)| is_heard(before, *section))
            .map(|(at, dgram)| (at, heard(&before.global, dgram)))
            .collect();
        for (at, dgram) in datagram_lines(program) {
            let nature = heard(&program.global, dgram);
            if let Some(found) = left.iter().position(|(_, was)| *was == nature) {
                self.moves.datagrams.insert(left.remove(found).0, at);
                let same = |e: &&Exposed| {
                    matches!(e.socket, ExposedSocket::Datagram(_))
                        && (&e.address, e.threads) == (&dgram.address, dgram.threads)
                };
                let known = shared.exposed.iter().find(same);
                self.heard.extend(known.map(|e| sockets::exposed_datagram(dgram, e.socket.clone())));
                continue;
            }
            match way.datagrams(program, at) {
                Ok(socket) => {
                    let weak = ExposedSocket::Datagram(socket.downgrade());
                    self.heard.push(sockets::exposed_datagram(dgram, weak));
                    self.forwards.datagrams.push((at.0, at.1, socket));
                }
                Err(text) => complaints.push(text),
            }
        }
    }

    /// Those of the runtime API.
    fn api(&mut self, before: &Program, program: &Program, way: &mut Way, complaints: &mut Vec<String>) {
        let mut left: Vec<(usize, String)> =
            before.global.cli.iter().map(|bind| nature(&before.global, bind)).enumerate().collect();
        for (at, bind) in program.global.cli.iter().enumerate() {
            let nature = nature(&program.global, bind);
            if let Some(found) = left.iter().position(|(_, was)| *was == nature) {
                self.moves.cli.insert(left.remove(found).0, at);
                self.shown.push((bind.clone(), None));
                continue;
            }
            match way.api(&program.global, at, bind) {
                Ok(listener) => {
                    self.shown.push((bind.clone(), Some(listener.downgrade())));
                    self.cli.push((at, listener));
                }
                Err(text) => complaints.push(text),
            }
        }
    }

    /// What another process may ask for.
    pub fn exposed(&self, before: &Shared) -> Vec<Exposed> {
        let listens = |bind: &Bind| !matches!(bind.address, program::address::Listen::SockPair(_));
        let known = |bind: &Bind| {
            let same = |e: &&Exposed| {
                matches!(e.socket, ExposedSocket::Listener(_))
                    && e.address == bind.address
                    && e.namespace == bind.namespace
                    && e.threads == bind.threads
            };
            let found = before.exposed.iter().find(same);
            found.map(|e| e.socket.clone())
        };
        let shown = self.shown.iter().filter(|(bind, _)| listens(bind));
        let of = |(bind, new): &(Bind, Option<WeakListener>)| {
            let socket = new.clone().map(ExposedSocket::Listener).or_else(|| known(bind))?;
            let (interface, address) = (bind.interface.clone(), bind.address.clone());
            let (namespace, threads) = (bind.namespace, bind.threads);
            Some(Exposed { socket, interface, address, namespace, threads })
        };
        shown.filter_map(of).chain(self.heard.iter().cloned()).collect()
    }
}
