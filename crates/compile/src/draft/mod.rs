//! Proxies while their lines are read.
//!
//! A section starts as a copy of the `defaults` section it inherits from (or of the documented defaults) and
//! each of its lines changes it. What can only be understood once all sections are known (rules, expressions,
//! names) is kept as the position of its line and parsed by `assemble`.

use std::sync::Arc;

use balance::HashType;
use program::options::{AddressHeader, Connection, KeepAlive, Options};
use program::persist::Cookie;
use program::proxy::{Affinity, Capture, CaptureCookie, Mode, RetryOn, Reuse};
use program::timeouts::Timeouts;
use syntax::Span;

mod bind;
mod log;
mod parts;
mod place;
mod server;
mod tls;

pub(crate) use bind::{BindDraft, Shards, ThreadRange};
pub(crate) use log::{Above, LogDraft, LogLine, SinkDraft, TargetDraft};
pub(crate) use parts::{AlertDraft, PageDraft, TableDraft};
pub(crate) use place::{Deferred, LineRef, Named};
pub(crate) use server::{InitAddr, InitState, ServerDraft, SourceDraft, Where};
pub(crate) use tls::{CertDraft, Source, TlsDraft};

/// `load-server-state-from-file`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LoadState {
    /// `none`.
    #[default]
    None,
    /// `global`.
    Global,
    /// `local`.
    Local,
}

/// The kind of section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    Defaults {
        named: bool,
    },
    Frontend,
    #[default]
    Backend,
    Listen,
}

impl Kind {
    /// It accepts connections.
    pub fn is_front(self) -> bool {
        matches!(self, Kind::Frontend | Kind::Listen)
    }

    /// It has servers.
    pub fn is_back(self) -> bool {
        matches!(self, Kind::Backend | Kind::Listen)
    }

    /// It is a defaults section.
    pub fn is_defaults(self) -> bool {
        matches!(self, Kind::Defaults { .. })
    }

    /// The section word, as most messages name a proxy.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Defaults { .. } => "defaults",
            Kind::Frontend => "frontend",
            Kind::Backend => "backend",
            Kind::Listen => "listen",
        }
    }

    /// As messages about a finished proxy name it.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Listen => "proxy",
            other => other.word(),
        }
    }
}

/// A capture slot, and the rule that made it, if no declaration did.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub capture: Capture,
    pub rule: Option<LineRef>,
}

/// `balance`, its expression not yet parsed.
#[derive(Clone, Debug)]
pub(crate) enum BalanceDraft {
    RoundRobin,
    StaticRr,
    LeastConn,
    First,
    Random(u32),
    Source,
    Uri(balance::key::UriParams),
    UrlParam(Box<[u8]>),
    Header {
        name: Box<[u8]>,
        domain_only: bool,
    },
    RdpCookie(Box<[u8]>),
    Hash(Deferred),
    Sticky,
    /// `log-hash`: converters.
    LogHash(Deferred),
}

impl Default for BalanceDraft {
    /// What HAProxy does since 3.3 where nothing is said.
    fn default() -> BalanceDraft {
        BalanceDraft::Random(2)
    }
}

impl BalanceDraft {
    /// It looks at HTTP requests.
    pub fn needs_http(&self) -> bool {
        matches!(self, BalanceDraft::Uri(_) | BalanceDraft::UrlParam(_) | BalanceDraft::Header { .. })
    }
}

/// The line that a proxy logs with.
#[derive(Clone, Debug, Default)]
pub(crate) enum FormatDraft {
    /// Nothing was said.
    #[default]
    None,
    /// One of the ready-made ones; the place of its option.
    Known(program::log::Style, Span),
    /// `log-format`.
    Custom(Deferred),
}

impl FormatDraft {
    /// The line that says it.
    pub(crate) fn name(&self) -> Option<&'static str> {
        use program::log::Style;
        Some(match self {
            FormatDraft::Custom(_) => "log-format",
            FormatDraft::Known(Style::Http, _) => "option httplog",
            FormatDraft::Known(Style::Https, _) => "option httpslog",
            FormatDraft::Known(Style::Clf, _) => "option httplog clf",
            FormatDraft::Known(Style::TcpClf, _) => "option tcplog clf",
            FormatDraft::Known(..) => "option tcplog",
            FormatDraft::None => return None,
        })
    }
}

