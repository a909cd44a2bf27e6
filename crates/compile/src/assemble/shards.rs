//! `shards`: several sockets for an address, each for a share of the threads of its line.
//!
//! Each is a listener like others, with a number and figures of its own, as in HAProxy; so a line is spread
//! before anything is made of it.

use program::address::Listen;

use crate::bind;
use crate::draft::{BindDraft, Shards};
use crate::sections::Drafts;

/// Spreads all `bind` lines over their shards.
pub(super) fn spread(drafts: &mut Drafts, workers: u32) {
    let global = &drafts.global;
    if global.disabled.reuseport {
        // A port can be had once.
        return;
    }
    let default = global.default_shards;
    for proxy in &mut drafts.proxies {
        proxy.binds.iter_mut().for_each(|line| spread_line(line, default, workers));
    }
    for forward in &mut drafts.forwards {
        let lines = forward.proxy.binds.iter_mut().chain(&mut forward.datagrams);
        lines.for_each(|line| spread_line(line, default, workers));
    }
}

/// The threads that accept at the address of a line at this position, as bits; 0: all.
pub(super) fn share(line: &BindDraft, position: usize, workers: u32) -> u64 {
    line.shares.get(position).copied().unwrap_or_else(|| bind::mask(&line.threads, workers))
}

fn spread_line(line: &mut BindDraft, default: Shards, workers: u32) {
    let mask = bind::mask(&line.threads, workers);
    let threads: Vec<u32> =
        (0..workers.min(64)).filter(|thread| mask == 0 || mask & (1 << thread) != 0).collect();
    let count = match line.shards.unwrap_or(default) {
        Shards::Count(n) => (n as usize).min(threads.len()),
        Shards::ByThread => threads.len(),
    };
    if count < 2 {
        return;
    }
    let shares = shares(&threads, count);
    for address in std::mem::take(&mut line.addresses) {
        // Others have no ports that could be shared.
        let shares = if matches!(address, Listen::Tcp(_)) { &shares[..] } else { &[mask] };
        for share in shares {
            line.addresses.push(address.clone());
            line.shares.push(*share);
        }
    }
}

/// Threads in a row for each of so many sockets, as bits.
fn shares(threads: &[u32], count: usize) -> Vec<u64> {
    let bits = |part: &[u32]| part.iter().fold(0u64, |bits, thread| bits | 1 << thread);
    let edge = |n: usize| n * threads.len() / count;
    (0..count).map(|n| bits(threads.get(edge(n)..edge(n + 1)).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn threads_are_shared_fairly_and_in_a_row() {
        assert_eq!(shares(&[0, 1, 2, 3], 2), [0b11, 0b1100]);
        assert_eq!(shares(&[0, 2, 4], 3), [1, 4, 16]);
        assert_eq!(shares(&[0, 1, 2, 3, 4], 2), [0b11, 0b11100]);
    }
}
