//! Health checks: who is checked when, and what follows.
//!
//! ```text
//!   schedule (here) -> script | agent: one exchange -> CheckResult
//!     -> verdict: counter (health), log line (text) -> state: the server and all that hangs on it
//!   observe: errors of traffic -> verdict
//! ```
//!
//! Each checked server has one task for its check, and one for its agent, on a worker chosen by its position;
//! they sleep most of the time and own a socket and a buffer only while they ask. The first checks are spread
//! over the interval, so that neither the servers nor we do everything at once.

mod agent;
pub mod contact;
mod expect;
mod external;
pub mod health;
mod http;
mod observe;
mod protocols;
mod script;
pub mod text;
pub(crate) mod turns;
mod verdict;
pub mod words;

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use std::time::Duration;

use model::check::{CheckResult, CheckStatus};
use model::server::{Health, Op, admin};
use model::trace::{self, Point, Whom, level};
use program::check::Check;
use program::{Program, Server};
use rt::Timer;

pub use observe::{Seen, observe};
pub use text::Kind;
use turns::Turns;

use crate::At;
use crate::FarmWorker;
use crate::state::limits;

/// A task to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Planned {
    at: At,
    kind: Kind,
    /// Time until its first run.
    phase: Duration,
    /// The worker that runs it.
    worker: usize,
}

/// The tasks of checks of servers that were added, on a worker.
#[derive(Default)]
pub struct Running(RefCell<Vec<(At, rt::TaskId)>>);

impl Running {
    fn begin(&self, at: At, task: rt::TaskId) {
        self.0.borrow_mut().push((at, task));
    }

    /// Ends all.
    pub(crate) fn end_all(&self) {
        for (_, task) in self.0.take() {
            rt::cancel(task);
        }
    }

    /// Ends those of a server that was deleted, also one that is under way.
    pub fn end(&self, at: At) {
        for (_, task) in self.0.borrow_mut().extract_if(.., |(of, _)| *of == at) {
            rt::cancel(task);
        }
    }
}

/// Starts the checks that are this worker's.
pub fn start(worker: &Rc<FarmWorker>) {
    let program = &worker.farm.program;
    let turns = Rc::new(Turns::new(program.global.tune.max_checks));
    for planned in plan(program).into_iter().filter(|p| p.worker == worker.index) {
        let state = &program.server(planned.at.proxy, planned.at.server).state;
        let mut known = state.status.lock();
        let last = outcome(planned.kind, &mut known);
        if last.status == CheckStatus::Unknown {
            last.status = CheckStatus::Init;
        }
        drop(known);
        worker.keep(rt::spawn(run(worker.clone(), planned, turns.clone())));
    }
}

/// Starts the checks of a server that was added while the worker runs, on this worker. They take turns with
/// no other.
pub fn start_one(worker: &Rc<FarmWorker>, at: At) {
    let Some(server) = worker.farm.program.find_server(at.proxy, at.server) else { return };
    for (kind, wanted) in [(Kind::Health, server.check.is_some()), (Kind::Agent, server.agent.is_some())] {
        if wanted {
            let planned = Planned { at, kind, phase: Duration::ZERO, worker: worker.index };
            let task = rt::spawn(run(worker.clone(), planned, Rc::new(Turns::new(0))));
            worker.checks.begin(at, task);
        }
    }
}

/// All checks of a program, in the order of the configuration.
fn plan(program: &Program) -> Vec<Planned> {
    let mut all = Vec::new();
    let mut ordinal = 0;
    for (proxy, p) in program.proxies.numbered().filter(|(_, p)| !p.disabled) {
        for (server, s) in p.servers.numbered() {
            let at = At { proxy, server };
            let kinds = [(Kind::Health, s.check.is_some()), (Kind::Agent, s.agent.is_some())];
            let worker = ordinal % program.world.workers.max(1);
            ordinal += usize::from(kinds.iter().any(|k| k.1));
            for (kind, _) in kinds.into_iter().filter(|k| k.1) {
                all.push(Planned { at, kind, phase: Duration::ZERO, worker });
            }
        }
    }
    let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
    for (position, planned) in (0u32..).zip(&mut all) {
        let server = &*program.server(planned.at.proxy, planned.at.server);
        let whole = interval(server, planned.kind);
        let whole = program.global.max_spread_checks.map_or(whole, |most| whole.min(most));
        planned.phase = whole * position / count;
    }
    all
}

/// The time between two checks of a server, as its state is now (manual, `inter`).
fn interval(server: &Server, kind: Kind) -> Duration {
    match (kind, &server.check, &server.agent) {
        (Kind::Health, Some(check), _) => interval_of(check, server),
        (Kind::Agent, _, Some(agent)) => agent.inter,
        _ => Duration::from_secs(2),
    }
}

fn interval_of(check: &Check, server: &Server) -> Duration {
    let health = server.state.health.load(Relaxed);
    let up = health == limits(server).top();
    let stable = match health {
        0 if server.state.op() == Op::Stopped => check.downinter,
        _ if up => Some(check.inter),
        _ => check.fastinter,
    };
    stable.unwrap_or(check.inter)
}

