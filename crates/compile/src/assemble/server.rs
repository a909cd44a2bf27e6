//! Servers: address, live state, settings.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::time::Mono;
use model::server::{Configured, Op, Target, admin};
use program::Mode;
use program::check::{Agent, Check};
use program::proto::Proto;
use program::server::{Probed, SendProxy};
use syntax::addr::{Host, Ports};
use syntax::{Diagnostic, Diagnostics, Level, Style};

use super::{Assembly, Ground};
use crate::draft::{Draft, InitAddr, InitState, ServerDraft, Where};
use crate::mux::{Fit, Mux};
use crate::notes::refusal;
use crate::resolve;

/// What `init-addr` decided.
pub(super) struct Found {
    pub target: Target,
    /// The name could not be resolved and that is tolerated.
    pub unresolved: bool,
    pub fqdn: Option<Box<str>>,
}

/// The address of a server; `last` is the one that it had in a process before.
pub(super) fn target(
    server: &ServerDraft,
    last: Option<IpAddr>,
    p: &Draft,
    ground: &Ground<'_>,
    notes: &mut Diagnostics,
) -> Found {
    let (host, port) = match &server.place {
        Where::Nowhere => return Found { target: Target::None, unresolved: false, fqdn: None },
        Where::Unix(target) => return Found { target: target.clone(), unresolved: false, fqdn: None },
        Where::Inet { host, ports } => (host, port(*ports)),
    };
    // Records tell the name of a server of a service, and the system knows none of it.
    let service = server.service().is_some();
    let fqdn = match host {
        Host::Name(name, _) if !service => Some(name.as_str().into()),
        _ => None,
    };
    let inet = |ip: IpAddr| Target::Inet(SocketAddr::new(ip, port));
    if fqdn.is_none() && !service {
        let target = resolve::ip(host).map_or(Target::None, inet);
        return Found { target, unresolved: false, fqdn };
    }
    let methods = match server.init_addr.as_slice() {
        // Resolvers may find later what the system does not know now.
        [] if server.resolvers.is_some() => &[InitAddr::Last, InitAddr::Libc, InitAddr::None][..],
        [] => &[InitAddr::Last, InitAddr::Libc][..],
        given => given,
    };
    let tolerated = [InitAddr::None];
    let rest = if ground.options.ignore_resolution { &tolerated[..] } else { &[] };
    let known_names = methods.contains(&InitAddr::Libc) && !service;
    for method in methods.iter().chain(rest) {
        match method {
            InitAddr::Last => {
                if let Some(ip) = last {
                    return Found { target: inet(ip), unresolved: false, fqdn };
                }
            }
            InitAddr::Libc => {
                if let Some(ip) = resolve::ip(host).filter(|_| !service) {
                    return Found { target: inet(ip), unresolved: false, fqdn };
                }
            }
            InitAddr::Ip(ip) => {
                if known_names {
                    let tail = ", falling back to configured address";
                    notes.push(unresolved(server, p, ground, known_names, tail));
                }
                return Found { target: inet(*ip), unresolved: false, fqdn };
            }
            InitAddr::None => {
                if known_names {
                    notes.push(unresolved(server, p, ground, known_names, ", disabling server"));
                }
                return Found { target: Target::None, unresolved: true, fqdn };
            }
        }
    }
    notes.push(unresolved(server, p, ground, known_names, ""));
    Found { target: Target::None, unresolved: true, fqdn }
}

/// What is said of a name that leads nowhere; `asked` says whether the system was asked for it.
fn unresolved(server: &ServerDraft, p: &Draft, ground: &Ground<'_>, asked: bool, tail: &str) -> Diagnostic {
    let level = if tail.is_empty() { Level::Alert } else { Level::Notice };
    let label = server.label(p);
    let name = match &server.place {
        Where::Inet { host: Host::Name(name, _), .. } => name.as_str(),
        _ => "",
    };
    let at = ground.place(server.span);
    // Names that begin like this are those of SRV records, which only resolvers look up.
    let what = if name.starts_with('_') || !asked { "no method found to" } else { "could not" };
    let text = format!("[{at}] : {label} : {what} resolve address '{name}'{tail}.");
    Diagnostic::new(level, server.span, text).styled(Style::Bare)
}

