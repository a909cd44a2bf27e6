//! Tasks that are not plain: urgent ones (a negative nice value) and patient ones (a positive one).
//!
//! Nearly all tasks are plain and wait in a FIFO queue. The others wait here, each for a place in that queue,
//! counted in plain tasks: a nice value of -1024 means its head, 0 its tail, 1024 as far behind the tail as
//! the queue is long. So the value matters the more the longer the queue is, and not at all when nothing
//! waits. While nobody is here, plain tasks pay one test of a length.
//!
//! Nobody starves: a place is a fixed number that the queue moves towards, and after [`STREAK`] tasks from
//! here one of the queue has its turn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::waker::TaskId;

/// The greatest nice value; its negative is the least.
pub(crate) const NICEST: i16 = 1024;
/// Tasks from here that are polled in a row while plain ones wait.
const STREAK: u32 = 4;

/// Who waits, by place, and in order of arrival among equals.
#[derive(Default)]
pub(crate) struct Ranks {
    heap: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    arrivals: u64,
    /// Plain tasks that had their turn; counted only while somebody is here.
    passed: u64,
    streak: u32,
}

impl Ranks {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Queues a task of this nice value behind, before or among so many plain ones.
    #[cold]
    pub(crate) fn push(&mut self, task: TaskId, nice: i16, plain: usize) {
        let nice = i64::from(nice.clamp(-NICEST, NICEST));
        let plain = plain as i64;
        let ahead = plain + plain * nice / i64::from(NICEST);
        self.arrivals += 1;
        self.heap.push(Reverse((self.passed + ahead.unsigned_abs(), self.arrivals, task)));
    }

    /// The next task if its turn has come; `None` gives the turn to a plain one. `plain` says whether one
    /// waits.
    #[cold]
    pub(crate) fn pop(&mut self, plain: bool) -> Option<TaskId> {
        let Reverse((place, ..)) = self.heap.peek()?;
        if plain && (*place > self.passed || self.streak >= STREAK) {
            self.passed += 1;
            self.streak = 0;
            return None;
        }
        self.streak += 1;
        self.heap.pop().map(|Reverse((.., task))| task)
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::waker::Tag;

    fn task(n: u32) -> TaskId {
        TaskId::new(Tag::new(1, 1), n, 0)
    }

    /// The order in which ten plain tasks (0 to 9) and these nice ones (from 100) have their turn.
    fn order(nice: &[i16]) -> Vec<u32> {
        let mut ranks = Ranks::default();
        let mut queue: VecDeque<u32> = (0..10).collect();
        for (i, nice) in nice.iter().enumerate() {
            ranks.push(task(100 + i as u32), *nice, queue.len());
        }
        let mut out = Vec::new();
        loop {
            match ranks.pop(!queue.is_empty()).map(TaskId::slot).or_else(|| queue.pop_front()) {
                Some(n) => out.push(n),
                None => return out,
            }
        }
    }

    #[test]
    fn the_place_follows_the_value_and_the_length_of_the_queue() {
        assert_eq!(order(&[-1024]), [100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(order(&[-512]), [0, 1, 2, 3, 4, 100, 5, 6, 7, 8, 9]);
        assert_eq!(order(&[1]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100]);
        assert_eq!(order(&[0, 300, -1024, 200]), [102, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 103, 101]);
    }

    #[test]
    fn urgent_tasks_that_always_come_back_leave_turns_to_the_others() {
        let mut ranks = Ranks::default();
        let mut plain = 10;
        ranks.push(task(1), 1024, plain);
        let mut patient = None;
        for turn in 0..200 {
            ranks.push(task(2), -1024, plain);
            while let Some(t) = ranks.pop(plain > 0) {
                if t == task(1) {
                    patient = Some(turn);
                }
                if ranks.is_empty() {
                    ranks.push(task(2), -1024, plain);
                    break;
                }
            }
            plain = plain.saturating_sub(1);
        }
        assert_eq!(plain, 0, "plain tasks starved");
        assert!(patient.is_some(), "the patient task starved");
    }
}
