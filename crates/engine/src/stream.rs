//! One stream: a TCP session, or one HTTP request with its response. What it holds is given back when
//! it is dropped, whatever happened.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::fleet::Held;
use farm::Stay;
use farm::queue::Place;
use lang::action::Exec;
use lang::env::Side;
use lang::filter::{Gate, Moment};
use lang::rules::{Position, Run};
use lang::{Env, RuleSet};
use link::chain::Chain;
use link::pump::{Framing, Half, Outer};
use link::transport::Transport;
use model::Txn;
use model::figures::{FrontCounters, ListenerCounters};
use model::proxy::{enter, leave};
use model::term::{Cause, Phase};
use model::txn::StreamOf;
use program::Proxy;
use rt::{Buf, Mono, Timer};

use crate::Worker;
use crate::client::Client;
use crate::filters::{Filters, Met, Whose};
use crate::live::{View, Waiting};
use crate::worker::Lent;
use crate::worker::service::Served;
use model::trace;
use wire::http1::Body;
use wire::method::Method;

mod upstream;

pub use upstream::Upstream;

/// One stream.
pub struct Stream<'c> {
    /// The worker.
    pub worker: Rc<Worker>,
    /// The client connection.
    pub client: &'c mut Client,
    /// Facts.
    pub txn: Lent,
    /// The place at the server, once there is one.
    pub place: Option<Place>,
    /// The connection to the server, once there is one.
    pub upstream: Option<Upstream>,
    /// A connection to the server that serves nobody any more: it is closed behind the log line, which a
    /// client that has its response may look for at once.
    pub parted: Option<Transport>,
    /// Bytes to send to the server before anything else: the request head.
    pub to_server: Option<Buf>,
    /// Bytes to send to the client before anything else: the response head, or a whole local answer.
    pub to_client: Option<Buf>,
    /// The body of a local answer, while the last rules may look at it.
    pub local_body: Option<Vec<u8>>,
    /// State of HTTP.
    pub http: Http,
    /// The request's body on its way.
    pub upload: Half,
    /// When the client was last heard, or when the stream began.
    pub heard: Mono,
    /// Deadline of the server.
    pub server_timer: Timer,
    /// Filters at work on it.
    pub filters: Option<Box<Filters>>,
    /// What sees the request's body for copies of it.
    pub tees: Vec<Box<dyn Gate>>,
    /// What the response's data will pass through.
    pub down_chain: Option<(Box<Chain>, Outer)>,
    /// A service that takes the place of a server.
    pub service: Option<Served>,
    /// Keys that will be stuck to the server.
    pub pending: Vec<crate::tracking::Pending>,
    entered: Option<u32>,
    /// Keeps the backend and the server that it was sent to.
    stay: Stay,
}

/// What an HTTP stream knows of its two connections.
#[derive(Debug, Default)]
pub struct Http {
    /// What the client's persistence cookie said.
    pub cookie: crate::remembered::Known,
    /// The request head has got its final form.
    pub edited: bool,
    /// The client wants to keep its connection.
    pub client_keeps: bool,
    /// The server keeps its connection after the response.
    pub server_keeps: bool,
    /// Rules said in the request's `Connection` that the connection to the server ends with it.
    pub server_ends: bool,
    /// The client's connection is kept after the response.
    pub next_keeps: bool,
    /// The request's body.
    pub request_body: Body,
    /// The response's body.
    pub response_body: Body,
    /// What a buffer does not have for the request's body ([`crate::room::taken`]).
    pub request_taken: usize,
    /// The same for the response's.
    pub response_taken: usize,
    /// The whole request has been received.
    pub body_received: bool,
    /// A rule of `http-after-response` failed: what is answered instead is not spoiled once more.
    pub after_failed: bool,
    /// The client went away before its request was whole, or broke off while rules paused.
    pub client_left: bool,
    /// The client closed its side, or more, while a rule waited for somebody else; of TCP: without a word,
    /// before a server was asked.
    pub left_early: bool,
    /// The response is through; what remains is the rest of the request.
    pub last: bool,
    /// The server closed while its response was held back.
    pub response_ended: bool,
    /// Rules on the content of a TCP stream are at work (`tcp-request content`).
    pub as_tcp: bool,
    /// The rules on what the server says have had their turn.
    pub contacted: bool,
    /// The connection may not turn to HTTP/2 (`proto h1`).
    pub only_h1: bool,
    /// The server was told that the request came as early data.
    pub told_early: bool,
    /// A server did not take early data: the next attempt sends none.
    pub refused_early: bool,
    /// A name made at run time led to a backend of TCP.
    pub misled: bool,
    /// The request was there with its body before rules saw it (`option http-buffer-request`).
    pub buffered: bool,
    /// The request was given up (tarpit) or had gone to its server before its answer is made.
    pub dismissed: bool,
    /// The whole of an answer was given, if not taken by the client yet.
    pub answered: bool,
    /// The client can tell the end of an answer of ours from its head.
    pub whole: bool,
    /// Bytes by which the request grew beyond what statistics count: fields for one connection, the framing
    /// that a stream of HTTP/2 gave it. Negative when such fields were taken out.
    pub request_added: i64,
    /// The same of the response.
    pub response_added: i64,
    /// It is counted among the open streams of HTTP/1.
    pub counted: bool,
    /// `-d` told of its beginning, and its end may name this connection to a server (-1: a service).
    pub shown: Option<Option<i32>>,
}

