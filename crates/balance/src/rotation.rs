//! `roundrobin`: each server in turn, as often as its weight says, as evenly spread as can be.
//!
//! The order is computed once per change and then walked by one atomic cursor, instead of being found anew
//! for each request under a lock. It is the order that HAProxy is observed to use: time advances by one per
//! pick; a server that was picked is due again after (total / weight) turns, what doesn't divide is carried
//! over; whoever is due longest is next; at the same turn, whoever has the least left over less its weight,
//! then who waited longer; and when nobody is due, the servers that had no turn yet get theirs, heaviest
//! first. After `total` picks this repeats, so a table of that length says it all.
//!
//! Weights move in sixteenths, so the table of a large farm in slow start could be long. Beyond [`SLOTS_MAX`]
//! weights are rounded (each server keeps at least one slot); the error stays below a slot per server.

use crate::sync::{AtomicUsize, Ordering};
use crate::view::common_divisor;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// The most slots of a schedule, unless there are more servers than a sixteenth of that.
pub const SLOTS_MAX: u64 = 32_768;

/// A published order and its cursor.
#[derive(Debug)]
pub struct Rotation {
    order: Box<[u32]>,
    members: Box<[u32]>,
    /// Slots that were walked in the table before this one.
    start: usize,
    cursor: Cursor,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Cursor(AtomicUsize);

impl Rotation {
    /// The order for servers given by index and weight (any unit), starting at its beginning.
    pub fn new(servers: &[(u32, u32)]) -> Rotation {
        Rotation::from_order(order(servers))
    }

    /// A rotation over a table made elsewhere.
    pub fn from_order(order: Vec<u32>) -> Rotation {
        let mut members = order.clone();
        members.sort_unstable();
        members.dedup();
        Rotation { order: order.into(), members: members.into(), start: 0, cursor: Cursor::default() }
    }

    /// Goes on at the slot that was next in `old`, whatever servers have it now; where this table has no such
    /// slot, at its first. That is how HAProxy walks the map of `static-rr`: with a place that only a pick
    /// sets back.
    pub fn keep_place(self, old: &Rotation) -> Rotation {
        Rotation { start: old.place(), ..self }
    }

    // The slot after the one picked last, which may be beyond the last one.
    fn place(&self) -> usize {
        let (len, picks) = (self.order.len(), self.cursor.0.load(Ordering::Relaxed));
        match picks.checked_sub(1) {
            Some(before) if len > 0 => (self.first() + before) % len + 1,
            _ => self.start,
        }
    }

    fn first(&self) -> usize {
        if self.start < self.order.len() { self.start } else { 0 }
    }

    fn next(&self) -> u32 {
        self.order[(self.first() + self.cursor.0.fetch_add(1, Ordering::Relaxed)) % self.order.len()]
    }

    /// Goes on from `old`. Where all weights are equal its servers keep their order, and those that were not
    /// in it come last, as most often in HAProxy; elsewhere the server that was next is still next.
    pub fn resume(self, old: &Rotation) -> Rotation {
        let mut upcoming = old.upcoming().filter(|server| self.members.binary_search(server).is_ok());
        if self.order.len() > self.members.len() {
            let next = upcoming.next();
            let position = next.and_then(|next| self.order.iter().position(|&server| server == next));
            self.cursor.0.store(position.unwrap_or(0), Ordering::Relaxed);
            return self;
        }
        let mut seen = HashSet::new();
        let order = upcoming.chain(self.order.iter().copied()).filter(|&server| seen.insert(server));
        Rotation { order: order.collect(), ..Rotation::from_order(self.members.into()) }
    }

    /// The servers of one round, from the one that is next.
    fn upcoming(&self) -> impl Iterator<Item = u32> {
        let len = self.order.len();
        let from = self.cursor.0.load(Ordering::Relaxed);
        (0..len).map(move |i| self.order[(self.first().wrapping_add(from).wrapping_add(i)) % len])
    }

    /// The next server that `skip` doesn't refuse; none when it refuses all.
    ///
    /// A refused turn is used up, so that the turns of a full server spread over the others instead of all
    /// going to the one behind it.
    pub fn pick(&self, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let len = self.order.len();
        if len == 0 {
            return None;
        }
        for _ in 0..(2 * self.members.len()).min(len) {
            let server = self.next() as usize;
            if !skip(server) {
                return Some(server);
            }
        }
        self.any(skip)
    }

    // Heavy servers that are full can hide a light one that isn't for a long way: ask each server once.
    fn any(&self, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let from = self.cursor.0.fetch_add(1, Ordering::Relaxed) % self.members.len();
        let (before, after) = self.members.split_at(from);
        after.iter().chain(before).map(|&server| server as usize).find(|&server| !skip(server))
    }

