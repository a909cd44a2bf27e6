//! Changes of a server's state, wherever they come from: checks, agents, traffic, tracked servers, the
//! runtime API.
//!
//! One place makes them all, because each has the same train of consequences: the state itself, the schedule
//! of the backend, requests that wait, idle connections and sessions on every worker, a line in the log, and
//! the servers that track this one. Changes are rare, so they happen one at a time, under one lock of the
//! process; nothing on the way of a request takes it unless `observe` decides that a server failed.

mod mail;
mod naming;
mod reasons;
pub(crate) mod told;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::fleet::Held;
use model::events::{Checked, Detail, kind};
use model::server::{Op, Target, admin};
use model::term::Cause;
use program::Server;
use rt::Mono;

use crate::check::health::{Limits, Verdict, settle};
use crate::check::text::{self, Left, Rest};
use crate::{At, FarmWorker, cookies, on_all, queue};
use program::log::level;
use told::By;

/// What a runtime command makes of a server's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// `health up`.
    Up,
    /// `health stopping`.
    Stopping,
    /// `health down`.
    Down,
}

/// The administrative state that an operator or an agent asks for.
pub use crate::check::words::Wanted;

/// Why administrative bits change, as far as log lines tell it.
#[derive(Clone, Copy)]
enum Why<'t> {
    /// Somebody asked for it.
    Asked,
    /// A server that is tracked has changed.
    Tracked(At),
    /// The name does not lead anywhere any more, and what was found instead.
    Lost(&'t str),
    /// The name leads somewhere again.
    Found,
}

/// What a line says about the origin of a change to the operational state.
const BY_COMMAND: &str = ", changed from CLI";

/// The right to change states: one at a time in the process.
pub struct Changes<'w> {
    worker: &'w Rc<FarmWorker>,
    now: Mono,
    /// The check that leads to the change at hand.
    checked: RefCell<Option<Checked>>,
    /// How many requests had to look for a server anew at the last change.
    requeued: Cell<usize>,
    _turn: MutexGuard<'w, ()>,
}

/// `set server ... state ready|drain|maint`, and the same words of an agent.
pub fn set_admin(worker: &Rc<FarmWorker>, at: At, wanted: Wanted) {
    if let Some((worker, at)) = worker.today(at) {
        Changes::begin(&worker).set_admin(at, wanted);
    }
}

/// Sets and clears bits of the administrative state (see [`model::server::admin`]): `disable server`, name
/// resolution.
pub fn change_admin(worker: &Rc<FarmWorker>, at: At, set: u32, clear: u32) {
    if let Some((worker, at)) = worker.today(at) {
        Changes::begin(&worker).admin(at, set, clear, Why::Asked);
    }
}

/// `set server ... health up|stopping|down`. A server that tracks another has no health of its own: not for
/// it.
pub fn force_health(worker: &Rc<FarmWorker>, at: At, forced: Forced) {
    let Some((worker, at)) = worker.today(at) else { return };
    let changes = Changes::begin(&worker);
    let server = changes.server(at);
    // A server without checks has the health that checks would give it.
    let (rise, fall) = {
        let said = server.state.configured.lock();
        (said.rise, said.fall)
    };
    let limits = Limits { rise, fall };
    let (value, verdict) = match forced {
        Forced::Up => (limits.top(), Verdict::Up),
        Forced::Stopping => (limits.top(), Verdict::Stopping),
        Forced::Down => (0, Verdict::Down),
    };
    server.state.health.store(value, Relaxed);
    if server.state.op() == Op::Stopped && verdict == Verdict::Stopping {
        // A check would have to find it up first.
        return changes.force(at, Op::Stopping);
    }
    changes.settle(at, verdict, true, BY_COMMAND);
}

/// `set server ... agent up|down`. Who says that it is up says so against its checks, too.
pub fn force_agent(worker: &Rc<FarmWorker>, at: At, up: bool) {
    let Some((worker, at)) = worker.today(at) else { return };
    let changes = Changes::begin(&worker);
    let server = changes.server(at);
    server.state.agent_health.store(i64::from(up), Relaxed);
    changes.settle(at, if up { Verdict::Up } else { Verdict::Down }, true, BY_COMMAND);
}

/// Sets a server's weight (0 to 256).
pub fn set_weight(worker: &Rc<FarmWorker>, at: At, weight: u32) {
    if let Some((worker, at)) = worker.today(at) {
        Changes::begin(&worker).set_weight(at, weight);
    }
}

