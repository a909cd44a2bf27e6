//! The second pass: drafts, now all known, become a program.

mod checks;
mod filters;
mod formats;
mod global;
mod health;
mod identity;
mod logs;
mod proxy;
mod replies;
mod rules;
mod server;
mod stick;
mod templates;

use std::collections::HashMap;
use std::sync::Arc;

use lang::{Fault, Registry};
use model::World;
use program::address::Listen;
use program::listener::UnixRights;
use program::log::{Ring, Sink, Target};
use program::{Bind, Program};
use syntax::{Diagnostic, Diagnostics, Environment, Level, Line, Sources, Span, Style, Tree, Word};

use crate::Options;
use crate::bind::BindDraft;
use crate::draft::Deferred;
use crate::names::{Declared, Memory, Resolver};
use crate::patterns::Where;
use crate::sections::Drafts;
use crate::statement::LineRef;

/// What the pass stands on.
pub(crate) struct Ground<'g> {
    pub tree: &'g Tree,
    pub sources: &'g Sources,
    pub registry: &'g Registry,
    pub options: &'g Options,
    pub world: Arc<World>,
    pub environment: Environment,
}

impl<'g> Ground<'g> {
    /// A line by position.
    fn line(&self, at: LineRef) -> Option<&'g Line> {
        self.tree.sections.get(at.section as usize)?.lines.get(at.line as usize)
    }

    /// `file:line` of a span.
    pub(crate) fn place(&self, span: Span) -> String {
        format!("{}:{}", self.sources.name(span.file), span.line)
    }

    /// The word of deferred text, and its span.
    fn deferred(&self, deferred: &Deferred) -> Option<&'g Word> {
        self.line(deferred.at)?.words().get(deferred.word)
    }
}

/// A program while it is put together.
pub(crate) struct Assembly<'g> {
    pub ground: Ground<'g>,
    pub memory: Memory,
    pub declared: Vec<Declared>,
    pub rule_places: Vec<(u16, u32)>,
    pub global_log: Vec<Target>,
    /// `node`.
    pub node: Option<Box<str>>,
    pub rings: Vec<Ring>,
    pub sinks: Vec<Sink>,
    pub log_hostname: bool,
    pub sockets: Sockets,
    /// `default-server` lines are forgotten.
    pub purge_servers: bool,
    /// The checks of `healthcheck` sections.
    pub healthchecks: Vec<(Box<str>, std::sync::Arc<program::check::Ruleset>)>,
    /// What `global` says of TLS.
    pub tls: Arc<crate::tls::TlsGlobal>,
    /// Certificates read so far.
    pub store: Arc<tls::Store>,
    /// Keys of tickets, the last ones read first.
    pub ticket_keys: Vec<Arc<tls::tickets::Keys>>,
    /// Remarks made, so that each is made once.
    pub said: std::collections::HashSet<String>,
    /// `external-check`, and whether with `preserve-env`.
    pub external_check: Option<bool>,
    /// `server-state-file` is there.
    pub state_file_set: bool,
}

/// What `global` says of all listening sockets.
pub(crate) struct Sockets {
    /// `unix-bind prefix`.
    pub prefix: Box<[u8]>,
    /// `unix-bind mode`, `user`, `group`.
    pub rights: UnixRights,
    /// `tune.listener.default-shards`.
    pub shards: Option<u32>,
}

impl Sockets {
    /// The settings of one socket with what `global` adds.
    fn apply(&self, draft: &BindDraft, address: &Listen, bind: Bind) -> Bind {
        let (address, unix) = match address {
            Listen::Unix(path) => {
                let whole = [&*self.prefix, path].concat();
                let own = bind.unix;
                let unix = UnixRights {
                    mode: own.mode.or(self.rights.mode),
                    uid: own.uid.or(self.rights.uid),
                    gid: own.gid.or(self.rights.gid),
                };
                (Listen::Unix(whole.into()), unix)
            }
            other => (other.clone(), bind.unix),
        };
        let shards = self.shards.filter(|_| !draft.shards).unwrap_or(bind.shards);
        Bind { address, unix, shards, ..bind }
    }
}

