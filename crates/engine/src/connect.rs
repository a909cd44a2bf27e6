//! Reaching a server: an idle connection, or a new one with retries and redispatch.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use model::Peer;
use model::server::Target;
use model::term::{Cause, Phase};
use program::address::{Source, UseSource};
use program::proxy::{Mode, Proxy, Reuse};
use program::server::{PortMap, Server, ServerTls, Ws};
use rt::{Addr, ConnectOptions, Socket, Timer};
use tls::{Handshake, ServerName};

use crate::Worker;
use crate::check;
use crate::choose::{self, NoServer, Wish};
use crate::h2::{Call, Mux};
use crate::pool::{Identity, Idle};
use crate::secure::Refused;
use crate::state::At;
use crate::stream::{Stream, Upstream};
use crate::transport::Transport;

/// Time before the same server is tried again.
const TURN_AROUND: Duration = Duration::from_secs(1);

/// Why a server was not reached.
#[derive(Debug)]
pub enum Failed {
    /// No server could be assigned.
    NoServer(NoServer),
    /// All attempts failed; how the last one did.
    Connect(Attempt),
    /// `redir`: the client is to be sent elsewhere.
    Redirect(u32),
}

/// How one attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Refused, unreachable, reset.
    Refused,
    /// `timeout connect`.
    TimedOut,
    /// Out of descriptors, ports or memory.
    Resource,
    /// The client went away.
    Aborted,
}

impl Failed {
    /// What is logged and answered: cause, phase, status.
    pub fn explain(&self) -> (Cause, Phase, u16) {
        match self {
            Failed::NoServer(why) => choose::explain(*why),
            Failed::Connect(Attempt::Refused) => (Cause::ServerAbort, Phase::Connect, 503),
            Failed::Connect(Attempt::TimedOut) => (Cause::ServerTimeout, Phase::Connect, 503),
            Failed::Connect(Attempt::Resource) => (Cause::Resource, Phase::Connect, 503),
            Failed::Connect(Attempt::Aborted) => (Cause::ClientAbort, Phase::Connect, 400),
            Failed::Redirect(_) => (Cause::Local, Phase::Request, 302),
        }
    }
}

/// Chooses a server and connects to it; on success the stream has its place and its upstream.
///
/// # Errors
/// Why no server was reached.
pub async fn reach(stream: &mut Stream<'_>, wish: &mut Wish) -> Result<(), Failed> {
    let worker = stream.worker.clone();
    let index = stream.backend_index();
    let proxy = worker.shared.program.proxy(index);
    // Without `conn-failure` in `retry-on` nothing is tried again here.
    let retries = stream.txn.overrides.retries.unwrap_or(proxy.retries);
    let retries = if proxy.mode == Mode::Http && !proxy.retry_on.conn_failure { 0 } else { retries };
    if proxy.dispatch.is_some() || (proxy.options.transparent && proxy.servers.is_empty()) {
        return without_server(stream, proxy, retries).await;
    }
    loop {
        if stream.place.is_none() {
            let assigned = assign(stream, wish).await;
            count_unassigned(stream, proxy, &assigned);
            assigned?;
        }
        let server = stream.place.as_ref().map_or(0, |p| p.server);
        if proxy.servers[server as usize].redir.is_some() {
            return Err(Failed::Redirect(server));
        }
        let outcome = attempt(stream, proxy, server).await;
        let failure = match outcome {
            Ok(()) => {
                crate::stick::store(stream);
                return Ok(());
            }
            Err(f) => f,
        };
        if matches!(failure, Attempt::Refused | Attempt::TimedOut) {
            check::observe(&worker, index, server, check::Seen::ConnectFailed);
        }
        if failure == Attempt::Aborted || failure == Attempt::Resource || stream.txn.retries >= retries {
            count_failure(stream, proxy, server);
            return Err(Failed::Connect(failure));
        }
        if let Err(failure) = retry(stream, proxy, server, retries, wish).await {
            count_failure(stream, proxy, server);
            return Err(Failed::Connect(failure));
        }
    }
}

async fn assign(stream: &mut Stream<'_>, wish: &mut Wish) -> Result<(), Failed> {
    let place = choose::server(stream, wish).await.map_err(Failed::NoServer)?;
    let server = place.server;
    let state = &place.config().state;
    let now = rt::now();
    state.rate.add(now.as_millis());
    state.touch(rt::wall());
    state.counters.of(stream.worker.index).sessions.inc();
    stream.txn.server = Some(server);
    stream.client.session.server.set(Some(server));
    stream.txn.times.queued = Some(now);
    stream.place = Some(place);
    Ok(())
}

