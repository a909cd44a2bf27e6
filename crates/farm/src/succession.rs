//! One configuration takes the place of another while the process runs.
//!
//! Servers and backends that are in both have the same live state. They keep their places, queues and, where
//! the same servers stand in the same order, their schedule; idle connections go from the pools of a worker's
//! old share to those of its new one. Requests that began under the old configuration go on with its indices;
//! what they have to tell of a server is told to the configuration that runs ([`FarmWorker::today`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use model::server::Op;
use program::{Program, Server};
use rt::Mono;

use crate::{Above, At, Backend, Farm, FarmWorker, Stay, begin, inherit, pool, with_worker};

fn key<T>(state: &Arc<T>) -> usize {
    Arc::as_ptr(state).addr()
}

impl Farm {
    /// The farm of a program that takes the place of another's, `now`.
    pub fn succeed(before: &Farm, program: Arc<Program>, now: Mono) -> Farm {
        begin(&program, now);
        inherit(&program, now);
        let known: HashMap<usize, u32> =
            before.program.proxies.numbered().map(|(at, p)| (key(&p.state), at)).collect();
        let backends = program.proxies.iter().map(|p| {
            // One at a time, so that traffic that has a change to tell does not wait for all of them.
            let turn = program.world.changes.lock();
            let _turn = turn.unwrap_or_else(PoisonError::into_inner);
            match known.get(&key(&p.state)).copied() {
                Some(at) => Backend::succeed(&p, now, &before.backend(at), &before.program.proxy(at)),
                None => Arc::new(Backend::new(&p, now)),
            }
        });
        // Those that were added stand behind the others here, too, so that they can go again.
        let mut first: Vec<Arc<Backend>> = backends.collect();
        let later = first.split_off(program.proxies.initial().min(first.len()));
        let backends = base::fleet::Fleet::new(first);
        for backend in later {
            backends.push(backend);
        }
        let epoch = before.epoch + 1;
        let farm = Farm { backends, epoch, started: before.started, places: Default::default(), program };
        farm.places();
        farm
    }

    /// Looks at all backends again: what changed while the farm was made is seen.
    pub fn catch_up(&self, now: Mono) {
        for (at, _) in self.program.proxies.numbered() {
            let turn = self.program.world.changes.lock();
            let _turn = turn.unwrap_or_else(PoisonError::into_inner);
            self.refresh(at, now);
        }
    }

    fn places(&self) -> &HashMap<usize, At> {
        self.places.get_or_init(|| {
            let servers = self.program.proxies.numbered().flat_map(|(proxy, p)| {
                let each =
                    |(server, s): (u32, base::fleet::Held<'_, Server>)| (key(&s.state), At { proxy, server });
                p.servers.numbered().map(each).collect::<Vec<_>>()
            });
            servers.collect()
        })
    }

    /// Where a server is; `None` if it is not in this configuration.
    pub fn place_of(&self, state: &Arc<model::Server>) -> Option<At> {
        self.places().get(&key(state)).copied()
    }
}

/// Whether connections that were made to a server as `was` says it are such as `now` says: also whom TLS
/// believes, and what it shows.
fn connects_alike(was: &Server, now: &Server) -> bool {
    was.settings == now.settings
        && was.tls.as_ref().map(|tls| tls.connector.nature())
            == now.tls.as_ref().map(|tls| tls.connector.nature())
        && was.source.is_some() == now.source.is_some()
        && (was.source.is_none() || format!("{:?}", was.source) == format!("{:?}", now.source))
}

impl FarmWorker {
    /// The share of a worker in a farm that takes the place of its own.
    pub fn succeed(&self, farm: Arc<Farm>, above: Box<dyn Above>) -> Rc<FarmWorker> {
        let pools = pool::Pools::new(&farm.program);
        Rc::new(FarmWorker {
            index: self.index,
            farm,
            pools,
            checks: Default::default(),
            names: Default::default(),
            above,
            serial: self.serial.clone(),
            superseded: Cell::new(false),
            tasks: RefCell::default(),
        })
    }

