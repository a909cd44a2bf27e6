//! What becomes of a server connection after its response: it goes to the pool, or stays with its client.

use std::rc::Rc;

use model::server::admin;
use program::proxy::Proxy;

use crate::h2::Mux;
use crate::pool::{Identity, Idle};
use crate::shared::Stay;
use crate::stream::Stream;

/// Puts a connection to rest after its response, if it may serve others.
pub fn park(stream: &mut Stream<'_>) {
    let Some(up) = stream.upstream.take_if(|up| up.call.is_none()) else { return };
    stream.leave_connection();
    let worker = stream.worker.clone();
    let idle = Idle::new(up.socket, up.fit.identity, up.requests + 1, up.seat);
    let server = stream.place.as_ref().map(|p| p.server);
    let challenged = authenticates_connection(stream);
    if !up.fit.shareable || challenged {
        let backend = stream.backend_index();
        let _stay = worker.shared.stay(backend, server);
        return keep_own(stream, Kept { backend, server, idle, _stay }, challenged);
    }
    let Some(server) = server else { return };
    let backend = stream.backend_index();
    let config = &*worker.shared.program.server(backend, server);
    // `max-reuse` counts streams of HTTP/2; a connection of HTTP/1 serves as long as it is kept, as HAProxy's do.
    let leads_there = config.state.moves() == up.fit.moves && config.state.admin() & admin::MAINT == 0;
    if config.pool_max_conn != 0 && leads_there {
        let shared = worker.shared.program.global.tune.shared_pool;
        let ways = worker.shared.backend(backend);
        let slot = ways.slots.get(server as usize);
        let quay = slot.filter(|_| shared).and_then(|s| s.quays.own());
        worker.pools.give(backend, server, idle, config, quay);
    }
}

/// NTLM and Negotiate authenticate the connection, not the request: it then belongs to one client.
pub fn authenticates_connection(stream: &Stream<'_>) -> bool {
    if !matches!(stream.txn.res.status(), 401 | 407) {
        return false;
    }
    let schemes = [&b"ntlm"[..], b"negotiate", b"nego2"];
    let says = |name: &str| {
        stream.txn.res.all(name).any(|(_, v)| {
            schemes.iter().any(|s| v.get(..s.len()).is_some_and(|start| start.eq_ignore_ascii_case(s)))
        })
    };
    says("www-authenticate") || says("proxy-authenticate")
}

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

impl Own {
    /// Keeps one that carries many streams.
    pub(super) fn keep_mux(&mut self, backend: u32, server: u32, mux: Rc<Mux>) {
        self.muxes.retain(|(.., mux)| !mux.is_closing());
        self.muxes.push((backend, server, mux));
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kept.iter().for_each(|kept| kept.idle.socket.close());
        self.muxes.iter().for_each(|(.., mux)| mux.retire());
    }
}

/// One of the client's own connections that carries many streams, if it leads where this request goes.
pub(super) fn own_mux(stream: &Stream<'_>, server: u32, identity: Identity) -> Option<Rc<Mux>> {
    let backend = stream.backend_index();
    let fits = |mux: &Rc<Mux>| mux.identity() == identity && mux.has_room();
    let own = stream.client.session.own.borrow();
    let mut fitting =
        own.as_ref()?.muxes.iter().filter(|(b, s, mux)| *b == backend && *s == server && fits(mux));
    fitting.next().map(|(.., mux)| mux.clone())
}

struct Kept {
    backend: u32,
    server: Option<u32>,
    idle: Idle,
    _stay: Stay,
}

fn keep_own(stream: &Stream<'_>, kept: Kept, challenged: bool) {
    let most = stream.frontend().session_conns as usize;
    let mut own = stream.client.session.own.borrow_mut();
    let own = own.get_or_insert_default();
    own.challenged |= challenged;
    own.kept.retain(|k| k.idle.is_quiet());
    if own.kept.len() < most {
        own.kept.push(kept);
    }
}

/// The server of one of the client's own connections that a request should meet again, and whether it has to, be its queue as long
/// as it may: servers that authenticate connections (NTLM) are met again, others where `option prefer-last-server` asks.
pub fn last_server(stream: &Stream<'_>, proxy: &Proxy) -> Option<(u32, bool)> {
    let index = stream.backend_index();
    let mut own = stream.client.session.own.borrow_mut();
    let own = own.as_mut()?;
    if !own.challenged && !proxy.options.prefer_last_server {
        return None;
    }
    own.kept.retain(|k| k.idle.is_quiet());
    let kept = own.kept.iter().filter(|k| k.backend == index).filter_map(|k| k.server);
    let muxes = own.muxes.iter().filter(|(backend, _, mux)| *backend == index && !mux.is_closing());
    let mut servers = kept.chain(muxes.map(|(_, server, _)| *server));
    let server = servers.find(|server| proxy.server(*server).state.is_usable())?;
    Some((server, own.challenged))
}

/// One of the client's own connections, if it leads where this request goes.
pub(super) fn take_own(stream: &Stream<'_>, server: Option<u32>, identity: Identity) -> Option<Idle> {
    let backend = stream.backend_index();
    let mut own = stream.client.session.own.borrow_mut();
    let own = &mut own.as_mut()?.kept;
    own.retain(|k| k.idle.is_quiet());
    let fits = |k: &Kept| k.backend == backend && k.server == server && k.idle.identity == identity;
    let at = own.iter().position(fits)?;
    // In their order: the first is the server that is met again.
    Some(own.remove(at).idle)
}