/// Counts a retry and decides where it goes.
async fn retry(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    server: u32,
    retries: u32,
    wish: &mut Wish,
) -> Result<(), Attempt> {
    let worker = stream.worker.index;
    stream.txn.retries += 1;
    let (back, state) = (proxy.state.back.counters.of(worker), &proxy.servers[server as usize].state);
    let left = retries - stream.txn.retries;
    if redispatches(proxy.options.redispatch, stream.txn.retries, left) && others_exist(stream, server) {
        stream.txn.redispatched = true;
        crate::persist::lost(stream);
        back.redispatches.inc();
        state.counters.of(worker).redispatches.inc();
        wish.fixed = None;
        wish.tried.push(server);
        stream.place = None;
        return Ok(());
    }
    back.retries.inc();
    state.counters.of(worker).retries.inc();
    pause(stream, proxy).await?;
    // Each attempt is a session at its server.
    state.counters.of(worker).sessions.inc();
    Ok(())
}

/// Rests before the same server is tried again, unless the client leaves meanwhile.
async fn pause(stream: &Stream<'_>, proxy: &Proxy) -> Result<(), Attempt> {
    let mut timer = Timer::new();
    timer.set_after(Some(proxy.timeouts.connect.map_or(TURN_AROUND, |t| t.min(TURN_AROUND))));
    poll_fn(|cx| match has_left(stream, proxy, cx) {
        true => Poll::Ready(Err(Attempt::Aborted)),
        false => timer.poll_expired(cx).map(Ok),
    })
    .await
}

/// Whether the client is no longer there to be served: its connection broke, or it closed its side and that counts as
/// leaving (`option abortonclose`), or an operator ended its session.
fn has_left(stream: &Stream<'_>, proxy: &Proxy, cx: &mut Context<'_>) -> bool {
    let client = &stream.client;
    client.session.kill.get().is_some()
        || client.socket.poll_broken(cx).is_ready()
        || (proxy.options.abortonclose && client.socket.is_hung_up())
}

/// Counts a retry for `retry-on` and lets the next attempt choose again.
pub fn count_l7_retry(stream: &mut Stream<'_>, server: Option<u32>, wish: &mut Wish) {
    let worker = stream.worker.clone();
    let proxy = worker.shared.program.proxy(stream.backend_index());
    let Some(server) = server else { return };
    let retries = stream.txn.overrides.retries.unwrap_or(proxy.retries);
    stream.txn.retries += 1;
    proxy.state.back.counters.of(worker.index).retries.inc();
    proxy.servers[server as usize].state.counters.of(worker.index).retries.inc();
    let left = retries.saturating_sub(stream.txn.retries);
    if redispatches(proxy.options.redispatch, stream.txn.retries, left) && others_exist(stream, server) {
        stream.txn.redispatched = true;
        crate::persist::lost(stream);
        proxy.state.back.counters.of(worker.index).redispatches.inc();
        proxy.servers[server as usize].state.counters.of(worker.index).redispatches.inc();
        wish.fixed = None;
        wish.tried.push(server);
        stream.place = None;
    } else {
        // The same server again: that is a retry of the connection, too, and a session.
        let state = &proxy.servers[server as usize].state;
        proxy.state.back.counters.of(worker.index).retries.inc();
        state.counters.of(worker.index).retries.inc();
        state.counters.of(worker.index).sessions.inc();
    }
}

fn others_exist(stream: &Stream<'_>, server: u32) -> bool {
    let backend = &stream.worker.shared.backends[stream.backend_index() as usize];
    backend.balancer.pick(None, |s| s == server as usize).is_some()
}

/// Whether the n-th retry, after which `left` remain, leaves its server (`option redispatch <interval>`).
fn redispatches(interval: i32, retry: u32, left: u32) -> bool {
    let n = interval.unsigned_abs();
    match interval {
        0 => false,
        i if i > 0 => retry.is_multiple_of(n),
        _ => left + 1 == n,
    }
}

/// Counts a request for which no server was found; one that its client gave up is no failure of ours.
fn count_unassigned(stream: &Stream<'_>, proxy: &Proxy, assigned: &Result<(), Failed>) {
    use crate::queue::Refused;
    if let Err(Failed::NoServer(why)) = assigned
        && *why != NoServer::Refused(Refused::Aborted)
    {
        proxy.state.back.counters.of(stream.worker.index).conn_errors.inc();
    }
}

