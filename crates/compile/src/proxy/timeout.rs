//! `timeout` (manual, section 4.2).

use std::time::Duration;

use program::timeouts::Timeouts;

use super::entry;
use crate::draft::Draft;
use crate::keyword::{Keyword, Places};
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
}

const fn timeout_of(
    name: &'static str,
    front: Option<bool>,
    field: fn(&mut Timeouts) -> &mut Option<Duration>,
) -> Timeout {
    Timeout { name, front, field }
}

/// All kinds.
pub(crate) const TIMEOUTS: &[Timeout] = &[
    timeout_of("client", Some(true), |t| &mut t.client),
    timeout_of("server", Some(false), |t| &mut t.server),
    timeout_of("connect", Some(false), |t| &mut t.connect),
    timeout_of("check", Some(false), |t| &mut t.check),
    timeout_of("queue", Some(false), |t| &mut t.queue),
    timeout_of("client-hs", Some(true), |t| &mut t.client_hs),
    timeout_of("handshake", Some(true), |t| &mut t.client_hs),
    timeout_of("http-keep-alive", None, |t| &mut t.http_keep_alive),
    timeout_of("http-request", None, |t| &mut t.http_request),
    timeout_of("tunnel", Some(false), |t| &mut t.tunnel),
    timeout_of("tarpit", None, |t| &mut t.tarpit),
    timeout_of("client-fin", Some(true), |t| &mut t.client_fin),
    timeout_of("server-fin", Some(false), |t| &mut t.server_fin),
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
        let gone = matches!(what, "clitimeout" | "srvtimeout" | "contimeout" | "retry" | "resolve");
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
