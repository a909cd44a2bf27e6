//! Floor 1: the indexes behind ACLs and maps.
#![forbid(unsafe_code)]
