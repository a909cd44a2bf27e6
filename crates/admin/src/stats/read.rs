//! How the figures of the table are read, where that takes more than naming a counter.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use base::fleet::Held;
use base::rate::PeakRate;
use farm::ramp;
use model::check::{CheckResult, CheckStatus};
use model::counter::Counter;
use model::proxy::{Back, Front, FrontState, H1Counters, H2Counters, TlsCounters};
use program::Server;
use program::proto::Proto;
use program::proxy::Balance;

use super::row::{Figure, Kind, Row, tracked as followed};
use super::value::Value;
use crate::server_state;

fn clip(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A gauge of backends and servers.
pub fn gauge(r: &Row<'_>, back: fn(&Back) -> &AtomicU32, server: fn(&model::Server) -> &AtomicU32) -> Value {
    match (r.kind, r.server) {
        (Kind::Backend, _) => back(&r.proxy.state.back).load(Relaxed).into(),
        (_, Some(s)) => server(&s.state).load(Relaxed).into(),
        _ => Value::None,
    }
}

/// `scur`.
pub fn current(r: &Row<'_>) -> Value {
    match (r.kind, r.server, r.bind) {
        (Kind::Frontend, ..) => r.proxy.state.front.current.load(Relaxed).into(),
        (Kind::Backend, ..) => r.proxy.state.back.current.load(Relaxed).into(),
        (_, Some(s), _) => s.state.served.load(Relaxed).into(),
        (_, _, Some((_, b))) => b.state.current.load(Relaxed).into(),
        _ => Value::None,
    }
}

/// `smax`.
pub fn current_max(r: &Row<'_>) -> Value {
    match (r.kind, r.server, r.bind) {
        (Kind::Frontend, ..) => r.proxy.state.front.current_max.load(Relaxed).into(),
        (Kind::Backend, ..) => r.proxy.state.back.current_max.load(Relaxed).into(),
        (_, Some(s), _) => s.state.served_max.load(Relaxed).into(),
        (_, _, Some((_, b))) => b.state.current_max.load(Relaxed).into(),
        _ => Value::None,
    }
}

/// `slim`.
pub fn limit(r: &Row<'_>) -> Value {
    match (r.kind, r.server, r.bind) {
        (Kind::Frontend, ..) => r.proxy.state.front.maxconn.load(Relaxed).into(),
        (Kind::Backend, ..) => r.proxy.fullconn.into(),
        (_, Some(s), _) => positive(s.state.maxconn.load(Relaxed)),
        (_, _, Some((_, b))) => b.maxconn.into(),
        _ => Value::None,
    }
}

/// Nothing for zero.
pub fn positive(n: u32) -> Value {
    (n > 0).then_some(n).into()
}

/// `status`.
pub fn status(r: &Row<'_>) -> Value {
    match (r.kind, r.server, r.bind) {
        (Kind::Frontend, ..) => front_status(&r.proxy.state.front).into(),
        (Kind::Backend, ..) => back_status(r),
        (_, Some(s), _) => server_state::status(&r.shared.program, s).into(),
        (_, _, Some((_, b))) => {
            // A frontend that is disabled shows that itself, its listeners don't.
            let front = &r.proxy.state.front;
            if b.maxconn > 0 && b.state.current.load(Relaxed) >= b.maxconn {
                "FULL".into()
            } else if b.state.waits.load(Relaxed)
                && front.current.load(Relaxed) >= front.maxconn.load(Relaxed)
            {
                // Its own limit would let more in. One that nobody came to meanwhile does not wait.
                "WAITING".into()
            } else {
                "OPEN".into()
            }
        }
        _ => Value::None,
    }
}

fn front_status(front: &Front) -> &'static str {
    match front.state() {
        FrontState::Paused => "PAUSED",
        FrontState::Stopped => "STOP",
        FrontState::Open => "OPEN",
    }
}

fn back_status(r: &Row<'_>) -> Value {
    let (active, backup) = r.usable();
    let all = r.proxy.present().count();
    let word = if all == 0 || active + backup > 0 { "UP" } else { "DOWN" };
    // Content switching passes it by (`unpublish backend`).
    let hidden = if r.proxy.state.back.unpublished.load(Relaxed) { " (UNPUB)" } else { "" };
    if r.filter.no_maint || r.filter.up {
        // Those that are up, though they may have no weight or take nothing new.
        let up = r.proxy.present().filter(|s| s.state.is_up()).count();
        return format!("{word}{hidden} ({up}/{all})").into();
    }
    format!("{word}{hidden}").into()
}

