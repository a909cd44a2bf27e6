//! The live state of a server: what changes while the process runs, and outlives a configuration.
//!
//! Everything read on the path of a request is an atomic. State changes (health, administrative
//! state, weight) go through the methods here; the engine then rebuilds the backend's schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::*};

use arc_swap::{ArcSwap, ArcSwapOption};
use base::time::{Mono, Wall};
use parking_lot::Mutex;

use crate::check::CheckResult;
pub use crate::configured::{Configured, Target, UnixKind};
use crate::counter::Sharded;
pub use crate::figures::ServerCounters;
use crate::server_conns::ServerConns;

/// Settings of checks that the runtime API changed (`set server ... check-addr` and its kin); what is not set
/// here is as the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// `check-addr`.
    pub check_addr: Option<std::net::IpAddr>,
    /// `check-port`.
    pub check_port: Option<u16>,
    /// `agent-addr`.
    pub agent_addr: Option<std::net::IpAddr>,
    /// `agent-port`.
    pub agent_port: Option<u16>,
    /// `agent-send`.
    pub agent_send: Option<Box<[u8]>>,
}

/// Operational state (manual, `show servers state`: `srv_op_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Op {
    /// 0: down.
    Stopped = 0,
    /// 1: coming up, throttled by `slowstart`.
    Starting = 1,
    /// 2: up.
    #[default]
    Running = 2,
    /// 3: up but stopping (404 with `disable-on-404`): persistent sessions only.
    Stopping = 3,
}

/// Administrative state bits (`srv_admin_state`).
pub mod admin {
    /// Forced to maintenance by an operator.
    pub const FMAINT: u32 = 0x01;
    /// Maintenance inherited from a tracked server.
    pub const IMAINT: u32 = 0x02;
    /// Maintenance because the configuration says `disabled`.
    pub const CMAINT: u32 = 0x04;
    /// Forced to drain by an operator.
    pub const FDRAIN: u32 = 0x08;
    /// Drain inherited from a tracked server.
    pub const IDRAIN: u32 = 0x10;
    /// Maintenance because the name no longer resolves.
    pub const RMAINT: u32 = 0x20;
    /// Its host name was changed at run time, by a command or an SRV record: no maintenance.
    pub const RENAMED: u32 = 0x40;
    /// Deleted at run time: maintenance that nothing ends.
    pub const GONE: u32 = 0x80;
    /// Any reason for maintenance.
    pub const MAINT: u32 = FMAINT | IMAINT | RMAINT | GONE;
    /// Any reason for drain.
    pub const DRAIN: u32 = FDRAIN | IDRAIN;
}

/// What health checks know of a server.
#[derive(Debug, Default)]
pub struct Health {
    /// Result of the last check.
    pub last: CheckResult,
    /// Result of the last agent check.
    pub agent: CheckResult,
    /// Why the server is in its state, as the statistics show it.
    pub reason: String,
}

/// What stands for a server in the persistence cookie where that is computed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ComputedCookie {
    /// Sixteen hexadecimal digits.
    pub value: Vec<u8>,
    /// The server is in maintenance, so that nobody is sent to it by the value.
    pub in_maintenance: bool,
}

