//! The live state of a proxy, in two halves: what it does as a frontend and as a backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use base::rate::PeakRate;
use parking_lot::{Mutex, RwLock};

use crate::counter::{Counter, Sharded};
use crate::server::{Averages, Server};
use crate::term::Cause;
use crate::txn::Traffic;

/// Figures of HTTP/2 (`h2_*`).
#[derive(Debug, Default)]
pub struct H2Counters {
    /// Frames received, by kind.
    pub headers: Counter,
    pub data: Counter,
    pub settings: Counter,
    pub resets: Counter,
    pub goaways: Counter,
    /// Errors of the peer that ended the connection, or a stream.
    pub connection_errors: Counter,
    pub stream_errors: Counter,
    /// Sent in answer to such.
    pub resets_sent: Counter,
    pub goaways_sent: Counter,
    /// Connections and streams that are open. They come to life and end on one worker.
    pub open_connections: Counter,
    pub open_streams: Counter,
    /// Connections and streams so far.
    pub connections: Counter,
    pub streams: Counter,
    /// Connections before these figures were cleared, which still count as sessions.
    pub earlier: Counter,
}

impl H2Counters {
    /// Back to zero, but for what is open; the sessions go only with `all`.
    pub fn clear(&self, all: bool) {
        self.earlier.set(if all { 0 } else { self.earlier.get() + self.connections.get() });
        let frames = [&self.headers, &self.data, &self.settings, &self.resets, &self.goaways];
        let errors = [&self.connection_errors, &self.stream_errors, &self.resets_sent, &self.goaways_sent];
        for c in frames.into_iter().chain(errors).chain([&self.connections, &self.streams]) {
            c.set(0);
        }
    }
}

/// Figures of HTTP/1 (`h1_*`).
#[derive(Debug, Default)]
pub struct H1Counters {
    /// Connections of clients that are open, and their requests from the first byte on.
    pub open_connections: Counter,
    pub open_streams: Counter,
    /// Connections so far, of servers each attempt.
    pub connections: Counter,
    /// Requests that began, of servers each attempt.
    pub streams: Counter,
    /// Connections before these figures were cleared, which still count as sessions.
    pub earlier: Counter,
}

impl H1Counters {
    /// Back to zero, but for what is open; the sessions go only with `all`.
    pub fn clear(&self, all: bool) {
        self.earlier.set(if all { 0 } else { self.earlier.get() + self.connections.get() });
        self.connections.set(0);
        self.streams.set(0);
    }
}

/// Figures of TLS (`ssl_*`).
#[derive(Debug, Default)]
pub struct TlsCounters {
    /// Full handshakes (`ssl_sess`).
    pub sessions: Counter,
    /// Resumed sessions (`ssl_reused_sess`).
    pub reused: Counter,
    /// Handshakes that failed (`ssl_failed_handshake`).
    pub failed: Counter,
    /// OCSP responses sent (`ssl_ocsp_staple`).
    pub staples: Counter,
    /// OCSP responses that could not be sent (`ssl_failed_ocsp_staple`).
    pub failed_staples: Counter,
}

impl TlsCounters {
    /// Counts a handshake that succeeded.
    pub fn done(&self, resumed: bool) {
        if resumed { self.reused.inc() } else { self.sessions.inc() }
    }

    /// Back to zero.
    pub fn clear(&self) {
        for c in [&self.sessions, &self.reused, &self.failed, &self.staples, &self.failed_staples] {
            c.set(0);
        }
    }
}

/// Bytes of requests and responses, heads counted as HAProxy counts them.
#[derive(Debug, Default)]
pub struct ByteCounters {
    /// Of requests, received (`bin`, `reqbin`).
    pub request_in: Counter,
    /// Of requests, passed on (`reqbout`).
    pub request_out: Counter,
    /// Of responses, received (`bout`, `resbin`).
    pub response_in: Counter,
    /// Of responses, passed on (`resbout`).
    pub response_out: Counter,
}

impl ByteCounters {
    /// Adds what a transaction moved.
    pub fn add(&self, up: &Traffic, down: &Traffic) {
        self.request_in.add(up.received);
        self.request_out.add(up.sent);
        self.response_in.add(down.received);
        self.response_out.add(down.sent);
    }

    /// Back to zero.
    pub fn clear(&self) {
        for counter in [&self.request_in, &self.request_out, &self.response_in, &self.response_out] {
            counter.set(0);
        }
    }
}