/// A server that the world does not have yet.
pub(super) fn state(server: &ServerDraft, p: &Draft, found: Found, workers: usize) -> model::Server {
    let mut state = model::Server::new(&p.name, &server.name, server.id.unwrap_or(0), workers);
    let said = configured(server, &found);
    state.guid = server.guid.clone();
    state.set_target(found.target);
    *state.fqdn.get_mut() = found.fqdn.map(String::from);
    if said.port > 0 {
        state.port.store(said.port, Relaxed);
    }
    state.weight.store(said.weight, Relaxed);
    state.initial_weight.store(said.weight, Relaxed);
    state.maxconn.store(said.maxconn, Relaxed);
    // A server that has no address yet has nothing to be healthy with.
    let health = if unproved(server) || found.unresolved { 0 } else { said.initial_health };
    state.health.store(health, Relaxed);
    state.initial_health.store(said.initial_health, Relaxed);
    *state.initially_up.get_mut() = said.initially_up;
    if said.initially_down {
        *state.initially_down.get_mut() = true;
        state.set_op(Op::Stopped, Mono::ZERO);
        state.went_down.store(0, Relaxed);
    }
    let mut bits = 0;
    if server.disabled {
        bits |= admin::FMAINT | admin::CMAINT;
    }
    if found.unresolved {
        bits |= admin::RMAINT;
        state.went_down.store(1, Relaxed);
    }
    if bits != 0 {
        state.change_admin(bits, 0, Mono::ZERO);
    }
    state.check_enabled.store(server.check, Relaxed);
    state.checks_paused.store(server.disabled || server.check && found.unresolved, Relaxed);
    state.agent_enabled.store(server.agent, Relaxed);
    state.mapped.store(said.mapped, Relaxed);
    state.plain.store(said.plain, Relaxed);
    state.refuses_tls.store(said.refuses_tls, Relaxed);
    *state.configured.get_mut() = said;
    state
}

/// The port of an address, or what is added to the client's, below zero as a number that wraps around.
fn port(ports: Ports) -> u16 {
    match ports {
        Ports::One(port) => port,
        Ports::Offset(offset) => offset as u16,
        Ports::Missing | Ports::Range(..) => 0,
    }
}

/// A server that is up because nothing else was said has proved nothing: HAProxy counts it from 0, and so the
/// first success reads "1/2 DOWN" in the log. A `default-server` line counts as something said, but not of a
/// server in maintenance.
fn unproved(server: &ServerDraft) -> bool {
    server.init_state == InitState::Unsaid && (!server.defaulted || server.disabled)
}

/// What is said of a server that may change while the process runs.
fn configured(server: &ServerDraft, found: &Found) -> Configured {
    let ports = match &server.place {
        Where::Inet { ports, .. } => Some(*ports),
        _ => None,
    };
    // A record tells the port of a service.
    let service = server.service().is_some();
    let mapped = !service && ports.is_some_and(|ports| !matches!(ports, Ports::One(1..)));
    let (rise, fall) = (i64::from(server.rise), i64::from(server.fall));
    let health = match server.init_state {
        InitState::FullyUp => rise + fall - 1,
        InitState::Unsaid | InitState::Up => rise,
        InitState::Down => rise - 1,
        InitState::FullyDown => 0,
    };
    Configured {
        // What resolvers find is their affair.
        target: if told(server, found) { Target::None } else { found.target.clone() },
        fqdn: found.fqdn.clone(),
        port: ports.map_or(0, port).into(),
        mapped,
        unresolved: found.unresolved,
        weight: server.weight,
        maxconn: limits(server).1,
        disabled: server.disabled,
        checked: server.check,
        agent: server.agent,
        rise,
        fall,
        // Where nothing will ever prove it, it stays so.
        initial_health: if unproved(server) && !server.check { 0 } else { health },
        initially_down: health < rise,
        initially_up: matches!(server.init_state, InitState::Up | InitState::FullyUp),
        plain: !server.tls.on,
        refuses_tls: server.tls.refused,
    }
}

