//! Values that entries got since their segment was made: one slot each, swapped in place, so that a change
//! costs the same in a map of ten and of ten million, and no reader waits for it.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

/// Entries that share one lazily made block of slots.
const BLOCK: usize = 256;

/// A value given at run time.
pub(crate) type NewValue = Arc<Box<[u8]>>;

type Block = Box<[ArcSwapOption<Box<[u8]>>]>;

/// Values by entry. Most segments never get one and hold nothing.
#[derive(Debug)]
pub(crate) struct Changed {
    len: u32,
    blocks: OnceLock<Box<[OnceLock<Block>]>>,
}

impl Changed {
    /// For `len` entries.
    pub(crate) fn of(len: u32) -> Changed {
        Changed { len, blocks: OnceLock::new() }
    }

    /// The value that entry `n` was given, if any.
    pub(crate) fn get(&self, n: u32) -> Option<NewValue> {
        let n = n as usize;
        self.blocks.get()?.get(n / BLOCK)?.get()?.get(n % BLOCK)?.load_full()
    }

    /// Gives entry `n` a value.
    pub(crate) fn set(&self, n: u32, value: NewValue) {
        let n = n as usize;
        let all = || (0..(self.len as usize).div_ceil(BLOCK)).map(|_| OnceLock::new()).collect();
        let Some(block) = self.blocks.get_or_init(all).get(n / BLOCK) else { return };
        let block = block.get_or_init(|| (0..BLOCK).map(|_| ArcSwapOption::empty()).collect());
        if let Some(slot) = block.get(n % BLOCK) {
            slot.store(Some(value));
        }
    }
}