/// Figures of a frontend, one copy a worker.
#[derive(Debug, Default)]
pub struct FrontCounters {
    /// Connections accepted (`conn_tot`).
    pub connections: Counter,
    /// Sessions (`stot`).
    pub sessions: Counter,
    /// Those of TCP that turned to HTTP/1.
    pub upgraded: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Bytes received from clients and sent to them on the wire (`h1_bytes_in`, `h1_bytes_out`).
    pub wire_in: Counter,
    pub wire_out: Counter,
    /// Bytes received from clients, and sent to them, through pipes (`h1_spliced_bytes_in`, `h1_spliced_bytes_out`).
    pub spliced_in: Counter,
    pub spliced_out: Counter,
    /// Requests denied (`dreq`).
    pub denied_req: Counter,
    /// Responses denied (`dresp`).
    pub denied_resp: Counter,
    /// Request errors (`ereq`).
    pub req_errors: Counter,
    /// Connections denied by `tcp-request connection` (`dcon`).
    pub denied_conn: Counter,
    /// Sessions denied by `tcp-request session` (`dses`).
    pub denied_sess: Counter,
    /// HTTP requests (`req_tot`).
    pub requests: Counter,
    /// Requests intercepted: statistics, redirects, monitor (`intercepted`).
    pub intercepted: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// Responses by class: 1xx to 5xx, then others.
    pub responses: [Counter; 6],
    /// How its streams ended.
    pub ends: Ends,
    /// Of the requests those of HTTP/2 (`h2req`).
    pub h2_requests: Counter,
    /// Of the requests those that say they are of HTTP/3 (`h3req`).
    pub h3_requests: Counter,
    /// Of the requests those of none of these versions (`req_other`).
    pub other_requests: Counter,
    /// Figures of HTTP/1.
    pub h1: H1Counters,
    /// Figures of HTTP/2.
    pub h2: H2Counters,
    /// Figures of TLS.
    pub tls: TlsCounters,
}

/// How streams ended. Each that was counted as a request (`req_tot`) is in exactly one of the first four, so that at rest they add up
/// to it.
#[derive(Debug, Default)]
pub struct Ends {
    /// By a server's answer, or by one that the configuration gave.
    pub answered: Counter,
    /// The client broke off, or was too slow.
    pub by_client: Counter,
    /// The server did.
    pub by_server: Counter,
    /// The proxy refused or gave up.
    pub refused: Counter,
    /// Those of the four that left no log line.
    pub unlogged: Counter,
    /// Log lines of streams that were no request.
    pub strangers: Counter,
}

impl Ends {
    /// Back to zero.
    pub fn clear(&self) {
        let Ends { answered, by_client, by_server, refused, unlogged, strangers } = self;
        [answered, by_client, by_server, refused, unlogged, strangers].iter().for_each(|c| c.set(0));
    }

    /// A request has ended.
    pub fn count(&self, cause: Cause, logged: bool) {
        let end = match cause {
            Cause::Normal | Cause::Local => &self.answered,
            Cause::ClientAbort | Cause::ClientTimeout => &self.by_client,
            Cause::ServerAbort | Cause::ServerTimeout => &self.by_server,
            _ => &self.refused,
        };
        end.inc();
        if !logged {
            self.unlogged.inc();
        }
    }
}

/// Figures of a backend, one copy a worker.
#[derive(Debug, Default)]
pub struct BackCounters {
    /// Sessions (`stot`).
    pub sessions: Counter,
    /// Times a server was chosen (`lbtot`).
    pub chosen: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Bytes received from servers and sent to them on the wire (`h1_bytes_in`, `h1_bytes_out`).
    pub wire_in: Counter,
    pub wire_out: Counter,
    /// Bytes received from servers, and sent to them, through pipes (`h1_spliced_bytes_in`, `h1_spliced_bytes_out`).
    pub spliced_in: Counter,
    pub spliced_out: Counter,
    /// Requests denied (`dreq`).
    pub denied_req: Counter,
    /// Responses denied (`dresp`).
    pub denied_resp: Counter,
    /// Failed connects (`econ`).
    pub conn_errors: Counter,
    /// Response errors (`eresp`).
    pub resp_errors: Counter,
    /// Retried connects (`wretr`).
    pub retries: Counter,
    /// Redispatches (`wredis`).
    pub redispatches: Counter,
    /// Transfers aborted by the client (`cli_abrt`).
    pub client_aborts: Counter,
    /// Transfers aborted by the server (`srv_abrt`).
    pub server_aborts: Counter,
    /// Connections established (`connect`).
    pub connects: Counter,
    /// Requests on a reused connection (`reuse`).
    pub reuses: Counter,
    /// HTTP requests (`req_tot`).
    pub requests: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// Responses by class: 1xx to 5xx, then others.
    pub responses: [Counter; 6],
    /// Greatest times seen, ms: queue, connect, response, total.
    pub max_times: [Counter; 4],
    /// Figures of HTTP/1.
    pub h1: H1Counters,
    /// Figures of HTTP/2.
    pub h2: H2Counters,
    /// Figures of TLS.
    pub tls: TlsCounters,
}

