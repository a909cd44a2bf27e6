//! Threads of a process: sets of them, and the groups that they are told in.

/// The most threads of a process.
pub const MOST: u32 = 1000;
const WORDS: usize = 16;

/// Threads of a process, counted from 0. The empty set stands for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSet([u64; WORDS]);

impl ThreadSet {
    /// All threads, however many there are.
    pub const ALL: ThreadSet = ThreadSet([0; WORDS]);

    /// Adds a thread; one that no process has is passed over.
    pub fn insert(&mut self, thread: u32) {
        if let Some(word) = self.0.get_mut(thread as usize / 64) {
            *word |= 1 << (thread % 64);
        }
    }

    /// Whether a thread is one of them.
    pub fn has(&self, thread: usize) -> bool {
        self.is_all() || self.0.get(thread / 64).is_some_and(|word| word & 1 << (thread % 64) != 0)
    }

    /// Whether it stands for all threads.
    pub fn is_all(&self) -> bool {
        *self == ThreadSet::ALL
    }
}

impl FromIterator<u32> for ThreadSet {
    fn from_iter<I: IntoIterator<Item = u32>>(threads: I) -> ThreadSet {
        let mut set = ThreadSet::ALL;
        threads.into_iter().for_each(|thread| set.insert(thread));
        set
    }
}

/// The groups in which threads are told: of each the first thread, from 0, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadGroups(Vec<(u32, u32)>);

impl ThreadGroups {
    /// So many groups of so many threads. `assigned` gives the group, from 1, of the threads, from 1, for
    /// which that was said; others are spread over the groups that have none, in order, a row for each.
    pub fn new(count: u32, threads: u32, assigned: impl Fn(u32) -> Option<u32>) -> ThreadGroups {
        let of: Vec<Option<u32>> = (1..=threads).map(assigned).collect();
        let mut groups = vec![(0, 0); count as usize];
        for (at, group) in of.iter().enumerate() {
            let place = group.and_then(|group| groups.get_mut((group as usize).wrapping_sub(1)));
            if let Some((first, size)) = place {
                *first = if *size == 0 { at as u32 } else { *first };
                *size += 1;
            }
        }
        let mut empty = groups.iter().filter(|(_, size)| *size == 0).count() as u32;
        let mut free = of.iter().filter(|group| group.is_none()).count() as u32;
        let mut next = 0;
        for group in groups.iter_mut().filter(|(_, size)| *size == 0) {
            let share = free.div_ceil(empty.max(1));
            let rest = of.get(next..).unwrap_or_default();
            next += rest.iter().take_while(|group| group.is_some()).count();
            let row = of.get(next..).unwrap_or_default().iter().take_while(|group| group.is_none()).count();
            let size = share.min(row as u32);
            *group = (next as u32, size);
            next += size as usize;
            (free, empty) = (free - size, empty - 1);
        }
        ThreadGroups(groups)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// The threads of a group, from 1, in order; none if there is no such group.
    pub fn threads(&self, group: u32) -> std::ops::Range<u32> {
        let found = self.0.get((group as usize).wrapping_sub(1));
        found.map_or(0..0, |(first, size)| *first..first + size)
    }

    /// How many threads each has.
    pub fn sizes(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(_, size)| *size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_set_is_all() {
        assert!(ThreadSet::ALL.has(999) && ThreadSet::ALL.is_all());
        let set: ThreadSet = [0, 70, 999].into_iter().collect();
        assert_eq!([0, 1, 70, 134, 999, 5000].map(|n| set.has(n)), [true, false, true, false, true, false]);
    }

    #[test]
    fn groups_are_as_large_as_observed_on_haproxy() {
        let none = |_| None;
        let sizes = |groups: ThreadGroups| groups.sizes().collect::<Vec<_>>();
        assert_eq!(sizes(ThreadGroups::new(2, 5, none)), [3, 2]);
        assert_eq!(sizes(ThreadGroups::new(3, 4, none)), [2, 1, 1]);
        assert_eq!(sizes(ThreadGroups::new(3, 128, none)), [43, 43, 42]);
        let among = |from: u32, to: u32, group: u32| move |n| (from..=to).contains(&n).then_some(group);
        assert_eq!(sizes(ThreadGroups::new(2, 6, among(1, 2, 1))), [2, 4]);
        assert_eq!(sizes(ThreadGroups::new(2, 6, among(1, 2, 2))), [4, 2]);
        assert_eq!(sizes(ThreadGroups::new(3, 8, among(3, 4, 2))), [2, 2, 4]);
        let groups = ThreadGroups::new(3, 10, among(7, 10, 1));
        assert_eq!([1, 2, 3, 4].map(|group| groups.threads(group)), [6..10, 0..3, 3..6, 0..0]);
    }
}
