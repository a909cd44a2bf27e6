//! What a whole proxy shows, and the whole configuration: warnings that HAProxy gives after reading everything, in its
//! order.

use program::Mode;
use program::proxy::Proxy;
use syntax::Diagnostics;

use super::remark;
use crate::draft::{Draft, Kind};

/// Looks at all proxies once everything is known, and fills in what follows from the whole. `maxconn` is that of proxies
/// that have none.
pub(super) fn whole(proxies: &mut [Proxy], maxconn: u32) {
    for p in proxies.iter_mut() {
        if p.is_frontend && p.maxconn == 0 {
            p.maxconn = maxconn;
        }
        p.state.front.maxconn.store(p.maxconn, std::sync::atomic::Ordering::Relaxed);
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

/// What a proxy lacks.
pub(super) fn lacking(p: &Draft, state_file_set: bool, notes: &mut Diagnostics) {
    if p.disabled {
        return;
    }
    if p.kind == Kind::Frontend && p.binds.is_empty() {
        let text = format!(
            "{} has no 'bind' directive. Please declare it as a backend if this was intended.",
            p.label()
        );
        notes.push(remark(p.span, text));
    }
    timeouts(p, notes);
    state_file(p, state_file_set, notes);
}

/// The state of servers is asked from a file that nobody named.
fn state_file(p: &Draft, set: bool, notes: &mut Diagnostics) {
    let wanted = p.load_state == Some(program::proxy::LoadState::Global);
    if wanted && !set {
        let text = format!(
            "backend '{}' configured to load server state file from global section 'server-state-file' directive. Unfortunately, 'server-state-file' is not set!",
            p.name
        );
        notes.push(remark(p.span, text));
    }
}

fn timeouts(p: &Draft, notes: &mut Diagnostics) {
    let t = &p.timeouts;
    let front = p.kind.is_front() && t.client.is_none();
    let back = p.kind.is_back() && !p.servers.is_empty() && (t.connect.is_none() || t.server.is_none());
    let listen = p.kind == Kind::Listen && (t.client.is_none() || t.connect.is_none() || t.server.is_none());
    if front || back || listen {
        let text = format!(
            "missing timeouts for {}.\n   | While not properly invalid, you will certainly encounter various problems\n   | with such a configuration. To fix this, please ensure that all following\n   | timeouts are set to a non-zero value: 'client', 'connect', 'server'.",
            p.label()
        );
        notes.push(remark(p.span, text));
    }
}

/// A cookie means nothing in TCP mode.
pub(super) fn http_cookie(p: &Draft, notes: &mut Diagnostics) {
    if p.mode != Mode::Http && !p.switches && !p.disabled && p.cookie.is_some() {
        let text = format!("cookie will be ignored for {} (needs 'mode http').", p.label());
        notes.push(remark(p.span, text));
    }
}

/// Settings that mean nothing in TCP mode; `rules` are the sets of rules that don't.
pub(super) fn http_only(p: &Draft, rules: &[&str], notes: &mut Diagnostics) {
    if p.mode == Mode::Http || p.switches || p.disabled {
        return;
    }
    let label = p.label();
    let mut say = |present: bool, text: String| {
        if present {
            notes.push(remark(p.span, text));
        }
    };
    say(p.stats.is_some(), format!("'stats' statement ignored for {label} as it requires HTTP mode."));
    say(
        p.monitor_uri.is_some(),
        format!("'monitor-uri' statement ignored for {label} as it requires HTTP mode."),
    );
    for set in rules {
        say(true, format!("'{set}' rules ignored for {label} as they require HTTP mode."));
    }
    let declared = p.req_captures.iter().chain(&p.res_captures).any(|s| s.rule.is_none());
    let captures = declared || p.capture_cookie.is_some();
    say(captures, format!("'capture' statement ignored for {label} as it requires HTTP mode."));
}

/// Cookies of servers mean nothing in TCP mode.
pub(super) fn server_cookies(p: &Draft, notes: &mut Diagnostics) {
    for server in p.servers.iter().filter(|s| p.mode != Mode::Http && !p.switches && s.cookie.is_some()) {
        let text =
            format!("{} : ignoring cookie for server '{}' as HTTP mode is disabled.", p.label(), server.name);
        notes.push(remark(server.span, text));
    }
}

/// Options that mean nothing in TCP mode; HAProxy tells of them after all else.
pub(super) fn http_options(drafts: &[Draft], notes: &mut Diagnostics) {
    for p in drafts.iter().filter(|p| p.mode != Mode::Http && !p.switches && !p.disabled) {
        for (present, option) in
            [(p.forwardfor.is_some(), "forwardfor"), (p.originalto.is_some(), "originalto")]
        {
            if present {
                let text = format!("'option {option}' ignored for {} as it requires HTTP mode.", p.label());
                notes.push(remark(p.span, text));
            }
        }
    }
}
