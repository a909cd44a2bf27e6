//! A client connection from accept to close: limits and counters, `tcp-request connection`, the PROXY
//! header, `tcp-request session`, then TCP or HTTP.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use lang::RuleSet;
use lang::action::{Exec, Flow, Fulfilled, Need};
use lang::env::Side;
use lang::rules::{Position, Run};
use link::header::HeaderFault;
use link::transport::Transport;
use model::conn::{ConnError, ConnPhase};
use model::{Conn, Peer, Txn};
use program::Proxy;
use program::proxy::Mode;
use rt::{Socket, Timer};

use crate::Worker;
use crate::client::Client;
use crate::live::View;
use crate::ruling::{self, Bench, Given};
use crate::sessions::Session;
use crate::traced;
use model::trace::{self, level};

mod h2;
mod handshake;

/// Begins the life of an accepted connection, which came to this listener of this frontend. `pending` is what
/// its [admission](crate::admission) says.
pub fn start(worker: Rc<Worker>, (frontend, listener): (u32, u32), pending: bool, socket: Socket, src: Peer) {
    let program = worker.shared.program.clone();
    let proxy = program.configured(frontend);
    program.world.process.counters.of(worker.index).connections.inc();
    proxy.state.front.counters.of(worker.index).connections.inc();
    let conn = Conn::new(worker.farm.next_serial(), frontend, listener, rt::now(), rt::wall());
    if let Some(bind) = proxy.binds.get(listener as usize) {
        bind.state.counters.of(worker.index).connections.inc();
        conn.tls.set(bind.tls.is_some());
        let waits = bind.accept_proxy || bind.accept_cip.is_some() || bind.tls.is_some();
        conn.phase.set(if waits { ConnPhase::Opening } else { ConnPhase::Session });
    }
    conn.set_addresses(src, local(proxy, listener, &socket));
    let session = Session::new(conn, &worker.program);
    session.pending.set(pending);
    let session = Rc::new(session);
    let key = worker.sessions.enter(session.clone());
    let socket = Transport::from(socket);
    let (buf, timer, part) = (None, Timer::new(), None);
    let client = Client { worker, session, socket, buf, timer, part, key, front: frontend, listener };
    prepare(proxy, client.socket.raw());
    traced::session(&client.session, &trace::SESSION, trace::session::NEW, level::STATE, "new session");
    let inner = client.session.clone();
    let task = spawn(proxy, listener, run(client));
    inner.task.set(Some(task));
}

/// Begins a task for a client of this listener, with the nice value of its `bind` line.
pub fn spawn(proxy: &Proxy, listener: u32, serving: impl Future<Output = ()> + 'static) -> rt::TaskId {
    let nice = proxy.binds[listener as usize].nice;
    let task = rt::spawn(serving);
    if nice != 0 {
        rt::set_nice(task, nice);
    }
    task
}

/// The address the client connected to: known from the `bind` line unless that is a wildcard.
fn local(proxy: &Proxy, listener: u32, socket: &Socket) -> Peer {
    match &proxy.binds[listener as usize].address {
        program::address::Listen::Tcp(a) if !a.ip().is_unspecified() && a.port() != 0 => Peer::Inet(*a),
        program::address::Listen::Tcp(_) | program::address::Listen::Fd(_) => {
            link::address::peer(socket.local_addr().ok().as_ref())
        }
        _ => Peer::Unix,
    }
}

fn prepare(proxy: &Proxy, socket: &Socket) {
    if let Some(k) = proxy.options.client_keepalive {
        let _ = socket.set_keepalive(crate::net::keepalive(k));
    }
    if proxy.options.nolinger {
        let _ = socket.set_linger0();
    }
    if proxy.options.tcp_smart_accept {
        let _ = socket.set_quickack(false);
    }
}

async fn run(mut client: Client) {
    if !rt::boxed(open(&mut client)).await {
        traced::session(
            &client.session,
            &trace::SESSION,
            trace::session::ERR,
            level::ERROR,
            "session turned away",
        );
        return;
    }
    let mut first = None;
    if client.frontend().mode == Mode::Http && speaks_h2(&client) {
        // Here and below in recycled memory: the task of an idle HTTP/1 connection stays small.
        return rt::boxed(h2::serve(client)).await;
    }
    if client.frontend().mode == Mode::Tcp {
        first = crate::tcp::serve(&mut client).await;
        if first.is_none() {
            return;
        }
    }
    if crate::h1::serve(&mut client, first).await {
        rt::boxed(h2::serve(client)).await;
    }
}

