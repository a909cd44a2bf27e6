//! A `peers` section at work: its peers, and from whom is learned what was known before this process began.
//!
//! A process that takes over from another waits for that one first: it connects and teaches unasked. Then a
//! peer that is connected is asked, one after the other until one says that it knows everything. When nobody
//! can be asked for five seconds, this process knows what there is to know.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::Worker;
use model::peers::Peer;
use program::Program;
use program::peers::Section;
use rt::{Listener, Mono, Notify, RemoteNotify};

use crate::progress::Progress;

/// How long somebody is waited for to learn from.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sessions are not woken more often than this for changes of tables: what comes meanwhile goes together.
const PACE: Duration = Duration::from_millis(2);

/// What is known of everything that there is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resync {
    /// The old process teaches, or will.
    Local,
    /// A peer is asked as soon as one is there.
    Remote,
    /// Everything is known.
    Done,
}

/// A peer as the section knows it.
pub(crate) struct Slot {
    /// Its position; that of this process itself is the last.
    pub at: usize,
    /// What `show peers` tells.
    pub view: Arc<Peer>,
    /// Counts sessions: only the latest goes on.
    pub generation: Cell<u64>,
    /// A session stands.
    pub established: Cell<bool>,
    /// Wakes the session.
    pub wake: RefCell<Option<Rc<Notify>>>,
    /// Wakes the task that connects.
    pub free: Notify,
    /// For each table.
    pub progress: RefCell<Vec<Progress>>,
    /// It is to be asked for everything.
    pub ask: Cell<bool>,
    /// It is asked, and has not told everything yet.
    pub learning: Cell<bool>,
    /// It was asked and did not know everything.
    pub knows_part: Cell<bool>,
}

impl Slot {
    /// It is this process, or the one that it was.
    pub(crate) fn is_local(&self) -> bool {
        self.view.local
    }

    /// Has the session look around.
    pub(crate) fn wake(&self) {
        if let Some(wake) = &*self.wake.borrow() {
            wake.notify();
        }
    }

    /// Ends the session, if there is one.
    pub(crate) fn dismiss(&self) {
        self.generation.set(self.generation.get() + 1);
        self.established.set(false);
        self.wake();
    }
}

/// What follows when the old process teaches nothing more: where there are no other peers, all is known. A
/// process that soon leaves its place to another would else have to say that it may not know everything, and
/// that one, if it is HAProxy, would teach nobody for some seconds.
fn after_local(slots: &[Slot]) -> Resync {
    if slots.iter().all(Slot::is_local) { Resync::Done } else { Resync::Remote }
}

/// A section at work.
pub(crate) struct Hub {
    pub worker: Rc<Worker>,
    pub program: Arc<Program>,
    index: usize,
    pub slots: Vec<Slot>,
    resync: Cell<Resync>,
    until: Cell<Mono>,
    /// The state of learning has changed.
    changed: Notify,
    /// The process stops: peers are left.
    pub leaving: Cell<bool>,
    /// Where this process listens.
    pub own: RefCell<Option<rt::Addr>>,
    /// Entries that peers told of on their own before everything was known.
    pub fresh: RefCell<Fresh>,
}

/// Entries that came as news while a lesson is on its way or due: by the time it comes, what the teacher
/// says of them may be older. It is a guess by hashes: of two keys that share one, the second is taken from
/// news as well.
#[derive(Default)]
pub(crate) struct Fresh(HashSet<(usize, u64)>);

impl Fresh {
    /// News beyond so many are not remembered.
    const MOST: usize = 1 << 20;

    /// There are news of an entry.
    pub(crate) fn note(&mut self, table: usize, key: &[u8]) {
        if self.0.len() < Fresh::MOST {
            self.0.insert((table, hash(key)));
        }
    }