/// Where an answer to a status comes from, in order of precedence: later ones win.
#[derive(Clone, Debug)]
pub(crate) enum ErrorDraft {
    /// `errorfile`, `errorloc`: a complete message.
    Message(u16, Arc<[u8]>),
    /// `errorfiles`: a section, and the statuses wanted from it (empty: all).
    Section(Named, Vec<u16>),
    /// `http-error`.
    Reply(LineRef),
}

/// The check that servers without one of their own run.
#[derive(Clone, Debug, Default)]
pub(crate) enum CheckKind {
    /// Connect only.
    #[default]
    Connect,
    /// `option httpchk`: method, URI, version, value of the `Host` field.
    Http { method: Box<[u8]>, uri: Option<Box<[u8]>>, version: Box<[u8]>, host: Option<Box<[u8]>> },
    /// `option tcp-check`.
    Tcp,
    /// A ready-made conversation.
    Canned(Arc<[crate::check::Canned]>),
    /// `option external-check`.
    External,
}

/// `option forwarded` parts as written.
#[derive(Clone, Debug)]
pub(crate) struct ForwardedDraft {
    pub at: LineRef,
}

/// Settings of a proxy.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    pub kind: Kind,
    pub name: Box<str>,
    /// Place of the section.
    pub span: Span,
    /// Index of its section.
    pub section: u32,
    pub mode: Mode,
    /// `mode` was said in this very section.
    pub mode_said: bool,
    pub disabled: bool,
    pub id: Option<u32>,
    /// `id` stands in the section.
    pub forced_id: bool,
    pub guid: Option<Box<str>>,
    pub guid_span: Span,
    /// Of `defaults`: why no backend can be made of it.
    pub unfit: Option<Box<str>>,
    /// Whether frontends and backends inherit the rules of this `defaults` section.
    pub heirs: (bool, bool),
    pub description: Option<Box<str>>,
    pub timeouts: Timeouts,
    /// The timeouts that the section began with.
    pub inherited_timeouts: Timeouts,
    pub options: Options,
    /// `option abortonclose`, if it is said; else the mode decides.
    pub abortonclose: Option<bool>,
    /// `option clitcpka`, `option srvtcpka`: on or off; the figures may come without.
    pub keepalive: (bool, bool),
    /// `clitcpka-*`, `srvtcpka-*`.
    pub figures: (KeepAlive, KeepAlive),
    pub connection: Option<Connection>,
    pub maxconn: Option<u32>,
    pub backlog: Option<u32>,
    pub rate_limit: u32,
    pub binds: Vec<BindDraft>,
    /// `use-fcgi-app`.
    pub fcgi_app: Option<Named>,
    /// `option http-restrict-req-hdr-names` was said.
    pub restricted: bool,
    /// `ssl-f-use` lines.
    pub certificates: Vec<(Vec<Box<str>>, Span)>,
    pub switching: Vec<LineRef>,
    pub default_backend: Option<Named>,
    pub monitor_uri: Option<Box<[u8]>>,
    pub monitor_fail: Vec<LineRef>,
    /// `acl` lines in order.
    pub acls: Vec<LineRef>,
    /// Rule lines of all sets in order.
    pub rules: Vec<LineRef>,
    /// A `switch-mode` rule makes HTTP of what began as TCP: rules on HTTP have their use.
    pub switches: bool,
    /// The kinds of rules seen in this very section, as bits by stage of processing.
    pub stages: u16,
    pub log: LogDraft,
    pub format: FormatDraft,
    pub structured: Option<Deferred>,
    pub error_format: Option<Deferred>,
    pub log_tag: Option<Box<str>>,
    /// `log-steps`, as bits of moments.
    pub log_steps: Option<u16>,
    /// The section itself said so.
    pub own_log_steps: bool,
    /// Those that were named, here or in the `defaults` section.
    pub named_log_steps: u16,
    pub req_captures: Vec<Slot>,
    pub res_captures: Vec<Slot>,
    pub capture_cookie: Option<CaptureCookie>,
    pub unique_id_format: Option<Deferred>,
    pub unique_id_header: Option<wire::head::FieldName>,
    pub forwardfor: Option<AddressHeader>,
    pub originalto: Option<AddressHeader>,
    pub forwarded: Option<ForwardedDraft>,
    pub errors: Vec<ErrorDraft>,
    pub stats: Option<PageDraft>,
    pub servers: Vec<ServerDraft>,
    pub default_server: ServerDraft,
    /// `default-server name`.
    pub named_servers: Vec<ServerDraft>,
    pub balance: BalanceDraft,
    pub hash: HashType,
    pub hash_balance_factor: u32,
    pub preserve_affinity: Affinity,
    pub cookie: Option<Cookie>,
    pub dynamic_key: Option<Box<[u8]>>,
    pub rdp_cookie: Option<Box<[u8]>>,
    pub use_server: Vec<LineRef>,
    pub force_persist: Vec<LineRef>,
    pub force_switch: Vec<LineRef>,
    /// `be-unpublished`.
    pub unpublished: bool,
    pub ignore_persist: Vec<LineRef>,
    pub retries: u32,
    pub retry_on: RetryOn,
    pub reuse: Option<Reuse>,
    pub fullconn: Option<u32>,
    pub source: Option<SourceDraft>,
    pub send_name_header: Option<wire::head::FieldName>,
    pub max_keep_alive_queue: i32,
    pub session_conns: u32,
    pub check: CheckKind,
    /// `external-check command`, `external-check path`.
    pub external_command: Option<Box<str>>,
    pub external_path: Option<Box<str>>,
    /// The section whose `option` chose the check.
    pub check_section: u32,
    /// `http-check` rules, all of one section: a section's own rules replace those it inherits.
    pub http_checks: Vec<LineRef>,
    /// `tcp-check` rules, likewise.
    pub tcp_checks: Vec<LineRef>,
    /// The sections that say `http-check disable-on-404`, and `send-state`: both belong to a section's check.
    pub disable_on_404: Vec<u32>,
    pub send_state: Vec<u32>,
    pub load_state: Option<LoadState>,
    pub state_file: Option<Box<str>>,
    /// `stick-table`.
    pub table: Option<TableDraft>,
    /// `compression`, if there is such a line.
    pub compression: Option<std::sync::Arc<lang::compression::Compression>>,
    /// `filter` lines in order.
    pub filters: Vec<LineRef>,
    /// `filter-sequence` of requests and responses.
    pub sequences: [Option<Vec<Box<str>>>; 2],
    /// `stick` lines in order.
    pub stick: Vec<LineRef>,
    /// `email-alert`.
    pub alert: AlertDraft,
}

