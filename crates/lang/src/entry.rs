//! Entries of the tables of fetches, converters and ACL keywords: everything about one of them, beside its
//! function.

use crate::arg::Arg;
use crate::arith::Arith;
use crate::env::Env;
use crate::names::Names;
use crate::places::{
    BACKEND, EITHER_HEAD, Places, REQUEST, REQUEST_FIGURES, REQUEST_KEPT, RESPONSE, RESPONSE_FIGURES,
    RESPONSE_KEPT, SERVER,
};
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

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

/// What a fetch looks at beyond what the places tell in which its data exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Of {
    /// What only streams have.
    pub stream: bool,
    /// The head of a request, though that is kept for later.
    pub request: bool,
    /// Figures that are complete only when the stream is over.
    pub end: bool,
}

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
    /// What its places do not tell of it.
    pub of: Of,
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
    /// Whether it looks at what only streams have: it finds nothing for the line of an error that came before
    /// there was one.
    pub fn is_of_stream(&self) -> bool {
        let sources = [REQUEST_FIGURES, RESPONSE_FIGURES, RESPONSE_KEPT, BACKEND, SERVER];
        self.of.stream || sources.contains(&self.places)
    }

    /// Whether it is told by a message of HTTP, or by what is kept of one.
    pub fn is_http(&self) -> bool {
        [REQUEST, REQUEST_KEPT, EITHER_HEAD, RESPONSE_KEPT, RESPONSE].contains(&self.places)
    }

    /// Whether it reads the head or the body of a request of HTTP as long as that is there.
    pub fn reads_request(&self) -> bool {
        self.of.request || [REQUEST, EITHER_HEAD].contains(&self.places)
    }

    /// Whether its figures are complete only when the stream is over.
    pub fn is_of_the_end(&self) -> bool {
        self.of.end || [REQUEST_FIGURES, RESPONSE_FIGURES].contains(&self.places)
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
            of: Of { stream: false, request: false, end: false },
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

    /// It looks at what only streams have: see [`FetchDef::is_of_stream`].
    pub const fn of_stream(mut self) -> FetchDef {
        self.of.stream = true;
        self
    }

    /// It reads the head of a request: see [`FetchDef::reads_request`].
    pub const fn of_request(mut self) -> FetchDef {
        self.of.request = true;
        self
    }

    /// It tells how the stream ended, or how long it took: see [`FetchDef::is_of_the_end`].
    pub const fn of_end(mut self) -> FetchDef {
        self.of = Of { stream: true, end: true, ..self.of };
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
#[derive(Clone, Copy)]
pub struct AclDef {
    /// The ACL keyword.
    pub name: &'static str,
    /// The fetch behind it.
    pub fetch: &'static str,
    /// The method implied.
    pub kind: pattern::Kind,
    /// What it loses when it is matched in another way.
    pub own: Own,
}

/// What an ACL keyword has beyond its fetch, and loses behind converters or with `-m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Nothing: it is matched as its fetch is.
    Nothing,
    /// The method that its name tells.
    Kind,
    /// Something that no other method does.
    Manner,
}

impl AclDef {
    /// Whether something of its own is lost where values are matched by this method, said with `-m` or taken
    /// because of a converter.
    pub fn loses(&self, kind: Option<pattern::Kind>) -> bool {
        match self.own {
            Own::Nothing => false,
            Own::Kind => kind != Some(self.kind),
            Own::Manner => true,
        }
    }
}
