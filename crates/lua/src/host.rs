//! What runs around a script while it runs: the transaction of an action, the facts that a fetch sees, or
//! nothing at all.
//!
//! A function of Lua's can hold nothing that lives as short as a transaction is borrowed. So whoever
//! resumes a script puts what it may look at into a scoped slot of the thread, and the functions bound to
//! Lua find it there, if it is the one that their object was made for.

use std::cell::RefCell;

use crate::shown::{Flowing, Wishes};
use bumpalo::Bump;
use engine::live::View;
use engine::sessions::Session;
use lang::action::Exec;
use lang::env::{Env, Side};
use model::Txn;
use scoped_tls_hkt::scoped_thread_local;

/// What a script may look at.
pub trait Host {
    /// The number of what it is, which objects of it carry; 0: there is no transaction.
    fn id(&self) -> u64;

    /// Looks at the facts; `false`: there are none.
    fn env(&self, look: &mut dyn FnMut(&Env<'_>)) -> bool;

    /// Changes the transaction; `false`: nothing may be changed here.
    fn exec(&self, change: &mut dyn FnMut(&mut Exec<'_>)) -> bool;

    /// The wishes of the filter that runs, if one does.
    fn wishes(&self) -> Option<&Wishes> {
        None
    }

    /// The data that a filter is shown of its direction; `false`: none are.
    fn flowing(&self, change: &mut dyn FnMut(&mut Flowing)) -> bool {
        let _ = change;
        false
    }
}

scoped_thread_local!(static HOST: for<'a> &'a (dyn Host + 'a));

/// Runs `work` where scripts find this host.
pub fn within<R>(host: &dyn Host, work: impl FnOnce() -> R) -> R {
    HOST.set(host, work)
}

/// Lends the host at hand, if it is number `id`.
fn at<R>(id: u64, lend: impl FnOnce(&dyn Host) -> Option<R>) -> Option<R> {
    if !HOST.is_set() || id == 0 {
        return None;
    }
    HOST.with(|host| if host.id() == id { lend(host) } else { None })
}

/// Looks at the facts of the host at hand, if it is number `id`.
pub fn env<R>(id: u64, look: impl FnOnce(&Env<'_>) -> R) -> Option<R> {
    at(id, |host| {
        let (mut look, mut found) = (Some(look), None);
        host.env(&mut |env| found = look.take().map(|look| look(env)));
        found
    })
}

/// Looks at the facts of whatever host is at hand.
pub fn any_env<R>(look: impl FnOnce(&Env<'_>) -> R) -> Option<R> {
    let id = if HOST.is_set() { HOST.with(|host| host.id()) } else { 0 };
    env(id, look)
}

/// Changes the transaction of the host at hand, if it is number `id` and may be changed.
pub fn exec<R>(id: u64, change: impl FnOnce(&mut Exec<'_>) -> R) -> Option<R> {
    at(id, |host| {
        let (mut change, mut found) = (Some(change), None);
        host.exec(&mut |exec| found = change.take().map(|change| change(exec)));
        found
    })
}

/// The wishes of the filter at hand, if the host is number `id`.
pub fn wishes<R>(id: u64, look: impl FnOnce(&Wishes) -> R) -> Option<R> {
    at(id, |host| host.wishes().map(look))
}

/// The data that the filter at hand is shown, if the host is number `id`.
pub fn flowing<R>(id: u64, change: impl FnOnce(&mut Flowing) -> R) -> Option<R> {
    at(id, |host| {
        let (mut change, mut found) = (Some(change), None);
        host.flowing(&mut |flowing| found = change.take().map(|change| change(flowing)));
        found
    })
}

/// Nothing around: the body of a file, a task.
pub struct Nothing;

impl Host for Nothing {
    fn id(&self) -> u64 {
        0
    }

    fn env(&self, _: &mut dyn FnMut(&Env<'_>)) -> bool {
        false
    }

    fn exec(&self, _: &mut dyn FnMut(&mut Exec<'_>)) -> bool {
        false
    }
}

/// An action.
pub struct Acting<'a, 'x> {
    /// Its number.
    pub id: u64,
    /// What it may touch; borrowed while a function of the script's touches it.
    pub exec: RefCell<&'a mut Exec<'x>>,
    /// No more data will come.
    pub over: bool,
    /// The data of a connection of TCP, once the script has looked at them.
    pub flowing: RefCell<Option<Flowing>>,
}

impl<'a, 'x> Acting<'a, 'x> {
    /// Of an action.
    pub fn new(id: u64, exec: &'a mut Exec<'x>, over: bool) -> Acting<'a, 'x> {
        Acting { id, exec: RefCell::new(exec), over, flowing: RefCell::default() }
    }

    /// The data as they are to be, if the script has changed them.
    pub fn edited(&self) -> Option<Vec<u8>> {
        let flowing = self.flowing.borrow_mut().take().filter(|flowing| flowing.changed)?;
        let mut all = flowing.out;
        all.extend_from_slice(&flowing.held);
        Some(all)
    }
}

impl Host for Acting<'_, '_> {
    fn id(&self) -> u64 {
        self.id
    }

    fn env(&self, look: &mut dyn FnMut(&Env<'_>)) -> bool {
        let Ok(exec) = self.exec.try_borrow() else { return false };
        look(&exec.env());
        true
    }

    fn exec(&self, change: &mut dyn FnMut(&mut Exec<'_>)) -> bool {
        let Ok(mut exec) = self.exec.try_borrow_mut() else { return false };
        change(&mut exec);
        true
    }

    fn flowing(&self, change: &mut dyn FnMut(&mut Flowing)) -> bool {
        let (Ok(exec), Ok(mut flowing)) = (self.exec.try_borrow(), self.flowing.try_borrow_mut()) else {
            return false;
        };
        if exec.txn.has_req || exec.txn.has_res {
            return false;
        }
        change(flowing.get_or_insert_with(|| {
            let payload = exec.live.payload(exec.side);
            Flowing {
                side: exec.side,
                held: payload.data.to_vec(),
                out: Vec::new(),
                most: rt::bufsize(),
                over: payload.complete || self.over,
                eom: false,
                http: false,
                waits: crate::clock::yields(),
                changed: false,
            }
        }));
        true
    }
}

/// A fetch or a converter.
pub struct Looking<'a> {
    /// Its number.
    pub id: u64,
    /// What it sees.
    pub env: Env<'a>,
}

impl Host for Looking<'_> {
    fn id(&self) -> u64 {
        self.id
    }

    fn env(&self, look: &mut dyn FnMut(&Env<'_>)) -> bool {
        look(&self.env);
        true
    }

    fn exec(&self, _: &mut dyn FnMut(&mut Exec<'_>)) -> bool {
        false
    }
}

/// A service: it sees a copy of the transaction.
pub struct Serving<'a> {
    /// Its number.
    pub id: u64,
    /// The worker.
    pub worker: &'a engine::Worker,
    /// The client connection.
    pub session: &'a Session,
    /// The copy.
    pub txn: &'a Txn,
    /// Memory for what is computed.
    pub arena: &'a Bump,
}

impl Host for Serving<'_> {
    fn id(&self) -> u64 {
        self.id
    }

    fn env(&self, look: &mut dyn FnMut(&Env<'_>)) -> bool {
        let conn = &self.session.conn;
        let view = View::of_txn(self.worker, conn, self.txn);
        let (txn, arena) = (self.txn, self.arena);
        look(&Env { conn, txn, live: &view, arena, side: Side::Request, last: true });
        true
    }

    fn exec(&self, _: &mut dyn FnMut(&mut Exec<'_>)) -> bool {
        false
    }
}
