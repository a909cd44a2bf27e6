//! The second pass: drafts, now all known, become a program.

mod adoption;
mod bind_tls;
mod binds;
mod checks;
mod cli;
mod fcgi;
mod filters;
mod formats;
mod forward;
mod global;
mod health;
mod http_client;
mod identity;
mod log_backend;
mod logs;
mod missing;
mod nameservers;
mod peers;
mod proxy;
mod replies;
mod rules;
mod server;
mod server_tls;
mod shards;
mod spop_backend;
mod state_file;
mod stick;
mod templates;

use std::collections::HashMap;
use std::sync::Arc;

use base::threads::ThreadGroups;
use lang::{Fault, Registry};
use model::World;
use model::vars::VarRef;
use program::address::Listen;
use program::global::SetVar;
use program::listener::UnixRights;
use program::log::{Ring, Sink, Target};
use program::{Bind, Global, Program, Proxy};
use syntax::{Diagnostic, Diagnostics, Environment, Line, Phase, Sources, Span, Style, Tree, Word};

use self::state_file::StateFiles;
use crate::Options;
use crate::draft::Draft;
use crate::draft::{Deferred, LineRef};
use crate::global::draft::GlobalDraft;
use crate::global::places;
use crate::names::{Declared, Memory, Resolver};
use crate::notes::remark;
use crate::patterns::{Patterns, Where};
use crate::sections::Drafts;

/// What the pass stands on.
pub(crate) struct Ground<'g> {
    pub tree: &'g Tree,
    pub sources: &'g Sources,
    pub registry: &'g Registry,
    pub options: &'g Options,
    pub world: Arc<World>,
    pub environment: Environment,
    /// The configuration that runs.
    pub before: Option<&'g Program>,
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
    /// `node` and `description`.
    pub node: Option<Box<str>>,
    /// See there.
    pub description: Option<Box<str>>,
    pub rings: Vec<Ring>,
    pub sinks: Vec<Sink>,
    pub log_hostname: bool,
    pub sockets: Sockets,
    /// `thread-groups`.
    pub thread_groups: ThreadGroups,
    /// `default-server` lines are forgotten.
    pub purge_servers: bool,
    /// The checks of `healthcheck` sections.
    pub healthchecks: Vec<(Box<str>, std::sync::Arc<program::check::Ruleset>)>,
    /// What `global` says of TLS.
    pub tls: Arc<crate::global::draft::TlsGlobal>,
    /// Certificates read so far.
    pub store: Arc<tls::Store>,
    /// Keys of tickets, the last ones read first.
    pub ticket_keys: Vec<Arc<tls::tickets::Keys>>,
    /// Remarks made, so that each is made once.
    pub said: std::collections::HashSet<String>,
    /// `external-check`, and whether with `preserve-env`.
    pub external_check: Option<bool>,
    /// `resolvers` sections.
    pub resolvers: Vec<program::names::Resolvers>,
    /// `mailers` sections.
    pub mailers: Vec<crate::mailers::MailersDraft>,
    /// `insecure-fork-wanted`.
    pub fork_wanted: bool,
    /// `server-state-file` is there.
    pub state_file_set: bool,
    /// Tables that name `peers` sections which are not there, and what is said of it.
    pub lost_peers: Vec<(Box<str>, Diagnostic)>,
    /// `log-forward` sections that go on with another limit.
    pub forward_limits: Vec<(Arc<model::Proxy>, u32)>,
    /// What becomes of the figures of the process.
    pub process: Option<model::adoption::ProcessTerms>,
    /// All proxies by name: whether they have servers, and their mode.
    pub kinds: Vec<(Box<str>, bool, program::Mode)>,
    /// `tune.bufsize`.
    pub bufsize: usize,
    /// Proxies whose connections turn to HTTP when they come to a backend of that mode.
    pub turning: Vec<usize>,
}

/// What `global` says of all listening sockets.
pub(crate) struct Sockets {
    /// `unix-bind prefix`.
    pub prefix: Box<[u8]>,
    /// `unix-bind mode`, `user`, `group`.
    pub rights: UnixRights,
}

impl Sockets {
    /// The settings of one socket with what `global` adds.
    fn apply(&self, address: &Listen, bind: Bind) -> Bind {
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
        Bind { address, unix, ..bind }
    }
}

/// What is said last of all.
#[derive(Default)]
struct Late {
    /// `cpu-map`.
    crowd: Diagnostics,
    /// Files with the states of servers.
    states: Diagnostics,
    /// Addresses are the last thing that HAProxy looks up.
    addresses: Diagnostics,
}

