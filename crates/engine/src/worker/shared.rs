//! What all workers share of one configuration: the program, its farm, where lines go.

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
    /// Changes of servers are also told on standard error: the process runs in the foreground.
    pub console: bool,
    /// Log sinks that were opened before the process went into its chroot.
    pub outlets: sinks::Outlets,
    /// Rings of log lines, by index of the program.
    pub rings: Vec<Arc<sinks::Ring>>,
    /// Its listening sockets, for a process that takes over.
    pub exposed: Vec<Exposed>,
    /// When the process started.
    pub started: Mono,
    /// The same, as a date.
    pub started_at: rt::Wall,
}

/// A listening socket that another process may ask for.
pub struct Exposed {
    /// The socket, which this does not keep open.
    pub listener: rt::WeakListener,
    /// The interface it is bound to.
    pub interface: Option<Box<str>>,
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
            program,
            farm,
            services: Vec::new(),
            console: false,
            exposed: Vec::new(),
            started,
            started_at,
        }
    }

    /// A service by name.
    pub fn service(&self, name: &str) -> Option<&Arc<dyn Service>> {
        self.services.iter().find(|(n, _)| &**n == name).map(|(_, s)| s)
    }
}