/// `weight`: of a server while it starts slowly only a part, of a backend the sum.
pub fn weight(r: &Row<'_>) -> Value {
    match (r.kind, r.server) {
        (Kind::Backend, _) => r.total_weight().into(),
        (_, Some(s)) => {
            let weight = s.state.weight.load(Relaxed);
            let whole = balance::effective_weight(weight, None).max(1);
            let now = balance::effective_weight(weight, ramp(s, r.now));
            clip((u64::from(weight) * u64::from(now)).div_ceil(u64::from(whole))).into()
        }
        _ => Value::None,
    }
}

/// `uweight`.
pub fn user_weight(r: &Row<'_>) -> Value {
    match (r.kind, r.server) {
        (Kind::Backend, _) => r.full_weight().into(),
        (_, Some(s)) => s.state.weight.load(Relaxed).into(),
        _ => Value::None,
    }
}

/// `act`, `bck`.
pub fn servers(r: &Row<'_>, backup: bool) -> Value {
    match (r.kind, r.server) {
        (Kind::Backend, _) => {
            let (active, backups) = r.usable();
            if backup { backups } else { active }.into()
        }
        (_, Some(s)) => u32::from(s.backup == backup).into(),
        _ => Value::None,
    }
}

/// The server of a row that has a health check, which is not switched off.
pub fn watched<'r>(r: &Row<'r>) -> Option<&'r Server> {
    r.server.filter(|s| s.check.is_some() && s.state.check_enabled.load(Relaxed))
}

/// The server of a row that is being checked: not in maintenance either.
pub fn checked<'r>(r: &Row<'r>) -> Option<&'r Server> {
    watched(r).filter(|s| s.state.admin() & model::server::admin::MAINT == 0)
}

/// The server of a row whose agent is asked.
pub fn with_agent<'r>(r: &Row<'r>) -> Option<&'r Server> {
    r.server.filter(|s| s.asks_agent())
}

/// The outcome of the agent check; before the first one it is being initialised.
pub fn agent_status(s: &Server) -> CheckStatus {
    match s.state.status.lock().agent.status {
        CheckStatus::Unknown => CheckStatus::Init,
        status => status,
    }
}

/// Its short name.
pub fn agent_shown(s: &Server) -> Cow<'static, str> {
    let known = &s.state.status.lock().agent;
    match known.status {
        CheckStatus::Unknown => CheckStatus::Init.code().into(),
        _ => known.shown(),
    }
}

/// The status code of a check that got one.
pub fn code(result: &CheckResult) -> Option<u32> {
    // Negative ones (a program that was killed) are shown as HAProxy shows them: without their sign.
    result.status.has_code().then_some(result.code as u32)
}

/// The time of a check that ended.
pub fn took(result: &CheckResult) -> Option<u64> {
    let ended = !matches!(result.status, CheckStatus::Unknown | CheckStatus::Init);
    ended.then_some(u64::from(result.duration_ms))
}

/// `chkdown`.
pub fn went_down(r: &Row<'_>) -> Value {
    match r.kind {
        Kind::Backend => r.proxy.state.back.went_down.load(Relaxed).into(),
        _ => watched(r).map(|s| s.state.went_down.load(Relaxed)).into(),
    }
}

/// `lastchg`.
pub fn last_change(r: &Row<'_>) -> Value {
    match (r.kind, r.server) {
        (Kind::Backend, _) => r.seconds_since(r.proxy.state.back.last_change.load(Relaxed)).into(),
        (_, Some(s)) => clip(s.state.unchanged_ms(r.now, r.shared.started) / 1000).into(),
        _ => Value::None,
    }
}

/// `downtime`.
pub fn downtime(r: &Row<'_>) -> Value {
    if r.is_back() && r.proxy.present().next().is_none() {
        return Value::None;
    }
    if r.is_back() {
        let back = &r.proxy.state.back;
        let running = match back.up.load(Relaxed) {
            true => 0,
            false => r.now.as_millis().saturating_sub(back.last_change.load(Relaxed)),
        };
        return clip((back.down_ms.load(Relaxed) + running) / 1000).into();
    }
    watched(r).map(|s| clip(s.state.downtime_ms(r.now) / 1000)).into()
}

