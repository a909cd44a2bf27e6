//! Servers that speak HTTP/2 or FastCGI: whether one does for a request, and streams of connections to it.

use std::rc::Rc;

use link::transport::Transport;
use model::Origin;
use model::server_conns::Seat;
use mux::fcgi::{Errors, Setup};
use mux::{Call, Mux};
use program::fcgi::Application;
use program::log::level;
use program::proto::Proto;
use program::proxy::{Proxy, Reuse};
use program::server::{Server, ServerTls, Ws};
use rt::{Addr, Socket};

use super::own::own_mux;
use super::{Aim, Attempt, classify, install, may_be_early, note_source};
use crate::Worker;
use crate::sinks::{Body, Event};
use crate::stream::Stream;
use farm::At;
use farm::pool::{Fit, Home, Idle};

/// How a server is spoken to for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    /// HTTP/1, or TCP; ALPN offers what it offers.
    Plain,
    /// HTTP/1: ALPN may not agree on anything else.
    H1,
    /// HTTP/2, unasked.
    H2,
    /// FastCGI, unasked.
    Fcgi,
    /// What ALPN agrees on.
    Asks,
    /// The same, where only HTTP/2 will do.
    AsksH2,
}

impl Speaks {
    /// Whether a connection may carry streams.
    pub(super) fn may_multiplex(self) -> bool {
        matches!(self, Speaks::H2 | Speaks::Fcgi | Speaks::Asks | Speaks::AsksH2)
    }

    /// Whether it does so without a handshake that agrees on it.
    pub(super) fn is_unasked(self) -> bool {
        matches!(self, Speaks::H2 | Speaks::Fcgi)
    }

    /// The version of HTTP, where no handshake has to tell it; 0 where one does.
    pub(super) fn known_major(self) -> u8 {
        match self {
            Speaks::Plain | Speaks::H1 | Speaks::Fcgi => 1,
            Speaks::H2 => 2,
            Speaks::Asks | Speaks::AsksH2 => 0,
        }
    }

    /// What ALPN offers instead of what is configured.
    pub(super) fn alpn(self, tls: &ServerTls) -> Option<Vec<Vec<u8>>> {
        let offered = || tls.alpn.iter();
        match self {
            Speaks::H1 if !tls.alpn.is_empty() => {
                let others: Vec<_> = offered().filter(|name| name[..] != *b"h2").cloned().collect();
                Some(if others.is_empty() { vec![b"http/1.1".to_vec()] } else { others })
            }
            Speaks::AsksH2 => Some(vec![b"h2".to_vec()]),
            _ => None,
        }
    }
}

/// `proto`, `alpn` and, for WebSockets, `ws`.
pub(super) fn speaks(stream: &Stream<'_>, config: &Server) -> Speaks {
    if config.proto == Proto::Fcgi && stream.txn.has_req {
        return Speaks::Fcgi;
    }
    let h2 = config.proto == Proto::H2;
    let offers = |name: &[u8]| config.tls().is_some_and(|tls| tls.alpn.iter().any(|a| a[..] == *name));
    if !stream.txn.has_req || !(h2 || offers(b"h2") || config.ws == Ws::H2) {
        return Speaks::Plain;
    }
    let usual = if h2 { Speaks::H2 } else { Speaks::Asks };
    let req = &stream.txn.req;
    let websocket = wire::http1::upgrades(req) && req.has_token("upgrade", b"websocket");
    match config.ws {
        _ if !websocket && config.ws == Ws::H2 && !h2 && !offers(b"h2") => Speaks::Plain,
        _ if !websocket => usual,
        Ws::H1 => Speaks::H1,
        Ws::H2 if config.tls().is_some() && !h2 => Speaks::AsksH2,
        Ws::H2 => Speaks::H2,
        Ws::Auto if !h2 && offers(b"http/1.1") => Speaks::H1,
        Ws::Auto => usual,
    }
}

/// Takes a stream of a connection that stands already; whether there was one.
pub(super) fn multiplexed(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    server: u32,
    fit: Fit,
    addr: &Addr,
) -> bool {
    let worker = stream.worker.clone();
    let (backend, session) = (stream.backend_index(), stream.client.conn().serial);
    let first = stream.is_first() && !proxy.retry_on.outlives_idle();
    let fits = |mux: &Mux| match proxy.reuse {
        Reuse::Never => false,
        Reuse::Safe => !first && mux.fits(session),
        // A connection that takes many streams is expected to take another one.
        Reuse::Aggressive | Reuse::Always => true,
    };
    // While the handshake is not over all that is sent goes as early data.
    let early = may_be_early(stream, proxy);
    let joins = |mux: &Mux| early || !mux.socket().is_early();
    let mux = match fit.shareable {
        true => worker.farm.pools.mux(backend, server, fit.identity, |mux| fits(mux) && joins(mux)),
        false => own_mux(stream, server, fit.identity).filter(|mux| joins(mux)),
    };
    let Some((call, socket)) = mux.and_then(|mux| mux.reserve(session)) else { return false };
    let state = &proxy.server(server).state;
    state.counters.of(worker.index).reuses.inc();
    proxy.state.back.counters.of(worker.index).reuses.inc();
    use_call(stream, call, socket, fit, addr);
    let facts = &mut stream.txn.server_conn;
    (facts.begun, facts.reused, facts.error) = (true, true, model::conn::ConnError::NONE);
    if let Some(up) = &mut stream.upstream {
        up.reused = true;
    }
    stream.count_attempt();
    true
}

