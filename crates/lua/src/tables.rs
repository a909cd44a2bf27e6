//! The class `StickTable`.

use crate::value::Bound;

/// Functions of the class: none yet, each says so.
pub const BOUND: &[Bound] = &[];