/// Counts a request whose server could not be reached, however often that was tried.
fn count_failure(stream: &Stream<'_>, proxy: &Proxy, server: u32) {
    let worker = stream.worker.index;
    proxy.state.back.counters.of(worker).conn_errors.inc();
    proxy.servers[server as usize].state.counters.of(worker).conn_errors.inc();
}

async fn attempt(stream: &mut Stream<'_>, proxy: &Proxy, server: u32) -> Result<(), Attempt> {
    let worker = stream.worker.clone();
    let config = &proxy.servers[server as usize];
    let addr = address(stream, config).ok_or(Attempt::Refused)?;
    let name = config.tls.as_ref().and_then(|tls| server_name(stream, tls));
    let (identity, shareable) = identity(stream, proxy, config, &addr, name.as_deref());
    let speaks = speaks(stream, config);
    if speaks.may_be_h2() && multiplexed(stream, proxy, server, (identity, shareable), &addr) {
        return Ok(());
    }
    let own = take_own(stream, Some(server), identity);
    let idle = match own {
        None if speaks == Speaks::H2 => None,
        None if shareable => take_idle(stream, proxy, server, identity).await,
        own => own,
    };
    if let Some(idle) = idle {
        stream.txn.server_conn.reused = true;
        stream.txn.server_secured = idle.socket.facts().cloned();
        reused(stream, &addr);
        note_source(stream, idle.socket.raw());
        stream.upstream = Some(Upstream {
            socket: idle.socket,
            buf: None,
            reused: true,
            requests: idle.requests,
            identity,
            safe: true,
            shareable,
            call: None,
        });
        stream.txn.times.connected = Some(rt::now());
        config.state.counters.of(worker.index).reuses.inc();
        proxy.state.back.counters.of(worker.index).reuses.inc();
        return Ok(());
    }
    config.state.counters.of(worker.index).connects.inc();
    proxy.state.back.counters.of(worker.index).connects.inc();
    let source = config.source.as_ref().or(proxy.source.as_ref());
    let options = options(stream, proxy, Some(config), source);
    let mut socket = match config.socks4 {
        Some(through) => {
            let socket = open(stream, proxy, &Addr::Inet(through), &options).await?;
            rt::boxed(via_socks(stream, proxy, &socket, &addr)).await?;
            socket
        }
        None => open(stream, proxy, &addr, &options).await?,
    };
    if let Some(tls) = &config.tls {
        let alpn = speaks.alpn(tls);
        rt::boxed(secure(stream, proxy, config, tls, (name.as_deref(), alpn), &mut socket)).await?;
    }
    let agreed = socket.facts().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
    if speaks == Speaks::H2 || (agreed && speaks.may_be_h2()) {
        check::observe(&worker, stream.backend_index(), server, check::Seen::Connected);
        return rt::boxed(begin_h2(stream, server, socket, (identity, shareable), &addr)).await;
    }
    if shareable {
        worker.pools.make_room(stream.backend_index(), server, &socket, &config.state);
    }
    check::observe(&worker, stream.backend_index(), server, check::Seen::Connected);
    install(stream, socket, (identity, shareable), &addr);
    if let Some(send) = config.send_proxy.as_ref().filter(|_| config.tls.is_none()) {
        crate::proxy_header::stage(stream, send);
    }
    Ok(())
}

/// The name that is sent to a server, and that its certificate has to be for: `sni`, or the host of the request.
fn server_name(stream: &Stream<'_>, tls: &ServerTls) -> Option<Box<str>> {
    let text = |bytes: &[u8]| Some(std::str::from_utf8(bytes).ok()?.into());
    match &tls.sni {
        Some(sni) => {
            stream.evaluate(lang::env::Side::Request, |env| text(sni.eval(env).ok()?.binary(env.arena)))
        }
        None if tls.auto && stream.txn.has_req => {
            let host = stream.txn.req.first("host")?;
            text(host.split(|c| *c == b':').next()?)
        }
        None => None,
    }
}

/// Asks a SOCKS4 proxy to connect on. `timeout connect` holds for it, too.
async fn via_socks(
    stream: &Stream<'_>,
    proxy: &Proxy,
    socket: &Transport,
    addr: &Addr,
) -> Result<(), Attempt> {
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    let gone = |cx: &mut Context<'_>| has_left(stream, proxy, cx);
    crate::socks::connect(socket.raw(), addr, &mut timer, gone).await.map_err(|refused| match refused {
        crate::socks::Refused::TimedOut => Attempt::TimedOut,
        crate::socks::Refused::Aborted => Attempt::Aborted,
        crate::socks::Refused::Io(e) => classify(&e),
    })
}