/// The live state of one server.
#[derive(Debug)]
pub struct Server {
    /// Name, unique in its backend.
    pub name: base::name::Name,
    /// Name of its backend.
    pub proxy: Box<str>,
    /// Numeric id (`id`, or given by position).
    pub id: u32,
    /// Globally unique name, if one was given.
    pub guid: Option<Box<str>>,
    /// Where it is reached now.
    pub target: ArcSwap<Target>,
    /// Its port, also while it has no address.
    pub port: AtomicU32,
    /// The port is to be added to that which the client connected to (`server s 127.0.0.1:+10`).
    pub mapped: AtomicBool,
    /// Its value in the persistence cookie as computed from its address (`cookie ... dynamic`).
    pub dynamic_cookie: ArcSwapOption<ComputedCookie>,
    /// Deleted while the configuration runs (`del server`): nothing may find it any more.
    pub removed: std::sync::atomic::AtomicBool,
    /// A sample names it, so it keeps its name and stays.
    pub referenced: std::sync::atomic::AtomicBool,
    /// TLS could be spoken to it and is not (`no-ssl`, `set server ... ssl off`).
    pub plain: std::sync::atomic::AtomicBool,
    /// The configuration says `no-ssl`, and nothing else was said since.
    pub refuses_tls: std::sync::atomic::AtomicBool,
    /// `backup`: it serves when no other server does.
    pub backup: AtomicBool,
    /// Host name behind the address (`fqdn`), if it was given as a name.
    pub fqdn: Mutex<Option<String>>,
    admin: AtomicU32,
    op: AtomicU32,
    /// Weight as set (0-256), before slow start.
    pub weight: AtomicU32,
    /// Weight in the configuration.
    pub initial_weight: AtomicU32,
    /// Maximum of concurrent requests, 0: no limit.
    pub maxconn: AtomicU32,
    /// Requests being served (`scur`).
    pub served: AtomicU32,
    /// Greatest `served` so far (`smax`).
    pub served_max: AtomicU32,
    /// Requests waiting for this server (`qcur`).
    pub queued: AtomicU32,
    /// Greatest `queued` so far (`qmax`).
    pub queued_max: AtomicU32,
    /// Its connections.
    pub conns: ServerConns,
    /// Consecutive health: 0..rise-1 is down, rise..rise+fall-1 is up.
    pub health: AtomicI64,
    /// Health at the start and after maintenance (`init-state`).
    pub initial_health: AtomicI64,
    /// Whether it is down then, be it checked or not.
    pub initially_down: AtomicBool,
    /// Whether it is said to be up then: there is no slow start.
    pub initially_up: AtomicBool,
    /// Health by its agent: 0 down, 1 up.
    pub agent_health: AtomicI64,
    /// Errors in a row that `observe` saw.
    pub consecutive_errors: AtomicU32,
    /// Failed checks in all (`chkfail`).
    pub failed_checks: AtomicU64,
    /// Transitions to down (`chkdown`).
    pub went_down: AtomicU64,
    /// When the state changed last.
    pub last_change: AtomicU64,
    /// How long before `last_change` that really was, ms: a process before this one saw it and left it in a
    /// file of server states. The next change ends it.
    pub changed_before: AtomicU64,
    /// Total time spent down, ms, until `last_change`.
    pub down_ms: AtomicU64,
    /// When a session was last assigned, seconds since the epoch, 0: never.
    pub last_session: AtomicU64,
    /// Sessions in the last second.
    pub rate: base::rate::PeakRate,
    /// Whether health checks run (`enable health` and its contrary).
    pub check_enabled: AtomicBool,
    /// Whether maintenance has paused them: it began while they ran, or the server began in it (`disabled`).
    /// Ends with maintenance, if they are to run then.
    pub checks_paused: AtomicBool,
    /// Whether the agent check runs.
    pub agent_enabled: AtomicBool,
    /// Results of checks. Off the path of requests.
    pub status: Mutex<Health>,
    /// What the runtime API changed about its checks.
    pub probe: Mutex<Probe>,
    /// What the configuration said last.
    pub configured: Mutex<Configured>,
    /// When its check and its agent are due, ms of the monotonic clock: a configuration that is adopted in
    /// place keeps the rhythm. 0: not known.
    pub due: [AtomicU64; 2],
    /// Sliding averages of queue, connect, response and total time, ms.
    pub times: Averages,
    /// Figures of the path of requests.
    pub counters: Sharded<ServerCounters>,
    /// How often it was moved, see [`Server::moves`].
    moves: AtomicU64,
    /// Tells it from those that had its id before (`srid`), see [`crate::world::Process::revision`].
    pub revision: AtomicU32,
}