    /// Hands over to the share that takes its place, which is [started](FarmWorker::start) then.
    pub fn hand_over(self: &Rc<FarmWorker>, next: &Rc<FarmWorker>) {
        self.superseded.set(true);
        for task in self.tasks.take() {
            rt::cancel(task);
        }
        self.checks.end_all();
        self.names.end();
        for (proxy, p) in self.farm.program.proxies.numbered() {
            for (server, was) in p.servers.numbered() {
                let at = At { proxy, server };
                if self.pools.is_unused(at) {
                    continue;
                }
                let to = next.farm.place_of(&was.state);
                let now = to.and_then(|to| next.farm.program.find_server(to.proxy, to.server));
                match to.zip(now).filter(|(_, now)| connects_alike(&was, now)) {
                    Some((to, _)) => self.pools.hand_over(at, &next.pools, to),
                    None => self.pools.flush(proxy, server, &was.state),
                }
            }
        }
        self.pools.close();
    }

    /// Goes on with slow starts, those of a file of server states among them, and lets in who waits where
    /// there are more places now.
    pub(crate) fn resume(self: &Rc<FarmWorker>) {
        if self.index != 0 {
            return;
        }
        for (proxy, p) in self.farm.program.proxies.numbered() {
            for (server, s) in p.servers.numbered() {
                let slots = &self.farm.backend(proxy).slots;
                if slots.get(server as usize).is_some_and(|slot| !slot.queue.is_empty()) {
                    crate::queue::admit_next(self, proxy, server);
                }
                if s.state.op() == Op::Starting {
                    crate::state::resume(self, At { proxy, server });
                }
            }
        }
    }

    /// Notes a task that is to end with the configuration.
    pub(crate) fn keep(&self, task: rt::TaskId) {
        let mut tasks = self.tasks.borrow_mut();
        if tasks.len() == tasks.capacity() {
            tasks.retain(|task| rt::is_alive(*task));
        }
        tasks.push(task);
    }

    /// Whether another configuration runs.
    pub fn is_superseded(&self) -> bool {
        self.superseded.get()
    }

    /// The share that the worker has now, and where a server is in it; `None`: the server is there no more.
    pub fn today(self: &Rc<FarmWorker>, at: At) -> Option<(Rc<FarmWorker>, At)> {
        if !self.superseded.get() {
            return Some((self.clone(), at));
        }
        let state = self.farm.program.find_server(at.proxy, at.server)?.state.clone();
        with_worker(|w| Some((w.clone(), w.farm.place_of(&state)?))).flatten()
    }

    /// Where a connection that a client keeps to itself leads under the configuration that runs; `None`:
    /// nowhere, or it would be another connection there.
    pub fn heir_of(&self, backend: u32, server: Option<u32>) -> Option<(u32, Option<u32>, Stay)> {
        if let Some(server) = server {
            let was = self.farm.program.find_server(backend, server)?;
            let (worker, at) = FarmWorker::heir(&was)?;
            return Some((at.proxy, Some(at.server), worker.farm.stay(at.proxy, Some(at.server))));
        }
        let state = self.farm.program.proxy(backend).state.clone();
        with_worker(|w| {
            let (at, _) = w.farm.program.proxies.numbered().find(|(_, p)| Arc::ptr_eq(&p.state, &state))?;
            Some((at, None, w.farm.stay(at, None)))
        })
        .flatten()
    }

    /// A connection to a server that was used under this configuration comes to rest under the one that runs.
    pub(crate) fn heir(was: &Server) -> Option<(Rc<FarmWorker>, At)> {
        with_worker(|w| {
            let at = w.farm.place_of(&was.state)?;
            let now = w.farm.program.find_server(at.proxy, at.server)?;
            connects_alike(was, &now).then(|| (w.clone(), at))
        })
        .flatten()
    }
}

/// When a check is due that was planned before, as the time from now on; `most` if that is not known.
pub(crate) fn phase(
    state: &model::Server,
    which: usize,
    most: std::time::Duration,
) -> Option<std::time::Duration> {
    let due = state.due.get(which)?.load(Relaxed);
    (due > 0).then(|| std::time::Duration::from_millis(due.saturating_sub(rt::now().as_millis())).min(most))
}