/// The interval with the randomness of `spread-checks` (per cent).
fn spread(interval: Duration, percent: u32) -> Duration {
    let percent = percent.min(50);
    if percent == 0 {
        return interval;
    }
    // From -percent to +percent, in steps of a thousandth.
    let span = u64::from(percent) * 20 + 1;
    let part = 1000 - percent * 10 + u32::try_from(rt::random() % span).unwrap_or(0);
    interval * part / 1000
}

/// One check, for ever.
async fn run(worker: Rc<FarmWorker>, planned: Planned, turns: Rc<Turns>) {
    let program = worker.farm.program.clone();
    let Planned { at, kind, phase, .. } = planned;
    let (server, _stay) =
        (&*program.server(at.proxy, at.server), worker.farm.stay(at.proxy, Some(at.server)));
    let known = crate::succession::phase(&server.state, which(kind), interval(server, kind));
    // One of the configuration before may have been cut short.
    outcome(kind, &mut server.state.status.lock()).at_work = false;
    rt::sleep(known.unwrap_or(phase)).await;
    while !server.state.is_removed() {
        match (kind, &server.check, &server.agent) {
            (Kind::Health, Some(check), _) if is_due(server) => {
                let turn = turns.take().await;
                outcome(kind, &mut server.state.status.lock()).begin();
                traced(at, (trace::check::START, level::STATE), "check begins", None);
                let result = match &check.ruleset.external {
                    Some(program) => external::run(&worker, at, check, program).await,
                    None => script::run(&worker, at, check).await,
                };
                drop(turn);
                let event = match result.status.passed() {
                    true => (trace::check::END | trace::check::SUCCESS, level::USER),
                    false => (trace::check::END | trace::check::FAILURE, level::ERROR),
                };
                traced(at, event, "check is over", Some(&result));
                verdict::checked(&worker, at, result);
            }
            (Kind::Agent, _, Some(asked)) if agent::is_due(&worker, at) => {
                let turn = turns.take().await;
                outcome(kind, &mut server.state.status.lock()).begin();
                agent::run(&worker, at, asked).await;
                drop(turn);
            }
            _ => {}
        }
        // Also of one that came to nothing.
        outcome(kind, &mut server.state.status.lock()).at_work = false;
        let pause = spread(interval(server, kind), program.global.spread_checks);
        wait(&worker, at, kind, server, pause).await;
    }
}

/// What is known of the check of a kind.
fn outcome(kind: Kind, known: &mut Health) -> &mut CheckResult {
    match kind {
        Kind::Health => &mut known.last,
        Kind::Agent => &mut known.agent,
    }
}

/// Where the time of a check's next run is noted.
fn which(kind: Kind) -> usize {
    usize::from(kind == Kind::Agent)
}

/// Tells of a check, if anybody looks.
#[track_caller]
fn traced(at: At, (events, level): (u32, u8), text: &str, result: Option<&CheckResult>) {
    if !trace::CHECK.on() {
        return;
    }
    let own = Some(u64::from(at.proxy) << 32 | u64::from(at.server));
    let whom = Whom { backend: Some(at.proxy), server: Some(at.server), own, back: true, ..Whom::default() };
    trace::CHECK.tell(Point { events, level, text, whom }, &mut |_, out| {
        out.push_str(&format!(" [H] backend=#{} server=#{}", at.proxy, at.server));
        if let Some(result) = result {
            out.push_str(&format!(" status={:?}", result.status));
        }
    });
}

/// Checks run while they are enabled and the server is not in maintenance.
fn is_due(server: &Server) -> bool {
    let state = &server.state;
    state.check_enabled.load(Relaxed) && state.admin() & admin::MAINT == 0
}

/// Waits for the next run; errors that traffic saw bring it forward to `fastinter`. The interval begins with
/// the end of a run, so that a server which takes long to answer is asked less often.
async fn wait(worker: &FarmWorker, at: At, kind: Kind, server: &Server, pause: Duration) {
    let mut timer = Timer::at(rt::now() + pause.max(Duration::from_millis(1)));
    let note = |timer: &Timer| {
        if let (Some(due), Some(at)) = (timer.deadline(), server.state.due.get(which(kind))) {
            at.store(due.as_millis(), Relaxed);
        }
    };
    note(&timer);
    let backend = worker.farm.backend(at.proxy);
    let hurry = &backend.slots[at.server as usize].hurry;
    let fast = server.check.as_ref().map(|c| c.fastinter.unwrap_or(c.inter));
    poll_fn(|cx| {
        while kind == Kind::Health && hurry.poll_notified(cx).is_ready() {
            let soon = fast.map(|f| rt::now() + f);
            if soon.is_some_and(|s| timer.deadline().is_none_or(|d| s < d)) {
                timer.set(soon);
                note(&timer);
            }
        }
        timer.poll_expired(cx)
    })
    .await;
}
