//! `frontend`, `backend`, `listen`.

use base::fleet::{Fleet, Held};
use std::sync::Arc;

use balance::key::UriParams;
use balance::{HashType, Method};
use lang::cond::Outcome;
use lang::dispatch::{Cursor, Dispatch};
use lang::env::Env;
use lang::{Condition, Expr, LogFormat, RuleSet};

use crate::address::Source;
use crate::check::Ruleset;
use crate::listener::Bind;
use crate::log::Logging;
use crate::options::{AddressHeader, Forwarded, Options};
use crate::persist::Cookie;
use crate::server::{Server, Settings};
use crate::stats::Page;
use crate::timeouts::Timeouts;

/// `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `tcp`.
    #[default]
    Tcp,
    /// `http`.
    Http,
    /// `log`: its servers are sent lines of logs (`log backend@`), and no traffic.
    Log,
    /// `spop`: its servers are agents of SPOE filters, which talk to no one else.
    Spop,
}

impl Mode {
    /// The word that statistics and messages have for it.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Tcp => "tcp",
            Mode::Http => "http",
            Mode::Log => "syslog",
            Mode::Spop => "spop",
        }
    }
}

/// What `add backend` said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedBackend {
    /// The `defaults` section that it is made from.
    pub from: Box<str>,
    /// Its mode.
    pub mode: Option<Mode>,
    /// Its unique name.
    pub guid: Option<Box<str>>,
}

/// A proxy.
pub struct Proxy {
    /// Name.
    pub name: Box<str>,
    /// Live state: id, counters.
    pub state: Arc<model::Proxy>,
    /// It accepts connections.
    pub is_frontend: bool,
    /// It has servers.
    pub is_backend: bool,
    /// `mode`.
    pub mode: Mode,
    /// `disabled`.
    pub disabled: bool,
    /// `description`.
    pub description: Option<Box<str>>,
    /// How it was added at run time; `None`: it stands in the configuration.
    pub added: Option<Arc<AddedBackend>>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Flags.
    pub options: Options,
    /// `email-alert`, where it is complete.
    pub mail: Option<Arc<model::mail::Mail>>,
    /// `use-fcgi-app`.
    pub fcgi: Option<crate::fcgi::Application>,
    /// `compression`, if there is such a line.
    pub compression: Option<Arc<lang::compression::Compression>>,
    /// Rule sets.
    pub rules: Rules,
    /// `bind`.
    pub binds: Vec<Bind>,
    /// `maxconn`.
    pub maxconn: u32,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `rate-limit sessions`, 0: none.
    pub rate_limit: u32,
    /// `use_backend`, in order.
    pub switching: Switching,
    /// `default_backend` (a `listen` is its own).
    pub default_backend: Option<u32>,
    /// `monitor-uri`.
    pub monitor_uri: Option<Box<[u8]>>,
    /// `monitor fail`.
    pub monitor_fail: Vec<Condition>,
    /// Logs.
    pub log: Logging,
    /// `capture request header`: name and length; and `declare capture request` (no name).
    pub req_captures: Vec<Capture>,
    /// `capture response header`, `declare capture response`.
    pub res_captures: Vec<Capture>,
    /// `capture cookie`: name (or prefix of it) and length.
    pub capture_cookie: Option<CaptureCookie>,
    /// `unique-id-format`.
    pub unique_id_format: Option<Arc<LogFormat>>,
    /// `unique-id-header`.
    pub unique_id_header: Option<wire::head::FieldName>,
    /// `option forwardfor` (frontend's, or backend's).
    pub forwardfor: Option<AddressHeader>,
    /// `option originalto`.
    pub originalto: Option<AddressHeader>,
    /// `option forwarded`.
    pub forwarded: Option<Arc<Forwarded>>,
    /// Answers by status: `errorfile`, `errorloc`, `errorfiles`, `http-error`.
    pub errors: Errors,
    /// `stats ...`.
    pub stats: Option<Arc<Page>>,

