//! The static map: `static-rr` walks it, map-based hashing looks its keys up in it.
//!
//! The map has one slot per unit of weight, dealt out so that the turns of each server are spread over the
//! whole length. HAProxy and Harrier must agree on it slot by slot, or keys would change servers when one
//! replaces the other; the rule is: every server's credit grows by its weight at each slot, the slot goes to
//! the first declared among those with the greatest floor((credit + total) / total), and costs the total.
//!
//! Walking all servers for each slot would take seconds for a thousand servers of weight 256. But a server's
//! floor rises by exactly one each time its weights add up to another total, and falls by one when it wins,
//! so it is enough to keep the servers sorted by it and to know when each rises next.

use crate::view::common_divisor;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The map from slots to servers.
#[derive(Debug)]
pub struct Map {
    slots: Box<[u32]>,
}

impl Map {
    /// The map of `farm` (index and weight, in order of declaration). `divisor` divides all weights of the
    /// backend: those who take no part now count too, so that the map does not change its scale with them.
    pub fn new(farm: &[(u32, u32)], divisor: u32) -> Map {
        Map { slots: slots(farm, divisor).into() }
    }

    /// The server of `hash`; when `skip` refuses it, the one of the next slot that it doesn't refuse.
    pub fn pick(&self, hash: u32, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let len = self.slots.len();
        let first = hash as usize % len.max(1);
        let (before, after) = self.slots.split_at_checked(first)?;
        let mut refused = None;
        for &server in after.iter().chain(before) {
            if refused == Some(server) {
                continue;
            }
            if !skip(server as usize) {
                return Some(server as usize);
            }
            refused = Some(server);
        }
        None
    }

    /// The table, one server per slot.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }
}

/// The divisor of all weights in `weights`, for [`Map::new`].
pub fn divisor(weights: impl Iterator<Item = u32>) -> u32 {
    common_divisor(weights)
}

fn slots(farm: &[(u32, u32)], divisor: u32) -> Vec<u32> {
    let weights: Vec<u64> = farm.iter().map(|s| u64::from(s.1 / divisor.max(1))).collect();
    let total: u64 = weights.iter().sum();
    let mut contest = Contest::new(&weights, total);
    (1..=total).filter_map(|slot| contest.winner(slot)).map(|place| farm[place].0).collect()
}

/// The servers by their floor, and when each rises.
struct Contest<'a> {
    weights: &'a [u64],
    total: u64,
    floors: Vec<i64>,
    rises: Vec<u64>,
    by_floor: BTreeMap<i64, BTreeSet<usize>>,
    upcoming: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Contest<'a> {
    fn new(weights: &'a [u64], total: u64) -> Contest<'a> {
        let members = (0..weights.len()).filter(|&place| weights[place] > 0);
        let mut contest = Contest {
            weights,
            total,
            floors: vec![1; weights.len()],
            rises: vec![0; weights.len()],
            by_floor: BTreeMap::from([(1, members.clone().collect())]),
            upcoming: BinaryHeap::new(),
        };
        members.for_each(|place| contest.await_rise(place));
        contest
    }

    fn winner(&mut self, slot: u64) -> Option<usize> {
        while let Some(&Reverse((when, place))) = self.upcoming.peek() {
            if when > slot {
                break;
            }
            self.upcoming.pop();
            self.shift(place, 1);
            self.await_rise(place);
        }
        let place = *self.by_floor.last_key_value()?.1.first()?;
        self.shift(place, -1);
        Some(place)
    }

    // The n-th rise comes with the first slot at which slot * weight reaches n * total.
    fn await_rise(&mut self, place: usize) {
        self.rises[place] += 1;
        let when = (self.rises[place] * self.total).div_ceil(self.weights[place]);
        self.upcoming.push(Reverse((when, place)));
    }

    fn shift(&mut self, place: usize, by: i64) {
        let floor = self.floors[place];
        if let Some(level) = self.by_floor.get_mut(&floor) {
            level.remove(&place);
            if level.is_empty() {
                self.by_floor.remove(&floor);
            }
        }
        self.floors[place] += by;
        self.by_floor.entry(floor + by).or_default().insert(place);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(weights: &[u32]) -> Vec<(u32, u32)> {
        weights.iter().enumerate().map(|(i, &w)| (i as u32, w)).collect()
    }

    #[test]
    fn the_map_is_the_one_observed_on_haproxy() {
        let observed: &[(&[u32], &str)] = &[
            (&[1, 1, 1, 1], "0123"),
            (&[2, 1], "001"),
            (&[1, 3], "0111"),
            (&[1, 2, 3], "021212"),
            (&[3, 2, 1], "001012"),
            (&[5, 1, 1], "0001002"),
            (&[4, 3, 2, 1], "0101201023"),
            (&[10, 1], "00000000001"),
            (&[7, 3], "0001001001"),
            (&[1, 2, 3, 4], "0132312323"),
            (&[100, 50, 25], "0010102"),
            (&[2, 2, 1], "01012"),
            (&[3, 5, 7], "012120212021212"),
        ];
        for (weights, expected) in observed {
            let map = Map::new(&numbered(weights), divisor(weights.iter().copied()));
            let shown: String = map.slots().iter().map(u32::to_string).collect();
            assert_eq!(shown, *expected, "weights {weights:?}");
        }
    }

    #[test]
    fn a_refused_slot_gives_way_to_the_next_one() {
        let map = Map::new(&numbered(&[1, 1, 1]), 1);
        assert_eq!(map.pick(4, |_| false), Some(1));
        assert_eq!(map.pick(4, |s| s == 1), Some(2));
        assert_eq!(map.pick(4, |_| true), None);
        assert_eq!(Map::new(&[], 1).pick(4, |_| false), None);
    }

    // The rule as it is stated, slot by slot over all servers.
    fn plainly(weights: &[u32]) -> Vec<u32> {
        let total: i64 = weights.iter().map(|&w| i64::from(w)).sum();
        let mut credits = vec![0_i64; weights.len()];
        let mut slots = Vec::new();
        for _ in 0..total {
            let mut best = (0, None);
            for (i, &weight) in weights.iter().enumerate() {
                credits[i] += i64::from(weight);
                let floor = (credits[i] + total).div_euclid(total);
                if weight > 0 && (best.1.is_none() || floor > best.0) {
                    best = (floor, Some(i));
                }
            }
            let winner = best.1.unwrap();
            credits[winner] -= total;
            slots.push(winner as u32);
        }
        slots
    }

    proptest! {
        #[test]
        fn the_quick_way_and_the_plain_one_agree(weights in proptest::collection::vec(0..257_u32, 1..30)) {
            prop_assert_eq!(slots(&numbered(&weights), 1), plainly(&weights));
        }
    }
}
