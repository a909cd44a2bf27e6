//! Events of servers and of sets of patterns, told to scripts: `core.event_sub`, `Server.event_sub`,
//! `Patref.event_sub`, the class `EventSub`.
//!
//! Whoever changes a server or a set puts the event into the queue of each subscription; a task of the thread
//! that subscribed calls the function with one after the other.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;

use engine::Worker;
use mlua::{AnyUserData, Function, Lua, MultiValue, Table, Value};
use model::events::{Checked, Detail, Event, kind};
use model::server::{Op, admin};
use parking_lot::Mutex;
use pattern::{Change, LiveSet};

use crate::clock::Wake;
use crate::failure::{Failure, failure};
use crate::here::with_worker;
use crate::objects::object;
use crate::run::Run;
use crate::state::State;
use crate::told;
use crate::value::{Args, Bound, Outcome, give, inner, nothing};

/// Functions about events.
pub const BOUND: &[Bound] = &[
    ("core.event_sub", 0, |args| subscribe(args, Of::All)),
    ("server.event_sub", 1, |args| {
        let (proxy, server) = crate::servers::names(args)?;
        subscribe(args, Of::Server(proxy, server))
    }),
    ("patref.event_sub", 1, |args| {
        let set = crate::pattern_sets::held(args)?;
        subscribe(args, Of::Set(set))
    }),
    ("subscription.unsub", 1, unsubscribe),
];

/// What subscribers name, and what it means.
const NAMES: &[(&str, u32)] = &[
    ("SERVER", kind::ALL),
    ("SERVER_ADD", kind::ADD),
    ("SERVER_DEL", kind::DEL),
    ("SERVER_UP", kind::UP),
    ("SERVER_DOWN", kind::DOWN),
    ("SERVER_STATE", kind::STATE),
    ("SERVER_ADMIN", kind::ADMIN),
    ("SERVER_CHECK", kind::CHECK),
    ("SERVER_INETADDR", kind::ADDRESS),
    // Nothing here makes these.
    ("ACME", 0),
    ("ACME_DEPLOY", 0),
    ("ACME_NEWCERT", 0),
    ("PAT_REF", PATTERNS),
    ("PAT_REF_ADD", bit(Change::Add)),
    ("PAT_REF_DEL", bit(Change::Del)),
    ("PAT_REF_SET", bit(Change::Set)),
    ("PAT_REF_CLEAR", bit(Change::Clear)),
    ("PAT_REF_COMMIT", bit(Change::Commit)),
];

/// All events of sets of patterns.
const PATTERNS: u32 =
    bit(Change::Add) | bit(Change::Del) | bit(Change::Set) | bit(Change::Clear) | bit(Change::Commit);

/// The bit of a change of a set; those of servers are below it (`model::events::kind`).
const fn bit(change: Change) -> u32 {
    match change {
        Change::Add => 1 << 16,
        Change::Del => 1 << 17,
        Change::Set => 1 << 18,
        Change::Clear => 1 << 19,
        Change::Commit => 1 << 20,
    }
}

/// How many events wait for a function at most. One that is slower misses some.
const MOST: usize = 1000;

/// What a subscription is about.
#[derive(Default)]
enum Of {
    /// All servers.
    #[default]
    All,
    /// That server of a proxy.
    Server(String, String),
    /// A set of patterns.
    Set(Arc<LiveSet>),
}

/// What happened.
enum Happened {
    /// Something to a server.
    Server(Event),
    /// A change of a set, and when, in seconds since 1970.
    Set(Change, u64),
}

/// A subscription.
#[derive(Default)]
pub struct Subscription {
    kinds: u32,
    of: Of,
    queue: Mutex<VecDeque<Happened>>,
    wake: Wake,
    over: AtomicBool,
    /// Some were missed.
    missed: AtomicBool,
}

/// Subscriptions of a state that begin when the process serves, in its data.
#[derive(Default)]
pub struct Waiting(Mutex<Vec<(Arc<Subscription>, Function, Value)>>);

/// What a script holds of it.
struct Handle(Arc<Subscription>);

impl mlua::UserData for Handle {}

impl Subscription {
    fn note(&self, event: &Event) {
        let mine = match &self.of {
            Of::Server(proxy, server) => **proxy == *event.proxy.0 && **server == *event.server.0,
            _ => true,
        };
        if mine {
            self.queued(|| Happened::Server(event.clone()));
        }
    }

