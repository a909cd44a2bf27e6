//! Connections of HTTP/2 on their way: who may share one waits for it, instead of opening another for each
//! stream.
//!
//! A wait is never longer than the connect that it is for, and only as many wait as the connection will have
//! streams. When it stands, or comes to nothing, all go on as if nothing had been: they take a stream of it,
//! or connect themselves.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use program::proto::Proto;
use program::proxy::{Proxy, Reuse};
use program::server::Server;
use rt::Notify;

use super::multiplex::Speaks;
use super::{Attempt, withdraws};
use crate::Worker;
use crate::stream::Stream;
use farm::At;
use farm::pool::{Identity, Opening};

/// Says that a connection is being opened, until it is dropped.
pub(super) struct Announced {
    opening: Rc<Opening>,
    worker: Rc<Worker>,
    at: At,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let list = self.worker.farm.pools.openings(self.at.proxy, self.at.server);
        if let Some(list) = list {
            list.borrow_mut().retain(|opening| !Rc::ptr_eq(opening, &self.opening));
        }
        self.opening.waiting.borrow().iter().for_each(|waiter| waiter.notify());
    }
}

/// Lets others know that a connection is being opened that they may share.
pub(super) fn announce(
    stream: &Stream<'_>,
    proxy: &Proxy,
    config: &Server,
    server: u32,
    identity: Identity,
) -> Option<Announced> {
    let at = At { proxy: stream.backend_index(), server };
    if proxy.reuse == Reuse::Never || config.pool_max_conn == 0 {
        return None;
    }
    let limit = match &proxy.fcgi {
        Some(fcgi) if config.proto == Proto::Fcgi => fcgi.app.most,
        _ => mux::h2::server_limits(&stream.worker.shared.program.global.tune, false).streams,
    };
    let most = usize::try_from(config.max_reuse).unwrap_or(usize::MAX);
    let streams = if limit == 0 { usize::MAX } else { limit as usize };
    let opening = Rc::new(Opening {
        identity,
        session: stream.client.conn().serial,
        room: streams.saturating_sub(1).min(most),
        waiting: RefCell::default(),
    });
    let worker = stream.worker.clone();
    worker.farm.pools.openings(at.proxy, at.server)?.borrow_mut().push(opening.clone());
    Some(Announced { opening, worker, at })
}

/// Waits for a connection that is being opened, if there is one that this stream may share.
///
/// # Errors
/// The client left meanwhile.
pub(super) async fn join(
    stream: &Stream<'_>,
    proxy: &Proxy,
    server: u32,
    identity: Identity,
    speaks: Speaks,
) -> Result<bool, Attempt> {
    let (worker, backend) = (&stream.worker, stream.backend_index());
    // What ALPN will agree on is only a guess, which the last connection makes for the next.
    if speaks == Speaks::Asks && !worker.farm.pools.spoke_h2(backend, server) {
        return Ok(false);
    }
    let (session, first) =
        (stream.client.conn().serial, stream.is_first() && !proxy.retry_on.outlives_idle());
    let fits = |opening: &Rc<Opening>| {
        let shares = match proxy.reuse {
            Reuse::Never => false,
            Reuse::Safe => !first && opening.session == session,
            Reuse::Aggressive => !first,
            Reuse::Always => true,
        };
        shares && opening.identity == identity && opening.waiting.borrow().len() < opening.room
    };
    let found = worker
        .farm
        .pools
        .openings(backend, server)
        .and_then(|list| list.borrow().iter().find(|o| fits(o)).cloned());
    let Some(opening) = found else { return Ok(false) };
    let notify = Rc::new(Notify::new());
    opening.waiting.borrow_mut().push(notify.clone());
    let outcome = poll_fn(|cx| {
        if notify.poll_notified(cx).is_ready() {
            return Poll::Ready(Ok(true));
        }
        if withdraws(stream, proxy, cx) { Poll::Ready(Err(Attempt::Aborted)) } else { Poll::Pending }
    })
    .await;
    opening.waiting.borrow_mut().retain(|waiter| !Rc::ptr_eq(waiter, &notify));
    outcome
}