    /// The table: one server per slot.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

/// The weighted order described at the head of this module, of servers given by index and weight.
pub fn order(servers: &[(u32, u32)]) -> Vec<u32> {
    let weights = rounded(servers);
    let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
    let mut fresh = heaviest_last(&weights);
    let mut due: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
    let mut order = Vec::with_capacity(total as usize);
    for now in 0..total {
        let ready = due.peek().is_some_and(|Reverse(first)| first.turn <= now);
        let mut next = match fresh.pop() {
            Some(index) if !ready => Due::new(index, weights[index], now),
            unused => {
                fresh.extend(unused);
                let Some(Reverse(first)) = due.pop() else { break };
                first
            }
        };
        order.push(servers[next.index].0);
        next.advance(now, total);
        if next.turns < next.weight {
            due.push(Reverse(next));
        }
    }
    order
}

// Ordered for taking from the end: the heaviest, and among equals the first declared, last.
fn heaviest_last(weights: &[u32]) -> Vec<usize> {
    let mut fresh: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0).collect();
    fresh.sort_by_key(|&i| (weights[i], Reverse(i)));
    fresh
}

/// When a server's next turn is due. Compared field by field from the first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    turn: u64,
    /// Among those due at one turn: what is left over of it, less the weight.
    rank: i64,
    /// When it had its last turn.
    last: u64,
    index: usize,
    weight: u64,
    /// What is left over beyond `turn`, as a numerator over the weight.
    rest: u64,
    /// Turns so far: no server gets more than its weight in one table.
    turns: u64,
}

impl Due {
    fn new(index: usize, weight: u32, turn: u64) -> Due {
        Due { turn, rank: 0, last: 0, index, weight: weight.into(), rest: 0, turns: 0 }
    }

    fn advance(&mut self, now: u64, total: u64) {
        self.turns += 1;
        self.last = now;
        self.rest += total % self.weight;
        self.turn += total / self.weight + self.rest / self.weight;
        self.rest %= self.weight;
        self.rank = self.rest as i64 - self.weight as i64;
    }
}

