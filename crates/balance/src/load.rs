//! Requests on each server.
//!
//! These counts outlive every schedule: a request that began under one is released under another. Servers may
//! be added while others are counted on, so the counts stand in chunks that never move once made, each twice
//! the size of the one before (most backends have few servers); finding one costs a leading-zero count. Each
//! has a cache line of its own, because two threads that serve two servers should not disturb each other.

use crate::sync::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// The first chunk holds two to this.
const FIRST_BITS: u32 = 1;
const CHUNKS: usize = 25;

/// The load of one server, on its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell(AtomicU32);

/// The number of requests assigned to each server, in its queue or being served.
#[derive(Debug, Default)]
pub struct Loads {
    chunks: [OnceLock<Box<[Cell]>>; CHUNKS],
}

impl Loads {
    /// No counts yet; [`Loads::grow`] makes them.
    pub fn new() -> Loads {
        Loads::default()
    }

    /// Makes sure that servers below `count` have counts; those that exist stay.
    pub fn grow(&self, count: usize) {
        if count == 0 {
            return;
        }
        let (last, _) = place(count - 1);
        for (number, chunk) in self.chunks.iter().enumerate().take(last + 1) {
            chunk.get_or_init(|| (0..1 << (FIRST_BITS as usize + number)).map(|_| Cell::default()).collect());
        }
    }

    /// The requests on `server`; 0 for one that isn't known.
    pub fn get(&self, server: usize) -> u32 {
        self.cell(server).map_or(0, |cell| cell.load(Ordering::SeqCst))
    }

    /// Counts one request more; gives the number before.
    pub fn add(&self, server: usize) -> u32 {
        self.cell(server).map_or(0, |cell| cell.fetch_add(1, Ordering::SeqCst))
    }

    /// Counts one request more if there are `expected` now, and says whether it did.
    pub fn add_if(&self, server: usize, expected: u32) -> bool {
        let add = |cell: &AtomicU32| {
            cell.compare_exchange(expected, expected + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        self.cell(server).is_some_and(add)
    }

    /// Counts one request less; gives the number before. A count never falls below 0.
    pub fn sub(&self, server: usize) -> u32 {
        let Some(cell) = self.cell(server) else { return 0 };
        let before = cell.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "server {server} released more often than acquired");
        before
    }

    fn cell(&self, server: usize) -> Option<&AtomicU32> {
        let (chunk, offset) = place(server);
        self.chunks.get(chunk)?.get()?.get(offset).map(|cell| &cell.0)
    }
}

// Chunk k holds the indices from 2 * (2^k - 1) on, 2 * 2^k of them.
fn place(index: usize) -> (usize, usize) {
    let shifted = index + (1 << FIRST_BITS);
    let chunk = shifted.ilog2() - FIRST_BITS;
    (chunk as usize, shifted - (1 << (chunk + FIRST_BITS)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_its_own_place() {
        let mut expected = (0, 0);
        for index in 0..5000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == 2 << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn counts_survive_growth() {
        let loads = Loads::new();
        loads.grow(1);
        loads.add(0);
        loads.grow(1000);
        loads.add(999);
        assert_eq!((loads.get(0), loads.get(999), loads.get(5_000_000)), (1, 1, 0));
        assert!(loads.add_if(0, 1));
        assert!(!loads.add_if(0, 1));
        assert_eq!(loads.sub(0), 2);
    }
}
