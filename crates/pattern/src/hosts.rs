//! Millions of IPv4 addresses in two bytes each.
//!
//! Addresses are sorted into buckets by their upper half; a bucket is a sorted run of lower halves. An
//! address is named by its position in that order, so equal ones are neighbours, in the order in which they
//! came. The order of the file is kept beside it, unless it is the same.

use std::ops::Range;

/// Buckets: one for each upper half of an address.
const BUCKETS: usize = 1 << 16;

/// From this size on, a bucket is sorted by counting.
const COUNTING: usize = 4096;

/// Sorted addresses.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Where each bucket starts in `low`, and where the last ends.
    starts: Box<[u32]>,
    low: Vec<u16>,
    /// Position by place in the file; empty if they are the same.
    order: Vec<u32>,
}

impl Hosts {
    /// Sorts addresses. What was given is used up, so that no third copy is ever needed.
    pub(crate) fn build(mut addresses: Vec<u32>) -> Hosts {
        let mut starts = vec![0u32; BUCKETS + 1].into_boxed_slice();
        for address in &addresses {
            starts[(address >> 16) as usize + 1] += 1;
        }
        for n in 0..BUCKETS {
            starts[n + 1] += starts[n];
        }
        if addresses.is_sorted() {
            let low = addresses.iter().map(|a| *a as u16).collect();
            return Hosts { starts, low, order: Vec::new() };
        }
        let mut low = vec![0u16; addresses.len()];
        let mut next = starts.clone();
        for address in &mut addresses {
            let at = &mut next[(*address >> 16) as usize];
            low[*at as usize] = *address as u16;
            *address = *at;
            *at += 1;
        }
        let sorted_at = sort_buckets(&starts, &mut low);
        for at in &mut addresses {
            *at = sorted_at[*at as usize];
        }
        addresses.shrink_to_fit();
        Hosts { starts, low, order: addresses }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.low.len()).unwrap_or(u32::MAX)
    }

    /// The position of the address at a place of the file.
    pub(crate) fn at(&self, place: u32) -> u32 {
        self.order.get(place as usize).copied().unwrap_or(place)
    }

    /// The address at a position.
    pub(crate) fn address(&self, position: u32) -> u32 {
        let bucket = self.starts.partition_point(|s| *s <= position).saturating_sub(1);
        let low = self.low.get(position as usize).copied().unwrap_or(0);
        (bucket as u32) << 16 | u32::from(low)
    }

    /// The positions of an address.
    pub(crate) fn find(&self, address: u32) -> Range<u32> {
        let bucket = (address >> 16) as usize;
        let (start, end) = (self.starts[bucket], self.starts[bucket + 1]);
        let run = self.low.get(start as usize..end as usize).unwrap_or_default();
        let low = address as u16;
        let from = run.partition_point(|l| *l < low);
        let count = run[from..].iter().take_while(|l| **l == low).count();
        let from = start + from as u32;
        from..from + count as u32
    }
}

/// Sorts each bucket and says where each of its items went.
fn sort_buckets(starts: &[u32], low: &mut [u16]) -> Vec<u32> {
    let mut went = vec![0u32; low.len()];
    let mut keys: Vec<u32> = Vec::new();
    let mut counts = vec![0u32; BUCKETS];
    for (start, end) in starts.iter().zip(&starts[1..]) {
        let (from, to) = (*start as usize, *end as usize);
        if to - from >= COUNTING {
            count_bucket(*start, &mut low[from..to], &mut went[from..to], &mut counts);
        } else if to > from {
            sort_bucket(*start, &mut low[from..to], &mut went[from..to], &mut keys);
        }
    }
    went
}

fn count_bucket(start: u32, low: &mut [u16], went: &mut [u32], counts: &mut [u32]) {
    counts.fill(0);
    for l in low.iter() {
        counts[usize::from(*l)] += 1;
    }
    let mut sum = 0;
    for count in counts.iter_mut() {
        sum += std::mem::replace(count, sum);
    }
    for (l, went) in low.iter().zip(went.iter_mut()) {
        let at = &mut counts[usize::from(*l)];
        *went = start + *at;
        *at += 1;
    }
    // Each count is now the end of its run.
    let mut from = 0;
    for (value, end) in (0u16..=u16::MAX).zip(counts.iter()) {
        low[from..*end as usize].fill(value);
        from = *end as usize;
    }
}

/// Few items: sorted by value and place at once, as keys of 32 bits.
fn sort_bucket(start: u32, low: &mut [u16], went: &mut [u32], keys: &mut Vec<u32>) {
    keys.clear();
    keys.extend((0u32..).zip(low.iter()).map(|(n, l)| u32::from(*l) << 16 | n));
    keys.sort_unstable();
    for (to, key) in (start..).zip(keys.iter()) {
        went[(key & 0xffff) as usize] = to;
    }
    for (l, key) in low.iter_mut().zip(keys.iter()) {
        *l = (key >> 16) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn order_of_the_file_and_of_the_addresses_are_both_kept(
            few in prop::collection::vec(any::<u32>(), 0..300),
            many in prop::collection::vec(0u32..5000, 4000..9000),
        ) {
            for list in [few, many] {
                let hosts = Hosts::build(list.clone());
                let mut counts = std::collections::HashMap::new();
                list.iter().for_each(|a| *counts.entry(*a).or_insert(0) += 1);
                for (place, address) in (0u32..).zip(&list) {
                    let at = hosts.at(place);
                    prop_assert_eq!(hosts.address(at), *address);
                    prop_assert!(hosts.find(*address).contains(&at));
                    prop_assert_eq!(hosts.find(*address).len(), counts[address]);
                }
                prop_assert!(list.contains(&7) || hosts.find(7).is_empty());
            }
        }
    }
}