    /// `server`, in order, and behind them those that were added while it runs (`add server`).
    pub servers: Fleet<Server>,
    /// `default-server` lines for servers to come, by name; the one without comes first.
    pub default_servers: Vec<(Option<Box<str>>, Settings)>,
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash: HashType,
    /// `hash-balance-factor`, 0: none.
    pub hash_balance_factor: u32,
    /// `hash-preserve-affinity`.
    pub preserve_affinity: Affinity,
    /// `cookie`.
    pub cookie: Option<Cookie>,
    /// `persist rdp-cookie(name)`.
    pub rdp_cookie: Option<Box<[u8]>>,
    /// `filter` lines but for those of `trace` and `bwlim-*`, in order, and filters that need no line.
    pub filters: Vec<crate::filter::Line>,
    /// `filter trace`, in order.
    pub traces: Vec<crate::filter::Trace>,
    /// Its streams have a filter, of whatever kind.
    pub filtered: bool,
    /// `stick`.
    pub stick: crate::stick_rules::StickRules,
    /// `use-server`, in order.
    pub use_server: Vec<UseServer>,
    /// `force-be-switch`.
    pub force_switch: Vec<Condition>,
    /// `force-persist`.
    pub force_persist: Vec<Condition>,
    /// `ignore-persist`.
    pub ignore_persist: Vec<Condition>,
    /// `retries`.
    pub retries: u32,
    /// `retry-on`.
    pub retry_on: RetryOn,
    /// `http-reuse`.
    pub reuse: Reuse,
    /// `fullconn`, computed when not given.
    pub fullconn: u32,
    /// `source`.
    pub source: Option<Source>,
    /// `dispatch`.
    pub dispatch: Option<std::net::SocketAddr>,
    /// `http-send-name-header`.
    pub send_name_header: Option<wire::head::FieldName>,
    /// `max-keep-alive-queue`: -1 no limit.
    pub max_keep_alive_queue: i32,
    /// `max-session-srv-conns`: idle server connections that stay with one client.
    pub session_conns: u32,
    /// The check that servers without one of their own run.
    pub check: Arc<Ruleset>,
    /// `id` was given.
    pub forced_id: bool,
}

impl Proxy {
    /// Whether a request asks for the `monitor-uri`. One that begins with a slash is compared with path and
    /// query of the request, another with its target as a whole.
    pub fn is_monitored(&self, target: &[u8]) -> bool {
        self.monitor_uri.as_deref().is_some_and(|uri| match uri.first() {
            Some(b'/') => uri == wire::uri::path_and_query(target),
            _ => uri == target,
        })
    }

    /// Whether its schedule is made once and for all: its servers have the weights that they began with, or
    /// none (manual, "balance" and "hash-type").
    pub fn has_static_weights(&self) -> bool {
        match self.balance {
            Balance::StaticRr => true,
            Balance::RoundRobin
            | Balance::LeastConn
            | Balance::First
            | Balance::Random(_)
            | Balance::Sticky => false,
            _ => self.hash.method == Method::MapBased,
        }
    }

    /// It was deleted while it runs (`del backend`).
    pub fn is_removed(&self) -> bool {
        self.state.back.removed.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Whether the n-th retry, after which `left` remain, chooses a server anew (`option redispatch`). What
    /// nothing binds to its server and is balanced by load does so at each retry, anything else when the
    /// interval says so.
    pub fn leaves(&self, retry: u32, left: u32, bound: bool) -> bool {
        let interval = self.options.redispatch;
        let free = interval != 0 && !bound && !self.balance.is_hash();
        free || self.chooses_anew(retry, left)
    }

    /// Whether the interval of `option redispatch` is over with the n-th retry, after which `left` remain.
    pub fn chooses_anew(&self, retry: u32, left: u32) -> bool {
        redispatches(self.options.redispatch, retry, left)
    }

    /// A backend with the settings of this one, which is made of a `defaults` section and so has no servers
    /// and none of the rules that such sections may not have.
    pub fn instance(&self, name: &str, state: Arc<model::Proxy>) -> Proxy {
        Proxy {
            name: name.into(),
            state,
            is_frontend: false,
            is_backend: true,
            mode: self.mode,
            disabled: false,
            description: None,
            added: None,
            timeouts: self.timeouts,
            options: self.options.clone(),
            mail: None,
            fcgi: None,
            compression: self.compression.clone(),
            rules: self.rules.clone(),
            binds: Vec::new(),
            maxconn: 0,
            backlog: None,
            rate_limit: 0,
            switching: Switching::default(),
            default_backend: None,
            monitor_uri: None,
            monitor_fail: Vec::new(),
            log: self.log.clone(),
            req_captures: Vec::new(),
            res_captures: Vec::new(),
            capture_cookie: None,
            unique_id_format: None,
            unique_id_header: None,
            forwardfor: self.forwardfor.clone(),
            originalto: self.originalto.clone(),
            forwarded: self.forwarded.clone(),
            errors: self.errors.clone(),
            stats: self.stats.clone(),
            servers: Fleet::default(),
            default_servers: self.default_servers.clone(),
            balance: self.balance.clone(),
            hash: self.hash,
            hash_balance_factor: self.hash_balance_factor,
            preserve_affinity: self.preserve_affinity,
            cookie: self.cookie.clone(),
            rdp_cookie: self.rdp_cookie.clone(),
            filters: self.filters.clone(),
            traces: self.traces.clone(),
            filtered: self.filtered,
            stick: Default::default(),
            use_server: Vec::new(),
            force_switch: Vec::new(),
            force_persist: Vec::new(),
            ignore_persist: Vec::new(),
            retries: self.retries,
            retry_on: self.retry_on.clone(),
            reuse: self.reuse,
            fullconn: self.fullconn,
            source: self.source.clone(),
            dispatch: None,
            send_name_header: self.send_name_header.clone(),
            max_keep_alive_queue: self.max_keep_alive_queue,
            session_conns: self.session_conns,
            check: self.check.clone(),
            forced_id: false,
        }
    }
}

/// The rule sets of a proxy. Those of `defaults` come first in each.
#[derive(Clone, Default)]
pub struct Rules {
    /// `tcp-request connection`.
    pub tcp_connection: RuleSet,
    /// `tcp-request session`.
    pub tcp_session: RuleSet,
    /// `tcp-request content`.
    pub tcp_content: RuleSet,
    /// `tcp-response content`.
    pub tcp_response: RuleSet,
    /// `http-request`.
    pub http_request: RuleSet,
    /// `redirect`: for what those let pass.
    pub redirect: RuleSet,
    /// `http-response`.
    pub http_response: RuleSet,
    /// `http-after-response`.
    pub http_after_response: RuleSet,
}

impl Rules {
    /// Whether there is a rule of `tcp-request` or `tcp-response`.
    pub fn tells_tcp(&self) -> bool {
        let sets = [&self.tcp_connection, &self.tcp_session, &self.tcp_content, &self.tcp_response];
        sets.iter().any(|set| !set.is_empty())
    }
}

/// The `use_backend` rules of a proxy, in order.
#[derive(Default)]
pub struct Switching {
    rules: Box<[Switch]>,
    dispatch: Dispatch,
}

impl Switching {
    /// From rules in order.
    pub fn new(rules: Vec<Switch>) -> Switching {
        let dispatch = Dispatch::new(rules.iter().map(|r| r.condition.as_ref()));
        Switching { rules: rules.into(), dispatch }
    }