/// Puts the program together.
pub(crate) fn program(
    drafts: Drafts,
    ground: Ground<'_>,
    store: Option<Arc<tls::Store>>,
    notes: &mut Diagnostics,
) -> Option<Program> {
    let Drafts { global, mut proxies, http_errors, users, peers, peer_tables, rings, profiles, .. } = drafts;
    let (healthchecks, mailers, defaults) = (drafts.healthchecks, drafts.mailers, drafts.defaults);
    let purge = global.purge;
    identity::check(&proxies, &ground, notes);
    identity::number(&mut proxies);
    let log_profiles = profiles.iter().map(|p| p.name.clone()).collect();
    let environment = ground.environment.clone();
    let experimental = global.experimental;
    let large_buffers = global.tune.large_bufsize > global.tune.bufsize;
    let store =
        store.unwrap_or_else(|| Arc::new(crate::tls::load::store(&global.tls, &global.tune, experimental)));
    crate::tls::load::client_authorities(&global, &store, notes);
    crate::tls::stores::declare(&drafts.stores, &store, |span| ground.place(span), notes);
    let memory = Memory {
        store: Some(store.clone()),
        large_buffers,
        http_errors,
        users,
        environment,
        log_profiles,
        rings: rings.iter().map(|r| r.name.clone()).collect(),
        experimental,
        ..Memory::default()
    };
    let mut assembly = Assembly {
        ground,
        memory,
        declared: Vec::new(),
        rule_places: Vec::new(),
        global_log: Vec::new(),
        node: global.node.clone(),
        rings,
        sinks: Vec::new(),
        log_hostname: global.log_hostname.is_some(),
        healthchecks: Vec::new(),
        purge_servers: purge.servers,
        tls: Arc::new(global.tls.clone()),
        store: store.clone(),
        ticket_keys: Vec::new(),
        said: Default::default(),
        external_check: global.external_check.then_some(global.external_check_env),
        state_file_set: global.server_state_file.is_some(),
        sockets: Sockets {
            prefix: global.unix_prefix.clone(),
            rights: global.unix_bind,
            shards: global.default_shards,
        },
    };
    assembly.global_log = assembly.log_targets(&global.log, "", notes);
    assembly.declared = identity::declare(&mut proxies, &assembly.ground, notes);
    let log_profiles = assembly.log_profiles(&profiles, notes);
    let threads = assembly.ground.world.workers as u32;
    let stuck = stick::stuck(&proxies, &assembly.ground);
    let own = proxies.iter().filter_map(|p| p.table.clone());
    let tables: Vec<_> = own.chain(peer_tables).collect();
    let world = assembly.ground.world.clone();
    assembly.memory.tables = crate::table::make(tables, &stuck, &peers, &world, notes);
    assembly.memory.stick_counters = global.tune.stick_counters as usize;
    assembly.healthchecks(&healthchecks, notes);
    let mut finished = Vec::new();
    for (index, draft) in proxies.iter().enumerate() {
        finished.push(assembly.proxy(index, draft, &proxies, threads, notes));
    }
    let set_vars = assembly.set_vars(&global.vars, notes);
    let global = assembly.global(global, set_vars, &finished, notes);
    let default_maxconn = assembly.ground.options.proxy_maxconn.unwrap_or(global.maxconn);
    checks::whole(&mut finished, default_maxconn);
    checks::http_options(&proxies, notes);
    crate::mailers::check(&mailers, &proxies, notes);
    let defaults = if purge.proxies { Vec::new() } else { assembly.templates(&defaults, threads) };
    let healthchecks = std::mem::take(&mut assembly.healthchecks);
    let ground = &assembly.ground;
    let place = |at: LineRef| {
        let line = ground.line(at)?;
        let (span, keyword) = (line.span(), line.keyword().text());
        Some(Where { file: ground.sources.name(span.file), line: span.line, keyword })
    };
    let patterns = assembly.memory.patterns.catalog(place);
    let files = assembly.ground.sources.iter().map(|s| s.name().into()).collect();
    Some(Program {
        defaults,
        healthchecks,
        tls: store,
        global,
        proxies: finished.into(),
        world: assembly.ground.world.clone(),
        rule_places: assembly.rule_places,
        files,
        sinks: assembly.sinks,
        rings: assembly.rings,
        log_profiles,
        vars: assembly.memory.vars,
        tables: assembly.memory.tables,
        patterns,
        ticket_keys: assembly.ticket_keys,
    })
}

impl Assembly<'_> {
    /// Names as `global` sees them.
    fn names_of_global(&mut self) -> Resolver<'_> {
        Resolver {
            memory: &mut self.memory,
            registry: self.ground.registry,
            declared: &self.declared,
            here: None,
            owner: String::new(),
            http: true,
            section: u32::MAX,
            line: LineRef { section: u32::MAX, line: u32::MAX },
            acls: HashMap::new(),
            predefined: HashMap::new(),
            req_captures: Vec::new(),
            res_captures: Vec::new(),
            filters: Vec::new(),
            warnings: Vec::new(),
            mentions: (LineRef { section: u32::MAX, line: u32::MAX }, 0),
        }
    }
}

/// A fault of `lang` as a complaint about a word of a line.
pub(crate) fn complaint(fault: Fault, line: &Line, offset: usize) -> Diagnostic {
    let span = match fault.word.and_then(|w| line.words().get(w + offset)) {
        Some(word) => word.span(),
        None => line.span(),
    };
    // HAProxy closes what its rule parsers say with a full stop, but those of TCP rules, and leaves the blank out before lists of actions.
    let unstopped = line.keyword() == "tcp-request" || line.keyword() == "tcp-response";
    let stop = if unstopped || fault.text.ends_with('\n') { "" } else { "." };
    let list = fault.text.starts_with('\'')
        && (fault.text.contains(", but got '") || fault.text.contains("' expects either 'if' or 'unless'"));
    let diagnostic = Diagnostic::alert(span, format!("{}{stop}", fault.text));
    let diagnostic = if list { diagnostic.styled(Style::Reading) } else { diagnostic };
    match fault.help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// A remark of `lang` about a line.
pub(crate) fn aside(text: String, line: &Line) -> Diagnostic {
    let warning = Diagnostic::warning(line.span(), text);
    if warning.text.starts_with("parsing acl") { warning.styled(Style::Plain) } else { warning }
}

/// A warning about a proxy as a whole, which HAProxy prints without a place.
pub(crate) fn remark(span: Span, text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Level::Warning, span, text).styled(Style::Bare)
}

/// An error about a proxy as a whole, which HAProxy prints without a place.
pub(crate) fn refusal(span: Span, text: impl Into<String>) -> Diagnostic {
    Diagnostic::alert(span, text).styled(Style::Bare)
}
