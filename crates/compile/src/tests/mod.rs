//! Configurations as users write them, against what the oracle says and does.

mod bad;
mod good;
mod keys;
mod tables;

use std::sync::Arc;

use lang::Registry;
use model::World;
use syntax::{Environment, Grammar, Level, PlainBuild, SECTION_WORDS, Source};

use crate::{Options, Outcome, compile, workers};

/// Compiles a text as the file `t.cfg`, in a world of its own.
pub(crate) fn run(text: &str) -> Outcome {
    run_in(text, Arc::new(World::new(2)))
}

/// Compiles a text as the file `t.cfg`.
pub(crate) fn run_in(text: &str, world: Arc<World>) -> Outcome {
    let mut environment = Environment::new();
    for (name, value) in crate::logformats::ENVIRONMENT {
        environment.set(name, value);
    }
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    let reading = syntax::read(vec![Source::new("t.cfg", text.as_bytes().to_vec())], environment, grammar);
    let options = Options { fd_limit: 20_000, processors: 2, only_checked: true, ..Options::default() };
    let world = if workers(&reading, &options) == world.workers {
        world
    } else {
        Arc::new(World::new(workers(&reading, &options)))
    };
    compile(reading, &Registry::standard(), world, &options)
}

/// The complaints of a level at or above warnings, as text.
pub(crate) fn complaints(outcome: &Outcome) -> Vec<String> {
    let loud = outcome.diagnostics.iter().filter(|d| d.level >= Level::Warning);
    loud.map(|d| d.text.clone()).collect()
}

/// The text as the file `t.cfg`, to render complaints with.
pub(crate) fn sources(text: &str) -> syntax::Sources {
    let mut sources = syntax::Sources::default();
    sources.add(Source::new("t.cfg", text.as_bytes().to_vec()));
    sources
}
