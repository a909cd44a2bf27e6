//! The filters that limit bandwidth, as rules name them (sections 4.3 and 9.7).

use std::sync::Arc;

use ::stick::Table;

use crate::expr::Expr;

/// A filter `bwlim-in` or `bwlim-out`.
pub struct Bwlim {
    /// Its name.
    pub name: Box<str>,
    /// Its place among the filters of the stream; `None`: `filter-sequence` leaves it out.
    pub order: Option<u32>,
    /// It limits what clients send (`bwlim-in`).
    pub upload: bool,
    /// `min-size`.
    pub min_size: u64,
    /// The limit, in bytes.
    pub limit: u64,
    /// What the limit is for.
    pub scope: Scope,
}

/// What a limit is for.
pub enum Scope {
    /// Each stream: the period, ms.
    Stream(u32),
    /// All streams with the same key.
    Key(Expr, Arc<Table>),
}
