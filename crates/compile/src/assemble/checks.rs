//! What a whole proxy shows, and the whole configuration: warnings that HAProxy gives after reading
//! everything, in its order.

use std::net::IpAddr;

use program::Mode;
use program::check::{Ruleset, Step};
use program::proxy::Proxy;
use syntax::addr::{Host, Ports};
use syntax::{Diagnostic, Diagnostics, Level, Style};

use crate::draft::{CheckKind, Draft, ServerDraft, Where};
use crate::notes::{refusal, remark};
use crate::proxy::option::SWITCHES;

/// Cuts captured cookies to `tune.http.cookielen`.
pub(super) fn captured(proxies: &mut [Proxy], most: usize, notes: &mut Diagnostics) {
    for proxy in proxies.iter_mut().filter(|proxy| proxy.is_frontend && !proxy.disabled) {
        if let Some(capture) = proxy.capture_cookie.as_mut().filter(|capture| capture.len > most) {
            capture.len = most;
            let text = format!("truncating capture length to {most} bytes for frontend '{}'.", proxy.name);
            notes.push(Diagnostic::plain(Level::Warning, text).styled(Style::Bare).settling());
        }
        proxy.capture_cookie.take_if(|capture| capture.len == 0);
    }
}

/// Looks at all proxies once everything is known, and fills in what follows from the whole. `maxconn` is that
/// of proxies that have none.
pub(super) fn whole(proxies: &mut [Proxy], maxconn: u32) {
    for p in proxies.iter_mut() {
        if p.is_frontend && p.maxconn == 0 {
            p.maxconn = maxconn;
        }
    }
    fullconn(proxies);
}

/// `fullconn` not given: a tenth of the connections of all frontends that may send here, rounded up.
fn fullconn(proxies: &mut [Proxy]) {
    let mut sums = vec![0u64; proxies.len()];
    for p in proxies.iter().filter(|p| p.is_frontend) {
        let any = p.switching.iter().any(|s| matches!(s.to, program::proxy::SwitchTo::Format(_)));
        let mut targets: Vec<usize> = p
            .switching
            .iter()
            .filter_map(|s| match s.to {
                program::proxy::SwitchTo::Backend(index) => Some(index as usize),
                program::proxy::SwitchTo::Format(_) => None,
            })
            .chain(p.default_backend.map(|index| index as usize))
            .collect();
        if any {
            targets.extend(proxies.iter().enumerate().filter(|(_, b)| b.is_backend).map(|(i, _)| i));
        }
        targets.sort_unstable();
        targets.dedup();
        for index in targets {
            if let Some(sum) = sums.get_mut(index) {
                *sum += u64::from(p.maxconn);
            }
        }
    }
    for (p, sum) in proxies.iter_mut().zip(sums) {
        if p.is_backend && p.fullconn == 0 {
            p.fullconn = u32::try_from(sum.div_ceil(10).max(1)).unwrap_or(u32::MAX);
        }
    }
}

/// A server whose checks have an address and know no port: neither its own, nor one of theirs. Checks of a
/// server whose address comes later, or never, are no fault; they fail.
pub(super) fn portless(server: &ServerDraft, p: &Draft, ruleset: &Ruleset, notes: &mut Diagnostics) {
    let (literal, own) = match &server.place {
        Where::Inet { host, ports } => {
            (matches!(host, Host::Ip(ip) if !ip.is_unspecified()), matches!(ports, Ports::One(1..)))
        }
        Where::Unix(_) | Where::Nowhere => (false, false),
    };
    let addressed = literal || server.check_addr.is_some_and(|at| !at.ip().is_unspecified());
    let given = server.check_port.or(server.check_addr.map(|at| at.port())).is_some_and(|port| port > 0);
    if !server.check || !addressed || own || given || p.disabled || ruleset.external.is_some() {
        return;
    }
    let mut connects = ruleset.steps.iter().filter_map(|step| match step {
        Step::Connect { port, addr, .. } => Some(port.is_some() || addr.is_some_and(|at| at.port() > 0)),
        _ => None,
    });
    let end = match (connects.next(), ruleset.steps.is_empty()) {
        (Some(true), _) if connects.all(|known| known) => return,
        (Some(true), _) => ", and a tcp_check rule 'connect' with no port information",
        (_, true) => "",
        (_, false) => " nor tcp_check rule 'connect' with port information",
    };
    let (label, name) = (p.label(), &server.name);
    let text = format!("config: {label}: server '{name}' has neither service port nor check port{end}.");
    notes.push(refusal(server.span, text));
}

