//! ACLs and the conditions made of them (manual, chapter 7).

use std::sync::Arc;

use pattern::{Kind, View};

use crate::env::{Env, Side};
use crate::expr::Expr;
use crate::sample::{Miss, Value};

/// What an ACL or a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// It can't be told before more data came.
    Later,
}

/// One `acl` line: an expression and the patterns it is compared with.
pub struct Test {
    /// What is compared.
    pub expr: Expr,
    /// How.
    pub kind: Kind,
    /// With what: one set for the inline patterns, one for each file. Empty: the value's truth or
    /// existence decides.
    pub patterns: Box<[View]>,
}

/// An ACL: one name, any of its lines.
pub struct Acl {
    /// Name; anonymous ones show their text.
    pub name: Box<str>,
    /// The lines of that name.
    pub tests: Box<[Test]>,
}

/// One factor of a condition.
pub struct Term {
    /// `!`.
    pub negated: bool,
    /// What is asked.
    pub acl: Arc<Acl>,
}

/// `if` or `unless`, and alternatives of factors.
pub struct Condition {
    /// `unless`.
    pub unless: bool,
    /// Any of these, each of which needs all its factors.
    pub any: Box<[Box<[Term]>]>,
    /// As written.
    pub text: Box<str>,
}

impl Outcome {
    fn not(self) -> Outcome {
        match self {
            Outcome::Yes => Outcome::No,
            Outcome::No => Outcome::Yes,
            Outcome::Later => Outcome::Later,
        }
    }
}

impl From<bool> for Outcome {
    fn from(b: bool) -> Outcome {
        if b { Outcome::Yes } else { Outcome::No }
    }
}

/// Who watches a condition being evaluated: `explain`. Traffic passes `&mut ()`, which costs nothing.
pub trait Watch {
    /// A test took this value.
    fn value(&mut self, test: &Test, value: Value<'_>) {
        let _ = (test, value);
    }
    /// A test came out so.
    fn test(&mut self, test: &Test, outcome: Outcome) {
        let _ = (test, outcome);
    }
    /// A factor came out so, its negation applied.
    fn term(&mut self, term: &Term, outcome: Outcome) {
        let _ = (term, outcome);
    }
}

impl Watch for () {}

impl Test {
    /// Compares.
    pub fn holds(&self, env: &Env<'_>, watch: &mut impl Watch) -> Outcome {
        if self.is_out_of_reach(env) {
            watch.test(self, Outcome::No);
            return Outcome::No;
        }
        let hit = self.expr.any(env, |value| {
            watch.value(self, value);
            match self.kind {
                Kind::Found => true,
                Kind::Bool => value.truth().unwrap_or(false),
                _ => self.patterns.iter().any(|p| p.contains(value.for_pattern())),
            }
        });
        let outcome = match hit {
            Ok(true) => Outcome::Yes,
            _ if !env.last
                && (self.expr.fetch.def.growing)(&self.expr.fetch.args)
                && !env.live.payload(env.side).complete =>
            {
                Outcome::Later
            }
            Ok(false) => Outcome::No,
            Err(Miss::Later) => Outcome::Later,
            Err(Miss::None) => Outcome::No,
        };
        watch.test(self, outcome);
        outcome
    }
}

impl Test {
    /// Whether rules of the response ask for the request's head or bytes, which are gone by then. That we may
    /// still have them must not make a difference.
    fn is_out_of_reach(&self, env: &Env<'_>) -> bool {
        env.side == Side::Response && self.expr.fetch.def.places.is_of_request()
    }
}

impl Acl {
    /// Whether any line of the name holds.
    pub fn holds(&self, env: &Env<'_>) -> Outcome {
        self.watched(env, &mut ())
    }

    fn watched(&self, env: &Env<'_>, watch: &mut impl Watch) -> Outcome {
        let mut out = Outcome::No;
        for test in &self.tests {
            match test.holds(env, watch) {
                Outcome::Yes => return Outcome::Yes,
                Outcome::Later => out = Outcome::Later,
                Outcome::No => {}
            }
        }
        out
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", if self.unless { "unless" } else { "if" }, self.text)
    }
}

impl Condition {
    /// Whether the rule applies.
    pub fn holds(&self, env: &Env<'_>) -> Outcome {
        self.watched(env, &mut ())
    }

    /// The same, with somebody watching.
    pub fn watched(&self, env: &Env<'_>, watch: &mut impl Watch) -> Outcome {
        let mut out = Outcome::No;
        for alternative in &self.any {
            match all(alternative, env, watch) {
                Outcome::Yes => {
                    out = Outcome::Yes;
                    break;
                }
                Outcome::Later => out = Outcome::Later,
                Outcome::No => {}
            }
        }
        if self.unless { out.not() } else { out }
    }
}

fn all(terms: &[Term], env: &Env<'_>, watch: &mut impl Watch) -> Outcome {
    let mut out = Outcome::Yes;
    for term in terms {
        let one = term.acl.watched(env, watch);
        let one = if term.negated { one.not() } else { one };
        watch.term(term, one);
        match one {
            Outcome::No => return Outcome::No,
            Outcome::Later => out = Outcome::Later,
            Outcome::Yes => {}
        }
    }
    out
}
