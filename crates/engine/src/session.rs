//! A client connection from accept to close: limits and counters, `tcp-request connection`, the PROXY
//! header, `tcp-request session`, then TCP or HTTP.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use base::slab::Key;
use lang::RuleSet;
use lang::action::{Exec, Flow, Fulfilled, Need};
use lang::env::Side;
use lang::rules::{Position, Run};
use model::conn::ConnError;
use model::proxy::leave;
use model::term::Cause;
use model::txn::{Decisions, SharedLine};
use model::{Conn, Peer, Txn};
use program::Proxy;
use program::proxy::Mode;
use rt::{Buf, Socket, Timer};

use crate::Worker;
use crate::admission;
use crate::live::View;
use crate::proxy_header::HeaderFault;
use crate::sessions::Session;
use crate::transport::Transport;

/// A client connection. Dropping it ends the connection and gives back what it counted.
pub struct Client {
    /// The worker it lives on.
    pub worker: Rc<Worker>,
    /// Its facts, also seen from outside.
    pub session: Rc<Session>,
    /// Its socket, perhaps with TLS on it.
    pub socket: Transport,
    /// Bytes received and not consumed; none while there are none.
    pub buf: Option<Buf>,
    /// Deadline of what is being waited for.
    pub timer: Timer,
    /// It is a stream of a multiplexed connection, which is counted elsewhere.
    pub part: Option<Box<crate::h2::Part>>,
    key: Option<Key>,
}

impl Client {
    /// A stream of a multiplexed connection, as a client of its own that shares its facts.
    pub fn of_stream(
        worker: Rc<Worker>,
        session: Rc<Session>,
        socket: Transport,
        part: crate::h2::Part,
    ) -> Client {
        let (timer, part) = (Timer::new(), Some(Box::new(part)));
        Client { worker, session, socket, buf: None, timer, part, key: None }
    }

    /// The connection that a stream belongs to; `None` where the connection is its own, or gone.
    pub fn lead(&self) -> Option<Rc<Client>> {
        self.part.as_ref()?.lead.upgrade()
    }

    /// Whether the client's time is over: nothing was heard of it or taken by it for `limit`, after which the timer was set. What a
    /// stream of HTTP/2 holds back until windows open counts when it goes on.
    pub fn is_overdue(&mut self, cx: &mut Context<'_>, limit: Option<Duration>) -> bool {
        if self.timer.poll_expired(cx).is_pending() {
            return false;
        }
        let moved = self.part.as_ref().and_then(|part| part.receipt.moved());
        match moved.zip(limit).map(|(moved, limit)| moved + limit) {
            Some(deadline) if deadline > rt::now() => {
                self.timer.set(Some(deadline));
                self.timer.poll_expired(cx).is_ready()
            }
            _ => true,
        }
    }

    /// Has the stream of HTTP/2 reset, should the client not have taken all of its response.
    pub fn give_up(&self) {
        if let Some(part) = &self.part {
            part.receipt.give_up();
        }
    }

    /// Looks whether the TLS handshake is over by now, for those who ask whether early data are safe.
    #[inline]
    pub fn look_early(&self) {
        if self.conn().early.get() {
            let lead = self.lead();
            self.conn().early.set(lead.as_deref().unwrap_or(self).socket.is_early());
        }
    }

    /// Facts of the connection.
    pub fn conn(&self) -> &Conn {
        &self.session.conn
    }

    /// The frontend.
    pub fn frontend(&self) -> &Proxy {
        self.worker.shared.program.configured(self.session.conn.frontend)
    }

    /// Whether the frontend was shut down by an operator (`shutdown frontend`): its clients are asked to leave. A process that
    /// stops has a time of its own for that, see [`crate::sessions::is_sent_away`].
    pub fn is_frontend_stopped(&self) -> bool {
        self.worker.stopped.get().is_none()
            && self.frontend().state.front.state() == model::proxy::FrontState::Stopped
    }

    /// Lets the runtime API see the request line, if it is logged. A stream of HTTP/2 is not seen.
    pub fn show_line(&self, line: &SharedLine) {
        if self.part.is_none() && !self.frontend().log.targets.is_empty() {
            *self.session.line.borrow_mut() = line.clone();
        }
    }

    /// Whether received bytes wait to be looked at.
    pub fn has_input(&self) -> bool {
        self.buf.as_ref().is_some_and(|b| !b.is_empty())
    }

    /// `silent-drop`: has the connection end without telling the peer.
    pub fn vanish(&mut self, rst_ttl: Option<u8>) {
        let lead = self.lead();
        let socket = &lead.as_deref().unwrap_or(self).socket;
        let vanished = socket.raw().vanish(rst_ttl).is_ok();
        if lead.is_some() {
            // A Unix socket can't; its other streams go on.
            if !vanished {
                return;
            }
            self.session.end(Cause::Local);
        }
        socket.mute();
        self.session.vanished.set(true);
    }