/// Puts the program together.
pub(crate) fn program(
    mut drafts: Drafts,
    ground: Ground<'_>,
    store: Option<Arc<tls::Store>>,
    notes: &mut Diagnostics,
) -> Program {
    shards::spread(&mut drafts, u32::try_from(ground.world.workers).unwrap_or(1));
    let (mut assembly, mut late) = (Assembly::begin(&mut drafts, ground, store, notes), Late::default());
    assembly.declare(&mut drafts, &mut late);
    let log_profiles = assembly.log_profiles(&drafts.profiles, notes);
    assembly.ring_servers(&drafts.ring_servers, notes);
    assembly.tables(&mut drafts, notes);
    for section in &drafts.defaults {
        assembly.defaults(section, notes);
    }
    assembly.healthchecks(&drafts.healthchecks, notes);
    assembly.applications(&drafts.applications, notes);
    let mut finished = assembly.proxies(&drafts.proxies, notes);
    assembly.extended(&mut finished, notes);
    let set_vars = assembly.set_vars(&drafts.global.vars, notes);
    assembly.missing_arguments("GLOBAL", Span::default(), notes);
    http_client::check(&assembly.tls, &assembly.memory.resolvers, notes);
    if drafts.global.tls.client_authorities.is_none() {
        // Whether anybody is asked over TLS is known now; a file that is named was read before.
        bind_tls::client_authorities(&drafts.global, &assembly.store, notes);
    }
    let peers = assembly.peers(&drafts.peers, notes);
    let forwards = assembly.forwards(&drafts.forwards, notes);
    crate::mailers::idle(&assembly.mailers, &drafts.proxies, notes);
    let draft = std::mem::take(&mut drafts.global);
    let (purge, limits) = (draft.purge, draft.vars_max);
    let global = assembly.whole(draft, set_vars, &mut finished, &mut late, notes);
    checks::last(&drafts.proxies, &assembly.turning, &assembly.ground, notes);
    notes.extend(late.crowd);
    notes.extend(late.states.settling());
    notes.extend(late.addresses.settling());
    let defaults = if purge.proxies { Vec::new() } else { assembly.templates(&drafts.defaults) };
    let adoption = assembly.adoption(&finished, &drafts.proxies, limits);
    let patterns = assembly.catalog();
    let traces = std::mem::take(&mut drafts.traces).settings;
    let Assembly {
        ground,
        memory,
        resolvers,
        rule_places,
        sinks,
        rings,
        ticket_keys,
        healthchecks,
        store,
        ..
    } = assembly;
    let mut program = Program {
        environment: ground.environment.iter().map(|(n, v)| (n.into(), v.into())).collect(),
        files: ground.sources.iter().map(|s| s.name().into()).collect(),
        world: ground.world,
        proxies: finished.into(),
        tls: store,
        tables: memory.tables,
        caches: memory.caches,
        peers,
        forwards,
        resolvers,
        vars: memory.vars,
        defaults,
        healthchecks,
        global,
        rule_places,
        sinks,
        rings,
        traces,
        log_profiles,
        patterns,
        ticket_keys,
        adoption,
        namespaces: Vec::new(),
    };
    program.namespaces = crate::namespaces::named(&program, &drafts.namespaces);
    program
}

