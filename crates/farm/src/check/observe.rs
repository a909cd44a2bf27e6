//! Health from traffic (manual, `observe`, `error-limit`, `on-error`).

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use model::check::{CheckResult, CheckStatus};
use model::server::Op;
use program::server::{Observe, OnError, Server};

use super::{health, verdict};
use crate::At;
use crate::FarmWorker;
use crate::state::limits;

/// What a stream saw of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A connection was established.
    Connected,
    /// A connection could not be established.
    ConnectFailed,
    /// A response with this status.
    Response(u16),
    /// No response in time.
    Timeout,
    /// A response that could not be parsed.
    BadResponse,
    /// The connection broke before the response.
    Broken,
}

impl Seen {
    /// Whether it is an error; `None`: of no interest to that mode.
    fn is_error(self, mode: Observe) -> Option<bool> {
        match (mode, self) {
            (Observe::Layer4, Seen::Connected) => Some(false),
            (Observe::Layer4, Seen::ConnectFailed) => Some(true),
            // A connection that stands says nothing of the responses that come through it.
            (Observe::Layer4, _) | (Observe::Layer7, Seen::Connected) => None,
            // "Valid status codes include 100 to 499, 501 and 505."
            (Observe::Layer7, Seen::Response(status)) => Some(!matches!(status, 100..=499 | 501 | 505)),
            (Observe::Layer7, _) => Some(true),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Seen::Connected => "L4 successful connection",
            Seen::ConnectFailed => "L4 unsuccessful connection",
            Seen::Response(_) => "Wrong http response",
            Seen::Timeout => "Read timeout (http)",
            Seen::BadResponse => "Invalid http response (headers)",
            Seen::Broken => "Read error (http)",
        }
    }
}

/// Tells what a stream saw of its server. Costs a look at the configuration where `observe` is not set.
#[inline]
pub fn observe(worker: &Rc<FarmWorker>, proxy: u32, server: u32, seen: Seen) {
    let config = &*worker.farm.program.server(proxy, server);
    if let Some(mode) = config.observe {
        note(worker, At { proxy, server }, config, mode, seen);
    }
}

#[cold]
fn note(worker: &Rc<FarmWorker>, at: At, server: &Server, mode: Observe, seen: Seen) {
    let Some((worker, at)) = &worker.today(at) else { return };
    let at = *at;
    let state = &server.state;
    if server.check.is_none() || !state.check_enabled.load(Relaxed) || state.op() == Op::Stopped {
        return;
    }
    let Some(error) = seen.is_error(mode) else { return };
    if !error {
        if state.consecutive_errors.load(Relaxed) != 0 {
            state.consecutive_errors.store(0, Relaxed);
        }
        return;
    }
    let errors = state.consecutive_errors.fetch_add(1, Relaxed) + 1;
    if errors < server.error_limit {
        return;
    }
    state.consecutive_errors.store(0, Relaxed);
    state.counters.of(worker.index).observe_failures.inc();
    if server.on_error != OnError::FastInter {
        let detail = format!("Detected {errors} consecutive errors, last one was: {}", seen.text());
        let result = CheckResult { status: CheckStatus::Analyzed, detail, ..CheckResult::default() };
        let value = health::before_error(limits(server), state.health.load(Relaxed), server.on_error);
        verdict::observed(worker, at, value, result);
    }
    if state.op() == Op::Stopped {
        // Marked down: the rhythm is that of a server that is down, as HAProxy keeps it.
        return;
    }
    worker.farm.backend(at.proxy).slots[at.server as usize].hurry.notify();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_sees_its_own_layer() {
        use Observe::*;
        assert_eq!(Seen::ConnectFailed.is_error(Layer4), Some(true));
        assert_eq!(Seen::Response(500).is_error(Layer4), None);
        assert_eq!(Seen::Connected.is_error(Layer7), None);
        assert_eq!(Seen::ConnectFailed.is_error(Layer7), Some(true));
        let wrong: Vec<u16> =
            (100..600).filter(|s| Seen::Response(*s).is_error(Layer7) == Some(true)).collect();
        assert!(wrong.contains(&500) && wrong.contains(&503) && wrong.contains(&502));
        assert!([404, 501, 505].iter().all(|s| !wrong.contains(s)));
    }
}
