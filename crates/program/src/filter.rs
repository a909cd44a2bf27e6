//! Filters that see the data of a proxy's streams (manual, chapter 9).

use std::sync::Arc;

use lang::filter::Maker;

/// A `filter` line whose filter is one of [`lang::filter`].
#[derive(Clone)]
pub struct Line {
    /// Its place among the filters of each direction, request and response; `None`: `filter-sequence` leaves
    /// it out.
    pub order: [Option<u32>; 2],
    /// Makes the filter for a stream.
    pub maker: Arc<dyn Maker>,
}

/// `filter trace`: shows on the standard error stream what passes, and may let it pass in smaller pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// `name`.
    pub name: Box<str>,
    /// Its place among the filters of each direction, request and response; `None`: `filter-sequence` leaves
    /// it out.
    pub order: [Option<u32>; 2],
    /// It says nothing (`quiet`).
    pub quiet: bool,
    /// `random-forwarding`.
    pub random: bool,
    /// `max-fwd`, 0: no limit.
    pub most: usize,
    /// `hexdump`.
    pub hexdump: bool,
}
