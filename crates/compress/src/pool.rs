//! Packers at rest, of this worker: their memory is taken once, not for each message.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::Relaxed;

use model::compression::PROCESS;

use crate::packer::{Packer, Recipe};

/// Packers that rest at most, of each worker.
const MOST: usize = 64;

thread_local! {
    static RESTING: RefCell<Vec<Packer>> = const { RefCell::new(Vec::new()) };
}

/// A packer in use; it goes back to rest when it is dropped.
pub struct Lent(Option<Packer>);

/// A packer made like this; `None` if that would take more memory than `maxzlibmem` allows.
pub fn take(recipe: Recipe) -> Option<Lent> {
    let resting = RESTING.with_borrow_mut(|resting| {
        let at = resting.iter().rposition(|packer| packer.recipe() == recipe)?;
        Some(resting.swap_remove(at))
    });
    if let Some(packer) = resting {
        return Some(Lent(Some(packer)));
    }
    let (most, need) = (PROCESS.most_memory.load(Relaxed), recipe.memory());
    let used = PROCESS.memory.fetch_add(need, Relaxed);
    if most > 0 && need > 0 && used + need > most {
        PROCESS.memory.fetch_sub(need, Relaxed);
        // Those that rest and are made otherwise are in the way of the next.
        RESTING.with_borrow_mut(|resting| {
            resting.iter().for_each(forget);
            resting.clear();
        });
        return None;
    }
    let packer = Packer::new(recipe);
    if packer.is_none() {
        PROCESS.memory.fetch_sub(need, Relaxed);
    }
    packer.map(|packer| Lent(Some(packer)))
}

/// Its memory is no more.
fn forget(packer: &Packer) {
    PROCESS.memory.fetch_sub(packer.recipe().memory(), Relaxed);
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut packer) = self.0.take() else { return };
        let kept =
            packer.reset() && RESTING.try_with(|resting| resting.borrow().len() < MOST).unwrap_or(false);
        if !kept {
            forget(&packer);
            return;
        }
        let _ = RESTING.try_with(|resting| resting.borrow_mut().push(packer));
    }
}

impl Deref for Lent {
    type Target = Packer;

    fn deref(&self) -> &Packer {
        match &self.0 {
            Some(packer) => packer,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Packer {
        match &mut self.0 {
            Some(packer) => packer,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}