/// Speaks HTTP/2 or FastCGI on a new connection, and takes its first stream.
pub(super) async fn begin_streams(
    stream: &mut Stream<'_>,
    aim: &Aim<'_>,
    socket: Transport,
    seat: Option<Seat>,
) -> Result<(), Attempt> {
    if let Some(header) = aim.header.filter(|_| aim.config.tls().is_none()) {
        socket.send_all(header).await.map_err(|e| classify(&e))?;
    }
    let fresh = Idle::new(socket, aim.fit.identity, 0, seat);
    if speak(stream, aim, fresh) { Ok(()) } else { Err(Attempt::Resource) }
}

/// Speaks FastCGI again on a connection that was at rest; whether that is possible.
pub(super) fn begin_again(stream: &mut Stream<'_>, aim: &Aim<'_>, idle: Idle) -> bool {
    let requests = idle.requests;
    if !speak(stream, aim, idle) {
        return false;
    }
    let worker = stream.worker.index;
    aim.config.state.counters.of(worker).reuses.inc();
    aim.proxy.state.back.counters.of(worker).reuses.inc();
    stream.txn.server_conn.reused = true;
    if let Some(up) = &mut stream.upstream {
        (up.reused, up.requests) = (true, requests);
    }
    stream.count_attempt();
    true
}

/// Gives a connection to a task that speaks for all who have a stream of it, and takes one.
fn speak(stream: &mut Stream<'_>, aim: &Aim<'_>, connection: Idle) -> bool {
    let &Aim { proxy, server, config, fit, addr, speaks, .. } = aim;
    let worker = stream.worker.clone();
    let (backend, session) = (stream.backend_index(), stream.client.conn().serial);
    let Idle { socket, seat, requests, .. } = connection;
    let most = match u32::try_from(config.max_reuse) {
        // One that nobody else finds serves one request.
        _ if fit.shareable && config.pool_max_conn == 0 => 1,
        Ok(most) => most.saturating_add(1),
        Err(_) => u32::MAX,
    };
    let returns = returns(aim).then_some(requests);
    let owner = mux::Owner {
        worker: worker.index,
        backend: Some(proxy.state.clone()),
        patience: proxy.timeouts.server,
        server: Some(config.state.clone()),
        low: config.pool_low_conn,
        identity: fit.identity,
        moves: fit.moves,
        most,
        ping: config.idle_ping,
        returns,
        fcgi: speaks == Speaks::Fcgi,
        private: !fit.shareable,
        pool: Box::new(Home::of(&worker.farm, At { proxy: backend, server })),
    };
    let tune = &worker.shared.program.global.tune;
    let mux = match &proxy.fcgi {
        Some(fcgi) if speaks == Speaks::Fcgi => {
            let (most, held) = (tune.bufsize, tune.most_read());
            let setup = Setup { app: fcgi.app.clone(), most, held, errors: errors(&worker, fcgi) };
            mux::fcgi::start(socket, setup, owner, seat, session)
        }
        _ => {
            worker.farm.pools.note_h2(backend, server, true);
            let limits = mux::h2::server_limits(tune, proxy.options.unsafe_response);
            mux::h2::start(socket, limits, owner, seat, session)
        }
    };
    if !fit.shareable && stream.client.part.is_some() && worker.is_superseded() {
        // Other streams of the client know its servers by other indices.
    } else if !fit.shareable {
        let mut own = stream.client.session.own.borrow_mut();
        own.get_or_insert_default().keep_mux(backend, server, mux.clone());
        worker.farm.pools.note_private(backend, server, &mux, config);
    } else if config.pool_max_conn != 0 && returns.is_none() {
        worker.farm.pools.share(backend, server, mux.clone(), config);
    }
    let Some((call, near)) = Call::new(mux) else { return false };
    use_call(stream, call, near, fit, addr);
    true
}

/// Whether a connection carries one stream at a time, and waits for the next one where all workers find it:
/// the processes of an application are few, and each belongs to its connection.
fn returns(aim: &Aim<'_>) -> bool {
    let app = aim.proxy.fcgi.as_ref().filter(|_| aim.speaks == Speaks::Fcgi).map(|fcgi| &fcgi.app);
    aim.fit.shareable
        && aim.config.pool_max_conn != 0
        && app.is_some_and(|app| app.most == 1 && app.keep_conn && !app.get_values)
}

/// Who is told what an application says of errors; its lines have no control characters.
fn errors(worker: &Rc<Worker>, fcgi: &Application) -> Option<Errors> {
    let (targets, app, worker) = (fcgi.errors.clone(), fcgi.app.clone(), Rc::downgrade(worker));
    if targets.is_empty() {
        return None;
    }
    Some(Box::new(move |text| {
        if let Some(worker) = worker.upgrade() {
            let line: Vec<u8> = text.iter().map(|b| if b.is_ascii_control() { b'.' } else { *b }).collect();
            let event = Event { origin: Origin::Unspecified, level: level::ERROR, profile: None };
            worker.sinks.send_to(&targets, Some(&app.name), event, Body::Text(&line));
        }
    }))
}

/// From here on the stream's server is at the other end of a stream.
fn use_call(stream: &mut Stream<'_>, call: Call, socket: Socket, fit: Fit, addr: &Addr) {
    // What the connection holds of its server is the multiplexer's.
    install(stream, socket.into(), fit, addr, None);
    stream.txn.server_conn.http_major = if call.speaks_fcgi() { 1 } else { 2 };
    stream.txn.server_secured = call.mux().socket().facts().cloned();
    note_source(stream, call.raw());
    call.note(&mut stream.txn);
    if let Some(up) = &mut stream.upstream {
        up.call = Some(call);
    }
}
