//! Which events of servers are mailed, and with which text (manual, `email-alert level`).
//!
//! The text is what HAProxy's example of a script writes, because people filter mails by it; what that script
//! mixes up is put right: a server that starts slowly is up, one that is stopping is not down, and the cause
//! of a change stands apart. When a mail is sent, and as how severe, is as the manual says.

use model::events::{Checked, Detail, Event, kind};
use model::mail::Letter;
use model::server::{Op, admin};
use program::log::level;
use program::{Proxy, Server};

use crate::check::health::Limits;
use crate::check::text;
use crate::{At, FarmWorker};

/// Kinds of events that may be mailed.
const KINDS: u32 = kind::STATE | kind::ADMIN | kind::CHECK;

/// Whether events of these kinds are mailed for a proxy.
pub(crate) fn is_sent(proxy: &Proxy, kinds: u32) -> bool {
    let all = if proxy.options.log_health_checks { KINDS } else { KINDS & !kind::CHECK };
    kinds & all != 0 && proxy.mail.as_ref().is_some_and(|mail| !mail.by_script)
}

/// Writes a mail about an event, if it is one to be mailed.
pub(crate) fn write(worker: &FarmWorker, at: At, proxy: &Proxy, event: &Event) {
    let Some(mail) = proxy.mail.as_ref().filter(|_| is_sent(proxy, event.kind)) else { return };
    let server = &*worker.farm.program.server(at.proxy, at.server);
    let Some((severity, what)) = told(worker, server, event) else { return };
    if severity <= mail.level {
        let text = match event.kind {
            kind::CHECK => what,
            _ => format!("Server {}/{} {what}. {}", proxy.name, server.name, left(worker, at, event)),
        };
        worker.above.mail(Letter { mail: mail.clone(), text: text.into(), when: event.when });
    }
}

/// How severe an event is, and what happened. `None`: nothing to be mailed.
fn told(worker: &FarmWorker, server: &Server, event: &Event) -> Option<(u8, String)> {
    match &event.detail {
        Detail::Nothing => None,
        Detail::Check(checked) => Some((level::INFO, result(server, event, checked))),
        // A maintenance is known to whoever began it.
        Detail::Admin { change: (old, new), .. } => {
            let enters = old & admin::DRAIN == 0 && new & admin::DRAIN != 0 && new & admin::MAINT == 0;
            let via = if new & admin::IDRAIN != 0 { via(worker, server) } else { String::new() };
            enters.then(|| (level::NOTICE, format!("enters drain state{via}")))
        }
        Detail::State { admin: true, .. } => None,
        // The end of a slow start: that it is up was told before.
        Detail::State { change: (Op::Starting, Op::Running), .. } => None,
        Detail::State { check, cause, change: (old, new), .. } => {
            let drained = *old == Op::Stopping || server.state.admin() & admin::DRAIN != 0;
            let (severity, state) = match new {
                Op::Stopped if !drained => (level::ALERT, "DOWN"),
                Op::Stopped => (level::NOTICE, "DOWN"),
                Op::Stopping => (level::NOTICE, "stopping"),
                Op::Starting | Op::Running => (level::NOTICE, "UP"),
            };
            let why = check.as_ref().map(reason).unwrap_or_default();
            let cause =
                if cause.is_empty() || check.is_some() { String::new() } else { format!(", {cause}") };
            Some((severity, format!("is {state}{}{why}{cause}", via(worker, server))))
        }
    }
}

/// The server that this one tracks.
fn via(worker: &FarmWorker, server: &Server) -> String {
    let Some((proxy, tracked)) = server.track else { return String::new() };
    let program = &worker.farm.program;
    format!(" via {}/{}", program.proxy(proxy).name, program.server(proxy, tracked).name)
}

/// What a check found. What the server said stays out of mails.
fn reason(checked: &Checked) -> String {
    text::cause(&checked.result) + &text::duration(&checked.result)
}

/// The result of a check, in one line.
fn result(server: &Server, event: &Event, checked: &Checked) -> String {
    let kind = if checked.agent { "Agent" } else { "Health" };
    let backup = if server.backup { "backup " } else { "" };
    let how = text::outcome(checked.result.status);
    let limits = Limits { rise: checked.limits.0, fall: checked.limits.1 };
    let (reached, of) = limits.progress(checked.health);
    let state = if limits.is_up(checked.health) { "UP" } else { "DOWN" };
    let (proxy, name) = (&event.proxy.0, &event.server.0);
    let reason = reason(checked);
    format!("{kind} check for {backup}server {proxy}/{name} {how}{reason}, status: {reached}/{of} {state}")
}

/// What is left when a server has changed.
fn left(worker: &FarmWorker, at: At, event: &Event) -> String {
    let rest = super::rest(worker, at);
    let (text::Left { active, backup }, sessions, queued) = (rest.left, rest.sessions, rest.queued);
    let requeued = match &event.detail {
        Detail::State { requeued, .. } | Detail::Admin { requeued, .. } => *requeued,
        Detail::Nothing | Detail::Check(_) => 0,
    };
    format!(
        "{active} active and {backup} backup servers left. {sessions} sessions active, {requeued} requeued, {queued} remaining in queue"
    )
}