/// Averages over about the last 1024 requests (`qtime`, `ctime`, `rtime`, `ttime`).
#[derive(Debug, Default)]
pub struct Averages {
    /// Queue, connect, response, total: sums of a sliding window.
    sums: [AtomicU64; 4],
    /// How many requests there were, at most those of the window.
    count: AtomicU64,
}

impl Averages {
    /// Requests over which figures are averaged.
    pub const WINDOW: u64 = 1024;

    /// Takes one request's times (ms) in. Losing a sample to a race is harmless.
    pub fn add(&self, ms: [u32; 4]) {
        let before = self.count.load(Relaxed);
        let slides = before >= Self::WINDOW;
        if !slides {
            self.count.store(before + 1, Relaxed);
        }
        for (sum, v) in self.sums.iter().zip(ms) {
            let s = sum.load(Relaxed);
            let gone = if slides { s.div_ceil(Self::WINDOW).min(s) } else { 0 };
            sum.store(s - gone + u64::from(v), Relaxed);
        }
    }

    /// The four averages in ms, over as many requests as were taken in, or `of` so many: those that got no
    /// response are among them and took no time, as in HAProxy.
    pub fn get(&self, of: Option<u64>) -> [u32; 4] {
        let count = of.map_or_else(|| self.count.load(Relaxed), |of| of.min(Self::WINDOW)).max(1);
        std::array::from_fn(|i| u32::try_from(self.sums[i].load(Relaxed).div_ceil(count)).unwrap_or(u32::MAX))
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.sums.iter().chain([&self.count]).for_each(|figure| figure.store(0, Relaxed));
    }
}

impl Server {
    /// A new server, up, without an address.
    pub fn new(proxy: &str, name: &str, id: u32, workers: usize) -> Server {
        Server {
            name: name.into(),
            proxy: proxy.into(),
            id,
            guid: None,
            target: ArcSwap::from_pointee(Target::None),
            port: AtomicU32::new(0),
            mapped: AtomicBool::new(false),
            removed: Default::default(),
            plain: Default::default(),
            refuses_tls: Default::default(),
            referenced: Default::default(),
            dynamic_cookie: ArcSwapOption::empty(),
            fqdn: Mutex::new(None),
            backup: AtomicBool::new(false),
            admin: AtomicU32::new(0),
            op: AtomicU32::new(Op::Running as u32),
            weight: AtomicU32::new(1),
            initial_weight: AtomicU32::new(1),
            maxconn: AtomicU32::new(0),
            served: AtomicU32::new(0),
            served_max: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            queued_max: AtomicU32::new(0),
            conns: ServerConns::default(),
            health: AtomicI64::new(0),
            initial_health: AtomicI64::new(0),
            initially_down: AtomicBool::new(false),
            initially_up: AtomicBool::new(false),
            agent_health: AtomicI64::new(1),
            consecutive_errors: AtomicU32::new(0),
            failed_checks: AtomicU64::new(0),
            went_down: AtomicU64::new(0),
            last_change: AtomicU64::new(0),
            changed_before: AtomicU64::new(0),
            down_ms: AtomicU64::new(0),
            last_session: AtomicU64::new(0),
            rate: base::rate::PeakRate::new(),
            check_enabled: AtomicBool::new(false),
            checks_paused: AtomicBool::new(false),
            agent_enabled: AtomicBool::new(false),
            status: Mutex::default(),
            probe: Mutex::default(),
            configured: Mutex::default(),
            due: Default::default(),
            times: Averages::default(),
            counters: Sharded::new(workers),
            moves: AtomicU64::new(0),
            revision: AtomicU32::new(0),
        }
    }

    /// Operational state.
    pub fn op(&self) -> Op {
        match self.op.load(Relaxed) {
            0 => Op::Stopped,
            1 => Op::Starting,
            3 => Op::Stopping,
            _ => Op::Running,
        }
    }

