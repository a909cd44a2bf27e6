//! The first pass: sections in order, each line by the entry of its keyword.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lang::fetch::Userlist;
use program::log::Ring;
use syntax::{Diagnostic, Diagnostics, Environment, Section, Sources, Tree, Word};

use crate::cache::{self, CacheDraft};
use crate::draft::{Draft, Kind, LineRef};
use crate::fcgi::{self, FcgiDraft};
use crate::forward::{self, ForwardDraft};
use crate::global::draft::GlobalDraft;
use crate::global::{self};
use crate::healthcheck::{self, HealthDraft};
use crate::mailers::{self, MailersDraft};
use crate::peers::{self, PeersDraft};
use crate::profile::{self, ProfileDraft};
use crate::resolvers::{self, ResolversDraft};
use crate::statement::{Statement, Step, Surroundings, tight};
use crate::tls::stores::{self, StoreDraft};
use crate::traces::{self, TracesDraft};
use crate::{namespaces, proxy, ring, users};

/// Everything that the first pass found.
#[derive(Default)]
pub(crate) struct Drafts {
    pub global: GlobalDraft,
    pub proxies: Vec<Draft>,
    pub http_errors: HashMap<Box<str>, BTreeMap<u16, Arc<[u8]>>>,
    pub users: HashMap<Box<str>, Arc<Userlist>>,
    /// `peers` sections.
    pub peers: Vec<PeersDraft>,
    /// Their tables.
    pub peer_tables: Vec<crate::draft::TableDraft>,
    pub rings: Vec<Ring>,
    /// The servers of rings, by index.
    pub ring_servers: Vec<(usize, Draft)>,
    /// `log-forward` sections.
    pub forwards: Vec<ForwardDraft>,
    /// What `traces` sections set.
    pub traces: TracesDraft,
    pub profiles: Vec<ProfileDraft>,
    pub healthchecks: Vec<HealthDraft>,
    /// `fcgi-app` sections.
    pub applications: Vec<FcgiDraft>,
    pub mailers: Vec<MailersDraft>,
    pub resolvers: Vec<ResolversDraft>,
    /// What the `namespace_list` section names.
    pub namespaces: Vec<base::netns::Namespace>,
    /// `cache` sections.
    pub caches: Vec<CacheDraft>,
    /// `defaults` sections that have a name.
    pub defaults: Vec<Draft>,
    /// `crt-store` sections in order.
    pub stores: Vec<StoreDraft>,
}

/// Reads all sections.
pub(crate) fn read(
    tree: &Tree,
    sources: &Sources,
    environment: &Environment,
    options: &crate::Options,
    notes: &mut Diagnostics,
) -> Drafts {
    let mut reader = Reader {
        tree,
        sources,
        environment,
        options,
        notes,
        out: Drafts { global: GlobalDraft::of(options), rings: vec![ring::built_in()], ..Drafts::default() },
        defaults: BTreeMap::new(),
        heirs: HashMap::new(),
        lists: Vec::new(),
    };
    for (index, section) in tree.sections.iter().enumerate() {
        reader.section(index, section);
    }
    let Reader { mut out, defaults, heirs, lists, notes, .. } = reader;
    out.defaults = named(defaults, tree, sources, &heirs);
    traces::finish(&out.traces, &out.rings, notes);
    out.users = users::finish(lists, notes).map(|list| (list.name.clone(), Arc::new(list))).collect();
    out
}

/// The pass over the sections, and what it has so far.
struct Reader<'t> {
    tree: &'t Tree,
    sources: &'t Sources,
    environment: &'t Environment,
    options: &'t crate::Options,
    notes: &'t mut Diagnostics,
    out: Drafts,
    /// `defaults` sections by position.
    defaults: BTreeMap<usize, Draft>,
    /// Whether frontends and backends inherit from them.
    heirs: HashMap<usize, (bool, bool)>,
    lists: Vec<users::Draft<'t>>,
}

