//! Names of hosts that are kept fresh, by asking the name servers of `resolvers` sections (manual, section
//! 5.3).
//!
//! One worker does it all. Each name that servers of the configuration have is one task, which asks, tells
//! the servers what came of it, and sleeps; servers that share a name share the task. What rules ask for
//! (`do-resolve`) is a task as well, which ends when nobody has asked for a while. Nothing here is on the way
//! of a request but the waiting of such a rule.

mod apply;
mod ask;
mod line;
mod records;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use model::names::Event;
use rt::{Mono, Notify, RemoteNotify, Sender, Timer};

use crate::check::turns::Turns;
use crate::{At, FarmWorker, with_worker};
use ask::Failure;
use records::Records;

/// The worker that resolves names.
const RESOLVER: usize = 0;

/// Questions that are open at a time, of names of servers and of those that rules ask for each. Each may
/// have a socket for each name server.
const QUESTIONS: u32 = 128;

/// Names that rules ask for at a time: they may come from clients.
const RULE_NAMES: usize = 4096;

/// Rules that wait for one name.
const WAITING: usize = 4096;

/// What of a name is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    /// An address, of IPv4 or IPv6 first.
    Address { v4: bool },
    /// The places of a service.
    Service,
}

type Key = (u32, Box<str>, Wanted);

/// The names of one worker.
pub struct Names {
    all: RefCell<HashMap<Key, Rc<Name>>>,
    lines: RefCell<HashMap<(u32, usize), Rc<line::Lines>>>,
    /// Turns of the names that servers have.
    turns: Rc<Turns>,
    /// Turns of those that only rules ask for.
    guests: Rc<Turns>,
    /// Where datagrams are received.
    datagram: RefCell<Vec<u8>>,
    /// What numbers of questions are made with, so that nobody guesses them.
    secret: RandomState,
    questions: Cell<u64>,
    /// They are to be known no more.
    ended: Cell<bool>,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            all: RefCell::default(),
            lines: RefCell::default(),
            turns: Rc::new(Turns::new(QUESTIONS)),
            guests: Rc::new(Turns::new(QUESTIONS)),
            datagram: RefCell::default(),
            secret: RandomState::new(),
            questions: Cell::new(0),
            ended: Cell::new(false),
        }
    }
}

/// A server that wants to know. The index may be another's some day; its state is not.
#[derive(Clone)]
struct Subscriber {
    at: At,
    state: Arc<model::Server>,
}

/// One name.
struct Name {
    section: u32,
    name: Box<str>,
    wanted: Wanted,
    servers: RefCell<Vec<Subscriber>>,
    /// Rules that wait for an address.
    waiting: RefCell<Vec<Sender<Option<IpAddr>>>>,
    records: RefCell<Records>,
    /// When a valid answer came; at first when the name was met.
    valid: Cell<Mono>,
    /// Whether one ever came.
    known: Cell<bool>,
    /// Which address a rule gets next.
    turn: Cell<usize>,
    /// Whether it is being asked for now.
    asking: Cell<bool>,
    /// Somebody does not want to wait for the next round.
    wake: Notify,
}

impl Names {
    /// The name of this key, whose task is begun if there is none.
    fn name(&self, worker: &Rc<FarmWorker>, section: u32, name: &str, wanted: Wanted) -> Rc<Name> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let key: Key = (section, name.into(), wanted);
        if let Some(known) = self.all.borrow().get(&key) {
            return known.clone();
        }
        let new = Rc::new(Name {
            section,
            name: key.1.clone(),
            wanted,
            servers: RefCell::default(),
            waiting: RefCell::default(),
            records: RefCell::default(),
            valid: Cell::new(rt::now()),
            known: Cell::new(false),
            turn: Cell::new(0),
            asking: Cell::new(true),
            wake: Notify::new(),
        });
        self.all.borrow_mut().insert(key, new.clone());
        rt::spawn(keep(worker.clone(), new.clone()));
        new
    }

    /// The number of the next question.
    fn number(&self) -> u16 {
        let count = self.questions.get();
        self.questions.set(count.wrapping_add(1));
        self.secret.hash_one(count) as u16
    }

    /// The connections to a name server of TCP.
    fn line(&self, section: u32, server: usize) -> Rc<line::Lines> {
        self.lines.borrow_mut().entry((section, server)).or_default().clone()
    }

    /// A server does not want to know of any name any more but that of its service.
    fn leave(&self, server: &Subscriber) {
        for name in self.all.borrow().values().filter(|name| name.wanted != Wanted::Service) {
            let mut servers = name.servers.borrow_mut();
            let before = servers.len();
            servers.retain(|s| !Arc::ptr_eq(&s.state, &server.state));
            if servers.len() != before {
                name.hurry();
            }
        }
    }

    /// Whether rules ask for as many names as they may. Those of servers don't count.
    fn is_full(&self) -> bool {
        let all = self.all.borrow();
        let guests = || all.values().filter(|name| name.servers.borrow().is_empty()).count();
        all.len() >= RULE_NAMES && guests() >= RULE_NAMES
    }

    /// Another configuration runs: who waits for a rule is told, and nothing else.
    pub(crate) fn end(&self) {
        self.ended.set(true);
        for name in self.all.borrow().values() {
            name.servers.borrow_mut().clear();
            name.wake.notify();
        }
    }

    fn forget(&self, name: &Rc<Name>) {
        self.all.borrow_mut().retain(|_, known| !Rc::ptr_eq(known, name));
    }
}

