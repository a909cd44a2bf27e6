//! Sample expressions: a fetch and the converters behind it, resolved and typed.

use model::vars::Owned;

use crate::arg::Arg;
use crate::arith::{self, Chain};
use crate::entry::{ConvDef, FetchDef};
use crate::env::{Env, Side};
use crate::sample::{Found, Miss, Type, Value};

/// A fetch with its arguments.
pub struct Fetch {
    /// The entry.
    pub def: &'static FetchDef,
    /// Its arguments.
    pub args: Box<[Arg]>,
}

/// A converter with its arguments.
pub struct Conv {
    /// The entry.
    pub def: &'static ConvDef,
    /// Its arguments.
    pub args: Box<[Arg]>,
}

/// A step of the conversion.
enum Step {
    /// The converter with this index.
    Call(usize),
    /// A run of arithmetic.
    Sums(Chain),
}

/// A sample expression.
pub struct Expr {
    /// Where the sample comes from.
    pub fetch: Fetch,
    /// What is done to it, in order.
    convs: Box<[Conv]>,
    /// How that is done.
    steps: Box<[Step]>,
    /// As written, for dumps, logs and `explain`.
    pub text: Box<str>,
}

/// The type after some converters; those from any to any keep it, what others make of `any` is known when
/// they run.
pub(crate) fn type_after(fetch: Type, convs: &[Conv]) -> Type {
    convs.iter().rev().find(|c| c.def.changes_type()).map_or(fetch, |c| c.def.out)
}

impl Expr {
    /// From its parts.
    pub fn new(fetch: Fetch, convs: Vec<Conv>, text: &str) -> Expr {
        Expr { fetch, steps: steps(&convs), convs: convs.into(), text: text.into() }
    }

    /// All of it as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The keyword of the fetch as written.
    pub fn word(&self) -> &str {
        self.text.split(['(', ',', ' ']).next().unwrap_or_default()
    }

    /// What is done to the sample, in order.
    pub fn convs(&self) -> &[Conv] {
        &self.convs
    }

    /// Type of the result.
    pub fn out(&self) -> Type {
        crate::expr::type_after(self.fetch.def.out, &self.convs)
    }

    /// Whether two evaluations may differ though nothing changed in between.
    pub fn is_volatile(&self) -> bool {
        self.fetch.def.volatile || self.convs.iter().any(|c| c.def.volatile)
    }

    /// Takes the sample and converts it.
    ///
    /// # Errors
    /// There is no value, or none yet.
    #[inline]
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Found<'a> {
        match (self.fetch.def.eval)(env, &self.fetch.args) {
            Ok(value) => self.convert(env, value),
            Err(miss) => Err(self.missed(env, miss)),
        }
    }

    /// Why the fetch has no value: in TCP the head that it looks at may still come.
    #[cold]
    fn missed(&self, env: &Env<'_>, miss: Miss) -> Miss {
        use crate::places::{EITHER_HEAD, REQUEST, REQUEST_KEPT};
        let of_head = [REQUEST, REQUEST_KEPT, EITHER_HEAD].contains(&self.fetch.def.places);
        let comes = env.txn.may_be_http && !env.last && env.side == Side::Request;
        if of_head && comes { Miss::Later } else { miss }
    }

    /// Runs the converters on a value.
    ///
    /// # Errors
    /// A converter had no result, or its input could not be cast.
    pub fn convert<'a>(&'a self, env: &Env<'a>, mut value: Value<'a>) -> Found<'a> {
        for step in &self.steps {
            value = match step {
                Step::Call(i) => {
                    let Some(conv) = self.convs.get(*i) else { return Err(Miss::None) };
                    value = value.cast(conv.def.from, env.arena).ok_or(Miss::None)?;
                    (conv.def.eval)(env, value, &conv.args)?
                }
                Step::Sums(chain) => {
                    let start = value.int().ok_or(Miss::None)?;
                    Value::Int(arith::run(env, start, chain).ok_or(Miss::None)?)
                }
            };
        }
        Ok(value)
    }

    /// Takes every sample that the fetch has (all values of a header) until `visit` returns `true`.
    /// `Ok(true)`: it did; `Err(Later)`: it did not, but more data may change that.
    ///
    /// # Errors
    /// There was no value at all, or none yet.
    pub fn any<'a>(&'a self, env: &Env<'a>, mut visit: impl FnMut(Value<'a>) -> bool) -> Result<bool, Miss> {
        let Some(each) = self.fetch.def.each else {
            return Ok(visit(self.eval(env)?));
        };
        let (mut seen, mut hit) = (false, false);
        let end = each(env, &self.fetch.args, &mut |value| {
            if let Ok(v) = self.convert(env, value) {
                seen = true;
                hit = visit(v);
            }
            hit
        });
        match end {
            _ if hit => Ok(true),
            Err(Miss::Later) => Err(Miss::Later),
            _ if seen => Ok(false),
            _ => Err(self.missed(env, Miss::None)),
        }
    }

    /// The result as text in a buffer of the caller; nothing is appended when there is none.
    pub fn append_text(&self, env: &Env<'_>, out: &mut Vec<u8>) -> Option<()> {
        self.eval(env).ok()?.append_text(out);
        Some(())
    }

    /// The result as a value that can be kept.
    pub fn eval_owned(&self, env: &Env<'_>) -> Option<Owned> {
        Some(self.eval(env).ok()?.to_owned_value())
    }
}

/// Joins neighbouring operations on integers.
fn steps(convs: &[Conv]) -> Box<[Step]> {
    let mut steps = Vec::new();
    let mut chain = Chain::default();
    for (i, conv) in convs.iter().enumerate() {
        if conv.def.arith.is_some_and(|op| chain.push(op, &conv.args)) {
            continue;
        }
        if !chain.is_empty() {
            steps.push(Step::Sums(std::mem::take(&mut chain).closed()));
        }
        steps.push(Step::Call(i));
    }
    if !chain.is_empty() {
        steps.push(Step::Sums(chain.closed()));
    }
    steps.into()
}
