//! The class `StickTable`.

use crate::state::Bound;

/// Functions of the class: none yet, each says so.
pub const BOUND: &[Bound] = &[];
