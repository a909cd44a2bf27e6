//! Floor 5: from the tree to a Program: one table of keywords a section.
#![forbid(unsafe_code)]
