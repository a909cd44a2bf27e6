//! What becomes of a server connection after its response: it goes to the pool, or stays with its client.

use std::rc::Rc;

use farm::pool::{Identity, Idle};
use model::server::admin;
use model::server_conns::Private;
use mux::Mux;

use crate::own::Kept;
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
        if stream.client.part.is_some() && worker.is_superseded() {
            // Other streams of the connection know its servers by other indices.
            return idle.socket.close();
        }
        let backend = stream.backend_index();
        let stay = worker.shared.farm.stay(backend, server);
        let state = server.map(|server| worker.shared.program.server(backend, server));
        if state.as_ref().is_some_and(|server| is_laid_up(&server.state)) {
            // Nobody meets that server again.
            return stream.part(Some(idle.socket));
        }
        let counted = state.map(|server| Private::rest(&server.state));
        let most = stream.frontend().session_conns as usize;
        let mut own = stream.client.session.own.borrow_mut();
        return own.get_or_insert_default().keep(
            most,
            Kept { backend, server, idle, stay, counted },
            challenged,
        );
    }
    let Some(server) = server else { return };
    let backend = stream.backend_index();
    let config = &*worker.shared.program.server(backend, server);
    // `max-reuse` counts streams of HTTP/2; a connection of HTTP/1 serves as long as it is kept, as HAProxy's
    // do.
    let leads_there = config.state.moves() == up.fit.moves && !is_laid_up(&config.state);
    let refused = if config.pool_max_conn != 0 && leads_there {
        let shared = worker.shared.program.global.tune.shared_pool;
        let ways = worker.shared.farm.backend(backend);
        let slot = ways.slots.get(server as usize);
        let quay = slot.filter(|_| shared).and_then(|s| s.quays.own());
        worker.farm.pools.give(backend, server, idle, config, quay)
    } else {
        Some(idle)
    };
    stream.part(refused.map(|idle| idle.socket));
}

/// Whether a server is in maintenance: no connection to it rests.
fn is_laid_up(server: &model::Server) -> bool {
    server.admin() & admin::MAINT != 0
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

/// One of the client's own connections that carries many streams, if it leads where this request goes.
pub(super) fn own_mux(stream: &Stream<'_>, server: u32, identity: Identity) -> Option<Rc<Mux>> {
    stream.client.session.own.borrow().as_ref()?.mux(stream.backend_index(), server, identity)
}

/// One of the client's own connections, if it leads where this request goes.
pub(super) fn take_own(stream: &Stream<'_>, server: Option<u32>, identity: Identity) -> Option<Idle> {
    let mut own = stream.client.session.own.borrow_mut();
    own.as_mut()?.take(stream.backend_index(), server, identity)
}