/// Sets how many requests a server serves at once; 0: no limit.
pub fn set_maxconn(worker: &Rc<FarmWorker>, at: At, maxconn: u32) {
    let Some((worker, at)) = &worker.today(at) else { return };
    let at = *at;
    worker.farm.program.server(at.proxy, at.server).state.maxconn.store(maxconn, Relaxed);
    queue::admit_next(worker, at.proxy, at.server);
}

/// Moves a server to another address: idle connections to the old one are closed.
pub fn set_target(worker: &Rc<FarmWorker>, at: At, target: Target, mapped: bool) {
    let Some((worker, at)) = worker.today(at) else { return };
    let changes = Changes::begin(&worker);
    changes.server(at).state.mapped.store(mapped, Relaxed);
    changes.server(at).state.set_target(target);
    changes.flush(at);
    changes.refresh(at);
    told::tell(&worker, at, kind::ADDRESS, || Detail::Nothing);
}

/// Speaks TLS to a server from now on, or no more. It has to be able to.
pub fn set_tls(worker: &Rc<FarmWorker>, at: At, on: bool) {
    let Some((worker, at)) = worker.today(at) else { return };
    let changes = Changes::begin(&worker);
    changes.server(at).state.plain.store(!on, Relaxed);
    changes.server(at).state.refuses_tls.store(false, Relaxed);
    changes.server(at).state.note_move();
    changes.flush(at);
}

/// `rise` and `fall` of a server.
pub fn limits(server: &Server) -> Limits {
    server.check.as_ref().map_or(Limits::AGENT, |c| Limits::new(c.rise, c.fall))
}

impl<'w> Changes<'w> {
    /// Waits for the right to change states.
    pub fn begin(worker: &'w Rc<FarmWorker>) -> Changes<'w> {
        let turn: &Mutex<()> = &worker.farm.program.world.changes;
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (checked, requeued) = (RefCell::default(), Cell::new(0));
        Changes { worker, now: rt::now(), checked, requeued, _turn: turn }
    }

    /// A server's configuration.
    pub fn server(&self, at: At) -> Held<'w, Server> {
        self.worker.farm.program.server(at.proxy, at.server)
    }

    /// Follows a verdict of a check. `other` is what the other check of the server says, `why` what a log
    /// line adds.
    pub fn settle(&self, at: At, verdict: Verdict, other: bool, why: &str) {
        let server = self.server(at);
        if let Some(op) = settle(server.state.op(), verdict, other)
            && server.state.admin() & admin::MAINT == 0
        {
            self.set_op(at, op, why);
        }
    }

    /// An operator says what the state is; a maintenance goes on.
    fn force(&self, at: At, op: Op) {
        if self.server(at).state.admin() & admin::MAINT == 0 {
            self.set_op(at, op, BY_COMMAND);
        }
    }

    fn set_op(&self, at: At, op: Op, why: &str) {
        let server = self.server(at);
        let state = &server.state;
        let was = state.op();
        let usable = state.takes_new();
        let op = match op {
            Op::Running if was == Op::Stopped && server.slowstart.is_some() => Op::Starting,
            op => op,
        };
        if was == op || (was == Op::Starting && op == Op::Running) {
            return;
        }
        state.set_op(op, self.now);
        self.requeued.set(0);
        match op {
            Op::Stopped => self.went_down(at, usable, why),
            Op::Starting | Op::Running => self.came_up(at, why),
            Op::Stopping => {
                self.refresh_and_tell(at, |c| c.line_there(at, level::NOTICE, &format!("is stopping{why}")));
            }
        }
        let check = self.checked.take();
        // What a check, or the tracked server, has to say is no cause of its own.
        let cause = if why == BY_COMMAND { why } else { "" };
        self.tell_state(at, was, By::Else(check, cause));
        for follower in self.followers(at) {
            self.follow_op(follower, at);
        }
    }

    /// A server that tracks another takes over its state.
    fn follow_op(&self, at: At, tracked: At) {
        if self.server(at).state.admin() & admin::MAINT != 0 {
            return;
        }
        let via = self.via(tracked);
        let op = match self.server(tracked).state.op() {
            Op::Starting => Op::Running,
            op => op,
        };
        self.set_op(at, op, &via);
    }

    fn went_down(&self, at: At, usable: bool, why: &str) {
        self.refresh_and_tell(at, |c| c.line_lost(at, loss(usable), &format!("is DOWN{why}")));
    }

    fn came_up(&self, at: At, why: &str) {
        let server = self.server(at);
        if server.state.op() == Op::Starting {
            resume(self.worker, at);
        }
        self.end_backups(at);
        self.refresh_and_tell(at, |c| c.line_there(at, level::NOTICE, &format!("is UP{why}")));
    }

