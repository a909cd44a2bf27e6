//! Integers, lengths, versions, and ranges of them.
//!
//! Single numbers are found by hash. Ranges cut the numbers into stretches, each of which knows the first
//! range over it; only when that one was deleted are they looked through.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::key::{Keys, mix};
use super::scan::Probe;
use super::{Found, Query};
use crate::dead::Dead;
use crate::entries::{Entries, TextRoom};
use crate::error::PatternError;
use crate::kind::Kind;
use crate::number::{self, Range};
use crate::value::Scratch;

/// No entry.
const NONE: u32 = u32::MAX;

/// Numbers and ranges.
#[derive(Debug)]
pub(crate) struct Ranges {
    kind: Kind,
    points: Keys,
    /// The lower bound of each entry.
    mins: Vec<i64>,
    spans: Vec<(Range, u32)>,
    starts: Vec<i64>,
    first: Vec<u32>,
}

fn hash(n: i64) -> u64 {
    mix(n as u64)
}

impl Ranges {
    pub(crate) fn build(kind: Kind, entries: &Entries) -> Result<Ranges, (u32, PatternError)> {
        let (mut points, mut mins, mut spans) = (Keys::default(), Vec::new(), Vec::new());
        let mut room = TextRoom::default();
        for n in 0..entries.len() {
            let pattern = entries.pattern(n, &mut room);
            let range = number::parse(kind == Kind::Version, pattern).map_err(|e| (n, e))?;
            mins.push(range.min);
            if range.min < range.max {
                spans.push((range, n));
                continue;
            }
            let min = |m: u32| mins.get(m as usize).copied().unwrap_or(0);
            points.insert(hash(range.min), n, |m| min(m) == range.min, |m| hash(min(m)));
        }
        let (starts, first) = cut(&spans);
        Ok(Ranges { kind, points, mins, spans, starts, first })
    }

    fn is(&self, entry: u32, n: i64) -> bool {
        self.mins.get(entry as usize) == Some(&n)
    }

    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        let mut scratch = Scratch::new();
        let Probe::Int(n) = Probe::of(self.kind, &query.value, &mut scratch)? else { return None };
        let point = self.points.find(hash(n), query.dead, |m| self.is(m, n));
        let entry = match (point, self.span(n, query.dead)) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(Found { entry, weight: 0 })
    }

    fn span(&self, n: i64, dead: &Dead) -> Option<u32> {
        let at = self.starts.partition_point(|s| *s <= n).checked_sub(1)?;
        let first = self.first.get(at).copied().filter(|e| *e != NONE)?;
        if dead.spares(first) {
            return Some(first);
        }
        let found = self.spans.iter().find(|(r, e)| r.contains(n) && dead.spares(*e));
        found.map(|(_, e)| *e)
    }

    pub(crate) fn written(&self, text: &[u8], each: &mut dyn FnMut(u32)) {
        match number::parse(self.kind == Kind::Version, text) {
            Ok(r) if r.min == r.max => self.points.all(hash(r.min), |m| self.is(m, r.min), each),
            Ok(r) => self.spans.iter().filter(|(s, _)| *s == r).for_each(|(_, e)| each(*e)),
            Err(_) => {}
        }
    }
}

/// Cuts the numbers at the bounds of ranges: where a stretch starts, and the first range over it.
fn cut(spans: &[(Range, u32)]) -> (Vec<i64>, Vec<u32>) {
    let mut cuts: Vec<i64> =
        spans.iter().flat_map(|(r, _)| [Some(r.min), r.max.checked_add(1)]).flatten().collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut by_min: Vec<&(Range, u32)> = spans.iter().collect();
    by_min.sort_unstable_by_key(|(r, _)| r.min);
    let mut coming = by_min.into_iter().peekable();
    let mut open = BinaryHeap::new();
    let first = |start: &i64| {
        while let Some((range, entry)) = coming.next_if(|(r, _)| r.min <= *start) {
            open.push(Reverse((*entry, range.max)));
        }
        while open.peek().is_some_and(|Reverse((_, max))| max < start) {
            open.pop();
        }
        open.peek().map_or(NONE, |Reverse((entry, _))| *entry)
    };
    let first = cuts.iter().map(first).collect();
    (cuts, first)
}
