//! An entry for fuzzers: any bytes are a configuration, and whatever comes of it, it comes without a panic.

use std::sync::Arc;

use lang::Registry;
use model::World;
use syntax::{Environment, Grammar, PlainBuild, SECTION_WORDS, Source};

use crate::{Options, compile, workers};

/// Compiles any bytes, as one file of configuration. Host names are looked up and files are opened as the
/// configuration says: run it where that is harmless.
pub fn config(data: &[u8]) {
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    let mut environment = Environment::new();
    for (name, value) in crate::logformats::ENVIRONMENT {
        environment.set(name, value);
    }
    let reading = syntax::read(vec![Source::new("fuzz.cfg", data.to_vec())], environment, grammar);
    let options = Options::default();
    let world = Arc::new(World::new(workers(&reading, &options)));
    let _ = compile(reading, &Registry::standard(), world, &options);
}
