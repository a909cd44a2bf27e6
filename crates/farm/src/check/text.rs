//! What the log says about servers: the wording is HAProxy's, as observed, because people match on it.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use model::check::{CheckResult, CheckStatus};
use program::Server;

use super::health::Limits;

/// Which check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `check`.
    Health,
    /// `agent-check`.
    Agent,
}

/// `, reason: Layer7 wrong status, code: 500, info: "...", check duration: 0ms`.
pub fn reason(result: &CheckResult) -> String {
    let mut out = cause(result);
    if !result.detail.is_empty() {
        out.push_str(", info: \"");
        escape(&result.detail, &mut out);
        out.push('"');
    }
    out + &duration(result)
}

/// The first part of a reason: `, reason: Layer7 wrong status, code: 500`.
pub(crate) fn cause(result: &CheckResult) -> String {
    let code = if result.status.has_code() { format!(", code: {}", result.code) } else { String::new() };
    format!(", reason: {}{code}", result.status.text())
}

/// The last part of a reason: `, check duration: 0ms`.
pub(crate) fn duration(result: &CheckResult) -> String {
    match result.status {
        CheckStatus::Analyzed => String::new(),
        _ => format!(", check duration: {}ms", result.duration_ms),
    }
}

/// Appends what a peer said, with everything but plain printable characters as `<0A>`: it must not end the
/// line or the quotes that it stands in.
fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'"' | 0..=0x1f | 0x7f.. => {
                let _ = write!(out, "<{byte:02X}>");
            }
            _ => out.push(char::from(byte)),
        }
    }
}

/// How a check went.
pub(crate) fn outcome(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::L7OkCond => "conditionally succeeded",
        s if s.passed() => "succeeded",
        _ => "failed",
    }
}

/// The line of `option log-health-checks`.
pub fn checked(
    kind: Kind,
    (proxy, server): (&str, &Server),
    result: &CheckResult,
    limits: Limits,
    value: i64,
) -> String {
    let kind = match kind {
        Kind::Health => "Health",
        Kind::Agent => "Agent",
    };
    let backup = if server.backup { "backup " } else { "" };
    let how = outcome(result.status);
    let (at, of) = limits.progress(value);
    let state = standing(server, limits.is_up(value));
    let server = &server.name;
    let reason = reason(result);
    format!("{kind} check for {backup}server {proxy}/{server} {how}{reason}, status: {at}/{of} {state}.")
}

/// The state of a server behind a check. One without weight gets no new sessions.
fn standing(server: &Server, up: bool) -> &'static str {
    match up {
        true if server.state.weight.load(Relaxed) == 0 => "DRAIN",
        true => "UP",
        false => "DOWN",
    }
}

/// How many servers a backend has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Usable servers that are no backups.
    pub active: usize,
    /// Usable backups.
    pub backup: usize,
}

impl Left {
    fn append(self, word: &str, out: &mut String) {
        let Left { active, backup } = self;
        let _ = write!(out, " {active} active and {backup} backup servers {word}.");
        if active == 0 && backup > 0 {
            out.push_str(" Running on backup.");
        }
    }
}

/// What a change left behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Servers.
    pub left: Left,
    /// Requests on the server.
    pub sessions: u32,
    /// Requests that were sent to look for another server, or that this one took over.
    pub requeued: usize,
    /// Requests that still wait for it.
    pub queued: usize,
}

/// The tail of a line about a server that was lost.
pub fn lost(rest: &Rest) -> String {
    let mut out = String::new();
    rest.left.append("left", &mut out);
    let Rest { sessions, requeued, queued, .. } = rest;
    let _ = write!(out, " {sessions} sessions active, {requeued} requeued, {queued} remaining in queue.");
    out
}

/// The tail of a line about a server that is there.
pub fn there(rest: &Rest) -> String {
    let mut out = String::new();
    rest.left.append("online", &mut out);
    let _ = write!(out, " {} sessions requeued, {} total in queue.", rest.requeued, rest.queued);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_what_is_known() {
        let mut r = CheckResult {
            status: CheckStatus::L7Sts,
            code: 500,
            duration_ms: 3,
            detail: "Oops".into(),
            ..CheckResult::default()
        };
        assert_eq!(
            reason(&r),
            ", reason: Layer7 wrong status, code: 500, info: \"Oops\", check duration: 3ms"
        );
        r = CheckResult { status: CheckStatus::L4Ok, ..CheckResult::default() };
        assert_eq!(reason(&r), ", reason: Layer4 check passed, check duration: 0ms");
        let said = "x\r\n\"y\u{e9}";
        r = CheckResult { status: CheckStatus::Analyzed, detail: said.into(), ..CheckResult::default() };
        assert_eq!(reason(&r), ", reason: Health analyze, info: \"x<0D><0A><22>y<C3><A9>\"");
    }

    #[test]
    fn backups_are_mentioned_when_they_carry_the_load() {
        let rest = Rest { left: Left { active: 0, backup: 1 }, sessions: 2, requeued: 1, queued: 0 };
        assert_eq!(
            lost(&rest),
            " 0 active and 1 backup servers left. Running on backup. 2 sessions active, 1 requeued, 0 remaining in queue."
        );
        assert_eq!(
            there(&Rest { left: Left { active: 1, backup: 1 }, ..rest }),
            " 1 active and 1 backup servers online. 1 sessions requeued, 0 total in queue."
        );
    }
}