/// A frontend that nobody can connect to.
pub(super) fn unbound(p: &Draft, notes: &mut Diagnostics) {
    if p.kind.is_front() && p.binds.is_empty() {
        let text = format!(
            "{} has no 'bind' directive. Please declare it as a backend if this was intended.",
            p.label()
        );
        notes.push(remark(p.span, text));
    }
}

/// The state of servers is asked from a file that nobody named.
pub(super) fn state_file(p: &Draft, set: bool, notes: &mut Diagnostics) {
    let wanted = p.load_state == Some(crate::draft::LoadState::Global);
    if wanted && !set {
        let text = format!(
            "backend '{}' configured to load server state file from global section 'server-state-file' directive. Unfortunately, 'server-state-file' is not set!",
            p.name
        );
        notes.push(remark(p.span, text));
    }
}

/// Timeouts that every proxy should have.
pub(super) fn timeouts(p: &Draft, notes: &mut Diagnostics) {
    let t = &p.timeouts;
    let front = p.kind.is_front() && t.client.is_none();
    let back = p.kind.is_back() && !p.servers.is_empty() && (t.connect.is_none() || t.server.is_none());
    if front || back {
        let text = format!(
            "missing timeouts for {}.\n   | While not properly invalid, you will certainly encounter various problems\n   | with such a configuration. To fix this, please ensure that all following\n   | timeouts are set to a non-zero value: 'client', 'connect', 'server'.",
            p.label()
        );
        notes.push(remark(p.span, text));
    }
}

/// A cookie means nothing in TCP mode.
pub(super) fn http_cookie(p: &Draft, notes: &mut Diagnostics) {
    if p.mode != Mode::Http && !p.switches && p.cookie.is_some() {
        let text = format!("cookie will be ignored for {} (needs 'mode http').", p.label());
        notes.push(remark(p.span, text));
    }
}

/// Settings that mean nothing in TCP mode; `rules` are the sets of rules that don't.
pub(super) fn http_only(p: &Draft, rules: &[&str], notes: &mut Diagnostics) {
    if p.mode == Mode::Http || p.switches {
        return;
    }
    let label = p.label();
    let mut say = |present: bool, text: String| {
        if present {
            notes.push(remark(p.span, text));
        }
    };
    say(p.stats.is_some(), format!("'stats' statement ignored for {label} as it requires HTTP mode."));
    let captures = p.capture_cookie.is_some();
    say(captures, format!("'capture' statement ignored for {label} as it requires HTTP mode."));
    say(
        p.monitor_uri.is_some(),
        format!("'monitor-uri' statement ignored for {label} as it requires HTTP mode."),
    );
    for set in rules {
        say(true, format!("'{set}' rules ignored for {label} as they require HTTP mode."));
    }
}

/// Switches that mean nothing in TCP mode, in the order of their table from its end.
pub(super) fn http_switches(p: &Draft, notes: &mut Diagnostics) {
    if p.mode == Mode::Http || p.switches {
        return;
    }
    // This one is told last.
    let (last, first): (Vec<_>, Vec<_>) =
        SWITCHES.iter().filter(|s| s.dump.ends_with("HTTP")).partition(|s| s.name == "disable-h2-upgrade");
    for switch in first.into_iter().chain(last) {
        let Some(flag) = switch.flag else { continue };
        let here =
            p.kind.is_front() && switch.dump.contains("FE") || p.kind.is_back() && switch.dump.contains("BE");
        if here && *flag(&mut p.options.clone()) {
            let text =
                format!("'option {}' ignored for {} as it requires HTTP mode.", switch.name, p.label());
            notes.push(remark(p.span, text));
        }
    }
}

/// A server that sends data with its first packet can be tried again only where failures of these kinds are.
pub(super) fn fast_open(
    server: &ServerDraft,
    p: &Draft,
    ground: &super::Ground<'_>,
    notes: &mut Diagnostics,
) {
    let retries = &p.retry_on;
    let repeats = retries.conn_failure && retries.empty_response && retries.response_timeout;
    if !server.tfo || repeats {
        return;
    }
    let (at, label) = (ground.place(server.span), server.label(p));
    let text = format!(
        "[{at}] : {label} : server has tfo activated, the backend should be configured with at least 'conn-failure', 'empty-response' and 'response-timeout' or we wouldn't be able to retry the connection on failure."
    );
    notes.push(remark(server.span, text));
}

/// What is said of programs that check servers, and have no check to do it for.
pub(super) fn external_idle(p: &Draft, notes: &mut Diagnostics) {
    let chosen = matches!(p.check, CheckKind::External);
    let words = [("command", &p.external_command), ("path", &p.external_path)];
    for (word, _) in words.iter().filter(|(_, given)| !chosen && given.is_some()) {
        let text = format!(
            "'external-check {word}' will be ignored for {} (requires 'option external-check').",
            p.label()
        );
        notes.push(remark(p.span, text));
    }
}

