//! The resolver of names that `lang` asks while it parses rules.
//!
//! All sections are declared before any rule is parsed, so a rule may name what stands below it. What one
//! configuration shares (slots of variables, pattern files, answers) is [`Memory`]; what one proxy has of its
//! own (its ACLs, its capture slots) lives in the [`Resolver`] of that proxy.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use lang::logfmt::Waits;
use lang::names::{Agents, CaptureSlot, Loggers, Missing, PLACE, Shelf};
use lang::parse::predefined;
use lang::{Acl, Fault, Names, Registry};
use model::cached::Cache;
use model::vars::{Scope, VarRef};
use model::{Proxy, Server};
use pattern::{Face, LiveSet, View};
use program::vars::VarNames;
use syntax::Environment;

use crate::cache::UsedCaches;
use crate::draft::{Above, LineRef, LogDraft, Slot};
use crate::notes::os_text;
use crate::patterns::{Patterns, Spot};
use lang::fetch::Userlist;

/// A proxy as rules may name it.
pub(crate) struct Declared {
    pub name: Box<str>,
    pub state: Arc<Proxy>,
    pub is_front: bool,
    pub is_back: bool,
    pub servers: Vec<Arc<Server>>,
    /// What is said of each that may change while the process runs.
    pub configured: Vec<model::server::Configured>,
    /// Rules name it.
    pub referenced: Cell<bool>,
    /// Rules copy requests for it.
    pub mirror: Cell<bool>,
    /// The servers that rules name.
    pub named: RefCell<HashSet<usize>>,
    /// `mode`.
    pub mode: program::Mode,
}

/// What all proxies of one configuration share.
#[derive(Default)]
pub(crate) struct Memory {
    pub vars: VarNames,
    pub patterns: Patterns,
    pub http_errors: HashMap<Box<str>, BTreeMap<u16, Arc<[u8]>>>,
    pub users: HashMap<Box<str>, Arc<Userlist>>,
    pub environment: Environment,
    /// Caches in the order of the configuration.
    pub caches: Vec<Arc<Cache>>,
    /// Stick tables in the order of the configuration.
    pub tables: Vec<Arc<stick::Table>>,
    /// `tune.stick-counters`.
    pub stick_counters: usize,
    /// `tune.bufsize.large` is set.
    pub large_buffers: bool,
    /// `tune.bufsize`, where that is too small for HTTP/2.
    pub small_buffers: Option<usize>,
    /// `expose-experimental-directives`.
    pub experimental: bool,
    /// Names of `resolvers` sections in order.
    pub resolvers: Vec<Box<str>>,
    /// Names of log profiles in order.
    pub log_profiles: Vec<Box<str>>,
    /// What the formats of each of them wait for, of all steps.
    pub profile_waits: Vec<Waits>,
    /// Applications of FastCGI.
    pub fcgi: Vec<program::fcgi::Application>,
    /// Certificates.
    pub store: Option<Arc<tls::Store>>,
    /// What rules of the proxy at hand name and nobody has, with their lines.
    pub missing: Vec<(LineRef, Missing)>,
    /// What the formats of the proxy at hand wait for, those of its rules included.
    pub waits: Waits,
    /// The proxy at hand looks at messages of HTTP.
    pub looks_at_http: bool,
    /// `log` lines that files of extensions have, with the label of their section and where their targets go.
    pub loggers: Vec<(LogDraft, String, Loggers)>,
    /// Backends with agents of SPOE filters, as positions of proxies.
    pub agents: HashSet<usize>,
    /// The `log` lines of `global`.
    pub logged: Above,
    /// `tune.bufsize`.
    pub bufsize: usize,
    /// Lines of `defaults` sections of which was said what is wrong with them: proxies that inherit them say
    /// nothing.
    pub told: HashSet<LineRef>,
}

impl Memory {
    /// An application of FastCGI by name.
    pub fn application(&self, name: &str) -> Option<&program::fcgi::Application> {
        self.fcgi.iter().find(|application| *application.app.name == *name)
    }
}

/// The most bytes of a file named in a rule.
const LARGEST_FILE: u64 = 16 << 20;

/// The ACLs of a section, each with the line of its first declaration.
type Declarations = HashMap<Box<str>, (LineRef, Arc<Acl>)>;

