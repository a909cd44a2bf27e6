//! The tables: every fetch, converter, action and log tag is one entry, beside its function.
//!
//! A family file exports `pub const FETCHES: &[FetchDef]` and so on; [`Registry::standard`] puts them
//! together once, at start-up. Dumps, help, the manual, suggestions and the tests that police the
//! entries all read the same tables.

use std::collections::HashMap;

use crate::action::Action;
use crate::arg::{Arg, Signature};
use crate::arith::Arith;
use crate::env::Env;
use crate::names::Names;
use crate::places::{BACKEND, Places, REQUEST_FIGURES, RESPONSE_FIGURES, RESPONSE_KEPT, SERVER};
use crate::sample::{Found, Miss, Type, Value};
use crate::words::{Fault, Words};

/// Takes a sample. What it returns lives as long as what it looked at.
pub type FetchFn = for<'a> fn(&Env<'a>, &'a [Arg]) -> Found<'a>;

/// Takes all samples of a fetch that has several (all values of a header), until `visit` says stop by
/// returning `true`. The last word is whether more may come with more data.
pub type EachFn = for<'a> fn(&Env<'a>, &'a [Arg], visit: &mut dyn FnMut(Value<'a>) -> bool) -> Found<'a>;

/// Changes a sample.
pub type ConvFn = for<'a> fn(&Env<'a>, Value<'a>, &'a [Arg]) -> Found<'a>;

/// Checks or prepares arguments beyond what the signature says.
pub type CheckFn = fn(&mut Vec<Arg>, &mut dyn Names) -> Result<(), Fault>;

/// Checks the patterns that an ACL compares samples with as a whole.
pub type PatternsFn = fn(&[Arg], &[Box<[u8]>]) -> Result<(), Fault>;

/// One fetch.
pub struct FetchDef {
    /// Name.
    pub name: &'static str,
    /// Signature, as dumped: `string[,integer]`.
    pub args: &'static str,
    /// Type of the sample.
    pub out: Type,
    /// Where its data exists.
    pub places: Places,
    /// Takes one sample (the last one, where there are several).
    pub eval: FetchFn,
    /// Takes all samples, for ACLs.
    pub each: Option<EachFn>,
    /// Checks the arguments.
    pub check: Option<CheckFn>,
    /// Checks the patterns of an ACL, where only some texts can ever be found.
    pub patterns: Option<PatternsFn>,
    /// Differs from one evaluation to the next, or has a side effect: never shared or hoisted.
    pub volatile: bool,
    /// What it finds grows while data comes: a test that fails is not decided before all of it is there.
    pub growing: fn(&[Arg]) -> bool,
    /// One line of documentation.
    pub doc: &'static str,
    /// An expression that compiles.
    pub example: &'static str,
}

/// One converter.
pub struct ConvDef {
    /// Name.
    pub name: &'static str,
    /// Signature, as dumped.
    pub args: &'static str,
    /// Type it wants.
    pub from: Type,
    /// Type it gives.
    pub out: Type,
    /// Does it.
    pub eval: ConvFn,
    /// Checks the arguments.
    pub check: Option<CheckFn>,
    /// Has a side effect or depends on more than its input.
    pub volatile: bool,
    /// It is an operation on integers, run as part of a chain; `eval` is then never called.
    pub arith: Option<Arith>,
    /// One line of documentation.
    pub doc: &'static str,
    /// An expression that compiles.
    pub example: &'static str,
}

impl FetchDef {
    /// Whether it looks at what only streams have: it finds nothing for the line of an error that came before there was one.
    pub fn is_of_stream(&self) -> bool {
        let sources = [REQUEST_FIGURES, RESPONSE_FIGURES, RESPONSE_KEPT, BACKEND, SERVER];
        let named = ["txn.", "bc.", "bc_"].iter().any(|prefix| self.name.starts_with(prefix));
        let single = [
            "fc.timer.total",
            "http_first_req",
            "capture.res.ver",
            "cur_client_timeout",
            "prio_class",
            "prio_offset",
        ];
        named || sources.contains(&self.places) || single.contains(&self.name)
    }

    /// Whether its figures are complete only when the stream is over.
    pub fn is_of_the_end(&self) -> bool {
        self.places == REQUEST_FIGURES || self.places == RESPONSE_FIGURES || self.name == "fc.timer.total"
    }

    /// An entry without arguments, variants or side effects; the methods below add to it.
    pub const fn new(
        name: &'static str,
        out: Type,
        places: Places,
        eval: FetchFn,
        doc: &'static str,
    ) -> FetchDef {
        FetchDef {
            name,
            args: "",
            out,
            places,
            eval,
            each: None,
            check: None,
            patterns: None,
            volatile: false,
            growing: |_| false,
            doc,
            example: name,
        }
    }

    /// With arguments, and an example that shows them.
    pub const fn args(mut self, args: &'static str, example: &'static str) -> FetchDef {
        self.args = args;
        self.example = example;
        self
    }

    /// With a check of its arguments.
    pub const fn check(mut self, check: CheckFn) -> FetchDef {
        self.check = Some(check);
        self
    }

    /// With a check of what an ACL compares it with.
    pub const fn patterns(mut self, patterns: PatternsFn) -> FetchDef {
        self.patterns = Some(patterns);
        self
    }

    /// With a way to take all samples.
    pub const fn each(mut self, each: EachFn) -> FetchDef {
        self.each = Some(each);
        self
    }

    /// See [`FetchDef::growing`].
    pub const fn growing(mut self, grows: fn(&[Arg]) -> bool) -> FetchDef {
        self.growing = grows;
        self
    }

