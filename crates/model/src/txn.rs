//! The facts of one transaction: a request and its response, or one TCP session.
//!
//! It is recycled: [`Txn::reset`] forgets the values and keeps the memory. The engine fills it along
//! the way of the request, rules read and edit it, the log line is written from it at the end.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use base::time::{Mono, Wall};
use wire::head::{Head, Kind};
use wire::method::{Method, Version};

use crate::origin::Origin;
use crate::peer::Peer;
use crate::term::Term;
use crate::vars::Vars;

/// When things happened. A time that was not reached stays `None` and is logged as -1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// When the previous request ended or, for the first one, when handshakes were done: idle time starts.
    pub idle_from: Option<Mono>,
    /// First byte of the request.
    pub first_byte: Option<Mono>,
    /// Date of the first byte (`request_date`, `%tr`).
    pub request_date: Option<Wall>,
    /// The whole request head was there.
    pub request: Option<Mono>,
    /// Its body was waited for as well, so that `request` holds though rules are still to come.
    pub waited: bool,
    /// A server (or a slot in it) was assigned: the queue was left.
    pub queued: Option<Mono>,
    /// The connection to the server stood.
    pub connected: Option<Mono>,
    /// The response head was there.
    pub response: Option<Mono>,
    /// It ended.
    pub ended: Option<Mono>,
}

/// Timeouts that rules may change for one transaction (`set-timeout`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// `set-timeout server`.
    pub server: Option<Duration>,
    /// `set-timeout tunnel`.
    pub tunnel: Option<Duration>,
    /// `set-timeout client`.
    pub client: Option<Duration>,
    /// `set-timeout connect`.
    pub connect: Option<Duration>,
    /// `set-timeout queue`.
    pub queue: Option<Duration>,
    /// `set-timeout tarpit`.
    pub tarpit: Option<Duration>,
    /// `set-retries`.
    pub retries: Option<u32>,
}

/// Facts of the connection to the server (fetches `bc_*`).
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerConn {
    /// A connection was begun, whether or not it was ever there.
    pub begun: bool,
    /// Local address.
    pub src: Peer,
    /// Address connected to.
    pub dst: Peer,
    /// The connection had served a request before.
    pub reused: bool,
    /// HTTP version: 0 in TCP mode, 1, 2 or 3.
    pub http_major: u8,
    /// What is known of it where it is multiplexed.
    pub multiplex: crate::conn::Multiplex,
    /// The stream on it.
    pub stream: StreamOf,
    /// Error of the connection.
    pub error: crate::conn::ConnError,
    /// OpenSSL's number of what ended it where it was encrypted, 0 if nothing.
    pub fault: u32,
    /// What the server did in this transaction that is odd or wrong (`bc_glitches`).
    pub glitches: u32,
    /// Requests before this one in the server's queue.
    pub server_queue: u32,
    /// Requests before this one in the backend's queue.
    pub backend_queue: u32,
}

/// A stream on a multiplexed connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOf {
    /// Its number (`fs.id`, `bs.id`).
    pub id: Option<u32>,
    /// The code with which the peer reset it (`fs.rst_code`, `bs.rst_code`).
    pub reset: Option<u32>,
}

/// Parameters of an application of FastCGI: names and values.
pub type Params = Vec<(Box<[u8]>, Box<[u8]>)>;

