//! The inside of a world: the engine under test, what it logs and counts, and the servers behind it.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::sinks::Outlets;
use engine::worker::Moves;
use engine::{Shared, Worker};
use rt::sim::{self, Faults};
use rt::{Addr, Datagram, Mono, TaskId};

use crate::explore::Climate;
use crate::log::Line;
use crate::message::Message;
use crate::origin::{self, Answer};
use crate::peer::Peer;
use crate::setup::{Setup, addr, judge_after};

/// Where the engine sends its log lines.
pub const LOG: &str = "127.0.0.1:514";

/// A world with an engine in it.
pub struct Stage {
    /// How the network is.
    pub climate: Climate,
    /// The configuration at work.
    pub shared: Arc<Shared>,
    /// The engine's worker.
    pub worker: Rc<Worker>,
    /// When the world began.
    pub start: Mono,
    /// The configuration that took the place of the first one.
    next: RefCell<Option<(Arc<Shared>, Rc<Worker>)>>,
    lines: Rc<RefCell<Vec<Line>>>,
    servers: RefCell<Vec<TaskId>>,
    buffers: usize,
    pipes: usize,
}

impl Stage {
    /// Starts the engine. Called inside of a world.
    pub(crate) fn open(setup: Setup, climate: Climate) -> Rc<Stage> {
        let takes_over = setup.takes_over;
        Stage::enter(setup.share(), climate, 0, takes_over)
    }

    /// Starts one thread of the engine. Called inside of a world.
    pub(crate) fn enter(shared: Arc<Shared>, climate: Climate, thread: usize, takes_over: bool) -> Rc<Stage> {
        let start = rt::now();
        let buffers = rt::buf_stats().used;
        let lines: Rc<RefCell<Vec<Line>>> = Rc::default();
        let log = rt::spawn(collect(lines.clone()));
        let (opened, failed) = engine::run::open_all(&shared, engine::listener::open);
        assert!(failed.is_empty(), "can't listen: {:?}", failed[0].2);
        let worker = engine::run::start_worker(thread, shared.clone(), opened);
        let listener = |section: usize| {
            let section = shared.program.peers.get(section)?;
            engine::listener::open(&section.bind, 64).ok()
        };
        peers::start(&worker, listener, takes_over);
        let servers = RefCell::new(vec![log]);
        let pipes = rt::pipes_held();
        let next = RefCell::default();
        Rc::new(Stage { climate, shared, worker, start, next, lines, servers, buffers, pipes })
    }

    /// Virtual time since the world began.
    pub fn elapsed(&self) -> Duration {
        rt::now().since(self.start)
    }

    /// A server that does as `script` says with each connection, which it gets with its number.
    pub fn serve<F>(&self, at: &str, script: impl Fn(Peer, usize) -> F + 'static) -> TaskId
    where
        F: Future<Output = ()> + 'static,
    {
        let task = origin::serve(&addr(at), script);
        self.servers.borrow_mut().push(task);
        task
    }

    /// A server that does as `answer` says with each request, which it gets with its number on its
    /// connection.
    pub fn answer(&self, at: &str, answer: impl Fn(&Message, usize) -> Answer + 'static) -> TaskId {
        let answer: crate::origin::Answers = Rc::new(answer);
        self.serve(at, move |peer, _| origin::requests(peer, answer.clone()))
    }

    /// The usual server: `/<id>/<length>` has so many bytes that only this id has.
    pub fn origin(&self, at: &str) -> TaskId {
        self.answer(at, |request, _| origin::usual(request))
    }

    /// A client's connection to the engine.
    ///
    /// # Panics
    /// If it can't be made, which no scene wants in a world where connections aren't refused.
    pub async fn client(&self, to: &str) -> Peer {
        Peer::connect(&addr(to)).await.expect("the engine listens")
    }

    /// The same where a rule may reset the connection before the client has heard of it.
    pub async fn refusable(&self, to: &str) -> Option<Peer> {
        Peer::connect(&addr(to)).await.ok()
    }

    /// Changes the links to an address from now on.
    pub fn link(&self, to: &str, change: impl FnOnce(&mut Faults)) {
        let mut faults = self.climate.faults();
        change(&mut faults);
        sim::set_faults(Some(&addr(to)), faults);
    }

    /// The lines logged so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.borrow().clone()
    }