impl<'t> Reader<'t> {
    fn section(&mut self, index: usize, section: &'t Section) {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        if let Some(diagnostic) = odd_name(section) {
            self.notes.push(diagnostic);
        }
        match section.word() {
            "global" => self.global(section, number),
            "defaults" | "frontend" | "backend" | "listen" => self.proxy(section, index, number),
            "userlist" => self.userlist(section, number),
            "peers" | "http-errors" => self.shared(section, number),
            "ring" | "log-profile" | "log-forward" | "traces" => self.logs(section, number),
            "healthcheck" | "mailers" | "crt-store" | "resolvers" | "fcgi-app" | "cache"
            | "namespace_list" => self.servants(section, number),
            other => {
                let text = format!("'{other}' sections are not supported yet by Harrier (planned)");
                self.notes.alert(section.header.span(), text);
            }
        }
    }

    /// What lines may ask about the sections above.
    fn around<'c>(
        global: &GlobalDraft,
        earlier: &'c [Draft],
        of: (&'c Sources, &'c Environment),
    ) -> Surroundings<'c> {
        let (sources, environment) = of;
        let (experimental, described) = (global.experimental, global.description.is_some());
        Surroundings { sources, environment, earlier, experimental, described, logged: global.log.above() }
    }

    fn global(&mut self, section: &Section, number: u32) {
        let around = Self::around(&self.out.global, &[], (self.sources, self.environment));
        let is_named = self.options.localpeer.is_some();
        lines(section, number, &around, self.notes, |s| match s.keyword() {
            // HAProxy says so, and stops all the same.
            "localpeer" if is_named => Err(s.fail(
                "'localpeer' ignored since it is already set by using the '-L' command line argument.\n",
            )),
            _ => global::line(s, &mut self.out.global),
        });
    }

    /// A proxy, or the defaults of some.
    fn proxy(&mut self, section: &Section, index: usize, number: u32) {
        let kind = match section.word() {
            "defaults" => Kind::Defaults { named: section.name.is_some() },
            "frontend" => Kind::Frontend,
            "backend" => Kind::Backend,
            _ => Kind::Listen,
        };
        lineage(section, &self.defaults, self.tree, self.sources, &mut self.heirs, self.notes);
        let mut draft = start(kind, section, number, &self.defaults);
        let earlier: &[Draft] = if kind.is_defaults() { &[] } else { &self.out.proxies };
        let around = Self::around(&self.out.global, earlier, (self.sources, self.environment));
        if !kind.is_defaults() {
            stranded(section, self.notes);
        }
        lines(section, number, &around, self.notes, |s| proxy::line(s, &mut draft));
        match kind {
            Kind::Defaults { .. } => drop(self.defaults.insert(index, draft)),
            _ => self.out.proxies.push(draft),
        }
    }

    fn userlist(&mut self, section: &'t Section, number: u32) {
        match (section.name.is_some(), section.header.args().get(1)) {
            (false, _) => {
                let text = "'userlist' expects <name> as arguments.";
                self.notes.push(tight(Diagnostic::alert(section.header.span(), text)));
            }
            (_, Some(extra)) => {
                let text = format!("'userlist' cannot handle unexpected argument '{extra}'.");
                self.notes.alert(extra.span(), text);
            }
            _ => {}
        }
        let around = Self::around(&self.out.global, &[], (self.sources, self.environment));
        users::section(section, number, &around, &mut self.lists, self.notes);
    }

    /// The name of this process among peers, as far as was said.
    fn local_peer(&self) -> Box<str> {
        let given = self.options.localpeer.clone().or_else(|| self.out.global.localpeer.clone());
        given.unwrap_or_else(global::process::hostname)
    }

    /// What proxies refer to by name.
    fn shared(&mut self, section: &Section, number: u32) {
        let around = Self::around(&self.out.global, &[], (self.sources, self.environment));
        match section.word() {
            "peers" => {
                let local = self.local_peer();
                peers(section, number, &around, self.notes, &mut self.out, &local);
            }
            _ => http_errors(section, number, &around, self.notes, &mut self.out.http_errors),
        }
    }

    /// Where logs go, and what they look like.
    fn logs(&mut self, section: &Section, number: u32) {
        let around = Self::around(&self.out.global, &[], (self.sources, self.environment));
        let (out, notes) = (&mut self.out, &mut *self.notes);
        match section.word() {
            "ring" => {
                let Some(mut ring) = ring::header(section, &out.rings, notes) else { return };
                let mut servers = ring::servers(&ring, section);
                servers.section = number;
                lines(section, number, &around, notes, |s| ring::line(s, &mut ring, &mut servers));
                ring::finish(&mut ring, section, notes);
                out.ring_servers.push((out.rings.len(), servers));
                out.rings.push(ring);
            }
            "log-forward" => {
                let place = |span: syntax::Span| format!("{}:{}", self.sources.name(span.file), span.line);
                let opened = forward::header(section, &out.forwards, &out.proxies, place, notes);
                let Some(mut draft) = opened else { return };
                draft.proxy.section = number;
                lines(section, number, &around, notes, |s| forward::line(s, &mut draft));
                out.forwards.push(draft);
            }
            "traces" => {
                if let Some(extra) = section.header.args().first() {
                    let text = format!("'traces' cannot handle unexpected argument '{extra}'.");
                    notes.alert(extra.span(), text);
                }
                let (traces, rings) = (&mut out.traces, &out.rings);
                lines(section, number, &around, notes, |s| traces::line(s, traces, rings));
            }
            _ => {
                let opened = profile::header(section, &out.profiles, self.sources, notes);
                let Some(mut profile) = opened else { return };
                lines(section, number, &around, notes, |s| profile::line(s, &mut profile));
                out.profiles.push(profile);
            }
        }
    }

    /// Checks, certificates, mail and caches of several proxies.
    fn servants(&mut self, section: &Section, number: u32) {
        let around = Self::around(&self.out.global, &[], (self.sources, self.environment));
        let (out, notes) = (&mut self.out, &mut *self.notes);
        match section.word() {
            "healthcheck" => {
                let opened = healthcheck::header(section, number, &out.healthchecks, self.sources, notes);
                let Some(mut health) = opened else { return };
                lines(section, number, &around, notes, |s| healthcheck::line(s, &mut health));
                out.healthchecks.push(health);
            }
            "namespace_list" => {
                lines(section, number, &around, notes, |s| namespaces::line(s, &mut out.namespaces));
            }
            "mailers" => {
                let opened = mailers::header(section, &out.mailers, self.sources, notes);
                let Some(mut draft) = opened else { return };
                lines(section, number, &around, notes, |s| mailers::line(s, &mut draft));
                out.mailers.push(draft);
            }
            "fcgi-app" => {
                let opened = fcgi::header(section, number, &out.applications, self.sources, notes);
                let Some(mut draft) = opened else { return };
                lines(section, number, &around, notes, |s| fcgi::line(s, &mut draft));
                out.applications.push(draft);
            }
            "resolvers" => {
                let opened = resolvers::header(section, &out.resolvers, self.sources, notes);
                let Some(mut draft) = opened else { return };
                lines(section, number, &around, notes, |s| resolvers::line(s, &mut draft));
                out.resolvers.push(draft);
            }
            "cache" => {
                let Some(mut draft) = cache::header(section, &out.caches, notes) else { return };
                lines(section, number, &around, notes, |s| cache::line(s, &mut draft));
                out.caches.push(draft);
            }
            _ => {
                let Some(mut store) = stores::header(section, notes) else { return };
                lines(section, number, &around, notes, |s| stores::line(s, &mut store));
                out.stores.push(store);
            }
        }
    }
}