impl<'c> Stream<'c> {
    /// A new stream of a connection.
    pub fn new(client: &'c mut Client) -> Stream<'c> {
        let worker = client.worker.clone();
        let mut txn = worker.take_txn();
        let requests = &client.session.conn.requests;
        txn.first_request = requests.get() == 0;
        requests.set(requests.get() + 1);
        client.session.idle.set(false);
        Stream {
            worker,
            client,
            txn: Lent::new(txn),
            place: None,
            upstream: None,
            parted: None,
            to_server: None,
            to_client: None,
            local_body: None,
            http: Http { body_received: true, ..Http::default() },
            upload: Half::new(Framing::Length(0)),
            heard: rt::now(),
            server_timer: Timer::new(),
            filters: None,
            tees: Vec::new(),
            down_chain: None,
            service: None,
            pending: Vec::new(),
            entered: None,
            stay: Stay::default(),
        }
    }

    /// Whether it is the first request of its connection. With HTTP/2 none is: they have a connection that
    /// works.
    pub fn is_first(&self) -> bool {
        self.txn.first_request && self.client.part.is_none()
    }

    /// Whether it came as a POST, whatever rules made of it.
    pub fn is_posted(&self) -> bool {
        self.txn.line.method() == b"POST"
    }

    /// Counts it among the streams of the process: a request when it is there, a failed one when logged.
    pub fn number(&mut self) {
        if self.txn.serial == Txn::UNNUMBERED {
            let process = &self.worker.shared.program.world.process;
            self.txn.serial = process.streams.fetch_add(1, Relaxed);
            process.counters.of(self.worker.index).open_streams.inc();
            let streams = &self.client.session.streams;
            streams.set(streams.get().saturating_add(1));
        }
    }

    /// The frontend.
    pub fn frontend(&self) -> &Proxy {
        self.worker.shared.program.configured(self.client.front)
    }

    /// Where the frontend and the listener count what a stream does; `None`: it is a copy, which is none of
    /// their requests.
    pub fn front_counters(&self) -> Option<(&FrontCounters, &ListenerCounters)> {
        if self.txn.mirror.is_copy {
            return None;
        }
        let (front, worker) = (self.frontend(), self.worker.index);
        let listener = &front.binds[self.client.listener as usize].state;
        Some((front.state.front.counters.of(worker), listener.counters.of(worker)))
    }

    /// The backend, or the frontend while none is chosen.
    pub fn backend(&self) -> Held<'_, Proxy> {
        let program = &self.worker.shared.program;
        program.proxy(self.txn.backend.unwrap_or(self.client.front))
    }

    /// Index of the backend, or of the frontend while none is chosen.
    pub fn backend_index(&self) -> u32 {
        self.txn.backend.unwrap_or(self.client.front)
    }

    /// Whether the client asks for a tunnel: it may end its side of that before it stands, and has not left
    /// then.
    pub fn wants_tunnel(&self) -> bool {
        self.txn.has_req && self.txn.req.method_id() == Method::Connect
    }

