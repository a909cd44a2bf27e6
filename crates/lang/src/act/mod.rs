//! Actions by family.
//!
//! An entry's parser takes the words of its arguments and returns what runs: a [`Step`], which is a closure.
//! Bytes that an action puts together stand in a buffer of the thread that is used again
//! ([`with_bytes`]), so that running a rule allocates nothing.

pub mod bandwidth;
pub(crate) mod cache;
mod capture;
mod fields;
mod maps;
mod mirror;
mod normalize;
mod packed;
mod redirect;
mod refused;
mod reply;
mod resolve;
mod settings;
mod start_line;
mod stick;
mod timing;
mod variables;
mod verdict;

pub use fields::expand;
pub use start_line::{Part, put_part};

use std::cell::RefCell;

use crate::action::{Action, Exec, Flow};
use crate::expr::Expr;
use crate::logfmt::{LogFormat, Use};
use crate::names::Names;
use crate::registry::{ActionDef, ActionParse, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

/// All tables of actions.
pub const TABLES: &[&[ActionDef]] = &[
    capture::ACTIONS,
    bandwidth::ACTIONS,
    cache::ACTIONS,
    fields::ACTIONS,
    maps::ACTIONS,
    mirror::ACTIONS,
    normalize::ACTIONS,
    packed::ACTIONS,
    redirect::ACTIONS,
    settings::ACTIONS,
    start_line::ACTIONS,
    timing::ACTIONS,
    variables::ACTIONS,
    verdict::ACTIONS,
    refused::ACTIONS,
    resolve::ACTIONS,
    stick::ACTIONS,
];

pub(crate) type Parsed = Result<Box<dyn Action>, Fault>;

/// An entry of a table.
pub(crate) const fn def(
    name: &'static str,
    sets: Sets,
    parse: ActionParse,
    doc: &'static str,
    example: &'static str,
) -> ActionDef {
    ActionDef { name, sets, parse, doc, example }
}

/// An action made of a function.
struct Step<F> {
    end: bool,
    run: F,
}

impl<F: Fn(&mut Exec<'_>) -> Flow + Send + Sync> Action for Step<F> {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        (self.run)(exec)
    }

    fn is_final(&self) -> bool {
        self.end
    }
}

/// An action after which the next rule runs.
pub(crate) fn step(run: impl Fn(&mut Exec<'_>) -> Flow + Send + Sync + 'static) -> Parsed {
    Ok(Box::new(Step { end: false, run }))
}

/// An action that ends its rule set.
fn ending(run: impl Fn(&mut Exec<'_>) -> Flow + Send + Sync + 'static) -> Parsed {
    Ok(Box::new(Step { end: true, run }))
}

/// The words of a rule as a parser sees them.
pub(crate) struct Reading<'p, 'w> {
    pub(crate) words: &'p mut Words<'w>,
    pub(crate) at: &'p ActionPlace,
    pub(crate) reg: &'p Registry,
    pub(crate) names: &'p mut dyn Names,
}

impl Reading<'_, '_> {
    fn is_over(&self) -> bool {
        self.words.peek().is_none_or(|w| w == b"if" || w == b"unless")
    }

    /// The next argument; a word that begins the condition is none.
    pub(crate) fn word(&mut self, missing: &str) -> Result<String, Fault> {
        if self.words.is_empty() {
            return Err(Fault::new(missing).at(self.words.position().saturating_sub(1)));
        }
        self.words.take().map(|w| String::from_utf8_lossy(w).into_owned()).ok_or_else(|| Fault::new(missing))
    }

    fn format(&mut self, missing: &str) -> Result<LogFormat, Fault> {
        let at = self.words.position();
        let word = self.words.take().ok_or_else(|| Fault::new(missing).at(at.saturating_sub(1)))?;
        LogFormat::parse(word, self.at.place, self.reg, self.names).map_err(|f| f.at(at))
    }

    pub(crate) fn expr(&mut self) -> Result<Expr, Fault> {
        if self.is_over() && self.words.is_empty() {
            return Err(Fault::new("missing fetch method").at(self.words.position().saturating_sub(1)));
        }
        Expr::parse(self.words, self.at.place, self.reg, self.names)
    }
}

/// Buffers that a thread keeps: as many as uses nest.
const KEPT: usize = 4;

thread_local! {
    static BYTES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with an empty buffer that keeps its memory from one use to the next.
fn with_bytes<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut bytes = BYTES.with_borrow_mut(Vec::pop).unwrap_or_default();
    bytes.clear();
    let result = work(&mut bytes);
    BYTES.with_borrow_mut(|kept| {
        if kept.len() < KEPT {
            kept.push(bytes);
        }
    });
    result
}

/// Evaluates a format into a recycled buffer and hands it on.
fn with_format<R>(
    exec: &mut Exec<'_>,
    format: &LogFormat,
    how: Use,
    work: impl FnOnce(&mut Exec<'_>, &[u8]) -> R,
) -> R {
    with_bytes(|bytes| {
        format.append(&exec.env(), how, bytes);
        work(exec, bytes)
    })
}

/// What follows an edit of a head: on success the next rule; when there was no room an internal error, or
/// with `strict-mode off` the next rule, but counted.
fn rewritten<T>(exec: &mut Exec<'_>, result: Result<T, wire::head::NoRoom>) -> Flow {
    if result.is_ok() {
        return Flow::Next;
    }
    let worker = exec.live.worker();
    exec.live.frontend().front.counters.of(worker).failed_rewrites.inc();
    if let Some(listener) = exec.live.listener() {
        listener.counters.of(worker).failed_rewrites.inc();
    }
    if let Some(backend) = exec.live.backend() {
        backend.back.counters.of(worker).failed_rewrites.inc();
    }
    if let Some(server) = exec.live.server() {
        server.counters.of(worker).failed_rewrites.inc();
    }
    if exec.txn.decisions.lenient_rewrites { Flow::Next } else { Flow::Error }
}
