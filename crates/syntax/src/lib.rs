//! Floor 1: text of a configuration to a spanned tree, and diagnostics.
#![forbid(unsafe_code)]
