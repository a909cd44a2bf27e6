//! `server`, `default-server` and `server-template` lines (manual, section 5.2).
//!
//! A server starts as a copy of what `default-server` lines of its section (and of the `defaults` it inherits from)
//! have said so far. Errors on these lines have the form `config : [file:line] : 'server backend/name' : text.`

pub(crate) mod keywords;
mod origin;
pub(crate) mod source;

use std::time::Duration;

use balance::HashKey;
use model::server::{Target, UnixKind};
use program::server::{Observe, OnError, ProxyV2Options};
use syntax::addr::{self, Accept, Host, Ports, Transport};
use syntax::{Diagnostic, Span};

use crate::draft::{Deferred, Draft, Named};
use crate::mux::Mux;
use crate::statement::{Statement, Step, bracket};
pub(crate) use source::SourceDraft;

/// How `init-addr` finds an address, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InitAddr {
    Last,
    Libc,
    None,
    Ip(std::net::IpAddr),
}

/// Where a server is.
#[derive(Clone, Debug, Default)]
pub(crate) enum Where {
    #[default]
    Nowhere,
    Inet {
        host: Host,
        ports: Ports,
    },
    Unix(model::server::Target),
}

impl Where {
    /// Whether a port stands there.
    pub(crate) fn has_port(&self) -> bool {
        matches!(self, Where::Inet { ports, .. } if !matches!(ports, Ports::Missing | Ports::Offset(_)))
    }
}

/// `send-proxy` and its variants. Each word has a switch of its own, whatever their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProxyDraft {
    /// `send-proxy`
    pub v1: bool,
    /// `send-proxy-v2` and what is more of it.
    pub v2: bool,
    pub options: ProxyV2Options,
    pub tlvs: Vec<(u8, Deferred)>,
}

impl ProxyDraft {
    /// The version that is sent: 2 wherever it is asked for.
    pub(crate) fn version(&self) -> Option<u8> {
        if self.v2 { Some(2) } else { self.v1.then_some(1) }
    }
}

/// Settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerDraft {
    pub name: Box<str>,
    /// A `default-server` line stood before it.
    pub defaulted: bool,
    pub span: Span,
    /// Position of its line.
    pub place: Where,
    pub id: Option<u32>,
    /// `id` stands on the line.
    pub forced_id: bool,
    pub guid: Option<Box<str>>,
    pub backup: bool,
    pub disabled: bool,
    pub cookie: Option<Box<[u8]>>,
    pub weight: u32,
    pub maxconn: u32,
    pub minconn: u32,
    pub maxqueue: u32,
    pub slowstart: Option<Duration>,
    pub idle_ping: Option<Duration>,
    pub check: bool,
    /// `healthcheck`: a section's check instead of the backend's.
    pub healthcheck: Option<Box<str>>,
    pub inter: Duration,
    pub fastinter: Option<Duration>,
    pub downinter: Option<Duration>,
    pub rise: u32,
    pub fall: u32,
    pub check_addr: Option<std::net::SocketAddr>,
    pub check_port: Option<u16>,
    pub check_send_proxy: bool,
    pub check_via_socks4: bool,
    pub check_reuse_pool: bool,
    pub check_pool_conn_name: Option<Box<str>>,
    pub socks4: Option<std::net::SocketAddr>,
    pub agent: bool,
    pub agent_inter: Option<Duration>,
    pub agent_addr: Option<std::net::IpAddr>,
    pub agent_port: Option<u16>,
    pub agent_send: Box<[u8]>,
    pub track: Option<Named>,
    pub observe: Option<Observe>,
    pub error_limit: u32,
    pub on_error: OnError,
    pub down_kills: bool,
    pub up_kills_backups: bool,
    pub source: Option<SourceDraft>,
    pub send_proxy: ProxyDraft,
    pub redir: Option<Box<[u8]>>,
    pub non_stick: bool,
    pub tcp_ut: Option<Duration>,
    pub md5sig: Option<Box<str>>,
    pub tfo: bool,
    pub congestion: Option<Box<str>>,
    pub pool_max_conn: i32,
    pub pool_low_conn: u32,
    pub pool_purge_delay: Duration,
    pub pool_conn_name: Option<Deferred>,
    pub max_reuse: i32,
    /// `proto`, checked against the proxy's mode later.
    pub proto: Option<Mux>,
    /// `check-proto`, checked against the kind of check later.
    pub check_proto: Option<Mux>,
    pub ws: program::server::Ws,
    pub strict_maxconn: bool,
    pub hash_key: HashKey,
    pub init_addr: Vec<InitAddr>,
    pub init_state: InitState,
    pub tls: crate::tls::ServerTlsDraft,
    /// The first of a template, whose prefix names it in messages.
    pub template: Option<Box<str>>,
    /// One of a template, but not the first: what is wrong with its words was said.
    pub is_copy: bool,
    /// The words that made it what it is, but for its very own.
    pub words: Vec<Box<str>>,
}