/// Figures of one listener, one copy a worker (shown with `option socket-stats`).
#[derive(Debug, Default)]
pub struct ListenerCounters {
    /// Connections accepted (`conn_tot`).
    pub connections: Counter,
    /// Sessions.
    pub sessions: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Request errors.
    pub req_errors: Counter,
    /// Requests denied.
    pub denied_req: Counter,
    /// Responses denied.
    pub denied_resp: Counter,
    /// Connections denied.
    pub denied_conn: Counter,
    /// Sessions denied.
    pub denied_sess: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// Figures of TLS.
    pub tls: TlsCounters,
}

/// A listener's live state.
#[derive(Debug)]
pub struct Listener {
    /// Name (`name` on the `bind` line), or empty.
    pub name: Box<str>,
    /// Id (`id`, or given by position).
    pub id: u32,
    /// Unique name: `guid-prefix` of the `bind` line and the position on it.
    pub guid: Option<Box<str>>,
    /// Connections now.
    pub current: AtomicU32,
    /// Greatest number of connections so far.
    pub current_max: AtomicU32,
    /// Figures.
    pub counters: Sharded<ListenerCounters>,
}

/// State of a frontend (`OPEN`, `FULL`, `STOP`, `PAUSED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrontState {
    /// Accepting.
    Open,
    /// Not accepting until it is enabled again.
    Paused,
    /// Ended for good: its sockets are closed.
    Stopped,
}

/// The frontend half.
#[derive(Debug)]
pub struct Front {
    state: AtomicU32,
    /// Shares of workers in its listeners that have given up their port for now.
    pub away: AtomicU32,
    /// Shares of workers in its listeners that hold their port, or did a moment ago.
    pub holding: AtomicU32,
    /// Connections now (`scur`).
    pub current: AtomicU32,
    /// Greatest number so far (`smax`).
    pub current_max: AtomicU32,
    /// Limit (`slim`).
    pub maxconn: AtomicU32,
    /// Sessions that were admitted and are not counted in `session_rate` yet.
    pub pending: AtomicU32,
    /// Sessions in the last second, and the most there ever were.
    pub session_rate: PeakRate,
    /// Connections in the last second, and the most there ever were.
    pub conn_rate: PeakRate,
    /// Requests in the last second, and the most there ever were.
    pub request_rate: PeakRate,
    /// Lines logged so far (`%lc`).
    pub log_count: AtomicU64,
    /// Figures.
    pub counters: Sharded<FrontCounters>,
    /// The listeners in the order of their `bind` lines.
    pub listeners: RwLock<Vec<Arc<Listener>>>,
}

/// The backend half.
#[derive(Debug)]
pub struct Back {
    /// Requests being served (`scur`).
    pub current: AtomicU32,
    /// Greatest number so far (`smax`).
    pub current_max: AtomicU32,
    /// Requests waiting for any server (`qcur` without those of servers).
    pub queued: AtomicU32,
    /// Greatest number waiting (`qmax`).
    pub queued_max: AtomicU32,
    /// Sessions in the last second.
    pub session_rate: PeakRate,
    /// Seconds since the epoch of the last session, 0: never.
    pub last_session: AtomicU64,
    /// When it went up or down last, ms of the monotonic clock.
    pub last_change: AtomicU64,
    /// Time spent without a server, ms, until `last_change`.
    pub down_ms: AtomicU64,
    /// Transitions to down.
    pub went_down: AtomicU64,
    /// Whether a server was usable when last looked at.
    pub up: AtomicBool,
    /// `cookie ... dynamic`, `enable dynamic-cookie backend`.
    pub dynamic_cookies: AtomicBool,
    /// `dynamic-cookie-key`: the secret that goes into them; empty: none is computed.
    pub cookie_key: Mutex<Box<[u8]>>,
    /// `option allbackups`: with no other server usable all backups serve, not the first alone.
    pub all_backups: AtomicBool,
    /// `unpublish backend`: content switching passes it by.
    pub unpublished: AtomicBool,
    /// `del backend`: nothing finds it any more.
    pub removed: AtomicBool,
    /// Rules name it, so it can't be deleted.
    pub referenced: AtomicBool,
    /// Sliding averages of times.
    pub times: Averages,
    /// Figures.
    pub counters: Sharded<BackCounters>,
    /// The servers in the order of the configuration; grows and shrinks at run time.
    pub servers: RwLock<Vec<Arc<Server>>>,
}

