//! The tables: every fetch, converter, action and log tag is one entry, beside its function.
//!
//! A family file exports `pub const FETCHES: &[FetchDef]` and so on; [`Registry::standard`] (`standard.rs`)
//! puts them together once, at start-up. Dumps, help, the manual, suggestions and the tests that police the
//! entries all read the same tables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::action::Action;
use crate::arg::{Arg, Signature};
use crate::entry::{AclDef, ConvDef, FetchDef};
use crate::env::Env;
use crate::filter::Maker;
use crate::logfmt::TagDef;
use crate::names::Names;
use crate::places::Places;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::{Fault, Words};

/// The rule sets that an action may stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sets(pub u16);

impl Sets {
    /// `quic-initial`.
    pub const QUIC: Sets = Sets(1);
    /// `tcp-request connection`.
    pub const TCP_CONN: Sets = Sets(2);
    /// `tcp-request session`.
    pub const TCP_SESS: Sets = Sets(4);
    /// `tcp-request content`.
    pub const TCP_REQ: Sets = Sets(8);
    /// `tcp-response content`.
    pub const TCP_RES: Sets = Sets(16);
    /// `http-request`.
    pub const HTTP_REQ: Sets = Sets(32);
    /// `http-response`.
    pub const HTTP_RES: Sets = Sets(64);
    /// `http-after-response`.
    pub const HTTP_AFTER: Sets = Sets(128);
    /// All rule sets on HTTP heads.
    pub const HTTP: Sets = Sets(32 | 64 | 128);
    /// All TCP rule sets.
    pub const TCP: Sets = Sets(2 | 4 | 8 | 16);
    /// All of both.
    pub const ALL: Sets = Sets(2 | 4 | 8 | 16 | 32 | 64 | 128);

    /// Both.
    pub const fn and(self, other: Sets) -> Sets {
        Sets(self.0 | other.0)
    }

    /// All but those of `other`.
    pub const fn but(self, other: Sets) -> Sets {
        Sets(self.0 & !other.0)
    }

    /// Whether every set of `other` is here.
    pub const fn has(self, other: Sets) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What an action's parser knows besides the words.
pub struct ActionPlace {
    /// The rule set at hand: one of the constants of [`Sets`].
    pub set: Sets,
    /// Where its expressions stand.
    pub place: crate::places::Place,
    /// How it is written.
    pub form: Form,
}

/// How an action is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Behind the name of its rule set: `http-request redirect`.
    Rule,
    /// As a keyword of its own: `redirect`.
    Line,
    /// Behind `stats http-request`: who is asked for a password is asked for that of the statistics.
    Statistics,
}

/// Parses the words after the action's name, up to `if`/`unless` or the end.
pub type ActionParse =
    fn(&mut Words<'_>, &ActionPlace, &Registry, &mut dyn Names) -> Result<Box<dyn Action>, Fault>;

/// One action.
pub struct ActionDef {
    /// Name; a trailing `*` means the name is a prefix (`set-var(txn.x)`, `track-sc0`): the parser then
    /// sees the whole word by stepping back.
    pub name: &'static str,
    /// Where it may stand.
    pub sets: Sets,
    /// Its parser.
    pub parse: ActionParse,
    /// One line of documentation.
    pub doc: &'static str,
    /// The words after the rule set's name, as an example that compiles.
    pub example: &'static str,
}

/// Parses the words after the name of an action that is no row of a table.
pub type OwnedParse = dyn Fn(&mut Words<'_>, &ActionPlace, &Registry, &mut dyn Names) -> Result<Box<dyn Action>, Fault>
    + Send
    + Sync;

/// An action that an extension adds while a configuration is read.
pub struct OwnedAction {
    /// Name.
    pub name: Box<str>,
    /// Where it may stand.
    pub sets: Sets,
    /// Its parser.
    pub parse: Box<OwnedParse>,
}

/// What a filter's parser knows besides the words.
pub struct FilterPlace<'p> {
    /// Name of the proxy.
    pub proxy: &'p str,
    /// The proxy is a frontend (or both).
    pub front: bool,
    /// The proxy is a backend (or both).
    pub back: bool,
    /// It speaks HTTP.
    pub http: bool,
    /// What the proxy's lines `compression ...` say.
    pub compression: Option<&'p Arc<crate::compression::Compression>>,
}

/// Parses the words behind the name of a filter.
pub type FilterParse =
    fn(&mut Words<'_>, &FilterPlace<'_>, &Registry, &mut dyn Names) -> Result<Arc<dyn Maker>, Fault>;

/// One filter that configurations may name.
pub struct FilterDef {
    /// Its name.
    pub name: &'static str,
    /// The name of its family, as `-dKflt` shows it.
    pub tag: &'static str,
    /// Its parser.
    pub parse: FilterParse,
    /// One line of documentation.
    pub doc: &'static str,
    /// The words behind `filter`, as an example that compiles.
    pub example: &'static str,
}

/// Parses the words behind the name of a filter that is no row of a table.
pub type OwnedFilterParse = dyn Fn(&mut Words<'_>, &FilterPlace<'_>, &Registry, &mut dyn Names) -> Result<Arc<dyn Maker>, Fault>
    + Send
    + Sync;

/// A filter that an extension adds while a configuration is read.
pub struct OwnedFilter {
    /// Its name.
    pub name: Box<str>,
    /// The name of its family.
    pub tag: Box<str>,
    /// Its parser.
    pub parse: Box<OwnedFilterParse>,
}

/// What takes a sample for a fetch that an extension adds: see [`Registry::add_fetch`].
pub struct OwnedFetch(Box<FetchBody>);

/// What a fetch of an extension does.
pub type FetchBody = dyn for<'a> Fn(&Env<'a>, &'a [Arg]) -> Found<'a> + Send + Sync;

/// What changes a sample for a converter that an extension adds: see [`Registry::add_converter`].
pub struct OwnedConverter(Box<ConverterBody>);

/// What a converter of an extension does.
pub type ConverterBody = dyn for<'a> Fn(&Env<'a>, Value<'a>, &'a [Arg]) -> Found<'a> + Send + Sync;