    /// `on-marked-up shutdown-backup-sessions`.
    fn end_backups(&self, at: At) {
        let server = self.server(at);
        if server.up_kills_backups && !server.backup && server.state.weight.load(Relaxed) > 0 {
            on_all(self.worker, move |w| {
                let Some(backend) = w.farm.program.proxies.get(at.proxy as usize) else { return };
                let on_backup = |i: u32| backend.servers.get(i as usize).is_some_and(|s| s.backup);
                w.above.end_sessions(Cause::Up, at.proxy, &on_backup);
            });
        }
    }

    /// Sets an administrative state.
    pub fn set_admin(&self, at: At, wanted: Wanted) {
        match wanted {
            Wanted::Ready => self.admin(at, 0, admin::FMAINT | admin::FDRAIN, Why::Asked),
            Wanted::Drain => self.admin(at, admin::FDRAIN, admin::FMAINT, Why::Asked),
            // Whoever ends a maintenance does not expect to find the server drained for an older reason.
            Wanted::Maint => self.admin(at, admin::FMAINT, admin::FDRAIN, Why::Asked),
        }
    }

    /// Changes administrative bits.
    fn admin(&self, at: At, set: u32, clear: u32, why: Why<'_>) {
        let state = &self.server(at).state;
        let was = state.op();
        let (was_up, usable) = (was != Op::Stopped, state.takes_new());
        let old = state.change_admin(set, clear, self.now);
        let new = state.admin();
        if old == new {
            return;
        }
        let (in_maint, in_drain) = (new & admin::MAINT != 0, new & admin::DRAIN != 0);
        let via_text = match why {
            Why::Tracked(at) => self.via(at),
            Why::Lost(what) => format!(" ({what})"),
            Why::Asked | Why::Found => String::new(),
        };
        self.requeued.set(0);
        match (old & admin::MAINT != 0, in_maint) {
            (false, true) => self.enter_maintenance(at, was_up, usable, &via_text),
            (true, false) => self.leave_maintenance(at, why),
            (true, true) => self.remain_in_maintenance(at, old & !new),
            (false, false) if in_drain != (old & admin::DRAIN != 0) => self.drain(at, in_drain, &via_text),
            (false, false) if (old ^ new) & admin::DRAIN != 0 => self.remain_in_drain(at),
            _ => {}
        }
        let cause = if let Why::Lost(what) = why { what } else { "" };
        self.tell_admin(at, (old, new), cause);
        self.tell_state(at, was, By::Admin);
        let inherited =
            [(in_maint, admin::IMAINT), (in_drain, admin::IDRAIN)].map(|(on, bit)| if on { bit } else { 0 });
        let inherited = inherited[0] | inherited[1];
        let both = admin::IMAINT | admin::IDRAIN;
        for follower in self.followers(at) {
            self.admin(follower, inherited, both & !inherited, Why::Tracked(at));
        }
    }

    fn enter_maintenance(&self, at: At, was_up: bool, usable: bool, via: &str) {
        let server = self.server(at);
        server.state.set_op(Op::Stopped, self.now);
        let checked = server.state.check_enabled.load(Relaxed);
        server.state.checks_paused.fetch_or(checked, Relaxed);
        if was_up || checked {
            server.state.health.store(0, Relaxed);
        }
        if was_up {
            let what = format!("is going DOWN for maintenance{via}");
            self.refresh_and_tell(at, |c| c.line_lost(at, loss(usable), &what));
        } else {
            // Who waits for it waits on, but nobody is to meet what stood before.
            self.flush(at);
            self.refresh(at);
            self.line(at, level::NOTICE, &format!("was DOWN and now enters maintenance{via}."));
        }
    }

    fn leave_maintenance(&self, at: At, why: Why<'_>) {
        let server = self.server(at);
        let state = &server.state;
        // Nothing is known of it now: `init-state` counts again, until checks decide, where there are some.
        if state.check_enabled.load(Relaxed) {
            state.health.store(state.initial_health.load(Relaxed), Relaxed);
            state.checks_paused.store(false, Relaxed);
        }
        let initially_down = state.initially_down.load(Relaxed);
        let agent_says_down = server.asks_agent() && state.agent_health.load(Relaxed) == 0;
        let op = match why {
            Why::Tracked(tracked) => self.server(tracked).state.op(),
            _ if agent_says_down || initially_down => Op::Stopped,
            _ if server.slowstart.is_some() && !state.initially_up.load(Relaxed) => Op::Starting,
            _ => Op::Running,
        };
        state.set_op(op, self.now);
        if op == Op::Starting {
            resume(self.worker, at);
        }
        let health = if op == Op::Stopped { "DOWN" } else { "UP" };
        let draining = state.admin() & admin::DRAIN != 0;
        let mode = if draining { "DRAIN" } else { "READY" };
        let forced = if matches!(why, Why::Tracked(_)) { "" } else { "forced " };
        let what = match why {
            Why::Found => format!("('{}') is {health}/{mode} (resolves again).", self.shown_name(at)),
            _ => format!("is {health}/{mode} (leaving {forced}maintenance)."),
        };
        self.line(at, level::NOTICE, &what);
        if draining {
            self.remain_in_drain(at);
        }
        self.refresh(at);
        if op != Op::Stopped {
            self.end_backups(at);
        }
        queue::admit_next(self.worker, at.proxy, at.server);
    }

