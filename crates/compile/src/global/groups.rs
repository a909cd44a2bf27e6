//! `thread-groups` and its kin (manual, section 3.1).
//!
//! There is one group of threads here, and workers need no others. What is said of groups is read and must add up all the
//! same, so that a slip is found by whichever of the two programs reads the file first.

use std::collections::BTreeMap;

use syntax::{Diagnostic, Diagnostics, Level, Style, Word};

use super::{CpuMap, GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp};
use crate::units;

/// The most groups, and the most threads that they are made of.
const MOST_GROUPS: i64 = 32;
const MOST_THREADS: i64 = 1024;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "thread-group",
        members,
        "Threads of a group of threads; there is one group.",
        "thread-group 1 1-2",
    ),
    entry(
        "thread-groups",
        |s, g| {
            let n = whole(s)?;
            if !(1..=MOST_GROUPS).contains(&n) {
                return Err(
                    s.fail(format!("'thread-groups' value must be between 1 and {MOST_GROUPS} (was {n})"))
                );
            }
            g.groups.count = Some(clamp(n));
            Ok(())
        },
        "Number of groups of threads; there is one.",
        "thread-groups 1",
    ),
    entry(
        "thread-hard-limit",
        |s, g| {
            let n = whole(s)?;
            if !(1..=i64::from(i32::MAX)).contains(&n) {
                return Err(s.fail(format!("'thread-hard-limit' value must be at least 1 (was {n})")));
            }
            g.groups.limit = Some(clamp(n));
            Ok(())
        },
        "Most threads, whatever else is said of their number.",
        "thread-hard-limit 4",
    ),
];

/// What was said of groups.
#[derive(Default)]
pub(crate) struct Groups {
    /// `thread-groups`.
    count: Option<u32>,
    /// `thread-hard-limit`.
    limit: Option<u32>,
    /// `cpu-policy`.
    pub policy: Option<Box<str>>,
    /// `max-threads-per-group` was given.
    pub largest: bool,
    /// The group of each thread that a `thread-group` line names.
    of: BTreeMap<u32, u32>,
}

impl Groups {
    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }

    /// Says what does not add up: as many threads as there are, divided into the groups. `map` says which threads run
    /// on which processors.
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
        if self.largest && self.count.is_some() {
            let text = "max-threads-per-group is used to automatically calculate the optimal number of thread groups. It is ignored when thread-groups is set.";
            say(Level::Notice, text.to_owned());
        }
        let mapped = map.iter().any(|(of, _)| of.iter().any(|thread| *thread <= threads));
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

/// A number and nothing behind it.
fn whole(s: &mut Statement<'_>) -> Step<i64> {
    let word = s.next();
    s.end()?;
    number(s, word)
}

fn number(s: &Statement<'_>, word: Option<&Word>) -> Step<i64> {
    let text = word.map_or("", Word::text);
    units::strict(text).ok_or_else(|| {
        s.fail(format!("'{}' passed a missing or unparsable integer value in '{text}'", s.keyword()))
    })
}

/// `thread-group <group> [<thread-range>...]`.
fn members(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let word = s.next();
    let group = number(s, word)?;
    if !(1..=MOST_GROUPS).contains(&group) {
        return Err(s.fail(format!(
            "'thread-group' thread-group number must be between 1 and {MOST_GROUPS} (was {group})"
        )));
    }
    while let Some(word) = s.next() {
        let (from, to) = word.text().split_once('-').unwrap_or((word.text(), word.text()));
        let bound = |text: &str| units::strict(text).filter(|n| (1..=MOST_THREADS).contains(n));
        let (Some(from), Some(to)) = (bound(from), bound(to)) else {
            return Err(s.fail(format!(
                "'thread-group {group}' passed an unparsable or invalid thread number '{word}' (valid range is 1 to {MOST_THREADS})"
            )));
        };
        for thread in from..=to {
            let before = g.groups.of.insert(clamp(thread), clamp(group));
            if let Some(other) = before.filter(|other| i64::from(*other) != group) {
                s.warn(format!(
                    "'thread-group {group}': thread {thread} was previously assigned to thread group {other} and will be overridden."
                ));
            }
        }
    }
    Ok(())
}
