//! An entry for fuzzers: any bytes are a configuration, and whatever comes of it, it comes without a panic.

use std::sync::Arc;

use lang::Registry;
use model::World;
use syntax::{Environment, Facts, Grammar, SECTION_WORDS, Source};

use crate::{Options, compile, workers};

/// Answers nothing.
struct Nobody;

impl Facts for Nobody {
    fn version(&self) -> &str {
        "3.5"
    }
    fn feature(&self, _: &str) -> bool {
        false
    }
    fn enabled(&self, _: &str) -> Option<bool> {
        None
    }
    fn openssl_version(&self) -> Option<&str> {
        None
    }
    fn ssl_library(&self) -> &str {
        ""
    }
    fn awslc_api(&self) -> Option<u64> {
        None
    }
    fn fips_mode(&self) -> bool {
        false
    }
}

/// Compiles any bytes, as one file of configuration. Host names are looked up and files are opened as the
/// configuration says: run it where that is harmless.
pub fn config(data: &[u8]) {
    let grammar = Grammar { sections: SECTION_WORDS, facts: &Nobody };
    let mut environment = Environment::new();
    for (name, value) in crate::logformats::ENVIRONMENT {
        environment.set(name, value);
    }
    let reading = syntax::read(vec![Source::new("fuzz.cfg", data.to_vec())], environment, grammar);
    let options = Options::default();
    let world = Arc::new(World::new(workers(&reading, &options)));
    let _ = compile(reading, &Registry::standard(), world, &options);
}