/// Arguments that entries of extensions take.
const OWNED_ARGS: &str = "[string,string,string,string,string]";

fn eval_fetch<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let Some((Arg::Other(body), args)) = args.split_last() else { return Err(Miss::None) };
    body.downcast_ref::<OwnedFetch>().map_or(Err(Miss::None), |body| (body.0)(env, args))
}

fn eval_converter<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let Some((Arg::Other(body), args)) = args.split_last() else { return Err(Miss::None) };
    body.downcast_ref::<OwnedConverter>().map_or(Err(Miss::None), |body| (body.0)(env, value, args))
}

/// Entries of extensions, which live as long as the process: names that come again with another
/// configuration find theirs, so they grow with the names that scripts think of and not with reloads.
static ENTRIES: Mutex<Entries> = Mutex::new(Entries { fetches: Vec::new(), convs: Vec::new() });

struct Entries {
    fetches: Vec<&'static FetchDef>,
    convs: Vec<&'static ConvDef>,
}

fn fetch_entry(name: &str, places: Places) -> &'static FetchDef {
    let mut all = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.fetches.iter().find(|def| def.name == name && def.places == places) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    let def = FetchDef::new(name, Type::Str, places, eval_fetch, "Of an extension.");
    let def: &'static FetchDef = Box::leak(Box::new(def.args(OWNED_ARGS, name).volatile()));
    all.fetches.push(def);
    def
}

fn conv_entry(name: &str) -> &'static ConvDef {
    let mut all = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.convs.iter().find(|def| def.name == name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    let def = ConvDef::new(name, Type::Str, Type::Str, eval_converter, "Of an extension.", name);
    let def: &'static ConvDef = Box::leak(Box::new(def.args(OWNED_ARGS).volatile()));
    all.convs.push(def);
    def
}

/// A service that an extension adds.
pub struct OwnedService {
    /// Name.
    pub name: Box<str>,
    /// Where `use-service` may name it.
    pub sets: Sets,
    /// What is said where it may not.
    pub elsewhere: Box<str>,
}

/// All entries by name.
pub struct Registry {
    fetches: HashMap<&'static str, (&'static FetchDef, Signature)>,
    convs: HashMap<&'static str, (&'static ConvDef, Signature)>,
    acls: HashMap<&'static str, &'static AclDef>,
    actions: Vec<&'static ActionDef>,
    owned_actions: Vec<Arc<OwnedAction>>,
    filters: Vec<&'static FilterDef>,
    owned_filters: Vec<Arc<OwnedFilter>>,
    owned_fetches: HashMap<&'static str, Arc<OwnedFetch>>,
    owned_convs: HashMap<&'static str, Arc<OwnedConverter>>,
    services: Vec<OwnedService>,
    tags: HashMap<&'static str, &'static TagDef>,
}