/// Whether HTTP/2 is agreed on: by the `bind` line (`proto`), or in the TLS handshake where that says
/// nothing.
fn speaks_h2(client: &Client) -> bool {
    let agreed = client.conn().secured().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
    let bind = &client.frontend().binds[client.listener as usize];
    bind.h2 || agreed && !bind.h1
}

/// Everything before the first byte of the protocol; whether the connection may go on.
async fn open(client: &mut Client) -> bool {
    let worker = client.worker.clone();
    let program = worker.shared.program.clone();
    let proxy = program.configured(client.front);
    let bind = &proxy.binds[client.listener as usize];
    let counters = proxy.state.front.counters.of(worker.index);
    let listener = bind.state.counters.of(worker.index);
    let mut wants = Wants { proxy: bind.accept_proxy, cip: bind.accept_cip };
    if !run_rules(client, &proxy.rules.tcp_connection, &mut wants).await {
        match client.session.vanished.get() {
            true => (counters.denied_req.inc(), listener.denied_req.inc()),
            false => (counters.denied_conn.inc(), listener.denied_conn.inc()),
        };
        if bind.tls.is_some() {
            tls::figures::not_shaken();
        }
        // Refused as if nobody listened: the close is a reset.
        let _ = client.socket.raw().set_linger0();
        return false;
    }
    if wants.proxy || wants.cip.is_some() {
        client.settle();
    }
    if wants.proxy && !proxy_header(client, proxy, None).await {
        return false;
    }
    if wants.cip.is_some() && !proxy_header(client, proxy, wants.cip).await {
        return false;
    }
    if bind.tls.is_some() {
        // A handshake takes as long as the client likes.
        client.settle();
    }
    if let Some(acceptor) = &bind.tls
        && let Err(why) = handshake::shake(client, proxy, acceptor.clone()).await
    {
        if !proxy.options.dontlognull || !why.is_silent() {
            crate::log::handshake_error(client, &why.text);
        }
        return false;
    }
    client.conn().handshake_done.set(Some(rt::now()));
    client.conn().phase.set(ConnPhase::Session);
    if !run_rules(client, &proxy.rules.tcp_session, &mut wants).await {
        // `silent-drop` counts among the requests.
        match client.session.vanished.get() {
            true => (counters.denied_req.inc(), listener.denied_req.inc()),
            false => (counters.denied_sess.inc(), listener.denied_sess.inc()),
        };
        // Where the session had to wait for its connection it is an error of that one: none. Nothing was read
        // of what the client says, whatever came along with a header.
        let waited = bind.accept_proxy || bind.accept_cip.is_some() || bind.tls.is_some();
        if waited && !proxy.options.dontlognull {
            crate::log::handshake_error(client, "Success");
        }
        // Nobody is told farewell who was not let in.
        client.socket.mute();
        return false;
    }
    client.conn().phase.set(ConnPhase::Served);
    crate::tracking::session(client.conn());
    let now = rt::now().as_millis();
    counters.sessions.inc();
    listener.sessions.inc();
    proxy.state.front.session_rate.add(now);
    program.world.process.sess_rate.add(now);
    client.settle();
    true
}

/// What must come before the first byte of the protocol.
struct Wants {
    /// A PROXY header.
    proxy: bool,
    /// A NetScaler header with this magic number.
    cip: Option<u32>,
}

/// Runs a rule set of an opening connection, whose rules see no data; whether the connection may go on.
async fn run_rules(client: &mut Client, rules: &RuleSet, wants: &mut Wants) -> bool {
    ruling::run(&mut Opening { client, wants }, rules, true).await.is_none()
}

/// Where rules on a connection that opens stand.
struct Opening<'o> {
    client: &'o mut Client,
    wants: &'o mut Wants,
}

/// The connection may not go on.
struct Turned;