    /// The client's address as rules and headers see it.
    pub fn src(&self) -> model::Peer {
        self.txn.decisions.src.unwrap_or_else(|| self.client.session.conn.src.get())
    }

    /// The destination as rules and headers see it.
    pub fn dst(&self) -> model::Peer {
        self.txn.decisions.dst.unwrap_or_else(|| self.client.session.conn.dst.get())
    }

    /// How long the client may be silent: `timeout client`, or what rules made of it.
    pub fn client_limit(&self) -> Option<Duration> {
        self.txn.overrides.client.or(self.frontend().timeouts.client)
    }

    /// How long the server may be silent: `timeout server`, or what rules made of it.
    pub fn server_limit(&self) -> Option<Duration> {
        self.txn.overrides.server.or(self.backend().timeouts.server)
    }

    /// Receives more of what the client sends: see [`Client::receive`].
    ///
    /// # Errors
    /// As there.
    pub async fn receive(&mut self) -> io::Result<usize> {
        let got = self.client.receive().await;
        if matches!(got, Ok(1..)) {
            self.heard = rt::now();
        }
        got
    }

    /// Sends the stream to a backend.
    pub fn set_backend(&mut self, backend: u32) {
        if backend != self.client.front {
            // What the frontend's rules said of the server's side was said of its own servers (`set-timeout`,
            // `set-retries`).
            let all = &mut self.txn.overrides;
            (all.connect, all.queue, all.server, all.tunnel) = (None, None, None, None);
            all.retries = None;
        }
        self.txn.backend = Some(backend);
        let proxy = self.worker.shared.program.proxy(backend);
        self.txn.awaits_http |= proxy.log.looks_at_http;
        if self.txn.has_req && proxy.cookie.as_ref().is_some_and(crate::remembered::is_told) {
            // No cookie came and none was set, as far as anybody looked.
            let term = &mut self.txn.term;
            (term.cookie, term.set_cookie) = (b'N', b'N');
        }
        self.client.session.backend.set(Some(backend));
        let shared = self.worker.shared.clone();
        self.stay = shared.farm.stay(backend, None);
        let state = &shared.program.proxy(backend).state;
        self.enter(backend);
        state.back.session_rate.add(rt::now().as_millis());
        state.back.counters.of(self.worker.index).sessions.inc();
        state.back.last_session.store(rt::wall().as_secs(), Relaxed);
    }

    /// Takes a place among the streams of a proxy, to be given back at the end: of its backend, or of the
    /// frontend where there is none.
    pub fn enter(&mut self, proxy: u32) {
        let back = &self.worker.shared.program.proxy(proxy).state.back;
        enter(&back.current, &back.current_max);
        self.entered = Some(proxy);
    }

    /// Keeps the backend that it will be sent to.
    pub fn keep(&mut self, stay: Stay) {
        self.stay = stay;
    }

    /// Notes the server that it was sent to, or that it waits for.
    pub fn set_server(&mut self, server: Option<u32>) {
        self.txn.server = server;
        if let Some(backend) = self.txn.backend {
            self.stay = self.worker.shared.farm.stay(backend, server);
        }
    }

    /// Counts an attempt at the server of its place.
    pub fn count_attempt(&mut self) {
        if let Some(place) = &mut self.place {
            place.serve();
        }
    }

    /// The server's side of it is over: who logs or counts from here on finds the server without it.
    pub fn server_is_done(&mut self) {
        if let Some(place) = &mut self.place {
            place.finish();
        }
    }

    /// Counts the connection that it goes on with as used; not in TCP, where it is its session's and no other
    /// may ever use it.
    pub fn use_connection(&mut self) {
        if let Some(place) = self.place.as_mut().filter(|_| self.txn.has_req) {
            place.connect();
        }
    }

    /// Does without a connection to the server from here on.
    pub fn leave_connection(&mut self) {
        self.upstream = None;
        if let Some(place) = &mut self.place {
            place.disconnect();
        }
    }

    /// Has a connection that serves nobody any more closed with the stream, not before.
    pub fn part(&mut self, from: Option<Transport>) {
        // A stream of HTTP/2 may last until its client has taken everything.
        self.parted = from.filter(|_| self.client.part.is_none());
    }

