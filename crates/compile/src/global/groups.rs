//! `thread-groups` and its kin (manual, section 3.1).
//!
//! Groups are a way to name threads (`base::threads`): workers share next to nothing and need none. What is
//! said of them must add up, so that a slip is found by whichever of the two programs reads the file first.

use syntax::Word;

use super::draft::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp};
use crate::units;

/// The most groups, and the most threads that they are made of.
const MOST_GROUPS: i64 = 32;
const MOST_THREADS: i64 = 1024;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry("thread-group", members, "Threads of a group of threads.", "thread-group 1 1-2"),
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
        "Number of groups that the threads are told in.",
        "thread-groups 1",
    )
    .default("as many as `max-threads-per-group` asks for"),
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