/// `throttle`.
pub fn throttle(r: &Row<'_>) -> Value {
    // Who takes no new sessions is not on the way to more of them.
    let serves = r.server.filter(|s| !s.state.is_draining());
    let server = serves.and_then(|s| ramp(s, r.now).map(|ramp| (s, ramp)));
    let share = server.map(|(s, ramp)| {
        let weight = s.state.weight.load(Relaxed);
        let (now, whole) =
            (balance::effective_weight(weight, Some(ramp)), balance::effective_weight(weight, None));
        (now * 100 + balance::WEIGHT_SCALE - 1) / whole.max(1)
    });
    share.into()
}

/// `tracked`.
pub fn tracked(r: &Row<'_>) -> Value {
    let via = r.server.and_then(|s| followed(&r.shared.program, s));
    via.map(|(p, s)| format!("{}/{}", p.name, s.name)).into()
}

/// A rate of each kind.
pub fn rate(
    r: &Row<'_>,
    front: fn(&Front) -> &PeakRate,
    back: fn(&Back) -> &PeakRate,
    server: fn(&model::Server) -> &PeakRate,
) -> Value {
    rate_of(r, front, back, server).map(|p| clip(p.read(r.now.as_millis()))).into()
}

/// The peak of a rate of each kind.
pub fn peak(
    r: &Row<'_>,
    front: fn(&Front) -> &PeakRate,
    back: fn(&Back) -> &PeakRate,
    server: fn(&model::Server) -> &PeakRate,
) -> Value {
    rate_of(r, front, back, server).map(PeakRate::peak).into()
}

fn rate_of<'r>(
    r: &Row<'r>,
    front: fn(&Front) -> &PeakRate,
    back: fn(&Back) -> &PeakRate,
    server: fn(&model::Server) -> &PeakRate,
) -> Option<&'r PeakRate> {
    match (r.kind, r.server) {
        (Kind::Frontend, _) => Some(front(&r.proxy.state.front)),
        (Kind::Backend, _) => Some(back(&r.proxy.state.back)),
        (_, Some(s)) => Some(server(&s.state)),
        _ => None,
    }
}

/// A rate of frontends.
pub fn front_rate(r: &Row<'_>, which: fn(&Front) -> &PeakRate) -> Value {
    let rate = r.is_front().then(|| which(&r.proxy.state.front));
    rate.map(|p| clip(p.read(r.now.as_millis()))).into()
}

/// The peak of a rate of frontends.
pub fn front_peak(r: &Row<'_>, which: fn(&Front) -> &PeakRate) -> Value {
    r.is_front().then(|| which(&r.proxy.state.front).peak()).into()
}

/// `hanafail`.
pub fn observed(r: &Row<'_>) -> Value {
    let server = r.server.filter(|s| s.observe.is_some());
    server.map(|s| s.state.counters.sum(|c| &c.observe_failures)).into()
}

/// `req_tot`.
pub fn requests(r: &Row<'_>) -> Value {
    let figure = Figure {
        front: Some(|c| &c.requests),
        back: Some(|c| &c.requests),
        server: Some(|c| &c.requests),
        ..Figure::default()
    };
    if r.is_front() { r.sum(figure) } else { http_only(r, r.sum(figure)) }
}

/// Nothing unless the proxy speaks HTTP.
pub fn http_only(r: &Row<'_>, value: Value) -> Value {
    if r.http() { value } else { Value::None }
}

/// Zero where nothing is counted.
pub fn or_zero(_: &Row<'_>, value: Value) -> Value {
    if value.is_some() { value } else { Value::U64(0) }
}

/// Zero for frontends and backends: what they may count some day.
pub fn no_figure(r: &Row<'_>) -> Value {
    (r.is_front() || r.is_back()).then_some(0u64).into()
}

/// Zero for frontends.
pub fn no_front_figure(r: &Row<'_>) -> Value {
    r.is_front().then_some(0u64).into()
}

/// `lastsess`.
pub fn last_session(r: &Row<'_>) -> Value {
    match (r.kind, r.server) {
        (Kind::Backend, _) => r.age(r.proxy.state.back.last_session.load(Relaxed)),
        (_, Some(s)) => r.age(s.state.last_session.load(Relaxed)),
        _ => Value::None,
    }
}