    /// Gives back the place at the server and leaves the backend: what follows (the log line) sees them
    /// without us.
    pub fn release(&mut self) {
        if let Some(up) = self.upstream.take() {
            if self.txn.term.cause == Cause::ClientTimeout && self.txn.has_req && up.call.is_none() {
                // The rest of a request that was waited for too long does not come: the connection is closed,
                // not reset (but for `option nolinger`).
                let _ = up.socket.shutdown_write();
            }
            up.socket.close();
        }
        self.place = None;
        if let Some(backend) = self.entered.take() {
            leave(&self.worker.shared.program.proxy(backend).state.back.current);
        }
    }

    /// Notes how the stream ends, unless that stands already.
    pub fn end(&mut self, cause: Cause, phase: Phase) {
        if cause == Cause::ServerAbort
            && self.upstream.as_ref().is_some_and(|u| u.call.is_none() && u.socket.raw().is_reset())
        {
            self.txn.server_conn.error = model::conn::ConnError::RESET;
        }
        if let Some(up) = self.upstream.as_ref().filter(|u| u.call.is_none())
            && let Some(fault) = up.socket.fault()
        {
            (self.txn.server_conn.error, self.txn.server_conn.fault) = (model::conn::ConnError::FATAL, fault);
        }
        if cause == Cause::ClientAbort {
            let lead = self.client.lead();
            let socket = &lead.as_deref().unwrap_or(&*self.client).socket;
            match socket.fault() {
                Some(fault) => self.client.conn().break_off(fault),
                None if socket.raw().is_reset() => {
                    self.client.conn().error.set(model::conn::ConnError::RESET);
                }
                None => {}
            }
        }
        self.txn.term.end(cause, phase);
    }

    /// Notes what is known of the streams that its two connections are, where they carry many.
    pub fn note_streams(&mut self) {
        if let Some(part) = &self.client.part {
            self.txn.client_stream = StreamOf { id: Some(part.id), reset: part.receipt.reset.get() };
        }
        if let Some(call) = self.upstream.as_ref().and_then(|up| up.call.as_ref()) {
            call.note(&mut self.txn);
        }
    }

    /// Notes that a server gave no response: the stream has left its connection when that is answered.
    pub fn note_lost(&mut self) {
        if let Some(call) = self.upstream.as_ref().and_then(|up| up.call.as_ref()) {
            call.note_lost(&mut self.txn);
        }
    }

    /// Runs a rule set of one direction.
    pub fn run_rules(&mut self, rules: &RuleSet, side: Side, from: Position, last: bool) -> Run {
        self.run_resumed(rules, side, from, last, None)
    }

    /// Runs a rule set after what a rule waited for came to an end.
    pub fn run_resumed(
        &mut self,
        rules: &RuleSet,
        side: Side,
        from: Position,
        last: bool,
        resumed: Option<lang::action::Fulfilled>,
    ) -> Run {
        let txn = &mut self.txn;
        // The rules of a request are part of it: the time that it took is known behind them, and behind those
        // of their answer, unless that says that the request can't be served.
        let refused = matches!(txn.term.cause, Cause::ServerAbort | Cause::Proxy | Cause::ClientAbort);
        let answered = self.local_body.is_some() && txn.times.queued.is_none() && !refused;
        let part = (side == Side::Request || answered) && !txn.times.waited;
        let read = if part { txn.times.request.take() } else { None };
        let outcome = self.with_exec(side, last, resumed, |exec| rules.run(exec, from));
        self.txn.times.request = self.txn.times.request.or(read);
        outcome
    }

    /// Asks its filters at a moment, from one of them on.
    pub fn meet(
        &mut self,
        (moment, whose): (Moment, Whose),
        from: usize,
        last: bool,
        resumed: Option<lang::action::Fulfilled>,
    ) -> Met {
        let Some(mut filters) = self.filters.take() else { return Met::Done };
        let met =
            self.with_exec(moment.side(), last, resumed, |exec| filters.meet(moment, whose, from, exec));
        self.filters = Some(filters);
        met
    }