impl<'g> Assembly<'g> {
    /// Nothing is assembled yet, but who is who is known.
    fn begin(
        drafts: &mut Drafts,
        ground: Ground<'g>,
        store: Option<Arc<tls::Store>>,
        notes: &mut Diagnostics,
    ) -> Assembly<'g> {
        let global = &drafts.global;
        let new = || {
            Arc::new(bind_tls::store(
                &global.tls,
                &global.tune,
                global.experimental,
                ground.before.map(|before| &*before.tls),
            ))
        };
        let store = store.unwrap_or_else(new);
        bind_tls::client_authorities(global, &store, notes);
        global.buffers.check(notes);
        let threads = places::place(ground.tree, &ground.options.machine()).threads;
        global.groups.check(global.threads, &global.cpu_map, threads, notes);
        identity::check(&drafts.proxies, &ground, notes);
        identity::number(&mut drafts.proxies, &ground.world);
        crate::tls::stores::declare(&drafts.stores, &store, |span| ground.place(span), notes);
        let memory = Memory {
            vars: ground.before.map(|before| before.vars.clone()).unwrap_or_default(),
            patterns: Patterns::after(ground.before.map(|before| &before.patterns), ground.tree),
            store: Some(store.clone()),
            large_buffers: global.tune.large_bufsize > global.tune.bufsize,
            small_buffers: bind_tls::is_small(&global.tune).then_some(global.tune.bufsize),
            http_errors: std::mem::take(&mut drafts.http_errors),
            users: std::mem::take(&mut drafts.users),
            environment: ground.environment.clone(),
            log_profiles: drafts.profiles.iter().map(|p| p.name.clone()).collect(),
            experimental: global.experimental,
            stick_counters: global.tune.stick_counters as usize,
            logged: global.log.above(),
            bufsize: global.tune.bufsize,
            ..Memory::default()
        };
        let workers = u32::try_from(ground.world.workers).unwrap_or(1);
        let mut assembly = Assembly {
            ground,
            memory,
            declared: Vec::new(),
            rule_places: Vec::new(),
            global_log: Vec::new(),
            node: global.node.clone(),
            description: global.description.clone(),
            rings: std::mem::take(&mut drafts.rings),
            sinks: Vec::new(),
            log_hostname: global.log_hostname.is_some(),
            healthchecks: Vec::new(),
            purge_servers: global.purge.servers,
            thread_groups: global.groups.layout(workers),
            tls: Arc::new(global.tls.clone()),
            store,
            ticket_keys: Vec::new(),
            said: Default::default(),
            external_check: global.external_check.then_some(global.external_check_env),
            resolvers: Vec::new(),
            mailers: std::mem::take(&mut drafts.mailers),
            fork_wanted: global.insecure_fork_wanted,
            state_file_set: global.server_state_file.is_some(),
            lost_peers: Vec::new(),
            forward_limits: Vec::new(),
            process: None,
            kinds: drafts.proxies.iter().map(|p| (p.name.clone(), p.kind.is_back(), p.mode)).collect(),
            bufsize: global.tune.bufsize,
            turning: Vec::new(),
            sockets: Sockets { prefix: global.unix_prefix.clone(), rights: global.unix_bind },
        };
        assembly.global_log = assembly.log_targets(&global.log, "", notes);
        assembly.finish_resolvers(std::mem::take(&mut drafts.resolvers), notes);
        assembly.memory.caches =
            crate::cache::finish(std::mem::take(&mut drafts.caches), &assembly.ground.world, notes);
        assembly
    }

    /// The workers that there will be.
    fn threads(&self) -> u32 {
        self.ground.world.workers as u32
    }

    /// Finds or makes the live state of all proxies and servers.
    fn declare(&mut self, drafts: &mut Drafts, late: &mut Late) {
        let global = &drafts.global;
        let (base, file) = (global.server_state_base.as_deref(), global.server_state_file.as_deref());
        let files = StateFiles::new(base, file, &mut late.states);
        let Late { states, addresses, .. } = late;
        self.declared = identity::declare(&mut drafts.proxies, &self.ground, &files, states, addresses);
    }

    /// Finds or makes the stick tables.
    fn tables(&mut self, drafts: &mut Drafts, notes: &mut Diagnostics) {
        let stuck = stick::stuck(&drafts.proxies, &self.ground);
        let own = drafts.proxies.iter().filter_map(|p| p.table.clone());
        let mut tables: Vec<_> = own.chain(std::mem::take(&mut drafts.peer_tables)).collect();
        // In the order of their lines, as they are shown.
        tables.sort_by_key(|table| table.span);
        let lost = &mut self.lost_peers;
        let named: Vec<Box<str>> = drafts.peers.iter().map(|p| p.name.clone()).collect();
        self.memory.tables = crate::table::make(tables, &stuck, &named, &self.ground.world, notes, lost);
    }

    /// Finishes all proxies.
    fn proxies(&mut self, drafts: &[Draft], notes: &mut Diagnostics) -> Vec<Proxy> {
        let mut finished = Vec::new();
        for (index, draft) in drafts.iter().enumerate() {
            let mut found = Diagnostics::new();
            finished.push(self.proxy(index, draft, drafts, &mut found));
            if draft.disabled {
                // How the parts of a proxy that never serves fit together is nobody's concern.
                found.retain(|note| note.phase < Phase::Fitting);
            }
            notes.extend(found);
        }
        finished
    }

    /// What files of extensions ask for: the targets of their `log` lines, and backends of agents.
    fn extended(&mut self, finished: &mut [Proxy], notes: &mut Diagnostics) {
        for (draft, label, cell) in std::mem::take(&mut self.memory.loggers) {
            let targets: Vec<Target> = self.log_targets(&draft, &label, notes);
            let _ = cell.set(Box::new(targets));
        }
        for at in std::mem::take(&mut self.memory.agents) {
            if let Some(proxy) = finished.get_mut(at) {
                proxy.mode = program::Mode::Spop;
            }
        }
    }

    /// Settings of the process, and what proxies have of them.
    fn whole(
        &mut self,
        draft: GlobalDraft,
        set_vars: Vec<(VarRef, SetVar)>,
        finished: &mut [Proxy],
        late: &mut Late,
        notes: &mut Diagnostics,
    ) -> Global {
        let unused = draft.experimental && !experiments(&self.ground);
        let cookielen = draft.cookielen;
        let global = self.global(draft, set_vars, finished, notes, &mut late.crowd);
        checks::whole(finished, self.ground.options.proxy_maxconn.unwrap_or(global.maxconn));
        checks::captured(finished, cookielen, notes);
        if unused {
            let text = "Option 'expose-experimental-directives' is set in the global section but is no longer used. It is strongly recommended to remove it in order to avoid using an experimental directive by accident in the future.";
            notes.push(remark(Span::default(), text).settling());
        }
        global
    }

    /// Maps and ACL files under the numbers that HAProxy gives them.
    fn catalog(&mut self) -> pattern::Catalog {
        let ground = &self.ground;
        let place = |at: LineRef| {
            let line = ground.line(at)?;
            let (span, keyword) = (line.span(), line.keyword().text());
            Some(Where { file: ground.sources.name(span.file), line: span.line, keyword })
        };
        std::mem::take(&mut self.memory.patterns).catalog(place)
    }
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
            defaults: None,
            line: LineRef { section: u32::MAX, line: u32::MAX },
            acls: HashMap::new(),
            predefined: HashMap::new(),
            req_captures: Vec::new(),
            res_captures: Vec::new(),
            filters: Vec::new(),
            caches: Default::default(),
            warnings: Vec::new(),
            asides: Vec::new(),
            shelf: Vec::new(),
            mentions: (LineRef { section: u32::MAX, line: u32::MAX }, 0),
            chosen: false,
        }
    }
}