/// What the engine does to the way the response ends or the request is forwarded, as rules decided.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// How the response is compressed (`res.comp_algo`).
    pub compressed: Option<&'static str>,
    /// The response ends where its stream of a connection for many does: its head says nothing of that.
    pub framed: bool,
    /// `set-log-level`: 0 to 7, or `Some(8)` for silent.
    pub log_level: Option<u8>,
    /// `set-priority-class`.
    pub priority_class: i16,
    /// `set-priority-offset`, ms.
    pub priority_offset: i32,
    /// `set-nice`: -1024 to 1024, for the task of this transaction while it lasts.
    pub nice: Option<i16>,
    /// `disable-l7-retry`.
    pub no_l7_retry: bool,
    /// `force-persist` applied.
    pub force_persist: bool,
    /// `ignore-persist` applied.
    pub ignore_persist: bool,
    /// `strict-mode off` in the rule set that runs.
    pub lenient_rewrites: bool,
    /// `set-fc-mark`.
    pub fc_mark: Option<u32>,
    /// `set-fc-tos`.
    pub fc_tos: Option<u8>,
    /// `set-bc-mark`.
    pub bc_mark: Option<u32>,
    /// `set-bc-tos`.
    pub bc_tos: Option<u8>,
    /// Destination set by `set-dst`/`set-dst-port` on this transaction.
    pub dst: Option<Peer>,
    /// Source set by `set-src`/`set-src-port` on this transaction.
    pub src: Option<Peer>,
    /// What rules set for an application of FastCGI, in the order of the names.
    pub params: Params,
}

/// Bytes of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Received from the sender, as `%B`, `%U` and the statistics count: heads by [`Head::counted_len`],
    /// bodies without their framing, TCP as it is.
    pub received: u64,
    /// Passed on to the other side, counted likewise.
    pub sent: u64,
    /// Received on the wire.
    pub wire_in: u64,
    /// Sent on the wire.
    pub wire_out: u64,
}

impl Traffic {
    /// What this is more than `part`, which was counted before.
    pub fn beyond(&self, part: &Traffic) -> Traffic {
        Traffic {
            received: self.received.saturating_sub(part.received),
            sent: self.sent.saturating_sub(part.sent),
            wire_in: self.wire_in.saturating_sub(part.wire_in),
            wire_out: self.wire_out.saturating_sub(part.wire_out),
        }
    }
}

/// What the counters already hold of a transaction that goes on (`option contstats`).
#[derive(Clone, Copy, Debug)]
pub struct Meanwhile {
    /// Of the request.
    pub up: Traffic,
    /// Of the response.
    pub down: Traffic,
    /// When it was entered.
    pub at: Mono,
}

/// What the status of a server's response counts as in stick tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseCounts {
    /// The client's error (`http-err-codes`).
    pub error: bool,
    /// A failure (`http-fail-codes`).
    pub failure: bool,
}

