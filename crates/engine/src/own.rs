//! Server connections that only one client may use, between two of its requests.

use std::rc::Rc;
use std::sync::Arc;

use farm::pool::{Identity, Idle};
use farm::{FarmWorker, Stay};
use model::Server;
use model::server_conns::Private;
use mux::Mux;

/// Server connections that only the client at hand may use, between two of its requests: at most as many as
/// `max-session-srv-conns` says.
#[derive(Default)]
pub struct Own {
    kept: Vec<Kept>,
    /// A server has asked for credentials that are those of its connection: the client is to meet it again.
    challenged: bool,
    /// Those that carry many streams, with the backend and the server that they lead to.
    muxes: Vec<(u32, u32, Rc<Mux>)>,
}

/// One that carries one request after the other.
pub struct Kept {
    /// The backend that it leads to.
    pub backend: u32,
    /// The server; `None` for an address without one.
    pub server: Option<u32>,
    /// The connection.
    pub idle: Idle,
    /// Keeps both.
    pub stay: Stay,
    /// Counts it at its server.
    pub counted: Option<Private>,
}

impl Own {
    /// Keeps one, unless there are `most`. `challenged`: its server has asked for credentials on it.
    pub fn keep(&mut self, most: usize, kept: Kept, challenged: bool) {
        self.challenged |= challenged;
        self.kept.retain(|k| k.idle.is_quiet());
        if self.kept.len() < most {
            self.kept.push(kept);
        }
    }

    /// Keeps one that carries many streams.
    pub fn keep_mux(&mut self, backend: u32, server: u32, mux: Rc<Mux>) {
        self.muxes.retain(|(.., mux)| !mux.is_closing());
        self.muxes.push((backend, server, mux));
    }

    /// One that carries many streams and leads there.
    pub fn mux(&self, backend: u32, server: u32, identity: Identity) -> Option<Rc<Mux>> {
        let fits = |mux: &Rc<Mux>| mux.identity() == identity && mux.has_room();
        let mut fitting = self.muxes.iter().filter(|(b, s, mux)| *b == backend && *s == server && fits(mux));
        fitting.next().map(|(.., mux)| mux.clone())
    }

    /// Closes those to a server that carry one request after the other; of the others the farm knows.
    pub fn let_go(&mut self, server: &Arc<Server>) {
        let leads_there = |k: &mut Kept| k.counted.as_ref().is_some_and(|counted| counted.is_of(server));
        self.kept.extract_if(.., leads_there).for_each(|k| k.idle.socket.close());
    }

    /// One that leads there.
    pub fn take(&mut self, backend: u32, server: Option<u32>, identity: Identity) -> Option<Idle> {
        self.kept.retain(|k| k.idle.is_quiet());
        let fits = |k: &Kept| k.backend == backend && k.server == server && k.idle.identity == identity;
        let at = self.kept.iter().position(fits)?;
        // In their order: the first is the server that is met again.
        Some(self.kept.remove(at).idle)
    }

    /// The server of one that a request to this backend should meet again, and whether it has to, be its
    /// queue as long as it may: servers that authenticate connections (NTLM) are met again, others where it
    /// is `preferred`.
    pub fn last(
        &mut self,
        backend: u32,
        preferred: bool,
        usable: impl Fn(u32) -> bool,
    ) -> Option<(u32, bool)> {
        if !self.challenged && !preferred {
            return None;
        }
        self.kept.retain(|k| k.idle.is_quiet());
        let kept = self.kept.iter().filter(|k| k.backend == backend).filter_map(|k| k.server);
        let muxes = self.muxes.iter().filter(|(b, _, mux)| *b == backend && !mux.is_closing());
        let mut servers = kept.chain(muxes.map(|(_, server, _)| *server));
        Some((servers.find(|server| usable(*server))?, self.challenged))
    }
}

impl Own {
    /// Goes along with its client to the configuration that runs: connections to servers that are such as
    /// before.
    pub fn follow(&mut self, was: &FarmWorker) {
        for Kept { backend, server, idle, stay, counted } in self.kept.drain(..).collect::<Vec<_>>() {
            match was.heir_of(backend, server) {
                Some((backend, server, stay)) => {
                    self.kept.push(Kept { backend, server, idle, stay, counted })
                }
                None => drop((idle.socket.close(), stay)),
            }
        }
        for (backend, server, mux) in self.muxes.drain(..).collect::<Vec<_>>() {
            match was.heir_of(backend, Some(server)) {
                Some((backend, Some(server), _)) => self.muxes.push((backend, server, mux)),
                _ => mux.retire(),
            }
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kept.iter().for_each(|kept| kept.idle.socket.close());
        self.muxes.iter().for_each(|(.., mux)| mux.retire());
    }
}