/// `init-state`: the state before the first check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InitState {
    FullyUp,
    #[default]
    Unsaid,
    Up,
    Down,
    FullyDown,
}

impl Default for ServerDraft {
    fn default() -> ServerDraft {
        ServerDraft {
            name: "".into(),
            defaulted: false,
            span: Span::default(),
            place: Where::Nowhere,
            id: None,
            forced_id: false,
            guid: None,
            backup: false,
            disabled: false,
            cookie: None,
            weight: 1,
            maxconn: 0,
            minconn: 0,
            maxqueue: 0,
            slowstart: None,
            idle_ping: None,
            check: false,
            healthcheck: None,
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            rise: 2,
            fall: 3,
            check_addr: None,
            check_port: None,
            check_send_proxy: false,
            check_via_socks4: false,
            check_reuse_pool: false,
            check_pool_conn_name: None,
            socks4: None,
            agent: false,
            agent_inter: None,
            agent_addr: None,
            agent_port: None,
            agent_send: Box::default(),
            track: None,
            observe: None,
            error_limit: 10,
            on_error: OnError::FailCheck,
            down_kills: false,
            up_kills_backups: false,
            source: None,
            send_proxy: ProxyDraft::default(),
            redir: None,
            non_stick: false,
            tcp_ut: None,
            md5sig: None,
            tfo: false,
            congestion: None,
            pool_max_conn: -1,
            pool_low_conn: 0,
            pool_purge_delay: Duration::from_secs(5),
            pool_conn_name: None,
            max_reuse: -1,
            proto: None,
            check_proto: None,
            ws: program::server::Ws::Auto,
            strict_maxconn: false,
            hash_key: HashKey::Id,
            init_addr: Vec::new(),
            init_state: InitState::Unsaid,
            tls: crate::tls::ServerTlsDraft::default(),
            template: None,
            is_copy: false,
            words: Vec::new(),
        }
    }
}

/// `server <name> <address> [words]`.
pub(crate) fn server(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    allowed(s, p)?;
    let expects = format!("'{}' expects <name> and <addr>[:<port>] as arguments.", s.keyword());
    let name = s.word(&*expects).map_err(bracket)?;
    if s.args.peek().is_none() {
        return Err(bracket(s.fail(expects)));
    }
    if let Some(odd) = name.text().chars().find(|c| !valid(*c)) {
        let text = format!("character '{odd}' is not permitted in server name '{name}'.");
        return Err(bracket(s.fail(text)));
    }
    let label = format!("'server {}/{name}'", p.name);
    let place = place(s, &expects, &label)?;
    let mut server = origin::of(s, p, &label)?.unwrap_or_else(|| p.default_server.clone());
    (server.name, server.span, server.place) = (name.text().into(), name.span(), place);
    words(s, &mut server, p, &label, false)?;
    whole(s, &server, &label, name.text())?;
    server.forced_id = server.id.is_some();
    let taken = if server.forced_id { p.servers.iter().find(|o| o.id == server.id) } else { None };
    if let Some(other) = taken {
        let at = format!("{}:{}", s.around.sources.name(other.span.file), other.span.line);
        let id = server.id.unwrap_or(0);
        let text = format!("{label} : 'id' : custom id {id} already used at {at} ('server {}').", other.name);
        return Err(bracket(s.fail_at(server.span, text)));
    }
    p.servers.push(server);
    Ok(())
}

