//! Consistent hashing: servers own points on a ring of 2^32, a key belongs to the nearest point.
//!
//! When a server comes or goes only the keys near its points move. Each server owns one point per unit of
//! effective weight; point `i` is the avalanche of its seed plus `i`, so a growing weight adds points and
//! moves none. HAProxy and Harrier place the same points, hence find the same servers.
//!
//! The points stand sorted in one array. They are spread evenly (that is what an avalanche does), so a table
//! indexed by the topmost bits of a hash tells almost exactly where to look: a look-up costs two cache lines,
//! whatever the number of servers.

use crate::sync::{AtomicU64, Ordering};
use base::hash::avalanche;

/// The ring: points sorted by place, and where to start looking.
#[derive(Debug)]
pub struct Ring {
    points: Box<[Point]>,
    starts: Box<[u32]>,
    shift: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    place: u32,
    server: u32,
}

/// A server of the ring: its index, the number of its points, where they start.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The index of the server.
    pub server: u32,
    /// Its number of points: the effective weight in 1/16.
    pub points: u32,
    /// The seed of its points ([`crate::HashKey::seed`]).
    pub seed: u32,
}

/// How far the turns of requests without a key have come on a ring: they go from point to point.
#[derive(Debug, Default)]
pub struct Walk {
    next: AtomicU64,
}

impl Walk {
    /// Goes on where the walk on an older ring was.
    pub fn resume(self, old: &Walk) -> Walk {
        self.next.store(old.next.load(Ordering::Relaxed), Ordering::Relaxed);
        self
    }
}

impl Ring {
    /// The ring of these servers.
    pub fn new(members: &[Member]) -> Ring {
        let point = |m: Member| {
            (0..m.points).map(move |i| Point { place: avalanche(m.seed.wrapping_add(i)), server: m.server })
        };
        let mut points: Vec<Point> = members.iter().flat_map(|&m| point(m)).collect();
        points.sort_unstable();
        let bits = points.len().max(2).ilog2();
        let shift = 32 - bits;
        Ring { starts: starts(&points, shift), points: points.into(), shift }
    }

    /// The server nearest to `hash`; when `skip` refuses it, that of the next point upward that it doesn't
    /// refuse.
    pub fn pick(&self, hash: u32, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let mut refused = None;
        for server in self.upward(self.nearest(hash)) {
            if refused == Some(server) {
                continue;
            }
            if !skip(server) {
                return Some(server);
            }
            refused = Some(server);
        }
        None
    }

    /// The server of the last point before the one that `hash` belongs to: where the walk of [`Ring::pick`]
    /// ends after it was refused everywhere. So says the manual of `hash-preserve-affinity maxconn`, which
    /// queues the request there; HAProxy 3.5-dev5 was seen to queue them all on the server of the highest
    /// point instead, which makes one server the bottleneck of a saturated farm and isn't followed.
    pub fn last(&self, hash: u32) -> Option<usize> {
        let len = self.points.len();
        let before = (self.nearest(hash) + len).checked_sub(1)?.checked_rem(len)?;
        self.points.get(before).map(|point| point.server as usize)
    }