    fn drain(&self, at: At, enters: bool, via: &str) {
        let up = self.server(at).state.op() != Op::Stopped;
        if enters {
            let what = format!("enters drain state{via}");
            self.refresh_and_tell(at, |c| {
                if up {
                    c.line_there(at, level::NOTICE, &what)
                } else {
                    c.line_lost(at, level::NOTICE, &what)
                }
            });
            return;
        }
        let health = if up { "UP" } else { "DOWN" };
        let forced = if via.is_empty() { "forced " } else { "" };
        self.line(at, level::NOTICE, &format!("is {health} (leaving {forced}drain){via}."));
        self.refresh(at);
        queue::admit_next(self.worker, at.proxy, at.server);
    }

    /// Sets a weight.
    pub fn set_weight(&self, at: At, weight: u32) {
        let state = &self.server(at).state;
        if state.weight.swap(weight, Relaxed) != weight {
            self.refresh(at);
            queue::admit_next(self.worker, at.proxy, at.server);
        }
    }

    /// The servers of a backend have changed.
    pub fn renew(&self, at: At) {
        let equal = self.worker.farm.refresh(at.proxy, self.now);
        cookies::warn(self.worker, at.proxy, equal);
    }

    /// Publishes the new schedule, and says so if the backend has lost its last server.
    fn refresh(&self, at: At) {
        self.refresh_and_tell(at, |_| {});
    }

    fn refresh_and_tell(&self, at: At, tell: impl FnOnce(&Self)) {
        let shared = &self.worker.farm;
        let proxy = &*shared.program.proxy(at.proxy);
        let was = proxy.state.back.up.load(Relaxed);
        let equal = shared.refresh(at.proxy, self.now);
        tell(self);
        cookies::warn(self.worker, at.proxy, equal);
        if was && !proxy.state.back.up.load(Relaxed) {
            // A "listen" section is both, and called a proxy.
            let kind = if proxy.is_frontend { "proxy" } else { "backend" };
            let text = format!("{kind} {} has no server available!", proxy.name);
            self.worker.above.console("ALERT", &format!("{kind} '{}' has no server available!", proxy.name));
            self.worker.above.line(at.proxy, level::EMERGENCY, &text);
        }
    }

    /// A line about a server that was lost, after those who waited for it were sent elsewhere.
    fn line_lost(&self, at: At, level: u8, what: &str) {
        let server = self.server(at);
        let requeued = if server.state.is_up() { 0 } else { self.abandon(at) };
        self.requeued.set(requeued);
        let rest = Rest { requeued, ..self.rest(at) };
        self.line(at, level, &format!("{what}.{}", text::lost(&rest)));
    }

    /// What follows when a server is not to be used at all any more; returns how many requests look for
    /// another.
    fn abandon(&self, at: At) -> usize {
        let kills = self.server(at).down_kills;
        let options = &self.worker.farm.program.proxy(at.proxy).options;
        // Without these, a request waits on for a server that failed (manual, `option redispatch`): for one
        // in maintenance none does.
        let maintained = self.server(at).state.admin() & admin::MAINT != 0;
        // A server that is down may be back in a moment, and who insists on it is served through what is
        // there.
        if maintained {
            self.flush(at);
        }
        let leave = maintained || (options.redispatch != 0 && !options.persist);
        let own = if leave { queue::redistribute(self.worker, at.proxy, Some(at.server)) } else { 0 };
        let requeued = own + self.end_queue(at);
        if kills {
            on_all(self.worker, move |w| {
                w.above.end_sessions(Cause::Down, at.proxy, &|server| server == at.server);
            });
        }
        requeued
    }

    /// Whoever waits for any server of a backend waits for none that is there when the last one goes.
    fn end_queue(&self, at: At) -> usize {
        match self.worker.farm.backend(at.proxy).balancer.usable() {
            0 => queue::redistribute(self.worker, at.proxy, None),
            _ => 0,
        }
    }

