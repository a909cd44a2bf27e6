//! The binary: arguments, signals, assembly.
#![forbid(unsafe_code)]

fn main() {}
