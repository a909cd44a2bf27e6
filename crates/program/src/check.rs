//! Health checks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lang::{Expr, LogFormat};

/// How and when one server is checked.
#[derive(Clone, Debug)]
pub struct Check {
    /// `inter`.
    pub inter: Duration,
    /// `fastinter`: while the state is changing.
    pub fastinter: Option<Duration>,
    /// `downinter`: while it is down.
    pub downinter: Option<Duration>,
    /// `rise`.
    pub rise: u32,
    /// `fall`.
    pub fall: u32,
    /// `addr`: checked instead of the server's address.
    pub addr: Option<SocketAddr>,
    /// `port`.
    pub port: Option<u16>,
    /// How TLS is spoken, where it is.
    pub connector: Option<std::sync::Arc<tls::Connector>>,
    /// `check-ssl`, or what the server does: checks speak TLS unasked.
    pub tls: bool,
    /// `check-sni`.
    pub sni: Option<Box<str>>,
    /// `check-sni-auto`: without it, the host that an HTTP check asks for.
    pub sni_auto: bool,
    /// `check-alpn`.
    pub alpn: Option<Vec<Vec<u8>>>,
    /// `check-proto`, or the traffic's `proto`.
    pub proto: crate::proto::Proto,
    /// `check-send-proxy`.
    pub send_proxy: bool,
    /// `check-via-socks4`: connections go through the server's SOCKS4 proxy.
    pub via_socks4: bool,
    /// `check-reuse-pool`, where nothing else is said about how checks connect: idle connections serve, too.
    pub reuse_pool: bool,
    /// `check-pool-conn-name`, or else `check-sni`: the name that an idle connection must have.
    pub pool_name: Option<Box<str>>,
    /// What is done.
    pub ruleset: Arc<Ruleset>,
}

/// `agent-check`.
#[derive(Clone, Debug)]
pub struct Agent {
    /// `agent-inter`.
    pub inter: Duration,
    /// `agent-addr`.
    pub addr: Option<SocketAddr>,
    /// `agent-port`.
    pub port: u16,
    /// `agent-send`.
    pub send: Box<[u8]>,
}

/// The steps of a check; a bare TCP connect has none.
#[derive(Debug, Default)]
pub struct Ruleset {
    /// In order.
    pub steps: Vec<Step>,
    /// The number that messages give the first of them is one less: what was added unasked is not counted.
    pub uncounted: bool,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `http-check send-state`.
    pub send_state: bool,
    /// It is an HTTP check: outcomes are named after layer 7 and carry a status.
    pub http: bool,
    /// It is one of the ready-made conversations: messages name no steps.
    pub canned: bool,
    /// `option tcp-check`: messages name steps.
    pub tcp: bool,
    /// `option external-check`: a program decides.
    pub external: Option<External>,
}

/// `external-check command` and `external-check path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The program, an absolute path or a name looked for in `path`.
    pub command: Box<str>,
    /// `PATH` of the program; nothing: the documented default.
    pub path: Option<Box<str>>,
    /// `external-check preserve-env`: it sees the environment of the process, too.
    pub preserve_env: bool,
}

/// Where the port of a `connect` comes from.
pub enum PortFrom {
    /// A number.
    Fixed(u16),
    /// An expression.
    Expr(Expr),
}

/// What a ready-made check understands of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// An LDAPv3 bind response.
    Ldap,
    /// The greeting of a MySQL server.
    MysqlGreeting,
    /// Its answer to a log-in, behind the greeting.
    MysqlAnswer,
    /// An AGENT-HELLO of SPOP.
    Spop,
}