/// What is said of a server that is alive. A name that resolvers keep fresh is not looked up again, and one
/// that leads nowhere now leads where it led as long as it is the same.
pub(super) fn renewed(
    server: &ServerDraft,
    alive: &model::Server,
    p: &Draft,
    ground: &Ground<'_>,
    notes: &mut Diagnostics,
) -> Configured {
    let was = alive.configured.lock().clone();
    let last = match &**alive.target.load() {
        Target::Inet(address) if server.resolvers.is_some() => Some(address.ip()),
        _ => None,
    };
    let found = target(server, last, p, ground, notes);
    let mut said = configured(server, &found);
    if told(server, &found) {
        if (&said.fqdn, said.port) == (&was.fqdn, was.port) {
            said.unresolved = was.unresolved;
        } else {
            // Until resolvers answer.
            said.target = found.target;
        }
    }
    said
}

/// Whether resolvers tell where a server is.
fn told(server: &ServerDraft, found: &Found) -> bool {
    server.resolvers.is_some() && (found.fqdn.is_some() || server.service().is_some())
}

impl Assembly<'_> {
    /// The servers of a proxy.
    pub(super) fn servers(
        &mut self,
        index: usize,
        p: &Draft,
        all: &[Draft],
        ruleset: &Arc<program::check::Ruleset>,
        notes: &mut Diagnostics,
    ) -> Vec<program::Server> {
        let mut out: Vec<program::Server> = Vec::new();
        for (at, server) in p.servers.iter().enumerate() {
            let Some(state) = self.declared.get(index).and_then(|d| d.servers.get(at)).cloned() else {
                continue;
            };
            let ruleset = &self.server_ruleset(server, p, ruleset, notes);
            let parts = self.server_parts(index, server, p, ruleset, notes);
            let settings = match out.last().map(|s| &s.settings) {
                Some(last) if **last == *server.words => last.clone(),
                _ => server.words.as_slice().into(),
            };
            let track = track(server, p, all, &self.ground, notes);
            let made = finished(server, p, state, (parts, settings, track), ruleset);
            out.push(program::Server { resolvers: self.resolvers_of(server, p, notes), ..made });
        }
        self.log_servers(index, p, &mut out, notes);
        out
    }

    /// What of a server takes expressions and certificates, and what is said of it.
    fn server_parts(
        &mut self,
        index: usize,
        server: &ServerDraft,
        p: &Draft,
        ruleset: &program::check::Ruleset,
        notes: &mut Diagnostics,
    ) -> Parts {
        let send_proxy = self.send_proxy(index, server, p, notes);
        protocols(server, p, ruleset, &self.ground, notes);
        super::checks::portless(server, p, ruleset, notes);
        let pool_conn_name =
            server.pool_conn_name.as_ref().and_then(|d| self.name_expression(index, d, server, p, notes));
        if let Some(sni) = server.tls.sni.as_ref().filter(|_| !server.tls.able) {
            // Nobody asks for the name, but it has to be one.
            drop(self.name_expression(index, sni, server, p, notes));
        }
        let in_checks =
            ruleset.steps.iter().any(|s| matches!(s, program::check::Step::Connect { ssl: true, .. }));
        let connector = self.connector(server, p, in_checks, notes);
        let tls = self.server_tls(index, server, p, connector.as_ref(), notes);
        super::checks::fast_open(server, p, &self.ground, notes);
        Parts { send_proxy, pool_conn_name, connector, tls }
    }

    /// The check of a server: a section's, or its backend's.
    fn server_ruleset(
        &self,
        server: &ServerDraft,
        p: &Draft,
        own: &Arc<program::check::Ruleset>,
        notes: &mut Diagnostics,
    ) -> Arc<program::check::Ruleset> {
        let Some(name) = &server.healthcheck else { return own.clone() };
        let found = self.healthchecks.iter().find(|(known, _)| known == name);
        if found.is_none() {
            let at = self.ground.place(server.span);
            let label = server.label(p);
            notes.push(crate::healthcheck::missing(name, &server.name, &at, &label, server.span));
        }
        found.map_or_else(|| own.clone(), |(_, rules)| rules.clone())
    }

    /// The section that keeps the name of a server fresh.
    fn resolvers_of(&self, server: &ServerDraft, p: &Draft, notes: &mut Diagnostics) -> Option<u32> {
        let named = server.resolvers.as_ref()?;
        let at = self.resolvers.iter().position(|r| r.name == named.name);
        if at.is_none() {
            let text = format!(
                "{}, server '{}': unable to find required resolvers '{}'",
                p.label(),
                server.name,
                named.name
            );
            notes.push(refusal(named.span, text));
        }
        at.and_then(|at| u32::try_from(at).ok())
    }

    fn send_proxy(
        &mut self,
        index: usize,
        server: &ServerDraft,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Option<SendProxy> {
        let draft = &server.send_proxy;
        let version = draft.version()?;
        let mut tlvs = Vec::new();
        for (kind, format) in &draft.tlvs {
            if let Some(format) =
                self.value_format(index, format, p, lang::places::Place::ServerConnect, notes)
            {
                tlvs.push((*kind, format));
            }
        }
        Some(SendProxy { version, options: draft.options, tlvs })
    }
}

