//! Caches as rules name them (section 6).

use std::sync::Arc;

use model::cached::Cache;

/// A cache as the rules of a proxy name it.
#[derive(Clone)]
pub struct NamedCache {
    /// The cache.
    pub store: Arc<Cache>,
    /// Its filter is at work: `filter-sequence` does not leave it out.
    pub keeps: bool,
}