impl Registry {
    /// Without entries.
    pub fn empty() -> Registry {
        Registry {
            fetches: HashMap::new(),
            convs: HashMap::new(),
            acls: HashMap::new(),
            actions: Vec::new(),
            owned_actions: Vec::new(),
            filters: Vec::new(),
            owned_filters: Vec::new(),
            owned_fetches: HashMap::new(),
            owned_convs: HashMap::new(),
            services: Vec::new(),
            tags: HashMap::new(),
        }
    }

    /// Adds a table of fetches (extensions do).
    ///
    /// # Panics
    /// As [`Registry::standard`].
    pub fn add_fetches(&mut self, table: &'static [FetchDef]) {
        for def in table {
            let sig =
                Signature::parse(def.args).unwrap_or_else(|w| panic!("fetch {}: argument {w}", def.name));
            assert!(self.fetches.insert(def.name, (def, sig)).is_none(), "fetch {} twice", def.name);
        }
    }

    /// Adds a table of ACL keywords.
    ///
    /// # Panics
    /// As [`Registry::standard`].
    pub fn add_acls(&mut self, table: &'static [AclDef]) {
        for def in table {
            assert!(self.acls.insert(def.name, def).is_none(), "ACL keyword {} twice", def.name);
        }
    }

    /// Adds a table of converters.
    ///
    /// # Panics
    /// As [`Registry::standard`].
    pub fn add_converters(&mut self, table: &'static [ConvDef]) {
        for def in table {
            let sig =
                Signature::parse(def.args).unwrap_or_else(|w| panic!("converter {}: argument {w}", def.name));
            assert!(self.convs.insert(def.name, (def, sig)).is_none(), "converter {} twice", def.name);
        }
    }

    /// Adds a table of actions.
    pub fn add_actions(&mut self, table: &'static [ActionDef]) {
        self.actions.extend(table);
    }

    /// Adds an action of an extension. The name of one that is there already goes on to mean that one.
    pub fn add_action(&mut self, action: OwnedAction) {
        self.owned_actions.push(Arc::new(action));
    }

    /// Adds a table of filters.
    pub fn add_filters(&mut self, table: &'static [FilterDef]) {
        self.filters.extend(table);
    }

    /// Adds a filter of an extension. The name of one that is there already goes on to mean that one.
    pub fn add_filter(&mut self, filter: OwnedFilter) {
        self.owned_filters.push(Arc::new(filter));
    }

    /// Parses the words behind a filter's name; `None` when nothing has that name.
    pub fn parse_filter(
        &self,
        name: &str,
        words: &mut Words<'_>,
        at: &FilterPlace<'_>,
        names: &mut dyn Names,
    ) -> Option<Result<Arc<dyn Maker>, Fault>> {
        if let Some(def) = self.filters.iter().find(|def| def.name == name) {
            return Some((def.parse)(words, at, self, names));
        }
        let owned = self.owned_filters.iter().find(|def| *def.name == *name)?;
        Some((owned.parse)(words, at, self, names))
    }