    /// Runs what an action may run, with the stream as it stands.
    pub fn with_exec<R>(
        &mut self,
        side: Side,
        last: bool,
        resumed: Option<lang::action::Fulfilled>,
        f: impl FnOnce(&mut Exec<'_>) -> R,
    ) -> R {
        let worker = self.worker.clone();
        let client: &Client = self.client;
        let (conn, http) = (&client.session.conn, &self.http);
        let upstream = self.upstream.as_ref();
        let txn = &mut self.txn;
        let kept =
            txn.caching.hit.as_ref().filter(|_| side == Side::Response).map(|(_, entry)| entry.clone());
        let local = self.local_body.as_deref().or(kept.as_ref().map(|entry| entry.body.as_slice()));
        let lead = client.lead();
        let outcome = worker.with_arena(|arena| {
            let view = View {
                // Without HTTP nobody knows the end of the data but the one who waits for it.
                request: Waiting::of(
                    client.buf.as_ref(),
                    txn.has_req.then_some((http.request_body, http.request_taken)),
                    if txn.has_req { http.client_left } else { last },
                ),
                response: local.map_or_else(
                    || {
                        Waiting::of(
                            upstream.and_then(|u| u.buf.as_ref()),
                            txn.has_res.then_some((http.response_body, http.response_taken)),
                            if txn.has_res { http.response_ended } else { last },
                        )
                    },
                    |data| Waiting { data, over: true, ..Waiting::default() },
                ),
                arena: Some(arena),
                session: Some(&client.session),
                client: Some(lead.as_deref().unwrap_or(client).socket.raw()),
                upstream: upstream.map(Upstream::raw),
                frontend: client.front,
                listener: client.listener,
                ..View::of_txn(&worker, conn, txn)
            };
            let mut exec = Exec { conn, txn, live: &view, arena, side, last, resumed };
            f(&mut exec)
        });
        client.mark(&mut txn.decisions);
        outcome
    }

    /// Evaluates something on the stream as it stands.
    pub fn evaluate<R>(&self, side: Side, f: impl FnOnce(&Env<'_>) -> R) -> R {
        let client: &Client = self.client;
        let conn = &client.session.conn;
        let upstream = self.upstream.as_ref();
        let lead = client.lead();
        self.worker.with_arena(|arena| {
            let view = View {
                request: Waiting::of(
                    client.buf.as_ref(),
                    self.txn.has_req.then_some((self.http.request_body, self.http.request_taken)),
                    true,
                ),
                response: Waiting::of(
                    upstream.and_then(|u| u.buf.as_ref()),
                    self.txn.has_res.then_some((self.http.response_body, self.http.response_taken)),
                    true,
                ),
                arena: Some(arena),
                session: Some(&client.session),
                client: Some(lead.as_deref().unwrap_or(client).socket.raw()),
                upstream: upstream.map(Upstream::raw),
                frontend: client.front,
                listener: client.listener,
                ..View::of_txn(&self.worker, conn, &self.txn)
            };
            f(&Env { conn, txn: &self.txn, live: &view, arena, side, last: true })
        })
    }

    /// Whether a condition holds for the request as it stands.
    pub fn holds(&self, condition: Option<&lang::Condition>) -> bool {
        condition.is_none_or(|c| self.evaluate(Side::Request, |env| c.holds(env)) == lang::cond::Outcome::Yes)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if self.txn.serial != Txn::UNNUMBERED {
            let (source, events) = (&trace::STREAM, trace::stream::FREE);
            let (session, own) = (&self.client.session, self.txn.serial);
            crate::traced::stream_of(session, own, source, events, trace::level::STATE, "stream is over");
        }
        self.release();
        self.client.session.backend.set(None);
        self.client.session.server.set(None);
        if self.client.part.is_none() {
            self.client.session.line.take();
        }
        crate::tracking::release(&mut self.txn);
        if self.http.counted {
            self.frontend().state.front.counters.of(self.worker.index).h1.open_streams.dec();
        }
        if self.txn.serial != Txn::UNNUMBERED {
            let process = &self.worker.shared.program.world.process;
            process.counters.of(self.worker.index).open_streams.dec();
            let streams = &self.client.session.streams;
            streams.set(streams.get().saturating_sub(1));
        }
        if self.txn.decisions.nice.is_some() {
            // A question to agents came by no listener.
            let bind = self.client.frontend().binds.get(self.client.listener as usize);
            rt::renice(bind.map_or(0, |bind| bind.nice));
        }
        if let Some(txn) = self.txn.end() {
            self.worker.give_txn(txn);
        }
    }
}
