//! Reaching a server: an idle connection, or a new one with retries and redispatch.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use farm::At;
use farm::check;
use farm::pool::{self, Fit, Identity, Idle};
use link::timed::Failure;
use link::transport::Transport;
use model::Peer;
use model::conn::ConnError;
use model::secured::Secured;
use model::server_conns::Seat;
use model::term::{Cause, Phase};
use program::proxy::{Mode, Proxy};
use program::server::Server;
use rt::{Addr, ConnectOptions, Socket, Timer};
use wire::method::Method;

mod guest;
mod header;
mod hello;
mod leaving;
mod multiplex;
mod opening;
mod own;
mod retry;
mod target;

pub use guest::{copied, give as give_to_service, settle as settle_service};
use hello::{Hello, early, may_be_early, secure, server_name};
use leaving::{has_left, left_before, left_silently, withdraws};
use multiplex::{Speaks, begin_streams, multiplexed, speaks};
use own::take_own;
pub use own::{authenticates_connection, park};
use retry::{count_choice, count_failure, count_unassigned, pause, retry};
pub use retry::{count_l7_retry, count_lost};
pub use target::plain_options;
use target::{address, address_fit, fit, options};

use crate::Worker;
use crate::choose::{self, NoServer, Wish};
use crate::silence;
use crate::stream::{Stream, Upstream};

/// Why a server was not reached.
#[derive(Debug)]
pub enum Failed {
    /// No server could be assigned.
    NoServer(NoServer),
    /// All attempts failed; how the last one did.
    Connect(Attempt),
    /// The time of a client that owed a word was over first (`timeout client`), in this phase.
    Overdue(Phase),
    /// `redir`: the client is to be sent elsewhere.
    Redirect(u32),
}

/// How one attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Refused, unreachable, reset.
    Refused,
    /// It was clear at once that it cannot be: nobody listens on a Unix socket, no route, a source that is
    /// not ours, or the server has all the connections that `strict-maxconn` lets it have.
    Unreachable,
    /// The server's certificate is not for the name of this connection, which trying again won't change.
    WrongName,
    /// `timeout connect`.
    TimedOut,
    /// Out of descriptors, ports or memory.
    Resource,
    /// The client went away.
    Aborted,
    /// It had gone before, without a word.
    Left,
    /// `maxsslconn`.
    Full,
}

impl Attempt {
    /// Whether it was the client that ended it.
    fn is_clients(self) -> bool {
        matches!(self, Attempt::Aborted | Attempt::Left)
    }
}

impl Failed {
    /// What is logged: cause and phase.
    pub fn reason(&self) -> (Cause, Phase) {
        let (cause, phase, _) = self.explain();
        (cause, phase)
    }

    /// What is logged and answered: cause, phase, status.
    pub fn explain(&self) -> (Cause, Phase, u16) {
        match self {
            Failed::NoServer(why) => choose::explain(*why),
            Failed::Connect(Attempt::Refused | Attempt::Unreachable | Attempt::WrongName) => {
                (Cause::ServerAbort, Phase::Connect, 503)
            }
            Failed::Connect(Attempt::TimedOut) => (Cause::ServerTimeout, Phase::Connect, 503),
            Failed::Connect(Attempt::Resource) => (Cause::Resource, Phase::Connect, 503),
            Failed::Connect(Attempt::Full) => (Cause::Internal, Phase::Connect, 500),
            Failed::Connect(Attempt::Aborted | Attempt::Left) => (Cause::ClientAbort, Phase::Connect, 400),
            Failed::Overdue(phase) => (Cause::ClientTimeout, *phase, 400),
            Failed::Redirect(_) => (Cause::Local, Phase::Request, 302),
        }
    }
}

/// Chooses a server and connects to it; on success the stream has its place and its upstream.
///
/// # Errors
/// Why no server was reached.
pub async fn reach(stream: &mut Stream<'_>, wish: &mut Wish) -> Result<(), Failed> {
    if stream.service.is_some() {
        return guest::reach(stream).map_err(Failed::Connect);
    }
    silence::wake(stream).await;
    let reached = try_servers(stream, wish).await;
    match reached {
        Err(failed) if silence::is_over(stream) => {
            crate::losses::client_abort(stream);
            Err(Failed::Overdue(failed.explain().1))
        }
        other => other,
    }
}

