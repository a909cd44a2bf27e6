//! Reaching a server: an idle connection, or a new one with retries and redispatch.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use model::Peer;
use model::term::{Cause, Phase};
use program::proxy::{Mode, Proxy, Reuse};
use program::server::{PortMap, Server, ServerTls};
use rt::{Addr, ConnectOptions, Socket, Timer};
use tls::{Handshake, ServerName};

mod multiplex;
mod opening;
mod own;
mod retry;
mod target;

use multiplex::{Speaks, begin_h2, multiplexed, speaks};
pub use opening::Opening;
use own::take_own;
pub use own::{Own, park};
use retry::{count_failure, count_unassigned, pause, retry};
pub use retry::{count_l7_retry, count_lost};
use target::{Traits, address, address_identity, identity, options};

use crate::Worker;
use crate::check;
use crate::choose::{self, NoServer, Wish};
use crate::pool::{Identity, Idle};
use crate::secure::Refused;
use crate::state::At;
use crate::stream::{Stream, Upstream};
use crate::transport::Transport;

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
    /// `maxsslconn`.
    Full,
}

impl Failed {
    /// What is logged and answered: cause, phase, status.
    pub fn explain(&self) -> (Cause, Phase, u16) {
        match self {
            Failed::NoServer(why) => choose::explain(*why),
            Failed::Connect(Attempt::Refused) => (Cause::ServerAbort, Phase::Connect, 503),
            Failed::Connect(Attempt::TimedOut) => (Cause::ServerTimeout, Phase::Connect, 503),
            Failed::Connect(Attempt::Resource) => (Cause::Resource, Phase::Connect, 503),
            Failed::Connect(Attempt::Full) => (Cause::Internal, Phase::Connect, 500),
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

/// Whether the client is no longer there to be served: its connection broke, or it closed its side and that counts as
/// leaving (`option abortonclose`), or an operator ended its session.
fn has_left(stream: &Stream<'_>, proxy: &Proxy, cx: &mut Context<'_>) -> bool {
    let client = &stream.client;
    client.session.kill.get().is_some()
        || client.socket.poll_broken(cx).is_ready()
        || (proxy.options.abortonclose && client.socket.is_hung_up())
}

/// Where an attempt leads.
struct Aim<'a> {
    proxy: &'a Proxy,
    server: u32,
    config: &'a Server,
    addr: &'a Addr,
    /// The name that is sent to the server.
    name: Option<&'a str>,
    speaks: Speaks,
    /// What tells its connections apart, and whether others may use them.
    identity: (Identity, bool),
}

async fn attempt(stream: &mut Stream<'_>, proxy: &Proxy, server: u32) -> Result<(), Attempt> {
    let config = &proxy.servers[server as usize];
    let addr = &address(stream, config).ok_or(Attempt::Refused)?;
    let name = config.tls().and_then(|tls| server_name(stream, tls));
    let name = name.as_deref();
    let (identity, shareable) = identity(stream, proxy, config, addr, name);
    let speaks = speaks(stream, config);
    let aim = Aim { proxy, server, config, addr, name, speaks, identity: (identity, shareable) };
    let mut announced = None;
    if speaks.may_be_h2() {
        if multiplexed(stream, proxy, server, aim.identity, addr) {
            return Ok(());
        }
        if shareable {
            let joined = opening::join(stream, proxy, server, identity, speaks).await?;
            if joined && multiplexed(stream, proxy, server, aim.identity, addr) {
                return Ok(());
            }
            announced = opening::announce(stream, proxy, config, server, identity);
        }
    }
    match resumed(stream, &aim).await {
        true => Ok(()),
        false => dial(stream, &aim, announced).await,
    }
}

/// Whether a connection that is idle serves the request.
async fn resumed(stream: &mut Stream<'_>, aim: &Aim<'_>) -> bool {
    let (identity, shareable) = aim.identity;
    let own = take_own(stream, Some(aim.server), identity);
    let idle = match own {
        None if aim.speaks == Speaks::H2 => None,
        None if shareable => take_idle(stream, aim.proxy, aim.server, identity).await,
        own => own,
    };
    let Some(idle) = idle else { return false };
    resume(stream, idle, aim.identity, aim.addr);
    let worker = stream.worker.index;
    aim.config.state.counters.of(worker).reuses.inc();
    aim.proxy.state.back.counters.of(worker).reuses.inc();
    true
}

/// A new connection. Whoever waits for `announced` is told when it turns out to be one of HTTP/2, or fails.
async fn dial(
    stream: &mut Stream<'_>,
    aim: &Aim<'_>,
    announced: Option<opening::Announced>,
) -> Result<(), Attempt> {
    let &Aim { proxy, server, config, addr, speaks, .. } = aim;
    let worker = stream.worker.clone();
    config.state.counters.of(worker.index).connects.inc();
    proxy.state.back.counters.of(worker.index).connects.inc();
    let mut socket = open_to(stream, aim).await?;
    if let Some(tls) = config.tls() {
        let early = early(stream, proxy, server, tls, speaks);
        let how = Hello { name: aim.name, alpn: speaks.alpn(tls), early };
        rt::boxed(secure(stream, proxy, config, tls, how, &mut socket)).await?;
    }
    // Early data are HTTP/2 where that is known to be agreed on.
    let agreed = socket.is_early() || socket.facts().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
    if speaks == Speaks::H2 || (agreed && speaks.may_be_h2()) {
        check::observe(&worker, stream.backend_index(), server, check::Seen::Connected);
        return rt::boxed(begin_h2(stream, server, socket, aim.identity, addr)).await;
    }
    drop(announced);
    if speaks == Speaks::Asks {
        worker.pools.note_h2(stream.backend_index(), server, false);
    }
    if aim.identity.1 {
        worker.pools.make_room(stream.backend_index(), server, &socket, &config.state);
    }
    check::observe(&worker, stream.backend_index(), server, check::Seen::Connected);
    install(stream, socket, aim.identity, addr);
    if let Some(send) = config.send_proxy.as_ref().filter(|_| config.tls().is_none()) {
        crate::proxy_header::stage(stream, send);
    }
    Ok(())
}

/// Connects, through a SOCKS4 proxy where one is to be used.
async fn open_to(stream: &mut Stream<'_>, aim: &Aim<'_>) -> Result<Transport, Attempt> {
    let source = aim.config.source.as_ref().or(aim.proxy.source.as_ref());
    let options = options(stream, aim.proxy, Some(aim.config), source);
    let Some(through) = aim.config.socks4 else {
        return open(stream, aim.proxy, aim.addr, &options).await;
    };
    let socket = open(stream, aim.proxy, &Addr::Inet(through), &options).await?;
    rt::boxed(via_socks(stream, aim.proxy, &socket, aim.addr)).await?;
    Ok(socket)
}

/// What a handshake with a server begins with.
struct Hello<'a> {
    /// The name to send and to check.
    name: Option<&'a str>,
    /// In place of the configured protocols.
    alpn: Option<Vec<Vec<u8>>>,
    /// The request may go out as early data.
    early: bool,
}

/// Whether what a client sent may go to a server as early data (manual, `allow-0rtt` of servers), where the protocol is known
/// before the handshake is over: with several to choose from it is not.
fn early(stream: &Stream<'_>, proxy: &Proxy, server: u32, tls: &ServerTls, speaks: Speaks) -> bool {
    let known = match speaks {
        Speaks::Plain | Speaks::H2 => true,
        Speaks::H1 => false,
        Speaks::Asks | Speaks::AsksH2 => {
            let spoken = stream.worker.pools.spoke_h2(stream.backend_index(), server);
            spoken && tls.alpn.iter().all(|name| name[..] == *b"h2")
        }
    };
    tls.early && known && !stream.http.refused_early && may_be_early(stream, proxy)
}

/// Whether a copy of what a client sent does no harm: it came as early data itself, or the configuration says that its requests
/// may be repeated.
fn may_be_early(stream: &Stream<'_>, proxy: &Proxy) -> bool {
    if !stream.txn.has_req {
        stream.client.look_early();
    }
    stream.client.conn().early.get() || (stream.txn.has_req && proxy.retry_on.early_rejected)
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
    how: Hello<'_>,
    socket: &mut Transport,
) -> Result<(), Attempt> {
    if let Some(send) = &config.send_proxy {
        let header = crate::proxy_header::bytes(stream, send);
        socket.send_all(&header).await.map_err(|e| classify(&e))?;
    }
    if let Err(Refused::Failed(number, ..)) = crate::secure::full(&stream.worker) {
        stream.txn.server_conn.error = model::conn::ConnError(number);
        return Err(Attempt::Full);
    }
    let name = how.name.and_then(|n| ServerName::try_from(n.to_owned()).ok());
    // A request is retried, or answered with 425; bytes of TCP can only be sent once more.
    let again = !stream.txn.has_req;
    let handshake = match how.early {
        true => Handshake::connect_early(&tls.connector, name, how.alpn, again),
        false => Handshake::connect(&tls.connector, name, how.alpn),
    };
    let handshake = handshake.map_err(|_| Attempt::Refused)?;
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    let mut left = false;
    let worker = stream.worker.clone();
    let shaken = crate::secure::server(&worker, socket.raw(), handshake, &mut timer, |cx| {
        left = has_left(stream, proxy, cx);
        left
    })
    .await;
    // What data overtook is counted when it is over.
    if !matches!(&shaken, Ok((tls, _)) if tls.is_early()) {
        crate::secure::count(&stream.worker, proxy, &config.state, &shaken);
    }
    match shaken {
        Ok((tls, _)) if tls.is_early() => {
            socket.secure_early(*tls);
            Ok(())
        }
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

/// Goes on with a connection that was at rest. It leads where one made now would: its identity and the flush at every
/// change of the server's address see to that, so nobody has to ask the system.
fn resume(stream: &mut Stream<'_>, idle: Idle, (identity, shareable): (Identity, bool), addr: &Addr) {
    let facts = &mut stream.txn.server_conn;
    (facts.reused, facts.http_major, facts.dst) = (true, 1, crate::net::peer(Some(addr)));
    stream.txn.server_secured = idle.socket.facts().cloned();
    note_source(stream, idle.socket.raw());
    let Idle { socket, requests, .. } = idle;
    let (buf, call) = (None, None);
    stream.upstream =
        Some(Upstream { socket, buf, reused: true, requests, identity, safe: true, shareable, call });
    stream.txn.times.connected = Some(rt::now());
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
    let server = proxy.servers.get(at.server as usize)?;
    let source = server.source.is_some() || proxy.source.is_some();
    if server.send_proxy.is_some() || server.transparent || server.port != PortMap::Fixed || source {
        return None;
    }
    let identity = match server.pool_conn_name.is_some() || name.is_some() {
        true => {
            let name = name.map(str::as_bytes);
            Traits { addr, source: None, mark: None, tos: None, name }.identity()
        }
        false => 0,
    };
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
        resume(stream, idle, (identity, false), &addr);
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