    fn queued(&self, happened: impl FnOnce() -> Happened) {
        if self.over.load(Relaxed) {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.len() >= MOST {
            return self.missed.store(true, Relaxed);
        }
        queue.push_back(happened());
        drop(queue);
        self.wake.raise();
    }

    /// The next event; `None`: the subscription is over.
    async fn next(&self) -> Option<Happened> {
        poll_fn(|cx| {
            let woken = self.wake.poll(cx).is_ready();
            if self.over.load(Relaxed) {
                return Poll::Ready(None);
            }
            match self.queue.lock().pop_front() {
                Some(event) => Poll::Ready(Some(event)),
                None => {
                    if woken {
                        cx.waker().wake_by_ref();
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }
}

fn kinds(args: &Args<'_>) -> Result<u32, String> {
    let wrong = || args.bad(1, &format!("table of strings expected, got {}", args.get(1).type_name()));
    let list = args.get(1).as_table().ok_or_else(wrong)?;
    let (mut kinds, mut any) = (0, false);
    for name in list.sequence_values::<Value>() {
        let Value::String(name) = inner(name)? else { return Err(wrong()) };
        let name = name.to_string_lossy();
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let (_, bits) = known.ok_or_else(|| args.bad(1, &format!("'{name}' event type is unknown")))?;
        (kinds, any) = (kinds | bits, true);
    }
    if any { Ok(kinds) } else { Err("event_sub: no valid event types were provided".into()) }
}

fn subscribe(args: &mut Args<'_>, of: Of) -> Outcome {
    let (kinds, function) = (kinds(args)?, args.function(2)?);
    let subscription = Arc::new(Subscription { kinds, of, ..Subscription::default() });
    let handle = inner(args.lua().create_userdata(Handle(subscription.clone())))?;
    let made = object(args.lua(), "subscription", handle)?;
    if let Some(worker) = with_worker(Rc::clone) {
        let state = args.lua().app_data_ref::<std::sync::Weak<State>>().and_then(|state| state.upgrade());
        let state = state.ok_or("event_sub: not available here")?;
        begin(state, subscription, function, made.clone(), &worker);
    } else {
        // The process does not serve yet.
        let waiting = args.lua().app_data_ref::<Waiting>().ok_or("event_sub: not available here")?;
        waiting.0.lock().push((subscription, function, made.clone()));
    }
    give(args.lua(), made)
}

fn unsubscribe(args: &mut Args<'_>) -> Outcome {
    let data: AnyUserData = args.own()?;
    let handle = data.borrow::<Handle>().map_err(|_| "unsub: no subscription".to_owned())?;
    handle.0.over.store(true, Relaxed);
    handle.0.wake.raise();
    nothing()
}

/// The process serves: those of a state that wait for it begin on this worker.
pub fn start(state: &Arc<State>, worker: &Rc<Worker>) {
    let waiting = state.lua.app_data_ref::<Waiting>().map(|waiting| std::mem::take(&mut *waiting.0.lock()));
    for (subscription, function, object) in waiting.into_iter().flatten() {
        begin(state.clone(), subscription, function, object, worker);
    }
}

/// Has the subscription told of what happens, until that is dropped.
enum Heard {
    Servers(Arc<model::World>, u32),
    Set(Arc<LiveSet>, u64),
}

impl Heard {
    fn of(subscription: &Arc<Subscription>, worker: &Worker) -> Heard {
        let noted = subscription.clone();
        if let Of::Set(set) = &subscription.of {
            let kinds = subscription.kinds;
            let told = move |change| {
                if kinds & bit(change) != 0 {
                    noted.queued(|| Happened::Set(change, rt::wall().as_secs()));
                }
            };
            return Heard::Set(set.clone(), set.hear(Arc::new(told)));
        }
        let world = worker.shared.program.world.clone();
        let number = world.events.begin(subscription.kinds, Arc::new(move |event| noted.note(event)));
        Heard::Servers(world, number)
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        match self {
            Heard::Servers(world, number) => world.events.end(*number),
            Heard::Set(set, number) => set.unhear(*number),
        }
    }
}

/// Begins a subscription on this worker.
fn begin(
    state: Arc<State>,
    subscription: Arc<Subscription>,
    function: Function,
    object: Value,
    worker: &Rc<Worker>,
) {
    let heard = Heard::of(&subscription, worker);
    let worker = worker.clone();
    rt::spawn(async move {
        let id = crate::state::next_id();
        while let Some(Some(happened)) = state.ending.before(id, subscription.next()).await {
            if let Err(failure) = call(&state, &function, &object, &happened, &worker).await
                && failure != Failure::Over
            {
                told::failed(&state.settings, &failure.told("Lua event_hdl", state.number));
            }
            if subscription.missed.swap(false, Relaxed) {
                let text = "Lua event_hdl: events were missed, for the function is too slow.";
                told::failed(&state.settings, text);
            }
        }
        drop(heard);
    });
}

async fn call(
    state: &Arc<State>,
    function: &Function,
    object: &Value,
    happened: &Happened,
    worker: &Rc<Worker>,
) -> Result<(), Failure> {
    let wrong = |e: mlua::Error| failure(&e);
    let kind = match happened {
        Happened::Server(event) => event.kind,
        Happened::Set(change, _) => bit(*change),
    };
    let name = NAMES.iter().find(|(_, bits)| *bits == kind).map_or("", |(name, _)| name);
    let mut args = MultiValue::from_iter([Value::String(state.lua.create_string(name).map_err(wrong)?)]);
    // As in HAProxy, events of sets have no data, not even nil in its place.
    let when = match happened {
        Happened::Server(event) => {
            args.push_back(Value::Table(data(&state.lua, event).map_err(wrong)?));
            event.when
        }
        Happened::Set(_, when) => *when,
    };
    args.push_back(object.clone());
    args.push_back(Value::Integer(i64::try_from(when).unwrap_or(i64::MAX)));
    let mut run = Run::new(state, function.clone(), state.settings.task, true)?;
    crate::tasks::drive(&mut run, args, worker).await.map(drop)
}

/// What the function is told of an event.
fn data(lua: &Lua, event: &Event) -> mlua::Result<Table> {
    let (proxy, server) = (&event.proxy, &event.server);
    let all = lua.create_table()?;
    all.raw_set("name", &*server.0)?;
    all.raw_set("puid", server.1)?;
    all.raw_set("rid", server.2)?;
    all.raw_set("proxy_name", &*proxy.0)?;
    all.raw_set("proxy_uuid", proxy.1)?;
    if event.kind != kind::DEL && crate::servers::find(&proxy.0, &server.0, |_| ()).is_some() {
        let handle = format!("{}/{}", proxy.0, server.0);
        if let Ok(reference) = object(lua, "server", handle) {
            all.raw_set("reference", reference)?;
        }
    }
    match &event.detail {
        Detail::Nothing => {}
        Detail::Check(checked) => all.raw_set("check", check(lua, checked)?)?,
        Detail::Admin { cause, change, requeued } => {
            let table = lua.create_table()?;
            table.raw_set("cause", &**cause)?;
            table.raw_set("old_admin", bits(lua, change.0)?)?;
            table.raw_set("new_admin", bits(lua, change.1)?)?;
            table.raw_set("requeued", *requeued)?;
            all.raw_set("admin", table)?;
        }
        Detail::State { admin, check: checked, cause, change, requeued } => {
            let table = lua.create_table()?;
            table.raw_set("admin", *admin)?;
            if let Some(checked) = checked {
                table.raw_set("check", check(lua, checked)?)?;
            }
            table.raw_set("cause", &**cause)?;
            table.raw_set("old_state", word(change.0))?;
            table.raw_set("new_state", word(change.1))?;
            table.raw_set("requeued", *requeued)?;
            all.raw_set("state", table)?;
        }
    }
    Ok(all)
}

fn word(op: Op) -> &'static str {
    match op {
        Op::Stopped => "STOPPED",
        Op::Starting => "STARTING",
        Op::Running => "RUNNING",
        Op::Stopping => "STOPPING",
    }
}

fn bits(lua: &Lua, bits: u32) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let names = [
        ("MAINT", admin::MAINT),
        ("FMAINT", admin::FMAINT),
        ("IMAINT", admin::IMAINT),
        ("RMAINT", admin::RMAINT),
        ("CMAINT", admin::CMAINT),
        ("DRAIN", admin::DRAIN),
        ("FDRAIN", admin::FDRAIN),
        ("IDRAIN", admin::IDRAIN),
    ];
    for (name, bit) in names {
        table.raw_set(name, bits & bit != 0)?;
    }
    Ok(table)
}

fn check(lua: &Lua, checked: &Checked) -> mlua::Result<Table> {
    use model::check::CheckStatus;
    let result = &checked.result;
    let table = lua.create_table()?;
    let word = match result.status {
        CheckStatus::L7OkCond => "CONDPASS",
        status if status.passed() => "PASSED",
        _ => "FAILED",
    };
    table.raw_set("result", word)?;
    table.raw_set("agent", checked.agent)?;
    table.raw_set("duration", result.duration_ms)?;
    let reason = lua.create_table()?;
    reason.raw_set("short", result.status.code())?;
    reason.raw_set("desc", result.status.text())?;
    if result.status.has_code() {
        reason.raw_set("code", result.code)?;
    }
    table.raw_set("reason", reason)?;
    let health = lua.create_table()?;
    health.raw_set("cur", checked.health)?;
    health.raw_set("rise", checked.limits.0)?;
    health.raw_set("fall", checked.limits.1)?;
    table.raw_set("health", health)?;
    Ok(table)
}