/// Words that may only stand where experiments are allowed.
const EXPERIMENTS: &[&str] = &[
    "ktls",
    "normalize-uri",
    "attach-srv",
    "nbconn",
    "ech",
    "force-cfg-parser-pause",
    "tune.fd.edge-triggered",
    "tune.fd.tables",
];

/// Whether any stands in the configuration.
fn experiments(ground: &Ground<'_>) -> bool {
    let lines = ground.tree.sections.iter().flat_map(|section| &section.lines);
    let address = |word: &str| ["rhttp@", "quic4@", "quic6@"].iter().any(|kind| word.starts_with(kind));
    let h3 = |word: &str| word.split(',').any(|name| name == "h3");
    lines.map(|line| line.words()).any(|words| {
        let named = words.iter().any(|word| EXPERIMENTS.contains(&word.text()) || address(word.text()));
        named
            || words.windows(2).any(|pair| matches!(pair, [name, list] if name == "alpn" && h3(list.text())))
    })
}

/// A fault of `lang` as a complaint about a word of a line.
pub(crate) fn complaint(fault: Fault, line: &Line, offset: usize) -> Diagnostic {
    let span = match fault.word.and_then(|w| line.words().get(w + offset)) {
        Some(word) => word.span(),
        None => line.span(),
    };
    // HAProxy closes what its rule parsers say with a full stop, but those of TCP rules and filters, and
    // leaves the blank out before lists of actions.
    let unstopped = ["tcp-request", "tcp-response", "filter"].contains(&line.keyword().text());
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
    // HAProxy wraps what it says of ACLs that don't fit a place, each kind of rule in its own way.
    let said = [" will never match because it ", " involves keywords "].map(|middle| text.split_once(middle));
    if line.keyword() == "force-be-switch" && said != [None, None] {
        return Diagnostic::alert(line.span(), format!("'force-be-switch' : {text}."));
    }
    let text = match (line.keyword().text(), said) {
        (_, [None, None]) => text,
        (set @ ("tcp-request" | "tcp-response"), [Some((who, why)), _]) => {
            let stage = line.words().get(1).map_or("", |w| w.text());
            format!("{who} will never match in '{set} {stage}' because it {why}")
        }
        ("tcp-request" | "tcp-response", _) => text.replace("involves keywords", "involves keyword"),
        _ => format!("'{text}.\n'"),
    };
    let warning = Diagnostic::warning(line.span(), text);
    let timer = warning.text.contains("' after the timer value '");
    if timer || warning.text.starts_with("parsing acl") { warning.styled(Style::Plain) } else { warning }
}