/// `addr`.
pub fn address(r: &Row<'_>) -> Value {
    if !r.filter.legends {
        return Value::None;
    }
    match (r.server, r.bind) {
        (Some(s), _) => match &**s.state.target.load() {
            model::server::Target::None => Value::None,
            _ => server_state::full_address(s).into(),
        },
        (_, Some((_, b))) => match &b.address {
            program::address::Listen::Tcp(a) => a.to_string().into(),
            program::address::Listen::Fd(n) => match rt::sys::inherited_addr(*n) {
                Some(rt::Addr::Inet(a)) => a.to_string().into(),
                _ => "unix".into(),
            },
            _ => "unix".into(),
        },
        _ => Value::None,
    }
}

/// `cookie`.
pub fn cookie(r: &Row<'_>) -> Value {
    if !r.filter.legends {
        return Value::None;
    }
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    match (r.kind, r.server) {
        (Kind::Backend, _) => r.proxy.cookie.as_ref().map(|c| text(c.name.as_ref())).into(),
        (_, Some(s)) => {
            let computed = s.state.dynamic_cookie.load();
            s.cookie.as_deref().or(computed.as_deref().map(|c| &*c.value)).map(text).into()
        }
        _ => Value::None,
    }
}

/// `mode`.
pub fn mode(r: &Row<'_>) -> &'static str {
    r.proxy.mode.word()
}

/// `algo`.
pub fn algorithm(r: &Row<'_>) -> Value {
    if !r.is_back() || !r.filter.legends {
        return Value::None;
    }
    match &r.proxy.balance {
        Balance::RoundRobin => "roundrobin",
        Balance::StaticRr => "static-rr",
        Balance::LeastConn => "leastconn",
        Balance::First => "first",
        // HAProxy has no word for it.
        Balance::Random(_) => "unknown",
        Balance::Source => "source",
        Balance::Uri(_) => "uri",
        Balance::UrlParam { .. } => "url_param",
        Balance::Header { .. } => "hdr",
        Balance::RdpCookie(_) => "rdp-cookie",
        Balance::Hash(_) => "hash",
        // HAProxy has no words for those of logs.
        Balance::Sticky | Balance::LogHash(_) => "unknown",
    }
    .into()
}

/// Idle connections of a server.
pub fn idle(r: &Row<'_>) -> Value {
    r.server.map(|s| s.state.conns.idle()).into()
}

/// `proto`.
pub fn protocol(r: &Row<'_>) -> Value {
    use program::address::Listen;
    let name = |b: &program::Bind| match &b.address {
        Listen::Tcp(a) if b.mptcp => {
            if a.is_ipv4() {
                "mptcpv4"
            } else {
                "mptcpv6"
            }
        }
        Listen::Tcp(a) if a.is_ipv4() => "tcpv4",
        Listen::Tcp(_) => "tcpv6",
        Listen::Fd(n) => match rt::sys::inherited_addr(*n) {
            Some(rt::Addr::Inet(a)) if a.is_ipv4() => "tcpv4",
            Some(rt::Addr::Inet(_)) => "tcpv6",
            _ => "unix_stream",
        },
        Listen::SockPair(_) => "sockpair",
        Listen::Abns(_) => "abns_stream",
        Listen::Abnsz(_) => "abnsz_stream",
        Listen::Unix(_) => "unix_stream",
    };
    r.bind.map(|(_, b)| name(b)).into()
}

/// A figure of a protocol that is not spoken.
pub fn zero(r: &Row<'_>) -> Value {
    no_figure(r)
}

/// A figure of HTTP/2, of frontends and backends.
pub fn h2(r: &Row<'_>, figure: fn(&H2Counters) -> &Counter) -> Value {
    let state = &r.proxy.state;
    match r.kind {
        Kind::Frontend => Value::U64(state.front.counters.sum(|c| figure(&c.h2))),
        Kind::Backend => Value::U64(state.back.counters.sum(|c| figure(&c.h2))),
        _ => no_figure(r),
    }
}

/// A figure of TLS, which all objects have.
pub fn tls_figure(r: &Row<'_>, figure: fn(&TlsCounters) -> &Counter) -> Value {
    let state = &r.proxy.state;
    Value::U64(match (r.kind, r.server, r.bind) {
        (Kind::Frontend, ..) => state.front.counters.sum(|c| figure(&c.tls)),
        (Kind::Backend, ..) => state.back.counters.sum(|c| figure(&c.tls)),
        (_, Some(s), _) => s.state.counters.sum(|c| figure(&c.tls)),
        (_, _, Some((_, b))) => b.state.counters.sum(|c| figure(&c.tls)),
        _ => 0,
    })
}

fn h1(r: &Row<'_>, front: Value, figure: Figure) -> Value {
    match r.kind {
        _ if !r.http() => no_figure(r),
        Kind::Frontend => front,
        Kind::Backend => r.sum(figure),
        _ => Value::None,
    }
}

/// A figure of HTTP/1, of frontends and backends. Rules may have the connections of a TCP frontend speak it
/// (`switch-mode`).
fn h1_figure(r: &Row<'_>, figure: fn(&H1Counters) -> &Counter) -> Value {
    let state = &r.proxy.state;
    match r.kind {
        _ if !r.http() && !r.is_front() => no_figure(r),
        Kind::Frontend => Value::U64(state.front.counters.sum(|c| figure(&c.h1))),
        Kind::Backend => Value::U64(state.back.counters.sum(|c| figure(&c.h1))),
        _ => Value::None,
    }
}

/// Connections with HTTP/1 now; of a backend those that are used and those that are idle, be it with their
/// client.
pub fn h1_open(r: &Row<'_>) -> Value {
    if r.kind != Kind::Backend || !r.http() || !r.is_back() {
        return h1_figure(r, |c| &c.open_connections);
    }
    let each = |s: &model::Server| {
        let conns = &s.conns;
        u64::from(conns.used()) + u64::from(conns.idle()) + u64::from(conns.private())
    };
    Value::U64(over_http1(r, each, |h2| &h2.open_connections))
}

/// Requests with HTTP/1 that are being read or served; of a backend those on connections that are used.
pub fn h1_open_streams(r: &Row<'_>) -> Value {
    if r.kind != Kind::Backend || !r.http() || !r.is_back() {
        return h1_figure(r, |c| &c.open_streams);
    }
    Value::U64(over_http1(r, |s| u64::from(s.served.load(Relaxed)), |h2| &h2.open_streams))
}

/// What the servers of a backend have in all, less what FastCGI and HTTP/2 have of it.
fn over_http1(r: &Row<'_>, each: fn(&model::Server) -> u64, h2: fn(&H2Counters) -> &Counter) -> u64 {
    let all: u64 = http_servers(r).map(|s| each(&s.state)).sum();
    all.saturating_sub(r.proxy.state.back.counters.sum(|c| h2(&c.h2)))
}

/// The servers of a backend that speak HTTP by its own framing.
fn http_servers<'r>(r: &'r Row<'_>) -> impl Iterator<Item = Held<'r, Server>> {
    r.proxy.present().filter(|s| s.proto != Proto::Fcgi)
}

/// Connections with HTTP/1 so far.
pub fn h1_connections(r: &Row<'_>) -> Value {
    h1_figure(r, |c| &c.connections)
}

/// Requests with HTTP/1 so far.
pub fn h1_streams(r: &Row<'_>) -> Value {
    h1_figure(r, |c| &c.streams)
}

/// Bytes received with HTTP/1: by a frontend from clients, by a backend from servers.
pub fn h1_in(r: &Row<'_>) -> Value {
    let front = r.sum(Figure { front: Some(|c| &c.wire_in), ..Figure::default() });
    h1(r, front, Figure { back: Some(|c| &c.wire_in), ..Figure::default() })
}

/// Bytes sent with HTTP/1: by a frontend to clients, by a backend to servers.
pub fn h1_out(r: &Row<'_>) -> Value {
    let front = r.sum(Figure { front: Some(|c| &c.wire_out), ..Figure::default() });
    h1(r, front, Figure { back: Some(|c| &c.wire_out), ..Figure::default() })
}

/// Bytes that came with HTTP/1 and went through a pipe.
pub fn h1_spliced_in(r: &Row<'_>) -> Value {
    let front = r.sum(Figure { front: Some(|c| &c.spliced_in), ..Figure::default() });
    h1(r, front, Figure { back: Some(|c| &c.spliced_in), ..Figure::default() })
}

/// Bytes that were sent with HTTP/1 from a pipe.
pub fn h1_spliced_out(r: &Row<'_>) -> Value {
    let front = r.sum(Figure { front: Some(|c| &c.spliced_out), ..Figure::default() });
    h1(r, front, Figure { back: Some(|c| &c.spliced_out), ..Figure::default() })
}