impl Bench for Opening<'_> {
    type Verdict = Turned;

    fn run(&mut self, rules: &RuleSet, from: Position, _: bool, given: Option<Fulfilled>) -> Run {
        step(self.client, rules, from, given)
    }

    async fn fulfil(&mut self, _: &RuleSet, _: Position, need: Need) -> Result<Given, Turned> {
        let wants = &mut *self.wants;
        match need {
            Need::ProxyHeader => {
                wants.proxy = true;
                self.client.conn().phase.set(ConnPhase::Opening);
            }
            Need::CipHeader => {
                wants.cip = Some(wants.cip.unwrap_or(0));
                self.client.conn().phase.set(ConnPhase::Opening);
            }
            Need::Delay(time) => rt::sleep(time).await,
            // There is no data here, nor a message, nor a stream for an extension to belong to.
            Need::Data
            | Need::Body { .. }
            | Need::Interim(_)
            | Need::Handshake
            | Need::Content { .. }
            | Need::Extension(_)
            | Need::Within(..)
            | Need::Address { .. } => {
                return Ok(Given::Back(Fulfilled::Failed));
            }
        }
        Ok(Given::Back(Fulfilled::Done))
    }

    async fn decide(&mut self, flow: Flow, _: Option<u32>) -> Option<Turned> {
        if let Flow::SilentDrop { rst_ttl } = flow {
            self.client.vanish(rst_ttl);
        }
        Some(Turned)
    }
}

fn step(client: &mut Client, rules: &RuleSet, from: Position, resumed: Option<Fulfilled>) -> Run {
    let worker = client.worker.clone();
    let mut txn = worker.take_txn();
    // What these rules log (`do-log`) is a session without a stream, which would end here.
    crate::log::sessions_own(&mut txn);
    let outcome = worker.with_arena(|arena| {
        let conn = &client.session.conn;
        let (frontend, listener) = (client.front, client.listener);
        let view = View { frontend, listener, client: Some(client.socket.raw()), ..View::of(&worker, conn) };
        let mut exec =
            Exec { conn, txn: &mut txn, live: &view, arena, side: Side::Request, last: true, resumed };
        rules.run(&mut exec, from)
    });
    keep_decisions(&client.session.conn, &txn);
    client.mark(&mut txn.decisions);
    worker.give_txn(txn);
    outcome
}

/// `set-src` and `set-dst` of an opening connection hold for all of its requests.
fn keep_decisions(conn: &Conn, txn: &Txn) {
    if let Some(src) = txn.decisions.src {
        conn.src.set(src);
    }
    if let Some(dst) = txn.decisions.dst {
        conn.dst.set(dst);
    }
}

/// Reads the PROXY header that the connection must begin with.
async fn proxy_header(client: &mut Client, proxy: &Proxy, cip: Option<u32>) -> bool {
    let limit = proxy.timeouts.client_hs.or(proxy.timeouts.client).unwrap_or(Duration::from_secs(10));
    client.timer.set_after(Some(limit));
    let received = match client.buf.as_ref().is_some_and(|buf| !buf.is_empty()) {
        true => Ok(1),
        false => client.receive().await,
    };
    let taken = match (received, client.buf.as_mut()) {
        (Ok(1..), Some(buf)) => link::header::take(buf, &client.session.conn, cip),
        (Err(e), _) if e.kind() == io::ErrorKind::TimedOut => Err(HeaderFault::Timeout),
        (Err(_), _) => Err(HeaderFault::Broken),
        (Ok(_), _) => Err(HeaderFault::Closed),
    };
    let Err(fault) = taken else { return true };
    let (number, text) = match cip {
        None => fault.of_proxy(),
        Some(_) => fault.of_cip(),
    };
    client.session.conn.error.set(ConnError(number));
    if proxy.binds[client.listener as usize].tls.is_some() {
        handshake::not_begun(client, proxy, fault == HeaderFault::Timeout);
    }
    crate::log::connection_error(client, text);
    // What was to be a header is left where it is, and with it the client learns that nobody read it.
    if client.has_input() {
        let _ = client.socket.raw().set_linger0();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F>(_: impl FnOnce(Client) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_an_idle_connection_is_small() {
        // design.md: at most 512 bytes. Whatever serves more than a waiting client goes into `rt::boxed`.
        let size = size_of_future(run);
        assert!(size <= 384, "{size} bytes");
    }
}