impl Name {
    /// Has it asked for soon; what is being asked for now is soon enough.
    fn hurry(&self) {
        if !self.asking.get() {
            self.wake.notify();
        }
    }

    /// Whether what rules were told may be told again.
    fn is_fresh(&self, worker: &FarmWorker) -> bool {
        let hold = worker.farm.program.resolvers.get(self.section as usize).map(|r| r.hold.valid);
        self.known.get() && hold.is_some_and(|hold| rt::now() < self.valid.get() + hold)
    }

    /// The next address for a rule.
    fn next(&self) -> Option<IpAddr> {
        let records = self.records.borrow();
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        records.addresses.get(turn.checked_rem(records.addresses.len())?).map(|held| held.what)
    }

    /// Tells the rules that wait.
    fn tell(&self, found: bool) {
        for sender in self.waiting.take() {
            let _ = sender.send(if found { self.next() } else { None });
        }
    }
}

/// Begins with the names of the configuration's servers.
pub(crate) fn start(worker: &Rc<FarmWorker>) {
    if worker.index != RESOLVER {
        return;
    }
    let program = worker.farm.program.clone();
    for (proxy, p) in program.proxies.numbered().filter(|(_, p)| !p.disabled) {
        for (server, s) in p.servers.numbered() {
            let Some(section) = s.resolvers else { continue };
            let who = Subscriber { at: At { proxy, server }, state: s.state.clone() };
            match &s.service {
                Some(service) => {
                    let name = worker.names.name(worker, section, service, Wanted::Service);
                    name.servers.borrow_mut().push(who);
                }
                None => follow(worker, &who),
            }
        }
    }
}

/// Has a server follow the addresses of its host's name.
fn follow(worker: &Rc<FarmWorker>, who: &Subscriber) {
    let Some(server) = worker.farm.program.find_server(who.at.proxy, who.at.server) else { return };
    let (Some(section), Some(host)) = (server.resolvers, who.state.fqdn.lock().clone()) else { return };
    let wanted = Wanted::Address { v4: server.naming.prefer_v4 };
    let name = worker.names.name(worker, section, &host, wanted);
    let mut servers = name.servers.borrow_mut();
    if servers.iter().any(|s| Arc::ptr_eq(&s.state, &who.state)) {
        return;
    }
    servers.push(who.clone());
    let alone = servers.len() == 1;
    drop(servers);
    if name.known.get() && name.is_fresh(worker) {
        let mut taken = apply::Taken::default();
        apply::address(worker, &name, who, apply::CACHE, &mut taken);
    } else if alone {
        name.hurry();
    }
}

/// Resolves a name again and again.
async fn keep(worker: Rc<FarmWorker>, name: Rc<Name>) {
    let program = worker.farm.program.clone();
    let Some(section) = program.resolvers.get(name.section as usize) else { return };
    loop {
        name.asking.set(true);
        let result = ask::resolve(&worker.names, &program, &name).await;
        name.asking.set(false);
        let now = rt::now();
        match result {
            Ok(heard) => {
                name.valid.set(now);
                name.known.set(true);
                name.records.borrow_mut().update(heard.answer, now, section.hold.obsolete);
                name.tell(true);
                let by = section.servers.get(heard.by);
                let source = by.map_or_else(String::new, |by| format!("{}/{}", section.name, by.name));
                let moved = apply::found(&worker, &name, &source);
                if let Some(by) = by.filter(|_| moved) {
                    by.state.count(Event::Update);
                }
            }
            Err(failure) => {
                program.world.process.counters.of(worker.index).failed_resolutions.inc();
                name.tell(false);
                let hold = match failure {
                    Failure::Nx => section.hold.nx,
                    Failure::Refused => section.hold.refused,
                    Failure::TimedOut => section.hold.timeout,
                    Failure::Other => section.hold.other,
                };
                if now >= name.valid.get() + hold {
                    name.known.set(false);
                    name.records.borrow_mut().clear();
                    apply::failed(&worker, &name, failure);
                }
            }
        }
        if !rest(&worker, &name, section).await {
            return;
        }
    }
}

