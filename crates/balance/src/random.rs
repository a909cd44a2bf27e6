//! `random(n)`: draw n servers by weight, take the least loaded.
//!
//! HAProxy draws from its consistent ring, which honours weights only roughly. Here a draw is exact: Walker's
//! alias method keeps for each server a threshold and a stand-in, and one random number is enough to choose a
//! column and a side of it, whatever the number of servers. Chance comes in as a number, so a draw replays.
//!
//! In a tie the manual compares the request rates of the last second, to spread requests when nothing is
//! loaded. This crate knows no clock; it compares, in the same spirit, how often each was drawn into service
//! since the farm last changed, by weight.

use crate::load::Loads;
use crate::sync::{AtomicU32, Ordering};
use base::rand::{scale, split_mix};
use std::sync::OnceLock;

/// The most draws that have a use; beyond, leastconn is better and cheaper.
pub const DRAWS_MAX: u32 = 64;

const COUNTS: usize = 16;

/// Weighted draws over a farm.
#[derive(Debug)]
pub struct Draw {
    columns: Box<[Column]>,
    /// How often each worker took each column. A worker that is even by itself is even with the others.
    picks: Box<[OnceLock<Box<[AtomicU32]>>]>,
}

#[derive(Debug)]
struct Column {
    server: u32,
    weight: u32,
    /// Chance, in 1/2^32, that this column stands for its own server and not for `other`.
    own: u64,
    other: u32,
}

impl Draw {
    /// Draws over servers given by index and weight, in proportion to their weights.
    pub fn new(farm: &[(u32, u32)]) -> Draw {
        let members: Vec<(u32, u32)> = farm.iter().copied().filter(|s| s.1 > 0).collect();
        let total: u128 = members.iter().map(|s| u128::from(s.1)).sum();
        let count = members.len() as u128;
        // Shares in units in which a full column is `total`.
        let mut shares: Vec<u128> = members.iter().map(|s| u128::from(s.1) * count).collect();
        let mut others: Vec<u32> = (0..members.len() as u32).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
            (0..members.len()).partition(|&i| shares[i] < total);
        while let (Some(&low), Some(&high)) = (poor.last(), rich.last()) {
            poor.pop();
            others[low] = high as u32;
            shares[high] -= total - shares[low];
            if shares[high] < total {
                rich.pop();
                poor.push(high);
            }
        }
        let column = |(i, &(server, weight)): (usize, &(u32, u32))| Column {
            server,
            weight,
            own: if others[i] as usize == i { 1 << 32 } else { ((shares[i] << 32) / total) as u64 },
            other: others[i],
        };
        Draw {
            columns: members.iter().enumerate().map(column).collect(),
            picks: (0..COUNTS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The least loaded of `draws` servers, none of them refused by `skip`. A refused draw goes on to the
    /// next server, so this finds one whenever there is one.
    pub fn pick(
        &self,
        chance: u64,
        draws: u32,
        loads: &Loads,
        skip: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let picks = self.picks();
        let busyness = |column: usize| {
            let Column { server, weight, .. } = self.columns[column];
            // Per weight, in 1/4096: requests now, then requests so far.
            let per_weight = |count: u32| u64::from(count) * 4096 / u64::from(weight);
            (per_weight(loads.get(server as usize)), per_weight(picks[column].load(Ordering::Relaxed)))
        };
        let mut state = chance;
        let mut best = self.draw(split_mix(&mut state), &skip)?;
        for _ in 1..draws.min(DRAWS_MAX) {
            let Some(next) = self.draw(split_mix(&mut state), &skip) else { break };
            if next != best && busyness(next) < busyness(best) {
                best = next;
            }
        }
        picks[best].store(picks[best].load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Some(self.columns[best].server as usize)
    }

    /// A number for a pick that comes without a random one: the first draws of a sequence that repeats with
    /// each new schedule.
    pub fn chance(&self) -> u64 {
        let picks = self.picks().iter().map(|count| u64::from(count.load(Ordering::Relaxed)));
        picks.fold(1, |sum, count| sum.wrapping_mul(31).wrapping_add(count))
    }

    fn draw(&self, chance: u64, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let count = self.columns.len();
        let column = scale(chance, count as u64) as usize;
        let drawn = self.columns.get(column)?;
        let side = u64::from(chance as u32); // the column took the high bits
        let from = if side < drawn.own { column } else { drawn.other as usize };
        let fits = |&column: &usize| !skip(self.columns[column].server as usize);
        (from..count).chain(0..from).find(fits)
    }

    fn picks(&self) -> &[AtomicU32] {
        let mine = &self.picks[base::worker::number() % COUNTS];
        mine.get_or_init(|| self.columns.iter().map(|_| AtomicU32::new(0)).collect())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use base::rand::Rng;

    fn shares(farm: &[(u32, u32)], draws: u32, skip: impl Fn(usize) -> bool) -> Vec<u32> {
        let (draw, loads, mut rng) = (Draw::new(farm), Loads::new(), Rng::new(1));
        let mut seen = vec![0; 8];
        for _ in 0..100_000 {
            seen[draw.pick(rng.next_u64(), draws, &loads, &skip).unwrap()] += 1;
        }
        seen
    }

    #[test]
    fn one_draw_follows_the_weights() {
        let seen = shares(&[(0, 10), (1, 20), (2, 30), (3, 0), (4, 40)], 1, |_| false);
        for (server, share) in [(0, 10_000), (1, 20_000), (2, 30_000), (3, 0), (4, 40_000)] {
            assert!(seen[server].abs_diff(share) < 700, "{seen:?}");
        }
    }

    #[test]
    fn idle_servers_share_evenly_with_two_draws() {
        let seen = shares(&[(0, 16), (1, 16), (2, 16), (3, 16)], 2, |_| false);
        assert!(seen[..4].iter().all(|&n| n.abs_diff(25_000) < 100), "{seen:?}");
    }

    #[test]
    fn the_refused_are_never_drawn() {
        let seen = shares(&[(0, 1), (1, 1), (2, 1)], 2, |s| s == 1);
        assert_eq!(seen[1], 0);
        let draw = Draw::new(&[(0, 1)]);
        assert_eq!(draw.pick(5, 2, &Loads::new(), |_| true), None);
        assert_eq!(Draw::new(&[]).pick(5, 2, &Loads::new(), |_| false), None);
    }

    #[test]
    fn the_less_loaded_of_two_wins() {
        let loads = Loads::new();
        loads.grow(2);
        loads.add(0);
        let draw = Draw::new(&[(0, 1), (1, 1)]);
        let mut rng = Rng::new(3);
        let picked = (0..1000).filter(|_| draw.pick(rng.next_u64(), 8, &loads, |_| false) == Some(1));
        assert!(picked.count() > 980);
    }
}