/// Names as one proxy sees them.
pub(crate) struct Resolver<'r> {
    pub memory: &'r mut Memory,
    pub registry: &'r Registry,
    pub declared: &'r [Declared],
    /// The proxy at hand; `None` in `global`.
    pub here: Option<usize>,
    pub owner: String,
    pub http: bool,
    /// The section of the proxy; lines of other sections come from `defaults`.
    pub section: u32,
    /// Nobody but the `defaults` section itself is at hand; whether frontends and backends inherit its rules.
    pub defaults: Option<(bool, bool)>,
    /// The line at hand: ACLs are known from the line of their first declaration on.
    pub line: LineRef,
    /// By section: those of `defaults` are for the rules of that section alone.
    pub acls: HashMap<u32, Declarations>,
    /// ACLs that need no declaration.
    pub predefined: HashMap<Box<str>, Predefined>,
    pub req_captures: Vec<Slot>,
    pub res_captures: Vec<Slot>,
    /// Its bandwidth limitation filters.
    pub filters: Vec<Arc<lang::bandwidth::Bwlim>>,
    /// The caches that it uses.
    pub caches: UsedCaches,
    pub warnings: Vec<String>,
    /// Complaints about other files: whether they are fatal, and their words.
    pub asides: Vec<(bool, String)>,
    /// What extensions keep of it.
    pub shelf: Shelf,
    /// A line and how often it mentioned patterns so far.
    pub mentions: (LineRef, u32),
    /// See [`Spot::chosen`].
    pub chosen: bool,
}

/// An ACL that needs no declaration.
#[derive(Clone)]
pub(crate) struct Predefined {
    acl: Arc<Acl>,
    /// How often it mentions patterns.
    spots: u32,
    /// The mentions of these that are new: where a section inherits from `defaults`, they were made there.
    mentions: Range<usize>,
}

impl Resolver<'_> {
    fn current(&self) -> Option<&Declared> {
        self.declared.get(self.here?)
    }

    /// Where patterns are being mentioned.
    fn spot(&mut self) -> Spot {
        let (at, nth) = (self.line, self.mentioned() + 1);
        self.mentions = (at, nth);
        let inherited = self.in_defaults() && at.line != u32::MAX;
        Spot { at, nth, inherited, chosen: self.chosen }
    }

    /// How often the line at hand mentioned patterns so far.
    fn mentioned(&self) -> u32 {
        if self.mentions.0 == self.line { self.mentions.1 } else { 0 }
    }

    /// A stick table by name, or that of the proxy at hand.
    fn table(&self, name: Option<&str>) -> Result<Arc<stick::Table>, Fault> {
        // Rules of defaults are for several proxies, none of whose tables is "the" one.
        let own = || match self.in_defaults() {
            true => self.owner.split('\'').nth(1).unwrap_or_default(),
            false => self.current().map_or("", |d| &*d.name),
        };
        let name = name.unwrap_or_else(own);
        let found = self.memory.tables.iter().find(|t| *t.settings().name == *name);
        found.cloned().ok_or_else(|| {
            let near = syntax::nearest(name, self.memory.tables.iter().map(|t| &*t.settings().name));
            let fault = Fault::new(format!("unable to find table '{name}' referenced"));
            match near {
                Some(near) => fault.help(format!("did you mean '{near}' maybe ?")),
                None => fault,
            }
        })
    }

    fn proxy(&self, name: Option<&str>, front: bool) -> Result<Arc<Proxy>, Fault> {
        let kind = if front { "frontend" } else { "backend" };
        let is_fit = |d: &&Declared| if front { d.is_front } else { d.is_back };
        let found = match name.filter(|n| !n.is_empty()) {
            Some(name) => self.declared.iter().find(|d| *d.name == *name && is_fit(d)),
            None => self.current().filter(is_fit),
        };
        if let (None, Some((fronts, backs))) = (name, self.defaults)
            && (fronts == backs || fronts == front)
        {
            // Whoever inherits the rule will be meant; this one stands for them.
            return Ok(Arc::new(Proxy::new("", 0, None, 1)));
        }
        let near = || {
            let all = self.declared.iter().filter(is_fit);
            syntax::nearest(name.unwrap_or_default(), all.map(|d| &*d.name))
                .map(|n| format!("did you mean '{n}' maybe ?"))
        };
        if let Some(d) = found.filter(|_| name.is_some()) {
            d.referenced.set(true);
        }
        found.map(|d| d.state.clone()).ok_or_else(|| {
            let fault = Fault::new(match name.filter(|n| !n.is_empty()) {
                Some(name) => format!("unable to find {kind} '{name}' referenced"),
                None => {
                    let own = self.owner.split('\'').nth(1).unwrap_or_default();
                    format!("proxy '{own}', referenced{PLACE}, has not {kind} capability")
                }
            });
            match near() {
                Some(help) => fault.help(help),
                None => fault,
            }
        })
    }
}

