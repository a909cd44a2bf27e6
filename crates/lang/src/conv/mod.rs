//! Converters by family.

use crate::registry::ConvDef;

/// All tables of converters.
pub const TABLES: &[&[ConvDef]] = &[];