/// TLS on a new connection, after the PROXY header, which goes in the clear. `timeout connect` holds for it, too.
async fn secure(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    config: &Server,
    tls: &ServerTls,
    (name, alpn): (Option<&str>, Option<Vec<Vec<u8>>>),
    socket: &mut Transport,
) -> Result<(), Attempt> {
    if let Some(send) = &config.send_proxy {
        let header = crate::proxy_header::bytes(stream, send);
        socket.send_all(&header).await.map_err(|e| classify(&e))?;
    }
    let name = name.and_then(|n| ServerName::try_from(n.to_owned()).ok());
    let handshake = Handshake::connect(&tls.connector, name, alpn).map_err(|_| Attempt::Refused)?;
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    let mut left = false;
    let shaken = crate::secure::server(socket.raw(), handshake, &mut timer, |cx| {
        left = has_left(stream, proxy, cx);
        left
    })
    .await;
    match shaken {
        Ok((tls, facts)) => {
            socket.secure(*tls, Some(facts));
            Ok(())
        }
        Err(_) if left => Err(Attempt::Aborted),
        Err(Refused::TimedOut) => Err(Attempt::TimedOut),
        Err(Refused::Failed(number, _, facts)) => {
            stream.txn.server_secured = Some(facts);
            stream.txn.server_conn.error = model::conn::ConnError(number);
            Err(Attempt::Refused)
        }
    }
}

fn install(stream: &mut Stream<'_>, socket: Transport, (identity, shareable): (Identity, bool), addr: &Addr) {
    let http = stream.txn.has_req;
    let facts = &mut stream.txn.server_conn;
    facts.reused = false;
    facts.dst = crate::net::peer(Some(addr));
    facts.http_major = u8::from(http);
    stream.txn.server_secured = socket.facts().cloned();
    stream.txn.times.connected = Some(rt::now());
    note_source(stream, socket.raw());
    stream.upstream = Some(Upstream {
        socket,
        buf: None,
        reused: false,
        requests: 0,
        identity,
        safe: false,
        shareable,
        call: None,
    });
}

/// Notes the local address for log lines that tell it: when they are written the connection serves somebody else.
fn note_source(stream: &mut Stream<'_>, socket: &rt::Socket) {
    if stream.worker.shared.logs_source {
        stream.txn.server_conn.src = crate::live::local_address(socket).unwrap_or_default();
    }
}

/// A connection at rest leads where one made now would: its identity and the flush at every change of the
/// server's address see to that, so nobody has to ask the system.
fn reused(stream: &mut Stream<'_>, addr: &Addr) {
    stream.txn.server_conn.dst = crate::net::peer(Some(addr));
    stream.txn.server_conn.http_major = 1;
}

/// How a server is spoken to for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// HTTP/1, or TCP; ALPN offers what it offers.
    Plain,
    /// HTTP/1: ALPN may not agree on anything else.
    H1,
    /// HTTP/2, unasked.
    H2,
    /// What ALPN agrees on.
    Asks,
    /// The same, where only HTTP/2 will do.
    AsksH2,
}

impl Speaks {
    fn may_be_h2(self) -> bool {
        matches!(self, Speaks::H2 | Speaks::Asks | Speaks::AsksH2)
    }

