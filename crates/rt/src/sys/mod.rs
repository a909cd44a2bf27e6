//! What a process asks of its system: processors, users, limits, signals, inherited descriptors.

mod cpu;

pub use cpu::{allowed_cpus, set_affinity};