    /// Sets the operational state; `now` starts the time in this state.
    pub fn set_op(&self, op: Op, now: Mono) {
        let old = self.op.swap(op as u32, Relaxed);
        if old == op as u32 {
            return;
        }
        self.note_change(now, old == Op::Stopped as u32);
        if op == Op::Stopped {
            self.went_down.fetch_add(1, Relaxed);
        }
    }

    /// Administrative state bits, see [`admin`].
    pub fn admin(&self) -> u32 {
        self.admin.load(Relaxed)
    }

    /// Sets and clears administrative bits; returns the bits before.
    pub fn change_admin(&self, set: u32, clear: u32, now: Mono) -> u32 {
        let was_down = !self.is_up();
        let old = self.admin.load(Relaxed);
        let new = (old & !clear) | set;
        self.admin.store(new, Relaxed);
        if (old & admin::MAINT == 0) != (new & admin::MAINT == 0) {
            self.note_change(now, was_down);
        }
        old
    }

    fn note_change(&self, now: Mono, was_down: bool) {
        let since = self.last_change.swap(now.as_millis(), Relaxed);
        let before = self.changed_before.swap(0, Relaxed);
        if was_down {
            self.down_ms.fetch_add(now.as_millis().saturating_sub(since).saturating_add(before), Relaxed);
        }
    }

    /// How long the server has been in its state, ms; `started` is when this process began.
    pub fn unchanged_ms(&self, now: Mono, started: Mono) -> u64 {
        let since = self.last_change.load(Relaxed).max(started.as_millis());
        now.as_millis().saturating_sub(since).saturating_add(self.changed_before.load(Relaxed))
    }

    /// Up, and not in maintenance: requests bound to it by a cookie may use it.
    pub fn is_up(&self) -> bool {
        self.admin() & admin::MAINT == 0 && self.op() != Op::Stopped
    }