impl Names for Resolver<'_> {
    fn miss(&mut self, missing: Missing) {
        self.memory.missing.push((self.line, missing));
    }

    fn looks_at_http(&mut self) {
        self.memory.looks_at_http = true;
    }

    fn format_waits(&mut self, waits: Waits) {
        // Of rules that are inherited only those that speak of HTTP have the request line kept.
        let line = if self.in_defaults() { waits.http_line } else { waits.line };
        self.memory.waits.join(Waits { line, ..waits });
    }

    /// Those that the binary brings for rules (`engine::worker::service`).
    fn service(&self, name: &str) -> bool {
        name == "prometheus-exporter"
    }

    fn frontend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        self.proxy(name, true)
    }

    fn backend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        self.proxy(name, false)
    }

    fn server(&self, name: &str) -> Result<(Arc<Proxy>, Arc<Server>), Fault> {
        let none = |proxy: &str| Fault::new(format!("unable to find proxy '{proxy}' referenced"));
        let (proxy, server) = match name.split_once('/') {
            Some((proxy, server)) => {
                let found = self.declared.iter().find(|d| d.is_back && *d.name == *proxy);
                (found.ok_or_else(|| none(proxy))?, server)
            }
            // Rules of defaults are for several proxies, none of which is "the" one.
            None if self.in_defaults() => return Err(Fault::new("backend name must be set")),
            None => (self.current().ok_or_else(|| none(""))?, name),
        };
        let at = proxy.servers.iter().position(|s| *s.name == *server).ok_or_else(|| {
            Fault::new(format!("unable to find server '{server}' in proxy '{}', referenced", proxy.name))
        })?;
        proxy.referenced.set(true);
        proxy.named.borrow_mut().insert(at);
        Ok((proxy.state.clone(), proxy.servers[at].clone()))
    }

    fn variable(&mut self, name: &str) -> Result<VarRef, Fault> {
        let (prefix, rest) = name.split_once('.').unwrap_or((name, ""));
        let scope = Scope::from_prefix(prefix)
            .ok_or_else(|| Fault::new(format!("invalid variable name '{name}'")))?;
        if rest.is_empty() || !rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')) {
            return Err(Fault::new(format!(
                "invalid syntax at char '{}'",
                rest.chars().find(|c| !(c.is_ascii_alphanumeric() || "_.".contains(*c))).unwrap_or('.')
            )));
        }
        self.memory.vars.slot(scope, rest).ok_or_else(|| Fault::new("too many variables"))
    }

    fn acl(&mut self, name: &str) -> Result<Arc<Acl>, Fault> {
        let declared = self.acls.get(&self.line.section);
        if let Some((_, acl)) = declared.and_then(|d| d.get(name)).filter(|(first, _)| *first <= self.line) {
            return Ok(acl.clone());
        }
        if let Some(mut known) = self.predefined.get(name).cloned() {
            // Its mentions count in each line, whoever was the first to use it: those behind have numbers,
            // too.
            for _ in 0..known.spots {
                let spot = self.spot();
                if let Some(mention) = known.mentions.next() {
                    self.memory.patterns.mention_earlier(mention, spot);
                }
            }
            return Ok(known.acl);
        }
        let registry = self.registry;
        let (spots, before) = (self.mentioned(), self.memory.patterns.mentions());
        let Some(acl) = predefined(name, registry, self) else {
            let fault = Fault::new(format!("no such ACL : '{name}'"));
            let mut names: Vec<&str> = lang::parse::predefined_names().collect();
            let declared = self.acls.get(&self.line.section);
            names.extend(declared.into_iter().flat_map(|d| d.keys()).map(|k| &**k));
            let near = syntax::nearest(name, names).map(|n| format!("did you mean '{n}' maybe ?"));
            return Err(match near {
                Some(help) => fault.help(help),
                None => fault,
            });
        };
        let mentions = before..self.memory.patterns.mentions();
        let known = Predefined { acl: acl.clone(), spots: self.mentioned() - spots, mentions };
        self.predefined.insert(name.into(), known);
        Ok(acl)
    }

    fn patterns(&mut self, reference: &str, face: Face, map: bool) -> Result<Arc<View>, Fault> {
        let spot = self.spot();
        self.memory.patterns.file(reference, face, map, spot)
    }

    fn inline(&mut self, criterion: &str, number: Option<u32>) -> Result<Arc<LiveSet>, Fault> {
        let spot = self.spot();
        self.memory.patterns.inline(criterion, number, spot)
    }

    fn changed(&mut self, reference: &str) -> Arc<OnceLock<Arc<LiveSet>>> {
        self.memory.patterns.asked(reference)
    }

    fn object(&self, kind: lang::arg::Kind, name: Option<&str>) -> Result<Arc<dyn Any + Send + Sync>, Fault> {
        match kind {
            lang::arg::Kind::Userlist => {
                let name = name.unwrap_or_default();
                let found = self.memory.users.get(name).cloned();
                found
                    .map(|u| u as Arc<dyn Any + Send + Sync>)
                    .ok_or_else(|| Fault::new(format!("unable to find userlist '{name}' referenced")))
            }
            _ => self.table(name).map(|t| t as Arc<dyn Any + Send + Sync>),
        }
    }

    fn resolvers(&self, name: &str) -> Result<u32, Fault> {
        let at = self.memory.resolvers.iter().position(|known| **known == *name);
        let at = at.and_then(|at| u32::try_from(at).ok());
        at.ok_or_else(|| Fault::new(format!("Can't find resolvers section '{name}' for do-resolve action")))
    }

    fn backend_index(&self, name: &str) -> Result<u32, Fault> {
        let at = self.declared.iter().position(|d| d.is_back && *d.name == *name);
        at.and_then(|i| u32::try_from(i).ok())
            .ok_or_else(|| Fault::new(format!("unable to find required use_backend: '{name}'")))
    }

    fn mirror(&self, name: &str) -> Result<(Arc<Proxy>, u32), Fault> {
        let found = self.declared.iter().enumerate().find(|(_, d)| d.is_back && *d.name == *name);
        let found = found.and_then(|(at, d)| Some((d, u32::try_from(at).ok()?)));
        let Some((proxy, at)) = found else {
            let near = syntax::nearest(name, self.declared.iter().filter(|d| d.is_back).map(|d| &*d.name));
            let fault = Fault::new(format!("unable to find backend '{name}'"));
            return Err(match near {
                Some(near) => fault.help(format!("did you mean '{near}' maybe ?")),
                None => fault,
            });
        };
        if proxy.mode != program::Mode::Http {
            return Err(Fault::new(format!("backend '{name}' is not of 'mode http'")));
        }
        proxy.referenced.set(true);
        proxy.mirror.set(true);
        Ok((proxy.state.clone(), at))
    }

    fn bandwidth(&self, name: &str) -> Result<Arc<lang::bandwidth::Bwlim>, Fault> {
        let found = self.filters.iter().find(|f| *f.name == *name).cloned();
        // HAProxy looks whether there is any; a rule about another does nothing.
        let found = found.or_else(|| self.filters.first().map(|f| Arc::new(f.nowhere())));
        found.ok_or_else(|| {
            Fault::new(format!("unable to find bwlim filter '{name}' referenced by set-bandwidth-limit rule"))
        })
    }

    fn cache(&mut self, name: &str) -> Option<lang::caching::NamedCache> {
        self.caches.mention(name, self.line);
        let store = self.memory.caches.iter().find(|cache| *cache.settings().name == *name)?.clone();
        Some(lang::caching::NamedCache { store, keeps: self.caches.keep(name) })
    }

    fn log_profile(&mut self, name: &str) -> Result<u32, Fault> {
        let found = self.memory.log_profiles.iter().position(|p| **p == *name);
        let invalid = || Fault::new(format!("do-log action: profile '{name}' is invalid"));
        let at = found.ok_or_else(invalid)?;
        // The proxy's own lines wait for what a profile wants that a rule names.
        if let Some(waits) = self.memory.profile_waits.get(at) {
            self.memory.waits.join(*waits);
        }
        u32::try_from(at).map_err(|_| invalid())
    }

    fn error_file(&mut self, section: &str, status: u16) -> Result<Option<Arc<[u8]>>, Fault> {
        let found = self.memory.http_errors.get(section);
        let found = found.ok_or_else(|| Fault::new(format!("unknown http-errors section '{section}'")))?;
        Ok(found.get(&status).cloned())
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
        use std::io::Read;
        let mut bytes = Vec::new();
        let read = base::outside::open(path).and_then(|f| f.take(LARGEST_FILE).read_to_end(&mut bytes));
        read.map(|_| bytes)
            .map_err(|e| Fault::new(format!("failed to open the file '{path}' ({})", os_text(&e))))
    }

    fn capture(&mut self, response: bool, slot: CaptureSlot) -> Result<u16, Fault> {
        let for_backends = matches!(self.defaults, Some((_, true)));
        let is_front = self.current().map_or(!for_backends, |p| p.is_front);
        let list = if response { &mut self.res_captures } else { &mut self.req_captures };
        match slot {
            // Which frontend's slots a backend fills is known only when it serves a request; so are those of
            // `defaults` for backends.
            CaptureSlot::Id(id) if !is_front || usize::from(id) < list.len() => Ok(id),
            CaptureSlot::Id(_) => Err(Fault::new("unable to find capture id")),
            CaptureSlot::Length(_) => {
                let here = Some(self.line);
                let at = list.iter().position(|s| s.rule == here).and_then(|i| u16::try_from(i).ok());
                at.ok_or_else(|| Fault::new("too many captures"))
            }
        }
    }

    fn tls_store(&self) -> Option<Arc<tls::Store>> {
        self.memory.store.clone()
    }

    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        self.memory.environment.get(name).map(<[u8]>::to_vec)
    }

    fn stick_counters(&self) -> usize {
        self.memory.stick_counters
    }

    fn lacks(&self, side: lang::env::Side) -> bool {
        !self.in_defaults()
            && self.current().is_some_and(|d| match side {
                lang::env::Side::Request => !d.is_front,
                lang::env::Side::Response => !d.is_back,
            })
    }

    fn in_defaults(&self) -> bool {
        self.defaults.is_some() || self.line.section != self.section
    }

    fn large_buffers(&self) -> bool {
        self.memory.large_buffers
    }

    fn experimental(&self) -> bool {
        self.memory.experimental
    }

    fn is_http(&self) -> bool {
        self.http
    }

    fn owner(&self) -> String {
        self.owner.clone()
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn aside(&mut self, fatal: bool, text: String) {
        self.asides.push((fatal, text));
    }

    fn shelf(&mut self) -> Option<&mut Shelf> {
        self.defaults.is_none().then_some(&mut self.shelf)
    }

    fn agents(&mut self, name: &str) -> Agents {
        let Some(at) = self.declared.iter().position(|d| d.is_back && *d.name == *name) else {
            return Agents::Unknown;
        };
        let (mode, number) = (self.declared.get(at).map(|d| d.mode), u32::try_from(at));
        match (mode, number) {
            (Some(program::Mode::Spop | program::Mode::Tcp), Ok(number)) => {
                self.memory.agents.insert(at);
                Agents::At(number)
            }
            _ => Agents::OtherMode,
        }
    }

    fn loggers(&mut self, lines: &[(bool, Vec<Vec<u8>>)], label: &str) -> Result<Loggers, (usize, String)> {
        let mut draft = LogDraft::default();
        for (number, (off, words)) in lines.iter().enumerate() {
            crate::log::words(*off, words, self.memory.logged, &mut draft).map_err(|why| (number, why))?;
        }
        let cell = Loggers::default();
        self.memory.loggers.push((draft, label.to_owned(), cell.clone()));
        Ok(cell)
    }

    fn buffer_size(&self) -> usize {
        self.memory.bufsize
    }
}
