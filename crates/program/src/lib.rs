//! Floor 4: the immutable compiled configuration.
//!
//! `compile` builds one [`Program`] from the text, the engine runs it. It is plain data behind an
//! `Arc`: names are resolved to indices and `Arc`s of live state, times and sizes to numbers, rules
//! to [`lang::RuleSet`]s. It says neither how it was written nor how it is run.
//!
//! An index (of a proxy, of a server in its backend) is meaningful in one `Program` only; what
//! survives a change of configuration is in `model`.
#![forbid(unsafe_code)]

pub mod address;
pub mod check;
pub mod fcgi;
pub mod filter;
pub mod forward;
pub mod global;
pub mod listener;
pub mod log;
pub mod names;
pub mod naming;
pub mod options;
pub mod peers;
pub mod persist;
pub mod proto;
pub mod proxy;
pub mod server;
pub mod stats;
pub mod stick_rules;
pub mod timeouts;
pub mod vars;

use std::sync::Arc;

use base::fleet::Fleet;
pub use base::fleet::Held;
use model::World;

pub use global::Global;
pub use listener::Bind;
pub use proxy::{Mode, Proxy};
pub use server::Server;

/// The name and the value of a variable of the environment.
pub type EnvironmentVariable = (Box<[u8]>, Box<[u8]>);

/// A whole configuration.
pub struct Program {
    /// The `global` section.
    pub global: Global,
    /// All proxies in the order of the configuration, and behind them backends that were added while it runs
    /// (`add backend`).
    pub proxies: Fleet<Proxy>,
    /// The environment that it was read with, as `setenv` and the like left it.
    pub environment: Vec<EnvironmentVariable>,
    /// Live state it works on.
    pub world: Arc<World>,
    /// TLS files, and who uses them.
    pub tls: Arc<tls::Store>,
    /// Where each rule stands: an index of `files` and a line, by rule number.
    pub rule_places: Vec<(u16, u32)>,
    /// Names of the files it was read from.
    pub files: Vec<Box<str>>,
    /// Where log lines go; targets name them by index.
    pub sinks: Vec<log::Sink>,
    /// What `traces` sections set, for all sources in their order.
    pub traces: Vec<model::trace::Settings>,
    /// Rings, named ones first.
    pub rings: Vec<log::Ring>,
    /// Log profiles.
    pub log_profiles: Vec<log::Profile>,
    /// The `defaults` sections that have a name.
    pub defaults: Vec<Defaults>,
    /// The checks of `healthcheck` sections, by name.
    pub healthchecks: Vec<(Box<str>, Arc<check::Ruleset>)>,
    /// `resolvers` sections; servers and rules name them by index.
    pub resolvers: Vec<names::Resolvers>,
    /// Slots of variables by name.
    pub vars: vars::VarNames,
    /// Stick tables in the order of the configuration.
    pub tables: Vec<Arc<stick::Table>>,
    /// Caches in the order of the configuration.
    pub caches: Vec<Arc<model::cached::Cache>>,
    /// `peers` sections that exchange something.
    pub peers: Vec<peers::Section>,
    /// `log-forward` sections.
    pub forwards: Vec<forward::Forward>,
    /// The network namespaces that anything names: those that a PROXY header may name.
    pub namespaces: Vec<base::netns::Namespace>,
    /// Maps and ACL files, for the runtime API.
    pub patterns: pattern::Catalog,
    /// Keys of TLS tickets that were read from files, for the runtime API.
    pub ticket_keys: Vec<Arc<tls::tickets::Keys>>,
    /// What becomes of live state when it is adopted; nothing any more after that.
    pub adoption: model::Adoption,
}

/// A `defaults` section with a name, from which backends may be made at run time.
pub struct Defaults {
    /// Its name.
    pub name: Box<str>,
    /// The mode that it names; `None`: none.
    pub mode: Option<Mode>,
    /// Why no backend can be made of it, if so.
    pub unfit: Option<Box<str>>,
    /// A backend with its settings and nothing more, for each mode; `None`: it can't be one.
    pub backends: [Option<Proxy>; 2],
}

impl Program {
    /// Makes of live state what the configuration asks for. Before that nothing alive knows of it.
    pub fn adopt(&mut self) {
        let _ = self.adopt_at(base::time::Mono::ZERO);
    }

    /// The same in a process that runs, `now`.
    /// Gives the proxies that are in it no more.
    pub fn adopt_at(&mut self, now: base::time::Mono) -> Vec<Arc<model::Proxy>> {
        std::mem::take(&mut self.adoption).apply(&self.world, now)
    }

    /// All proxies but those that were deleted.
    pub fn present(&self) -> impl Iterator<Item = Held<'_, Proxy>> + Clone {
        self.proxies.iter().filter(|p| !p.is_removed())
    }

    /// The proxy of this name that can be a backend.
    pub fn backend(&self, name: &str) -> Option<u32> {
        let is_it = |p: &Proxy| p.is_backend && &*p.name == name && !p.is_removed();
        self.proxies.numbered().find(|(_, p)| is_it(p)).map(|(at, _)| at)
    }

    /// A proxy by index. Indices come from this very program, and whoever remembers one of a backend holds
    /// that, too.
    #[inline]
    pub fn proxy(&self, index: u32) -> Held<'_, Proxy> {
        self.proxies.get(index as usize).expect("an index of this program")
    }

    /// A proxy of the configuration by index, such as a frontend: nobody has to hold it.
    #[inline]
    pub fn configured(&self, index: u32) -> &Proxy {
        &self.proxies[index as usize]
    }

    /// A server by the index of its backend and its own; `None` if it was deleted and nobody holds it any
    /// more.
    #[inline]
    pub fn find_server(&self, proxy: u32, server: u32) -> Option<Held<'_, Server>> {
        self.proxies.get(proxy as usize)?.then(|p| &p.servers, server as usize)
    }

    /// A server by the index of its backend and its own, which somebody holds.
    #[inline]
    pub fn server(&self, proxy: u32, server: u32) -> Held<'_, Server> {
        self.find_server(proxy, server).expect("an index of this backend")
    }
}
