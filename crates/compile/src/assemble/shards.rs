//! `shards`: several sockets for an address, each for a share of the threads of its line.
//!
//! Each is a listener like others, with a number and figures of its own, as in HAProxy; so a line is spread
//! before anything is made of it.

use base::threads::{ThreadGroups, ThreadSet};
use program::address::Listen;

use crate::bind;
use crate::draft::{BindDraft, Shards};
use crate::sections::Drafts;

/// Spreads all `bind` lines over their shards.
pub(super) fn spread(drafts: &mut Drafts, workers: u32) {
    let global = &drafts.global;
    let groups = &global.groups.layout(workers);
    if global.disabled.reuseport {
        // A port can be had once.
        return;
    }
    let default = global.default_shards;
    for proxy in &mut drafts.proxies {
        proxy.binds.iter_mut().for_each(|line| spread_line(line, default, workers, groups));
    }
    for forward in &mut drafts.forwards {
        let lines = forward.proxy.binds.iter_mut().chain(&mut forward.datagrams);
        lines.for_each(|line| spread_line(line, default, workers, groups));
    }
}

/// The threads that accept at the address of a line at this position.
pub(super) fn share(line: &BindDraft, position: usize, workers: u32, groups: &ThreadGroups) -> ThreadSet {
    line.shares.get(position).copied().unwrap_or_else(|| bind::threads(&line.threads, workers, groups))
}

fn spread_line(line: &mut BindDraft, default: Shards, workers: u32, groups: &ThreadGroups) {
    let set = bind::threads(&line.threads, workers, groups);
    let threads: Vec<u32> = (0..workers).filter(|thread| set.has(*thread as usize)).collect();
    let shares = match line.shards.unwrap_or(default) {
        Shards::Count(n) => shares(&threads, (n as usize).min(threads.len())),
        Shards::ByThread => shares(&threads, threads.len()),
        Shards::ByGroup => by_group(&threads, groups),
    };
    if shares.len() < 2 {
        return;
    }
    for address in std::mem::take(&mut line.addresses) {
        // Others have no ports that could be shared.
        let shares = if matches!(address, Listen::Tcp(_)) { &shares[..] } else { &[set] };
        for share in shares {
            line.addresses.push(address.clone());
            line.shares.push(*share);
        }
    }
}

/// Threads in a row for each of so many sockets.
fn shares(threads: &[u32], count: usize) -> Vec<ThreadSet> {
    let edge = |n: usize| n * threads.len() / count;
    let part = |n| threads.get(edge(n)..edge(n + 1)).unwrap_or_default();
    (0..count).map(|n| part(n).iter().copied().collect()).collect()
}

/// The threads of each group that has some of them.
fn by_group(threads: &[u32], groups: &ThreadGroups) -> Vec<ThreadSet> {
    let of = |group| groups.threads(group).filter(|thread| threads.contains(thread)).collect::<Vec<_>>();
    let parts = (1..=groups.count()).map(of).filter(|part| !part.is_empty());
    parts.map(|part| part.into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::{ThreadGroups, ThreadSet, by_group, shares};

    #[test]
    fn threads_are_shared_fairly_and_in_a_row() {
        let set = |threads: &[u32]| threads.iter().copied().collect::<ThreadSet>();
        assert_eq!(shares(&[0, 1, 2, 3], 2), [set(&[0, 1]), set(&[2, 3])]);
        assert_eq!(shares(&[0, 2, 64], 3), [set(&[0]), set(&[2]), set(&[64])]);
        assert_eq!(shares(&[0, 1, 2, 3, 4], 2), [set(&[0, 1]), set(&[2, 3, 4])]);
        let groups = ThreadGroups::new(3, 6, |_| None);
        assert_eq!(by_group(&[0, 1, 2, 3, 4, 5], &groups), [set(&[0, 1]), set(&[2, 3]), set(&[4, 5])]);
        assert_eq!(by_group(&[1, 4, 5], &groups), [set(&[1]), set(&[4, 5])]);
    }
}
