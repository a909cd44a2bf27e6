//! The first pass: sections in order, each line by the entry of its keyword.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lang::fetch::Userlist;
use program::log::Ring;
use syntax::{Diagnostic, Diagnostics, Environment, Section, Sources, Tree, Word};

use crate::draft::{Draft, Kind};
use crate::global::{self, GlobalDraft};
use crate::healthcheck::{self, HealthDraft};
use crate::mailers::{self, MailersDraft};
use crate::profile::{self, ProfileDraft};
use crate::proxy;
use crate::ring;
use crate::statement::{LineRef, Statement, Step, Surroundings, tight};
use crate::tls::stores::{self, StoreDraft};
use crate::users;

/// Everything that the first pass found.
pub(crate) struct Drafts {
    pub global: GlobalDraft,
    pub proxies: Vec<Draft>,
    pub http_errors: HashMap<Box<str>, BTreeMap<u16, Arc<[u8]>>>,
    pub users: HashMap<Box<str>, Arc<Userlist>>,
    /// Names of `peers` sections.
    pub peers: Vec<Box<str>>,
    /// Their tables.
    pub peer_tables: Vec<crate::table::TableDraft>,
    pub rings: Vec<Ring>,
    pub profiles: Vec<ProfileDraft>,
    pub healthchecks: Vec<HealthDraft>,
    pub mailers: Vec<MailersDraft>,
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
    notes: &mut Diagnostics,
) -> Drafts {
    let mut around =
        Surroundings { sources, environment, earlier: &[], experimental: false, described: false };
    let mut out = Drafts {
        global: GlobalDraft::default(),
        proxies: Vec::new(),
        http_errors: HashMap::new(),
        users: HashMap::new(),
        peers: Vec::new(),
        peer_tables: Vec::new(),
        rings: vec![ring::built_in()],
        profiles: Vec::new(),
        healthchecks: Vec::new(),
        mailers: Vec::new(),
        defaults: Vec::new(),
        stores: Vec::new(),
    };
    let mut defaults: BTreeMap<usize, Draft> = BTreeMap::new();
    let mut heirs: HashMap<usize, (bool, bool)> = HashMap::new();
    let mut lists = Vec::new();
    for (index, section) in tree.sections.iter().enumerate() {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        if let Some(diagnostic) = odd_name(section) {
            notes.push(diagnostic);
        }
        match section.word() {
            "global" => {
                lines(section, number, &around, notes, |s| global::line(s, &mut out.global));
                around.experimental = out.global.experimental;
                around.described = out.global.description.is_some();
            }
            "defaults" => {
                let kind = Kind::Defaults { named: section.name.is_some() };
                lineage(section, &defaults, tree, sources, &mut heirs, notes);
                let mut draft = start(kind, section, number, &defaults);
                lines(section, number, &around, notes, |s| proxy::line(s, &mut draft));
                defaults.insert(index, draft);
            }
            "frontend" | "backend" | "listen" => {
                let kind = match section.word() {
                    "frontend" => Kind::Frontend,
                    "backend" => Kind::Backend,
                    _ => Kind::Listen,
                };
                lineage(section, &defaults, tree, sources, &mut heirs, notes);
                let mut draft = start(kind, section, number, &defaults);
                let around = Surroundings { earlier: &out.proxies, ..around };
                stranded(section, notes);
                lines(section, number, &around, notes, |s| proxy::line(s, &mut draft));
                out.proxies.push(draft);
            }
            "userlist" => {
                match (section.name.is_some(), section.header.args().get(1)) {
                    (false, _) => {
                        let text = "'userlist' expects <name> as arguments.";
                        notes.push(tight(Diagnostic::alert(section.header.span(), text)));
                    }
                    (_, Some(extra)) => {
                        notes.alert(
                            extra.span(),
                            format!("'userlist' cannot handle unexpected argument '{extra}'."),
                        );
                    }
                    _ => {}
                }
                users::section(section, number, &around, &mut lists, notes);
            }
            "peers" => peers(section, number, &around, notes, &mut out),
            "http-errors" => http_errors(section, number, &around, notes, &mut out.http_errors),
            "ring" => {
                if let Some(mut ring) = ring::header(section, &out.rings, notes) {
                    lines(section, number, &around, notes, |s| ring::line(s, &mut ring));
                    ring::finish(&mut ring, section, notes);
                    out.rings.push(ring);
                }
            }
            "log-profile" => {
                if let Some(mut profile) = profile::header(section, &out.profiles, sources, notes) {
                    lines(section, number, &around, notes, |s| profile::line(s, &mut profile));
                    out.profiles.push(profile);
                }
            }
            "healthcheck" => {
                let opened = healthcheck::header(section, number, &out.healthchecks, sources, notes);
                if let Some(mut health) = opened {
                    lines(section, number, &around, notes, |s| healthcheck::line(s, &mut health));
                    out.healthchecks.push(health);
                }
            }
            "mailers" => {
                if let Some(mailers) = mailers::header(section, &out.mailers, sources, notes) {
                    lines(section, number, &around, notes, mailers::line);
                    out.mailers.push(mailers);
                }
            }
            "crt-store" => {
                if let Some(mut store) = stores::header(section, notes) {
                    lines(section, number, &around, notes, |s| stores::line(s, &mut store));
                    out.stores.push(store);
                }
            }
            "traces" => {
                notes.warning(
                    section.header.span(),
                    format!("'{}' sections have no effect in Harrier yet.", section.word()),
                );
            }
            other => {
                let text = format!("'{other}' sections are not supported yet by Harrier (planned)");
                notes.alert(section.header.span(), text);
            }
        }
    }
    out.defaults = named(defaults, tree, sources, &heirs);
    out.users = users::finish(lists, notes).map(|list| (list.name.clone(), Arc::new(list))).collect();
    out
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

/// What is wrong with rules of a defaults section for a frontend, or else a backend. `heirs` says whether frontends and backends inherit.
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

/// Rules of a defaults section fit one side of the traffic: who may not inherit them is told so. `heirs` remembers
/// whether frontends and backends have inherited from a section.
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
) {
    let name = section.name();
    if name.is_empty() {
        return notes.alert(section.header.span(), "missing name for peers section.");
    }
    if let Some(extra) = section.header.args().get(1) {
        notes.alert(extra.span(), format!("'peers' cannot handle unexpected argument '{extra}'."));
    }
    let mut others = false;
    let tables = &mut out.peer_tables;
    lines(section, number, around, notes, |s| crate::table::peers_line(s, name, tables, &mut others));
    if others {
        let text =
            format!("peers section '{name}': Harrier does not talk to peers yet, only its tables count.");
        notes.warning(section.header.span(), text);
    }
    out.peers.push(name.into());
}

/// HAProxy passes over a `backend` line with more than a name when it is not `from` and the name of a `defaults` section,
/// and then knows no section for the lines below.
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
        "peers" | "mailers" | "userlist" | "http-errors" | "log-profile" | "healthcheck" => {
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