/// The sections that have a name, each with the reason why backends can't inherit from it.
fn named(
    defaults: BTreeMap<usize, Draft>,
    tree: &Tree,
    sources: &Sources,
    heirs: &HashMap<usize, (bool, bool)>,
) -> Vec<Draft> {
    let unfit = |(index, d): (usize, Draft)| {
        let heirs = heirs.get(&index).copied().unwrap_or_default();
        let at = format!("{}:{}", sources.name(d.span.file), d.span.line);
        let why = if d.rules.is_empty() { None } else { unlike(&d, tree, &at, (heirs.0, true), false) };
        Draft { unfit: why.map(Into::into), heirs, ..d }
    };
    defaults.into_iter().filter(|(_, d)| !d.name.is_empty()).map(unfit).collect()
}

/// What is wrong with rules of a defaults section for a frontend, or else a backend. `heirs` says whether
/// frontends and backends inherit.
fn unlike(base: &Draft, tree: &Tree, at: &str, heirs: (bool, bool), front: bool) -> Option<String> {
    let some = |of: fn(&Tree, LineRef, bool) -> bool| base.rules.iter().any(|rule| of(tree, *rule, front));
    if !front && some(captures) {
        return Some(format!(
            "backend or defaults sections cannot inherit from a defaults section defining captures (defaults section at {at})."
        ));
    }
    if heirs == (true, true) {
        return Some(format!(
            "frontends and backends cannot inherit from the same defaults section if it defines TCP/HTTP rules (defaults section at {at})."
        ));
    }
    if some(of_other_side) {
        let (heir, rules) = match front {
            true => ("frontend", "'tcp-response content'"),
            false => ("backend", "'tcp-request connection' or 'tcp-request session'"),
        };
        return Some(format!(
            "a {heir} section cannot inherit from a defaults section defining {rules} rules (defaults section at {at})."
        ));
    }
    None
}

