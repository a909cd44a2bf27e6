//! Services that take the place of a server.

use model::Txn;
use rt::{Addr, Socket};

use super::target::address_fit;
use super::{Attempt, install};
use crate::Worker;
use crate::stream::Stream;
use crate::worker::service::{Guest, Served, StreamKind};

/// Gives the stream to a service that takes the place of a server, if there is one of this name that streams
/// so.
pub fn give(stream: &mut Stream<'_>, name: &str, kind: StreamKind) -> bool {
    let service = stream.worker.shared.service(name).filter(|s| s.streams() == Some(kind)).cloned();
    stream.service = service.map(|service| Served { service, changes: Default::default() });
    stream.service.is_some()
}

/// Connects the stream with its service, by memory.
pub(super) fn reach(stream: &mut Stream<'_>) -> Result<(), Attempt> {
    let Some(served) = &stream.service else { return Err(Attempt::Unreachable) };
    let (service, changes) = (served.service.clone(), served.changes.clone());
    let (near, far) = Socket::local().map_err(|_| Attempt::Resource)?;
    let worker = stream.worker.clone();
    let txn = copied(&worker, &stream.txn);
    let session = stream.client.session.clone();
    stream.txn.by_service = Some(service.name());
    stream.txn.times.queued = Some(rt::now());
    let proxy = &*worker.shared.program.proxy(stream.backend_index());
    // Nobody else is ever served over this connection: its identity is that of no address.
    let nowhere = Addr::Inet(([0, 0, 0, 0], 0).into());
    let fit = address_fit(stream, proxy, &nowhere);
    install(stream, near.into(), fit, &nowhere, None);
    stream.txn.server_conn.dst = model::Peer::default();
    stream.txn.respond();
    service.serve(Guest { worker: worker.clone(), session, txn, changes, socket: far });
    Ok(())
}

/// A copy of a transaction, for who looks at it beside the stream. It belongs back to the worker
/// ([`Worker::give_txn`]).
pub fn copied(worker: &Worker, from: &Txn) -> Box<Txn> {
    let mut txn = worker.take_txn();
    txn.serial = from.serial;
    txn.req.copy_from(&from.req);
    (txn.has_req, txn.peeked, txn.backend) = (from.has_req, from.peeked, from.backend);
    txn.line = from.line.clone();
    txn.decisions = from.decisions.clone();
    *txn.txn_vars.borrow_mut() = from.txn_vars.borrow().clone();
    *txn.req_vars.borrow_mut() = from.req_vars.borrow().clone();
    if from.has_res {
        txn.res.copy_from(&from.res);
        (txn.has_res, txn.status, txn.server) = (true, from.status, from.server);
    }
    txn
}

/// Keeps what the service said of variables with the transaction.
pub fn settle(stream: &mut Stream<'_>) {
    let Some(served) = &stream.service else { return };
    let changes = std::mem::take(&mut *served.changes.borrow_mut());
    if changes.is_empty() {
        return;
    }
    let worker = stream.worker.clone();
    worker.with_arena(|arena| {
        let conn = stream.client.conn();
        let view = crate::live::View::of_txn(&worker, conn, &stream.txn);
        let env = lang::Env {
            conn,
            txn: &stream.txn,
            live: &view,
            arena,
            side: lang::env::Side::Response,
            last: true,
        };
        for (var, value) in changes {
            lang::variables::write(&env, var, value);
        }
    });
}
