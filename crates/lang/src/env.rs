//! What the evaluation of an expression may look at.

use std::net::IpAddr;
use std::time::Duration;

use base::time::{Mono, Wall};
use bumpalo::Bump;
use model::proxy::{Listener, Proxy};
use model::vars::Scope;
use model::{Conn, Server, Txn, World};

/// A direction of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Client to server.
    Request,
    /// Server to client.
    Response,
}

/// Bytes that were received and not yet forwarded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Payload<'a> {
    /// What is there.
    pub data: &'a [u8],
    /// No more will come: the sender closed, the message is complete, or the buffer is full.
    pub complete: bool,
    /// Bytes more that a chunk is known to have.
    pub due: u64,
}

/// State of a TCP connection as the kernel reports it (`fc_rtt` and its family).
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its variance, microseconds.
    pub rttvar_us: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments selectively acknowledged.
    pub sacked: u32,
    /// Segments lost.
    pub lost: u32,
    /// Segments retransmitted.
    pub retrans: u32,
    /// Forward acknowledged segments.
    pub fackets: u32,
    /// Reordering metric.
    pub reordering: u32,
}

/// Timeouts and retries of a proxy. `None`: no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// `timeout client`.
    pub client: Option<Duration>,
    /// `timeout server`.
    pub server: Option<Duration>,
    /// `timeout connect`.
    pub connect: Option<Duration>,
    /// `timeout queue`, or what stands in for it.
    pub queue: Option<Duration>,
    /// `timeout tarpit`, or what stands in for it.
    pub tarpit: Option<Duration>,
    /// `timeout tunnel`.
    pub tunnel: Option<Duration>,
    /// `retries`.
    pub retries: u32,
    /// A backend is chosen.
    pub chosen: bool,
    /// The proxy has servers, or could have.
    pub serves: bool,
}