    /// What ALPN offers instead of what is configured.
    fn alpn(self, tls: &ServerTls) -> Option<Vec<Vec<u8>>> {
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
fn speaks(stream: &Stream<'_>, config: &Server) -> Speaks {
    let offers = |name: &[u8]| config.tls.as_ref().is_some_and(|tls| tls.alpn.iter().any(|a| a[..] == *name));
    if !stream.txn.has_req || !(config.h2 || offers(b"h2") || config.ws == Ws::H2) {
        return Speaks::Plain;
    }
    let usual = if config.h2 { Speaks::H2 } else { Speaks::Asks };
    let req = &stream.txn.req;
    let websocket = wire::http1::upgrades(req) && req.has_token("upgrade", b"websocket");
    match config.ws {
        _ if !websocket && config.ws == Ws::H2 && !config.h2 && !offers(b"h2") => Speaks::Plain,
        _ if !websocket => usual,
        Ws::H1 => Speaks::H1,
        Ws::H2 if config.tls.is_some() && !config.h2 => Speaks::AsksH2,
        Ws::H2 => Speaks::H2,
        Ws::Auto if !config.h2 && offers(b"http/1.1") => Speaks::H1,
        Ws::Auto => usual,
    }
}

/// Takes a stream of a connection that stands already; whether there was one.
fn multiplexed(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    server: u32,
    (identity, shareable): (Identity, bool),
    addr: &Addr,
) -> bool {
    let worker = stream.worker.clone();
    let (backend, session, first) =
        (stream.backend_index(), stream.client.conn().serial, stream.txn.first_request);
    let fits = |mux: &Mux| match proxy.reuse {
        Reuse::Never => false,
        Reuse::Safe => !first && mux.fits(session),
        Reuse::Aggressive => !first || mux.safe.get(),
        Reuse::Always => true,
    };
    let mux = match shareable {
        true => worker.pools.mux(backend, server, identity, fits),
        false => own_mux(stream, server, identity),
    };
    let Some((call, socket)) = mux.and_then(|mux| mux.reserve(session)) else { return false };
    let state = &proxy.servers[server as usize].state;
    state.counters.of(worker.index).reuses.inc();
    proxy.state.back.counters.of(worker.index).reuses.inc();
    use_call(stream, call, socket, (identity, shareable), addr);
    stream.txn.server_conn.reused = true;
    if let Some(up) = &mut stream.upstream {
        up.reused = true;
    }
    true
}

/// Speaks HTTP/2 on a new connection, and takes its first stream.
async fn begin_h2(
    stream: &mut Stream<'_>,
    server: u32,
    socket: Transport,
    (identity, shareable): (Identity, bool),
    addr: &Addr,
) -> Result<(), Attempt> {
    let worker = stream.worker.clone();
    let (backend, session) = (stream.backend_index(), stream.client.conn().serial);
    let proxy = worker.shared.program.proxy(backend);
    let config = &proxy.servers[server as usize];
    if let Some(send) = config.send_proxy.as_ref().filter(|_| config.tls.is_none()) {
        let header = crate::proxy_header::bytes(stream, send);
        socket.send_all(&header).await.map_err(|e| classify(&e))?;
    }
    let most = u32::try_from(config.max_reuse).map_or(u32::MAX, |most| most.saturating_add(1));
    let owner = crate::h2::Owner {
        shared: worker.shared.clone(),
        worker: worker.index,
        backend,
        server: Some(config.state.clone()),
        identity,
        most,
    };
    let limits = crate::h2::server_limits(&worker.shared.program, proxy.options.unsafe_response);
    let mux = crate::h2::start(socket, limits, owner, session);
    if !shareable {
        stream.client.own.get_or_insert_default().keep_mux(backend, server, mux.clone());
    } else if config.pool_max_conn != 0 {
        worker.pools.share(backend, server, mux.clone());
    }
    let (call, near) = Call::new(mux).ok_or(Attempt::Resource)?;
    use_call(stream, call, near, (identity, shareable), addr);
    Ok(())
}

/// From here on the stream's server is at the other end of a stream.
fn use_call(stream: &mut Stream<'_>, call: Call, socket: Socket, identity: (Identity, bool), addr: &Addr) {
    install(stream, socket.into(), identity, addr);
    stream.txn.server_conn.http_major = 2;
    stream.txn.server_secured = call.mux().socket().facts().cloned();
    note_source(stream, call.raw());
    call.note(&mut stream.txn.server_conn);
    if let Some(up) = &mut stream.upstream {
        up.call = Some(call);
    }
}

async fn take_idle(stream: &Stream<'_>, proxy: &Proxy, server: u32, identity: Identity) -> Option<Idle> {
    // A request whose loss the client could not tell from a failed connect may only go where `http-reuse` lets it.
    let at = At { proxy: stream.backend_index(), server };
    idle(&stream.worker, proxy, at, identity, stream.txn.first_request).await
}

/// An idle connection for a check that connects as traffic does (manual, `check-reuse-pool`): each is the first
/// request of its session. `name` is that of the connection; sources other than fixed ones have no such connections.
pub(crate) async fn idle_for_check(
    worker: &Rc<Worker>,
    proxy: &Proxy,
    at: At,
    addr: &Addr,
    name: Option<&str>,
) -> Option<Transport> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let server = proxy.servers.get(at.server as usize)?;
    let source = server.source.is_some() || proxy.source.is_some();
    if server.send_proxy.is_some() || server.transparent || server.port != PortMap::Fixed || source {
        return None;
    }
    let mut identity = 0;
    if server.pool_conn_name.is_some() || name.is_some() {
        let mut h = DefaultHasher::new();
        addr.hash(&mut h);
        (None::<u32>, None::<u8>).hash(&mut h);
        match (&server.pool_conn_name, name) {
            (Some(_), name) => name.into_iter().for_each(|n| n.as_bytes().hash(&mut h)),
            (None, name) => name.hash(&mut h),
        }
        identity = h.finish().max(1);
    }
    Some(idle(worker, proxy, at, identity, true).await?.socket)
}

async fn idle(
    worker: &Rc<Worker>,
    proxy: &Proxy,
    At { proxy: backend, server }: At,
    identity: Identity,
    first: bool,
) -> Option<Idle> {
    let (allowed, safe_only) = match proxy.reuse {
        Reuse::Never => (false, false),
        Reuse::Safe => (!first, false),
        Reuse::Aggressive => (true, first),
        Reuse::Always => (true, false),
    };
    if !allowed {
        return None;
    }
    let state = &proxy.servers[server as usize].state;
    let own = worker.pools.take(backend, server, identity, safe_only, state);
    let shared = worker.shared.program.global.tune.shared_pool && rt::worker_count() > 1;
    let (idle, low) = (state.idle.load(Relaxed), proxy.servers[server as usize].pool_low_conn);
    // Below `pool-low-conn` each thread keeps what it has.
    if own.is_some() || !shared || idle == 0 || idle < low {
        return own;
    }
    crate::pool::take_over(worker, At { proxy: backend, server }, identity, safe_only).await
}

/// Connects, at most for `timeout connect`.
async fn open(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    addr: &Addr,
    options: &ConnectOptions,
) -> Result<Transport, Attempt> {
    let socket = Socket::connect(addr, options).map_err(|e| classify(&e))?;
    socket.reset_on_close();
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    let connected = poll_fn(|cx| {
        if let Poll::Ready(r) = socket.poll_connected(cx) {
            return Poll::Ready(r.map_err(|e| classify(&e)));
        }
        if has_left(stream, proxy, cx) {
            return Poll::Ready(Err(Attempt::Aborted));
        }
        timer.poll_expired(cx).map(|()| Err(Attempt::TimedOut))
    });
    connected.await?;
    Ok(socket.into())
}

fn classify(e: &io::Error) -> Attempt {
    match e.raw_os_error() {
        // EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, EAGAIN (local ports)
        Some(24 | 23 | 105 | 12 | 99 | 11) => Attempt::Resource,
        // ETIMEDOUT
        Some(110) => Attempt::TimedOut,
        _ => Attempt::Refused,
    }
}

/// Where to connect to: the server's address, or for transparent parts of it the client's destination.
fn address(stream: &Stream<'_>, server: &Server) -> Option<Addr> {
    let dst = || stream.txn.decisions.dst.unwrap_or_else(|| stream.client.conn().dst.get());
    let target = server.state.target.load();
    let Target::Inet(configured) = &**target else { return crate::net::target(&target) };
    let mut addr = *configured;
    if server.transparent {
        addr.set_ip(dst().ip()?);
    }
    match server.port {
        PortMap::Fixed if server.transparent && addr.port() == 0 => addr.set_port(dst().port()?),
        PortMap::Fixed => {}
        PortMap::Relative(offset) => {
            let port = i64::from(dst().port()?) + i64::from(offset);
            addr.set_port(u16::try_from(port).ok()?);
        }
    }
    Some(Addr::Inet(addr))
}

fn options(
    stream: &Stream<'_>,
    proxy: &Proxy,
    server: Option<&Server>,
    source: Option<&Source>,
) -> ConnectOptions {
    let tune = &stream.worker.shared.program.global.tune;
    let mut options = ConnectOptions {
        keepalive: proxy.options.server_keepalive.map(crate::net::keepalive),
        user_timeout: server.and_then(|s| s.tcp_ut),
        mark: stream.txn.decisions.bc_mark,
        tos: stream.txn.decisions.bc_tos,
        fastopen: server.is_some_and(|s| s.tfo),
        md5sig: server.and_then(|s| s.md5sig.as_deref()).map(|k| k.as_bytes().to_vec()),
        congestion: server.and_then(|s| s.congestion.as_deref()).map(str::to_owned),
        recv_buffer: tune.rcvbuf_server.map(|b| b as usize),
        send_buffer: tune.sndbuf_server.map(|b| b as usize),
        delay_ack: proxy.options.tcp_smart_connect,
        ..ConnectOptions::default()
    };
    if let Some(source) = source {
        options.interface = source.interface.as_deref().map(str::to_owned);
        let (addr, transparent) = source_address(stream, source);
        options.source = addr.map(Addr::Inet);
        options.transparent = transparent;
    }
    options
}

/// The address to connect from, and whether it is a foreign one.
fn source_address(stream: &Stream<'_>, source: &Source) -> (Option<SocketAddr>, bool) {
    let client = || match stream.txn.decisions.src.unwrap_or_else(|| stream.client.conn().src.get()) {
        Peer::Inet(a) => Some(a),
        _ => None,
    };
    match &source.usesrc {
        None => (source.addr.map(|a| with_port(a, source.ports)), false),
        Some(UseSource::Addr(a)) => (Some(*a), true),
        Some(UseSource::Client) => (client(), true),
        Some(UseSource::ClientIp) => (client().map(|a| SocketAddr::new(a.ip(), 0)), true),
        Some(UseSource::Header(name, occurrence)) => {
            let text =
                if *occurrence < 0 { stream.txn.req.last(&**name) } else { stream.txn.req.first(&**name) };
            let ip = text.and_then(|t| std::str::from_utf8(t).ok()?.trim().parse().ok());
            (ip.map(|ip| SocketAddr::new(ip, 0)), true)
        }
    }
}

fn with_port(mut addr: SocketAddr, ports: Option<(u16, u16)>) -> SocketAddr {
    if let Some((low, high)) = ports {
        let span = u64::from(high.saturating_sub(low)) + 1;
        addr.set_port(low.saturating_add((rt::random() % span) as u16));
    }
    addr
}

/// What makes a connection of this request interchangeable with others, and whether other clients may use it at all.
fn identity(
    stream: &Stream<'_>,
    proxy: &Proxy,
    server: &Server,
    addr: &Addr,
    name: Option<&str>,
) -> (Identity, bool) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let shareable = stream.txn.has_req && server.send_proxy.is_none() && proxy.reuse != Reuse::Never;
    let plain = !server.transparent
        && server.port == PortMap::Fixed
        && server.source.is_none()
        && proxy.source.is_none()
        && server.pool_conn_name.is_none()
        && name.is_none()
        && stream.txn.decisions.bc_mark.is_none()
        && stream.txn.decisions.bc_tos.is_none();
    if plain {
        return (0, shareable);
    }
    let mut h = DefaultHasher::new();
    addr.hash(&mut h);
    if let Some(source) = server.source.as_ref().or(proxy.source.as_ref()) {
        source_address(stream, source).hash(&mut h);
    }
    (stream.txn.decisions.bc_mark, stream.txn.decisions.bc_tos).hash(&mut h);
    if let Some(name) = &server.pool_conn_name {
        stream.evaluate(lang::env::Side::Request, |env| {
            if let Ok(v) = name.eval(env) {
                v.binary(env.arena).hash(&mut h);
            }
        });
    } else {
        name.hash(&mut h);
    }
    (h.finish().max(1), shareable)
}