/// One step.
pub enum Step {
    /// `connect`.
    Connect {
        /// `port`; `None`: the check's.
        port: Option<PortFrom>,
        /// `addr`.
        addr: Option<SocketAddr>,
        /// `send-proxy`.
        send_proxy: bool,
        /// `default`: what the server line says about connecting holds, too.
        default: bool,
        /// `ssl`.
        ssl: bool,
        /// `sni`.
        sni: Option<Box<str>>,
        /// `alpn`.
        alpn: Option<Vec<Vec<u8>>>,
        /// `proto`: whether it is HTTP/2.
        proto: Option<crate::proto::Proto>,
        /// `via-socks4`.
        via_socks4: bool,
        /// `linger`: close normally instead of with a reset.
        linger: bool,
        /// `comment`.
        comment: Option<Box<str>>,
    },
    /// `http-check send`.
    SendHttp {
        /// Method.
        method: Box<[u8]>,
        /// URI.
        uri: Arc<LogFormat>,
        /// Version.
        version: Box<[u8]>,
        /// Fields.
        headers: Vec<(Box<[u8]>, LogFormat)>,
        /// Body.
        body: Option<Arc<LogFormat>>,
        /// `comment`.
        comment: Option<Box<str>>,
    },
    /// `tcp-check send`, `send-binary`, and their log-format forms.
    Send {
        /// What.
        data: Arc<LogFormat>,
        /// The format gives hexadecimal digits.
        hex: bool,
        /// `comment`.
        comment: Option<Box<str>>,
    },
    /// `expect`.
    Expect(Expect),
    /// `set-var`.
    SetVar(model::vars::VarRef, Expr),
    /// `set-var-fmt`.
    SetVarFormat(model::vars::VarRef, Arc<LogFormat>),
    /// `unset-var`.
    UnsetVar(model::vars::VarRef),
    /// `comment`: about the next step.
    Comment(Box<str>),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Step::Connect { .. } => "Connect",
            Step::SendHttp { .. } => "SendHttp",
            Step::Send { .. } => "Send",
            Step::Expect(_) => "Expect",
            Step::SetVar(..) => "SetVar",
            Step::SetVarFormat(..) => "SetVarFormat",
            Step::UnsetVar(_) => "UnsetVar",
            Step::Comment(_) => "Comment",
        })
    }
}

/// `expect`: what must come back.
pub struct Expect {
    /// `!`.
    pub negated: bool,
    /// `min-recv`.
    pub min_recv: Option<u32>,
    /// What is looked for.
    pub what: Pattern,
    /// `ok-status`.
    pub ok_status: Option<model::check::CheckStatus>,
    /// `error-status`.
    pub error_status: Option<model::check::CheckStatus>,
    /// `tout-status`.
    pub timeout_status: Option<model::check::CheckStatus>,
    /// `on-success`.
    pub on_success: Option<Arc<LogFormat>>,
    /// `on-error`.
    pub on_error: Option<Arc<LogFormat>>,
    /// `status-code`.
    pub status_code: Option<Expr>,
    /// `comment`.
    pub comment: Option<Box<str>>,
}

impl Expect {
    /// That this comes back, with nothing else said.
    pub fn of(what: Pattern) -> Expect {
        Expect {
            negated: false,
            min_recv: None,
            what,
            ok_status: None,
            error_status: None,
            timeout_status: None,
            on_success: None,
            on_error: None,
            status_code: None,
            comment: None,
        }
    }
}

/// What is looked for in an answer.
pub enum Pattern {
    /// `status`: ranges of codes.
    Status(Vec<(u16, u16)>),
    /// `rstatus`.
    StatusRegex(pattern::Regex),
    /// `string`: in the body of HTTP, anywhere in TCP.
    Text(Box<[u8]>),
    /// `rstring`.
    Regex(pattern::Regex),
    /// `string-lf`.
    Format(Arc<LogFormat>),
    /// `binary`.
    Binary(Box<[u8]>),
    /// `rbinary`: on hexadecimal digits.
    BinaryRegex(pattern::Regex),
    /// `binary-lf`.
    BinaryFormat(Arc<LogFormat>),
    /// `custom`: anything at all.
    Anything,
    /// An answer of a protocol, whole.
    Protocol(Protocol),
    /// `hdr name ... value ...`.
    Header {
        /// Name.
        name: HeaderPattern,
        /// Value; `None`: presence is enough.
        value: Option<HeaderPattern>,
        /// `full`: the whole value, not each part between commas.
        full: bool,
    },
}

/// How a header's name or value is compared.
pub enum HeaderPattern {
    /// `-m str`.
    Str(Arc<LogFormat>),
    /// `-m beg`.
    Beg(Arc<LogFormat>),
    /// `-m end`.
    End(Arc<LogFormat>),
    /// `-m sub`.
    Sub(Arc<LogFormat>),
    /// `-m reg`.
    Reg(pattern::Regex),
}
