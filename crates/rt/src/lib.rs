//! Floor 1: the thread-per-core runtime. The one crate with system calls.