fn address_identity(stream: &Stream<'_>, proxy: &Proxy, addr: &Addr) -> Identity {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut h = DefaultHasher::new();
    addr.hash(&mut h);
    if let Some(source) = &proxy.source {
        source_address(stream, source).hash(&mut h);
    }
    (stream.txn.decisions.bc_mark, stream.txn.decisions.bc_tos).hash(&mut h);
    h.finish()
}

/// `dispatch` and `option transparent`: one address, no server.
async fn without_server(stream: &mut Stream<'_>, proxy: &Proxy, retries: u32) -> Result<(), Failed> {
    let addr = match proxy.dispatch {
        Some(a) => a,
        None => match stream.txn.decisions.dst.unwrap_or_else(|| stream.client.conn().dst.get()) {
            Peer::Inet(a) => a,
            _ => return Err(Failed::Connect(Attempt::Refused)),
        },
    };
    stream.txn.times.queued = Some(rt::now());
    let options = options(stream, proxy, None, proxy.source.as_ref());
    let addr = Addr::Inet(addr);
    let identity = address_identity(stream, proxy, &addr);
    if let Some(idle) = take_own(stream, None, identity) {
        stream.txn.server_conn.reused = true;
        stream.txn.server_secured = idle.socket.facts().cloned();
        reused(stream, &addr);
        note_source(stream, idle.socket.raw());
        stream.upstream = Some(Upstream {
            socket: idle.socket,
            buf: None,
            reused: true,
            requests: idle.requests,
            identity,
            safe: true,
            shareable: false,
            call: None,
        });
        stream.txn.times.connected = Some(rt::now());
        return Ok(());
    }
    loop {
        proxy.state.back.counters.of(stream.worker.index).connects.inc();
        match open(stream, proxy, &addr, &options).await {
            Ok(socket) => {
                install(stream, socket, (identity, false), &addr);
                return Ok(());
            }
            Err(f) => {
                if f == Attempt::Aborted || f == Attempt::Resource || stream.txn.retries >= retries {
                    proxy.state.back.counters.of(stream.worker.index).conn_errors.inc();
                    return Err(Failed::Connect(f));
                }
                stream.txn.retries += 1;
                proxy.state.back.counters.of(stream.worker.index).retries.inc();
                pause(stream, proxy).await.map_err(Failed::Connect)?;
            }
        }
    }
}