/// Rules of a defaults section fit one side of the traffic: who may not inherit them is told so. `heirs`
/// remembers whether frontends and backends have inherited from a section.
fn lineage(
    section: &Section,
    defaults: &BTreeMap<usize, Draft>,
    tree: &Tree,
    sources: &Sources,
    heirs: &mut HashMap<usize, (bool, bool)>,
    notes: &mut Diagnostics,
) {
    let Some(index) = section.inherits.section() else { return };
    let Some(base) = defaults.get(&index).filter(|d| !d.rules.is_empty()) else { return };
    let at = format!("{}:{}", sources.name(base.span.file), base.span.line);
    let sides = heirs.entry(index).or_default();
    let text = match section.word() {
        "defaults" => format!(
            "a defaults section cannot inherit from a defaults section defining TCP/HTTP rules (defaults section at {at})."
        ),
        "listen" => {
            "a listen section cannot inherit from a defaults section defining TCP/HTTP rules.".to_owned()
        }
        word => {
            let front = word == "frontend";
            *sides = (sides.0 || front, sides.1 || !front);
            let Some(text) = unlike(base, tree, &at, *sides, front) else { return };
            text
        }
    };
    notes.push(tight(Diagnostic::alert(section.header.span(), text)));
}

/// Whether a rule makes a slot for captures, which only frontends have.
fn captures(tree: &Tree, rule: LineRef, _: bool) -> bool {
    let line = tree.sections.get(rule.section as usize).and_then(|s| s.lines.get(rule.line as usize));
    line.is_some_and(|l| {
        let mut words = l.args().iter().map(Word::text);
        let first = words.next();
        let action = if first == Some("content") { words.next() } else { first };
        action == Some("capture") && words.any(|w| w == "len")
    })
}

/// Whether a rule belongs to the other side of the traffic than frontends (or backends) are on.
fn of_other_side(tree: &Tree, rule: LineRef, front: bool) -> bool {
    let line = tree.sections.get(rule.section as usize).and_then(|s| s.lines.get(rule.line as usize));
    line.is_some_and(|l| {
        let set = l.args().first().map_or("", Word::text);
        let keyword = l.keyword().text();
        if front {
            keyword == "tcp-response"
        } else {
            keyword == "tcp-request" && matches!(set, "connection" | "session")
        }
    })
}

