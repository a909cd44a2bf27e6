//! From the text of a configuration to what a worker runs.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use engine::Shared;
use lang::Registry;
use model::World;
use program::Program;
use rt::Addr;
use syntax::{Environment, Grammar, PlainBuild, Source};

/// A configuration, compiled for one world: its live state is new.
pub struct Setup {
    /// The program.
    pub program: Arc<Program>,
    /// An old process leaves its place to this one.
    pub takes_over: bool,
}

/// The address `text`.
pub fn addr(text: &str) -> Addr {
    Addr::Inet(text.parse::<SocketAddr>().expect("an address and a port"))
}

/// What stands before every configuration: one worker, and the log of [`crate::LOG`].
fn preamble() -> String {
    format!(
        "global\n  nbthread 1\n  log {} local0\ndefaults\n  mode http\n  log global\n  log-format \"{}\"\n  \
         timeout connect 5s\n  balance roundrobin\n  timeout client 20s\n  timeout server 20s\n",
        crate::LOG,
        crate::log::FORMAT
    )
}

/// Compiles `config`, as [`Setup::new`], for a world that may be alive; nobody adopts it.
///
/// # Errors
/// What is wrong with it.
pub fn judge(config: &str, world: &Arc<World>) -> Result<Program, String> {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    judge_with(config, REGISTRY.get_or_init(Registry::standard), world)
}

/// Compiles `config`, as [`Setup::new`], to take the place of a program that runs.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn judge_after(config: &str, before: &Program) -> Result<Program, String> {
    let options = compile::Options { fd_limit: 1 << 20, ..Default::default() };
    done(compile::compile_after(reading(config), &Registry::standard(), before, &options))
}

/// As [`judge`], with these words of the rule language.
fn judge_with(config: &str, registry: &Registry, world: &Arc<World>) -> Result<Program, String> {
    let options = compile::Options { fd_limit: 1 << 20, ..Default::default() };
    done(compile::compile(reading(config), registry, world.clone(), &options))
}

fn reading(config: &str) -> syntax::Reading {
    let text = preamble() + config + "\n";
    let source = Source::new("world.cfg", text.into_bytes());
    let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &PlainBuild };
    syntax::read(vec![source], Environment::new(), grammar)
}

fn done(outcome: compile::Outcome) -> Result<Program, String> {
    let texts = || outcome.diagnostics.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join("\n");
    outcome.program.ok_or_else(texts)
}

impl Setup {
    /// Compiles `config`, which comes behind a `defaults` section of the harness and may go on in it.
    ///
    /// # Panics
    /// If it has errors.
    pub fn new(config: &str) -> Setup {
        Setup::read(config)
            .unwrap_or_else(|complaints| panic!("the configuration is wrong: {complaints}\n{config}"))
    }

    /// Compiles `config`, as [`Setup::new`], for two threads: each writes figures of its own.
    pub(crate) fn for_two(config: &str) -> Setup {
        let program = judge(config, &Arc::new(World::new(2)));
        Setup::of(program.unwrap_or_else(|why| panic!("the configuration is wrong: {why}\n{config}")))
    }

    /// Compiles `config`, as [`Setup::new`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(config: &str) -> Result<Setup, String> {
        judge(config, &Arc::new(World::new(1))).map(Setup::of)
    }

    /// Compiles `config`, as [`Setup::new`], with words that `extend` adds to the rule language.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn extended(config: &str, extend: impl FnOnce(&mut Registry)) -> Result<Setup, String> {
        let mut registry = Registry::standard();
        extend(&mut registry);
        judge_with(config, &registry, &Arc::new(World::new(1))).map(Setup::of)
    }

    /// The same as the successor of an old process.
    pub fn taking_over(mut self) -> Setup {
        self.takes_over = true;
        self
    }

    fn of(mut program: Program) -> Setup {
        program.adopt();
        Setup { program: Arc::new(program), takes_over: false }
    }

    /// Makes it ready to run, as of now.
    pub(crate) fn share(self) -> Arc<Shared> {
        Arc::new(Shared::new(self.program, rt::precise(), rt::wall()))
    }
}