    /// Names and families of all filters that were added.
    pub fn filter_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let rows = self.filters.iter().map(|def| (def.name, def.tag));
        rows.chain(self.owned_filters.iter().map(|def| (&*def.name, &*def.tag)))
    }

    /// All rows of the tables of filters.
    pub fn all_filters(&self) -> &[&'static FilterDef] {
        &self.filters
    }

    /// Adds a fetch of an extension, which gives text; whether its name was free.
    pub fn add_fetch(&mut self, name: &str, places: Places, body: Box<FetchBody>) -> bool {
        if self.fetches.contains_key(name) {
            return false;
        }
        let def = fetch_entry(name, places);
        let sig = Signature::parse(def.args).unwrap_or_default();
        self.fetches.insert(def.name, (def, sig));
        self.owned_fetches.insert(def.name, Arc::new(OwnedFetch(body)));
        true
    }

    /// Adds a converter of an extension, from text to text; whether its name was free.
    pub fn add_converter(&mut self, name: &str, body: Box<ConverterBody>) -> bool {
        if self.convs.contains_key(name) {
            return false;
        }
        let def = conv_entry(name);
        let sig = Signature::parse(def.args).unwrap_or_default();
        self.convs.insert(def.name, (def, sig));
        self.owned_convs.insert(def.name, Arc::new(OwnedConverter(body)));
        true
    }

    /// Adds a service of an extension.
    pub fn add_service(&mut self, service: OwnedService) {
        self.services.push(service);
    }

    /// The service of an extension of this name.
    pub fn service(&self, name: &str) -> Option<&OwnedService> {
        self.services.iter().find(|service| *service.name == *name)
    }

    /// The argument that carries what a fetch of an extension does, behind those that were written.
    pub(crate) fn fetch_body(&self, name: &str) -> Option<Arg> {
        self.owned_fetches.get(name).map(|body| Arg::Other(body.clone()))
    }

    /// The same of a converter.
    pub(crate) fn converter_body(&self, name: &str) -> Option<Arg> {
        self.owned_convs.get(name).map(|body| Arg::Other(body.clone()))
    }

    /// Adds a table of log tags.
    ///
    /// # Panics
    /// As [`Registry::standard`].
    pub fn add_tags(&mut self, table: &'static [TagDef]) {
        for def in table {
            assert!(self.tags.insert(def.name, def).is_none(), "tag {} twice", def.name);
        }
    }

    /// A fetch and its signature.
    pub fn fetch(&self, name: &str) -> Option<(&'static FetchDef, &Signature)> {
        self.fetches.get(name).map(|(d, s)| (*d, s))
    }

    /// A converter and its signature.
    pub fn converter(&self, name: &str) -> Option<(&'static ConvDef, &Signature)> {
        self.convs.get(name).map(|(d, s)| (*d, s))
    }

    /// An ACL keyword that implies a match method.
    pub fn acl(&self, name: &str) -> Option<&'static AclDef> {
        self.acls.get(name).copied()
    }

    /// Parses the words behind an action's name; `None` when nothing has that name in the rule set at hand.
    pub fn parse_action(
        &self,
        name: &str,
        words: &mut Words<'_>,
        at: &ActionPlace,
        names: &mut dyn Names,
    ) -> Option<Result<Box<dyn Action>, Fault>> {
        if let Some(def) = self.action(name, at.set) {
            return Some((def.parse)(words, at, self, names));
        }
        let owned = self.owned_actions.iter().find(|a| *a.name == *name && a.sets.has(at.set))?;
        Some((owned.parse)(words, at, self, names))
    }

    /// The names of all actions of a rule set, those of extensions last.
    pub fn action_names(&self, set: Sets) -> impl Iterator<Item = &str> {
        let rows = self.actions.iter().filter(move |d| d.sets.has(set)).map(|d| d.name);
        rows.chain(self.owned_actions.iter().filter(move |a| a.sets.has(set)).map(|a| &*a.name))
    }

    /// The action of a table that a word names in a rule set: exact names first, then prefixes.
    fn action(&self, word: &str, set: Sets) -> Option<&'static ActionDef> {
        let named = |d: &&ActionDef| d.sets.has(set);
        let exact = self.actions.iter().copied().find(|d| d.name == word && named(d));
        exact.or_else(|| {
            self.actions
                .iter()
                .copied()
                .find(|d| d.name.strip_suffix('*').is_some_and(|p| word.starts_with(p)) && named(d))
        })
    }

    /// A log tag.
    pub fn tag(&self, name: &str) -> Option<&'static TagDef> {
        self.tags.get(name).copied()
    }

    /// All fetches by name.
    pub fn all_fetches(&self) -> Vec<&'static FetchDef> {
        let mut all: Vec<_> = self.fetches.values().map(|(d, _)| *d).collect();
        all.sort_by_key(|d| d.name);
        all
    }

    /// All converters by name.
    pub fn all_converters(&self) -> Vec<&'static ConvDef> {
        let mut all: Vec<_> = self.convs.values().map(|(d, _)| *d).collect();
        all.sort_by_key(|d| d.name);
        all
    }

    /// All ACL keywords by name.
    pub fn all_acls(&self) -> Vec<&'static AclDef> {
        let mut all: Vec<_> = self.acls.values().copied().collect();
        all.sort_by_key(|d| d.name);
        all
    }

    /// All actions in the order of the tables.
    pub fn all_actions(&self) -> &[&'static ActionDef] {
        &self.actions
    }

    /// All log tags by name.
    pub fn all_tags(&self) -> Vec<&'static TagDef> {
        let mut all: Vec<_> = self.tags.values().copied().collect();
        all.sort_by_key(|d| d.name);
        all
    }
}
