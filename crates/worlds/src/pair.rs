//! Two threads of one process: what they share is shared for real, and each has a world of its own, with a
//! network, clients and servers. Neither clock runs ahead of the other by more than a step.
//!
//! Which thread comes first to what they share is not a function of the seed: a failure may need several
//! replays.

use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::Shared;

use crate::explore::{Climate, in_each, play_main};
use crate::setup::Setup;
use crate::stage::Stage;

/// How far one clock may be ahead.
const STEP: Duration = Duration::from_millis(20);

/// What two threads know of each other.
#[derive(Default)]
struct Pair {
    shared: OnceLock<Arc<Shared>>,
    /// The virtual time of each, in steps; the highest number once it has left.
    steps: [AtomicU64; 2],
    /// How often each has come to where they meet.
    met: [AtomicU64; 2],
}

/// Leaves the pair however the thread ends, so that the other one does not wait for it.
struct Leaving<'p>(&'p Pair, usize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.steps[self.1].store(u64::MAX, SeqCst);
        self.0.met[self.1].store(u64::MAX, SeqCst);
    }
}

impl Pair {
    /// The configuration at work, once the first thread has it.
    fn shared(&self) -> Arc<Shared> {
        loop {
            if let Some(shared) = self.shared.get() {
                return shared.clone();
            }
            assert!(self.steps[0].load(SeqCst) < u64::MAX, "the other thread has failed");
            std::thread::yield_now();
        }
    }

    /// Goes with the other clock, for ever.
    async fn keep_pace(self: Arc<Pair>, index: usize) {
        for step in 1.. {
            rt::sleep(STEP).await;
            self.steps[index].store(step, SeqCst);
            while self.steps[1 - index].load(SeqCst).saturating_add(1) < step {
                std::thread::yield_now();
            }
        }
    }

    /// Waits until the other one has come as far.
    async fn meet(&self, index: usize) {
        let times = self.met[index].fetch_add(1, SeqCst) + 1;
        while self.met[1 - index].load(SeqCst) < times {
            rt::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Plays `scene` on two threads at once with each seed, in the climates in turn: the configuration needs
/// `nbthread 2` in a `global` section at its end, and `http-reuse never`, since connections can't go from one
/// world to another. Once both have nothing left to do `rest` looks at each. What must hold at the end of
/// every scene is checked for it, but for the log.
///
/// # Panics
/// When something is wrong; the seed is printed.
pub fn explore_pairs<F>(
    config: &str,
    climates: &[Climate],
    scene: impl Fn(Rc<Stage>) -> F + Copy + Send + Sync + 'static,
    rest: fn(&Stage),
) where
    F: Future<Output = ()> + 'static,
{
    in_each(climates, |seed, climate| {
        let (pair, setup) = (Arc::new(Pair::default()), Setup::for_two(config));
        std::thread::scope(|scope| {
            let other = pair.clone();
            scope.spawn(move || side(&other, 1, seed, climate, None, scene, rest));
            side(&pair, 0, seed, climate, Some(setup), scene, rest);
        });
    });
}

fn side<F>(
    pair: &Arc<Pair>,
    index: usize,
    seed: u64,
    climate: Climate,
    setup: Option<Setup>,
    scene: impl Fn(Rc<Stage>) -> F + 'static,
    rest: fn(&Stage),
) where
    F: Future<Output = ()> + 'static,
{
    let _leaving = Leaving(pair, index);
    let pair = pair.clone();
    // Both see other networks.
    play_main(2 * seed + index as u64, climate, async move {
        let shared = match setup {
            Some(setup) => pair.shared.get_or_init(|| setup.share()).clone(),
            None => pair.shared(),
        };
        let pace = rt::spawn(pair.clone().keep_pace(index));
        let stage = Stage::enter(shared, climate, index, false);
        scene(stage.clone()).await;
        pair.meet(index).await;
        stage.close_with(|| pair.meet(index), rest).await;
        rt::cancel(pace);
    });
}
