//! The second pass: drafts, now all known, become a program.

mod checks;
mod filters;
mod formats;
mod global;
mod health;
mod identity;
mod logs;
mod missing;
mod proxy;
mod replies;
mod rules;
mod server;
mod state_file;
mod stick;
mod templates;

use std::collections::HashMap;
use std::sync::Arc;

use lang::{Fault, Registry};
use model::World;
use model::account::Limits;
use model::vars::Scope;
use program::address::Listen;
use program::listener::UnixRights;
use program::log::{Ring, Sink, Target};
use program::{Bind, Program};
use syntax::{Diagnostic, Diagnostics, Environment, Level, Line, Phase, Sources, Span, Style, Tree, Word};

use self::state_file::StateFiles;
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
    /// `thread-groups`.
    pub thread_groups: u32,
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
    /// Names of `mailers` sections.
    pub mailers: Vec<Box<str>>,
    /// `insecure-fork-wanted`.
    pub fork_wanted: bool,
    /// `server-state-file` is there.
    pub state_file_set: bool,
    /// Tables that name `peers` sections which are not there, and what is said of it.
    pub lost_peers: Vec<(Box<str>, Diagnostic)>,
    /// Proxies whose connections turn to HTTP when they come to a backend of that mode.
    pub turning: Vec<usize>,
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
    let experimental = global.experimental;
    let store =
        store.unwrap_or_else(|| Arc::new(crate::tls::load::store(&global.tls, &global.tune, experimental)));
    crate::tls::load::client_authorities(&global, &store, notes);
    global.buffers.check(notes);
    global.groups.check(global.threads, &global.cpu_map, ground.options.processors, notes);
    identity::check(&proxies, &ground, notes);
    identity::number(&mut proxies);
    let log_profiles = profiles.iter().map(|p| p.name.clone()).collect();
    let environment = ground.environment.clone();
    let large_buffers = global.tune.large_bufsize > global.tune.bufsize;
    crate::tls::stores::declare(&drafts.stores, &store, |span| ground.place(span), notes);
    let memory = Memory {
        store: Some(store.clone()),
        large_buffers,
        small_buffers: crate::tls::load::is_small(&global.tune).then_some(global.tune.bufsize),
        http_errors,
        users,
        environment,
        log_profiles,
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
        thread_groups: global.groups.count(),
        tls: Arc::new(global.tls.clone()),
        store: store.clone(),
        ticket_keys: Vec::new(),
        said: Default::default(),
        external_check: global.external_check.then_some(global.external_check_env),
        mailers: mailers.iter().map(|m| m.name.clone()).collect(),
        fork_wanted: global.insecure_fork_wanted,
        state_file_set: global.server_state_file.is_some(),
        lost_peers: Vec::new(),
        turning: Vec::new(),
        sockets: Sockets {
            prefix: global.unix_prefix.clone(),
            rights: global.unix_bind,
            shards: global.default_shards,
        },
    };
    assembly.global_log = assembly.log_targets(&global.log, "", notes);
    // Addresses are the last thing that HAProxy looks up.
    let (mut states, mut addresses) = (Diagnostics::new(), Diagnostics::new());
    let (base, file) = (global.server_state_base.as_deref(), global.server_state_file.as_deref());
    let files = StateFiles::new(base, file, &mut states);
    assembly.declared =
        identity::declare(&mut proxies, &assembly.ground, &files, &mut states, &mut addresses);
    let log_profiles = assembly.log_profiles(&profiles, notes);
    let threads = assembly.ground.world.workers as u32;
    let stuck = stick::stuck(&proxies, &assembly.ground);
    let own = proxies.iter().filter_map(|p| p.table.clone());
    let tables: Vec<_> = own.chain(peer_tables).collect();
    let world = assembly.ground.world.clone();
    assembly.memory.tables =
        crate::table::make(tables, &stuck, &peers, &world, notes, &mut assembly.lost_peers);
    assembly.memory.stick_counters = global.tune.stick_counters as usize;
    for section in &defaults {
        assembly.defaults(section, notes);
    }
    assembly.healthchecks(&healthchecks, notes);
    let mut finished = Vec::new();
    for (index, draft) in proxies.iter().enumerate() {
        let mut found = Diagnostics::new();
        finished.push(assembly.proxy(index, draft, &proxies, threads, &mut found));
        if draft.disabled {
            // How the parts of a proxy that never serves fit together is nobody's concern.
            found.retain(|note| note.phase < Phase::Fitting);
        }
        notes.extend(found);
    }
    let set_vars = assembly.set_vars(&global.vars, notes);
    assembly.missing_arguments("GLOBAL", syntax::Span::default(), notes);
    crate::tls::http_client::check(&assembly.tls, notes);
    crate::mailers::idle(&mailers, &proxies, notes);
    let unused = global.experimental && !experiments(&assembly.ground);
    let mut crowd = Diagnostics::new();
    let global = assembly.global(global, set_vars, &finished, notes, &mut crowd);
    let default_maxconn = assembly.ground.options.proxy_maxconn.unwrap_or(global.maxconn);
    checks::whole(&mut finished, default_maxconn);
    checks::captured(&mut finished, global.tune.cookielen, notes);
    if unused {
        let text = "Option 'expose-experimental-directives' is set in the global section but is no longer used. It is strongly recommended to remove it in order to avoid using an experimental directive by accident in the future.";
        notes.push(remark(Span::default(), text).settling());
    }
    checks::last(&proxies, &assembly.turning, &assembly.ground, notes);
    notes.extend(crowd);
    notes.extend(states.settling());
    notes.extend(addresses.settling());
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
    let environment = assembly.ground.environment.iter().map(|(n, v)| (n.into(), v.into())).collect();
    let vars = assembly.memory.vars;
    if let Some(limits) = Limits::new(global.tune.vars_max, vars.of(Scope::Proc).len()) {
        assembly.ground.world.vars.limit(limits);
    }
    Some(Program {
        environment,
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
        vars,
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
            defaults: None,
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
    lines.flat_map(|line| line.words()).any(|word| EXPERIMENTS.contains(&word.text()) || address(word.text()))
}

/// A fault of `lang` as a complaint about a word of a line.
pub(crate) fn complaint(fault: Fault, line: &Line, offset: usize) -> Diagnostic {
    let span = match fault.word.and_then(|w| line.words().get(w + offset)) {
        Some(word) => word.span(),
        None => line.span(),
    };
    // HAProxy closes what its rule parsers say with a full stop, but those of TCP rules and filters, and leaves the blank out before
    // lists of actions.
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

/// A warning about a proxy as a whole, which HAProxy prints without a place.
pub(crate) fn remark(span: Span, text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Level::Warning, span, text).styled(Style::Bare)
}

/// An error about a proxy as a whole, which HAProxy prints without a place.
pub(crate) fn refusal(span: Span, text: impl Into<String>) -> Diagnostic {
    Diagnostic::alert(span, text).styled(Style::Bare)
}