/// What of a server takes expressions and certificates.
struct Parts {
    send_proxy: Option<SendProxy>,
    pool_conn_name: Option<Arc<lang::Expr>>,
    connector: Option<Arc<tls::Connector>>,
    tls: Option<program::server::ServerTls>,
}

/// A server with all its parts.
fn finished(
    server: &ServerDraft,
    p: &Draft,
    state: Arc<model::Server>,
    (parts, settings, track): (Parts, program::server::Settings, Option<(u32, u32)>),
    ruleset: &Arc<program::check::Ruleset>,
) -> program::Server {
    let place = match &server.place {
        Where::Inet { host, ports } => Some((matches!(host, Host::Ip(ip) if ip.is_unspecified()), *ports)),
        _ => None,
    };
    program::Server {
        added: None,
        plain: server.plain.clone(),
        tls: parts.tls,
        name: state.name.clone(),
        state,
        transparent: place.is_some_and(|(any, _)| any),
        backup: server.backup,
        cookie: server.cookie.clone(),
        maxconn: limits(server).1,
        minconn: limits(server).0,
        check: check(server, place.map(|(_, ports)| ports), ruleset, parts.connector),
        agent: agent(server),
        probed: Probed {
            check_addr: server.check_addr.map(|a| a.ip()),
            check_port: server.check_port,
            agent_addr: server.agent_addr.or(server.check_addr.map(|a| a.ip())),
            agent_port: server.agent_port.or(server.check_port),
        },
        track,
        observe: server.observe.filter(|o| *o == program::server::Observe::Layer4 || p.mode == Mode::Http),
        source: server.source.clone().or_else(|| p.source.clone()),
        send_proxy: parts.send_proxy,
        pool_conn_name: parts.pool_conn_name,
        proto: server.proto.map_or(Proto::Usual, Mux::unasked),
        log_sink: None,
        fqdn: match &server.place {
            Where::Inet { host: Host::Name(name, _), .. } => Some(name.as_str().into()),
            _ => None,
        },
        resolvers: None,
        service: server.service().map(Into::into),
        forced_id: server.forced_id,
        settings,
    }
}

/// `minconn` and `maxconn`. A lower bound that isn't below the upper one is the limit itself, and nothing
/// follows the load.
fn limits(server: &ServerDraft) -> (u32, u32) {
    let most = server.maxconn.max(server.minconn);
    (if server.minconn < most { server.minconn } else { 0 }, most)
}

/// `proto` has to fit the backend's mode, `check-proto` what the check speaks.
fn protocols(
    server: &ServerDraft,
    p: &Draft,
    ruleset: &program::check::Ruleset,
    ground: &Ground<'_>,
    notes: &mut Diagnostics,
) {
    let name = &server.name;
    let traffic = server.proto.map(|mux| (mux, mux.towards_servers(p.mode)));
    let mode = if ruleset.http { Mode::Http } else { Mode::Tcp };
    let checks = server.check_proto.filter(|_| server.check).map(|mux| (mux, mux.towards_servers(mode)));
    if let Some((mux, Fit::Unusable)) = traffic {
        let text = format!(
            "{} : MUX protocol '{}' is not usable for server '{name}' at [{}].",
            p.label(),
            mux.name(),
            ground.place(server.span)
        );
        notes.push(refusal(server.span, text));
    }
    if let Some((_, Fit::Unusable)) = checks {
        let text = format!(
            "config: {}: server '{name}' uses an incompatible MUX protocol for the selected check type",
            p.label()
        );
        notes.push(refusal(server.span, text));
    }
}

