//! Actions by family.

use crate::registry::ActionDef;

/// All tables of actions.
pub const TABLES: &[&[ActionDef]] = &[];