    /// Ends the connection of a client of HTTP/2 together with its stream at hand.
    pub fn expel(&self) {
        if let Some(part) = &self.part {
            part.receipt.expel();
        }
    }

    /// Marks the packets to the client as rules decided (`set-fc-mark`, `set-fc-tos`), and gives the task at hand its place
    /// among others (`set-nice`). Where the privilege lacks packets go unmarked.
    pub fn mark(&self, decisions: &mut Decisions) {
        if decisions.fc_mark.is_none() && decisions.fc_tos.is_none() && decisions.nice.is_none() {
            return;
        }
        if let Some(nice) = decisions.nice {
            rt::renice(nice);
        }
        let lead = self.lead();
        let socket = lead.as_deref().unwrap_or(self).socket.raw();
        if let Some(mark) = decisions.fc_mark.take() {
            let _ = socket.set_mark(mark);
        }
        if let Some(tos) = decisions.fc_tos.take() {
            let _ = socket.set_tos(tos);
        }
    }

    /// Receives more into the buffer until the deadline. `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// `TimedOut` when the deadline passed, `OutOfMemory` when the buffer is full, else the connection's.
    pub async fn receive(&mut self) -> io::Result<usize> {
        let (socket, timer, buf) = (&self.socket, &mut self.timer, &mut self.buf);
        let session = &self.session;
        poll_fn(|cx| {
            if session.kill.get().is_some() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if socket.is_readable() {
                let b = buf.get_or_insert_default();
                if b.spare() == 0 {
                    b.compact();
                }
                if b.spare() == 0 {
                    return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
                }
                if let Some(r) = socket.try_recv(b.spare_mut()) {
                    if r.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset) {
                        session.conn.error.set(ConnError::RESET);
                    }
                    if let Some(fault) = socket.fault() {
                        session.conn.break_off(fault);
                    }
                    return Poll::Ready(r.inspect(|n| b.advance(*n)));
                }
            }
            if buf.as_ref().is_some_and(Buf::is_empty) {
                *buf = None;
            }
            let _ = socket.poll_readable(cx);
            timer.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
        })
        .await
    }
}

impl Client {
    /// The session is counted in the rates of sessions from now on, or will not be.
    fn settle(&self) {
        if self.session.pending.replace(false) {
            admission::settle(self.frontend(), &self.worker.shared.program.world.process);
        }
    }
}

impl Client {
    /// Counts the connection among those of HTTP/1.
    pub fn speaks_h1(&self) {
        if !self.session.h1.replace(true) {
            let h1 = &self.frontend().state.front.counters.of(self.worker.index).h1;
            h1.connections.inc();
            h1.open_connections.inc();
        }
    }

    /// Bytes that came and that nobody has looked at.
    pub fn unread(&self) -> u64 {
        self.buf.as_ref().map_or(0, rt::Buf::len) as u64
    }

    /// Counts what came on a connection of HTTP/1 for nobody.
    pub fn count_unread(&self, bytes: u64) {
        self.frontend().state.front.counters.of(self.worker.index).wire_in.add(bytes);
    }

    /// It is none of them any more.
    pub fn spoke_h1(&self) {
        if self.session.h1.replace(false) {
            self.frontend().state.front.counters.of(self.worker.index).h1.open_connections.dec();
        }
    }

    /// Gives back what the connection held among the others: it is over for everyone but its socket.
    pub fn leave(&self) {
        if self.part.is_some() || self.session.left.replace(true) {
            return;
        }
        self.spoke_h1();
        if let Some(key) = self.key {
            self.worker.sessions.leave(key);
        }
        crate::stick::connection_over(self.conn());
        let proxy = self.frontend();
        let bind = &proxy.binds[self.session.conn.listener as usize];
        self.settle();
        leave(&proxy.state.front.current);
        leave(&bind.state.current);
        self.worker.shared.program.world.process.connections.fetch_sub(1, Relaxed);
        self.worker.freed.raise();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.part.is_none() {
            self.socket.close();
            self.leave();
        }
    }
}

/// Begins the life of an accepted connection, which came to this listener of this frontend. `pending` is what its
/// [admission](crate::admission) says.
pub fn start(worker: Rc<Worker>, (frontend, listener): (u32, u32), pending: bool, socket: Socket, src: Peer) {
    let program = worker.shared.program.clone();
    let proxy = program.configured(frontend);
    program.world.process.counters.of(worker.index).connections.inc();
    proxy.state.front.counters.of(worker.index).connections.inc();
    let conn = Conn::new(worker.next_serial(), frontend, listener, rt::now(), rt::wall());
    if let Some(bind) = proxy.binds.get(listener as usize) {
        bind.state.counters.of(worker.index).connections.inc();
        conn.tls.set(bind.tls.is_some());
    }
    conn.set_addresses(src, local(proxy, listener, &socket));
    let session = Session {
        conn,
        task: Cell::new(None),
        backend: Cell::new(None),
        server: Cell::new(None),
        line: RefCell::default(),
        streams: Cell::new(0),
        idle: Cell::new(false),
        pending: Cell::new(pending),
        vanished: Cell::default(),
        left: Cell::default(),
        h1: Cell::default(),
        own: Default::default(),
        kill: Cell::new(None),
    };
    let session = Rc::new(session);
    let key = worker.sessions.enter(session.clone());
    let socket = Transport::from(socket);
    let client = Client { worker, session, socket, buf: None, timer: Timer::new(), part: None, key };
    prepare(proxy, client.socket.raw());
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
            crate::net::peer(socket.local_addr().ok().as_ref())
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
}