fn check(
    server: &ServerDraft,
    ports: Option<Ports>,
    ruleset: &Arc<program::check::Ruleset>,
    connector: Option<Arc<tls::Connector>>,
) -> Option<Check> {
    if !server.check {
        return None;
    }
    let port = match ports {
        Some(Ports::One(port)) => port,
        _ => 0,
    };
    let given = |a: &SocketAddr| (a.port() > 0).then_some(a.port());
    let addr = server
        .check_addr
        .map(|a| SocketAddr::new(a.ip(), server.check_port.filter(|p| *p > 0).or(given(&a)).unwrap_or(port)));
    let plain = server.check_addr.is_none() && server.check_port.is_none();
    Some(Check {
        inter: server.inter,
        fastinter: server.fastinter,
        downinter: server.downinter,
        rise: server.rise,
        fall: server.fall,
        addr,
        port: server.check_port,
        tls: server.tls.check.unwrap_or(plain && server.tls.on),
        sni: server.tls.check_sni.clone(),
        sni_auto: server.tls.check_auto && ruleset.http,
        alpn: server.tls.check_alpn.clone(),
        // The protocol stays that of the service where the port is another one; only TLS and PROXY headers
        // don't.
        proto: server.check_proto.or(server.proto).map_or(Proto::Usual, Mux::unasked),
        connector,
        // Checks of the service itself speak as traffic does.
        send_proxy: server.check_send_proxy || plain && server.send_proxy.version().is_some(),
        via_socks4: server.check_via_socks4,
        reuse_pool: server.check_reuse_pool && plain && as_traffic(server, ruleset),
        pool_name: server.check_pool_conn_name.clone().or_else(|| server.tls.check_sni.clone()),
        ruleset: ruleset.clone(),
    })
}

/// Whether HTTP checks connect as traffic does: nothing is said about it, neither for the server nor in
/// rules.
fn as_traffic(server: &ServerDraft, rules: &program::check::Ruleset) -> bool {
    let special = server.check_send_proxy
        || server.check_via_socks4
        || server.tls.check.is_some_and(|check| check || server.tls.on)
        || server.tls.check_alpn.is_some();
    let connects = rules.steps.iter().any(|s| matches!(s, program::check::Step::Connect { .. }));
    rules.http && !special && !connects
}

fn agent(server: &ServerDraft) -> Option<Agent> {
    let port = server.agent_port.filter(|port| server.agent && *port > 0)?;
    Some(Agent {
        inter: server.agent_inter.unwrap_or(server.inter),
        addr: server.agent_addr.map(|ip| SocketAddr::new(ip, port)),
        port,
        send: server.agent_send.clone(),
    })
}

fn track(
    server: &ServerDraft,
    p: &Draft,
    all: &[Draft],
    ground: &Ground<'_>,
    notes: &mut Diagnostics,
) -> Option<(u32, u32)> {
    let named = server.track.as_ref()?;
    let label = format!("[{}] : {}", ground.place(server.span), server.label(p));
    let mut fail = |text: String| {
        notes.push(Diagnostic::alert(named.span, format!("{label} : {text}")).styled(Style::Bare));
        None
    };
    let (proxy, name) = named.name.split_once('/').unwrap_or((&p.name, &named.name));
    let Some(proxy_at) = all.iter().position(|d| d.kind.is_back() && *d.name == *proxy) else {
        return fail(format!("unable to find required proxy '{proxy}' for tracking."));
    };
    let Some(at) = all.get(proxy_at)?.servers.iter().position(|s| *s.name == *name) else {
        return fail(format!("unable to find required server '{name}' for tracking."));
    };
    let tracked = all.get(proxy_at)?.servers.get(at)?;
    if !tracked.check && !tracked.agent && tracked.track.is_none() {
        return fail(format!(
            "unable to use {proxy}/{name} for tracking as it does not have any check nor agent enabled."
        ));
    }
    if std::ptr::eq(tracked, server) {
        return fail("unable to track itself.".into());
    }
    Some((u32::try_from(proxy_at).ok()?, u32::try_from(at).ok()?))
}