/// One transaction.
#[derive(Debug)]
pub struct Txn {
    /// How many streams the process had before (`%rt`); [`Txn::UNNUMBERED`] until it counts as one.
    pub serial: u64,
    /// How many lines its frontend had logged before (`%lc`).
    pub log_number: Cell<u64>,
    /// The request; empty in TCP mode.
    pub req: Head,
    /// The response; empty until it came.
    pub res: Head,
    /// A request head has been received.
    pub has_req: bool,
    /// A response head has been received or made.
    pub has_res: bool,
    /// The bytes of a TCP stream begin with a request, which stands in `req` for its rules to look at.
    pub peeked: bool,
    /// They may yet turn out to.
    pub may_be_http: bool,
    /// Method, target and version as received, before rules: `%r`, `capture.req.*`.
    pub line: SharedLine,
    /// `capture.req.method` and `capture.req.uri` find it.
    pub line_kept: bool,
    /// The client takes us for its proxy, and its frontend has `option http-use-proxy-header`: credentials go
    /// in the fields of proxies. Decided when the request comes; rules that change its target leave it.
    pub for_proxy: bool,
    /// Backend, as an index of the program.
    pub backend: Option<u32>,
    /// Server, as an index in the backend.
    pub server: Option<u32>,
    /// Not worth a log line: a connection that ended between requests.
    pub silent: bool,
    /// Its line has been written before the end.
    pub logged: bool,
    /// Which moment the line at hand is made at (`%OG`).
    pub origin: Cell<Origin>,
    /// A service inside the process answered (statistics, Lua): what log lines name in the place of a server.
    pub by_service: Option<&'static str>,
    /// The version of the response in whose place an answer is being made: all that is left of it to be told.
    /// Afterwards, and where there was none, that of the request; also while a service answers HTTP/1.0.
    pub replaced: Option<Version>,
    /// No data was ever received (`option dontlognull`).
    pub null: bool,
    /// It counts as a request (`req_tot`), so often.
    pub counted: Cell<u32>,
    /// Something came on a multiplexed connection that could not be read as a request.
    pub unread: bool,
    /// The request of a stream was read and is not one that could be served: its line is that of a stream,
    /// not of an error.
    pub refused: bool,
    /// An interim response of our own was made for it: that there is no status yet is known.
    pub hinted: bool,
    /// Rules or formats of its proxies look at HTTP: a stream of TCP has a status then that is not known.
    pub awaits_http: bool,
    /// The first request of its connection.
    pub first_request: bool,
    /// When things happened.
    pub times: Times,
    /// How it ended.
    pub term: Term,
    /// Connect attempts beyond the first.
    pub retries: u32,
    /// It was sent to another server than the first chosen (`+` before the retries in logs).
    pub redispatched: bool,
    /// Bytes from the client.
    pub up: Traffic,
    /// Bytes from the server.
    pub down: Traffic,
    /// Bytes from the server that `option logasap` shows before the end.
    pub asap: u64,
    /// What the counters hold of it already.
    pub meanwhile: Option<Box<Meanwhile>>,
    /// Status sent to the client, 0 if none.
    pub status: u16,
    /// The stream on the client's connection.
    pub client_stream: StreamOf,
    /// Facts of the server side.
    pub server_conn: ServerConn,
    /// What TLS found on it.
    pub server_secured: Option<std::sync::Arc<crate::secured::Secured>>,
    /// What rules decided.
    pub decisions: Decisions,
    /// Timeouts that rules changed.
    pub overrides: Overrides,
    /// `unique-id-format` of this transaction, once made.
    pub unique_id: RefCell<Option<Box<[u8]>>>,
    /// `capture request header` and `declare capture request`, by slot.
    pub req_captures: RefCell<Vec<Option<Box<[u8]>>>>,
    /// `capture response header` and `declare capture response`, by slot.
    pub res_captures: RefCell<Vec<Option<Box<[u8]>>>>,
    /// `capture cookie` of the request (`%CC`).
    pub req_cookie: Option<Box<[u8]>>,
    /// `capture cookie` of the response (`%CS`).
    pub res_cookie: Option<Box<[u8]>>,
    /// Variables of scope `txn`.
    pub txn_vars: RefCell<Vars>,
    /// Variables of scope `req`.
    pub req_vars: RefCell<Vars>,
    /// Variables of scope `res`.
    pub res_vars: RefCell<Vars>,
    /// The request is through: a server is reached, or an answer made. Variables of the request are gone,
    /// those of the response begin.
    pub responding: bool,
    /// Variables of scope `check`: only a health check has them.
    pub check_vars: RefCell<Vars>,
    /// Name and line of the last rule with a final verdict (`last_rule_file`, `last_rule_line`).
    pub last_rule: Cell<Option<u32>>,
    /// Entries of stick tables that it tracks.
    pub stick: RefCell<stick::Trackers>,
    /// What it has to do with caches.
    pub caching: crate::cached::Caching,
    /// Limits that rules turned on and that do not apply yet.
    pub bandwidth: Vec<crate::bandwidth::Bandwidth>,
    /// What it has to do with copies of requests.
    pub mirror: crate::mirror::Mirroring,
    /// What scripts keep with it, dropped with it.
    pub kept: RefCell<Option<Box<dyn std::any::Any>>>,
    /// What filters share with the rules that name them, dropped with it.
    pub shared: RefCell<Vec<std::rc::Rc<dyn std::any::Any>>>,
    /// Queue positions when it was queued, summed over all servers and the backend (`%sq`, `%bq`).
    pub queue_positions: (u32, u32),
}

