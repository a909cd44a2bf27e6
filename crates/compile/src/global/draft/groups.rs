//! What was said of groups of threads, and whether it adds up.

use std::collections::BTreeMap;

use base::threads::ThreadGroups;

use syntax::{Diagnostic, Diagnostics, Level, Style};

use super::CpuMap;

/// The most threads of a group where nobody says how many.
const USUAL_SIZE: u32 = 16;

/// What was said of groups.
#[derive(Default)]
pub(crate) struct Groups {
    /// `thread-groups`.
    pub count: Option<u32>,
    /// `thread-hard-limit`.
    pub limit: Option<u32>,
    /// `cpu-policy`.
    pub policy: Option<Box<str>>,
    /// `max-threads-per-group`.
    pub largest: Option<u32>,
    /// The group of each thread that a `thread-group` line names.
    pub of: BTreeMap<u32, u32>,
}

impl Groups {
    /// So many threads in their groups.
    pub(crate) fn layout(&self, threads: u32) -> ThreadGroups {
        let largest = self.largest.filter(|n| *n > 0).unwrap_or(USUAL_SIZE);
        let count = self.count.unwrap_or(threads.div_ceil(largest).max(1));
        ThreadGroups::new(count, threads, |thread| self.of.get(&thread).copied())
    }

    /// Says what does not add up: as many threads as there are, divided into the groups. `map` says which
    /// threads run on which processors.
    pub(crate) fn check(&self, given: Option<u32>, map: &CpuMap, processors: usize, notes: &mut Diagnostics) {
        let mut say = |level, text: String| notes.push(Diagnostic::plain(level, text).styled(Style::Bare));
        let asked = given.unwrap_or_else(|| u32::try_from(processors).unwrap_or(u32::MAX));
        let threads = self.limit.map_or(asked, |limit| limit.min(asked));
        if let (Some(limit), Some(asked)) = (self.limit, given.filter(|n| *n > threads)) {
            say(
                Level::Warning,
                format!(
                    "nbthread forced to a higher value ({asked}) than the configured thread-hard-limit ({limit}), enforcing the limit. Please fix either value to remove this warning."
                ),
            );
        }
        if self.largest.is_some() && self.count.is_some() {
            let text = "max-threads-per-group is used to automatically calculate the optimal number of thread groups. It is ignored when thread-groups is set.";
            say(Level::Notice, text.to_owned());
        }
        let groups = self.layout(threads);
        let mapped = (0..threads).any(|thread| map.iter().any(|line| line.names(thread, &groups)));
        let by = match self.policy.as_deref() {
            None => None,
            Some(_) if mapped => Some("cpu-map"),
            Some("none") => None,
            Some(_) if given.is_some() => Some("nbthreads"),
            Some("first-usable-node") => None,
            Some(_) => self.count.map(|_| "thread-groups"),
        };
        if let Some(by) = by {
            say(Level::Notice, format!("cpu-policy is ignored when {by} is set."));
        }
        let Some(count) = self.count else { return };
        let placed: Vec<u32> = self.of.range(..=threads).map(|(_, group)| *group).collect();
        if let Some((at, size)) = (0..).zip(groups.sizes()).find(|(_, size)| *size > 64) {
            let text = format!("thread-group {at} assigned too many threads ({size}, max=64)");
            return say(Level::Alert, text);
        }
        let free = threads as usize - placed.len();
        let empty = (1..=count).filter(|group| !placed.contains(group)).count();
        if empty > free {
            say(
                Level::Alert,
                format!(
                    "More unassigned thread-groups ({empty}) than threads ({free}). Please reduce thread-groups"
                ),
            );
        } else if empty == 0 && free > 0 {
            say(
                Level::Alert,
                format!(
                    "Remaining unassigned threads found ({free}) because all groups are in use. Please increase 'thread-groups', reduce 'nbthreads' or remove or extend 'thread-group' enumerations."
                ),
            );
        }
    }
}
