//! Floor 2: live state that outlives a configuration, and the facts of one transaction.
#![forbid(unsafe_code)]
