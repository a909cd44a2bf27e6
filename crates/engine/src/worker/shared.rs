//! What all workers share of one configuration: the program, its farm, where lines go.

use std::collections::HashMap;
use std::sync::Arc;

use farm::Farm;
use program::Program;
use rt::Mono;

use super::service::Service;
use crate::sinks;

/// One configuration, ready to run.
pub struct Shared {
    /// The configuration.
    pub program: Arc<Program>,
    /// Its servers and backends.
    pub farm: Arc<Farm>,
    /// Log lines tell the local address of server connections.
    pub logs_source: bool,
    /// Services that `use-service` and the statistics reach, by name.
    pub services: Vec<(Arc<str>, Arc<dyn Service>)>,
    /// Commands of extensions for the runtime API.
    pub commands: Vec<Arc<dyn super::service::Talk>>,
    /// Changes of servers are also told on standard error: the process runs in the foreground.
    pub console: bool,
    /// Log sinks that were opened before the process went into its chroot.
    pub outlets: sinks::Outlets,
    /// Rings of log lines, by index of the program.
    pub rings: Vec<Arc<sinks::Ring>>,
    /// Its listening sockets, for a process that takes over.
    pub exposed: Vec<Exposed>,
    /// Reads the configuration again and has it take the place of this one.
    pub reloader: Option<Arc<dyn Reloader>>,
    /// Frontends by their live state.
    fronts: HashMap<usize, u32>,
    /// When the process started.
    pub started: Mono,
    /// The same, as a date.
    pub started_at: rt::Wall,
}

/// A socket that this does not keep open.
#[derive(Clone)]
pub enum ExposedSocket {
    /// For streams.
    Listener(rt::WeakListener),
    /// For datagrams.
    Datagram(rt::WeakDatagram),
}

impl ExposedSocket {
    /// A copy of the descriptor for another process, if the socket is still open.
    pub fn hand_over(&self) -> Option<std::os::fd::OwnedFd> {
        match self {
            ExposedSocket::Listener(listener) => listener.hand_over(),
            ExposedSocket::Datagram(receiver) => receiver.hand_over(),
        }
    }
}

/// A listening socket that another process may ask for.
#[derive(Clone)]
pub struct Exposed {
    /// The socket, which this does not keep open.
    pub socket: ExposedSocket,
    /// The interface it is bound to.
    pub interface: Option<Box<str>>,
    /// The network namespace it is in.
    pub namespace: Option<base::netns::Namespace>,
    /// The threads that accept from it, as bits.
    pub threads: base::threads::ThreadSet,
    /// The address as the configuration has it.
    pub address: program::address::Listen,
}

/// What came of reading the configuration again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// It runs, or could run if that was the question. Otherwise nothing has changed.
    pub success: bool,
    /// What there is to say about it, as at the start.
    pub text: String,
}

/// Reads the configuration again.
pub trait Reloader: Send + Sync {
    /// Does so beside traffic; with `check` it is only said whether it could run. Calls `done` from wherever
    /// it is done.
    fn reload(&self, check: bool, done: Box<dyn FnOnce(Reloaded) + Send>);

    /// Adopts a configuration that a process with other rights has read, which is at the other end of `line`.
    fn adopt(&self, line: std::os::fd::OwnedFd);

    /// The master tells how a reload ended that somebody asked for here.
    fn told(&self, came: Reloaded);
}

fn fronts(program: &Program) -> HashMap<usize, u32> {
    let fronts = (0u32..).zip(program.proxies.beginning()).filter(|(_, p)| p.is_frontend);
    fronts.map(|(at, p)| (Arc::as_ptr(&p.state).addr(), at)).collect()
}

impl Shared {
    /// Prepares a program to run.
    pub fn new(program: Arc<Program>, started: Mono, started_at: rt::Wall) -> Shared {
        let farm = Arc::new(Farm::new(program.clone(), started));
        crate::process_vars::set(&program);
        let logs_source = sinks::mentions(&program, &["bc_src", "bi", "bp"]);
        Shared {
            rings: sinks::rings(&program),
            outlets: Default::default(),
            logs_source,
            fronts: fronts(&program),
            program,
            farm,
            services: Vec::new(),
            commands: Vec::new(),
            console: false,
            exposed: Vec::new(),
            reloader: None,
            started,
            started_at,
        }
    }

    /// Prepares a program to take the place of another, `now`. The outlets have to be opened.
    pub fn succeed(before: &Shared, program: Arc<Program>, outlets: sinks::Outlets, now: Mono) -> Shared {
        let farm = Arc::new(Farm::succeed(&before.farm, program.clone(), now));
        crate::process_vars::set(&program);
        Shared {
            rings: sinks::rings_after(&program, &before.program, &before.rings),
            outlets,
            logs_source: sinks::mentions(&program, &["bc_src", "bi", "bp"]),
            fronts: fronts(&program),
            program,
            farm,
            services: before.services.clone(),
            commands: before.commands.clone(),
            console: before.console,
            exposed: Vec::new(),
            reloader: before.reloader.clone(),
            started: before.started,
            started_at: before.started_at,
        }
    }

    /// The frontend of this live state.
    pub fn front_of(&self, state: &Arc<model::Proxy>) -> Option<u32> {
        self.fronts.get(&Arc::as_ptr(state).addr()).copied()
    }

    /// A service by name.
    pub fn service(&self, name: &str) -> Option<&Arc<dyn Service>> {
        self.services.iter().find(|(n, _)| &**n == name).map(|(_, s)| s)
    }
}