    /// The server whose turn it is, for a request without a key: that of the next point upward that `skip`
    /// doesn't refuse.
    pub fn turn(&self, walk: &Walk, skip: impl Fn(usize) -> bool) -> Option<usize> {
        let mut from = walk.next.load(Ordering::Relaxed);
        loop {
            let start = u32::try_from(from).map_or(0, |place| self.first_from(place));
            let (before, after) = self.points.split_at(start);
            let mut refused = None;
            let point = after.iter().chain(before).find(|point| {
                let taken = refused != Some(point.server) && !skip(point.server as usize);
                if !taken {
                    refused = Some(point.server);
                }
                taken
            })?;
            let next = u64::from(point.place) + 1;
            match walk.next.compare_exchange_weak(from, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(point.server as usize),
                Err(moved) => from = moved,
            }
        }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The server of the `index`-th point upward from the lowest, modulo their number.
    pub fn at(&self, index: usize) -> Option<usize> {
        let index = index.checked_rem(self.points.len())?;
        self.points.get(index).map(|point| point.server as usize)
    }

    fn upward(&self, from: usize) -> impl Iterator<Item = usize> {
        let (before, after) = self.points.split_at(from);
        after.iter().chain(before).map(|point| point.server as usize)
    }

    // The index of the nearest point, the lower one on a tie; both directions wrap. Where servers share a
    // place (the same address twice, under `hash-key addr`), that of the first is met from below, of the last
    // from above.
    fn nearest(&self, hash: u32) -> usize {
        let len = self.points.len();
        if len == 0 {
            return 0;
        }
        let above = self.first_from(hash);
        let (above, below) = (above % len, (above + len - 1) % len);
        let up = self.points[above].place.wrapping_sub(hash);
        let down = hash.wrapping_sub(self.points[below].place);
        if down <= up { below } else { above }
    }

    // The first point at or above `hash`, or the number of points.
    fn first_from(&self, hash: u32) -> usize {
        let start = self.starts[(hash >> self.shift) as usize] as usize;
        let beyond = self.points[start..].iter().position(|point| point.place >= hash);
        beyond.map_or(self.points.len(), |offset| start + offset)
    }
}

// For each value of the topmost bits, the first point with these bits or higher ones.
fn starts(points: &[Point], shift: u32) -> Box<[u32]> {
    let mut next = 0;
    let buckets = 1_u64 << (32 - shift);
    let first = |bucket: u64| {
        while points.get(next).is_some_and(|point| u64::from(point.place >> shift) < bucket) {
            next += 1;
        }
        next as u32
    };
    (0..buckets).map(first).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(servers: u32, points: u32) -> Ring {
        let member = |server| Member { server, points, seed: (server + 1) * 4096 };
        Ring::new(&(0..servers).map(member).collect::<Vec<_>>())
    }

    #[test]
    fn an_empty_ring_has_nobody() {
        let ring = Ring::new(&[]);
        assert_eq!((ring.pick(1, |_| false), ring.last(1), ring.at(1)), (None, None, None));
    }

    #[test]
    fn turns_go_from_point_to_point_and_around() {
        // The order was seen of HAProxy 3.5: four servers of weight 1, no key in any request.
        let (ring, walk) = (ring(4, 16), Walk::default());
        let turns = |n: usize| -> String {
            (0..n).map(|_| (ring.turn(&walk, |_| false).unwrap() + 1).to_string()).collect()
        };
        assert_eq!(turns(64), "3443424131412311122313323124331421342432411321224432132143212444");
        assert_eq!(turns(8), "34434241");
        assert_eq!(ring.turn(&walk, |s| s != 0), Some(0));
        assert_eq!(ring.turn(&walk, |_| true), None);
        // Another ring is entered where this one was left.
        let walk = Walk::default().resume(&walk);
        assert_eq!(ring.turn(&walk, |_| false), Some(3));
    }

    #[test]
    fn refusing_every_point_but_the_last_ends_there() {
        let ring = ring(50, 16);
        for hash in (0..u32::MAX - 999_999).step_by(1_000_000) {
            let last = ring.last(hash).unwrap();
            assert_eq!(ring.pick(hash, |s| s != last), Some(last));
            assert_eq!(ring.pick(hash, |_| true), None);
        }
    }

    #[test]
    fn only_the_keys_of_a_lost_server_move() {
        let (whole, less) = (ring(10, 160), ring(9, 160));
        for key in 0..10_000 {
            let hash = avalanche(key);
            let before = whole.pick(hash, |_| false);
            if before != Some(9) {
                assert_eq!(less.pick(hash, |_| false), before);
            }
        }
    }

    proptest! {
        #[test]
        fn the_nearest_point_wins(servers in 1..20_u32, points in 1..40_u32, hash in any::<u32>()) {
            let ring = ring(servers, points);
            let distance = |place: u32| {
                let (up, down) = (place.wrapping_sub(hash), hash.wrapping_sub(place));
                if down <= up { (down, 0) } else { (up, 1) }
            };
            let best = ring.points.iter().rev().min_by_key(|point| distance(point.place)).unwrap();
            prop_assert_eq!(ring.pick(hash, |_| false), Some(best.server as usize));
        }
    }
}