    /// Differs from one evaluation to the next.
    pub const fn volatile(mut self) -> FetchDef {
        self.volatile = true;
        self
    }

    /// The same under another name, elsewhere.
    pub const fn alias(self, name: &'static str, places: Places, example: &'static str) -> FetchDef {
        FetchDef { name, places, example, ..self }
    }

    /// The same with another function.
    pub const fn eval(mut self, eval: FetchFn) -> FetchDef {
        self.eval = eval;
        self
    }
}

impl ConvDef {
    /// Whether what comes out may be of another type than what went in.
    pub fn changes_type(&self) -> bool {
        !matches!((self.from, self.out), (_, Type::Same) | (Type::Any, Type::Any))
    }

    /// An entry without arguments or side effects; the methods below add to it.
    pub const fn new(
        name: &'static str,
        from: Type,
        out: Type,
        eval: ConvFn,
        doc: &'static str,
        example: &'static str,
    ) -> ConvDef {
        ConvDef { name, args: "", from, out, eval, check: None, volatile: false, arith: None, doc, example }
    }

    /// An operation on integers.
    pub const fn arith(name: &'static str, op: Arith, doc: &'static str, example: &'static str) -> ConvDef {
        let def = ConvDef::new(name, Type::Int, Type::Int, |_, _, _| Err(Miss::None), doc, example);
        ConvDef { arith: Some(op), ..def }
    }

    /// With arguments.
    pub const fn args(mut self, args: &'static str) -> ConvDef {
        self.args = args;
        self
    }

    /// With a check of its arguments.
    pub const fn check(mut self, check: CheckFn) -> ConvDef {
        self.check = Some(check);
        self
    }

    /// The same once more, for tables that are put together of others.
    pub const fn copy(&self) -> ConvDef {
        ConvDef { ..*self }
    }

    /// Has a side effect or depends on more than its input.
    pub const fn volatile(mut self) -> ConvDef {
        self.volatile = true;
        self
    }
}

/// A name that stands for a fetch and a match method (`path_beg` is `path -m beg`).
pub struct AclDef {
    /// The ACL keyword.
    pub name: &'static str,
    /// The fetch behind it.
    pub fetch: &'static str,
    /// The method implied.
    pub kind: pattern::Kind,
}

/// The rule sets that an action may stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// One log tag (`%ci`).
pub struct TagDef {
    /// Without the percent sign.
    pub name: &'static str,
    /// Appends its text. `None` means that there is no value: `-` is logged. Nothing appended means that the
    /// item does not exist in this line, and the blank behind it is left out.
    pub write: for<'a> fn(&Env<'a>, &crate::logfmt::Options, &mut Vec<u8>) -> Option<()>,
    /// Only in HTTP mode.
    pub http_only: bool,
    /// When it is known.
    pub known: Known,
    /// What it writes.
    pub kind: TagKind,
    /// One line of documentation.
    pub doc: &'static str,
}

/// When what a log tag says is known: a line that nobody names a moment for is written as soon as all of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// From the start, or whenever the line happens to be made.
    Early,
    /// With the head of the request.
    Request,
    /// With the head of the response; in TCP mode with the connection to the server.
    Response,
    /// At the end of the stream.
    End,
}

/// What a log tag writes, which decides how it is quoted and encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// Text: quoted with `+Q`.
    Text,
    /// An address: quoted with `+Q`, unless `+X` writes it in hexadecimal digits.
    Address,
    /// Text of a peer with odd bytes as `#XX`: quoted with `+Q`, in CBOR a text of several chunks.
    Encoded,
    /// Captured headers in braces, the same.
    Captures,
    /// Text that is never quoted (dates, termination states).
    Plain,
    /// A number.
    Number,
    /// A number that `+X` writes in hexadecimal digits, as a text where it is encoded.
    Figure,
    /// A number that still grows while the transaction lasts: `+` stands before it in all lines of a frontend that
    /// logs before the end (`option logasap`, or a format that does not wait for it), and in no others.
    Running,
    /// Texts separated by blanks, each quoted alone; `\0` separates them as they are written.
    List,
}

/// All entries by name.
pub struct Registry {
    fetches: HashMap<&'static str, (&'static FetchDef, Signature)>,
    convs: HashMap<&'static str, (&'static ConvDef, Signature)>,
    acls: HashMap<&'static str, &'static AclDef>,
    actions: Vec<&'static ActionDef>,
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
            tags: HashMap::new(),
        }
    }

    /// The entries of this crate.
    ///
    /// # Panics
    /// When a table is wrong (a signature that can't be read, a name twice): a defect of ours that every
    /// start would show, and that the tests find first.
    pub fn standard() -> Registry {
        let mut r = Registry::empty();
        for table in crate::fetch::TABLES {
            r.add_fetches(table);
        }
        r.add_fetches(crate::stick::fetches());
        r.add_converters(crate::stick::converters());
        for table in crate::conv::TABLES {
            r.add_converters(table);
        }
        for table in crate::act::TABLES {
            r.add_actions(table);
        }
        for table in crate::tag::TABLES {
            r.add_tags(table);
        }
        for def in crate::fetch::ACLS {
            assert!(r.acls.insert(def.name, def).is_none(), "ACL keyword {} twice", def.name);
        }
        r
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

    /// The action that a word names in a rule set: exact names first, then prefixes.
    pub fn action(&self, word: &str, set: Sets) -> Option<&'static ActionDef> {
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
