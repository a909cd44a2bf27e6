//! Counters that many threads raise and one reader sums.
//!
//! A counter shared by all threads bounces its cache line on every request. So each worker owns one
//! copy of a block of counters ([`Sharded`]), writes it without any read-modify-write instruction
//! (only the owner writes), and whoever wants the figure adds the copies up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One figure, written by a single thread, readable by all.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owning worker may call it: two writers would lose counts.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Adds one; see [`Counter::add`].
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Takes one away, of a gauge that counts what begins and ends on one worker.
    #[inline]
    pub fn dec(&self) {
        self.add(u64::MAX);
    }

    /// Keeps the greater of the stored figure and `n` (maxima such as `smax`).
    #[inline]
    pub fn max(&self, n: u64) {
        if n > self.0.load(Relaxed) {
            self.0.store(n, Relaxed);
        }
    }

    /// The figure as it stands.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Sets the figure (`clear counters`).
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }
}

/// Sets figures to zero (`clear counters`).
pub(crate) fn zero<'c>(counters: impl IntoIterator<Item = &'c Counter>) {
    counters.into_iter().for_each(|counter| counter.set(0));
}

/// Keeps two workers' blocks off one cache line (128 bytes: adjacent-line prefetch).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// One copy of `T` for each worker, and perhaps one of what other processes have counted.
#[derive(Debug)]
pub struct Sharded<T>(Box<[Padded<T>]>, OnceLock<Box<T>>);

impl<T: Default> Sharded<T> {
    /// Copies for `workers` workers, at least one.
    pub fn new(workers: usize) -> Sharded<T> {
        Sharded((0..workers.max(1)).map(|_| Padded::default()).collect(), OnceLock::new())
    }

    /// The copy of other processes (`shm-stats-file`), which is only ever set.
    pub fn others(&self) -> &T {
        self.1.get_or_init(Box::default)
    }
}

impl<T> Sharded<T> {
    /// The copy of one worker; workers beyond the number given at the start share the last one.
    #[inline]
    pub fn of(&self, worker: usize) -> &T {
        &self.0[worker.min(self.0.len() - 1)].0
    }

    /// All copies, for summing.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|p| &p.0).chain(self.1.get().map(|others| &**others))
    }

    /// The sum of one figure over all copies.
    pub fn sum(&self, figure: impl Fn(&T) -> &Counter) -> u64 {
        self.iter().map(|t| figure(t).get()).fold(0, u64::wrapping_add)
    }

    /// The greatest of one figure over all copies.
    pub fn greatest(&self, figure: impl Fn(&T) -> &Counter) -> u64 {
        self.iter().map(|t| figure(t).get()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_adds_the_copies_of_all_workers() {
        let s: Sharded<Counter> = Sharded::new(3);
        s.of(0).add(2);
        s.of(2).add(5);
        assert_eq!(s.sum(|c| c), 7);
        assert_eq!(s.greatest(|c| c), 5);
    }

    #[test]
    fn what_others_counted_is_in_the_sum() {
        let s: Sharded<Counter> = Sharded::new(2);
        s.of(1).add(2);
        s.others().set(40);
        s.others().set(30);
        assert_eq!(s.sum(|c| c), 32);
        s.iter().for_each(|c| c.set(0));
        assert_eq!(s.sum(|c| c), 0);
    }

    #[test]
    fn a_worker_out_of_range_still_counts() {
        let s: Sharded<Counter> = Sharded::new(1);
        s.of(9).inc();
        assert_eq!(s.sum(|c| c), 1);
    }
}
