//! Where log lines go, and what they look like.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lang::LogFormat;
use lang::logfmt::Waits;
use model::Origin;
use model::origin::COUNT;

/// Levels of syslog.
pub mod level {
    /// Syslog level of a backend without servers.
    pub const EMERGENCY: u8 = 0;
    /// Syslog level of a failure that needs action at once.
    pub const ALERT: u8 = 1;
    /// Syslog level of an error.
    pub const ERROR: u8 = 3;
    /// Syslog level of something odd.
    pub const WARNING: u8 = 4;
    /// Syslog level of something that operators want to know.
    pub const NOTICE: u8 = 5;
    /// Syslog level of traffic.
    pub const INFO: u8 = 6;
}

/// Syslog framing of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `rfc3164` (the default of network targets).
    #[default]
    Rfc3164,
    /// `rfc5424`.
    Rfc5424,
    /// `local`: rfc3164 without the host name.
    Local,
    /// `short`: priority and message (the default of descriptors).
    Short,
    /// `priority`.
    Priority,
    /// `timed`.
    Timed,
    /// `iso`.
    Iso,
    /// `raw`: nothing but the message.
    Raw,
}

/// Where a target's datagrams go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sink {
    /// UDP.
    Udp(SocketAddr),
    /// A Unix datagram socket.
    Unix(Box<[u8]>),
    /// An abstract Unix datagram socket.
    Abstract(Box<[u8]>),
    /// An open descriptor: 1 and 2 for `stdout` and `stderr`.
    Fd(i32),
    /// A ring, by index of the program.
    Ring(usize),
    /// A backend of logs, whose `balance` chooses the server: index of a proxy.
    Backend(u32),
    /// A server of such a backend that datagrams are sent to: index of the proxy, and of the server in it.
    Server(u32, u32),
}

/// One `log` line.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where: an index of the program's sinks.
    pub sink: usize,
    /// `format`.
    pub format: Format,
    /// `format` stands on the line: messages of others are not sent on as they came.
    pub format_said: bool,
    /// `len`: longest line.
    pub len: usize,
    /// Facility, 0 to 23.
    pub facility: u8,
    /// Greatest level logged (0 emerg to 7 debug).
    pub max_level: u8,
    /// Levels below this are raised to it.
    pub min_level: u8,
    /// `sample ranges:size`: which of so many lines go here; empty: all.
    pub sample: Option<Arc<Sampling>>,
    /// `profile`, by index of the program.
    pub profile: Option<u32>,
}

/// `sample`: a share of the lines.
#[derive(Debug, Default)]
pub struct Sampling {
    /// Inclusive ranges of positions, from 1.
    pub ranges: Vec<(u32, u32)>,
    /// Number of positions.
    pub size: u32,
    /// Lines so far.
    pub seen: std::sync::atomic::AtomicU32,
}

impl Sampling {
    /// The same share of another section's lines: each counts its own, also of what it inherits.
    pub fn anew(&self) -> Sampling {
        Sampling { ranges: self.ranges.clone(), size: self.size, ..Sampling::default() }
    }
}

/// A named ring (`ring` section).
#[derive(Clone)]
pub struct Ring {
    /// Name.
    pub name: Box<str>,
    /// `description`.
    pub description: Box<str>,
    /// `format`.
    pub format: Format,
    /// `maxlen`.
    pub maxlen: usize,
    /// `size`.
    pub size: usize,
    /// `server`: where its lines are sent on to.
    pub servers: Vec<RingServer>,
    /// `backing-file`.
    pub file: Option<std::path::PathBuf>,
    /// `timeout connect`.
    pub connect_timeout: Option<Duration>,
    /// `timeout server`.
    pub server_timeout: Option<Duration>,
}

/// A syslog server over a stream that gets the lines of a ring.
#[derive(Clone)]
pub struct RingServer {
    /// Name.
    pub name: Box<str>,
    /// Where it is.
    pub target: model::server::Target,
    /// `log-proto octet-count`: the length stands before each line; otherwise a line feed behind it (RFC
    /// 6587).
    pub octet_count: bool,
    /// TLS.
    pub tls: Option<crate::server::ServerTls>,
    /// What else its line says.
    pub plain: crate::server::Plain,
    /// `source`.
    pub source: Option<crate::address::Source>,
    /// In a backend of logs the server itself: its address may change, and its connections are counted.
    pub state: Option<Arc<model::Server>>,
}

/// `log-profile`: how the lines of a target are made, by the moment.
pub struct Profile {
    /// Name.
    pub name: Box<str>,
    /// `log-tag`.
    pub tag: Option<Box<str>>,
    /// `on <step>`, by [`Origin::index`].
    pub steps: [Option<Step>; COUNT],
    /// `on any`: all moments that have no step of their own.
    pub any: Option<Step>,
}

impl Profile {
    /// What is said of a moment.
    pub fn step(&self, origin: Origin) -> Option<&Step> {
        self.steps[origin.index()].as_ref().or(self.any.as_ref())
    }
}

/// What a profile says of one moment.
#[derive(Default)]
pub struct Step {
    /// `drop`: no line.
    pub drop: bool,
    /// `format`, in place of the proxy's.
    pub format: Option<LogFormat>,
    /// `sd`, in place of the proxy's.
    pub structured: Option<LogFormat>,
}

/// Which default format a proxy logs with, for its warnings and its statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// No `option *log` and no `log-format`: the short line of `mode tcp` connections.
    #[default]
    Default,
    /// `option tcplog`.
    Tcp,
    /// `option tcplog clf`.
    TcpClf,
    /// `option httplog`.
    Http,
    /// `option httplog clf`.
    Clf,
    /// `option httpslog`.
    Https,
    /// `log-format`.
    Custom,
}

/// All about the logs of one proxy.
#[derive(Clone, Default)]
pub struct Logging {
    /// Targets, those of `global` already put in place of `log global`.
    pub targets: Arc<[Target]>,
    /// Line of a normal end.
    pub format: Option<Arc<LogFormat>>,
    /// `log-format-sd`: structured data of rfc5424.
    pub structured: Option<Arc<LogFormat>>,
    /// `error-log-format`: line of a connection that failed early.
    pub error_format: Option<Arc<LogFormat>>,
    /// Which default it came from.
    pub style: Style,
    /// `log-steps`: moments at which lines are made, as [`Origin::bit`]s; `None`: once, when all is known.
    pub steps: Option<u16>,
    /// The frontend said so itself, no section that it inherits from.
    pub own_steps: bool,
    /// What lines wait for where no step is named. The formats of headers and all others of the proxy count
    /// like those of lines.
    pub waits: Waits,
    /// Rules or formats of the proxy look at messages of HTTP, whatever its mode.
    pub looks_at_http: bool,
    /// `log-tag`, if not the global one.
    pub tag: Option<Box<str>>,
}

impl Logging {
    /// Whether request lines are kept for `capture.req.method` and `capture.req.uri`: where a format might
    /// show them, and lines are made when they come. Steps of another section than the frontend's own do not
    /// count here, as in HAProxy, nor do any with `option logasap`.
    pub fn keeps_request_line(&self, asap: bool) -> bool {
        let steps = self.steps.filter(|_| self.own_steps && !asap);
        self.waits.line && steps.is_none_or(|steps| steps & Origin::Request.bit() != 0)
    }
}