/// The outside world, as far as expressions may ask for it. The engine implements it; tests use a
/// plain struct.
pub trait Live {
    /// Monotonic time of this turn of the loop.
    fn now(&self) -> Mono;
    /// Date of this turn of the loop.
    fn date(&self) -> Wall;
    /// Seconds that the local time is ahead of UTC at `secs` since the epoch.
    fn local_offset(&self, _secs: i64) -> i32 {
        0
    }
    /// A random number.
    fn random(&self) -> u64;
    /// This worker's index, for sharded counters.
    fn worker(&self) -> usize;
    /// Live state of the process.
    fn world(&self) -> &World;
    /// The frontend (or, where there is none, the proxy at hand).
    fn frontend(&self) -> &Proxy;
    /// The backend, once chosen.
    fn backend(&self) -> Option<&Proxy>;
    /// What the lines `compression` of frontend and backend say.
    fn compression(&self) -> [Option<&crate::compression::Compression>; 2] {
        [None; 2]
    }
    /// The server, once chosen.
    fn server(&self) -> Option<&Server>;
    /// The listener.
    fn listener(&self) -> Option<&Listener>;
    /// Name of the frontend's default backend.
    fn default_backend(&self) -> Option<&str>;
    /// The client connection as those above know it, for who looks at it again when this view is gone.
    fn session(&self) -> Option<std::rc::Rc<dyn std::any::Any>> {
        None
    }
    /// Bytes received and not forwarded: the body in HTTP mode.
    fn payload(&self, side: Side) -> Payload<'_>;
    /// State of the client's or the server's TCP connection.
    fn tcp_info(&self, side: Side) -> Option<TcpInfo>;
    /// Local address of the server connection, where it is at hand.
    fn server_source(&self) -> Option<model::Peer> {
        None
    }
    /// What a response of this status counts as in stick tables (`http-err-codes`, `http-fail-codes`).
    fn counts_as(&self, _status: u16) -> model::txn::ResponseCounts {
        model::txn::ResponseCounts::default()
    }
    /// Whether the frontend logs before the end (`option logasap`, or a format that does not wait for it).
    fn logs_early(&self) -> bool {
        false
    }
    /// Appends a unique id as `unique-id-format` of the frontend says; false if it has none.
    fn write_unique_id(&self, _env: &Env<'_>, _out: &mut Vec<u8>) -> bool {
        false
    }
    /// Where the rule with this number stands: file and line.
    fn rule_place(&self, rule: u32) -> Option<(&str, u32)>;
    /// Limits of the frontend ([`Side::Request`]) or of the backend, once chosen.
    fn limits(&self, _side: Side) -> Option<Limits> {
        None
    }
    /// The client's SYN packet, if its listener kept it; else nothing.
    fn saved_syn(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Whether an address belongs to this machine. Asks the system.
    fn is_local(&self, _ip: IpAddr) -> bool {
        false
    }
    /// How many more connections and queued requests the servers of a backend take; -1 when one has no limit.
    fn free_slots(&self, _backend: &Proxy) -> i64 {
        0
    }
    /// Whether encrypted tokens may use this key management and this content encryption
    /// (`jwt.decrypt_*_list`).
    fn decrypts(&self, _alg: &[u8], _enc: &[u8]) -> bool {
        true
    }
    /// `tune.bufsize`.
    fn buffer_size(&self) -> usize {
        16384
    }
    /// Age of the process.
    fn uptime(&self) -> Duration {
        Duration::ZERO
    }
    /// How long the call at hand of the stream's task has run, ns; 0 when calls are not measured.
    fn call_ns(&self) -> u64 {
        0
    }
    /// Share of time that the worker was busy of late, in percent.
    fn cpu_usage(&self) -> u32 {
        0
    }
    /// Names of the variables of a scope, by slot, without the scope.
    fn variables(&self, _scope: Scope) -> &[Box<str>] {
        &[]
    }
    /// How much a declared capture keeps; `None` when there is no such slot.
    fn capture_length(&self, _side: Side, _slot: usize) -> Option<usize> {
        None
    }
    /// Whether the configuration has a frontend of this name.
    fn has_frontend(&self, _name: &str) -> bool {
        false
    }
    /// Shows a line on `stdout`, `stderr` or in a ring (converter `debug`). Never waits.
    fn trace(&self, _sink: &str, _line: &[u8]) {}
    /// Host name of the machine or node (`node`), and process id.
    fn node(&self) -> (&str, u32);
    /// Writes a log line now (`do-log`), through a log profile of the configuration if one is named by its
    /// number.
    fn log(&self, _env: &Env<'_>, _origin: model::Origin, _profile: Option<u32>) {}
}

/// Everything an expression sees.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The client connection.
    pub conn: &'a Conn,
    /// The transaction.
    pub txn: &'a Txn,
    /// The outside.
    pub live: &'a dyn Live,
    /// Memory for what is computed; emptied after each rule set.
    pub arena: &'a Bump,
    /// Which direction is being processed: what `hdr()` and `body` mean.
    pub side: Side,
    /// Waiting is over: no more data will come, or the inspection delay has passed (`wait_end`).
    pub last: bool,
}

impl<'a> Env<'a> {
    /// Whether one side has come as an HTTP message, not as bytes that begin with one.
    pub fn is_http(&self, side: Side) -> bool {
        match side {
            Side::Request => self.txn.has_req,
            Side::Response => self.txn.has_res,
        }
    }

    /// The head of one side, if it is there.
    pub fn head(&self, side: Side) -> Option<&'a wire::head::Head> {
        match side {
            Side::Request => (self.txn.has_req || self.txn.peeked).then_some(&self.txn.req),
            Side::Response => self.txn.has_res.then_some(&self.txn.res),
        }
    }

    /// The local address of the server connection: as it is, or as it was.
    pub fn server_source(&self) -> model::Peer {
        self.live.server_source().unwrap_or(self.txn.server_conn.src)
    }

    /// Hands the unique id of the transaction to `work`. It is made when somebody asks first, so rules that
    /// ran before may have set what its format tells. `None` where there is no format; what comes of one may
    /// be empty.
    pub fn with_unique_id<R>(&self, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.txn.unique_id.borrow().is_none() {
            let mut id = Vec::new();
            if !self.live.write_unique_id(self, &mut id) {
                return None;
            }
            *self.txn.unique_id.borrow_mut() = Some(id.into());
        }
        let id = self.txn.unique_id.borrow();
        id.as_deref().map(work)
    }

    /// The client's address as rules see it.
    pub fn src(&self) -> model::Peer {
        self.txn.decisions.src.unwrap_or_else(|| self.conn.src.get())
    }

    /// The destination as rules see it.
    pub fn dst(&self) -> model::Peer {
        self.txn.decisions.dst.unwrap_or_else(|| self.conn.dst.get())
    }
}
