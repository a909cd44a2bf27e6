//! Floor 4: the immutable compiled configuration.
#![forbid(unsafe_code)]