/// The request line as received.
#[derive(Clone, Debug, Default)]
pub struct RequestLine {
    /// Method, target and version in one buffer, separated by single spaces; cut at `tune.http.logurilen`.
    pub bytes: Vec<u8>,
    /// Length of the method.
    pub method: usize,
    /// Length of the target.
    pub target: usize,
}

/// A request line that others may hold on to while they look at it. Its memory is used again once nobody
/// does.
#[derive(Clone, Debug, Default)]
pub struct SharedLine(Option<Rc<RequestLine>>);

impl SharedLine {
    /// To change it.
    pub fn edit(&mut self) -> &mut RequestLine {
        Rc::make_mut(self.0.get_or_insert_default())
    }

    /// Empties it.
    pub fn clear(&mut self) {
        match self.0.as_mut().map(Rc::get_mut) {
            Some(Some(line)) => {
                line.bytes.clear();
                (line.method, line.target) = (0, 0);
            }
            Some(None) => self.0 = None,
            None => {}
        }
    }
}

impl Deref for SharedLine {
    type Target = RequestLine;

    #[inline]
    fn deref(&self) -> &RequestLine {
        static NONE: RequestLine = RequestLine { bytes: Vec::new(), method: 0, target: 0 };
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl RequestLine {
    /// Records a request line, keeping at most `max` bytes in all.
    pub fn set(&mut self, method: &[u8], target: &[u8], version: &[u8], max: usize) {
        self.bytes.clear();
        self.bytes.extend_from_slice(method);
        self.bytes.push(b' ');
        self.bytes.extend_from_slice(target);
        self.bytes.push(b' ');
        self.bytes.extend_from_slice(version);
        self.bytes.truncate(max);
        self.method = method.len();
        self.target = target.len();
    }

    /// The method.
    pub fn method(&self) -> &[u8] {
        self.bytes.get(..self.method).unwrap_or(&self.bytes)
    }

    /// The target.
    pub fn target(&self) -> &[u8] {
        let from = (self.method + 1).min(self.bytes.len());
        let to = (from + self.target).min(self.bytes.len());
        &self.bytes[from..to]
    }

    /// The version.
    pub fn version(&self) -> &[u8] {
        self.bytes.get(self.method + self.target + 2..).unwrap_or_default()
    }
}

impl Default for Txn {
    fn default() -> Txn {
        Txn {
            serial: Txn::UNNUMBERED,
            log_number: Cell::new(0),
            req: Head::request(),
            res: Head::response(),
            has_req: false,
            has_res: false,
            peeked: false,
            may_be_http: false,
            line: Default::default(),
            line_kept: false,
            for_proxy: false,
            backend: None,
            server: None,
            silent: false,
            origin: Cell::default(),
            logged: false,
            by_service: None,
            replaced: None,
            null: false,
            counted: Cell::new(0),
            unread: false,
            refused: false,
            hinted: false,
            awaits_http: false,
            first_request: false,
            times: Times::default(),
            term: Term::default(),
            retries: 0,
            redispatched: false,
            up: Traffic::default(),
            down: Traffic::default(),
            asap: 0,
            meanwhile: None,
            status: 0,
            client_stream: StreamOf::default(),
            server_conn: ServerConn::default(),
            server_secured: None,
            decisions: Decisions::default(),
            overrides: Overrides::default(),
            unique_id: RefCell::new(None),
            req_captures: RefCell::default(),
            res_captures: RefCell::default(),
            req_cookie: None,
            res_cookie: None,
            txn_vars: RefCell::default(),
            req_vars: RefCell::default(),
            res_vars: RefCell::default(),
            responding: false,
            check_vars: RefCell::default(),
            last_rule: Cell::new(None),
            stick: RefCell::default(),
            caching: Default::default(),
            bandwidth: Vec::new(),
            mirror: Default::default(),
            kept: RefCell::default(),
            shared: RefCell::default(),
            queue_positions: (0, 0),
        }
    }
}

impl Txn {
    /// See [`Txn::serial`].
    pub const UNNUMBERED: u64 = u64::MAX;

    /// The request has come: notes whether its client takes us for its proxy, where the frontend asks for
    /// that (`option http-use-proxy-header`). Its target then names a host.
    pub fn note_proxy(&mut self, asked: bool) {
        self.for_proxy = asked && !matches!(self.req.target().first(), Some(b'/' | b'*'));
    }

    /// The method that the client wrote, whatever rules have made of it.
    pub fn first_method(&self) -> Method {
        match self.line.method() {
            [] => self.req.method_id(),
            method => Method::from_bytes(method),
        }
    }

    /// Whether it went wrong, in the sense of `option dontlog-normal`.
    pub fn is_error(&self) -> bool {
        let ended = !matches!(self.term.cause, crate::term::Cause::Normal | crate::term::Cause::Local);
        ended || self.retries > 0 || self.redispatched || self.status >= 500
    }

    /// Bytes of both directions, up and down, as rules and logs see them: HAProxy adds them up at the end,
    /// before that it knows what `option logasap` shows.
    pub fn shown(&self) -> (Traffic, Traffic) {
        match self.times.ended {
            Some(_) => (self.up, self.down),
            None => (Traffic::default(), Traffic { received: self.asap, ..Traffic::default() }),
        }
    }

    /// The response begins.
    pub fn respond(&mut self) {
        self.responding = true;
        self.req_vars.get_mut().clear();
    }

    /// Forgets everything, keeps the memory of heads, captures and variables. It happens in place, for it is
    /// on the way of each request; all fields are named, so that a new one is forgotten, too.
    pub fn reset(&mut self) {
        let Txn {
            serial,
            log_number,
            req,
            res,
            has_req,
            has_res,
            peeked,
            may_be_http,
            line,
            line_kept,
            for_proxy,
            backend,
            server,
            silent,
            origin,
            logged,
            by_service,
            replaced,
            null,
            counted,
            unread,
            refused,
            hinted,
            awaits_http,
            first_request,
            times,
            term,
            retries,
            redispatched,
            up,
            down,
            asap,
            meanwhile,
            status,
            client_stream,
            server_conn,
            server_secured,
            decisions,
            overrides,
            unique_id,
            req_captures,
            res_captures,
            req_cookie,
            res_cookie,
            txn_vars,
            req_vars,
            res_vars,
            responding,
            check_vars,
            last_rule,
            stick,
            caching,
            bandwidth,
            mirror,
            kept,
            shared,
            queue_positions,
        } = self;
        *serial = Txn::UNNUMBERED;
        req.clear_as(Kind::Request);
        res.clear_as(Kind::Response);
        line.clear();
        (*log_number.get_mut(), *counted.get_mut()) = (0, 0);
        (*origin.get_mut(), *unique_id.get_mut(), *kept.get_mut(), *last_rule.get_mut()) = Default::default();
        shared.get_mut().clear();
        [req_captures, res_captures].into_iter().for_each(|captures| captures.get_mut().clear());
        [txn_vars, req_vars, res_vars, check_vars].into_iter().for_each(|vars| vars.get_mut().clear());
        stick.get_mut().clear();
        caching.clear();
        bandwidth.clear();
        (*has_req, *has_res, *peeked, *may_be_http, *line_kept, *for_proxy, *backend, *server) =
            Default::default();
        (*silent, *logged, *by_service, *replaced, *null, *unread, *refused, *hinted) = Default::default();
        (*first_request, *times, *term, *retries, *redispatched, *up, *down, *asap) = Default::default();
        (*meanwhile, *status, *awaits_http, *client_stream, *server_conn, *server_secured, *responding) =
            Default::default();
        (*decisions, *overrides, *req_cookie, *res_cookie, *queue_positions, *mirror) = Default::default();
    }
}
