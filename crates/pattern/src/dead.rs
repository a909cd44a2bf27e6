//! Which entries of a segment were deleted: one bit each, set in place, so that a deletion is seen by all
//! threads at once and costs the same in a list of ten and of ten million. A bit is never taken back.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Entries that share one lazily made block of bits.
const BLOCK: usize = 1 << 16;

type Block = [AtomicU64; BLOCK / 64];

/// Deleted entries.
#[derive(Debug)]
pub(crate) struct Dead {
    count: AtomicU32,
    len: u32,
    blocks: OnceLock<Box<[OnceLock<Box<Block>>]>>,
}

impl Dead {
    /// For `len` entries, all alive.
    pub(crate) fn of(len: u32) -> Dead {
        Dead { count: AtomicU32::new(0), len, blocks: OnceLock::new() }
    }

    /// Whether entry `n` is still there.
    pub(crate) fn spares(&self, n: u32) -> bool {
        if self.is_empty() {
            return true;
        }
        let n = n as usize;
        let block = self.blocks.get().and_then(|all| all.get(n / BLOCK)).and_then(OnceLock::get);
        let word = block.and_then(|b| b.get(n % BLOCK / 64));
        word.is_none_or(|w| w.load(Ordering::Acquire) >> (n % 64) & 1 == 0)
    }

    /// Deletes entry `n`; whether it was there.
    pub(crate) fn kill(&self, n: u32) -> bool {
        let n = n as usize;
        let all = || (0..(self.len as usize).div_ceil(BLOCK)).map(|_| OnceLock::new()).collect();
        let Some(block) = self.blocks.get_or_init(all).get(n / BLOCK) else { return false };
        let block = block.get_or_init(|| Box::new([const { AtomicU64::new(0) }; BLOCK / 64]));
        let bit = 1u64 << (n % 64);
        let Some(word) = block.get(n % BLOCK / 64) else { return false };
        let fresh = word.fetch_or(bit, Ordering::AcqRel) & bit == 0;
        self.count.fetch_add(u32::from(fresh), Ordering::AcqRel);
        fresh
    }

    /// How many were deleted.
    pub(crate) fn len(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Whether none was.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
