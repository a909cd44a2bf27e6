//! Who may have which idle connection (manual, `http-reuse`).

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use link::transport::Transport;
use program::proto::Proto;
use program::proxy::{Proxy, Reuse};
use program::server::ServerNamespace;
use rt::Addr;

use super::{Identity, Idle, Order, Traits, take_over};
use crate::{At, FarmWorker};

/// An idle connection for a check that connects as traffic does (manual, `check-reuse-pool`): each is the
/// first request of its session. `name` is that of the connection; sources other than fixed ones have no such
/// connections.
pub async fn idle_for_check(
    worker: &Rc<FarmWorker>,
    proxy: &Proxy,
    at: At,
    addr: &Addr,
    name: Option<&str>,
) -> Option<Transport> {
    let server = &*proxy.servers.get(at.server as usize)?;
    if server.proto == Proto::Fcgi {
        // A check would have to know what was said on it.
        return None;
    }
    let moves = server.state.moves();
    let source = server.source.is_some() || proxy.source.is_some();
    if server.send_proxy.is_some()
        || server.transparent
        || server.state.mapped.load(Relaxed)
        || source
        || server.namespace == ServerNamespace::Client
    {
        return None;
    }
    let identity = match server.pool_conn_name.is_some() || name.is_some() {
        true => {
            let name = name.map(str::as_bytes);
            Traits { addr, moves, source: None, mark: None, tos: None, name, header: None, namespace: None }
                .identity()
        }
        false => moves,
    };
    Some(idle(worker, proxy, at, identity, true).await?.socket)
}

/// An idle connection to a server that `http-reuse` lets a request have, from this worker or another.
/// `first`: it is the first request of its session.
pub async fn idle(
    worker: &Rc<FarmWorker>,
    proxy: &Proxy,
    At { proxy: backend, server }: At,
    identity: Identity,
    first: bool,
) -> Option<Idle> {
    let first = first && !proxy.retry_on.outlives_idle();
    let order = match proxy.reuse {
        Reuse::Never => return None,
        Reuse::Safe if first => return None,
        Reuse::Aggressive if first => Order::Proven,
        Reuse::Always if first => Order::ProvenFirst,
        _ => Order::FreshFirst,
    };
    let state = &proxy.server(server).state;
    let own = worker.pools.take(backend, server, identity, order, state);
    let shared = worker.farm.program.global.tune.shared_pool && rt::worker_count() > 1;
    let (idle, low) = (state.conns.idle(), proxy.server(server).pool_low_conn);
    // Below `pool-low-conn` each thread keeps what it has.
    if own.is_some() || !shared || idle == 0 || idle < low {
        return own;
    }
    take_over(worker, At { proxy: backend, server }, identity, order).await
}
