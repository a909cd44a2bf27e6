//! Servers and backends that come and go while a configuration runs (`add server`, `del server`, `add
//! backend`, `del backend`; management manual, 9.3).
//!
//! A new server gets a free index of its backend: its place and queue first, then itself, then it is known by
//! name, and it is in maintenance all the while. One that is deleted can't be found any more. It keeps its
//! index while a stream, a check or a connection at rest holds it, and until each worker has let go of it;
//! then its memory is given back and the index goes to the next one (see [`base::fleet`]).

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use model::events::{Detail, kind};
use model::server::{Op, admin};
use program::Server;
use program::proxy::{Balance, SwitchTo, UseServerTo};

use crate::state::Changes;
use crate::{At, Backend, FarmWorker, Slot, on_all};

/// Why a server can't be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Rules or other servers name it.
    Referenced,
    /// It is not in maintenance.
    Active,
    /// Requests or idle connections use it.
    Busy,
}

/// Why a backend can't be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It accepts connections, too.
    Listens,
    /// Rules or other proxies name it.
    Referenced,
    /// It has a stick table.
    Table,
    /// Content switching may choose it.
    Published,
    /// It has servers.
    Servers,
    /// Requests are being served.
    Busy,
}

/// Adds a backend, which has no servers yet. `None`: there is no room for more.
pub fn add_backend(worker: &Rc<FarmWorker>, proxy: program::Proxy) -> Option<u32> {
    let _changes = Changes::begin(worker);
    let farm = &worker.farm;
    // Whoever finds the proxy finds the rest of it under the same index.
    // The same index is free in both, whoever lets go of a lower one meanwhile.
    let at = farm.program.proxies.vacant();
    farm.backends.put(at, std::sync::Arc::new(Backend::new(&proxy, farm.started)));
    farm.program.proxies.put(at, proxy);
    u32::try_from(at).ok()
}

/// Whether a backend may be deleted now.
///
/// # Errors
/// Why not.
pub fn removable_backend(worker: &FarmWorker, index: u32) -> Result<(), Stays> {
    let program = &worker.farm.program;
    let proxy = &*program.proxy(index);
    let chosen = |p: &program::Proxy| {
        let by_rule = p.switching.iter().any(|s| matches!(s.to, SwitchTo::Backend(to) if to == index));
        by_rule || p.default_backend == Some(index)
    };
    let back = &proxy.state.back;
    if proxy.is_frontend {
        Err(Stays::Listens)
    } else if program.tables.iter().any(|t| *t.settings().name == *proxy.name) {
        Err(Stays::Table)
    } else if back.referenced.load(Relaxed) || program.present().any(|p| chosen(&p)) {
        Err(Stays::Referenced)
    } else if !back.unpublished.load(Relaxed) {
        Err(Stays::Published)
    } else if proxy.present().next().is_some() {
        Err(Stays::Servers)
    } else if back.current.load(Relaxed) > 0 || back.queued.load(Relaxed) > 0 {
        Err(Stays::Busy)
    } else {
        Ok(())
    }
}

/// Deletes a backend.
///
/// # Errors
/// Why it stays.
pub fn remove_backend(worker: &Rc<FarmWorker>, index: u32) -> Result<(), Stays> {
    let _changes = Changes::begin(worker);
    removable_backend(worker, index)?;
    let program = &worker.farm.program;
    let proxy = &*program.proxy(index);
    proxy.state.back.removed.store(true, Relaxed);
    program.world.forget(&proxy.name);
    let at = index as usize;
    let ways = worker.farm.backends.remove(at).and_then(|b| b.token());
    let held = (program.proxies.remove(at).and_then(|p| p.token()), ways);
    on_all(worker, move |w| {
        // The index is free when the last worker has let go.
        let _until_then = &held;
        w.farm.program.proxies.renew();
        w.farm.backends.renew();
    });
    Ok(())
}

/// Whether the servers of a backend may change: the order of `static-rr` and of map-based hashing is fixed.
pub fn is_dynamic(proxy: &program::Proxy) -> bool {
    match &proxy.balance {
        Balance::StaticRr => false,
        Balance::RoundRobin | Balance::LeastConn | Balance::First | Balance::Random(_) | Balance::Sticky => {
            true
        }
        _ => proxy.hash.method == balance::Method::Consistent,
    }
}

