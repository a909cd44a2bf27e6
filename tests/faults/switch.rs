//! Which faults are on: those that HARRIER_FAULT names, with commas between them. Only in builds of
//! tests/faults.

use std::sync::OnceLock;

/// Whether this one is.
pub fn on(name: &str) -> bool {
    static ON: OnceLock<Vec<String>> = OnceLock::new();
    let read = || std::env::var("HARRIER_FAULT").map(|all| all.split(',').map(str::to_owned).collect()).unwrap_or_default();
    ON.get_or_init(read).iter().any(|n| n == name)
}