/// Whether the client may be sent to where `redir` says: it came with GET or HEAD, whatever rules made of it,
/// and there is a path.
fn can_go_elsewhere(stream: &Stream<'_>) -> bool {
    matches!(stream.txn.first_method(), Method::Get | Method::Head)
        && !wire::uri::path_and_query(stream.txn.req.target()).is_empty()
}

async fn try_servers(stream: &mut Stream<'_>, wish: &mut Wish) -> Result<(), Failed> {
    let worker = stream.worker.clone();
    let index = stream.backend_index();
    let proxy = &*worker.shared.program.proxy(index);
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
            count_choice(stream, proxy, wish);
        }
        let server = stream.place.as_ref().map_or(0, |p| p.server);
        if proxy.server(server).redir.is_some() && can_go_elsewhere(stream) {
            return Err(Failed::Redirect(server));
        }
        let failure = match attempt(stream, proxy, server).await {
            Ok(()) => {
                stream.txn.respond();
                return Ok(());
            }
            Err(f) => f,
        };
        if matches!(failure, Attempt::Refused | Attempt::Unreachable | Attempt::WrongName | Attempt::TimedOut)
        {
            check::observe(&worker.farm, index, server, check::Seen::ConnectFailed);
        }
        if failure.is_clients() {
            // It is no failure of the server that the client did not wait for it.
            return Err(Failed::Connect(failure));
        }
        if failure == Attempt::WrongName {
            // The log shows that nothing is left to be tried, as HAProxy's does.
            let all = stream.txn.overrides.retries.unwrap_or(proxy.retries);
            stream.txn.retries = stream.txn.retries.max(all);
        }
        // What the system refuses at once takes no time in which a client could leave.
        let waited = failure != Attempt::Unreachable;
        if waited && stream.txn.has_req && poll_fn(|cx| Poll::Ready(has_left(stream, proxy, cx))).await {
            // Nobody waits for another attempt.
            return Err(Failed::Connect(Attempt::Aborted));
        }
        if failure == Attempt::Resource || stream.txn.retries >= retries {
            count_failure(stream, proxy, server);
            return Err(Failed::Connect(failure));
        }
        retry(stream, proxy, (server, failure), retries, wish).await.map_err(Failed::Connect)?;
    }
}

async fn assign(stream: &mut Stream<'_>, wish: &mut Wish) -> Result<(), Failed> {
    let place = choose::server(stream, wish).await.map_err(Failed::NoServer)?;
    let server = place.server;
    let now = rt::now();
    stream.set_server(Some(server));
    stream.client.session.server.set(Some(server));
    stream.txn.times.queued = Some(now);
    stream.place = Some(place);
    Ok(())
}

/// Where an attempt leads.
struct Aim<'a> {
    proxy: &'a Proxy,
    server: u32,
    config: &'a Server,
    addr: &'a Addr,
    /// The name that is sent to the server.
    name: Option<&'a [u8]>,
    /// The PROXY header that a connection begins with.
    header: Option<&'a [u8]>,
    speaks: Speaks,
    /// Which requests a connection made for this one may serve.
    fit: Fit,
}

impl Aim<'_> {
    /// Whether a handshake has to tell the protocol, be it one of one.
    fn asks(&self) -> bool {
        self.config.tls().is_some_and(|tls| tls.npn || !self.speaks.is_unasked() && !tls.alpn.is_empty())
    }

    /// Whether a connection is one of HTTP/1 from its beginning.
    fn is_surely_h1(&self) -> bool {
        !self.speaks.may_multiplex() && !self.asks()
    }
}

async fn attempt(stream: &mut Stream<'_>, proxy: &Proxy, server: u32) -> Result<(), Attempt> {
    let config = &*proxy.server(server);
    // Asked for first: who moves the server from now on finds a connection that led elsewhere.
    let moves = config.state.moves();
    let addr = &address(stream, config).ok_or(Attempt::Refused)?;
    let name = config.tls().and_then(|tls| server_name(stream, tls));
    let name = name.as_deref();
    let header = config.send_proxy.as_ref().map(|send| header::bytes(stream, send));
    let header = header.as_deref();
    let fit = fit(stream, proxy, (config, moves), addr, name, header);
    let speaks = speaks(stream, config);
    let aim = Aim { proxy, server, config, addr, name, header, speaks, fit };
    let mut announced = None;
    if speaks.may_multiplex() {
        if multiplexed(stream, proxy, server, fit, addr) {
            return Ok(());
        }
        if fit.shareable {
            let joined = opening::join(stream, proxy, server, fit.identity, speaks).await?;
            if joined && multiplexed(stream, proxy, server, fit, addr) {
                return Ok(());
            }
            announced = opening::announce(stream, proxy, config, server, fit.identity);
        }
    }
    match resumed(stream, &aim).await {
        true => Ok(()),
        false => dial(stream, &aim, announced).await,
    }
}