    fn line_there(&self, at: At, level: u8, what: &str) {
        let waiting = || self.worker.farm.backend(at.proxy).queue.len();
        let before = waiting();
        self.end_queue(at);
        queue::admit_next(self.worker, at.proxy, at.server);
        let rest = Rest { requeued: before.saturating_sub(waiting()), ..self.rest(at) };
        self.requeued.set(rest.requeued);
        self.line(at, level, &format!("{what}.{}", text::there(&rest)));
    }

    fn rest(&self, at: At) -> Rest {
        rest(self.worker, at)
    }

    fn line(&self, at: At, level: u8, what: &str) {
        let proxy = &*self.worker.farm.program.proxy(at.proxy);
        let server = self.server(at);
        let backup = if server.backup { "Backup " } else { "" };
        let line = format!("{backup}Server {}/{} {what}", proxy.name, server.name);
        self.worker.above.console("WARNING", &line);
        self.worker.above.line(at.proxy, level, &line);
    }

    fn via(&self, at: At) -> String {
        format!(" via {}/{}", self.worker.farm.program.proxy(at.proxy).name, self.server(at).name)
    }

    fn flush(&self, at: At) {
        on_all(self.worker, move |w| {
            if let Some(server) = w.farm.program.find_server(at.proxy, at.server) {
                w.pools.flush(at.proxy, at.server, &server.state);
                w.above.let_go(&server.state);
            }
        });
    }

    /// The servers that track one, the last of the configuration first, as HAProxy goes through them.
    fn followers(&self, at: At) -> Vec<At> {
        let tracked = Some((at.proxy, at.server));
        let follows = |s: &Server| s.track == tracked && !s.state.is_removed();
        let mut all = Vec::new();
        for (proxy, p) in self.worker.farm.program.proxies.numbered() {
            let servers = p.servers.numbered().filter(|(_, s)| follows(s));
            all.extend(servers.map(|(server, _)| At { proxy, server }));
        }
        all.reverse();
        all
    }
}

/// What a server leaves behind as it is now.
pub(crate) fn rest(worker: &FarmWorker, at: At) -> Rest {
    let shared = &worker.farm;
    let proxy = shared.program.proxy(at.proxy);
    let servers = &proxy.servers;
    let count = |backup| servers.iter().filter(|s| s.backup == backup && s.state.is_usable()).count();
    Rest {
        left: Left { active: count(false), backup: count(true) },
        sessions: shared.program.server(at.proxy, at.server).state.served.load(Relaxed),
        requeued: 0,
        queued: shared.backend(at.proxy).slots[at.server as usize].queue.len(),
    }
}

/// How loud the loss of a server is: one that took no new requests anyway is not missed.
fn loss(usable: bool) -> u8 {
    if usable { level::ALERT } else { level::NOTICE }
}

/// Steps of a slow start that takes less than as many seconds: the weight grows each second, the places
/// without steps.
const WARM_UP_STEPS: u32 = 20;

/// Goes on with a slow start as long as this configuration runs.
pub(crate) fn resume(worker: &Rc<FarmWorker>, at: At) {
    worker.keep(rt::spawn(warm_up(worker.clone(), at)));
}

/// Raises a server's weight and places little by little until its slow start is over. It does not keep a
/// server that is deleted meanwhile.
async fn warm_up(worker: Rc<FarmWorker>, at: At) {
    let program = worker.farm.program.clone();
    let Some((state, whole)) = program
        .find_server(at.proxy, at.server)
        .map(|s| (Arc::downgrade(&s.state), s.slowstart.unwrap_or_default()))
    else {
        return;
    };
    let pause = (whole / WARM_UP_STEPS).clamp(Duration::from_millis(1), Duration::from_secs(1));
    // It ends with a whole second.
    let end = whole.as_millis().div_ceil(1000) * 1000;
    let since = state.upgrade().map_or(0, |s| s.last_change.load(Relaxed));
    loop {
        rt::sleep(pause).await;
        let Some(state) = state.upgrade() else { return };
        let changes = Changes::begin(&worker);
        let mine = state.op() == Op::Starting && state.last_change.load(Relaxed) == since;
        if !mine || state.is_removed() {
            return;
        }
        let over = u128::from(state.unchanged_ms(rt::now(), Mono::ZERO)) >= end;
        if over {
            state.set_op(Op::Running, rt::now());
        }
        changes.refresh(at);
        if over {
            let what = format!("is UP{}", changes.via_tracked(at));
            changes.line_there(at, level::NOTICE, &what);
            changes.tell_state(at, Op::Starting, By::Else(None, ""));
        }
        queue::admit_next(&worker, at.proxy, at.server);
        if over {
            return;
        }
    }
}