/// `default-server [words]`.
pub(crate) fn default_server(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if !p.kind.is_defaults() {
        allowed(s, p)?;
    }
    let name = origin::name(s, p)?;
    let known = match name {
        None => Some(&p.default_server),
        Some(name) => p.named_servers.iter().find(|d| name == &*d.name),
    };
    let known = known.cloned().unwrap_or_default();
    let mut server = origin::of(s, p, "")?.unwrap_or(known);
    words(s, &mut server, p, "", true)?;
    server.defaulted = true;
    let Some(name) = name else {
        p.default_server = server;
        return Ok(());
    };
    (server.name, server.span) = (name.text().into(), name.span());
    p.named_servers.retain(|d| name != &*d.name);
    p.named_servers.push(server);
    Ok(())
}

/// `server-template <prefix> <number or range> <address> [words]`.
pub(crate) fn template(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    allowed(s, p)?;
    let expects = "'server-template' expects <prefix> <nb | range> <addr>[:<port>] as arguments.";
    let prefix = s.word(expects).map_err(bracket)?;
    let count = s.word(expects).map_err(bracket)?;
    if s.args.peek().is_none() {
        return Err(bracket(s.fail(expects)));
    }
    let (from, to) = match count.text().split_once('-') {
        Some((from, to)) => (from.parse().ok(), to.parse().ok()),
        None => (Some(1u32), count.text().parse().ok()),
    };
    let (Some(from), Some(to)) = (from, to) else {
        return Err(bracket(
            s.fail_at(count.span(), format!("Wrong server-template number or range arg '{count}'.")),
        ));
    };
    if from > to || to - from >= 100_000 {
        return Err(bracket(
            s.fail_at(count.span(), format!("Wrong server-template number or range arg '{count}'.")),
        ));
    }
    let label = format!("'server-template {}/{prefix}'", p.name);
    let place = place(s, expects, &label)?;
    let mut first = origin::of(s, p, &label)?.unwrap_or_else(|| p.default_server.clone());
    (first.place, first.span) = (place, prefix.span());
    words(s, &mut first, p, &label, false)?;
    whole(s, &first, &label, prefix.text())?;
    for number in from..=to {
        first.forced_id = first.id.is_some();
        // So is an id; the others have the one of their place.
        let id = first.id.filter(|_| number == from);
        let template = (number == from).then(|| prefix.text().into());
        let name = format!("{prefix}{number}").into();
        // A unique name is the first one's alone.
        let guid = first.guid.clone().filter(|_| number == from);
        // The others are copies, which counts as something said about their state.
        let defaulted = first.defaulted || number != from;
        let is_copy = number != from;
        p.servers.push(ServerDraft { name, id, template, is_copy, guid, defaulted, ..first.clone() });
    }
    Ok(())
}

impl ServerDraft {
    /// How messages name a server of a backend: the first of a template stands for its line.
    pub(crate) fn label(&self, p: &Draft) -> String {
        match &self.template {
            Some(prefix) => format!("'server-template {}/{prefix}'", p.name),
            None => format!("'server {}/{}'", p.name, self.name),
        }
    }
}

/// What only all words of a server together show.
fn whole(s: &mut Statement<'_>, server: &ServerDraft, label: &str, name: &str) -> Step {
    if server.check && server.track.is_some() {
        let text = format!("{label} : unable to enable checks and tracking at the same time!");
        return Err(bracket(Diagnostic::alert(server.span, text)));
    }
    if server.track.is_some() && server.init_state != InitState::Unsaid {
        let text = format!("{label} : unable to set init-state and tracking at the same time!");
        return Err(bracket(Diagnostic::alert(server.span, text)));
    }
    if server.agent && server.agent_port.is_none_or(|port| port == 0) {
        let text =
            format!("{label} : server {name} does not have agent port. Agent check has been disabled.");
        s.notes.push(bracket(Diagnostic::alert(server.span, text)));
    }
    Ok(())
}

/// What is wrong with a word, with the server's name in front and a full stop behind, as HAProxy has it.
fn closed(d: Diagnostic, before: &str) -> Diagnostic {
    let stop = if d.text.ends_with('!') { "" } else { "." };
    Diagnostic { text: format!("{before}{}{stop}", d.text), ..d }
}

fn valid(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_' | '-')
}