// Weights divided by their common divisor and, when the table would grow beyond its limit, rounded.
fn rounded(servers: &[(u32, u32)]) -> Vec<u32> {
    let divisor = common_divisor(servers.iter().map(|s| s.1));
    let total: u64 = servers.iter().map(|s| u64::from(s.1 / divisor)).sum();
    let limit = SLOTS_MAX.max(16 * servers.len() as u64);
    let round = |weight: u32| match u64::from(weight / divisor) {
        0 => 0,
        weight if total <= limit => weight as u32,
        weight => (weight * limit / total).max(1) as u32,
    };
    servers.iter().map(|s| round(s.1)).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(weights: &[u32], picks: usize) -> String {
        let servers: Vec<_> = weights.iter().enumerate().map(|(i, &w)| (i as u32, w)).collect();
        let rotation = Rotation::new(&servers);
        (0..picks).map(|_| rotation.pick(|_| false).unwrap().to_string()).collect()
    }

    #[test]
    fn the_order_is_the_one_observed_on_haproxy() {
        let observed: &[(&[u32], &str)] = &[
            (&[1, 1, 1, 1], "01230123"),
            (&[2, 1], "001001"),
            (&[3, 1], "00010001"),
            (&[1, 3], "11101110"),
            (&[1, 2, 3], "212021212021"),
            (&[3, 2, 1], "010201010201"),
            (&[5, 1, 1], "00010020001002"),
            (&[4, 3, 2, 1], "01021030120102103012"),
            (&[10, 1], "0000000000100000000001"),
            (&[7, 3], "00010010010001001001"),
            (&[1, 2, 3, 4], "32312303213231230321"),
            (&[100, 50, 25], "0010201001020100102010010201001020100102"),
            (&[2, 2, 1], "0101201012"),
            (&[3, 5, 7], "212012210212210212012210212210"),
        ];
        for (weights, order) in observed {
            assert_eq!(shown(weights, order.len()), *order, "weights {weights:?}");
        }
    }

    #[test]
    fn the_turns_of_a_full_server_spread_over_the_others() {
        let rotation = Rotation::new(&[(0, 1), (1, 1), (2, 1)]);
        let picks: Vec<_> = (0..6).map(|_| rotation.pick(|s| s == 1).unwrap()).collect();
        assert_eq!(picks, [0, 2, 0, 2, 0, 2]);
        assert_eq!(rotation.pick(|_| true), None);
    }

    #[test]
    fn a_light_server_is_found_behind_heavy_full_ones() {
        let rotation = Rotation::new(&[(0, 256), (1, 256), (2, 1)]);
        assert_eq!(rotation.pick(|s| s < 2), Some(2));
    }

    #[test]
    fn a_static_order_keeps_its_place_as_observed_on_haproxy() {
        // Weights 1, 3, 2; the second server leaves after so many picks, and comes back after three.
        let (whole, without) = ([0, 1, 2, 1, 1, 2], [0, 2, 2]);
        let observed = [
            (0, "022", "112012"),
            (1, "220", "121120"),
            (2, "202", "211201"),
            (3, "022", "112012"),
            (5, "022", "112012"),
            (6, "022", "112012"),
        ];
        let picks =
            |r: &Rotation, n| (0..n).map(|_| r.pick(|_| false).unwrap().to_string()).collect::<String>();
        for (before, gone, back) in observed {
            let first = Rotation::from_order(whole.to_vec());
            picks(&first, before);
            let second = Rotation::from_order(without.to_vec()).keep_place(&first);
            assert_eq!(picks(&second, 3), gone, "after {before}");
            let third = Rotation::from_order(whole.to_vec()).keep_place(&second);
            assert_eq!(picks(&third, 6), back, "after {before}");
        }
    }

    #[test]
    fn a_place_outlives_a_table_that_nobody_used() {
        let first = Rotation::from_order(vec![0, 1, 2, 1, 1, 2]);
        assert_eq!((0..5).filter_map(|_| first.pick(|_| false)).count(), 5);
        let second = Rotation::from_order(vec![0, 2, 2]).keep_place(&first);
        let none = Rotation::from_order(Vec::new()).keep_place(&second);
        let third = Rotation::from_order(vec![0, 1, 2, 1, 1, 2]).keep_place(&none);
        assert_eq!(third.pick(|_| false), Some(2));
    }

    #[test]
    fn a_new_schedule_goes_on_where_the_old_one_stood() {
        let old = Rotation::new(&[(0, 1), (1, 1), (2, 1), (3, 1)]);
        old.pick(|_| false);
        old.pick(|_| false); // 2 is next
        let heavy = Rotation::new(&[(1, 2), (2, 1), (3, 1)]).resume(&old);
        assert_eq!(heavy.pick(|_| false), Some(2));
        let new = Rotation::new(&[(1, 1), (2, 1), (3, 1)]).resume(&old);
        assert_eq!(new.pick(|_| false), Some(2));
        let without = Rotation::new(&[(0, 1), (1, 1)]).resume(&old);
        assert_eq!(without.pick(|_| false), Some(0));
    }

    #[test]
    fn who_comes_back_comes_last_as_observed_on_haproxy() {
        let equal = |servers: &[u32]| Rotation::new(&servers.iter().map(|&s| (s, 1)).collect::<Vec<_>>());
        let picks = |r: &Rotation, n| (0..n).filter_map(|_| r.pick(|_| false)).collect::<Vec<_>>();
        let whole = equal(&[0, 1, 2]);
        assert_eq!(picks(&whole, 1), [0]);
        let without = equal(&[1, 2]).resume(&whole);
        assert_eq!(picks(&without, 1), [1]);
        let back = equal(&[0, 1, 2]).resume(&without);
        assert_eq!(picks(&back, 7), [2, 1, 0, 2, 1, 0, 2]);
        let same = equal(&[0, 1, 2]).resume(&back);
        assert_eq!(picks(&same, 4), [1, 0, 2, 1]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn weights_are_honoured(weights in proptest::collection::vec(0..300_u32, 1..40)) {
            let servers: Vec<_> = weights.iter().enumerate().map(|(i, &w)| (i as u32, w)).collect();
            let order = order(&servers);
            let divisor = common_divisor(weights.iter().copied());
            for &(index, weight) in &servers {
                let turns = order.iter().filter(|&&s| s == index).count();
                prop_assert_eq!(turns, (weight / divisor) as usize);
            }
        }

        #[test]
        fn huge_farms_keep_their_proportions(weights in proptest::collection::vec(1..4096_u32, 100..200)) {
            let servers: Vec<_> = weights.iter().enumerate().map(|(i, &w)| (i as u32, w)).collect();
            let order = order(&servers);
            prop_assert!(order.len() as u64 <= SLOTS_MAX + 200);
            let total: u32 = weights.iter().sum();
            for &(index, weight) in &servers {
                let turns = order.iter().filter(|&&s| s == index).count() as f64;
                let fair = f64::from(weight) / f64::from(total) * order.len() as f64;
                prop_assert!((turns - fair).abs() < 2.0, "{} turns, fair {}", turns, fair);
            }
        }
    }
}
