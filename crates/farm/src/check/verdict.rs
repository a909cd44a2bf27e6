//! From the result of a check to its consequences.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use model::check::{CheckResult, CheckStatus};
use model::events::{self, Checked, Detail};
use model::server::{Op, admin};
use program::Server;

use super::health::{self, Limits, Outcome};
use super::text::{self, Kind};
use super::words::{Report, Weight};
use crate::At;
use crate::FarmWorker;
use crate::state::told::{self, tell};
use crate::state::{Changes, limits};
use program::log::level;

/// Takes the result of a health check in.
pub fn checked(worker: &Rc<FarmWorker>, at: At, result: CheckResult) {
    let changes = Changes::begin(worker);
    let server = changes.server(at);
    // It may have been put into maintenance, or its checks off, meanwhile.
    if !server.state.check_enabled.load(Relaxed) || server.state.admin() & admin::MAINT != 0 {
        return;
    }
    let outcome = match result.status {
        // A server that is down does not come back by that.
        CheckStatus::L7OkCond if server.state.op() == Op::Stopped => Outcome::Neutral,
        CheckStatus::L7OkCond => Outcome::Conditional,
        s if s.passed() => Outcome::Passed,
        _ => Outcome::Failed,
    };
    let silent = result.status == CheckStatus::L4Timeout;
    count(worker, &changes, at, Kind::Health, outcome, result);
    drop(changes);
    if silent {
        crate::names::doubt(worker, at);
    }
}

/// Takes a failure in that traffic showed; `value` is the health to count down from.
pub fn observed(worker: &Rc<FarmWorker>, at: At, value: i64, result: CheckResult) {
    let changes = Changes::begin(worker);
    changes.server(at).state.health.store(value, Relaxed);
    count(worker, &changes, at, Kind::Health, Outcome::Failed, result);
}

/// Takes the answer of an agent in, or how it failed to answer.
pub fn agent(worker: &Rc<FarmWorker>, at: At, mut result: CheckResult, report: Option<&Report>) {
    let changes = Changes::begin(worker);
    let server = changes.server(at);
    if !server.state.agent_enabled.load(Relaxed) {
        return;
    }
    let mut outcome = Outcome::Neutral;
    if let Some(report) = report {
        if let Some(wanted) = report.admin {
            changes.set_admin(at, wanted);
        }
        if let Some(weight) = report.weight {
            let weight = weight_of(&server, weight);
            let proxy = worker.farm.program.proxy(at.proxy);
            let initial = server.state.initial_weight.load(Relaxed);
            if !proxy.has_static_weights() || weight == 0 || weight == initial {
                changes.set_weight(at, weight);
            }
        }
        if let Some(maxconn) = report.maxconn {
            server.state.maxconn.store(maxconn, Relaxed);
            crate::queue::admit_next(worker, at.proxy, at.server);
        }
        outcome = explain(report, &mut result);
    }
    count(worker, &changes, at, Kind::Agent, outcome, result);
}

/// The weight that an agent means.
fn weight_of(server: &Server, weight: Weight) -> u32 {
    match weight {
        Weight::Absolute(n) => n.min(256),
        Weight::Percent(p) => {
            let whole = u64::from(server.state.initial_weight.load(Relaxed));
            u32::try_from(whole * u64::from(p) / 100).map_or(256, |w| w.min(256))
        }
    }
}

/// What a report means for health, and how the statistics show it.
fn explain(report: &Report, result: &mut CheckResult) -> Outcome {
    result.status = CheckStatus::Forced;
    let mut outcome = Outcome::Neutral;
    let mut detail = String::new();
    if let Some((up, word)) = &report.health {
        result.status = if *up { CheckStatus::L7Ok } else { CheckStatus::L7Sts };
        outcome = if *up { Outcome::Passed } else { Outcome::Failed };
        let said = if report.unknown.is_some() { None } else { report.warning };
        let said = said.or(report.description.as_deref()).or(report.unknown.as_deref());
        detail = format!("via agent : {word}");
        if let Some(said) = said {
            detail.push_str(&format!(" ({said})"));
        }
    } else if let Some(word) = &report.unknown {
        detail = format!("agent reports an error : {word}");
    } else if let Some(warning) = report.warning {
        detail = format!("agent warns : {warning}");
    }
    result.detail = detail.chars().take(LONGEST).collect();
    outcome
}

/// Most of what an agent says that is shown.
const LONGEST: usize = 127;

fn count(
    worker: &Rc<FarmWorker>,
    changes: &Changes<'_>,
    at: At,
    kind: Kind,
    outcome: Outcome,
    result: CheckResult,
) {
    let server = changes.server(at);
    let state = &server.state;
    let (limits, health) = match kind {
        Kind::Health => (limits(&server), &state.health),
        Kind::Agent => (Limits::AGENT, &state.agent_health),
    };
    let before = health.load(Relaxed);
    let (after, verdict) = health::step(limits, before, outcome);
    health.store(after, Relaxed);
    if kind == Kind::Health && outcome == Outcome::Failed && before > 0 {
        state.failed_checks.fetch_add(1, Relaxed);
    }
    let mut why = text::reason(&result);
    let fresh = keep(&server, kind, &result);
    let proxy = &*worker.farm.program.proxy(at.proxy);
    // Said once: at the first result of its kind, and at each step of the counter.
    let worth = (fresh || after != before) && result.status != CheckStatus::Forced;
    let agent = kind == Kind::Agent;
    let told =
        || Checked { result: result.clone(), agent, health: after, limits: (limits.rise, limits.fall) };
    if worth {
        tell(worker, at, events::kind::CHECK, || Detail::Check(told()));
    }
    if proxy.options.log_health_checks {
        why.clear();
        if worth {
            let line = text::checked(kind, (&proxy.name, &server), &result, limits, after);
            worker.above.console("WARNING", &line);
            worker.above.line(at.proxy, level::NOTICE, &line);
        }
    }
    if let Some(verdict) = verdict {
        // What a line of its own tells of checks is told once, as in HAProxy.
        if !proxy.options.log_health_checks && told::is_wanted(worker, at, events::kind::STATE) {
            changes.led_by(told());
        }
        changes.settle(at, verdict, other(&server, kind), &why);
    }
}

/// Notes the result for the statistics; whether its status is another than before.
fn keep(server: &Server, kind: Kind, result: &CheckResult) -> bool {
    let mut known = server.state.status.lock();
    let last = super::outcome(kind, &mut known);
    let fresh = last.status != result.status;
    // What traffic shows does not end a check.
    let at_work = last.at_work && result.status == CheckStatus::Analyzed;
    last.clone_from(result);
    last.at_work = at_work;
    if last.fleeting {
        last.detail.clear();
    }
    fresh
}

/// What the other check of the server says.
fn other(server: &Server, kind: Kind) -> bool {
    let state = &server.state;
    match kind {
        Kind::Health => !server.asks_agent() || Limits::AGENT.is_up(state.agent_health.load(Relaxed)),
        Kind::Agent => {
            server.check.is_none()
                || !state.check_enabled.load(Relaxed)
                || limits(server).is_up(state.health.load(Relaxed))
        }
    }
}

/// Whether a server is up for its checks: `disable-on-404` matters only then.
pub fn runs(server: &Server) -> bool {
    server.state.op() != Op::Stopped
}
