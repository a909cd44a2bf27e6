//! Floor 6: runtime API, statistics.
#![forbid(unsafe_code)]