/// Whether a connection that is idle serves the request.
async fn resumed(stream: &mut Stream<'_>, aim: &Aim<'_>) -> bool {
    let Fit { identity, shareable, moves } = aim.fit;
    let own = take_own(stream, Some(aim.server), identity);
    // Once its client's, it is nobody else's: it may be logged in.
    let shareable = shareable && own.is_none();
    let idle = match own {
        None if aim.speaks == Speaks::H2 => None,
        None if shareable => take_idle(stream, aim.proxy, aim.server, identity).await,
        own => own,
    };
    let Some(idle) = idle else { return false };
    if aim.speaks == Speaks::Fcgi {
        return multiplex::begin_again(stream, aim, idle);
    }
    resume(stream, idle, Fit { identity, shareable, moves }, aim.addr);
    count_h1(stream, aim.proxy, false);
    let worker = stream.worker.index;
    aim.config.state.counters.of(worker).reuses.inc();
    aim.proxy.state.back.counters.of(worker).reuses.inc();
    stream.count_attempt();
    true
}

/// Counts an attempt over HTTP/1, on a new connection or an idle one.
fn count_h1(stream: &Stream<'_>, proxy: &Proxy, new: bool) {
    let h1 = &proxy.state.back.counters.of(stream.worker.index).h1;
    h1.streams.inc();
    if new {
        h1.connections.inc();
    }
}

/// A new connection. Whoever waits for `announced` is told when it turns out to be one of HTTP/2, or fails.
async fn dial(
    stream: &mut Stream<'_>,
    aim: &Aim<'_>,
    announced: Option<opening::Announced>,
) -> Result<(), Attempt> {
    let &Aim { proxy, server, config, addr, speaks, .. } = aim;
    let worker = stream.worker.clone();
    let seat = seat(&worker, At { proxy: stream.backend_index(), server }, config).await?;
    config.state.counters.of(worker.index).connects.inc();
    proxy.state.back.counters.of(worker.index).connects.inc();
    stream.txn.server_secured = config.tls().map(|_| Arc::new(Secured::awaited("TLSv1.3")));
    let opened = open_to(stream, aim).await;
    if opened.is_err() && config.tls().is_some() {
        tls::figures::not_shaken();
        if matches!(opened, Err(Attempt::Refused)) {
            // Its handshake had begun, in a way, and failed with the connection.
            farm::secure::count_server(&worker.farm, proxy, Some(&config.state), None);
        }
    }
    let mut socket = opened?;
    if let Some(tls) = config.tls() {
        let early = early(stream, proxy, server, tls, speaks);
        let how = Hello { header: aim.header, name: aim.name, alpn: speaks.alpn(tls), early };
        rt::boxed(secure(stream, proxy, config, tls, how, &mut socket)).await?;
    }
    // Early data are HTTP/2 where that is known to be agreed on.
    let agreed = socket.is_early() || socket.facts().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
    if speaks.is_unasked() || (agreed && speaks.may_multiplex()) {
        check::observe(&worker.farm, stream.backend_index(), server, check::Seen::Connected);
        return rt::boxed(begin_streams(stream, aim, socket, seat)).await;
    }
    drop(announced);
    if !aim.is_surely_h1() {
        count_h1(stream, proxy, true);
    }
    if speaks == Speaks::Asks {
        worker.farm.pools.note_h2(stream.backend_index(), server, false);
    }
    if aim.fit.shareable {
        let at = At { proxy: stream.backend_index(), server };
        worker.farm.pools.make_room(at, &socket, &config.state, &worker.shared.program);
    }
    check::observe(&worker.farm, stream.backend_index(), server, check::Seen::Connected);
    install(stream, socket, aim.fit, addr, seat);
    stream.use_connection();
    if let Some(header) = aim.header.filter(|_| config.tls().is_none()) {
        stream.to_server.get_or_insert_default().push(header);
    }
    Ok(())
}

