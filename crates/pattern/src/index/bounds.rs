//! Nested spans of numbers, the innermost of which is found by one binary search.
//!
//! The spans of prefixes never overlap without one holding the other. They cut the numbers into stretches;
//! each stretch knows the innermost span over it, each span the next one around it.

use crate::dead::Dead;

/// No span.
const NONE: u32 = u32::MAX;

/// A span of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<T> {
    pub(crate) first: T,
    pub(crate) last: T,
    /// How long the prefix is.
    pub(crate) bits: u8,
    pub(crate) entry: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    entry: u32,
    /// The next span around this one; of equal spans the next entry.
    around: u32,
    bits: u8,
}

/// Spans, sorted.
#[derive(Debug)]
pub(crate) struct Bounds<T> {
    starts: Vec<T>,
    inner: Vec<u32>,
    nodes: Vec<Node>,
}

/// A span whose end was not reached yet.
struct Open<T> {
    last: T,
    bits: u8,
    head: u32,
    tail: u32,
}

impl<T: Copy + Ord> Bounds<T> {
    /// Sorts spans; `next` is the number behind another, unless that is the last.
    pub(crate) fn build(mut spans: Vec<Span<T>>, next: fn(T) -> Option<T>) -> Bounds<T> {
        spans.sort_unstable_by_key(|s| (s.first, s.bits, s.entry));
        let mut out =
            Bounds { starts: Vec::new(), inner: Vec::new(), nodes: Vec::with_capacity(spans.len()) };
        let mut open: Vec<Open<T>> = Vec::new();
        for span in spans {
            while open.last().is_some_and(|o| o.last < span.first) {
                out.close(&mut open, next);
            }
            out.open(&mut open, span);
        }
        while !open.is_empty() {
            out.close(&mut open, next);
        }
        out.starts.shrink_to_fit();
        out.inner.shrink_to_fit();
        out
    }

    fn open(&mut self, open: &mut Vec<Open<T>>, span: Span<T>) {
        let at = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let mut node = Node { entry: span.entry, around: NONE, bits: span.bits };
        match open.last_mut() {
            Some(o) if o.last == span.last && o.bits == span.bits => {
                if let Some(tail) = self.nodes.get_mut(o.tail as usize) {
                    node.around = std::mem::replace(&mut tail.around, at);
                }
                o.tail = at;
                self.nodes.push(node);
            }
            top => {
                node.around = top.map_or(NONE, |o| o.head);
                self.nodes.push(node);
                self.cut(span.first, at);
                open.push(Open { last: span.last, bits: span.bits, head: at, tail: at });
            }
        }
    }

    fn close(&mut self, open: &mut Vec<Open<T>>, next: fn(T) -> Option<T>) {
        let Some(closed) = open.pop() else { return };
        if let Some(start) = next(closed.last) {
            self.cut(start, open.last().map_or(NONE, |o| o.head));
        }
    }

    fn cut(&mut self, start: T, inner: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.inner.pop();
        }
        self.starts.push(start);
        self.inner.push(inner);
    }

    /// The entry of the innermost span around `n` that is still there, and the length of its prefix.
    pub(crate) fn find(&self, n: T, dead: &Dead) -> Option<(u32, u8)> {
        self.around(n).find(|node| dead.spares(node.entry)).map(|node| (node.entry, node.bits))
    }

    /// All entries around `n`, innermost first.
    pub(crate) fn all(&self, n: T) -> impl Iterator<Item = u32> + '_ {
        self.around(n).map(|node| node.entry)
    }

    fn around(&self, n: T) -> impl Iterator<Item = Node> + '_ {
        let at = self.starts.partition_point(|s| *s <= n).checked_sub(1);
        let mut inner = at.and_then(|at| self.inner.get(at)).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let node = *self.nodes.get(inner as usize)?;
            inner = node.around;
            Some(node)
        })
    }
}