    /// It was deleted while the configuration runs.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Relaxed)
    }

    /// New requests without persistence may be sent here.
    pub fn is_usable(&self) -> bool {
        self.takes_new() && self.weight.load(Relaxed) > 0
    }

    /// Neither down nor on its way out, whatever its weight: losing it is an alert.
    pub fn takes_new(&self) -> bool {
        self.is_up() && self.admin() & admin::DRAIN == 0 && self.op() != Op::Stopping
    }

    /// In drain: forced, inherited or by a weight of zero.
    pub fn is_draining(&self) -> bool {
        self.is_up()
            && (self.admin() & admin::DRAIN != 0
                || self.op() == Op::Stopping
                || self.weight.load(Relaxed) == 0)
    }

    /// Counts one more request being served; returns how many there are now.
    #[inline]
    pub fn enter(&self) -> u32 {
        let n = self.served.fetch_add(1, Relaxed) + 1;
        if n > self.served_max.load(Relaxed) {
            self.served_max.fetch_max(n, Relaxed);
        }
        n
    }

    /// Counts one request less.
    #[inline]
    pub fn leave(&self) {
        self.served.fetch_sub(1, Relaxed);
    }

    /// Time spent down until now, ms.
    pub fn downtime_ms(&self, now: Mono) -> u64 {
        let past = self.down_ms.load(Relaxed);
        if self.is_up() { past } else { past.saturating_add(self.unchanged_ms(now, Mono::ZERO)) }
    }

    /// Notes the time of the last session (`lastsess`).
    #[inline]
    pub fn touch(&self, wall: Wall) {
        self.last_session.store(wall.as_secs(), Relaxed);
    }

    /// Moves the server to another address.
    pub fn set_target(&self, target: Target) {
        if let Target::Inet(addr) = &target {
            self.port.store(addr.port().into(), Relaxed);
        }
        self.target.store(Arc::new(target));
        self.note_move();
    }

    /// The configuration says something else than before, `now`: what differs holds, also where the runtime
    /// API had changed it. Everything else stays. Whether connections that rest lead elsewhere than those to
    /// come.
    pub fn configure(&self, new: Configured, now: Mono) -> bool {
        let was = std::mem::replace(&mut *self.configured.lock(), new.clone());
        if was == new {
            return false;
        }
        let place = |of: &Configured| (of.target.clone(), of.fqdn.clone(), of.port, of.mapped);
        let moved = place(&was) != place(&new);
        if moved {
            self.mapped.store(new.mapped, Relaxed);
            *self.fqdn.lock() = new.fqdn.as_deref().map(str::to_owned);
            self.set_target(new.target.clone());
            self.port.store(new.port, Relaxed);
            let (set, clear) =
                if new.unresolved { (admin::RMAINT, 0) } else { (0, admin::RMAINT | admin::RENAMED) };
            self.change_admin(set, clear, now);
        }
        if was.weight != new.weight {
            self.weight.store(new.weight, Relaxed);
        }
        self.initial_weight.store(new.weight, Relaxed);
        if was.maxconn != new.maxconn {
            self.maxconn.store(new.maxconn, Relaxed);
        }
        self.initial_health.store(new.initial_health, Relaxed);
        self.initially_down.store(new.initially_down, Relaxed);
        self.initially_up.store(new.initially_up, Relaxed);
        self.configure_checks(&was, &new, now);
        if was.disabled != new.disabled {
            self.configure_maintenance(new.disabled, now);
        }
        let encrypted = (was.plain, was.refuses_tls) != (new.plain, new.refuses_tls);
        if encrypted {
            self.plain.store(new.plain, Relaxed);
            self.refuses_tls.store(new.refuses_tls, Relaxed);
            self.note_move();
        }
        moved || encrypted
    }

    fn configure_checks(&self, was: &Configured, new: &Configured, now: Mono) {
        if was.checked != new.checked {
            self.check_enabled.store(new.checked, Relaxed);
            self.checks_paused.store(new.checked && self.admin() & admin::MAINT != 0, Relaxed);
            self.health.store(new.initial_health, Relaxed);
            if !new.checked && self.op() == Op::Stopped && self.admin() & admin::MAINT == 0 {
                // Nobody would ever find it up again.
                self.set_op(if new.initially_down { Op::Stopped } else { Op::Running }, now);
            }
        } else if (was.rise, was.fall) != (new.rise, new.fall) {
            let top = new.rise.saturating_add(new.fall).saturating_sub(1);
            let health = self.health.load(Relaxed);
            let same = if self.op() == Op::Stopped {
                health.min(new.rise.saturating_sub(1))
            } else if health >= was.rise.saturating_add(was.fall).saturating_sub(1) {
                top
            } else {
                health.clamp(new.rise.min(top), top)
            };
            self.health.store(same, Relaxed);
        }
        if was.agent != new.agent {
            self.agent_enabled.store(new.agent, Relaxed);
            self.agent_health.store(1, Relaxed);
        }
    }

    fn configure_maintenance(&self, disabled: bool, now: Mono) {
        let both = admin::FMAINT | admin::CMAINT;
        if disabled {
            self.change_admin(both, 0, now);
            self.set_op(Op::Stopped, now);
            self.health.store(0, Relaxed);
            self.checks_paused.store(true, Relaxed);
            return;
        }
        self.change_admin(0, both, now);
        if self.admin() & admin::MAINT == 0 {
            self.checks_paused.fetch_and(!self.check_enabled.load(Relaxed), Relaxed);
            self.health.store(self.initial_health.load(Relaxed), Relaxed);
            let down = self.initially_down.load(Relaxed) || self.agent_health.load(Relaxed) == 0;
            self.set_op(if down { Op::Stopped } else { Op::Running }, now);
        }
    }

    /// Connections that are there, or on their way, lead elsewhere than those to come.
    pub fn note_move(&self) {
        self.moves.fetch_add(1, Release);
    }

    /// How often it was moved, to another address or another manner of talking. To be asked for before where
    /// it is: who connects while it moves has then a connection that nobody takes for one to the new place.
    pub fn moves(&self) -> u64 {
        self.moves.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn averages_are_over_those_that_were_taken_in_or_over_so_many() {
        let averages = Averages::default();
        averages.add([0, 0, 200, 210]);
        averages.add([0, 0, 100, 110]);
        assert_eq!(averages.get(None), [0, 0, 150, 160]);
        assert_eq!(averages.get(Some(4)), [0, 0, 75, 80]);
        assert_eq!(averages.get(Some(1 << 40)), [0, 0, 1, 1]);
        averages.clear();
        assert_eq!(averages.get(Some(0)), [0; 4]);
    }

    #[test]
    fn downtime_counts_only_the_time_down() {
        let s = Server::new("b", "s", 1, 1);
        s.set_op(Op::Stopped, at(1000));
        s.set_op(Op::Running, at(4000));
        assert_eq!(s.downtime_ms(at(9000)), 3000);
        s.change_admin(admin::FMAINT, 0, at(10_000));
        assert_eq!(s.downtime_ms(at(11_000)), 4000);
        assert_eq!(s.went_down.load(Relaxed), 1);
    }

    #[test]
    fn what_the_runtime_api_changed_stays_until_the_configuration_says_otherwise() {
        let s = Server::new("b", "s", 1, 1);
        let written =
            Configured { weight: 10, maxconn: 5, checked: true, rise: 2, fall: 3, ..Default::default() };
        s.configure(written.clone(), at(0));
        s.weight.store(77, Relaxed);
        assert!(!s.configure(written.clone(), at(1)));
        assert!(!s.configure(Configured { maxconn: 9, ..written.clone() }, at(2)));
        assert_eq!((s.weight.load(Relaxed), s.maxconn.load(Relaxed)), (77, 9));
        s.configure(Configured { weight: 20, ..written }, at(3));
        assert_eq!((s.weight.load(Relaxed), s.maxconn.load(Relaxed)), (20, 5));
    }

    #[test]
    fn a_server_that_moves_says_so_and_one_that_is_disabled_is_down_until_it_is_not() {
        let s = Server::new("b", "s", 1, 1);
        let there =
            |port| Configured { target: Target::Inet(([127, 0, 0, 1], port).into()), ..Default::default() };
        s.configure(there(80), at(0));
        assert!(!s.configure(there(80), at(1)));
        assert!(s.configure(there(81), at(2)));
        assert!(!s.configure(Configured { disabled: true, ..there(81) }, at(3)));
        assert!(!s.is_up() && s.admin() & admin::MAINT != 0);
        s.configure(there(81), at(5));
        assert!(s.is_up());
        assert_eq!(s.downtime_ms(at(9)), 2);
    }

    #[test]
    fn a_weight_of_zero_drains() {
        let s = Server::new("b", "s", 1, 1);
        s.weight.store(0, Relaxed);
        assert!(s.is_up() && s.is_draining() && !s.is_usable());
    }

    #[test]
    fn averages_settle_on_a_steady_figure() {
        let a = Averages::default();
        for _ in 0..20_000 {
            a.add([0, 5, 10, 20]);
        }
        let got = a.get(None);
        assert_eq!(got[0], 0);
        assert!((4..=6).contains(&got[1]) && (19..=21).contains(&got[3]), "{got:?}");
    }

    #[test]
    fn averages_are_over_as_many_requests_as_there_were() {
        let averages = Averages::default();
        for total in [40, 50] {
            averages.add([0, 1, 39, total]);
        }
        assert_eq!(averages.get(None), [0, 1, 39, 45]);
        (0..5 * Averages::WINDOW).for_each(|_| averages.add([0, 0, 7, 9]));
        assert_eq!(averages.get(None), [0, 0, 7, 9]);
    }
}