/// A seat at a server with `strict-maxconn`. Where all are taken a connection that rests is closed, in favour
/// of the next attempt.
async fn seat(worker: &Worker, at: At, config: &Server) -> Result<Option<Seat>, Attempt> {
    if !config.strict_maxconn {
        return Ok(None);
    }
    let seat = Seat::take(&config.state);
    if seat.is_none() {
        rt::boxed(farm::pool::close_one(&worker.farm, at)).await;
        return Err(Attempt::Unreachable);
    }
    Ok(seat)
}

/// Connects, through a SOCKS4 proxy where one is to be used.
async fn open_to(stream: &mut Stream<'_>, aim: &Aim<'_>) -> Result<Transport, Attempt> {
    let source = aim.config.source.as_ref().or(aim.proxy.source.as_ref());
    let options = options(stream, aim.proxy, Some(aim.config), source);
    // The log names both ends also of a connection that fails.
    stream.txn.server_conn.dst = link::address::peer(Some(aim.addr));
    let h1 = (aim.is_surely_h1(), if aim.asks() { 0 } else { aim.speaks.known_major() });
    let Some(through) = aim.config.socks4 else {
        return open(stream, aim.proxy, aim.addr, &options, h1).await;
    };
    let socket = open(stream, aim.proxy, &Addr::Inet(through), &options, h1).await?;
    let asked = rt::boxed(via_socks(stream, aim.proxy, &socket, aim.addr)).await;
    asked.map_err(|refused| match refused {
        link::socks::Refused::TimedOut => Attempt::TimedOut,
        link::socks::Refused::Aborted => Attempt::Aborted,
        link::socks::Refused::Io(e) => {
            let denied = e.kind() == io::ErrorKind::ConnectionRefused;
            stream.txn.server_conn.error =
                if denied { ConnError::SOCKS_DENIED } else { ConnError::SOCKS_SILENT };
            classify(&e)
        }
    })?;
    Ok(socket)
}

/// Asks a SOCKS4 proxy to connect on. `timeout connect` holds for it, too.
async fn via_socks(
    stream: &Stream<'_>,
    proxy: &Proxy,
    socket: &Transport,
    addr: &Addr,
) -> Result<(), link::socks::Refused> {
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    let gone = |cx: &mut Context<'_>| withdraws(stream, proxy, cx);
    link::socks::connect(socket.raw(), addr, &mut timer, gone).await
}

/// Goes on with a new connection, which may hold a seat at its server.
fn install(stream: &mut Stream<'_>, socket: Transport, fit: Fit, addr: &Addr, seat: Option<Seat>) {
    let http = stream.txn.has_req;
    let facts = &mut stream.txn.server_conn;
    (facts.begun, facts.reused, facts.error, facts.fault) = (true, false, ConnError::NONE, 0);
    facts.dst = link::address::peer(Some(addr));
    facts.http_major = u8::from(http);
    stream.txn.server_secured = socket.facts().cloned();
    stream.txn.times.connected = Some(rt::now());
    note_source(stream, socket.raw());
    stream.upstream = Some(Upstream { socket, buf: None, reused: false, requests: 0, fit, seat, call: None });
}

/// Notes the local address for log lines that tell it: when they are written the connection serves somebody
/// else.
fn note_source(stream: &mut Stream<'_>, socket: &rt::Socket) {
    if stream.worker.shared.logs_source {
        stream.txn.server_conn.src = crate::live::local_address(socket).unwrap_or_default();
    }
}

/// Goes on with a connection that was at rest. It leads where one made now would: its identity sees to that,
/// so nobody has to ask the system.
fn resume(stream: &mut Stream<'_>, idle: Idle, fit: Fit, addr: &Addr) {
    let facts = &mut stream.txn.server_conn;
    (facts.begun, facts.reused, facts.error, facts.fault) = (true, true, ConnError::NONE, 0);
    (facts.http_major, facts.dst) = (1, link::address::peer(Some(addr)));
    stream.txn.server_secured = idle.socket.facts().cloned();
    note_source(stream, idle.socket.raw());
    let Idle { socket, requests, seat, .. } = idle;
    stream.upstream = Some(Upstream { socket, buf: None, reused: true, requests, fit, seat, call: None });
    stream.use_connection();
    stream.txn.times.connected = Some(rt::now());
}

