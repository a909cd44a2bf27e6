//! Floor 3: the balancing algorithms and queues: pure functions and lock-free state.
#![forbid(unsafe_code)]