    /// What `pick` makes of the first rule that applies and that it does not pass by with `None`.
    pub fn choose<R>(&self, env: &Env<'_>, mut pick: impl FnMut(&Switch) -> Option<R>) -> Option<R> {
        let mut cursor = Cursor::default();
        let mut at = 0;
        loop {
            at = self.dispatch.next(at, &mut cursor, env);
            let rule = self.rules.get(at)?;
            if rule.condition.as_ref().is_none_or(|c| c.holds(env) == Outcome::Yes)
                && let Some(picked) = pick(rule)
            {
                return Some(picked);
            }
            at += 1;
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules.
    pub fn iter(&self) -> impl Iterator<Item = &Switch> {
        self.rules.iter()
    }
}

/// `use_backend`.
pub struct Switch {
    /// Which backend.
    pub to: SwitchTo,
    /// When.
    pub condition: Option<Condition>,
    /// Its number: an index of [`crate::Program::rule_places`].
    pub number: u32,
}

/// Target of `use_backend`.
pub enum SwitchTo {
    /// Known now: index of a proxy.
    Backend(u32),
    /// Named at run time.
    Format(Arc<LogFormat>),
}

/// `use-server`.
pub struct UseServer {
    /// Which server.
    pub to: UseServerTo,
    /// When.
    pub condition: Option<Condition>,
    /// Its number: an index of [`crate::Program::rule_places`].
    pub number: u32,
}

/// Target of `use-server`.
pub enum UseServerTo {
    /// Known now: index in this backend.
    Server(u32),
    /// Named at run time.
    Format(Arc<LogFormat>),
}

/// A declared capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Name of the header; `None` for a slot that rules fill.
    pub header: Option<Box<[u8]>>,
    /// Longest value kept.
    pub len: usize,
}

/// `capture cookie`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureCookie {
    /// Name, or its prefix.
    pub name: Box<[u8]>,
    /// The name ended in `=`: it is the whole name.
    pub exact: bool,
    /// Longest text kept, name included.
    pub len: usize,
}

/// Answers of a proxy to its clients when something is wrong, by status.
#[derive(Clone, Default)]
pub struct Errors {
    /// Complete messages, and answers made of parts (`http-error`).
    pub by_status: std::collections::BTreeMap<u16, ErrorAnswer>,
}

/// One answer.
#[derive(Clone)]
pub enum ErrorAnswer {
    /// As read from a file, head included; empty: close without a word.
    Message(Arc<[u8]>),
    /// `http-error status ...`: an answer made of parts.
    Reply(Arc<lang::Reply>),
}

/// `balance`.
#[derive(Clone, Default)]
pub enum Balance {
    /// `roundrobin` (the default).
    #[default]
    RoundRobin,
    /// `static-rr`.
    StaticRr,
    /// `leastconn`.
    LeastConn,
    /// `first`.
    First,
    /// `random(n)`.
    Random(u32),
    /// `source`.
    Source,
    /// `uri`.
    Uri(UriParams),
    /// `url_param`: of the query, else of the body of a POST.
    UrlParam(Box<[u8]>),
    /// `hdr(name)`.
    Header {
        /// Name.
        name: Box<[u8]>,
        /// `use_domain_only`.
        domain_only: bool,
    },
    /// `rdp-cookie(name)`.
    RdpCookie(Box<[u8]>),
    /// `hash expr`.
    Hash(Arc<Expr>),
    /// `sticky`.
    Sticky,
    /// `log-hash`: what these converters make of the message of a line.
    LogHash(Arc<Expr>),
}

impl Balance {
    /// Whether something of the request leads to its server, not the load or the turn of the servers.
    pub fn is_hash(&self) -> bool {
        use Balance::{First, LeastConn, Random, RoundRobin, StaticRr};
        !matches!(self, RoundRobin | StaticRr | LeastConn | First | Random(_))
    }
}

/// `hash-preserve-affinity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// `always`: wait for the server of the hash.
    #[default]
    Always,
    /// `maxconn`: not when it is full.
    MaxConn,
    /// `maxqueue`: not when its queue is full.
    MaxQueue,
}