/// Waits for the next round; whether there is one.
async fn rest(worker: &FarmWorker, name: &Rc<Name>, section: &program::names::Resolvers) -> bool {
    let pause = section.resolve.max(std::time::Duration::from_millis(1));
    let mut timer = Timer::at(rt::now() + pause);
    let mut alone = false;
    poll_fn(|cx| {
        loop {
            let woken = name.wake.poll_notified(cx).is_ready();
            if !name.waiting.borrow().is_empty() {
                return Poll::Ready(true);
            }
            if worker.names.ended.get() {
                worker.names.forget(name);
                return Poll::Ready(false);
            }
            let none = name.servers.borrow().is_empty();
            if none && !alone {
                // Only rules may want it, as long as what is known may be told.
                alone = true;
                let hold = if name.known.get() { section.hold.valid } else { std::time::Duration::ZERO };
                timer.set(Some(name.valid.get() + hold));
            } else if !none && (woken || alone) {
                return Poll::Ready(true);
            }
            if timer.poll_expired(cx).is_ready() {
                if alone {
                    worker.names.forget(name);
                }
                return Poll::Ready(!alone);
            }
            if !woken {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Tells who waits at another worker when it is dropped.
struct Answer(Arc<(Mutex<Option<IpAddr>>, RemoteNotify)>);

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.1.notify();
    }
}

/// An address for a rule.
///
/// Whoever asks on the resolving worker waits for the task itself, others for a call from there.
pub async fn find(worker: &Rc<FarmWorker>, section: u32, name: &str, v4: bool) -> Option<IpAddr> {
    if !wire::dns::is_name(name) {
        return None;
    }
    let (worker, section) = &today(worker, section)?;
    let section = *section;
    if worker.index == RESOLVER {
        return find_here(worker, section, name, v4).await;
    }
    let slot = Arc::new((Mutex::new(None), RemoteNotify::new()));
    let (there, name) = (slot.clone(), name.to_owned());
    let answer = Answer(there);
    crate::on(RESOLVER, worker.farm.epoch, move |w| {
        let w = w.clone();
        rt::spawn(async move {
            let found = find_here(&w, section, &name, v4).await;
            *answer.0.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
        });
    });
    slot.1.notified().await;
    slot.0.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The share that the worker has now, and the index of a section in it.
fn today(worker: &Rc<FarmWorker>, section: u32) -> Option<(Rc<FarmWorker>, u32)> {
    if !worker.is_superseded() {
        return Some((worker.clone(), section));
    }
    let name = &worker.farm.program.resolvers.get(section as usize)?.name;
    let now = with_worker(Rc::clone)?;
    let at = now.farm.program.resolvers.iter().position(|r| r.name == *name)?;
    Some((now, u32::try_from(at).ok()?))
}

async fn find_here(worker: &Rc<FarmWorker>, section: u32, name: &str, v4: bool) -> Option<IpAddr> {
    let names = &worker.names;
    let wanted = Wanted::Address { v4 };
    let key: Key = (section, name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase().into(), wanted);
    let known = names.all.borrow().get(&key).cloned();
    if let Some(known) = known.as_ref().filter(|name| name.is_fresh(worker)) {
        return known.next();
    }
    if known.is_none() && names.is_full() {
        return None;
    }
    let name = names.name(worker, section, name, wanted);
    if name.waiting.borrow().len() >= WAITING {
        return None;
    }
    let (sender, receiver) = rt::oneshot();
    name.waiting.borrow_mut().push(sender);
    name.hurry();
    receiver.recv().await.flatten()
}

/// Gives a server another name, by a command (`set server ... fqdn`); the name before.
pub fn rename(worker: &Rc<FarmWorker>, at: At, name: &str) -> Option<String> {
    let (worker, at) = &worker.today(at)?;
    let at = *at;
    let old = crate::state::Changes::begin(worker).rename(at, name);
    let job = move |w: &Rc<FarmWorker>| {
        let Some(server) = w.farm.program.find_server(at.proxy, at.server) else { return };
        let who = Subscriber { at, state: server.state.clone() };
        drop(server);
        w.names.leave(&who);
        follow(w, &who);
    };
    on_resolver(worker, job);
    old
}

/// A check found nobody at a server's address: its name may lead elsewhere by now.
pub fn doubt(worker: &Rc<FarmWorker>, at: At) {
    let server = worker.farm.program.find_server(at.proxy, at.server);
    let Some(state) = server.filter(|s| s.resolvers.is_some()).map(|s| s.state.clone()) else { return };
    on_resolver(worker, move |w| {
        for name in w.names.all.borrow().values() {
            if name.servers.borrow().iter().any(|s| Arc::ptr_eq(&s.state, &state)) {
                name.hurry();
            }
        }
    });
}

fn on_resolver(worker: &Rc<FarmWorker>, job: impl FnOnce(&Rc<FarmWorker>) + Send + 'static) {
    if worker.index == RESOLVER {
        return job(worker);
    }
    crate::on(RESOLVER, worker.farm.epoch, job);
}