/// A proxy's live state.
#[derive(Debug)]
pub struct Proxy {
    /// Name.
    pub name: Box<str>,
    /// Numeric id (`id`, or given by position).
    pub id: u32,
    /// Globally unique name, if one was given.
    pub guid: Option<Box<str>>,
    /// Not disabled at run time or by configuration.
    pub enabled: AtomicBool,
    /// What it does towards clients.
    pub front: Front,
    /// What it does towards servers.
    pub back: Back,
}

impl Front {
    fn new(workers: usize) -> Front {
        Front {
            state: AtomicU32::new(0),
            away: AtomicU32::new(0),
            holding: AtomicU32::new(0),
            current: AtomicU32::new(0),
            current_max: AtomicU32::new(0),
            maxconn: AtomicU32::new(0),
            pending: AtomicU32::new(0),
            session_rate: PeakRate::new(),
            conn_rate: PeakRate::new(),
            request_rate: PeakRate::new(),
            log_count: AtomicU64::new(0),
            counters: Sharded::new(workers),
            listeners: RwLock::default(),
        }
    }

    /// Whether it accepts.
    pub fn state(&self) -> FrontState {
        match self.state.load(Relaxed) {
            0 => FrontState::Open,
            1 => FrontState::Paused,
            _ => FrontState::Stopped,
        }
    }

    /// Its port could not be had again: pauses it, if it is open still; whether it was.
    pub fn pause_again(&self) -> bool {
        let (open, paused) = (FrontState::Open as u32, FrontState::Paused as u32);
        self.state.compare_exchange(open, paused, Relaxed, Relaxed).is_ok()
    }

    /// Changes the state.
    pub fn set_state(&self, s: FrontState) {
        self.state.store(s as u32, Relaxed);
    }
}

impl Back {
    fn new(workers: usize) -> Back {
        Back {
            current: AtomicU32::new(0),
            current_max: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            queued_max: AtomicU32::new(0),
            session_rate: PeakRate::new(),
            last_session: AtomicU64::new(0),
            last_change: AtomicU64::new(0),
            down_ms: AtomicU64::new(0),
            went_down: AtomicU64::new(0),
            up: AtomicBool::new(true),
            dynamic_cookies: AtomicBool::new(false),
            all_backups: AtomicBool::new(false),
            cookie_key: Mutex::default(),
            unpublished: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            referenced: AtomicBool::new(false),
            times: Averages::default(),
            counters: Sharded::new(workers),
            servers: RwLock::default(),
        }
    }
}

impl Proxy {
    /// A new proxy without listeners or servers.
    pub fn new(name: &str, id: u32, guid: Option<&str>, workers: usize) -> Proxy {
        Proxy {
            name: name.into(),
            id,
            guid: guid.map(Into::into),
            enabled: AtomicBool::new(true),
            front: Front::new(workers),
            back: Back::new(workers),
        }
    }
}

/// Counts one more in `current`, keeps the maximum, returns the new number.
#[inline]
pub fn enter(current: &AtomicU32, max: &AtomicU32) -> u32 {
    let n = current.fetch_add(1, Relaxed) + 1;
    if n > max.load(Relaxed) {
        max.fetch_max(n, Relaxed);
    }
    n
}

/// Counts one less.
#[inline]
pub fn leave(current: &AtomicU32) {
    current.fetch_sub(1, Relaxed);
}

/// The index of a status code in `responses`: 1xx to 5xx are 0 to 4, all others 5.
#[inline]
pub fn status_class(status: u16) -> usize {
    match status / 100 {
        c @ 1..=5 => usize::from(c) - 1,
        _ => 5,
    }
}