impl Draft {
    /// Whether something is captured by a rule, or by a line that names what; `declare capture` only makes
    /// room.
    pub fn captures(&self) -> bool {
        let filled = |slot: &Slot| slot.rule.is_some() || slot.capture.header.is_some();
        self.capture_cookie.is_some() || self.req_captures.iter().chain(&self.res_captures).any(filled)
    }

    /// The documented defaults.
    pub fn new(kind: Kind) -> Draft {
        Draft { kind, retries: 3, max_keep_alive_queue: -1, session_conns: 5, ..Draft::default() }
    }

    /// A section of another kind that starts from this one.
    pub fn inherit(&self, kind: Kind) -> Draft {
        // A backend has no use for what a section says of frontends.
        let front = kind != Kind::Backend;
        Draft {
            default_backend: self.default_backend.clone().filter(|_| front),
            monitor_uri: self.monitor_uri.clone().filter(|_| front),
            capture_cookie: self.capture_cookie.clone().filter(|_| front),
            // HAProxy passes the name of a state file on to nobody.
            state_file: None,
            kind,
            disabled: self.disabled,
            inherited_timeouts: self.timeouts,
            stages: 0,
            mode_said: false,
            own_log_steps: false,
            // In HAProxy whoever inherits them is logged at the end, whatever they are.
            log_steps: self.log_steps.map(|_| model::Origin::Close.bit()),
            // Named ones are found by the name of their section only.
            named_servers: Vec::new(),
            ..self.clone()
        }
    }

    /// An `option` of this section chose the check: nothing of an inherited one is left.
    pub fn choose_check(&mut self, kind: CheckKind) {
        let section = self.section;
        self.check = kind;
        self.check_section = section;
        for rules in [&mut self.http_checks, &mut self.tcp_checks] {
            rules.retain(|at| at.section == section);
        }
    }

    /// `frontend 'name'`, as messages name it.
    pub fn label(&self) -> String {
        format!("{} '{}'", self.kind.noun(), self.name)
    }
}
