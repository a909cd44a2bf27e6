//! Fetches by family.

use crate::registry::{AclDef, FetchDef};

/// All tables of fetches.
pub const TABLES: &[&[FetchDef]] = &[];

/// ACL keywords that imply a match method.
pub const ACLS: &[AclDef] = &[];