fn allowed(s: &Statement<'_>, p: &Draft) -> Step {
    if p.kind.is_defaults() {
        let text = format!("'{}' not allowed in 'defaults' section.", s.keyword());
        return Err(bracket(s.fail(text)));
    }
    if !p.kind.is_back() {
        let span = s.line.keyword().span();
        let at = format!("{}:{}", s.around.sources.name(span.file), span.line);
        let label = p.label();
        let text = format!(
            "parsing [{at}] : '{}' not allowed because {label} has no backend capability.",
            s.keyword()
        );
        return Err(bracket(s.fail_at(span, text)));
    }
    Ok(())
}

/// The address word.
fn place(s: &mut Statement<'_>, expects: &str, label: &str) -> Step<Where> {
    let word = s.word(expects).map_err(bracket)?;
    let refuse = |why: String| bracket(Diagnostic::alert(word.span(), format!("{label} : {why}")));
    let address = addr::parse(word.text(), Accept::SERVER, s.around.environment).map_err(refuse)?;
    if address.transport == Transport::Datagram {
        return Err(bracket(s.fail("unsupported transport for server address in 'tcp' backend.")));
    }
    if address.transport == Transport::Quic || address.mptcp {
        return Err(refuse("QUIC and MPTCP are not supported yet by Harrier (planned)".into()));
    }
    let unix = |path: String, kind| Ok(Where::Unix(Target::Unix { path: path.into_bytes().into(), kind }));
    if let Host::Name(name, _) = &address.host
        && name.strip_suffix('.').unwrap_or(name).split('.').any(|label| label.is_empty() || label.len() > 63)
    {
        let server = label.trim_end_matches('\'').rsplit('/').next().unwrap_or_default();
        return Err(refuse(format!("Can't create DNS resolution for server '{server}'")));
    }
    match address.host {
        Host::Ip(_) | Host::Name(..) => Ok(Where::Inet { host: address.host, ports: address.ports }),
        Host::Unix(path) => unix(path, UnixKind::Path),
        Host::Abstract(name) => unix(name, UnixKind::Abns),
        Host::AbstractZero(name) => unix(name, UnixKind::Abnsz),
        Host::Fd(_) | Host::SockPair(_) | Host::Reverse(_) => {
            Err(refuse(format!("'{word}' is not supported yet by Harrier (planned)")))
        }
    }
}

/// The words behind the address.
fn words(s: &mut Statement<'_>, server: &mut ServerDraft, p: &mut Draft, label: &str, default: bool) -> Step {
    let before = if label.is_empty() { String::new() } else { format!("{label} : ") };
    loop {
        let line = s.args.rest();
        let Some(word) = s.args.next() else { break };
        let (name, _) = word.text().split_once('(').unwrap_or((word.text(), ""));
        let entry = keywords::all().find(|k| k.name == name);
        let Some(entry) = entry else {
            let near = syntax::nearest(word.text(), keywords::all().map(|k| k.name));
            let hint = near.map_or_else(|| ".".to_owned(), |n| format!("; did you mean '{n}' maybe ?"));
            let tail = if default { " Hint: no address was expected for this server." } else { "" };
            return Err(bracket(
                s.fail_at(word.span(), format!("{before}unknown keyword '{word}'{hint}{tail}")),
            ));
        };
        if default && !entry.in_default {
            let text = format!("{before}'{}' option is not accepted in default-server sections", entry.name);
            // HAProxy says so and ignores the rest of the line, but goes on.
            s.notes.push(bracket(s.fail_at(word.span(), text)).tolerated());
            return Ok(());
        }
        let Some(set) = entry.set else {
            if entry.tls {
                if entry.args > 0 && s.next().is_none() && entry.name == "npn" {
                    let text = format!("{before}'npn' : missing the comma-delimited NPN protocol suite");
                    return Err(bracket(s.fail(text)));
                }
                let text = format!("{before}'{}' has no effect in Harrier.", entry.name);
                s.notes.push(bracket(Diagnostic::warning(word.span(), text)));
                continue;
            }
            let text = format!("{before}'{}' is not supported yet by Harrier (planned).", entry.name);
            return Err(bracket(s.fail_at(word.span(), text)));
        };
        set(server, s, p).map_err(|d| bracket(closed(d, &before)))?;
        if entry.in_default {
            let eaten = line.len() - s.args.rest().len();
            server.words.extend(line.iter().take(eaten).map(|w| w.text().into()));
        }
    }
    Ok(())
}
