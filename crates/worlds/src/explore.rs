//! Playing a scene over seeds and climates.

use std::future::Future;
use std::rc::Rc;

use rt::sim::{Faults, Holdings, Options, World};

use crate::setup::Setup;
use crate::stage::{Stage, log_link};

/// How the network of a world is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Climate {
    /// Fast and whole.
    Quiet,
    /// Nothing is lost, everything is cut and delayed.
    Choppy,
    /// Anything breaks at any time.
    Hostile,
}

/// Only where times are as they should be.
pub const QUIET: &[Climate] = &[Climate::Quiet];
/// Where nothing is lost.
pub const CALM: &[Climate] = &[Climate::Quiet, Climate::Choppy];
/// Everywhere.
pub const ALL: &[Climate] = &[Climate::Quiet, Climate::Choppy, Climate::Hostile];

impl Climate {
    /// What may go wrong on its links.
    pub fn faults(self) -> Faults {
        match self {
            Climate::Quiet => Faults::default(),
            Climate::Choppy => Faults::choppy(),
            Climate::Hostile => Faults::hostile(),
        }
    }

    /// Whether times are as they should be.
    pub fn is_quiet(self) -> bool {
        self == Climate::Quiet
    }

    /// Whether anything may break.
    pub fn is_hostile(self) -> bool {
        self == Climate::Hostile
    }
}

/// Seeds for each scene unless `WORLDS_SEEDS` says otherwise.
const DEFAULT_SEEDS: u64 = 6;

/// The seeds to play.
pub fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("WORLDS_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("WORLDS_SEEDS").unwrap_or(DEFAULT_SEEDS)).collect(),
    }
}

/// Says which world it was when a scene panics.
struct Where<'n> {
    name: &'n str,
    seed: u64,
    climate: Climate,
}

impl Drop for Where<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Where { name, seed, climate } = self;
            eprintln!("{name}, {climate:?}. Replay: WORLDS_SEED={seed} cargo test -p worlds {name}");
        }
    }
}

/// Plays `scene` with each seed, in the climates in turn. What must hold at the end of every scene is checked
/// for it.
///
/// # Panics
/// When something is wrong; the seed is printed.
pub fn explore<F>(config: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    explore_with(|| Setup::new(config), climates, scene);
}

/// As [`explore`], with what `setup` makes anew for each world.
///
/// # Panics
/// As [`explore`].
pub fn explore_with<F>(
    setup: impl Fn() -> Setup,
    climates: &[Climate],
    scene: impl Fn(Rc<Stage>) -> F + Copy + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    in_each(climates, |seed, climate| {
        play_with(seed, climate, setup(), scene);
    });
}

/// Plays with each seed, in the climates in turn; whoever fails is told where.
pub(crate) fn in_each(climates: &[Climate], mut play: impl FnMut(u64, Climate)) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a scene");
    for seed in seeds() {
        let climate = climates[(seed % climates.len() as u64) as usize];
        let _guard = Where { name, seed, climate };
        play(seed, climate);
    }
}

/// Plays one world and returns its trace.
///
/// # Panics
/// As [`explore`].
pub fn play<F>(seed: u64, climate: Climate, config: &str, scene: impl Fn(Rc<Stage>) -> F + 'static) -> u64
where
    F: Future<Output = ()> + 'static,
{
    play_with(seed, climate, Setup::new(config), scene)
}

fn play_with<F>(seed: u64, climate: Climate, setup: Setup, scene: impl Fn(Rc<Stage>) -> F + 'static) -> u64
where
    F: Future<Output = ()> + 'static,
{
    play_main(seed, climate, async move {
        let stage = Stage::open(setup, climate);
        scene(stage.clone()).await;
        stage.close().await;
    })
}

/// Runs a world to its end and returns its trace.
pub(crate) fn play_main(seed: u64, climate: Climate, main: impl Future<Output = ()> + 'static) -> u64 {
    let options = Options {
        faults: climate.faults(),
        links: vec![log_link()],
        verbose: std::env::var_os("WORLDS_VERBOSE").is_some(),
        max_steps: 5_000_000,
        ..Options::default()
    };
    let report = World::new(seed, options).run(main).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.lost, Holdings::default(), "leaks");
    report.trace
}