    /// Whether there were.
    pub(crate) fn has(&self, table: usize, key: &[u8]) -> bool {
        !self.0.is_empty() && self.0.contains(&(table, hash(key)))
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Hub {
    /// A section, which knows nothing yet.
    pub(crate) fn new(worker: Rc<Worker>, index: usize, takes_over: bool) -> Rc<Hub> {
        let program = worker.shared.program.clone();
        let section = &program.peers[index];
        let slot = |(at, view): (usize, &Arc<Peer>)| Slot {
            at,
            view: view.clone(),
            generation: Cell::new(0),
            established: Cell::new(false),
            wake: RefCell::default(),
            free: Notify::new(),
            progress: RefCell::new(section.tables.iter().map(|t| Progress::new(&t.table)).collect()),
            ask: Cell::new(false),
            learning: Cell::new(false),
            knows_part: Cell::new(false),
        };
        let slots: Vec<Slot> = section.state.peers.iter().enumerate().map(slot).collect();
        let first = if takes_over { Resync::Local } else { after_local(&slots) };
        let hub = Hub {
            index,
            slots,
            resync: Cell::new(first),
            until: Cell::new(rt::now() + PATIENCE),
            changed: Notify::new(),
            leaving: Cell::new(false),
            own: RefCell::default(),
            fresh: RefCell::default(),
            program: program.clone(),
            worker,
        };
        hub.tell();
        Rc::new(hub)
    }

    /// The section.
    pub(crate) fn section(&self) -> &Section {
        &self.program.peers[self.index]
    }

    /// The group of keys that a peer is told of; 0: all.
    pub(crate) fn group(&self, at: usize) -> u32 {
        self.section().others.get(at).map_or(0, |other| other.group)
    }

    /// Begins to tell and to learn.
    pub(crate) fn start(self: &Rc<Hub>, listener: &Listener) {
        // An inherited socket has an address, too.
        let own = link::address::target(&self.section().address);
        *self.own.borrow_mut() = own.or_else(|| listener.local_addr().ok());
        let bell = Arc::new(RemoteNotify::new());
        for shared in &self.section().tables {
            let bell = bell.clone();
            shared.table.bell().attach(move || bell.notify());
        }
        rt::spawn(self.clone().ring(bell));
        rt::spawn(self.clone().watch());
    }

    /// Wakes sessions when tables have changed.
    async fn ring(self: Rc<Hub>, bell: Arc<RemoteNotify>) {
        while !self.leaving.get() {
            bell.notified().await;
            for shared in &self.section().tables {
                shared.table.bell().heard();
            }
            for slot in self.slots.iter().filter(|s| s.established.get()) {
                slot.wake();
            }
            rt::sleep(PACE).await;
        }
    }

    /// Sees to it that waiting ends.
    async fn watch(self: Rc<Hub>) {
        while self.resync.get() != Resync::Done {
            let mut timer = rt::Timer::at(self.until.get());
            let over = std::future::poll_fn(|cx| match self.changed.poll_notified(cx) {
                std::task::Poll::Ready(()) => std::task::Poll::Ready(false),
                std::task::Poll::Pending => timer.poll_expired(cx).map(|()| true),
            });
            if !over.await {
                continue;
            }
            if self.slots.iter().any(|s| s.learning.get()) {
                // Whoever teaches takes its time; a session that is silent ends by itself.
                self.until.set(rt::now() + PATIENCE);
                continue;
            }
            match self.resync.get() {
                Resync::Local => self.turn(after_local(&self.slots)),
                _ => self.turn(Resync::Done),
            }
        }
    }

    fn turn(&self, resync: Resync) {
        self.resync.set(resync);
        if resync == Resync::Done {
            self.fresh.take();
        }
        self.until.set(rt::now() + PATIENCE);
        self.tell();
        if resync == Resync::Remote {
            self.ask_somebody();
        }
        self.changed.notify();
    }

    fn tell(&self) {
        let state = &self.section().state;
        state.up_to_date.store(self.is_up_to_date(), Relaxed);
        let until = if self.is_up_to_date() { 0 } else { self.until.get().as_millis() };
        state.learning_until.store(until, Relaxed);
    }

    /// Everything is known.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.resync.get() == Resync::Done
    }

    /// The old process is waited for, which teaches unasked.
    pub(crate) fn awaits_local(&self) -> bool {
        self.resync.get() == Resync::Local
    }

    /// Asks a peer for everything, if one is there and nobody is asked yet.
    pub(crate) fn ask_somebody(&self) {
        if self.resync.get() != Resync::Remote || self.slots.iter().any(|s| s.learning.get()) {
            return;
        }
        let fit = |s: &&Slot| s.established.get() && !s.is_local() && !s.knows_part.get();
        let all: Vec<&Slot> = self.slots.iter().filter(fit).collect();
        let lot = rt::random() as usize % all.len().max(1);
        if let Some(slot) = all.get(lot) {
            slot.learning.set(true);
            slot.ask.set(true);
            slot.view.learning.store(true, Relaxed);
            slot.wake();
        }
    }

    /// A peer has told what it knows: all, or a part.
    pub(crate) fn has_told(&self, slot: &Slot, everything: bool) {
        let asked = slot.learning.replace(false);
        slot.view.learning.store(false, Relaxed);
        let taught = slot.is_local() && self.awaits_local();
        if !(asked || taught) || self.is_up_to_date() {
            return;
        }
        if everything {
            return self.turn(Resync::Done);
        }
        if taught {
            // It will not say more: others may know the rest.
            return self.turn(after_local(&self.slots));
        }
        slot.knows_part.set(true);
        self.until.set(rt::now() + PATIENCE);
        self.tell();
        self.ask_somebody();
        self.changed.notify();
    }

    /// A session has ended.
    pub(crate) fn lost(&self, slot: &Slot) {
        slot.ask.set(false);
        slot.view.learning.store(false, Relaxed);
        if slot.learning.replace(false) {
            self.until.set(rt::now() + PATIENCE);
            self.tell();
            self.ask_somebody();
            self.changed.notify();
        }
    }

    /// Somebody wants the session with a peer to end; another may begin at once.
    pub(crate) fn part(&self, at: usize) {
        let Some(slot) = self.slots.get(at) else { return };
        slot.dismiss();
        slot.view.connected.store(false, Relaxed);
        slot.view.teaching.store(false, Relaxed);
        self.lost(slot);
        slot.free.notify();
    }

    /// The process stops: peers are left.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        for slot in &self.slots {
            slot.dismiss();
            slot.free.notify();
        }
    }
}