/// What programs that shall check servers miss; `allowed` and `fork` are what `global` says of them.
pub(super) fn external(p: &Draft, allowed: bool, fork: bool, notes: &mut Diagnostics) {
    if !matches!(p.check, CheckKind::External) {
        return;
    }
    let mut fail = |text: &str| {
        notes.push(refusal(p.span, format!("Proxy '{}' : 'option external-check' {text}", p.name)));
    };
    if !allowed {
        fail("unable to find required 'global.external-check'.");
    }
    if p.external_command.is_none() {
        fail("unable to find required 'external-check command'.");
    }
    if !fork {
        let text = format!(
            "Proxy '{}' : 'insecure-fork-wanted' not enabled in the global section, 'option external-check' will likely fail.",
            p.name
        );
        notes.push(remark(p.span, text));
    }
}

/// Programs are searched for in the folders of `external-check path` only.
pub(super) fn external_path(p: &Draft, notes: &mut Diagnostics) {
    let relative = p.external_command.as_ref().is_some_and(|c| !c.starts_with('/'));
    if relative && p.external_path.is_none() {
        let text = format!(
            "Proxy '{}': 'external-check command' does not have a leading '/' and 'external-check path' is not set.",
            p.name
        );
        notes.push(refusal(p.span, text));
    }
}

/// What the cookie of a server is computed from (`cookie ... dynamic`), if it is.
fn computed(p: &Draft, server: &ServerDraft) -> Option<(IpAddr, Ports)> {
    let cookie = p.cookie.as_ref().filter(|_| p.dynamic_key.is_some())?;
    cookie.dynamic_key.as_ref()?;
    match &server.place {
        Where::Inet { host: Host::Ip(ip), ports } if server.cookie.is_none() && !server.disabled => {
            Some((*ip, *ports))
        }
        _ => None,
    }
}

/// Servers at one address get the same cookie where it is computed: said for each two.
fn equal_cookies(p: &Draft, notes: &mut Diagnostics) {
    let mut places: Vec<_> = p.servers.iter().filter_map(|server| computed(p, server)).collect();
    while let Some(place) = places.pop() {
        for _ in places.iter().filter(|other| **other == place) {
            let text = format!(
                "We generated two equal cookies for two different servers.\nPlease change the secret key for '{}'.",
                p.name
            );
            notes.push(remark(p.span, text));
        }
    }
}

/// Cookies of servers mean nothing in TCP mode, and a cookie of RDP names a server by its address and port.
pub(super) fn server_cookies(p: &Draft, notes: &mut Diagnostics) {
    equal_cookies(p, notes);
    let label = p.label();
    let tcp = p.mode != Mode::Http && !p.switches;
    for server in &p.servers {
        if tcp && server.redir.is_some() {
            let text = format!("{label} : server cannot have cookie or redirect prefix in non-HTTP mode.");
            notes.push(refusal(server.span, text));
        }
        let name = &server.name;
        if tcp && (server.cookie.is_some() || computed(p, server).is_some()) {
            let text = format!("{label} : ignoring cookie for server '{name}' as HTTP mode is disabled.");
            notes.push(remark(server.span, text));
        }
        if p.rdp_cookie.is_some() && !server.place.has_port() {
            let text = format!(
                "{label} : RDP cookie persistence will not work for server '{name}' because it lacks an explicit port number."
            );
            notes.push(remark(server.span, text));
        }
    }
}

/// Options that mean nothing in TCP mode, and orders of filters that are not there; HAProxy tells of them
/// after all else.
pub(super) fn last(drafts: &[Draft], turning: &[usize], ground: &super::Ground<'_>, notes: &mut Diagnostics) {
    for (index, p) in drafts.iter().enumerate().filter(|(_, p)| !p.disabled) {
        if p.mode != Mode::Http && !p.switches && !turning.contains(&index) {
            http_options(p, notes);
        }
        super::filters::check_sequences(p, ground, notes);
    }
}

fn http_options(p: &Draft, notes: &mut Diagnostics) {
    let options = [
        (p.forwarded.is_some() && p.kind.is_back(), "forwarded"),
        (p.forwardfor.is_some(), "forwardfor"),
        (p.originalto.is_some(), "originalto"),
    ];
    for (present, option) in options {
        if present {
            let text = format!("'option {option}' ignored for {} as it requires HTTP mode.", p.label());
            notes.push(remark(p.span, text).settling());
        }
    }
}
