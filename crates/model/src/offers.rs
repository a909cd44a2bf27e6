//! How many streams the connections of all clients were offered (`tune.streams-elasticity`, manual section
//! 3.2).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What all connections of a process were offered: how many they are above, their streams below.
#[derive(Debug, Default)]
pub struct Offers(AtomicU64);

/// What there is to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Connections that may be (`maxconn`).
    pub connections: u32,
    /// Streams for all of them, percent of that: at least a hundred.
    pub percent: u32,
}

impl Offers {
    /// Offers one more connection so many streams at most; they are to be given [back](Offers::back).
    ///
    /// Each connection gets one, also those that are still to come. What is left beyond that is given away in
    /// proportion: the first gets all that it may have, the later ones less the less there is.
    pub fn take(&self, most: u32, share: Share) -> u32 {
        let mut offered = 0;
        let _ = self.0.fetch_update(Relaxed, Relaxed, |now| {
            offered = offer(most, share, now >> 32, now & 0xffff_ffff);
            Some(now.wrapping_add((1 << 32) + u64::from(offered)))
        });
        offered
    }

    /// A connection that was offered so many streams is over.
    pub fn back(&self, offered: u32) {
        self.0.fetch_sub((1 << 32) + u64::from(offered), Relaxed);
    }
}

/// As HAProxy 3.5 has it, seen from outside.
fn offer(most: u32, share: Share, connections: u64, streams: u64) -> u32 {
    let (most, all) = (u64::from(most.max(1)), u64::from(share.connections));
    let total = all.saturating_mul(u64::from(share.percent)) / 100;
    let beyond = total.saturating_sub(all);
    let left = beyond.saturating_sub(streams.saturating_sub(connections));
    let part = (left.saturating_mul(most - 1)).checked_div(beyond).unwrap_or(0) + 1;
    let even = match left {
        0 => 1,
        _ => total.saturating_sub(streams).div_ceil(all.saturating_sub(connections).max(1)),
    };
    u32::try_from(part.max(even).min(most)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What HAProxy 3.5-dev5 offers to connections that come one after the other, and then to those that come
    /// when the first three have left.
    #[test]
    fn each_gets_one_and_the_first_get_more() {
        // `maxconn`, percent, the most that each may have.
        type Case = ((u32, u32, u32), &'static [u32], &'static [u32]);
        let cases: [Case; 9] = [
            ((10, 100, 100), &[1, 1, 1, 1], &[1, 1]),
            ((10, 200, 100), &[100, 1, 1, 1, 1], &[100, 1, 1]),
            ((20, 150, 100), &[100, 1, 1, 1, 1], &[100, 1, 1]),
            ((20, 1000, 100), &[100, 45, 21, 10, 5, 3, 2, 2, 1, 1, 1, 1], &[90, 41, 19]),
            ((20, 1000, 100), &[100, 45, 21, 10, 5], &[92, 42, 20]),
            ((20, 1000, 7), &[7, 7, 7, 7, 7, 7, 7, 7], &[7, 7, 7]),
            ((20, 10_000, 100), &[100, 100, 100, 100, 100, 100, 100, 100], &[100, 100]),
            ((1000, 120, 100), &[100, 50, 26, 14, 7, 4, 3, 2, 2, 2, 1, 1], &[86, 44, 23]),
            ((0, 500, 100), &[1, 1], &[]),
        ];
        for ((connections, percent, most), first, then) in cases {
            let (offers, share) = (Offers::default(), Share { connections, percent });
            let seen: Vec<u32> = first.iter().map(|_| offers.take(most, share)).collect();
            assert_eq!(seen, first, "{share:?}");
            seen.iter().take(3).for_each(|n| offers.back(*n));
            let seen: Vec<u32> = then.iter().map(|_| offers.take(most, share)).collect();
            assert_eq!(seen, then, "{share:?}");
        }
    }
}