/// `http-reuse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reuse {
    /// `never`.
    Never,
    /// `safe` (the default).
    #[default]
    Safe,
    /// `aggressive`.
    Aggressive,
    /// `always`.
    Always,
}

/// `retry-on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// `conn-failure`.
    pub conn_failure: bool,
    /// `empty-response`.
    pub empty_response: bool,
    /// `junk-response`.
    pub junk_response: bool,
    /// `response-timeout`.
    pub response_timeout: bool,
    /// `0rtt-rejected`.
    pub early_rejected: bool,
    /// Statuses.
    pub statuses: Vec<u16>,
}

impl Default for RetryOn {
    fn default() -> RetryOn {
        RetryOn {
            conn_failure: true,
            empty_response: false,
            junk_response: false,
            response_timeout: false,
            early_rejected: false,
            statuses: Vec::new(),
        }
    }
}

impl RetryOn {
    /// Whether anything beyond failed connects is retried: the request must then be kept.
    pub fn needs_request(&self) -> bool {
        self.empty_response || self.junk_response || self.response_timeout || !self.statuses.is_empty()
    }

    /// Whether a request is tried again whatever a connection that died at rest does to it. Then a client's
    /// first request, too, may go over a connection that others have used (`http-reuse safe` and
    /// `aggressive`).
    pub fn outlives_idle(&self) -> bool {
        self.conn_failure && self.empty_response && self.response_timeout
    }
}

impl Proxy {
    /// Its servers but those that were deleted while it runs.
    pub fn present(&self) -> impl Iterator<Item = Held<'_, Server>> {
        self.servers.iter().filter(|s| !s.state.is_removed())
    }

    /// A server by index. Indices come from this very backend, and whoever remembers one holds the server,
    /// too.
    #[inline]
    pub fn server(&self, index: u32) -> Held<'_, Server> {
        self.servers.get(index as usize).expect("an index of this backend")
    }

    /// The index of the server that is meant.
    pub fn position(&self, is_it: impl Fn(&Server) -> bool) -> Option<u32> {
        self.servers.numbered().find(|(_, s)| is_it(s)).map(|(at, _)| at)
    }
}

/// Whether the interval of `option redispatch` comes to its end with the n-th retry, after which `left`
/// remain.
fn redispatches(interval: i32, retry: u32, left: u32) -> bool {
    let n = interval.unsigned_abs();
    match interval {
        0 => false,
        i if i > 0 => retry.is_multiple_of(n),
        _ => left + 1 == n,
    }
}

#[cfg(test)]
mod tests {
    use super::redispatches;

    #[test]
    fn the_default_interval_leaves_the_server_on_the_last_retry_only() {
        assert_eq!([1, 2, 3].map(|n| redispatches(-1, n, 3 - n)), [false, false, true]);
        assert_eq!([1, 2, 3].map(|n| redispatches(-2, n, 3 - n)), [false, true, false]);
        assert_eq!([1, 2, 3].map(|n| redispatches(1, n, 3 - n)), [true, true, true]);
        assert_eq!([1, 2, 3].map(|n| redispatches(0, n, 3 - n)), [false, false, false]);
    }
}
