//! `timeout` (manual, section 4.2).

use std::time::Duration;

use program::timeouts::Timeouts;

use crate::draft::Draft;
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step, suspicious};
use crate::units;

/// The keyword of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] =
    &[entry("timeout", Places::ALL, timeout, "How long something may take.", "timeout connect 5s")];

/// One kind of timeout.
pub(crate) struct Timeout {
    /// The word behind `timeout`.
    pub name: &'static str,
    /// `Some(true)`: of frontends only; `Some(false)`: of backends only.
    pub front: Option<bool>,
    /// Where it is kept.
    pub field: fn(&mut Timeouts) -> &mut Option<Duration>,
    /// What it limits, in a sentence.
    pub doc: &'static str,
    /// What holds where it does not stand.
    pub default: &'static str,
}

const fn timeout_of(
    name: &'static str,
    front: Option<bool>,
    field: fn(&mut Timeouts) -> &mut Option<Duration>,
    doc: &'static str,
    default: &'static str,
) -> Timeout {
    Timeout { name, front, field, doc, default }
}

/// All kinds.
pub(crate) const TIMEOUTS: &[Timeout] = &[
    timeout_of("client", Some(true), |t| &mut t.client, "How long a client may be silent.", "none"),
    timeout_of("server", Some(false), |t| &mut t.server, "How long a server may be silent.", "none"),
    timeout_of(
        "connect",
        Some(false),
        |t| &mut t.connect,
        "How long a connection to a server may take.",
        "none",
    ),
    timeout_of(
        "check",
        Some(false),
        |t| &mut t.check,
        "How long a check may take once it is connected.",
        "none: inter limits the whole check",
    ),
    timeout_of(
        "queue",
        Some(false),
        |t| &mut t.queue,
        "How long a request waits for a place at a server.",
        "that of connect",
    ),
    timeout_of(
        "client-hs",
        Some(true),
        |t| &mut t.client_hs,
        "How long a handshake with a client may take.",
        "that of client",
    ),
    timeout_of(
        "http-keep-alive",
        None,
        |t| &mut t.http_keep_alive,
        "How long a connection is kept for the next request.",
        "that of http-request",
    ),
    timeout_of(
        "http-request",
        None,
        |t| &mut t.http_request,
        "How long the head of a request may take, its body too where it is waited for.",
        "that of client",
    ),
    timeout_of(
        "tunnel",
        Some(false),
        |t| &mut t.tunnel,
        "How long both sides of a tunnel may be silent.",
        "those of client and server",
    ),
    timeout_of(
        "tarpit",
        None,
        |t| &mut t.tarpit,
        "How long a request is held that is refused by a tarpit.",
        "that of connect",
    ),
    timeout_of(
        "client-fin",
        Some(true),
        |t| &mut t.client_fin,
        "How long a client may be silent after one side has ended.",
        "that of client",
    ),
    timeout_of(
        "server-fin",
        Some(false),
        |t| &mut t.server_fin,
        "How long a server may be silent after one side has ended.",
        "that of server",
    ),
];

/// Whether the section itself has given the timeout another value than the one it inherited.
fn changed(p: &Draft, entry: &Timeout) -> bool {
    let (mut now, mut before) = (p.timeouts, p.inherited_timeouts);
    (entry.field)(&mut now) != (entry.field)(&mut before)
}

fn timeout(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let what = s.peek();
    let Some(entry) = TIMEOUTS.iter().find(|t| t.name == what) else {
        let near = syntax::nearest(what, TIMEOUTS.iter().map(|t| t.name));
        if let Some(text) = super::removed::timeout(what) {
            return Err(s.fail_at(s.args.here(), text));
        }
        let gone = matches!(what, "retry" | "resolve");
        let text = format!(
            "'timeout' supports 'client', 'server', 'connect', 'check', 'queue', 'handshake', 'http-keep-alive', 'http-request', 'tunnel', 'tarpit', 'client-fin' and 'server-fin' (got '{what}')"
        );
        let near = if gone { None } else { near };
        return Err(s.fail_at(s.args.here(), text).meant(near));
    };
    s.next();
    let name = format!("timeout {}", entry.name);
    let word = s.word(format!("'{name}' expects an integer value (in milliseconds)"))?;
    let ms = s.millis(word, &name, |c| format!("unexpected character '{c}' in '{name}'"))?;
    if let Some(extra) = s.next() {
        return Err(s.fail(format!("'{name}' : unexpected extra argument '{extra}' after value '{word}'.")));
    }
    let side = match entry.front {
        Some(true) if !p.kind.is_front() => Some("frontend"),
        Some(false) if !p.kind.is_back() => Some("backend"),
        _ => None,
    };
    let idle = side.is_some() && !p.kind.is_defaults();
    if let Some(text) = suspicious(&name, word, &p.label()).filter(|_| !idle) {
        s.warn(text);
    }
    if let Some(side) = side.filter(|_| !p.kind.is_defaults()) {
        s.warn(format!("'{name}' will be ignored because {} has no {side} capability", p.label()));
    } else if !p.kind.is_defaults() && changed(p, entry) {
        s.warn(format!("overwriting '{name}' which was already specified"));
    }
    *(entry.field)(&mut p.timeouts) = units::limit(ms);
    Ok(())
}
