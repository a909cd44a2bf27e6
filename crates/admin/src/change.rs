//! Changes of a server that operators ask for, with all that follows from them: the schedule of the backend, requests
//! that wait, idle connections, the log.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use engine::{Worker, log, queue};
use model::server::{Op, Target, admin};

use crate::cli::call::Place;
use crate::gather::tell_all;

/// `set server ... state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Traffic as usual.
    Ready,
    /// Only what belongs to it already.
    Drain,
    /// Nothing, not even checks.
    Maint,
}

/// `set server ... health`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// As if all checks had passed.
    Up,
    /// As if a check had answered that it stops.
    Stopping,
    /// As if all checks had failed.
    Down,
}

/// Changes the administrative state.
pub fn set_admin(worker: &Rc<Worker>, at: Place, wanted: Wanted) {
    let maint = admin::FMAINT | admin::CMAINT;
    match wanted {
        Wanted::Ready => change(worker, at, 0, maint | admin::FDRAIN),
        Wanted::Drain => change(worker, at, admin::FDRAIN, maint),
        Wanted::Maint => change(worker, at, admin::FMAINT, 0),
    }
}

/// Ends forced maintenance and leaves drain as it is.
pub fn enable(worker: &Rc<Worker>, at: Place) {
    change(worker, at, 0, admin::FMAINT | admin::CMAINT);
}

fn change(worker: &Rc<Worker>, at: Place, set: u32, clear: u32) {
    let state = at.config(&worker.shared).state.clone();
    let old = state.change_admin(set, clear, rt::now());
    let new = state.admin();
    if old == new {
        return;
    }
    let maint = |bits: u32| bits & admin::MAINT != 0;
    match (maint(old), maint(new)) {
        (false, true) => {
            state.set_op(Op::Stopped, rt::now());
            lost(worker, at, "is going DOWN for maintenance.");
        }
        (true, false) => {
            state.set_op(Op::Running, rt::now());
            found(worker, at, "is UP/READY (leaving forced maintenance).");
        }
        _ if new & admin::FDRAIN != 0 => found(worker, at, "enters drain state."),
        _ => found(worker, at, "is UP (leaving forced drain)."),
    }
}

/// Changes the health.
pub fn force_health(worker: &Rc<Worker>, at: Place, forced: Forced) {
    let server = at.config(&worker.shared);
    let (rise, fall) = server.check.as_ref().map_or((1, 1), |c| (i64::from(c.rise), i64::from(c.fall)));
    let (health, op) = match forced {
        Forced::Up => (rise + fall - 1, Op::Running),
        Forced::Stopping => (rise + fall - 1, Op::Stopping),
        Forced::Down => (0, Op::Stopped),
    };
    server.state.health.store(health, Relaxed);
    set_op(worker, at, op);
}

/// Changes what the agent says.
pub fn force_agent(worker: &Rc<Worker>, at: Place, up: bool) {
    set_op(worker, at, if up { Op::Running } else { Op::Stopped });
}

fn set_op(worker: &Rc<Worker>, at: Place, op: Op) {
    let state = at.config(&worker.shared).state.clone();
    if state.op() == op {
        return;
    }
    state.set_op(op, rt::now());
    match op {
        Op::Stopped => lost(worker, at, "is DOWN, changed from CLI."),
        Op::Stopping => found(worker, at, "is stopping, changed from CLI."),
        _ => found(worker, at, "is UP, changed from CLI."),
    }
}

/// Changes the weight.
pub fn set_weight(worker: &Rc<Worker>, at: Place, weight: u32) {
    at.config(&worker.shared).state.weight.store(weight, Relaxed);
    worker.shared.refresh(at.proxy, rt::now());
    queue::admit_next(worker, at.proxy, at.server);
}

/// Changes the limit of requests.
pub fn set_maxconn(worker: &Rc<Worker>, at: Place, maxconn: u32) {
    at.config(&worker.shared).state.maxconn.store(maxconn, Relaxed);
    queue::admit_next(worker, at.proxy, at.server);
}

/// Changes the address.
pub fn set_target(worker: &Rc<Worker>, at: Place, target: Target) {
    at.config(&worker.shared).state.set_target(target);
    flush(at);
    worker.shared.refresh(at.proxy, rt::now());
}

fn flush(at: Place) {
    tell_all(move |w| w.pools.flush(at.proxy, at.server, &at.config(&w.shared).state));
}

fn lost(worker: &Rc<Worker>, at: Place, what: &str) {
    worker.shared.refresh(at.proxy, rt::now());
    queue::redistribute(worker, at.proxy, at.server);
    flush(at);
    line(worker, at, log::ALERT, what);
}

fn found(worker: &Rc<Worker>, at: Place, what: &str) {
    worker.shared.refresh(at.proxy, rt::now());
    queue::admit_next(worker, at.proxy, at.server);
    line(worker, at, log::NOTICE, what);
}

fn line(worker: &Rc<Worker>, at: Place, level: u8, what: &str) {
    let (proxy, server) = (worker.shared.program.proxy(at.proxy), at.config(&worker.shared));
    let backup = if server.backup { "Backup " } else { "" };
    log::proxy_line(
        worker,
        at.proxy,
        level,
        &format!("{backup}Server {}/{} {what}", proxy.name, server.name),
    );
}