async fn take_idle(stream: &Stream<'_>, proxy: &Proxy, server: u32, identity: Identity) -> Option<Idle> {
    // A request whose loss the client could not tell from a failed connect may only go where `http-reuse`
    // lets it.
    let at = At { proxy: stream.backend_index(), server };
    pool::idle(&stream.worker.farm, proxy, at, identity, stream.is_first()).await
}

/// Connects, at most for `timeout connect`. `h1`: whether it is known that the connection will be one of
/// HTTP/1; `major`: the version of HTTP that is known before a handshake.
async fn open(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    addr: &Addr,
    options: &ConnectOptions,
    (h1, major): (bool, u8),
) -> Result<Transport, Attempt> {
    let socket = Socket::connect(addr, options).map_err(|e| {
        let facts = &mut stream.txn.server_conn;
        (facts.begun, facts.error) = (false, ConnError::SOCKET);
        if options.source.is_some() && e.raw_os_error().is_none() {
            facts.error = ConnError::SOURCE;
            let text = format!("Cannot bind to source address before connect() for backend {}.", proxy.name);
            crate::lines::proxy_line(&stream.worker, stream.backend_index(), 0, &text);
        }
        match classify(&e) {
            Attempt::Refused => Attempt::Unreachable,
            other => other,
        }
    })?;
    stream.count_attempt();
    let http_major = if stream.txn.has_req { major } else { 0 };
    let facts = &mut stream.txn.server_conn;
    (facts.begun, facts.http_major, facts.error, facts.fault) = (true, http_major, ConnError::NONE, 0);
    if h1 {
        count_h1(stream, proxy, true);
    }
    socket.reset_on_close();
    if proxy.options.nolinger && stream.txn.has_req {
        // Whoever closes first, and whatever is on its way.
        let _ = socket.set_linger0();
    }
    note_source(stream, &socket);
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    if left_before(stream, proxy).await {
        // The client left before: a server that is reached at once is sent the request all the same.
        rt::yield_now().await;
    }
    let mut error = ConnError::NONE;
    let connected = poll_fn(|cx| {
        if let Poll::Ready(r) = socket.poll_connected(cx) {
            return Poll::Ready(r.map_err(|e| {
                error = ConnError::of_system(&e);
                classify(&e)
            }));
        }
        if withdraws(stream, proxy, cx) {
            return Poll::Ready(Err(Attempt::Aborted));
        }
        timer.poll_expired(cx).map(|()| Err(Attempt::TimedOut))
    });
    let mut connected = connected.await;
    if connected.is_ok() && proxy.options.abortonclose && left_silently(stream).await {
        connected = Err(Attempt::Left);
    }
    if connected.is_ok() && proxy.options.abortonclose && stream.http.left_early {
        // Known to be gone for longer than a connection takes.
        connected = Err(Attempt::Aborted);
    }
    stream.txn.server_conn.error = error;
    connected.map(|()| socket.into())
}

fn classify(e: &io::Error) -> Attempt {
    match Failure::of(e) {
        Failure::Resource => Attempt::Resource,
        Failure::TimedOut => Attempt::TimedOut,
        Failure::Refused => Attempt::Refused,
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
    let fit = address_fit(stream, proxy, &addr);
    if let Some(idle) = take_own(stream, None, fit.identity) {
        resume(stream, idle, fit, &addr);
        count_h1(stream, proxy, false);
        return Ok(());
    }
    loop {
        proxy.state.back.counters.of(stream.worker.index).connects.inc();
        match open(stream, proxy, &addr, &options, (true, 1)).await {
            Ok(socket) => {
                install(stream, socket, fit, &addr, None);
                return Ok(());
            }
            Err(f) => {
                if f.is_clients() {
                    return Err(Failed::Connect(f));
                }
                if f == Attempt::Resource || stream.txn.retries >= retries {
                    proxy.state.back.counters.of(stream.worker.index).conn_errors.inc();
                    return Err(Failed::Connect(f));
                }
                stream.txn.retries += 1;
                proxy.state.back.counters.of(stream.worker.index).retries.inc();
                if f != Attempt::Unreachable {
                    pause(stream, proxy).await.map_err(Failed::Connect)?;
                }
            }
        }
    }
}