fn start(kind: Kind, section: &Section, number: u32, defaults: &BTreeMap<usize, Draft>) -> Draft {
    let base = section.inherits.section().and_then(|i| defaults.get(&i));
    let mut draft = base.map_or_else(|| Draft::new(kind), |d| d.inherit(kind));
    (draft.name, draft.span, draft.section) = (section.name().into(), section.span(), number);
    if kind == Kind::Frontend {
        // Frontends inherit nothing of this, but what they say themselves is looked at.
        (draft.cookie, draft.load_state) = (None, None);
    }
    draft
}

fn lines(
    section: &Section,
    number: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
    mut each: impl FnMut(&mut Statement<'_>) -> Step,
) {
    for (index, line) in section.lines.iter().enumerate() {
        let at = LineRef { section: number, line: u32::try_from(index).unwrap_or(u32::MAX) };
        let args = line.cursor();
        let mut s = Statement { line, at, args, notes, around, section: section.word() };
        if let Err(diagnostic) = each(&mut s) {
            notes.push(diagnostic);
        }
    }
}

fn peers(
    section: &Section,
    number: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
    out: &mut Drafts,
    local: &str,
) {
    let place = |span: syntax::Span| format!("{}:{}", around.sources.name(span.file), span.line);
    let opened = peers::header(section, &out.peers, place, local, notes);
    let Some(mut draft) = opened else { return };
    let tables = &mut out.peer_tables;
    lines(section, number, around, notes, |s| peers::line(s, &mut draft, tables));
    out.peers.push(draft);
}

/// HAProxy passes over a `backend` line with more than a name when it is not `from` and the name of a
/// `defaults` section, and then knows no section for the lines below.
fn stranded(section: &Section, notes: &mut Diagnostics) {
    let words: Vec<&str> = section.header.words().iter().map(|w| w.text()).collect();
    let passed_over = matches!(*words, ["backend", _, "from"])
        || matches!(*words, ["backend", _, extra, ..] if extra != "from");
    for line in section.lines.iter().filter(|_| passed_over) {
        notes.alert(line.span(), "'listen' or 'defaults' expected.");
    }
}

/// A character that may not stand in the name of a section. Names of proxies were looked at before.
fn odd_name(section: &Section) -> Option<syntax::Diagnostic> {
    let (word, name) = (section.word(), section.name());
    let odd = syntax::invalid_character(name)?;
    let alert = |text: String| Some(syntax::Diagnostic::alert(section.header.span(), text));
    match word {
        "ring" => alert(format!("invalid ring name '{name}' (character '{odd}' is not permitted).")),
        "peers" | "mailers" | "fcgi-app" | "resolvers" | "userlist" | "http-errors" | "log-profile"
        | "healthcheck" | "log-forward" => {
            let diagnostic = alert(format!("character '{odd}' is not permitted in '{word}' name '{name}'."))?;
            Some(if word == "userlist" { diagnostic.styled(syntax::Style::Reading) } else { diagnostic })
        }
        _ => None,
    }
}

fn http_errors(
    section: &Section,
    number: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
    all: &mut HashMap<Box<str>, BTreeMap<u16, Arc<[u8]>>>,
) {
    if section.name().is_empty() {
        return notes.alert(section.header.span(), "missing name for http-errors section.");
    }
    let mut messages = BTreeMap::new();
    lines(section, number, around, notes, |s| match s.keyword() {
        "errorfile" => {
            let (status, message) = proxy::errors::file(s)?;
            messages.insert(status, message);
            Ok(())
        }
        other => Err(s.fail(format!("unknown keyword '{other}' in 'http-errors' section"))),
    });
    if all.insert(section.name().into(), messages).is_some() {
        let text = format!("http-errors section '{}' already exists (declared before).", section.name());
        notes.alert(section.span(), text);
    }
}