async fn run(mut client: Client) {
    if !rt::boxed(open(&mut client)).await {
        return;
    }
    let mut first = None;
    if client.frontend().mode == Mode::Http && speaks_h2(&client) {
        // Here and below in recycled memory: the task of an idle HTTP/1 connection stays small.
        return rt::boxed(crate::h2::serve(client)).await;
    }
    if client.frontend().mode == Mode::Tcp {
        first = crate::tcp::serve(&mut client).await;
        if first.is_none() {
            return;
        }
    }
    if crate::h1::serve(&mut client, first).await {
        rt::boxed(crate::h2::serve(client)).await;
    }
}

/// Whether HTTP/2 is agreed on: by the `bind` line (`proto`), or in the TLS handshake where that says nothing.
fn speaks_h2(client: &Client) -> bool {
    let agreed = client.conn().secured().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
    let bind = &client.frontend().binds[client.conn().listener as usize];
    bind.h2 || agreed && !bind.h1
}

/// Everything before the first byte of the protocol; whether the connection may go on.
async fn open(client: &mut Client) -> bool {
    let worker = client.worker.clone();
    let program = worker.shared.program.clone();
    let proxy = program.configured(client.conn().frontend);
    let bind = &proxy.binds[client.conn().listener as usize];
    let counters = proxy.state.front.counters.of(worker.index);
    let listener = bind.state.counters.of(worker.index);
    let mut wants = Wants { proxy: bind.accept_proxy, cip: bind.accept_cip };
    if !run_rules(client, &proxy.rules.tcp_connection, &mut wants).await {
        match client.session.vanished.get() {
            true => (counters.denied_req.inc(), listener.denied_req.inc()),
            false => (counters.denied_conn.inc(), listener.denied_conn.inc()),
        };
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
        && !crate::secure::client(client, proxy, acceptor.clone()).await
    {
        return false;
    }
    client.conn().handshake_done.set(Some(rt::now()));
    if !run_rules(client, &proxy.rules.tcp_session, &mut wants).await {
        // `silent-drop` counts among the requests.
        match client.session.vanished.get() {
            true => (counters.denied_req.inc(), listener.denied_req.inc()),
            false => (counters.denied_sess.inc(), listener.denied_sess.inc()),
        };
        // Where the session had to wait for its connection it is an error of that one: none.
        if bind.accept_proxy || bind.accept_cip.is_some() || bind.tls.is_some() {
            crate::log::connection_error(client, "Success");
        }
        // Nobody is told farewell who was not let in.
        client.socket.mute();
        return false;
    }
    crate::stick::session(client.conn());
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
    if rules.is_empty() {
        return true;
    }
    let (mut from, mut resumed) = (Position(0), None);
    loop {
        match step(client, rules, from, resumed) {
            Run::Done => return true,
            Run::Waits(Flow::Yield(need), at) => {
                from = at;
                resumed = Some(Fulfilled::Done);
                match need {
                    Need::ProxyHeader => wants.proxy = true,
                    Need::CipHeader => wants.cip = Some(wants.cip.unwrap_or(0)),
                    Need::Delay(time) => rt::sleep(time).await,
                    // There is no data here, nor a message.
                    Need::Data | Need::Body { .. } | Need::Interim(_) | Need::Handshake => {
                        resumed = Some(Fulfilled::Failed)
                    }
                }
            }
            Run::Decided(Flow::SilentDrop { rst_ttl }, _) => {
                client.vanish(rst_ttl);
                return false;
            }
            Run::Waits(..) | Run::Decided(..) => return false,
        }
    }
}

fn step(client: &mut Client, rules: &RuleSet, from: Position, resumed: Option<Fulfilled>) -> Run {
    let worker = client.worker.clone();
    let mut txn = worker.take_txn();
    // What these rules log (`do-log`) is a session without a stream, which would end here.
    crate::log::sessions_own(&mut txn);
    let outcome = worker.with_arena(|arena| {
        let conn = &client.session.conn;
        let view = View { client: Some(client.socket.raw()), ..View::of(&worker, conn) };
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
        (Ok(1..), Some(buf)) => crate::proxy_header::take(buf, &client.session.conn, cip),
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