    /// The only line, once all connections are done.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub async fn line(&self) -> Line {
        let mut lines = self.ended(1).await;
        lines.remove(0)
    }

    /// All lines, once all connections are done.
    ///
    /// # Panics
    /// If there are not `n` of them.
    pub async fn ended(&self, n: usize) -> Vec<Line> {
        self.quiet().await;
        let lines = self.lines();
        assert_eq!(lines.len(), n, "log lines: {:#?}", lines.iter().map(|l| &l.text).collect::<Vec<_>>());
        lines
    }

    /// Client connections that the engine has now.
    pub fn connections(&self) -> u32 {
        self.shared.program.world.process.connections.load(Relaxed)
    }

    /// Waits until the engine has no client connection and its lines have arrived.
    ///
    /// # Panics
    /// If that takes longer than any timeout of any scene.
    pub async fn quiet(&self) {
        let limit = rt::now() + Duration::from_secs(1800);
        while self.connections() > 0 {
            assert!(rt::now() < limit, "{} connections never end", self.connections());
            rt::sleep(Duration::from_millis(10)).await;
        }
        rt::sleep(Duration::from_millis(2)).await;
    }

    /// The state of a proxy.
    ///
    /// # Panics
    /// If there is none of that name.
    pub fn proxy(&self, name: &str) -> Arc<model::proxy::Proxy> {
        self.shared.program.world.find_proxy(name).expect("a proxy of that name")
    }

    /// The state of a server, `backend/server`.
    ///
    /// # Panics
    /// If there is none of that name.
    pub fn server(&self, name: &str) -> Arc<model::Server> {
        let (proxy, server) = name.split_once('/').expect("backend/server");
        let proxy = self.proxy(proxy);
        let servers = proxy.back.servers.read();
        servers.iter().find(|s| &*s.name == server).expect("a server of that name").clone()
    }

    /// The configuration at work and the worker under it.
    pub fn current(&self) -> (Arc<Shared>, Rc<Worker>) {
        let next = self.next.borrow();
        next.clone().unwrap_or_else(|| (self.shared.clone(), self.worker.clone()))
    }

    /// Has another configuration take the place of the one at work, as `reload in-place` does.
    ///
    /// # Errors
    /// What is wrong with it; then nothing has changed.
    ///
    /// # Panics
    /// If a socket can't be had.
    pub fn adopt(&self, config: &str) -> Result<(), String> {
        let (before, _) = self.current();
        let mut program = judge_after(config, &before.program)?;
        let mut moves = Moves::default();
        let mut opened = Vec::new();
        let fronts = |program: &program::Program| {
            let mut all = Vec::new();
            for (p, proxy) in (0u32..).zip(program.proxies.beginning()).filter(|(_, p)| !p.disabled) {
                all.extend((0u32..).zip(&proxy.binds).map(|(b, bind)| (p, b, bind.clone())));
            }
            all
        };
        let mut left = fronts(&before.program);
        for (proxy, index, bind) in fronts(&program) {
            match left.iter().position(|(.., was)| was.address == bind.address) {
                Some(at) => {
                    let (p, b, _) = left.swap_remove(at);
                    moves.frontends.insert((p, b), (proxy, index));
                }
                None => {
                    let listener = engine::listener::open(&bind, 100).expect("a socket");
                    opened.push(engine::run::Opened { proxy, bind: index, listener });
                }
            }
        }
        let gone = program.adopt_at(rt::now());
        let shared = Shared::succeed(&before, Arc::new(program), Outlets::default(), rt::now());
        let shared = Arc::new(shared);
        let worker = engine::run::switch(shared.clone(), opened, Arc::new(moves)).expect("a worker");
        gone.iter().for_each(|proxy| proxy.front.set_state(model::proxy::FrontState::Stopped));
        shared.farm.catch_up(rt::now());
        *self.next.borrow_mut() = Some((shared, worker));
        Ok(())
    }

    /// Stops the engine softly, as on SIGUSR1.
    pub fn stop(&self) {
        self.current().0.program.world.process.stopping.store(true, Relaxed);
        for proxy in self.current().0.program.proxies.iter().filter(|p| p.is_frontend) {
            proxy.state.front.set_state(model::proxy::FrontState::Stopped);
        }
        engine::run::soft_stop();
    }

    /// The end of a scene: all servers vanish, the engine stops, and nothing may be left of it.
    pub(crate) async fn close(&self) {
        self.quiet().await;
        self.flushed().await;
        self.check_gauges();
        self.check_ledger();
        self.end();
    }

    /// The end of a scene on one of two threads, which `meet` where nothing more happens: each has the log of
    /// its own requests only.
    pub(crate) async fn close_with<F: Future<Output = ()>>(&self, meet: impl Fn() -> F, rest: fn(&Stage)) {
        self.quiet().await;
        self.flushed().await;
        meet().await;
        rest(self);
        self.check_gauges();
        meet().await;
        self.end();
    }

    fn end(&self) {
        self.stop();
        for task in self.servers.take() {
            rt::cancel(task);
        }
        engine::run::hard_stop();
    }

    /// Waits for frames of streams that are over, and for what is left of requests that were answered early,
    /// to go out from the memory they stand in, no longer than a timeout lets a peer that takes nothing keep
    /// them.
    async fn flushed(&self) {
        let proxies = &self.shared.program.proxies;
        let streams = |p: &program::Proxy| p.state.back.counters.sum(|c| &c.h2.open_streams);
        for _ in 0..6000 {
            if rt::buf_stats().used == self.buffers && proxies.iter().all(|p| streams(&p) == 0) {
                return;
            }
            rt::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What goes up must have come down.
    fn check_gauges(&self) {
        assert!(self.worker.sessions.is_empty(), "sessions are left");
        assert_eq!(rt::buf_stats().used, self.buffers, "buffers are held for nothing");
        let process = &self.shared.program.world.process;
        assert_eq!(process.counters.sum(|c| &c.open_streams), 0, "streams of the process");
        let mut idle = 0;
        for proxy in &self.shared.program.proxies {
            let name = &proxy.name;
            let (front, back) = (&proxy.state.front, &proxy.state.back);
            assert_eq!(front.current.load(Relaxed), 0, "scur of frontend {name}");
            assert_eq!(back.current.load(Relaxed), 0, "scur of backend {name}");
            assert_eq!(back.queued.load(Relaxed), 0, "qcur of backend {name}");
            let h2 = [front.counters.sum(|c| &c.h2.open_streams), back.counters.sum(|c| &c.h2.open_streams)];
            assert_eq!(h2, [0, 0], "open streams of HTTP/2 of {name}, towards clients and servers");
            let h2 = front.counters.sum(|c| &c.h2.open_connections);
            assert_eq!(h2, 0, "open connections of HTTP/2 of frontend {name}");
            for bind in &proxy.binds {
                assert_eq!(bind.state.current.load(Relaxed), 0, "connections of a listener of {name}");
            }
            for server in &proxy.servers {
                let (server, name) = (&server.state, &server.name);
                assert_eq!(server.served.load(Relaxed), 0, "scur of server {name}");
                assert_eq!(server.queued.load(Relaxed), 0, "qcur of server {name}");
                assert_eq!(server.conns.used(), 0, "used connections of server {name}");
                // Connections to agents rest in no pool of the farm.
                let pooled = proxy.mode != program::Mode::Spop;
                idle += if pooled { server.conns.idle() as usize } else { 0 };
            }
        }
        let (shared, worker) = self.current();
        for (p, backend) in shared.farm.backends.iter().enumerate() {
            assert!(backend.queue.is_empty(), "somebody waits in the queue of proxy {p}");
            for slot in &backend.slots {
                assert_eq!(slot.gate.served(), 0, "a place is taken at a server of proxy {p}");
                assert!(slot.queue.is_empty(), "somebody waits for a server of proxy {p}");
            }
        }
        assert_eq!(idle, worker.farm.pools.len(), "idle connections are counted wrong");
        assert_eq!(rt::pipes_held(), self.pipes, "pipes are held for nothing");
    }
}

impl Stage {
    /// Every request has ended in exactly one way, and its line says the same.
    fn check_ledger(&self) {
        let lines = self.lines.borrow();
        for proxy in self.shared.program.proxies.iter().filter(|p| p.is_frontend) {
            let (name, counters) = (&proxy.name, &proxy.state.front.counters);
            let sum = |of: fn(&model::proxy::Ends) -> &model::Counter| counters.sum(|c| of(&c.ends));
            let ends =
                [sum(|e| &e.answered), sum(|e| &e.by_client), sum(|e| &e.by_server), sum(|e| &e.refused)];
            let requests = counters.sum(|c| &c.requests);
            assert_eq!(
                ends.iter().sum::<u64>(),
                requests,
                "req_tot of frontend {name} beside its ends {ends:?}"
            );
            // Other formats than the harness's don't tell the end.
            let told = |line: &&Line| line.is_of(name) && line.term.len() == 4;
            if proxy.mode != program::proxy::Mode::Http || !lines.iter().any(|line| told(&line)) {
                continue;
            }
            let (unlogged, strangers) = (sum(|e| &e.unlogged), sum(|e| &e.strangers));
            let mut logged = [0; 4];
            lines.iter().filter(told).for_each(|line| logged[line.end()] += 1);
            let (all, due): (u64, u64) = (logged.iter().sum(), requests - unlogged + strangers);
            // The log server has room for so many at once; of a flood of lines some are lost as with UDP
            // everywhere. Where there is no descriptor for a socket they are counted as lost.
            let process = &self.shared.program.world.process;
            let lost = process.counters.sum(|c| &c.dropped_logs);
            let fits = all == due || all < due && (due > 256 || all + lost >= due);
            assert!(fits, "{all} log lines of frontend {name}, not {due}; {lost} lost");
            if unlogged + strangers == 0 && all == due {
                assert_eq!(logged, ends, "ends of frontend {name} in the log and as counted");
            }
        }
    }
}

/// Receives log lines for ever.
async fn collect(lines: Rc<RefCell<Vec<Line>>>) {
    let Ok(socket) = Datagram::bind(&addr(LOG)) else { return };
    let mut room = [0u8; 4096];
    while let Ok((n, _)) = socket.recv(&mut room).await {
        lines.borrow_mut().push(Line::parse(&String::from_utf8_lossy(&room[..n])));
    }
}

/// A link to the log server on which nothing is lost and nothing overtakes.
pub(crate) fn log_link() -> (Addr, Faults) {
    let instant = Duration::from_micros(1);
    (addr(LOG), Faults { delay: instant..=instant, ..Faults::default() })
}
