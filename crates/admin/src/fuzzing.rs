//! Entries for fuzzers: any bytes are what a file says of figures, and whatever comes of it comes without a
//! panic.

use std::sync::Arc;

use engine::Shared;
use lang::Registry;
use model::World;
use program::Program;
use syntax::{Environment, Grammar, PlainBuild, SECTION_WORDS, Source};

use crate::{preload, shm};

/// Objects of all kinds.
const OBJECTS: &str = "defaults
 mode http
 timeout connect 1s
 timeout client 1s
 timeout server 1s
 option socket-stats
frontend f
 guid f
 bind 127.0.0.1:1 guid-prefix l
backend b
 guid b
 server s 127.0.0.1:80 guid s check observe layer7
listen x
 mode tcp
 guid x
 bind 127.0.0.1:2
 server s 127.0.0.1:80
";

/// The objects, as they begin.
pub(crate) fn objects() -> Shared {
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    let source = Source::new("fuzz.cfg", OBJECTS.as_bytes().to_vec());
    let reading = syntax::read(vec![source], Environment::new(), grammar);
    let options = compile::Options::default();
    let outcome = compile::compile(reading, &Registry::standard(), Arc::new(World::new(2)), &options);
    let mut program: Program = outcome.program.expect("this configuration is right");
    program.adopt();
    Shared::new(Arc::new(program), rt::precise(), rt::wall())
}

thread_local! {
    static SHARED: Shared = objects();
}

/// The first byte chooses the file: of server states, of `stats-file`, of `shm-stats-file`.
pub fn states(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 4 {
        0 => compile::fuzzing::states(rest),
        1 => SHARED.with(|shared| {
            let found = preload::parse(&String::from_utf8_lossy(rest), "figures", &shared.program);
            found.begin(shared);
        }),
        how => SHARED.with(|shared| shm::fuzz(rest, how == 3, shared)),
    }
}
