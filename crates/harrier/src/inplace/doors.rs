//! Listening sockets of a configuration that takes the place of another: those that stay are known by their
//! address and by what can't change of them, others are opened before anything is adopted.

use engine::Shared;
use engine::listener::backlog;
use engine::run::Opened;
use engine::worker::{Exposed, ExposedSocket, Moves};
use model::proxy::FrontState;
use program::{Bind, Global, Program, Proxy};
use rt::{Listener, WeakListener};

use super::way::Way;
use crate::sockets;

/// All of them.
pub struct Doors {
    /// New ones of frontends.
    pub opened: Vec<Opened>,
    /// New ones of the runtime API, with the place of their line.
    pub cli: Vec<(usize, Listener)>,
    /// What becomes of the others.
    pub moves: Moves,
    /// The addresses and interfaces of all, with the sockets of new ones.
    shown: Vec<(Bind, Option<WeakListener>)>,
}

/// What makes a socket such as it is.
fn nature(global: &Global, bind: &Bind) -> String {
    let options = sockets::options(global, bind, 0);
    format!("{:?} {:?} {:?} {}", bind.address, options, bind.congestion, bind.threads)
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
        let mut doors =
            Doors { opened: Vec::new(), cli: Vec::new(), moves: Moves::default(), shown: Vec::new() };
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
        doors.api(before, program, way, &mut complaints);
        if complaints.is_empty() { Ok(doors) } else { Err(complaints) }
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
                e.address == bind.address && e.namespace == bind.namespace && e.threads == bind.threads
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
        shown.filter_map(of).collect()
    }
}