/// Adds a server to a backend, in maintenance. Its checks run, once somebody enables them, on one of the
/// workers. `None`: there is no room for more.
pub fn add(worker: &Rc<FarmWorker>, proxy: u32, server: Server) -> Option<At> {
    let changes = Changes::begin(worker);
    let farm = &worker.farm;
    let (config, backend) = (farm.program.proxy(proxy), farm.backend(proxy));
    // Nothing resolves its name: it waits for an address from the runtime API.
    server.state.change_admin(admin::FMAINT, admin::RMAINT | admin::CMAINT, rt::now());
    server.state.set_op(Op::Stopped, rt::now());
    let (state, checked) = (server.state.clone(), server.check.is_some() || server.agent.is_some());
    server.state.revision.store(farm.program.world.process.next_revision(), Relaxed);
    while backend.slots.len() <= config.servers.vacant() {
        backend.slots.push(std::sync::Arc::default()).ok()?;
    }
    let index = config.servers.push(server);
    config.state.back.servers.write().push(state);
    let at = At { proxy, server: u32::try_from(index).ok()? };
    changes.renew(at);
    crate::state::told::tell(worker, at, kind::ADD, || Detail::Nothing);
    drop(changes);
    if checked {
        let on = index % farm.program.world.workers.max(1);
        if on == worker.index {
            crate::check::start_one(worker, at);
        } else {
            crate::on(on, farm.epoch, move |w| crate::check::start_one(w, at));
        }
    }
    Some(at)
}

/// Whether rules, samples or other servers of the configuration name a server.
pub fn is_referenced(worker: &FarmWorker, at: At) -> bool {
    let program = &worker.farm.program;
    let proxy = &*program.proxy(at.proxy);
    let by_rule = proxy.use_server.iter().any(|u| matches!(u.to, UseServerTo::Server(i) if i == at.server));
    let followed =
        || program.proxies.iter().any(|p| p.servers.iter().any(|s| s.track == Some((at.proxy, at.server))));
    by_rule || proxy.server(at.server).state.referenced.load(Relaxed) || followed()
}

/// Whether a server may be deleted now.
///
/// # Errors
/// Why not.
pub fn removable(worker: &FarmWorker, at: At) -> Result<(), Kept> {
    let program = &worker.farm.program;
    let proxy = &*program.proxy(at.proxy);
    let server = &*proxy.server(at.server);
    if is_referenced(worker, at) {
        return Err(Kept::Referenced);
    }
    let state = &server.state;
    if state.is_removed() {
        // Somebody else was faster.
        return Err(Kept::Busy);
    }
    if state.admin() & admin::MAINT == 0 {
        return Err(Kept::Active);
    }
    let busy =
        [state.served.load(Relaxed), state.queued.load(Relaxed), state.conns.used(), state.conns.idle()];
    let backend = worker.farm.backend(at.proxy);
    // Somebody may have been given a place and not know it yet.
    let given = |s: &std::sync::Arc<Slot>| s.gate.served() > 0 || !s.queue.is_empty();
    let given = backend.slots.get(at.server as usize).is_some_and(given);
    if given || busy.iter().any(|n| *n > 0) { Err(Kept::Busy) } else { Ok(()) }
}

/// Deletes a server.
///
/// # Errors
/// Why it stays.
pub fn remove(worker: &Rc<FarmWorker>, at: At) -> Result<(), Kept> {
    let changes = Changes::begin(worker);
    removable(worker, at)?;
    crate::state::told::tell(worker, at, kind::DEL, || Detail::Nothing);
    let proxy = &*worker.farm.program.proxy(at.proxy);
    let state = &proxy.server(at.server).state;
    state.removed.store(true, Relaxed);
    worker.farm.program.world.process.note_deletion();
    // Whoever still follows the server, a check under way or the one that it tracked, can't bring it back.
    state.change_admin(admin::GONE, 0, rt::now());
    proxy.state.back.servers.write().retain(|s| !std::sync::Arc::ptr_eq(s, state));
    let held = proxy.servers.remove(at.server as usize).and_then(|s| s.token());
    let backend = worker.farm.program.proxy(at.proxy).pin().and_then(|p| p.token());
    let held = (held, backend);
    changes.renew(at);
    on_all(worker, move |w| {
        // The index is free when the last worker has let go.
        let _until_then = &held;
        w.checks.end(at);
        let Some(backend) = w.farm.program.proxies.get(at.proxy as usize) else { return };
        if let Some(server) = backend.servers.get(at.server as usize) {
            w.pools.forget(at.proxy, at.server, &server.state);
        }
        backend.servers.renew();
    });
    Ok(())
}