/// Puts a connection to rest after its response, if it may serve others.
pub fn park(stream: &mut Stream<'_>) {
    let Some(up) = stream.upstream.take_if(|up| up.call.is_none()) else { return };
    let worker = stream.worker.clone();
    let requests = up.requests + 1;
    let idle = Idle::new(up.socket, up.identity, requests, up.safe || up.reused);
    let server = stream.place.as_ref().map(|p| p.server);
    if !up.shareable || authenticates_connection(stream) {
        return keep_own(stream, Kept { backend: stream.backend_index(), server, idle });
    }
    let Some(server) = server else { return };
    let backend = stream.backend_index();
    let config = &worker.shared.program.proxy(backend).servers[server as usize];
    let worn = u32::try_from(config.max_reuse).is_ok_and(|m| requests > m);
    if !worn && config.pool_max_conn != 0 && config.state.is_up() {
        let shared = worker.shared.program.global.tune.shared_pool;
        let slot = worker.shared.backends[backend as usize].slots.get(server as usize);
        let quay = slot.filter(|_| shared).and_then(|s| s.quays.own());
        worker.pools.give(backend, server, idle, config, quay);
    }
}

/// NTLM and Negotiate authenticate the connection, not the request: it then belongs to one client.
fn authenticates_connection(stream: &Stream<'_>) -> bool {
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
pub struct Own(Vec<Kept>, Vec<(u32, u32, Rc<Mux>)>);

impl Own {
    /// Keeps one that carries many streams.
    fn keep_mux(&mut self, backend: u32, server: u32, mux: Rc<Mux>) {
        self.1.retain(|(.., mux)| !mux.is_closing());
        self.1.push((backend, server, mux));
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.1.iter().for_each(|(.., mux)| mux.retire());
    }
}

/// One of the client's own connections that carries many streams, if it leads where this request goes.
fn own_mux(stream: &Stream<'_>, server: u32, identity: Identity) -> Option<Rc<Mux>> {
    let backend = stream.backend_index();
    let fits = |mux: &Rc<Mux>| mux.identity() == identity && mux.has_room();
    let own = stream.client.own.as_ref()?.1.iter();
    let mut fitting = own.filter(|(b, s, mux)| *b == backend && *s == server && fits(mux));
    fitting.next().map(|(.., mux)| mux.clone())
}

struct Kept {
    backend: u32,
    server: Option<u32>,
    idle: Idle,
}

fn keep_own(stream: &mut Stream<'_>, kept: Kept) {
    let most = stream.frontend().session_conns as usize;
    let own = &mut stream.client.own.get_or_insert_default().0;
    own.retain(|k| k.idle.is_quiet());
    if own.len() < most {
        own.push(kept);
    }
}

/// One of the client's own connections, if it leads where this request goes.
fn take_own(stream: &mut Stream<'_>, server: Option<u32>, identity: Identity) -> Option<Idle> {
    let backend = stream.backend_index();
    let own = &mut stream.client.own.as_mut()?.0;
    own.retain(|k| k.idle.is_quiet());
    let fits = |k: &Kept| k.backend == backend && k.server == server && k.idle.identity == identity;
    let at = own.iter().position(fits)?;
    Some(own.swap_remove(at).idle)
}

#[cfg(test)]
mod tests {
    use super::redispatches;

    #[test]
    fn the_default_interval_leaves_the_server_on_the_last_retry_only() {
        assert_eq!([1, 2, 3].map(|n| redispatches(-1, n, 3 - n)), [false, false, true]);
        assert_eq!([1, 2, 3].map(|n| redispatches(-2, n, 3 - n)), [false, true, false]);
        assert_eq!([1, 2, 3].map(|n| redispatches(1, n, 3 - n)), [true, true, true]);
        assert_eq!([1, 2, 3].map(|n| redispatches(0, n, 3 - n)), [false, false, false]);
    }
}
